//! How many pods there should be, and which.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobSpec;

use crate::plan::job::{
    Action, HoldingUp, Memory, NewPod, Options, PodRef, View, Waiting, backoff,
    build::{self, PastFailures},
    finish::Score,
    surplus, waiting,
};

/// What to do about the number of pods.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    /// Delete these, finalizers first.
    Delete(Vec<PodRef>),
    /// Create these.
    Create(Vec<NewPod>),
    /// Nothing, and this is why; look again at the time given.
    Wait(Waiting, Option<Timestamp>),
}

impl Move {
    pub(crate) fn action(&self) -> Action {
        match self {
            Self::Delete(_) => Action::PodsDeleted,
            Self::Create(_) | Self::Wait(Waiting::BackOff { .. }, _) => Action::PodsCreated,
            Self::Wait(
                Waiting::Suspended
                | Waiting::PodsTerminating { holding_up: HoldingUp::Suspension, .. },
                _,
            ) => Action::PodsDeleted,
            Self::Wait(..) => Action::Tracking,
        }
    }
}

/// Looks at a Job that is neither ending nor being deleted.
pub(crate) fn manage(
    view: &View,
    spec: &JobSpec,
    score: Score,
    memory: &Memory,
    (options, now): (&Options, Timestamp),
) -> Move {
    if spec.suspend == Some(true) {
        return suspend(view);
    }
    let active = count(view.active());
    let parallelism = i64::from(spec.parallelism.unwrap_or(1));
    let wanted = match view.rules().completions {
        // A work queue: the first success says that no more pods are needed.
        None if score.succeeded > 0 => active,
        None => parallelism,
        Some(completions) => (i64::from(completions) - score.succeeded).min(parallelism).max(0),
    };
    let surplus = usize::try_from(active - wanted).unwrap_or(0);
    let mut doomed = surplus::choose(view, surplus);
    if !doomed.is_empty() {
        doomed.truncate(options.pods_per_pass_max);
        return Move::Delete(doomed);
    }
    let holding = if view.rules().replaces_failed_only { count(view.terminating()) } else { 0 };
    let missing = usize::try_from(wanted - active - holding).unwrap_or(0);
    if missing == 0 {
        return Move::Wait(why_enough(view, spec, score, wanted - active), None);
    }
    create(view, missing.min(options.pods_per_pass_max), memory, (options, now))
}

fn suspend(view: &View) -> Move {
    let pods: Vec<PodRef> =
        view.tally().active.iter().filter_map(|(_, name)| view.pod_ref(name)).collect();
    if !pods.is_empty() {
        return Move::Delete(pods);
    }
    if view.terminating() > 0 {
        return Move::Wait(waiting::for_pods(view, HoldingUp::Suspension), None);
    }
    Move::Wait(Waiting::Suspended, None)
}

fn create(
    view: &View,
    missing: usize,
    memory: &Memory,
    (options, now): (&Options, Timestamp),
) -> Move {
    let is_taken = |name: &str| view.has_name(name) || memory.names_taken.contains(name);
    if view.rules().limit_per_index.is_none()
        && let Some(until) = backoff::of_job(view, options, now)
    {
        return Move::Wait(Waiting::BackOff { until, index: None }, Some(until));
    }
    if !view.rules().is_indexed {
        if has_no_labels(view) {
            // Nobody would ever find such a pod again.
            let why = "unable to create pods, no labels".to_owned();
            return Move::Wait(Waiting::Invalid(why), None);
        }
        let names = view.names().without_index(missing, is_taken);
        return Move::Create(names.into_iter().map(|name| new_pod(view, name, None)).collect());
    }
    let mut first_due: Option<(Timestamp, i32)> = None;
    let mut pods = Vec::new();
    for index in view.tally().slots.pending.iter().take(missing) {
        let failed = view.tally().slots.delayed.get(&index).and_then(|name| view.pod(name));
        match failed.and_then(|failed| backoff::of_index(failed, options, now)) {
            Some(due) => {
                first_due = Some(first_due.map_or((due, index), |known| known.min((due, index))))
            }
            None => {
                let name = view.names().of_index(index, is_taken);
                pods.push(new_pod(view, name, Some(index)));
            }
        }
    }
    match first_due {
        Some((until, index)) if pods.is_empty() => {
            Move::Wait(Waiting::BackOff { until, index: Some(index) }, Some(until))
        }
        // Every index has a pod or has ended: there are fewer indexes than pods wanted.
        _ if pods.is_empty() => {
            let is_held = view.rules().replaces_failed_only && view.terminating() > 0;
            let why = match is_held {
                true => waiting::for_pods(view, HoldingUp::Replacement),
                false => running(view),
            };
            Move::Wait(why, None)
        }
        _ => Move::Create(pods),
    }
}

fn has_no_labels(view: &View) -> bool {
    let template = view.job().spec.as_ref().and_then(|spec| spec.template.metadata.as_ref());
    template.and_then(|meta| meta.labels.as_ref()).is_none_or(BTreeMap::is_empty)
}

fn new_pod(view: &View, name: String, index: Option<i32>) -> NewPod {
    let past = index.filter(|_| view.rules().limit_per_index.is_some()).map(|index| {
        let failed = view.tally().slots.delayed.get(&index).and_then(|name| view.pod(name));
        failed.map_or_else(PastFailures::default, |failed| {
            let is_counted = failed.verdict.is_counted();
            PastFailures {
                counted: failed.failures_counted.saturating_add(i32::from(is_counted)),
                ignored: failed.failures_ignored.saturating_add(i32::from(!is_counted)),
            }
        })
    });
    let prefix = view.names().prefix(index);
    let pod = build::pod(view.job(), (&name, prefix), index, past);
    NewPod { name, index, pod: Box::new(pod) }
}

fn why_enough(view: &View, spec: &JobSpec, score: Score, missing: i64) -> Waiting {
    if missing > 0 {
        waiting::for_pods(view, HoldingUp::Replacement)
    } else if view.rules().completions.is_none() && score.succeeded > 0 {
        Waiting::Draining { active: view.active() }
    } else if view.active() == 0 && spec.parallelism == Some(0) {
        Waiting::NoParallelism
    } else {
        running(view)
    }
}

fn running(view: &View) -> Waiting {
    Waiting::Running { active: view.active(), ready: view.ready(), deadline: None }
}

fn count(pods: usize) -> i64 {
    i64::try_from(pods).unwrap_or(i64::MAX)
}
