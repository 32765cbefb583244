//! What a Job needs to know of one of its pods: the object, boiled down.

use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use lockstep_api::{labels, reasons};

use crate::plan::job::failure_policy::Verdict;

/// A pod as it was seen last.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) uid: String,
    pub(crate) version: u64,
    /// The completion index, if it has one that makes sense.
    pub(crate) index: Option<i32>,
    pub(crate) phase: Phase,
    pub(crate) is_deleting: bool,
    pub(crate) is_tracked: bool,
    pub(crate) is_ready: bool,
    pub(crate) is_selected: bool,
    /// Restarts of all containers together.
    pub(crate) restarts: i64,
    pub(crate) finished_at: Timestamp,
    /// Failures of the index before this pod that counted.
    pub(crate) failures_counted: i32,
    /// Failures of the index before this pod that were ignored.
    pub(crate) failures_ignored: i32,
    pub(crate) verdict: Verdict,
    pub(crate) worth: Worth,
    /// Whether its end has been taken into account for the back-off.
    pub(crate) is_noted: bool,
}

/// `status.phase`; unknown words count as running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Pending,
    Unknown,
    Running,
    Succeeded,
    Failed,
}

/// What is lost when a pod is deleted: of two pods the lesser one goes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Worth {
    is_assigned: bool,
    phase: Phase,
    is_ready: bool,
    ready_since: Option<Reverse<Timestamp>>,
    restarts_max: Reverse<i32>,
    sidecar_restarts_max: Reverse<i32>,
    created: Option<Reverse<Timestamp>>,
}

impl Seen {
    pub(crate) fn of(pod: &Pod, is_selected: bool, verdict: Verdict) -> Self {
        let meta = &pod.metadata;
        let phase = Phase::of(pod);
        let ready = condition_time(pod, reasons::pod::READY, "True");
        let restarts = all_containers(pod).map(|status| i64::from(status.restart_count)).sum();
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            version: version(meta),
            index: index(meta),
            phase,
            is_deleting: meta.deletion_timestamp.is_some(),
            is_tracked: is_tracked(meta),
            is_ready: ready.is_some(),
            is_selected,
            restarts,
            finished_at: finish_time(pod),
            failures_counted: failures(meta, labels::INDEX_FAILURE_COUNT),
            failures_ignored: failures(meta, labels::INDEX_IGNORED_FAILURE_COUNT),
            verdict,
            worth: Worth::of(pod, phase, ready),
            is_noted: false,
        }
    }

    /// Whether the pod has not ended and is not asked to.
    pub(crate) fn is_active(&self) -> bool {
        !self.has_ended() && !self.is_deleting
    }

    /// Whether the pod is asked to end and has not.
    pub(crate) fn is_terminating(&self) -> bool {
        !self.has_ended() && self.is_deleting
    }

    /// Whether the pod was let go by us before it was deleted: how it ends is our own doing.
    pub(crate) fn is_dismissed(&self) -> bool {
        self.is_deleting && !self.is_tracked
    }

    /// How often the index has failed before this pod.
    pub(crate) fn failures_before(&self) -> i64 {
        i64::from(self.failures_counted) + i64::from(self.failures_ignored)
    }

    /// Whether the pod has ended, well or not.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }
}

impl Phase {
    fn of(pod: &Pod) -> Self {
        match pod.status.as_ref().and_then(|status| status.phase.as_deref()) {
            None | Some("" | "Pending") => Self::Pending,
            Some("Unknown") => Self::Unknown,
            Some("Succeeded") => Self::Succeeded,
            Some("Failed") => Self::Failed,
            Some(_) => Self::Running,
        }
    }
}

impl Worth {
    fn of(pod: &Pod, phase: Phase, ready: Option<Option<Timestamp>>) -> Self {
        let sidecars: Vec<&str> = sidecars(pod).collect();
        let status = pod.status.as_ref();
        let most = |statuses: &mut dyn Iterator<Item = &ContainerStatus>| {
            Reverse(statuses.map(|status| status.restart_count).max().unwrap_or(0))
        };
        let init = status.and_then(|status| status.init_container_statuses.as_ref());
        let regular = status.and_then(|status| status.container_statuses.as_ref());
        let mut aside =
            init.into_iter().flatten().filter(|status| sidecars.contains(&status.name.as_str()));
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        Self {
            is_assigned: node.is_some_and(|node| !node.is_empty()),
            phase,
            is_ready: ready.is_some(),
            ready_since: ready.flatten().map(Reverse),
            restarts_max: most(&mut regular.into_iter().flatten()),
            sidecar_restarts_max: most(&mut aside),
            created: pod.metadata.creation_timestamp.as_ref().map(|time| Reverse(time.0)),
        }
    }
}

/// The version of an object as a number. Versions of one kind are ordered.
pub(crate) fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// The owner that controls an object.
pub(crate) fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Whether the pod carries the tracking finalizer.
pub(crate) fn is_tracked(meta: &ObjectMeta) -> bool {
    meta.finalizers.iter().flatten().any(|name| name == labels::JOB_TRACKING_FINALIZER)
}

fn index(meta: &ObjectMeta) -> Option<i32> {
    let text = meta.annotations.as_ref()?.get(labels::COMPLETION_INDEX)?;
    text.parse().ok().filter(|index| *index >= 0)
}

fn failures(meta: &ObjectMeta, annotation: &str) -> i32 {
    let text = meta.annotations.as_ref().and_then(|all| all.get(annotation));
    text.and_then(|text| text.parse().ok()).filter(|count| *count >= 0).unwrap_or(0)
}

fn all_containers(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    pod.status.iter().flat_map(|status| {
        let init = status.init_container_statuses.iter().flatten();
        init.chain(status.container_statuses.iter().flatten())
    })
}

fn sidecars(pod: &Pod) -> impl Iterator<Item = &str> {
    let init = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    init.filter(|one| one.restart_policy.as_deref() == Some("Always")).map(|one| one.name.as_str())
}

/// Since when the condition has this status, if it has it at all.
fn condition_time(pod: &Pod, kind: &str, wanted: &str) -> Option<Option<Timestamp>> {
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let found = conditions.find(|condition| condition.type_ == kind)?;
    (found.status == wanted).then(|| found.last_transition_time.as_ref().map(|time| time.0))
}

/// When the pod ended: when its last container did; else when it stopped being ready; else when it
/// was deleted; else, for want of anything better, when it was created.
fn finish_time(pod: &Pod) -> Timestamp {
    let meta = &pod.metadata;
    let deleted = || {
        let grace = SignedDuration::from_secs(meta.deletion_grace_period_seconds.unwrap_or(0));
        meta.deletion_timestamp.as_ref().map(|at| at.0.saturating_sub(grace).unwrap_or(at.0))
    };
    containers_finish_time(pod)
        .or_else(|| condition_time(pod, reasons::pod::READY, "False").flatten())
        .or_else(deleted)
        .or_else(|| meta.creation_timestamp.as_ref().map(|time| time.0))
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

/// When the last container or sidecar ended, if all have.
fn containers_finish_time(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref()?;
    let sidecars: Vec<&str> = sidecars(pod).collect();
    let init = status.init_container_statuses.iter().flatten();
    let aside = init.filter(|status| sidecars.contains(&status.name.as_str()));
    let mut latest = None;
    for container in status.container_statuses.iter().flatten().chain(aside) {
        let finished = container.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0;
        latest = latest.max(Some(finished));
    }
    latest
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    fn time(second: i64) -> String {
        Timestamp::from_second(second).unwrap().to_string()
    }

    fn ended(name: &str, second: Option<i64>) -> Value {
        let finished = second.map(time);
        json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 1, "finishedAt": finished}}})
    }

    // rule: job 3.9
    #[test]
    fn a_pod_ended_when_its_last_container_did_or_else_as_far_as_can_be_told() {
        let sidecar = json!([{"name": "side", "restartPolicy": "Always"}, {"name": "init"}]);
        let not_ready =
            json!([{"type": "Ready", "status": "False", "lastTransitionTime": time(40)}]);
        let deleted = json!({"creationTimestamp": time(10), "deletionTimestamp": time(60),
            "deletionGracePeriodSeconds": 30});
        let created = json!({"creationTimestamp": time(10)});
        let running = json!({"name": "b", "image": "", "imageID": "", "ready": true,
            "restartCount": 0, "state": {"running": {}}});
        let cases = [
            (
                "the last container",
                &deleted,
                json!({"containerStatuses": [ended("a", Some(20)), ended("b", Some(25))]}),
                25,
            ),
            (
                "a sidecar ends later, an init container does not matter",
                &created,
                json!({"containerStatuses": [ended("a", Some(20))],
                    "initContainerStatuses": [ended("side", Some(22)), ended("init", Some(99))]}),
                22,
            ),
            (
                "not all have ended",
                &deleted,
                json!({"containerStatuses": [ended("a", Some(20)), running],
                    "conditions": not_ready}),
                40,
            ),
            (
                "a container does not say when",
                &deleted,
                json!({"containerStatuses": [ended("a", None)], "conditions": not_ready}),
                40,
            ),
            ("deleted", &deleted, json!({}), 30),
            ("nothing is known", &created, json!({}), 10),
        ];
        for (name, metadata, status, want) in cases {
            let pod = json!({"metadata": metadata, "status": status,
                "spec": {"containers": [], "initContainers": sidecar}});
            let pod = Pod::deserialize(pod).unwrap();
            assert_eq!(finish_time(&pod), Timestamp::from_second(want).unwrap(), "{name}");
        }
    }
}
