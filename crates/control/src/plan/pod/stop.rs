//! How containers are stopped: preStop hook, signal, and the kill when the grace period is over.

use std::time::Duration;

use k8s_openapi::api::core::v1::Container;

use super::memory::{Hook, Stop, StopWhy, after};
use super::restart::seconds;
use super::{Ending, HookKind, Pass, Role, Step, Verdict, Waiting, containers, shutdown};

/// How long a killed container may take to be reported as ended before it is killed again.
const KILL_AGAIN: Duration = Duration::from_secs(5);

/// What a pod without `terminationGracePeriodSeconds` gets.
const GRACE_DEFAULT: i64 = 30;

const SIGTERM: i32 = 15;

/// Plans the stops of all containers that have to end.
pub(super) fn plan(pass: &mut Pass<'_>, ending: Option<Ending>) {
    let pod = pass.pod;
    // A write on its way may take an announcement back that an earlier life of the node has made.
    let is_announced = shutdown::is_announced(pod) && !pass.memory.is_writing;
    if ending == Some(Ending::NodeShutdown) && !is_announced {
        // What ends after this is our doing, and must be known as such even if we die half way.
        return pass.wait(Waiting::Stopping);
    }
    for (role, container) in containers(pod) {
        let Some(known) = pass.memory.containers.get(&container.name) else { continue };
        if known.running_since().is_none() {
            if known.is_live() && ending.is_some() {
                pass.wait(Waiting::Stopping);
            }
            continue;
        }
        let why = match ending {
            Some(_) => Some(StopWhy::Pod),
            None if known.post_start == Hook::Failed => Some(StopWhy::PostStart),
            None if known.liveness.verdict == Verdict::Failure => Some(StopWhy::Liveness),
            None if known.startup.verdict == Verdict::Failure => Some(StopWhy::Startup),
            None => None,
        };
        if known.stop.is_none() {
            let Some(why) = why else { continue };
            begin(pass, role, container, why);
        }
        if ending == Some(Ending::NodeShutdown) {
            pass.memory.container(&container.name).is_interrupted = true;
        }
        drive(pass, role, container);
        pass.wait(Waiting::Stopping);
    }
}

/// The number of a signal from its name, as `lifecycle.stopSignal` spells it (`SIGUSR1`).
pub fn signal_number(name: &str) -> Option<i32> {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
        "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
        "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let short = name.strip_prefix("SIG")?;
    if let Some(index) = NAMES.iter().position(|known| *known == short) {
        return i32::try_from(index + 1).ok();
    }
    let offset = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i32>().ok() };
    match (short.strip_prefix("RTMIN"), short.strip_prefix("RTMAX")) {
        (Some(rest), _) => offset(rest).map(|plus| 34 + plus),
        (_, Some(rest)) => offset(rest).map(|minus| 64 + minus),
        _ => None,
    }
}

fn begin(pass: &mut Pass<'_>, role: Role, container: &Container, why: StopWhy) {
    let (name, now) = (container.name.as_str(), pass.now);
    let pod_policy = pass.pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    let policy = container.restart_policy.as_deref().or(pod_policy);
    let message = match (why, role) {
        (StopWhy::Pod, _) => format!("Stopping container {name}"),
        (StopWhy::PostStart, _) => "FailedPostStartHook".to_owned(),
        (StopWhy::Liveness | StopWhy::Startup, _) => {
            let probe = if why == StopWhy::Liveness { "liveness" } else { "startup" };
            match role {
                Role::Init | Role::Sidecar => format!("Init container {name} failed {probe} probe"),
                Role::Main if policy == Some("Never") => {
                    format!("Container {name} failed {probe} probe")
                }
                Role::Main => format!("Container {name} failed {probe} probe, will be restarted"),
            }
        }
    };
    pass.memory.normal("Killing", message, Some(name));
    pass.memory.container(name).stop = Some(Stop {
        why,
        began_at: now,
        pre_stop: Hook::Idle,
        signalled_at: None,
        killed_at: None,
    });
}

/// Takes the next step of a stop that has begun.
fn drive(pass: &mut Pass<'_>, role: Role, container: &Container) {
    let now = pass.now;
    let is_its_turn = role != Role::Sidecar || is_turn(pass, &container.name);
    let Some(known) = pass.memory.containers.get(&container.name) else { return };
    let Some(stop) = known.stop.clone() else { return };
    let (name, attempt) = (container.name.clone(), known.attempt);
    let grace = grace(pass, container, stop.why);
    let limit = after(stop.began_at, grace);
    let has_hook = container.lifecycle.as_ref().is_some_and(|it| it.pre_stop.is_some());
    let mut next = stop.clone();
    if has_hook && !grace.is_zero() && stop.pre_stop == Hook::Idle {
        next.pre_stop = Hook::Running;
        let within = Some(grace);
        let kind = HookKind::PreStop;
        pass.step(Step::RunHook { container: name.clone(), attempt, kind, within });
    }
    let is_hook_over = !has_hook || grace.is_zero() || next.pre_stop == Hook::Done;
    if stop.signalled_at.is_none() {
        if now < limit && !(is_hook_over && (is_its_turn || stop.why != StopWhy::Pod)) {
            pass.wake(Some(limit));
        } else {
            next.signalled_at = Some(now);
            let signal = stop_signal(container);
            pass.step(Step::Terminate { container: name.clone(), attempt, signal });
        }
    }
    if let Some(signalled_at) = next.signalled_at {
        let kill_at = match stop.killed_at {
            None => limit.max(after(signalled_at, pass.options.grace_min)),
            Some(at) => after(at, KILL_AGAIN),
        };
        if kill_at <= now {
            next.killed_at = Some(now);
            pass.step(Step::Kill { container: name.clone(), attempt });
            pass.wake(Some(after(now, KILL_AGAIN)));
        } else {
            pass.wake(Some(kill_at));
        }
    }
    pass.memory.container(&name).stop = Some(next);
}

/// Whether a sidecar may end: all main containers and all later sidecars have.
fn is_turn(pass: &Pass<'_>, name: &str) -> bool {
    containers(pass.pod).skip_while(|(_, it)| it.name != name).skip(1).all(|(role, it)| {
        let is_live = pass.memory.containers.get(&it.name).is_some_and(|known| known.is_live());
        role == Role::Init || !is_live
    })
}

/// How long a container has from the decision to stop it until it is killed.
fn grace(pass: &Pass<'_>, container: &Container, why: StopWhy) -> Duration {
    if pass.memory.is_gone {
        return Duration::ZERO;
    }
    if pass.pod.metadata.deletion_timestamp.is_some()
        && let Some(grace) = pass.pod.metadata.deletion_grace_period_seconds
    {
        return seconds(grace);
    }
    let probe = match why {
        StopWhy::Liveness => container.liveness_probe.as_ref(),
        StopWhy::Startup => container.startup_probe.as_ref(),
        StopWhy::Pod | StopWhy::PostStart => None,
    };
    let of_pod = pass.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    let grace = probe.and_then(|probe| probe.termination_grace_period_seconds).or(of_pod);
    seconds(grace.unwrap_or(GRACE_DEFAULT))
}

fn stop_signal(container: &Container) -> i32 {
    let name = container.lifecycle.as_ref().and_then(|it| it.stop_signal.as_deref());
    name.and_then(signal_number).unwrap_or(SIGTERM)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Lifecycle, LifecycleHandler};

    use super::super::world::{World, pod};
    use super::*;

    fn pre_stop() -> Option<Lifecycle> {
        let pre_stop = Some(LifecycleHandler::default());
        Some(Lifecycle { pre_stop, ..Lifecycle::default() })
    }

    #[test]
    fn a_deleted_pod_ends_its_containers_reports_and_then_goes() {
        let mut world = World::new(pod("Always", &["a"]));
        world.run();
        world.delete(30);
        world.run();
        assert_eq!(world.log, ["a:signal 15"]);
        assert_eq!(world.phase(), "Succeeded", "it handled the signal and ended well");
        assert!(world.is_deleted && world.is_forgotten);
        assert!(world.events.contains(&"Killing: Stopping container a".to_owned()));
        assert_eq!(world.starts, ["a/0"], "what ends because of us is not restarted");
    }

    #[test]
    fn a_deletion_is_told_with_the_end_unless_that_takes_a_while() {
        let told = |seconds| {
            let mut world = World::new(pod("Always", &["a"]));
            world.is_obedient = false;
            world.run();
            let before = world.status_writes;
            world.pod.metadata.generation = Some(2);
            world.delete(30);
            world.run();
            world.pass(seconds);
            world.run();
            let stopping = world.status_writes - before;
            world.exit("a", 0);
            world.run();
            (stopping, world.status_writes - before)
        };
        assert_eq!(told(0), (0, 1), "one write says all");
        assert_eq!(told(1), (1, 2));
    }

    #[test]
    fn what_does_not_end_in_time_is_killed() {
        let mut world = World::new(pod("Always", &["a"]));
        world.is_obedient = false;
        world.run();
        world.delete(5);
        world.run();
        world.pass(4);
        world.run();
        assert_eq!(world.log, ["a:signal 15"]);
        world.pass(1);
        world.run();
        assert_eq!(world.log, ["a:signal 15", "a:kill"]);
        assert_eq!((world.phase(), world.is_deleted), ("Failed", true));
        assert_eq!(world.state("a"), "terminated/137/Error");
    }

    #[test]
    fn a_pod_that_never_started_still_reaches_a_terminal_phase() {
        let mut world = World::new(pod("Always", &["a"]));
        world.delete(30);
        world.run();
        assert_eq!(world.state("a"), "terminated/137/ContainerStatusUnknown");
        assert!(world.is_deleted && world.starts.is_empty());
    }

    #[test]
    fn a_pod_whose_object_vanished_is_cleared_away() {
        let mut world = World::new(pod("Always", &["a"]));
        world.is_obedient = false;
        world.run();
        world.memory.gone();
        world.run();
        assert!(!world.is_forgotten);
        world.pass(2);
        world.run();
        assert_eq!(world.log, ["a:signal 15", "a:kill"]);
        assert!(world.is_forgotten && !world.is_deleted);
    }

    #[test]
    fn the_hook_comes_before_the_signal_and_may_not_outlast_the_grace_period() {
        let built = pod("Always", &["a"]).with("a", |it| it.lifecycle = pre_stop());
        let mut world = World::new(built);
        world.is_obedient = false;
        world.run();
        world.delete(10);
        world.run();
        assert_eq!(world.log, ["a:PreStop"]);
        world.pass(10);
        world.run();
        assert_eq!(world.log, ["a:PreStop", "a:signal 15"], "two seconds are left for the signal");
        world.pass(2);
        world.run();
        assert_eq!(world.log, ["a:PreStop", "a:signal 15", "a:kill"]);
    }

    #[test]
    fn a_finished_hook_is_followed_by_the_signal() {
        let built = pod("Always", &["a"]).with("a", |it| it.lifecycle = pre_stop());
        let mut world = World::new(built);
        world.run();
        world.delete(10);
        world.run();
        world.pass(1);
        world.memory.hook_done("a", 0, HookKind::PreStop, true);
        world.run();
        assert_eq!(world.log, ["a:PreStop", "a:signal 15"]);
        assert!(world.is_deleted);
    }

    #[test]
    fn sidecars_end_after_the_main_containers_in_reverse_order() {
        let mut world = World::new(pod("Never", &["a", "b"]).sidecars(&["s", "t"]));
        world.is_obedient = false;
        world.run();
        world.delete(30);
        world.run();
        assert_eq!(world.log, ["a:signal 15", "b:signal 15"]);
        world.exit("a", 0);
        world.run();
        assert_eq!(world.log.len(), 2);
        world.exit("b", 0);
        world.run();
        assert_eq!(world.log[2..], ["t:signal 15"]);
        world.exit("t", 143);
        world.run();
        assert_eq!(world.log[2..], ["t:signal 15", "s:signal 15"]);
        world.exit("s", 143);
        world.run();
        assert_eq!((world.phase(), world.is_deleted), ("Succeeded", true));
    }

    #[test]
    fn sidecars_end_when_the_main_containers_have_finished() {
        let mut world = World::new(pod("Never", &["a"]).sidecars(&["s"]));
        world.run();
        world.exit("a", 0);
        world.run();
        assert_eq!(world.log, ["s:signal 15"]);
        assert_eq!(world.phase(), "Succeeded");
        assert_eq!(world.starts, ["s/0", "a/0"], "a sidecar does not keep a finished pod alive");
    }

    #[test]
    fn a_second_delete_may_shorten_the_grace_period() {
        let mut world = World::new(pod("Always", &["a"]));
        world.is_obedient = false;
        world.run();
        world.delete(600);
        world.run();
        world.pass(5);
        world.delete(1);
        world.run();
        assert_eq!(world.log, ["a:signal 15", "a:kill"]);
    }

    #[test]
    fn a_kill_that_does_not_work_is_repeated() {
        let mut world = World::new(pod("Always", &["a"]));
        world.is_obedient = false;
        world.run();
        world.delete(1);
        world.run();
        world.pass(3);
        let kill = Step::Kill { container: "a".to_owned(), attempt: 0 };
        assert!(world.plan().steps.contains(&kill));
        assert!(!world.plan().steps.contains(&kill));
        world.pass(5);
        assert!(world.plan().steps.contains(&kill));
    }

    #[test]
    fn signals_have_their_linux_numbers() {
        let cases = [
            ("SIGTERM", Some(15)),
            ("SIGUSR1", Some(10)),
            ("SIGKILL", Some(9)),
            ("SIGRTMIN", Some(34)),
            ("SIGRTMIN+3", Some(37)),
            ("SIGRTMAX-1", Some(63)),
            ("TERM", None),
            ("SIGNOPE", None),
        ];
        for (name, want) in cases {
            assert_eq!(signal_number(name), want, "{name}");
        }
    }
}
