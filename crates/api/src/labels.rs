//! Well-known names of labels, annotations, taints and finalizers, in one place.

pub mod jobset;
pub mod kueue;

/// Name of a namespace, on the namespace itself.
pub const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// Host name of a node.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// Operating system of a node.
pub const OS: &str = "kubernetes.io/os";
/// Processor architecture of a node.
pub const ARCH: &str = "kubernetes.io/arch";
/// Zone of a node.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Region of a node.
pub const REGION: &str = "topology.kubernetes.io/region";
/// What is before the role in a label that gives a node a role.
pub const NODE_ROLE_PREFIX: &str = "node-role.kubernetes.io/";
/// An older label for the role of a node.
pub const NODE_ROLE: &str = "kubernetes.io/role";

/// Name of the Job a pod belongs to.
pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// Uid of the Job a pod belongs to.
pub const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
/// [`JOB_NAME`] before it had a prefix.
pub const LEGACY_JOB_NAME: &str = "job-name";
/// [`CONTROLLER_UID`] before it had a prefix.
pub const LEGACY_CONTROLLER_UID: &str = "controller-uid";
/// Completion index of a pod of an Indexed Job: label and annotation.
pub const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Finalizer of pods that their Job has not counted yet.
pub const JOB_TRACKING_FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// Counted failures of an index: annotation.
pub const INDEX_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";
/// Failures of an index that were ignored: annotation.
pub const INDEX_IGNORED_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// Name of the service whose endpoints a slice holds.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// Who manages an EndpointSlice.
pub const ENDPOINTSLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// The container that `kubectl logs` and `exec` choose by themselves: annotation.
pub const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";
/// What client-side apply sent last: annotation.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Taint of a node that is cordoned.
pub const TAINT_UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Taint of a node that is not ready.
pub const TAINT_NOT_READY: &str = "node.kubernetes.io/not-ready";
/// Taint of a node that no longer reports.
pub const TAINT_UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// Taint of a node that runs out of memory.
pub const TAINT_MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";
/// Taint of a node that runs out of disk space.
pub const TAINT_DISK_PRESSURE: &str = "node.kubernetes.io/disk-pressure";
/// Taint of a node that runs out of process ids.
pub const TAINT_PID_PRESSURE: &str = "node.kubernetes.io/pid-pressure";

/// Where pods reach the API server, as `host:port`, on the service `kubernetes` when nothing
/// listens on the address of the service itself; empty when they cannot reach it at all.
pub const API_ADDRESS: &str = "lockstep.dev/api-address";
