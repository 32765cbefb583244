//! The patches of pods that plans ask for, as strategic merge patches. Each names the uid of the
//! pod, so that a pod of the same name that came later refuses it.

use lockstep_api::labels::JOB_TRACKING_FINALIZER;
use serde_json::{Value, json};

use crate::plan::job::PodRef;

/// Takes the tracking finalizer off a pod.
pub fn remove_finalizer(pod: &PodRef) -> Value {
    let mut patch = json!({"metadata": {
        "uid": pod.uid,
        "$deleteFromPrimitiveList/finalizers": [JOB_TRACKING_FINALIZER],
    }});
    at_version(&mut patch, pod);
    patch
}

/// Makes a pod one of the Job of this name and uid, and tracks it. Not if it has changed meanwhile:
/// it may have been told to end, and then nobody can begin to track it.
pub fn adopt(pod: &PodRef, job_name: &str, job_uid: &str) -> Value {
    let mut patch = json!({"metadata": {
        "uid": pod.uid,
        "ownerReferences": [{
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": job_name,
            "uid": job_uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }],
        "finalizers": [JOB_TRACKING_FINALIZER],
    }});
    at_version(&mut patch, pod);
    patch
}

/// Lets a pod of the Job with this uid go, and tracks it no longer.
pub fn release(pod: &PodRef, job_uid: &str) -> Value {
    json!({"metadata": {
        "uid": pod.uid,
        "ownerReferences": [{"$patch": "delete", "uid": job_uid}],
        "$deleteFromPrimitiveList/finalizers": [JOB_TRACKING_FINALIZER],
    }})
}

fn at_version(patch: &mut Value, pod: &PodRef) {
    if let Some(version) = &pod.version {
        patch["metadata"]["resourceVersion"] = json!(version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: job 3.4, job 3.5
    #[test]
    fn patches_touch_what_is_ours_and_name_the_pod() {
        let pod = PodRef::new("ns", "p", "pod-uid");
        assert_eq!(
            remove_finalizer(&pod),
            json!({"metadata": {"uid": "pod-uid",
                "$deleteFromPrimitiveList/finalizers": ["batch.kubernetes.io/job-tracking"]}})
        );
        let running = PodRef { version: Some("7".into()), ..pod.clone() };
        assert_eq!(remove_finalizer(&running)["metadata"]["resourceVersion"], "7");
        assert_eq!(adopt(&running, "j", "job-uid")["metadata"]["resourceVersion"], "7");
        assert_eq!(
            adopt(&pod, "j", "job-uid"),
            json!({"metadata": {"uid": "pod-uid",
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j",
                    "uid": "job-uid", "controller": true, "blockOwnerDeletion": true}],
                "finalizers": ["batch.kubernetes.io/job-tracking"]}})
        );
        assert_eq!(
            release(&pod, "job-uid"),
            json!({"metadata": {"uid": "pod-uid",
                "ownerReferences": [{"$patch": "delete", "uid": "job-uid"}],
                "$deleteFromPrimitiveList/finalizers": ["batch.kubernetes.io/job-tracking"]}})
        );
    }
}
