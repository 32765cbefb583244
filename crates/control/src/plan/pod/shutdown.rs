//! Pods of a node that shuts down.
//!
//! That the node goes is written into the status before anything is stopped. What ends after that
//! ended because of us, whatever its exit code says: a container that may run again does so when
//! the node is back, and a pod with one that may not has failed. Neither has succeeded.

use k8s_openapi::api::core::v1::Pod;

use super::ending::is_terminal;
use super::memory::{ContainerMemory, State};
use super::restart::restarts;
use super::{Exit, Memory, Pass, containers};

pub(super) const REASON: &str = "Terminated";
pub(super) const MESSAGE: &str = "Pod was terminated in response to imminent node shutdown.";
pub(super) const CONDITION: &str = "DisruptionTarget";
pub(super) const CONDITION_REASON: &str = "TerminationByKubelet";

/// The exit code of a process that a request to end has ended.
const TERMINATED: i32 = 143;

/// Whether the status says that the node is going.
pub(super) fn is_announced(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default().iter().any(|condition| {
        condition.type_ == CONDITION
            && condition.status == "True"
            && condition.reason.as_deref() == Some(CONDITION_REASON)
    })
}

/// Whether all that was interrupted may run again.
pub(super) fn comes_back(pod: &Pod, memory: &Memory) -> bool {
    containers(pod).all(|(role, container)| {
        let is_interrupted =
            memory.containers.get(&container.name).is_some_and(|known| known.is_interrupted);
        !is_interrupted || restarts(pod, role, container, TERMINATED)
    })
}

/// Whether there is something to write: that the node goes, or that the pod has failed by it. What
/// comes back keeps the status it had, and what has not begun has nothing to tell.
pub(super) fn is_to_be_told(pass: &Pass<'_>) -> bool {
    if is_terminal(pass.pod) {
        return false;
    }
    let memory = &*pass.memory;
    if is_announced(pass.pod) {
        return memory.is_still() && !comes_back(pass.pod, memory);
    }
    memory.containers.values().any(|container| container.is_live())
}

/// Marks a container of the node's earlier life that the shutdown has or had asked to end.
pub(super) fn interrupt(known: &mut ContainerMemory) {
    if known.state == State::Never {
        return;
    }
    known.is_interrupted = true;
    if let State::Exited(exit) = &mut known.state {
        *exit = interrupted(std::mem::take(exit));
    }
}

/// How an end is noted that came after the request to end: never as a success.
pub(super) fn interrupted(exit: Exit) -> Exit {
    if exit.code != 0 {
        return exit;
    }
    let message = "exited with code 0 after it was asked to end because the node shut down";
    Exit { code: TERMINATED, reason: "Error".to_owned(), message: message.to_owned(), ..exit }
}

#[cfg(test)]
mod tests {
    use super::super::world::{World, pod};
    use super::super::{Known, KnownState};
    use super::*;

    fn condition(world: &World) -> Option<String> {
        let conditions = world.pod.status.as_ref()?.conditions.as_deref()?;
        conditions.iter().find(|it| it.type_ == CONDITION).map(|it| it.status.clone())
    }

    /// The node goes and comes back; the container ended with `code` when it was asked to.
    fn restart(world: &mut World, code: i32) {
        let exit = Exit { code, ..Exit::default() };
        let attempt = world.memory.containers["a"].attempt;
        world.is_shutting_down = false;
        let state = KnownState::Exited(exit);
        world.restart(&[Known { container: "a".to_owned(), attempt, state }]);
        world.run();
    }

    #[test]
    fn a_pod_that_may_not_run_again_has_failed_and_never_succeeded() {
        let mut world = World::new(pod("Never", &["a"]).sidecars(&["s"]));
        world.run();
        world.is_shutting_down = true;
        world.run();
        assert_eq!(world.log, ["a:signal 15", "s:signal 15"], "sidecars last");
        let status = world.pod.status.clone().unwrap();
        assert_eq!(world.phase(), "Failed");
        assert_eq!(status.reason.as_deref(), Some(REASON));
        assert_eq!(status.message.as_deref(), Some(MESSAGE));
        assert_eq!(condition(&world).as_deref(), Some("True"));
        assert!(world.memory.is_at_rest());
        restart(&mut world, 0);
        assert_eq!(world.pod.status, Some(status));
        assert_eq!(world.starts, ["s/0", "a/0"]);
    }

    #[test]
    fn a_pod_that_may_run_again_does_so_whatever_its_exit_code() {
        for policy in ["Always", "OnFailure"] {
            for code in [0, 1] {
                let mut world = World::new(pod(policy, &["a"]));
                world.run();
                world.is_shutting_down = true;
                world.run();
                assert_eq!((world.phase(), world.log.len()), ("Running", 1), "{policy}");
                assert!(world.memory.is_at_rest());
                restart(&mut world, code);
                assert_eq!((world.phase(), world.state("a").as_str()), ("Running", "running"));
                assert_eq!(world.starts, ["a/0", "a/1"], "{policy} {code}");
                assert_eq!(condition(&world).as_deref(), Some("False"));
                world.exit("a", 0);
                world.run();
                let want = if policy == "OnFailure" { "Succeeded" } else { "Running" };
                assert_eq!(world.phase(), want, "its next end is its own");
            }
        }
    }

    #[test]
    fn nothing_is_stopped_before_the_reason_is_written() {
        let mut world = World::new(pod("Never", &["a"]));
        world.run();
        world.is_shutting_down = true;
        let steps = world.plan().steps;
        assert!(matches!(steps[..], [super::super::Step::WriteStatus(_)]), "{steps:?}");
    }

    #[test]
    fn nothing_is_stopped_while_a_write_takes_the_reason_back() {
        let mut world = World::new(pod("OnFailure", &["a"]));
        world.run();
        world.is_shutting_down = true;
        world.run();
        let state = KnownState::Exited(Exit::default());
        world.is_shutting_down = false;
        world.restart(&[Known { container: "a".to_owned(), attempt: 0, state }]);
        let mut held = None;
        for _ in 0..10 {
            for step in world.plan().steps {
                if matches!(step, super::super::Step::WriteStatus(_)) {
                    held = Some(step);
                } else {
                    world.carry_out(step);
                }
            }
        }
        let held = held.expect("it runs again, which is written");
        world.is_shutting_down = true;
        assert!(world.plan().steps.is_empty(), "what is on its way says that the node stays");
        world.carry_out(held);
        assert_eq!(condition(&world).as_deref(), Some("False"));
        world.run();
        assert_eq!(condition(&world).as_deref(), Some("True"));
        assert_eq!(world.log.last().map(String::as_str), Some("a:signal 15"));
        let exit = world.memory.containers["a"].exit().cloned().unwrap();
        assert_eq!(exit.code, TERMINATED, "it did not end by itself");
    }

    #[test]
    fn a_shutdown_that_was_cut_short_is_still_the_reason() {
        let mut world = World::new(pod("Never", &["a"]));
        world.is_obedient = false;
        world.run();
        world.is_shutting_down = true;
        world.run();
        assert_eq!(world.phase(), "Running");
        restart(&mut world, 0);
        assert_eq!(world.phase(), "Failed");
        assert_eq!(world.pod.status.as_ref().unwrap().reason.as_deref(), Some(REASON));
    }

    #[test]
    fn what_ended_before_and_what_has_not_begun_is_left_alone() {
        let mut world = World::new(pod("Never", &["a"]));
        world.is_shutting_down = true;
        world.run();
        assert_eq!((world.phase(), world.starts.len()), ("Pending", 0));
        world.is_shutting_down = false;
        world.run();
        assert_eq!(world.phase(), "Pending", "the node does not change its mind");
        world.restart(&[]);
        world.run();
        assert_eq!(world.phase(), "Running");
        world.exit("a", 0);
        world.is_shutting_down = true;
        world.run();
        assert_eq!((world.phase(), condition(&world)), ("Succeeded", None));
    }
}
