//! Conditions of Workloads and queues.

/// Types of conditions of Workloads.
pub mod workload {
    /// Quota is reserved for the workload.
    pub const QUOTA_RESERVED: &str = "QuotaReserved";
    /// The workload may run.
    pub const ADMITTED: &str = "Admitted";
    /// All pods of the workload are ready or have succeeded.
    pub const PODS_READY: &str = "PodsReady";
    /// The workload is to stop.
    pub const EVICTED: &str = "Evicted";
    /// The workload is to stop for the sake of another.
    pub const PREEMPTED: &str = "Preempted";
    /// The workload may be tried again.
    pub const REQUEUED: &str = "Requeued";
    /// The workload is about to be deactivated.
    pub const DEACTIVATION_TARGET: &str = "DeactivationTarget";
    /// The workload has ended.
    pub const FINISHED: &str = "Finished";
    /// Which part of a workload that starts in stages is starting, and since when. Our own.
    pub const STAGE: &str = "lockstep.dev/StartupStage";
    /// Why a workload waits, with numbers. Our own.
    pub const WAITING: &str = "lockstep.dev/Waiting";
}

/// Reasons of `lockstep.dev/StartupStage`.
pub mod stage {
    /// A replicated job is starting, and its pods are to be ready in time.
    pub const STARTING: &str = "Starting";
    /// All that may run is ready; what comes next waits until something of it is complete. No clock
    /// runs meanwhile.
    pub const DEPENDING: &str = "Depending";
    /// The job has been ready and is being restarted.
    pub const RESTARTING: &str = "Restarting";
    /// All is ready: when that was, the condition became false.
    pub const STARTED: &str = "Started";
}

/// Reasons of `QuotaReserved`.
pub mod quota_reserved {
    /// It is.
    pub const RESERVED: &str = "QuotaReserved";
    /// No flavor matches the pods.
    pub const NO_MATCHING_FLAVOR: &str = "NoMatchingFlavor";
    /// More is asked for than there can ever be.
    pub const EXCEEDS_MAX_QUOTA: &str = "ExceedsMaxQuota";
    /// There is not enough at the moment.
    pub const WAITING_FOR_QUOTA: &str = "WaitingForQuota";
    /// Others are being preempted.
    pub const WAITING_FOR_PREEMPTED: &str = "WaitingForPreemptedWorkloads";
    /// Others have pods that are not ready.
    pub const WAITING_FOR_PODS_READY: &str = "WaitingForPodsReady";
    /// A queue is missing, or does not take the workload.
    pub const MISCONFIGURED: &str = "Misconfigured";
    /// A queue is stopped.
    pub const SUSPENDED: &str = "Suspended";
    /// Not tried yet.
    pub const PENDING_EVALUATION: &str = "PendingEvaluation";
    /// The workload is not active.
    pub const DEACTIVATED: &str = "Deactivated";
    /// An annotation keeps it from being admitted.
    pub const ADMISSION_GATED: &str = "AdmissionGated";
    /// The job has no pods.
    pub const ON_HOLD: &str = "OnHold";
}

/// Reasons of our own condition that says why a workload waits.
pub mod waiting {
    /// There is not enough quota at the moment.
    pub const NOT_ENOUGH_QUOTA: &str = "NotEnoughQuota";
    /// More is asked for than there can ever be.
    pub const NEVER_FITS: &str = "NeverFits";
    /// No flavor matches the pods.
    pub const NO_MATCHING_FLAVOR: &str = "NoMatchingFlavor";
    /// Others are giving way to it and have not gone yet.
    pub const WAITING_FOR_PREEMPTED: &str = "WaitingForPreemptedWorkloads";
    /// Others have pods that are not ready.
    pub const WAITING_FOR_PODS_READY: &str = "WaitingForPodsReady";
    /// A queue does not exist.
    pub const QUEUE_MISSING: &str = "QueueMissing";
    /// A queue is stopped.
    pub const QUEUE_STOPPED: &str = "QueueStopped";
    /// A ClusterQueue cannot admit anybody.
    pub const QUEUE_INACTIVE: &str = "QueueInactive";
    /// The ClusterQueue takes nobody of the namespace.
    pub const NAMESPACE_MISMATCH: &str = "NamespaceMismatch";
    /// It may not be tried before a time.
    pub const BACK_OFF: &str = "BackOff";
    /// It was evicted and has not been put back yet.
    pub const NOT_REQUEUED: &str = "NotRequeued";
    /// Somebody has deactivated it.
    pub const DEACTIVATED: &str = "Deactivated";
    /// An annotation keeps it from being admitted.
    pub const GATED: &str = "Gated";
    /// Its job has no pods.
    pub const ON_HOLD: &str = "OnHold";
    /// Its pods ask for more than their limits, or for what cannot be read.
    pub const INVALID_REQUESTS: &str = "InvalidRequests";
    /// An admission check has failed.
    pub const FAILED_CHECKS: &str = "FailedChecks";
    /// Another workload of its queue has to go first.
    pub const BEHIND_HEAD: &str = "BehindHead";
    /// The API did not take the admission; it is tried again.
    pub const REFUSED: &str = "Refused";
}

/// Reasons of `Admitted`.
pub mod admitted {
    /// It is.
    pub const ADMITTED: &str = "Admitted";
    /// No quota is reserved.
    pub const NO_RESERVATION: &str = "NoReservation";
    /// Not all checks are ready.
    pub const UNSATISFIED_CHECKS: &str = "UnsatisfiedAdmissionChecks";
}

/// Reasons of `PodsReady`.
pub mod pods_ready {
    /// All were ready for the first time.
    pub const STARTED: &str = "Started";
    /// All are ready again.
    pub const RECOVERED: &str = "Recovered";
    /// Not all have been ready yet.
    pub const WAIT_FOR_START: &str = "WaitForStart";
    /// All were ready, and are not any more.
    pub const WAIT_FOR_RECOVERY: &str = "WaitForRecovery";
    /// What older versions wrote for both.
    pub const LEGACY: &str = "PodsReady";
}

/// Reasons of `Evicted`, most of which `Requeued` has too.
pub mod evicted {
    /// For the sake of another.
    pub const PREEMPTED: &str = "Preempted";
    /// Pods were not ready in time.
    pub const PODS_READY_TIMEOUT: &str = "PodsReadyTimeout";
    /// A check wants it.
    pub const ADMISSION_CHECK: &str = "AdmissionCheck";
    /// Its ClusterQueue is stopped.
    pub const CLUSTER_QUEUE_STOPPED: &str = "ClusterQueueStopped";
    /// Its LocalQueue is stopped.
    pub const LOCAL_QUEUE_STOPPED: &str = "LocalQueueStopped";
    /// A node is gone.
    pub const NODE_FAILURES: &str = "NodeFailures";
    /// Somebody has deactivated it.
    pub const DEACTIVATED: &str = "Deactivated";
    /// Before the cause when it was deactivated for one.
    pub const DEACTIVATED_DUE_TO: &str = "DeactivatedDueTo";
}

/// Reasons of `Requeued` when it is true.
pub mod requeued {
    /// It has waited long enough.
    pub const BACKOFF_FINISHED: &str = "BackoffFinished";
    /// It was made active again.
    pub const REACTIVATED: &str = "Reactivated";
    /// Its ClusterQueue works again.
    pub const CLUSTER_QUEUE_RESTARTED: &str = "ClusterQueueRestarted";
    /// Its LocalQueue works again.
    pub const LOCAL_QUEUE_RESTARTED: &str = "LocalQueueRestarted";
}

/// Reasons of `DeactivationTarget`.
pub mod deactivation {
    /// It was put back too often.
    pub const REQUEUING_LIMIT_EXCEEDED: &str = "RequeuingLimitExceeded";
    /// It has run for too long.
    pub const MAXIMUM_EXECUTION_TIME_EXCEEDED: &str = "MaximumExecutionTimeExceeded";
}

/// Reasons of `Preempted`.
pub mod preempted {
    /// By one of the same ClusterQueue.
    pub const IN_CLUSTER_QUEUE: &str = "InClusterQueue";
    /// By one that takes its quota back.
    pub const IN_COHORT_RECLAMATION: &str = "InCohortReclamation";
}

/// Reasons of `Finished`.
pub mod finished {
    /// The job has succeeded.
    pub const SUCCEEDED: &str = "Succeeded";
    /// The job has failed.
    pub const FAILED: &str = "Failed";
    /// The job is not what the workload says.
    pub const OUT_OF_SYNC: &str = "OutOfSync";
    /// The job is gone.
    pub const OWNER_NOT_FOUND: &str = "OwnerNotFound";
    /// The job could not be started.
    pub const FAILED_TO_START: &str = "FailedToStart";
}

/// Conditions of queues: `Active` and its reasons.
pub mod queue {
    /// The type.
    pub const ACTIVE: &str = "Active";
    /// It is.
    pub const READY: &str = "Ready";
    /// The ClusterQueue is being deleted.
    pub const TERMINATING: &str = "Terminating";
    /// The queue is stopped.
    pub const STOPPED: &str = "Stopped";
    /// A flavor is missing.
    pub const FLAVOR_NOT_FOUND: &str = "FlavorNotFound";
    /// The ClusterQueue of a LocalQueue is missing.
    pub const CLUSTER_QUEUE_DOES_NOT_EXIST: &str = "ClusterQueueDoesNotExist";
    /// The ClusterQueue of a LocalQueue is inactive.
    pub const CLUSTER_QUEUE_IS_INACTIVE: &str = "ClusterQueueIsInactive";
    /// The queue uses what lockstep does not do yet. Our own.
    pub const NOT_IMPLEMENTED: &str = "NotImplemented";
    /// The queue cannot be understood: a quantity that is none, or that is negative. Our own.
    pub const INVALID: &str = "Invalid";
}
