//! Types and reasons of conditions, and reasons of states and events, in one place: clients match
//! on them.

pub mod kueue;

/// Conditions of pods.
pub mod pod {
    /// A node was chosen.
    pub const SCHEDULED: &str = "PodScheduled";
    /// Init containers have ended.
    pub const INITIALIZED: &str = "Initialized";
    /// The pod serves.
    pub const READY: &str = "Ready";
    /// All containers are ready.
    pub const CONTAINERS_READY: &str = "ContainersReady";
    /// The sandbox of the pod is there.
    pub const READY_TO_START_CONTAINERS: &str = "PodReadyToStartContainers";
    /// The pod is about to be ended by somebody other than its owner.
    pub const DISRUPTION_TARGET: &str = "DisruptionTarget";

    /// No node fits.
    pub const UNSCHEDULABLE: &str = "Unschedulable";
    /// Scheduling gates are still there.
    pub const SCHEDULING_GATED: &str = "SchedulingGated";
    /// Some containers are not ready.
    pub const CONTAINERS_NOT_READY: &str = "ContainersNotReady";
    /// Some init containers have not ended.
    pub const CONTAINERS_NOT_INITIALIZED: &str = "ContainersNotInitialized";
    /// Some readiness gates are closed.
    pub const READINESS_GATES_NOT_READY: &str = "ReadinessGatesNotReady";
    /// All containers have ended well.
    pub const POD_COMPLETED: &str = "PodCompleted";
    /// All containers have ended, not all well.
    pub const POD_FAILED: &str = "PodFailed";
    /// Pushed out by a pod of higher priority.
    pub const PREEMPTION_BY_SCHEDULER: &str = "PreemptionByScheduler";
    /// Evicted through the API.
    pub const EVICTION_BY_EVICTION_API: &str = "EvictionByEvictionAPI";
    /// Its node is gone.
    pub const DELETION_BY_POD_GC: &str = "DeletionByPodGC";
    /// Its node got a taint that it does not tolerate.
    pub const DELETION_BY_TAINT_MANAGER: &str = "DeletionByTaintManager";
    /// Ended by the node itself.
    pub const TERMINATION_BY_KUBELET: &str = "TerminationByKubelet";
}

/// Reasons of container states.
pub mod container {
    /// The container is being made.
    pub const CREATING: &str = "ContainerCreating";
    /// Init containers come first.
    pub const POD_INITIALIZING: &str = "PodInitializing";
    /// It fails again and again, and is started less and less often.
    pub const CRASH_LOOP_BACK_OFF: &str = "CrashLoopBackOff";
    /// What it needs is missing or makes no sense.
    pub const CREATE_CONFIG_ERROR: &str = "CreateContainerConfigError";
    /// It could not be made.
    pub const CREATE_ERROR: &str = "CreateContainerError";
    /// It could not be started.
    pub const RUN_ERROR: &str = "RunContainerError";
    /// It could not be started at all: the command is not there or may not be run.
    pub const START_ERROR: &str = "StartError";
    /// It ended well.
    pub const COMPLETED: &str = "Completed";
    /// It ended badly.
    pub const ERROR: &str = "Error";
    /// It used too much memory.
    pub const OOM_KILLED: &str = "OOMKilled";
    /// Its end was not seen.
    pub const STATUS_UNKNOWN: &str = "ContainerStatusUnknown";
    /// It could not be killed.
    pub const CANNOT_RUN: &str = "ContainerCannotRun";
}

/// Reasons of a whole pod, in `status.reason`.
pub mod pod_status {
    /// It took longer than `activeDeadlineSeconds`.
    pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
    /// It was evicted by the node.
    pub const EVICTED: &str = "Evicted";
    /// The node did not take it.
    pub const NODE_AFFINITY: &str = "NodeAffinity";
    /// Its node no longer reports.
    pub const NODE_LOST: &str = "NodeLost";
}

/// Conditions of nodes.
pub mod node {
    /// The node takes pods.
    pub const READY: &str = "Ready";
    /// Memory is short.
    pub const MEMORY_PRESSURE: &str = "MemoryPressure";
    /// Disk space is short.
    pub const DISK_PRESSURE: &str = "DiskPressure";
    /// Process ids are short.
    pub const PID_PRESSURE: &str = "PIDPressure";

    /// The agent is ready.
    pub const KUBELET_READY: &str = "KubeletReady";
    /// The agent is not ready.
    pub const KUBELET_NOT_READY: &str = "KubeletNotReady";
    /// There is enough memory.
    pub const SUFFICIENT_MEMORY: &str = "KubeletHasSufficientMemory";
    /// There is enough disk space.
    pub const NO_DISK_PRESSURE: &str = "KubeletHasNoDiskPressure";
    /// There are enough process ids.
    pub const SUFFICIENT_PID: &str = "KubeletHasSufficientPID";
    /// The node has not been heard of for too long.
    pub const STATUS_UNKNOWN: &str = "NodeStatusUnknown";
}

/// Conditions of Jobs.
pub mod job {
    /// It is suspended.
    pub const SUSPENDED: &str = "Suspended";
    /// It succeeded.
    pub const COMPLETE: &str = "Complete";
    /// It failed.
    pub const FAILED: &str = "Failed";
    /// It will fail once its pods have ended.
    pub const FAILURE_TARGET: &str = "FailureTarget";
    /// It will succeed once its pods have ended.
    pub const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
}

/// Reasons of events.
pub mod event {
    /// A pod got a node.
    pub const SCHEDULED: &str = "Scheduled";
    /// No node fits a pod.
    pub const FAILED_SCHEDULING: &str = "FailedScheduling";
    /// The image is there.
    pub const PULLED: &str = "Pulled";
    /// A container was made.
    pub const CREATED: &str = "Created";
    /// A container runs.
    pub const STARTED: &str = "Started";
    /// A container is being ended.
    pub const KILLING: &str = "Killing";
    /// A container is started again, later.
    pub const BACK_OFF: &str = "BackOff";
    /// A container could not be made or started.
    pub const FAILED: &str = "Failed";
    /// A probe failed.
    pub const UNHEALTHY: &str = "Unhealthy";
    /// A probe gave a warning.
    pub const PROBE_WARNING: &str = "ProbeWarning";
    /// A volume could not be made.
    pub const FAILED_MOUNT: &str = "FailedMount";
    /// A hook failed before a container ended.
    pub const FAILED_PRE_STOP_HOOK: &str = "FailedPreStopHook";
    /// A hook failed after a container started.
    pub const FAILED_POST_START_HOOK: &str = "FailedPostStartHook";
    /// A node is ready.
    pub const NODE_READY: &str = "NodeReady";
    /// A node is not ready.
    pub const NODE_NOT_READY: &str = "NodeNotReady";
    /// Pods may be placed on a node again.
    pub const NODE_SCHEDULABLE: &str = "NodeSchedulable";
    /// No more pods are placed on a node.
    pub const NODE_NOT_SCHEDULABLE: &str = "NodeNotSchedulable";
}

/// Conditions of JobSets, their reasons and messages.
pub mod jobset {
    /// The set is complete.
    pub const COMPLETED: &str = "Completed";
    /// The set has failed.
    pub const FAILED: &str = "Failed";
    /// The set stands still.
    pub const SUSPENDED: &str = "Suspended";
    /// The set is being restarted.
    pub const RESTARTING: &str = "RestartingJobSet";
    /// Replicated jobs start in order, and not all have.
    pub const STARTUP_IN_PROGRESS: &str = "StartupPolicyInProgress";
    /// Replicated jobs start in order, and all have.
    pub const STARTUP_COMPLETED: &str = "StartupPolicyCompleted";
    /// Whether replicated jobs have started in order; while not, its message names the one that is
    /// starting.
    pub const STARTUP_POLICY: &str = "JobSetStartupPolicyCompleted";

    /// As many Jobs are complete as must be.
    pub const ALL_JOBS_COMPLETED: &str = "AllJobsCompleted";
    /// A Job failed, and no policy says what to do about it.
    pub const FAILED_JOBS: &str = "FailedJobs";
    /// There are no restarts left.
    pub const REACHED_MAX_RESTARTS: &str = "ReachedMaxRestarts";
    /// Workers could not be restarted in place, so that all Jobs are made anew; our own.
    pub const IN_PLACE_RESTART_FAILED: &str = "InPlaceRestartFailed";
    /// No rule matched: the set is restarted.
    pub const DEFAULT_FAILURE_POLICY: &str = "DefaultFailurePolicy";
    /// What is before the name of the rule that matched.
    pub const FAILURE_POLICY_PREFIX: &str = "FailurePolicy_";
    /// What is after the name of an action.
    pub const ACTION_SUFFIX: &str = "FailurePolicyAction";
    /// The user suspended the set.
    pub const SUSPENDED_JOBS: &str = "SuspendedJobs";
    /// The user resumed the set.
    pub const RESUME_JOBS: &str = "ResumeJobs";
    /// All Jobs are ready.
    pub const JOBS_READY: &str = "JobsReady";
    /// The set is no longer restarted because it is complete.
    pub const JOBSET_COMPLETED: &str = "JobSetCompleted";
    /// The set is no longer restarted because it has failed.
    pub const JOBSET_FAILED: &str = "JobSetFailed";
    /// The set is no longer restarted because it is suspended.
    pub const JOBSET_SUSPENDED: &str = "JobSetSuspended";
    /// Replicated jobs are starting in order.
    pub const IN_ORDER_IN_PROGRESS: &str = "InOrderStartupPolicyInProgress";
    /// Replicated jobs have started in order.
    pub const IN_ORDER_COMPLETED: &str = "InOrderStartupPolicyCompleted";
    /// Reason of [`STARTUP_POLICY`].
    pub const STARTUP_POLICY_IN_ORDER: &str = "StartupPolicyInOrder";
}
