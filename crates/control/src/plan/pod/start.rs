//! Which containers start: init containers one by one, then the main ones, sidecars kept running.

use k8s_openapi::api::core::v1::{Container, Pod};

use super::memory::{Hook, Setup, State};
use super::restart::{Retry, restarts, retry};
use super::{HookKind, Memory, Pass, Role, Step, Waiting, containers, full_name};

/// How far the init containers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// All have done their part.
    Initialized,
    /// The one at this place has yet to.
    At(usize),
}

/// Plans the starts of a pod that is meant to run.
pub(super) fn plan(pass: &mut Pass<'_>) {
    if !is_set_up(pass) {
        return;
    }
    let pod = pass.pod;
    let progress = progress(pod, pass.memory);
    for (index, (role, container)) in containers(pod).enumerate() {
        let is_due = match (progress, role) {
            (Progress::Initialized, Role::Sidecar | Role::Main) => true,
            (Progress::Initialized, Role::Init) => false,
            (Progress::At(at), Role::Sidecar) => index <= at,
            (Progress::At(at), Role::Init) => index == at,
            (Progress::At(_), Role::Main) => false,
        };
        if is_due && !advance(pass, role, container) {
            // As with a kubelet, nothing starts while a postStart hook has yet to end.
            break;
        }
    }
    match progress {
        Progress::At(at) => {
            if let Some((_, container)) = containers(pod).nth(at) {
                pass.wait(Waiting::Initializing(container.name.clone()));
            }
        }
        Progress::Initialized => pass.wait(Waiting::Running),
    }
    let deadline = super::ending::deadline(pod, pass.memory);
    pass.wake(deadline);
}

/// How far the init containers are, as the states of all containers tell.
pub(super) fn progress(pod: &Pod, memory: &Memory) -> Progress {
    let known = |container: &Container| memory.containers.get(&container.name);
    let has_main_started = containers(pod).any(|(role, container)| {
        role == Role::Main && known(container).is_some_and(|it| it.state != State::Never)
    });
    if has_main_started {
        return Progress::Initialized;
    }
    for (index, (role, container)) in containers(pod).enumerate() {
        let is_done = match role {
            Role::Init => known(container).and_then(|it| it.exit()).is_some_and(|it| it.code == 0),
            Role::Sidecar => known(container).is_some_and(|it| it.is_started(container)),
            Role::Main => return Progress::Initialized,
        };
        if !is_done {
            return Progress::At(index);
        }
    }
    Progress::Initialized
}

fn is_set_up(pass: &mut Pass<'_>) -> bool {
    let (now, setup) = (pass.now, pass.memory.setup.clone());
    match setup {
        Setup::Ready => return true,
        Setup::Asked => {}
        Setup::Failed { retry_at, .. } if retry_at > now => pass.wake(Some(retry_at)),
        Setup::Wanted | Setup::Failed { .. } => {
            pass.memory.setup = Setup::Asked;
            pass.step(Step::SetUp);
        }
    }
    pass.wait(Waiting::SetUp);
    false
}

/// Brings one container on its way; `false` when nothing after it may start yet.
fn advance(pass: &mut Pass<'_>, role: Role, container: &Container) -> bool {
    let (pod, options, now) = (pass.pod, pass.options, pass.now);
    let name = container.name.as_str();
    let has_hook = container.lifecycle.as_ref().is_some_and(|it| it.post_start.is_some());
    let known = pass.memory.container(name);
    match &known.state {
        State::Starting { .. } => {
            pass.wait(Waiting::Starting(name.to_owned()));
            return !has_hook;
        }
        State::Running { .. } => return post_start(pass, container),
        State::Exited(exit) if !restarts(pod, role, container, exit.code) => return true,
        State::Never | State::Exited(_) => {}
    }
    if let Some(at) = known.problem.as_ref().and_then(|problem| problem.retry_at)
        && at > now
    {
        pass.wake(Some(at));
        pass.wait(Waiting::Unstartable(name.to_owned()));
        return true;
    }
    let mut before = None;
    if let State::Exited(exit) = &known.state {
        match retry(exit, known.delay, options, now) {
            Retry::Now(delay) => known.delay = Some(delay),
            Retry::Later { at, .. } => {
                back_off(pass, name, at);
                return true;
            }
        }
        before = Some(exit.clone());
        known.attempt += 1;
    }
    known.state = State::Starting { before };
    let attempt = known.attempt;
    pass.step(Step::Start { container: name.to_owned(), attempt });
    pass.wait(Waiting::Starting(name.to_owned()));
    !has_hook
}

/// Waits with a restart, and tells so once.
fn back_off(pass: &mut Pass<'_>, name: &str, at: jiff::Timestamp) {
    let known = pass.memory.container(name);
    if known.told != Some(known.attempt) {
        known.told = Some(known.attempt);
        let pod = full_name(pass.pod);
        let message = format!("Back-off restarting failed container {name} in pod {pod}");
        pass.memory.warn("BackOff", message, Some(name));
    }
    pass.wake(Some(at));
    pass.wait(Waiting::BackOff(name.to_owned()));
}

/// Runs the postStart hook of a container that has just started; `true` once it has ended.
fn post_start(pass: &mut Pass<'_>, container: &Container) -> bool {
    let has_hook = container.lifecycle.as_ref().is_some_and(|it| it.post_start.is_some());
    let known = pass.memory.container(&container.name);
    if !has_hook || matches!(known.post_start, Hook::Done | Hook::Failed) {
        return true;
    }
    if known.post_start == Hook::Idle {
        known.post_start = Hook::Running;
        let attempt = known.attempt;
        pass.step(Step::RunHook {
            container: container.name.clone(),
            attempt,
            kind: HookKind::PostStart,
            within: None,
        });
    }
    false
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Lifecycle, LifecycleHandler, Probe};

    use super::super::world::{World, pod};
    use super::super::{ProbeOutcome, StartFailure};
    use super::*;

    #[test]
    fn init_containers_run_one_by_one_and_main_ones_together_after_them() {
        let mut world = World::new(pod("Never", &["a", "b"]).init(&["i", "j"]));
        world.run();
        assert_eq!(world.starts, ["i/0"]);
        assert_eq!(world.state("j"), "waiting/PodInitializing");
        assert_eq!(world.state("a"), "waiting/PodInitializing");
        world.exit("i", 0);
        world.run();
        assert_eq!(world.starts, ["i/0", "j/0"]);
        assert_eq!(world.phase(), "Pending");
        world.exit("j", 0);
        world.run();
        assert_eq!(world.starts, ["i/0", "j/0", "a/0", "b/0"]);
        assert_eq!(world.phase(), "Running");
    }

    #[test]
    fn a_failing_init_container_is_tried_again_with_back_off() {
        let mut world = World::new(pod("OnFailure", &["a"]).init(&["i"]));
        world.run();
        world.exit("i", 1);
        world.run();
        assert_eq!(world.starts, ["i/0", "i/1"], "the first restart is at once");
        world.exit("i", 1);
        let plan = world.rest();
        assert_eq!(plan.waiting, Some(Waiting::BackOff("i".to_owned())));
        assert_eq!(world.state("i"), "waiting/CrashLoopBackOff");
        world.pass(10);
        world.run();
        assert_eq!(world.starts.last().unwrap(), "i/2");
    }

    #[test]
    fn the_next_container_waits_for_the_startup_probe_of_a_sidecar() {
        let built = pod("Never", &["a"])
            .sidecars(&["s"])
            .with("s", |container| container.startup_probe = Some(Probe::default()));
        let mut world = World::new(built);
        world.probe = ProbeOutcome::Failure("no".to_owned());
        world.run();
        assert_eq!(world.starts, ["s/0"]);
        world.probe = ProbeOutcome::Success;
        world.pass(10);
        world.run();
        assert_eq!(world.starts, ["s/0", "a/0"]);
        assert_eq!(world.phase(), "Running");
    }

    #[test]
    fn sidecars_restart_while_the_main_containers_run() {
        let mut world = World::new(pod("Never", &["a"]).sidecars(&["s"]));
        world.run();
        world.exit("s", 0);
        world.run();
        assert_eq!(world.starts, ["s/0", "a/0", "s/1"]);
        assert_eq!(world.phase(), "Running");
    }

    #[test]
    fn crash_loops_are_shown_and_told_as_a_kubelet_does() {
        let mut world = World::new(pod("Always", &["a"]));
        world.run();
        world.exit("a", 7);
        world.run();
        world.exit("a", 7);
        world.run();
        let status = world.status("a");
        let waiting = status.state.unwrap().waiting.unwrap();
        assert_eq!(waiting.reason.as_deref(), Some("CrashLoopBackOff"));
        assert_eq!(
            waiting.message.as_deref(),
            Some("back-off 10s restarting failed container=a pod=p_ns(u)")
        );
        assert_eq!(status.restart_count, 1);
        let last = status.last_state.unwrap().terminated.unwrap();
        assert_eq!((last.exit_code, last.reason.as_deref()), (7, Some("Error")));
        assert_eq!(world.phase(), "Running");
        let told = "BackOff: Back-off restarting failed container a in pod p_ns(u)";
        assert_eq!(world.events.iter().filter(|event| *event == told).count(), 1);
        world.pass(10);
        world.run();
        assert_eq!(world.starts, ["a/0", "a/1", "a/2"]);
        assert_eq!(world.status("a").restart_count, 2);
    }

    #[test]
    fn what_cannot_be_configured_waits_with_its_reason_and_is_tried_again() {
        let mut world = World::new(pod("Never", &["a"]));
        world.start_failure = Some(StartFailure::Config("configmap \"x\" not found".to_owned()));
        let plan = world.rest();
        assert_eq!(plan.waiting, Some(Waiting::Unstartable("a".to_owned())));
        assert_eq!(world.state("a"), "waiting/CreateContainerConfigError");
        assert_eq!(world.events, ["Failed: Error: configmap \"x\" not found"]);
        assert_eq!(world.phase(), "Pending");
        world.pass(2);
        world.run();
        assert_eq!(world.events.len(), 1, "the same trouble is told once");
        world.start_failure = None;
        world.pass(2);
        world.run();
        assert_eq!(world.starts, ["a/0", "a/0", "a/0"]);
        assert_eq!((world.phase(), world.status("a").restart_count), ("Running", 0));
    }

    #[test]
    fn what_cannot_be_executed_counts_as_an_end() {
        for (policy, phase, state) in [
            ("Never", "Failed", "terminated/127/StartError"),
            ("Always", "Running", "waiting/CrashLoopBackOff"),
        ] {
            let mut world = World::new(pod(policy, &["a"]));
            let message = "exec: \"nope\": not found".to_owned();
            world.start_failure = Some(StartFailure::Run { code: 127, message });
            world.run();
            assert_eq!((world.phase(), world.state("a").as_str()), (phase, state), "{policy}");
        }
    }

    #[test]
    fn volumes_come_first_and_are_tried_again() {
        let mut world = World::new(pod("Never", &["a"]));
        let plan = world.plan();
        assert_eq!(plan.steps, [Step::SetUp]);
        let message = "MountVolume.SetUp failed for volume \"v\" : no".to_owned();
        let (options, now) = (world.options.clone(), world.now);
        world.memory.set_up_failed(message.clone(), &options, now);
        let plan = world.rest();
        assert_eq!(plan.waiting, Some(Waiting::SetUp));
        assert_eq!(world.events, [format!("FailedMount: {message}")]);
        assert_eq!(world.state("a"), "waiting/ContainerCreating");
        world.pass(2);
        assert!(world.plan().steps.contains(&Step::SetUp));
        assert!(!world.plan().steps.contains(&Step::SetUp), "one attempt at a time");
        let now = world.now;
        world.memory.set_up_failed(message.clone(), &options, now);
        world.run();
        assert_eq!(world.events.len(), 1, "the same trouble is told once");
        world.pass(2);
        world.run();
        assert_eq!(world.phase(), "Running");
    }

    #[test]
    fn nothing_starts_while_a_post_start_hook_runs_and_its_failure_kills() {
        let hook =
            Lifecycle { post_start: Some(LifecycleHandler::default()), ..Lifecycle::default() };
        let built =
            pod("Never", &["a", "b"]).with("a", |container| container.lifecycle = Some(hook));
        let mut world = World::new(built);
        world.run();
        assert_eq!(world.starts, ["a/0"]);
        assert_eq!(world.log, ["a:PostStart"]);
        world.memory.hook_done("a", 0, HookKind::PostStart, false);
        world.run();
        assert_eq!(world.log, ["a:PostStart", "a:signal 15"]);
        assert!(world.events.contains(&"Killing: FailedPostStartHook".to_owned()));
        assert_eq!(world.starts, ["a/0", "b/0"]);
    }

    #[test]
    fn one_write_tells_that_a_pod_runs() {
        let mut world = World::new(pod("Never", &["a"]));
        world.run();
        assert_eq!((world.phase(), world.status_writes), ("Running", 1));
        world.exit("a", 0);
        world.run();
        assert_eq!((world.phase(), world.status_writes), ("Succeeded", 2));
        assert_eq!(world.tear_downs, 1, "a finished pod holds no volumes and no address");
    }
}
