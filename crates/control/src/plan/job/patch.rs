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
    if let Some(version) = &pod.version {
        patch["metadata"]["resourceVersion"] = json!(version);
    }
    patch
}

/// Makes a pod one of the Job of this name and uid, and tracks it.
pub fn adopt(pod: &PodRef, job_name: &str, job_uid: &str) -> Value {
    json!({"metadata": {
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
    }})
}

/// Lets a pod of the Job with this uid go, and tracks it no longer.
pub fn release(pod: &PodRef, job_uid: &str) -> Value {
    json!({"metadata": {
        "uid": pod.uid,
        "ownerReferences": [{"$patch": "delete", "uid": job_uid}],
        "$deleteFromPrimitiveList/finalizers": [JOB_TRACKING_FINALIZER],
    }})
}
