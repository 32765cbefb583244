//! Names of labels, annotations and finalizers of queueing.

/// The LocalQueue a job waits in: label of jobs.
pub const QUEUE_NAME: &str = "kueue.x-k8s.io/queue-name";
/// The WorkloadPriorityClass of a job: label of jobs.
pub const PRIORITY_CLASS: &str = "kueue.x-k8s.io/priority-class";
/// For how many seconds a job may run: label of jobs.
pub const MAX_EXEC_TIME: &str = "kueue.x-k8s.io/max-exec-time-seconds";
/// The Workload a job is to use: label or annotation of jobs; the annotation wins.
pub const PREBUILT_WORKLOAD: &str = "kueue.x-k8s.io/prebuilt-workload-name";
/// With how few pods at a time a Job may run: annotation of Jobs.
pub const MIN_PARALLELISM: &str = "kueue.x-k8s.io/job-min-parallelism";
/// Completions follow parallelism: annotation of Jobs.
pub const COMPLETIONS_EQUAL_PARALLELISM: &str = "kueue.x-k8s.io/job-completions-equal-parallelism";
/// A Job that is being stopped: annotation of Jobs. It does not count as suspended until it is
/// gone.
pub const STOPPING: &str = "kueue.x-k8s.io/stopping";
/// A Job whose size may change while it runs: annotation of Jobs.
pub const ELASTIC_JOB: &str = "kueue.x-k8s.io/elastic-job";
/// What keeps a workload from being admitted: annotation.
pub const ADMISSION_GATED_BY: &str = "kueue.x-k8s.io/admission-gated-by";
/// Uid of the job: label of Workloads.
pub const JOB_UID: &str = "kueue.x-k8s.io/job-uid";
/// Name of the pod set: label of pods.
pub const POD_SET: &str = "kueue.x-k8s.io/podset";
/// Name of the LocalQueue: label of pods.
pub const LOCAL_QUEUE_NAME: &str = "kueue.x-k8s.io/local-queue-name";
/// Name of the ClusterQueue: label of pods.
pub const CLUSTER_QUEUE_NAME: &str = "kueue.x-k8s.io/cluster-queue-name";
/// Name of the Workload: annotation of pods.
pub const WORKLOAD: &str = "kueue.x-k8s.io/workload";
/// Before annotations that are copied from a job to its Workload.
pub const PROVISIONING_PREFIX: &str = "provreq.kueue.x-k8s.io/";
/// Keeps what is in use from being deleted: finalizer of Workloads, ClusterQueues and
/// ResourceFlavors.
pub const RESOURCE_IN_USE: &str = "kueue.x-k8s.io/resource-in-use";
/// The LocalQueue, and the WorkloadPriorityClass, of jobs that name none.
pub const DEFAULT_NAME: &str = "default";

/// Whether pods are waited for at all, "true" or "false". This and the annotations below say for
/// one ClusterQueue, LocalQueue, ResourceFlavor or job what `waitForPodsReady` says for all; our
/// own.
pub const WAIT_FOR_PODS_READY: &str = "lockstep.dev/wait-for-pods-ready";
/// How long pods may take to be ready, such as `5m`: annotation; our own.
pub const PODS_READY_TIMEOUT: &str = "lockstep.dev/pods-ready-timeout";
/// How long pods that were ready may not be; `0s` for ever: annotation; our own.
pub const PODS_READY_RECOVERY_TIMEOUT: &str = "lockstep.dev/pods-ready-recovery-timeout";
/// Whether nobody is admitted while pods are not ready: annotation; our own.
pub const BLOCK_ADMISSION: &str = "lockstep.dev/block-admission";
/// By which time those come back into their queue that were evicted, `Eviction` or `Creation`:
/// annotation; our own.
pub const REQUEUING_TIMESTAMP: &str = "lockstep.dev/requeuing-timestamp";
/// How often one may come back: annotation; our own.
pub const REQUEUING_LIMIT: &str = "lockstep.dev/requeuing-backoff-limit-count";
/// After how many seconds one comes back first: annotation; our own.
pub const REQUEUING_BASE: &str = "lockstep.dev/requeuing-backoff-base-seconds";
/// After how many seconds one comes back at the latest: annotation; our own.
pub const REQUEUING_MAX: &str = "lockstep.dev/requeuing-backoff-max-seconds";
/// What the quota of a ClusterQueue follows, `nodes`: annotation of ClusterQueues; our own.
pub const SIZED_FROM: &str = "lockstep.dev/sized-from";
/// How many pods of a Job had succeeded when it was last started: annotation of Jobs; our own.
pub const SUCCEEDED_AT_START: &str = "lockstep.dev/succeeded-at-start";
