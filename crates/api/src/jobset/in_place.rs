//! Restarts in place as a JobSet asks for them: with one annotation.

use std::time::Duration;

use k8s_openapi::{
    api::{
        batch::v1::JobSpec,
        core::v1::{Container, PodSpec},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use regex::bytes::Regex;
use serde_json::Value;

use super::{JobSet, JobSetSpec, JobSetStatus, ReplicatedJob, RestartStrategy, StartupOrder};
use crate::{
    field::{ErrorList, FieldError, Path},
    json::at,
    labels::jobset::{
        IN_PLACE_PROGRESS, IN_PLACE_REJOIN, IN_PLACE_RESTARTS, IN_PLACE_STALLED_MAX,
        IN_PLACE_TIMEOUT,
    },
    strategy::Json,
};

/// The worker of a pod that has several containers; if none is called so, its first one.
const WORKER: &str = "worker";

/// How long each rung of a restart in place may take, if a set asks for restarts in place at all.
/// What is no time above zero asks for nothing.
pub fn timeout(meta: &ObjectMeta) -> Option<Duration> {
    span(meta.annotations.as_ref()?.get(IN_PLACE_TIMEOUT)?)
}

/// A time above zero, such as 60s or 1m30s.
pub fn span(text: &str) -> Option<Duration> {
    let span: jiff::SignedDuration = text.parse().ok()?;
    Duration::try_from(span).ok().filter(|span| !span.is_zero())
}

/// How often the set was restarted in place, or made anew instead, of the restarts that count. Only
/// sets that restart in place have it.
pub fn restarts(meta: &ObjectMeta) -> Option<u32> {
    meta.annotations.as_ref()?.get(IN_PLACE_RESTARTS)?.parse().ok()
}

/// Whether a set has begun to restart in place, so that its workers have agents. Whoever writes a
/// set may drop the count, or bring that of another one along: it says so only together with a
/// status, or when it is the 0 that every set begins with.
pub fn has_begun(jobset: &JobSet) -> bool {
    let status = jobset.status.as_ref();
    let is_told = status
        .and_then(|status| status.lockstep.as_ref())
        .is_some_and(|kept| kept.in_place.is_some());
    let has_run = status.is_some_and(|status| *status != JobSetStatus::default());
    let is_first = |count| count == 0 && timeout(&jobset.metadata).is_some();
    is_told || restarts(&jobset.metadata).is_some_and(|count| has_run || is_first(count))
}

/// Whether a worker that has succeeded takes part when others restart.
fn rejoins(said: Option<&str>) -> bool {
    said != Some("false")
}

/// Where in a pod the worker is: the container called so, or the first.
pub fn worker_at(pod: &PodSpec) -> Option<usize> {
    let named = pod.containers.iter().position(|container| container.name == WORKER);
    named.or_else(|| (!pod.containers.is_empty()).then_some(0))
}

/// The worker of a Job's pods.
pub fn worker(job: &JobSpec) -> Option<&Container> {
    let pod = job.template.spec.as_ref()?;
    pod.containers.get(worker_at(pod)?)
}

/// Says what is wrong with a set that asks for restarts in place; nothing if it does not.
pub fn faults(annotations: impl Fn(&str) -> Option<String>, spec: &JobSetSpec) -> ErrorList {
    let path = Path::new("metadata").child("annotations");
    let mut errors = ErrorList::new();
    let Some(asked) = annotations(IN_PLACE_TIMEOUT) else {
        if let Some(count) = annotations(IN_PLACE_RESTARTS) {
            let why = format!("is counted by the controller; {IN_PLACE_TIMEOUT} asks for it");
            errors.push(FieldError::invalid(&path.key(IN_PLACE_RESTARTS), count, &why));
        }
        return errors;
    };
    if span(&asked).is_none() {
        let why = "must be a time above zero, such as \"60s\"";
        errors.push(FieldError::invalid(&path.key(IN_PLACE_TIMEOUT), asked, why));
    }
    let is_number = |text: &String| text.parse::<u32>().is_ok();
    for key in [IN_PLACE_RESTARTS, IN_PLACE_STALLED_MAX] {
        if let Some(count) = annotations(key).filter(|count| !is_number(count)) {
            let why = "must be a number, such as \"3\"";
            errors.push(FieldError::invalid(&path.key(key), count, why));
        }
    }
    if let Some(after) = annotations(IN_PLACE_PROGRESS).filter(|after| span(after).is_none()) {
        let why = "must be a time above zero, such as \"30s\"";
        errors.push(FieldError::invalid(&path.key(IN_PLACE_PROGRESS), after, why));
    }
    let is_flag = |text: &String| matches!(text.as_str(), "true" | "false");
    if let Some(rejoins) = annotations(IN_PLACE_REJOIN).filter(|text| !is_flag(text)) {
        let why = "must be \"true\" or \"false\"";
        errors.push(FieldError::invalid(&path.key(IN_PLACE_REJOIN), rejoins, why));
    }
    errors.extend(set_faults(spec));
    errors
}

/// What the parts of a set are in the way of.
fn set_faults(spec: &JobSetSpec) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = ErrorList::new();
    let strategy = spec.failure_policy.as_ref().and_then(|policy| policy.restart_strategy);
    if strategy == Some(RestartStrategy::InPlaceRestart) {
        let why = format!("is another way to restart in place: use it, or {IN_PLACE_TIMEOUT}");
        let path = path.child("failurePolicy").child("restartStrategy");
        errors.push(FieldError::forbidden(&path, &why));
    }
    let order = spec.startup_policy.as_ref().map(|policy| policy.startup_policy_order);
    if order == Some(StartupOrder::InOrder) {
        let path = path.child("startupPolicy").child("startupPolicyOrder");
        errors.push(FieldError::invalid(&path, "InOrder", TOGETHER));
    }
    for (at, group) in spec.replicated_jobs.iter().enumerate() {
        errors.extend(group_faults(group, &path.child("replicatedJobs").index(at)));
    }
    errors
}

const TOGETHER: &str = "workers that restart in place start together: AnyOrder is the order, and \
                        nothing can depend on another replicated job";

fn group_faults(group: &ReplicatedJob, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if group.depends_on.iter().flatten().next().is_some() {
        errors.push(FieldError::forbidden(&path.child("dependsOn"), TOGETHER));
    }
    let path = path.child("template").child("spec");
    let Some(job) = &group.template.spec else { return errors };
    if job.completion_mode.as_deref() == Some("NonIndexed") {
        let why = "must be Indexed: a worker that restarts in place is known by its index";
        errors.push(FieldError::invalid(&path.child("completionMode"), "NonIndexed", why));
    }
    let pods = job.parallelism.unwrap_or(1);
    if job.completions.unwrap_or(1) != pods {
        let why = format!(
            "must be {pods}, as parallelism is: workers that restart in place run all at once"
        );
        errors.push(FieldError::invalid(&path.child("completions"), job.completions, &why));
    }
    errors.extend(index_faults(job, &path));
    let Some(pod) = &job.template.spec else { return errors };
    if let Some(at) = worker_at(pod) {
        let path = path.child("template").child("spec").child("containers").index(at);
        errors.extend(worker_faults(&pod.containers[at], &path));
    }
    errors
}

/// An index that has failed for good, while its Job goes on, would never come to the barrier.
fn index_faults(job: &JobSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if job.backoff_limit_per_index.is_some() {
        let why = "workers that restart in place succeed together or fail together: an index of \
                   its own that fails would be waited for for ever";
        errors.push(FieldError::forbidden(&path.child("backoffLimitPerIndex"), why));
    }
    let rules = job.pod_failure_policy.iter().flat_map(|policy| &policy.rules);
    for (at, _) in rules.enumerate().filter(|(_, rule)| rule.action == "FailIndex") {
        let why = "workers that restart in place succeed together or fail together: use FailJob, \
                   and the failure policy of the set decides";
        let path = path.child("podFailurePolicy").child("rules").index(at).child("action");
        errors.push(FieldError::invalid(&path, "FailIndex", why));
    }
    errors
}

fn worker_faults(worker: &Container, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if worker.command.as_ref().is_none_or(Vec::is_empty) {
        let why = "a worker that restarts in place is started by its agent, which cannot know the \
                   command of an image: say here what to run";
        errors.push(FieldError::required(&path.child("command"), why));
    }
    // Readiness may be asked for: nobody is killed for the answer.
    for (name, probe) in
        [("livenessProbe", &worker.liveness_probe), ("startupProbe", &worker.startup_probe)]
    {
        if probe.is_some() {
            let why = "would kill a worker that waits for the others to restart in place: a sign \
                       of life is LOCKSTEP_HEARTBEAT_FILE or LOCKSTEP_HEARTBEAT_PATTERN with \
                       LOCKSTEP_HEARTBEAT_TIMEOUT in its env";
            errors.push(FieldError::forbidden(&path.child(name), why));
        }
    }
    errors.extend(env_faults(worker, path));
    errors
}

/// What the agent is told in the environment of its worker: it would refuse to start, each time.
fn env_faults(worker: &Container, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let env = || worker.env.iter().flatten().enumerate();
    // Of two with one name the later counts. What comes from elsewhere is not known here.
    let said = |name: &str| env().filter(|(_, env)| env.name == name).last();
    let fault = |at: usize, text: &str, why: &str| {
        FieldError::invalid(&path.child("env").index(at).child("value"), text, why)
    };
    for (name, is_right, why) in AGENT_ENV {
        if let Some((at, env)) = said(name).filter(|(_, env)| env.value_from.is_none()) {
            let text = env.value.as_deref().unwrap_or_default();
            if !is_right(text) {
                errors.push(fault(at, text, why));
            }
        }
    }
    let signs = [said(HEARTBEAT_FILE), said(HEARTBEAT_PATTERN)];
    let within = said(HEARTBEAT_TIMEOUT);
    let why = match (signs, within) {
        ([Some(_), Some(_)], _) => {
            Some((signs[1], "is one sign of life too many: use it, or a file"))
        }
        ([Some(_), None] | [None, Some(_)], None) => {
            Some((signs[0].or(signs[1]), "needs LOCKSTEP_HEARTBEAT_TIMEOUT beside it"))
        }
        ([None, None], Some(_)) => {
            Some((within, "needs LOCKSTEP_HEARTBEAT_FILE or LOCKSTEP_HEARTBEAT_PATTERN beside it"))
        }
        _ => None,
    };
    if let Some((Some((at, env)), why)) = why {
        errors.push(fault(at, env.value.as_deref().unwrap_or_default(), why));
    }
    errors
}

/// How long a worker that is asked to stop may take.
const GRACE: &str = "LOCKSTEP_GRACE";
/// What a worker shows as a sign of life, and how long it may show none.
const HEARTBEAT_FILE: &str = "LOCKSTEP_HEARTBEAT_FILE";
const HEARTBEAT_PATTERN: &str = "LOCKSTEP_HEARTBEAT_PATTERN";
const HEARTBEAT_TIMEOUT: &str = "LOCKSTEP_HEARTBEAT_TIMEOUT";

/// Whether a value is right.
type IsRight = fn(&str) -> bool;

/// What is right for each, and what to say of anything else.
const AGENT_ENV: [(&str, IsRight, &str); 3] = [
    (GRACE, |text| text.parse().is_ok_and(is_span), "must be a time, such as \"10s\""),
    (HEARTBEAT_TIMEOUT, |text| span(text).is_some(), "must be a time above zero, such as \"30s\""),
    (HEARTBEAT_PATTERN, |text| Regex::new(text).is_ok(), "must be a regular expression"),
];

fn is_span(span: jiff::SignedDuration) -> bool {
    !span.is_negative()
}

/// The same of an object as it comes, and of what an update may not change.
pub(super) fn validate(object: &Json, old: Option<&Json>, spec: &JobSetSpec) -> ErrorList {
    let said = |of: &Json, key: &str| {
        at(of, &["metadata", "annotations", key]).and_then(Value::as_str).map(str::to_owned)
    };
    if let Some(old) = old
        && said(old, IN_PLACE_TIMEOUT).is_some() != said(object, IN_PLACE_TIMEOUT).is_some()
    {
        let path = Path::new("metadata").child("annotations").key(IN_PLACE_TIMEOUT);
        let why = "cannot be added or taken away: the agents around the workers come with the set";
        return vec![FieldError::forbidden(&path, why)];
    }
    if let Some(old) = old.filter(|old| said(old, IN_PLACE_TIMEOUT).is_some())
        && rejoins(said(old, IN_PLACE_REJOIN).as_deref())
            != rejoins(said(object, IN_PLACE_REJOIN).as_deref())
    {
        let path = Path::new("metadata").child("annotations").key(IN_PLACE_REJOIN);
        let why = "cannot be changed: workers that were let go cannot come back, and those that \
                   wait were told to";
        return vec![FieldError::forbidden(&path, why)];
    }
    faults(|key| said(object, key), spec)
}
