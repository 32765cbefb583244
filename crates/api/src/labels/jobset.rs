//! Names of labels and annotations of JobSets, their Jobs and pods.

/// Name of the JobSet.
pub const JOBSET_NAME: &str = "jobset.sigs.k8s.io/jobset-name";
/// Uid of the JobSet.
pub const JOBSET_UID: &str = "jobset.sigs.k8s.io/jobset-uid";
/// Name of the replicated job.
pub const REPLICATED_JOB_NAME: &str = "jobset.sigs.k8s.io/replicatedjob-name";
/// How many Jobs the replicated job has.
pub const REPLICATED_JOB_REPLICAS: &str = "jobset.sigs.k8s.io/replicatedjob-replicas";
/// How many Jobs the JobSet has.
pub const GLOBAL_REPLICAS: &str = "jobset.sigs.k8s.io/global-replicas";
/// Index of the Job within its replicated job.
pub const JOB_INDEX: &str = "jobset.sigs.k8s.io/job-index";
/// Index of the Job within the JobSet.
pub const JOB_GLOBAL_INDEX: &str = "jobset.sigs.k8s.io/job-global-index";
/// A digest of the Job's namespace and name.
pub const JOB_KEY: &str = "jobset.sigs.k8s.io/job-key";
/// How often the JobSet had been restarted when the Job was made.
pub const RESTART_ATTEMPT: &str = "jobset.sigs.k8s.io/restart-attempt";
/// How often this Job alone had been restarted when it was made.
pub const JOB_RESTART_ATTEMPT: &str = "jobset.sigs.k8s.io/job-restart-attempt";
/// Name of the group the replicated job is in.
pub const GROUP_NAME: &str = "jobset.sigs.k8s.io/group-name";
/// How many Jobs the group has.
pub const GROUP_REPLICAS: &str = "jobset.sigs.k8s.io/group-replicas";
/// Index of the Job within its group.
pub const JOB_GROUP_INDEX: &str = "jobset.sigs.k8s.io/job-group-index";
/// Where the coordinator is reached.
pub const COORDINATOR: &str = "jobset.sigs.k8s.io/coordinator";

/// Label of nodes whose values are domains that one Job has for itself: annotation.
pub const EXCLUSIVE_TOPOLOGY: &str = "alpha.jobset.sigs.k8s.io/exclusive-topology";
/// Exclusive placement is left to labels of nodes: annotation.
pub const NODE_SELECTOR: &str = "alpha.jobset.sigs.k8s.io/node-selector";
/// The Job a node is kept for: label of nodes.
pub const NAMESPACED_JOB: &str = "alpha.jobset.sigs.k8s.io/namespaced-job";
/// Taint of nodes that are kept for a Job.
pub const NO_SCHEDULE: &str = "alpha.jobset.sigs.k8s.io/no-schedule";
/// Priority of a pod: label.
pub const PRIORITY: &str = "jobset.sigs.k8s.io/priority";

/// Asks for restarts in place, and says how long one may take: annotation of JobSets.
pub const IN_PLACE_TIMEOUT: &str = "alpha.jobset.sigs.k8s.io/inplace-timeout";
/// How often a JobSet was restarted in place, or made anew instead: annotation of JobSets.
pub const IN_PLACE_RESTARTS: &str = "alpha.jobset.sigs.k8s.io/inplace-restarts";
/// Whether a worker that has succeeded takes part when others restart; "true" if nothing is said.
/// Annotation of JobSets; our own.
pub const IN_PLACE_REJOIN: &str = "lockstep.dev/inplace-rejoin";
/// How often in a row workers may fail before they got anywhere: annotation of JobSets; our own.
pub const IN_PLACE_STALLED_MAX: &str = "lockstep.dev/inplace-max-stalled";
/// How long all workers must run to have got somewhere: annotation of JobSets; our own.
pub const IN_PLACE_PROGRESS: &str = "lockstep.dev/inplace-progress-after";

/// What `spec.managedBy` says when the JobSet is ours.
pub const MANAGED_BY_SELF: &str = "jobset.sigs.k8s.io/jobset-controller";
/// Before the name of a rule: how often that rule may restart something. Annotation of JobSets; our
/// own.
pub const RESTARTS_MAX_PREFIX: &str = "lockstep.dev/max-restarts.";
