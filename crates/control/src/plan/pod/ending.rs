//! Whether a pod ends, and why.

use k8s_openapi::api::core::v1::Pod;

use super::memory::after;
use super::restart::{restarts, seconds};
use super::{Memory, Pass, Role, State, containers};

/// What users read of a pod that ran out of `activeDeadlineSeconds`.
pub(super) const DEADLINE_MESSAGE: &str =
    "Pod was active on the node longer than the specified deadline";

/// Why all containers of a pod have to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Somebody deleted the pod.
    Deleted,
    /// It ran out of `activeDeadlineSeconds`.
    DeadlineExceeded,
    /// The node shuts down: what may run again does so when the node is back, the rest has failed.
    NodeShutdown,
    /// The API says that it is over: a terminal phase never changes back.
    Terminal,
    /// The main containers have ended and none is to be restarted, or initialization failed for
    /// good.
    Finished,
}

/// Decides whether the pod ends. A deletion comes first because it sets the grace period.
pub(super) fn decide(pass: &Pass<'_>) -> Option<Ending> {
    let (pod, memory) = (pass.pod, &*pass.memory);
    if memory.is_gone || pod.metadata.deletion_timestamp.is_some() {
        return Some(Ending::Deleted);
    }
    if memory.ending == Some(Ending::DeadlineExceeded)
        || deadline(pod, memory).is_some_and(|at| at <= pass.now) && !is_terminal(pod)
    {
        return Some(Ending::DeadlineExceeded);
    }
    if is_terminal(pod) {
        return Some(Ending::Terminal);
    }
    if memory.ending == Some(Ending::NodeShutdown) {
        return Some(Ending::NodeShutdown);
    }
    // Whatever ended by itself before the node began to go keeps its own result.
    if is_finished(pod, memory) {
        return Some(Ending::Finished);
    }
    pass.node.is_shutting_down.then_some(Ending::NodeShutdown)
}

/// When the pod runs out of `activeDeadlineSeconds`.
pub(super) fn deadline(pod: &Pod, memory: &Memory) -> Option<jiff::Timestamp> {
    let limit = pod.spec.as_ref()?.active_deadline_seconds?;
    Some(after(memory.started_at?, seconds(limit)))
}

/// Whether the API says that the pod is over.
pub(super) fn is_terminal(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn is_finished(pod: &Pod, memory: &Memory) -> bool {
    let ended_for_good = |role, container: &k8s_openapi::api::core::v1::Container| {
        let exit = memory.containers.get(&container.name).and_then(|known| known.exit());
        exit.is_some_and(|exit| !restarts(pod, role, container, exit.code))
    };
    let mut mains = containers(pod).filter(|(role, _)| *role == Role::Main).peekable();
    if mains.peek().is_some() && mains.all(|(role, container)| ended_for_good(role, container)) {
        return true;
    }
    let is_initialized = containers(pod).any(|(role, container)| {
        role == Role::Main
            && memory.containers.get(&container.name).is_some_and(|it| it.state != State::Never)
    });
    !is_initialized
        && containers(pod).any(|(role, container)| {
            let exit = memory.containers.get(&container.name).and_then(|known| known.exit());
            role == Role::Init
                && exit.is_some_and(|exit| exit.code != 0)
                && ended_for_good(role, container)
        })
}

#[cfg(test)]
mod tests {
    use super::super::world::{World, pod};
    use super::*;

    #[test]
    fn a_pod_ends_when_its_containers_have_ended_for_good() {
        // (restart policy, exit code, expected)
        let cases = [
            ("Never", 0, Some(Ending::Finished)),
            ("Never", 3, Some(Ending::Finished)),
            ("OnFailure", 0, Some(Ending::Finished)),
            ("OnFailure", 3, None),
            ("Always", 0, None),
            ("Always", 3, None),
        ];
        for (policy, code, want) in cases {
            let mut world = World::new(pod(policy, &["a"]));
            world.run();
            world.exit("a", code);
            assert_eq!(world.ending(), want, "{policy} {code}");
        }
    }

    #[test]
    fn a_failed_init_container_ends_the_pod_only_when_it_may_not_restart() {
        for (policy, want) in [("Never", Some(Ending::Finished)), ("Always", None)] {
            let mut world = World::new(pod(policy, &["a"]).init(&["i"]));
            world.run();
            world.exit("i", 1);
            assert_eq!(world.ending(), want, "{policy}");
        }
    }

    #[test]
    fn deletion_comes_before_everything_else() {
        let mut world = World::new(pod("Always", &["a"]));
        world.run();
        world.delete(30);
        assert_eq!(world.ending(), Some(Ending::Deleted));
    }

    #[test]
    fn the_deadline_counts_from_the_start_of_the_pod() {
        let mut world = World::new(pod("Always", &["a"]));
        world.pod.spec.as_mut().unwrap().active_deadline_seconds = Some(60);
        world.run();
        world.pass(59);
        assert_eq!(world.ending(), None);
        world.pass(1);
        assert_eq!(world.ending(), Some(Ending::DeadlineExceeded));
        world.run();
        world.pass(40);
        world.run();
        assert_eq!(world.phase(), "Failed");
        let status = world.pod.status.as_ref().unwrap();
        assert_eq!(status.reason.as_deref(), Some("DeadlineExceeded"));
        assert_eq!(status.message.as_deref(), Some(DEADLINE_MESSAGE));
    }
}
