//! The features of Kueue that a file may switch.

use std::collections::BTreeMap;

use crate::config::ConfigError;

/// Switches waiting for pods off.
const DISABLE_WAIT: &str = "DisableWaitForPodsReady";
/// Gives new jobs the default priority class.
const CLASS_DEFAULTING: &str = "WorkloadPriorityClassDefaulting";

/// What is switched here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gates {
    pub(super) disables_wait: bool,
    pub(super) defaults_class: bool,
}

/// Features that are on here, whether or not a file says so.
const ALWAYS_ON: [&str; 20] = [
    "AdmissionGatedBy",
    "AssignQueueLabelsForPods",
    "ConfigurableResourceTransformations",
    "FinishOrphanedWorkloads",
    "FlavorFungibility",
    "LocalQueueDefaulting",
    "LocalQueueMetrics",
    "ManagedJobsNamespaceSelector",
    "ManagedJobsNamespaceSelectorAlwaysRespected",
    "ObjectRetentionPolicies",
    "PrioritySortingWithinCohort",
    "QuotaCheckStrategy",
    "ReclaimablePods",
    "RejectUpdatesToCQWithInvalidOnFlavors",
    "ReservedResourceNameValidation",
    "SchedulingEquivalenceHashing",
    "TLSOptions",
    "UnadmittedWorkloadsObservability",
    "WorkloadResourceRequestsSummary",
    "WorkloadValidateResourcesAreNonNegative",
];

/// Features that are off here, whether or not a file says so.
const ALWAYS_OFF: [&str; 76] = [
    "AdmissionCheckValidationRules",
    "AdmissionFairSharing",
    "CleanupProvisioningRequestsOnEviction",
    "ConcurrentAdmission",
    "CustomMetricLabels",
    "DeferRayServiceFinalizationForRedisCleanup",
    "DynamicQuotaOrchestration",
    "DynamicResourceAllocation",
    "ElasticJobsViaWorkloadSlices",
    "ElasticJobsViaWorkloadSlicesWithPartialReplicaScaleUp",
    "ElasticJobsViaWorkloadSlicesWithTAS",
    "ExposeFlavorsInLocalQueue",
    "FailureRecoveryPolicy",
    "FairSharingPreemptWithinNominal",
    "FairSharingPrioritizeNonBorrowing",
    "FairSharingReevaluatePreemptionCandidates",
    "FastQuotaReleaseInPodIntegration",
    "FlavorFungibilityImplicitPreferenceDefault",
    "FlavorFungibilityPreserveScanProgress",
    "HierarchicalCohorts",
    "KeepQuotaForProvReqRetry",
    "KueueDRAIntegration",
    "KueueDRAIntegrationConsumableCapacity",
    "KueueDRAIntegrationExtendedResource",
    "KueueDRAIntegrationPartitionableDevices",
    "KueueDRARejectWorkloadsWhenDRADisabled",
    "LWSImmutableGroupSize",
    "LendingLimit",
    "MetricForWorkloadCreationLatency",
    "MetricsForCohorts",
    "MultiKueue",
    "MultiKueueAdaptersForCustomJobs",
    "MultiKueueAllowInsecureKubeconfigs",
    "MultiKueueBatchJobClearingTTLSecondsAfterFinishedOnWorkerCluster",
    "MultiKueueBatchJobWithManagedBy",
    "MultiKueueClusterProfile",
    "MultiKueueIncrementalDispatcherConfig",
    "MultiKueueIncrementalDispatcherRespectConfigOrder",
    "MultiKueueKubeConfigPathValidation",
    "MultiKueueManagerQuotaAutomation",
    "MultiKueueOrchestratedPreemption",
    "MultiKueueRedoAdmissionOnEvictionInWorker",
    "MultiKueueRemoteSpecSync",
    "MultiKueueWaitForWorkloadAdmitted",
    "PartialAdmission",
    "PodIntegrationValidateGroupOwner",
    "PrioritizePreemptorWorkloads",
    "PriorityBoost",
    "PropagateBatchJobLabelsToWorkload",
    "ProvisioningACC",
    "QueueVisibility",
    "RecomputeAssignmentUponPreemptionTargetsOverlap",
    "RemoveFinalizersWithStrictPatch",
    "SanitizePodSets",
    "SchedulerLibraryIntegration",
    "SchedulerLongRequeueInterval",
    "SchedulerTimestampPreemptionBuffer",
    "SchedulingEquivalenceHashingIgnorePodSetName",
    "ShortWorkloadNames",
    "SkipAncestorCheckForDeletedWorkloads",
    "SkipFinalizersForPodsSuspendedByParent",
    "SkipReassignmentForPodOwnedWorkloads",
    "SparkApplicationIntegration",
    "TASFailedNodeReplacement",
    "TASFailedNodeReplacementFailFast",
    "TASReplaceNodeOnNodeTaints",
    "TASReplaceNodeOnPodTermination",
    "TopologyAwareScheduling",
    "UnadmittedWorkloadsExplicitStatus",
    "ValidateRayAndSparkJobUpdates",
    "VectorizedResourceRequests",
    "VisibilityOnDemand",
    "WaitForPodsReadyUnscheduledTimeout",
    "WorkloadIdentifierAnnotations",
    "WorkloadRequestUseMergePatch",
    "WorkloadValidationForPodSetMetadata",
];

/// Before the names of features of topologies, which are many and all off.
const TOPOLOGY_PREFIX: &str = "TAS";

/// What a file switches; what it switches to no effect is added to `unheeded`.
pub(super) fn read(
    said: BTreeMap<String, bool>,
    unheeded: &mut Vec<String>,
) -> Result<Gates, ConfigError> {
    let mut gates = Gates { disables_wait: false, defaults_class: true };
    for (name, is_on) in said {
        let ours = match name.as_str() {
            DISABLE_WAIT => {
                gates.disables_wait = is_on;
                continue;
            }
            CLASS_DEFAULTING => {
                gates.defaults_class = is_on;
                continue;
            }
            known if ALWAYS_ON.contains(&known) => true,
            known if ALWAYS_OFF.contains(&known) || known.starts_with(TOPOLOGY_PREFIX) => false,
            _ => return Err(ConfigError::UnknownQueueingGate { name }),
        };
        if ours != is_on {
            unheeded.push(format!("featureGates.{name}"));
        }
    }
    Ok(gates)
}
