//! When containers are probed, and what the answers add up to.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Probe};

use super::memory::{ContainerMemory, after};
use super::restart::seconds;
use super::{Ending, Pass, Step, containers};

/// Which probe of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeKind {
    /// Holds the others back until it has succeeded.
    Startup,
    /// Decides whether the container is ready.
    Readiness,
    /// Decides whether the container is restarted.
    Liveness,
}

impl fmt::Display for ProbeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Startup => "Startup",
            Self::Readiness => "Readiness",
            Self::Liveness => "Liveness",
        })
    }
}

/// The answer to one probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// As hoped.
    Success,
    /// Good enough, with something to tell.
    Warning(String),
    /// Not as hoped, with what was seen.
    Failure(String),
    /// The probe itself could not be made; counts as neither.
    Error(String),
}

/// What the answers to a probe add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing yet.
    #[default]
    Unknown,
    /// Enough successes in a row.
    Success,
    /// Enough failures in a row.
    Failure,
}

/// What is known of one probe of the newest instance of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeMemory {
    /// What the answers add up to.
    pub verdict: Verdict,
    asked_at: Option<Timestamp>,
    is_asked: bool,
    last: Option<bool>,
    run: u32,
}

impl ProbeMemory {
    /// A probe that has already come to a verdict.
    pub(super) fn decided(verdict: Verdict) -> Self {
        Self { verdict, ..Self::default() }
    }

    /// Counts an answer; gives back the reason and the words of what to tell.
    pub(super) fn answered(
        &mut self,
        kind: ProbeKind,
        outcome: &ProbeOutcome,
        (failure_threshold, success_threshold): (u32, u32),
    ) -> Option<(&'static str, String)> {
        self.is_asked = false;
        let (is_success, told) = match outcome {
            ProbeOutcome::Success => (true, None),
            ProbeOutcome::Warning(output) => {
                (true, Some(("ProbeWarning", format!("{kind} probe warning: {output}"))))
            }
            ProbeOutcome::Failure(output) => {
                (false, Some(("Unhealthy", format!("{kind} probe failed: {output}"))))
            }
            ProbeOutcome::Error(error) => {
                let told = format!("{kind} probe errored and resulted in unknown state: {error}");
                return Some(("Unhealthy", told));
            }
        };
        self.run = if self.last == Some(is_success) { self.run.saturating_add(1) } else { 1 };
        self.last = Some(is_success);
        let threshold = if is_success { success_threshold } else { failure_threshold };
        if self.run >= threshold.max(1) {
            self.verdict = if is_success { Verdict::Success } else { Verdict::Failure };
        }
        told
    }
}

impl ContainerMemory {
    /// Whether it runs and its startup probe, if it has one, has succeeded.
    pub fn is_started(&self, container: &Container) -> bool {
        self.running_since().is_some()
            && (container.startup_probe.is_none() || self.startup.verdict == Verdict::Success)
    }

    /// Whether it has started and its readiness probe, if it has one, succeeds.
    pub fn is_ready(&self, container: &Container) -> bool {
        self.is_started(container)
            && (container.readiness_probe.is_none() || self.readiness.verdict == Verdict::Success)
    }
}

/// The probe of `container` of this kind.
pub fn spec_of(container: &Container, kind: ProbeKind) -> Option<&Probe> {
    match kind {
        ProbeKind::Startup => container.startup_probe.as_ref(),
        ProbeKind::Readiness => container.readiness_probe.as_ref(),
        ProbeKind::Liveness => container.liveness_probe.as_ref(),
    }
}

/// The failure and success thresholds of a probe.
pub fn thresholds(probe: &Probe) -> (u32, u32) {
    let count = |value: Option<i32>, default| {
        value.and_then(|it| u32::try_from(it).ok()).unwrap_or(default)
    };
    (count(probe.failure_threshold, 3), count(probe.success_threshold, 1))
}

/// Plans the probes that are due.
pub(super) fn plan(pass: &mut Pass<'_>, ending: Option<Ending>) {
    let pod = pass.pod;
    for (_, container) in containers(pod) {
        for kind in [ProbeKind::Startup, ProbeKind::Readiness, ProbeKind::Liveness] {
            if let Some(probe) = spec_of(container, kind) {
                plan_one(pass, container, kind, probe, ending);
            }
        }
    }
}

fn plan_one(
    pass: &mut Pass<'_>,
    container: &Container,
    kind: ProbeKind,
    probe: &Probe,
    ending: Option<Ending>,
) {
    let now = pass.now;
    let Some(known) = pass.memory.containers.get_mut(&container.name) else { return };
    let Some(since) = known.running_since() else { return };
    let is_stopping = known.stop.is_some() || ending.is_some();
    let is_wanted = match kind {
        ProbeKind::Startup => known.startup.verdict == Verdict::Unknown && !is_stopping,
        ProbeKind::Readiness => known.is_started(container),
        ProbeKind::Liveness => known.is_started(container) && !is_stopping,
    };
    let attempt = known.attempt;
    let memory = known.probe_mut(kind);
    if !is_wanted || memory.is_asked {
        return;
    }
    let due = match memory.asked_at {
        None => after(since, seconds(probe.initial_delay_seconds.unwrap_or(0).into())),
        Some(at) => after(at, seconds(probe.period_seconds.unwrap_or(10).max(1).into())),
    };
    if due > now {
        pass.wake(Some(due));
        return;
    }
    memory.asked_at = Some(now);
    memory.is_asked = true;
    pass.step(Step::Probe { container: container.name.clone(), attempt, kind });
}

#[cfg(test)]
mod tests {
    use super::super::world::{World, pod};
    use super::*;

    fn probe(initial_delay: i32, period: i32) -> Option<Probe> {
        Some(Probe {
            initial_delay_seconds: Some(initial_delay),
            period_seconds: Some(period),
            ..Probe::default()
        })
    }

    #[test]
    fn readiness_decides_whether_a_container_is_ready() {
        let built = pod("Always", &["a"]).with("a", |it| it.readiness_probe = probe(5, 10));
        let mut world = World::new(built);
        world.run();
        assert!(!world.status("a").ready, "not before the first success");
        assert!(world.log.is_empty(), "not before the initial delay");
        world.pass(5);
        world.run();
        assert!(world.status("a").ready);
        world.probe = ProbeOutcome::Failure("HTTP probe failed with statuscode: 500".to_owned());
        for _ in 0..2 {
            world.pass(10);
            world.run();
        }
        assert!(world.status("a").ready, "two failures are below the threshold");
        world.pass(10);
        world.run();
        assert!(!world.status("a").ready);
        assert_eq!(world.state("a"), "running");
        let told = "Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 500";
        assert_eq!(world.events.iter().filter(|event| *event == told).count(), 3);
    }

    #[test]
    fn liveness_failures_restart_the_container() {
        let built = pod("Always", &["a"]).with("a", |it| it.liveness_probe = probe(0, 1));
        let mut world = World::new(built);
        world.run();
        world.probe = ProbeOutcome::Failure("dead".to_owned());
        for _ in 0..3 {
            world.pass(1);
            world.run();
        }
        let told = "Killing: Container a failed liveness probe, will be restarted";
        assert!(world.events.contains(&told.to_owned()), "{:?}", world.events);
        assert_eq!(world.starts, ["a/0", "a/1"]);
        assert_eq!(world.status("a").restart_count, 1);
    }

    #[test]
    fn other_probes_wait_for_the_startup_probe() {
        let built = pod("Always", &["a"]).with("a", |it| {
            it.startup_probe = probe(0, 1);
            it.liveness_probe = probe(0, 1);
            it.readiness_probe = probe(0, 1);
        });
        let mut world = World::new(built);
        world.probe = ProbeOutcome::Failure("starting".to_owned());
        world.run();
        assert_eq!(world.log, ["a:Startup"]);
        assert_eq!(world.status("a").started, Some(false));
        world.probe = ProbeOutcome::Success;
        world.pass(1);
        world.run();
        assert_eq!(world.log, ["a:Startup", "a:Startup", "a:Readiness", "a:Liveness"]);
        let status = world.status("a");
        assert_eq!((status.started, status.ready), (Some(true), true));
        world.pass(1);
        world.run();
        assert_eq!(world.log.len(), 6, "the startup probe is over");
    }

    #[test]
    fn startup_failures_restart_the_container() {
        let built = pod("Never", &["a"]).with("a", |it| it.startup_probe = probe(0, 1));
        let mut world = World::new(built);
        world.probe = ProbeOutcome::Failure("no".to_owned());
        world.run();
        for _ in 0..2 {
            world.pass(1);
            world.run();
        }
        assert!(world.events.contains(&"Killing: Container a failed startup probe".to_owned()));
        assert_eq!(world.phase(), "Succeeded", "it ended with 0 when it was asked to");
    }

    #[test]
    fn an_ending_pod_is_no_longer_probed_for_liveness() {
        let built = pod("Always", &["a"]).with("a", |it| it.liveness_probe = probe(0, 1));
        let mut world = World::new(built);
        world.is_obedient = false;
        world.run();
        world.delete(30);
        world.pass(5);
        world.run();
        assert_eq!(world.log, ["a:Liveness", "a:signal 15"]);
    }

    #[test]
    fn errors_of_the_probe_itself_count_as_nothing() {
        let mut memory = ProbeMemory::default();
        for _ in 0..9 {
            let told = memory.answered(
                ProbeKind::Liveness,
                &ProbeOutcome::Error("no port".to_owned()),
                (1, 1),
            );
            assert!(told.unwrap().1.contains("errored"));
        }
        assert_eq!(memory.verdict, Verdict::Unknown);
    }
}
