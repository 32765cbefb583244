//! What is known of a pod after the node itself has been restarted.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Pod};

use super::memory::{ContainerMemory, Exit, Memory, State};
use super::probe::{ProbeMemory, Verdict};
use super::{Ending, containers, shutdown};

/// What the runtime knows of one instance of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Name of the container.
    pub container: String,
    /// Which instance of it.
    pub attempt: u32,
    /// What it is doing.
    pub state: KnownState,
}

/// What the runtime knows an instance to be doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownState {
    /// It still runs.
    Running {
        /// Since when.
        since: Timestamp,
    },
    /// It ended while nobody looked.
    Exited(Exit),
    /// It has ended, nobody knows how.
    Lost,
}

impl Memory {
    /// What can be known of `pod` from its status and from what the runtime found.
    ///
    /// A container that was running and cannot be found any more has ended, with an unknown result:
    /// "never ran" would make a pod that runs once run twice.
    pub fn recover(pod: &Pod, known: &[Known]) -> Self {
        let mut memory = Self::default();
        let status = pod.status.as_ref();
        memory.pod_ip = status.and_then(|status| status.pod_ip.clone());
        memory.started_at = status.and_then(|status| status.start_time.as_ref()).map(|at| at.0);
        let statuses = || {
            status.into_iter().flat_map(|status| {
                status.init_container_statuses.iter().chain(&status.container_statuses).flatten()
            })
        };
        for (_, container) in containers(pod) {
            let old = statuses().find(|status| status.name == container.name);
            let newest = known
                .iter()
                .filter(|it| it.container == container.name)
                .max_by_key(|it| it.attempt);
            if let Some(mut found) = recover_one(old, newest) {
                if shutdown::is_announced(pod)
                    && exit_of(old.and_then(|it| it.state.as_ref())).is_none()
                {
                    shutdown::interrupt(&mut found);
                }
                memory.containers.insert(container.name.clone(), Box::new(found));
            }
        }
        if shutdown::is_announced(pod) && !shutdown::comes_back(pod, &memory) {
            memory.ending = Some(Ending::NodeShutdown);
        }
        memory
    }
}

fn recover_one(old: Option<&ContainerStatus>, newest: Option<&Known>) -> Option<ContainerMemory> {
    let count = old.and_then(|status| u32::try_from(status.restart_count).ok()).unwrap_or(0);
    let last = old.and_then(|status| exit_of(status.last_state.as_ref()));
    let state = old.and_then(|status| status.state.as_ref());
    let ended = exit_of(state);
    let mut memory = ContainerMemory { attempt: count, last, ..ContainerMemory::default() };
    let newest = newest.filter(|known| known.attempt >= count);
    if let Some(known) = newest {
        if known.attempt > count {
            memory.last = ended.or(memory.last);
        }
        memory.attempt = known.attempt;
        memory.state = match &known.state {
            KnownState::Running { since } => State::Running { since: *since },
            KnownState::Exited(exit) => State::Exited(exit.clone()),
            KnownState::Lost => State::Exited(lost()),
        };
        if let Some(status) = old.filter(|_| known.attempt == count) {
            let verdict = |is_true| if is_true { Verdict::Success } else { Verdict::Unknown };
            memory.startup = ProbeMemory::decided(verdict(status.started == Some(true)));
            memory.readiness = ProbeMemory::decided(verdict(status.ready));
            memory.post_start = super::Hook::Done;
        }
        return Some(memory);
    }
    if let Some(exit) = ended {
        memory.state = State::Exited(exit);
    } else if state.is_some_and(|state| state.running.is_some()) {
        memory.state = State::Exited(lost());
    } else if let Some(exit) = memory.last.take() {
        // Waiting after an end: the end is the newest thing that is known.
        memory.state = State::Exited(exit);
    } else {
        return (count > 0).then_some(memory);
    }
    Some(memory)
}

fn lost() -> Exit {
    Exit {
        code: 137,
        reason: "ContainerStatusUnknown".to_owned(),
        message: "The container could not be located when the pod was terminated".to_owned(),
        ..Exit::default()
    }
}

fn exit_of(state: Option<&ContainerState>) -> Option<Exit> {
    let terminated: &ContainerStateTerminated = state?.terminated.as_ref()?;
    Some(Exit {
        code: terminated.exit_code,
        signal: terminated.signal,
        reason: terminated.reason.clone().unwrap_or_default(),
        message: terminated.message.clone().unwrap_or_default(),
        started_at: terminated.started_at.as_ref().map(|at| at.0),
        finished_at: terminated.finished_at.as_ref().map(|at| at.0),
    })
}

#[cfg(test)]
mod tests {
    use super::super::world::{World, pod};
    use super::*;

    fn known(attempt: u32, state: KnownState) -> Vec<Known> {
        vec![Known { container: "a".to_owned(), attempt, state }]
    }

    #[test]
    fn a_container_that_still_runs_is_taken_over() {
        let mut world = World::new(pod("Never", &["a"]));
        world.run();
        let since = world.now;
        world.restart(&known(0, KnownState::Running { since }));
        world.run();
        assert_eq!(world.phase(), "Running");
        assert_eq!(world.starts, ["a/0"], "it is not started again");
    }

    #[test]
    fn a_lost_container_has_failed_and_restarts_only_if_it_may() {
        for (policy, phase, starts) in [("Never", "Failed", 1), ("Always", "Running", 2)] {
            let mut world = World::new(pod(policy, &["a"]));
            world.run();
            world.restart(&[]);
            world.run();
            assert_eq!(world.phase(), phase, "{policy}");
            assert_eq!(world.starts.len(), starts, "{policy}");
        }
    }

    #[test]
    fn an_end_that_nobody_saw_is_reported() {
        let mut world = World::new(pod("Never", &["a"]));
        world.run();
        let exit = Exit { code: 0, reason: "Completed".to_owned(), ..Exit::default() };
        world.restart(&known(0, KnownState::Exited(exit)));
        world.run();
        assert_eq!(world.phase(), "Succeeded");
    }

    #[test]
    fn an_instance_newer_than_the_status_counts() {
        let mut world = World::new(pod("Always", &["a"]));
        world.run();
        let since = world.now;
        world.restart(&known(1, KnownState::Running { since }));
        world.run();
        let status = world.status("a");
        assert_eq!((status.restart_count, status.ready), (1, true));
    }

    #[test]
    fn a_finished_pod_is_left_alone() {
        let mut world = World::new(pod("Never", &["a"]));
        world.run();
        world.exit("a", 3);
        world.run();
        let before = world.pod.status.clone();
        world.restart(&[]);
        world.run();
        assert_eq!(world.pod.status, before);
        assert_eq!(world.starts.len(), 1);
    }
}
