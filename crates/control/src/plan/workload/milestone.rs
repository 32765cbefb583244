//! What has happened to a workload, as two versions of it tell. It is counted by whoever sees it
//! first, whoever has written it.

use jiff::Timestamp;
use lockstep_api::kueue::{Workload, WorkloadStatus};
use lockstep_api::reasons::kueue::{pods_ready, workload as conditions};

use super::version;

/// Something that happens to a workload once, or once for each admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Milestone {
    /// All its pods are ready for the first time since it was admitted.
    Started {
        /// How many seconds after it was queued, first or again.
        since_queued: i64,
        /// How many seconds after it was admitted.
        since_admitted: i64,
    },
    /// It has ended.
    Finished,
}

/// What lies between two versions of a workload. There is nothing between two workloads, nor when
/// the later version comes first.
pub fn milestones(before: &Workload, after: &Workload) -> Vec<Milestone> {
    let is_later = version(&after.metadata) > version(&before.metadata);
    let Some(status) = after.status.as_ref().filter(|_| is_later) else { return Vec::new() };
    if before.metadata.uid != after.metadata.uid {
        return Vec::new();
    }
    let known = before.status.as_ref();
    let mut reached = Vec::new();
    if started_at(status).is_some() && known.and_then(started_at) != started_at(status) {
        reached.extend(started(after, status));
    }
    if status.is_true(conditions::FINISHED)
        && !known.is_some_and(|known| known.is_true(conditions::FINISHED))
    {
        reached.push(Milestone::Finished);
    }
    reached
}

/// Since when all pods are ready that had not been before in this admission.
fn started_at(status: &WorkloadStatus) -> Option<Timestamp> {
    let ready = status.condition(conditions::PODS_READY)?;
    let is_start = ready.status == "True" && ready.reason == pods_ready::STARTED;
    is_start.then_some(ready.last_transition_time.0)
}

fn started(workload: &Workload, status: &WorkloadStatus) -> Option<Milestone> {
    let at = started_at(status)?;
    let since = |time: Timestamp| at.duration_since(time).as_secs().max(0);
    let requeued = status.condition(conditions::REQUEUED).map(|it| it.last_transition_time.0);
    let created = workload.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let admitted = status.condition(conditions::ADMITTED)?.last_transition_time.0;
    Some(Milestone::Started {
        since_queued: since(requeued.or(created)?),
        since_admitted: since(admitted),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn time(second: i64) -> String {
        Timestamp::from_second(second).unwrap().to_string()
    }

    fn workload(version: u32, conditions: &[(&str, &str, &str, i64)]) -> Workload {
        let said = conditions.iter().map(|(kind, status, reason, second)| {
            json!({"type": kind, "status": status, "reason": reason, "message": "",
                   "lastTransitionTime": time(*second)})
        });
        let said: Vec<Value> = said.collect();
        serde_json::from_value(json!({
            "metadata": {"uid": "u", "resourceVersion": version.to_string(),
                         "creationTimestamp": time(100)},
            "spec": {"podSets": []},
            "status": {"conditions": said},
        }))
        .unwrap()
    }

    #[test]
    fn what_happens_once_is_told_once() {
        let admitted = ("Admitted", "True", "Admitted", 160);
        let waits = ("PodsReady", "False", "WaitForStart", 100);
        let ready = ("PodsReady", "True", "Started", 165);
        let again = ("Requeued", "True", "BackoffFinished", 150);
        let finished = ("Finished", "True", "Succeeded", 170);
        let start = |since_queued| Milestone::Started { since_queued, since_admitted: 5 };
        let cases: [(&str, &[_], &[_], &[_]); 8] = [
            ("pods come up", &[admitted, waits], &[admitted, ready], &[start(65)]),
            ("after an eviction", &[admitted, again], &[admitted, again, ready], &[start(15)]),
            ("nothing new", &[admitted, ready], &[admitted, ready], &[]),
            (
                "ready again after a loss is no start",
                &[admitted, ("PodsReady", "False", "WaitForRecovery", 162)],
                &[admitted, ("PodsReady", "True", "Recovered", 165)],
                &[],
            ),
            (
                "of a start that nobody has seen the end of",
                &[admitted, ("PodsReady", "True", "Started", 120)],
                &[admitted, ready],
                &[start(65)],
            ),
            ("it ends", &[admitted, ready], &[admitted, ready, finished], &[Milestone::Finished]),
            ("it has ended", &[finished], &[finished, admitted], &[]),
            ("both at once", &[], &[admitted, ready, finished], &[start(65), Milestone::Finished]),
        ];
        for (name, before, after, wanted) in cases {
            let (before, after) = (workload(1, before), workload(2, after));
            assert_eq!(milestones(&before, &after), wanted, "{name}");
            assert_eq!(milestones(&after, &before), [], "{name}, backwards");
            let mut other = before;
            other.metadata.uid = Some("other".to_owned());
            assert_eq!(milestones(&other, &after), [], "{name}, of another");
        }
    }
}
