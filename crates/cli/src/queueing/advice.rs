//! What lets a job go on that waits for a known reason, where the server names no change itself.

use lockstep_api::{
    labels::kueue::{ADMISSION_GATED_BY, QUEUE_NAME},
    reasons::kueue::{quota_reserved, waiting},
};
use lockstep_local::controllers::machine_queue;

use super::workload::Workload;

/// What to do about `reason`.
pub(super) fn advice(
    reason: &str,
    workload: &Workload,
    cluster_queue: Option<&str>,
) -> Option<String> {
    let pool = match cluster_queue {
        Some(name) => format!("ClusterQueue {name}"),
        None => "its ClusterQueue".to_owned(),
    };
    let (queue, namespace) = (&workload.queue, &workload.namespace);
    Some(match reason {
        waiting::NOT_ENOUGH_QUOTA | quota_reserved::WAITING_FOR_QUOTA => {
            format!("wait until others end, or give {pool} more quota")
        }
        waiting::NEVER_FITS | quota_reserved::EXCEEDS_MAX_QUOTA => {
            format!("ask for less, or give {pool} more quota")
        }
        waiting::NO_MATCHING_FLAVOR => format!(
            "give {pool} a flavor whose labels and taints suit the pods, and quota for every \
             resource they ask for"
        ),
        waiting::WAITING_FOR_PREEMPTED => "wait until those have ended that give way".to_owned(),
        waiting::WAITING_FOR_PODS_READY => {
            "wait until the pods of those are ready that were admitted before".to_owned()
        }
        // Its LocalQueue is there, and names the other.
        waiting::QUEUE_MISSING | quota_reserved::MISCONFIGURED if cluster_queue.is_some() => {
            format!("make {pool}, or let LocalQueue {queue} name another")
        }
        waiting::QUEUE_MISSING | quota_reserved::MISCONFIGURED => format!(
            "name a LocalQueue of namespace {namespace} in the label {QUEUE_NAME}, or make {queue}; \
             see those there are with: lockstep queues -n {namespace}"
        ),
        waiting::QUEUE_STOPPED | quota_reserved::SUSPENDED => {
            format!("set stopPolicy to None, of LocalQueue {queue} or of {pool} or of both")
        }
        waiting::QUEUE_INACTIVE => {
            "repair the queue; see what is wrong with it with: lockstep queues".to_owned()
        }
        waiting::NAMESPACE_MISMATCH => {
            format!("label namespace {namespace} so that namespaceSelector of {pool} selects it")
        }
        waiting::GATED | quota_reserved::ADMISSION_GATED => {
            format!("take the annotation {ADMISSION_GATED_BY} away from the job")
        }
        waiting::ON_HOLD => "give the job pods: its parallelism is 0".to_owned(),
        waiting::BEHIND_HEAD => format!(
            "let the one before it run, deactivate it, or set queueingStrategy of {pool} to \
             BestEffortFIFO"
        ),
        waiting::INVALID_REQUESTS => "correct what the pods ask for".to_owned(),
        _ => return None,
    })
}

/// What to do about `reason` in a cluster that ends with its run. What it had is gone then: only
/// the files and the command line are left to be changed.
pub(super) fn advice_in_files(reason: &str, workload: &Workload) -> Option<String> {
    let queue = &workload.queue;
    Some(match reason {
        waiting::NOT_ENOUGH_QUOTA
        | waiting::NEVER_FITS
        | quota_reserved::WAITING_FOR_QUOTA
        | quota_reserved::EXCEEDS_MAX_QUOTA => {
            if queue != machine_queue::NAME {
                // A queue of the files: what it would take can be written there.
                return workload.waiting().change.or_else(|| advice(reason, workload, None));
            }
            "ask for less, or say with --capacity that there is more".to_owned()
        }
        waiting::NO_MATCHING_FLAVOR if queue != machine_queue::NAME => {
            return workload.waiting().change.or_else(|| advice(reason, workload, None));
        }
        waiting::NO_MATCHING_FLAVOR => {
            "ask for what the machine has, or say with --capacity that it has it".to_owned()
        }
        waiting::QUEUE_MISSING | quota_reserved::MISCONFIGURED => {
            format!("add LocalQueue {queue} and its ClusterQueue to the files, or name `machine`")
        }
        waiting::QUEUE_STOPPED
        | waiting::QUEUE_INACTIVE
        | waiting::NAMESPACE_MISMATCH
        | quota_reserved::SUSPENDED => format!("correct the queues of {queue} in the files"),
        waiting::GATED
        | waiting::ON_HOLD
        | waiting::INVALID_REQUESTS
        | quota_reserved::ADMISSION_GATED => return advice(reason, workload, None),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_both_kinds_have_the_same_advice() {
        let workload =
            Workload { queue: "team".into(), namespace: "d".into(), ..Default::default() };
        for (ours, theirs) in [
            (waiting::NOT_ENOUGH_QUOTA, quota_reserved::WAITING_FOR_QUOTA),
            (waiting::NEVER_FITS, quota_reserved::EXCEEDS_MAX_QUOTA),
            (waiting::NO_MATCHING_FLAVOR, quota_reserved::NO_MATCHING_FLAVOR),
            (waiting::QUEUE_MISSING, quota_reserved::MISCONFIGURED),
            (waiting::QUEUE_STOPPED, quota_reserved::SUSPENDED),
            (waiting::GATED, quota_reserved::ADMISSION_GATED),
        ] {
            let said = advice(ours, &workload, Some("pool"));
            assert_eq!(said, advice(theirs, &workload, Some("pool")), "{ours}");
            assert!(said.is_some(), "{ours}");
        }
        assert_eq!(advice("SomethingNew", &workload, None), None);
        assert_eq!(advice_in_files("SomethingNew", &workload), None);
        let says = |cluster_queue| advice(waiting::QUEUE_MISSING, &workload, cluster_queue);
        assert_eq!(
            says(Some("c")).unwrap(),
            "make ClusterQueue c, or let LocalQueue team name another"
        );
        assert!(says(None).unwrap().contains("or make team;"), "{:?}", says(None));
    }

    #[test]
    fn advice_for_a_cluster_that_is_gone_names_nothing_in_it() {
        let workload =
            Workload { queue: "team".into(), namespace: "d".into(), ..Default::default() };
        for reason in [
            waiting::NOT_ENOUGH_QUOTA,
            waiting::NEVER_FITS,
            waiting::NO_MATCHING_FLAVOR,
            waiting::QUEUE_MISSING,
            waiting::QUEUE_STOPPED,
            waiting::QUEUE_INACTIVE,
            waiting::NAMESPACE_MISMATCH,
            waiting::GATED,
        ] {
            let said = advice_in_files(reason, &workload).unwrap();
            for gone in ["kubectl", "lockstep queues", "nominalQuota", "namespace d"] {
                assert!(!said.contains(gone), "{reason}: {said}");
            }
        }
    }
}
