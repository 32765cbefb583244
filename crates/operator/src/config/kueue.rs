//! What the configuration says about queueing: Kueue's own file, in both of its versions.

mod file;
mod gates;
mod wait;

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use lockstep_api::{
    field::{ErrorList, FieldError, Path},
    kueue::WaitForPodsReady,
    meta,
    quantity::Quantity,
    selector,
};
use serde_json::json;

use super::{
    ConfigError, KIND, documents,
    process::{MetricsAddress, Process},
};
use file::{File, Selector, Span};

/// The group and versions of the file.
pub(super) const V1BETA1: &str = "config.kueue.x-k8s.io/v1beta1";
pub(super) const V1BETA2: &str = "config.kueue.x-k8s.io/v1beta2";

/// The namespace of the controllers when nobody says otherwise.
const NAMESPACE: &str = "kueue-system";
/// The namespace of what a cluster needs itself.
const SYSTEM_NAMESPACE: &str = "kube-system";
/// The label that every namespace has, with its name.
const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";
const JOBS: &str = "batch/job";
const JOB_SETS: &str = "jobset.x-k8s.io/jobset";

/// Kinds of jobs that upstream manages and we do not.
const OTHER_FRAMEWORKS: [&str; 16] = [
    "deployment",
    "kubeflow.org/jaxjob",
    "kubeflow.org/mpijob",
    "kubeflow.org/paddlejob",
    "kubeflow.org/pytorchjob",
    "kubeflow.org/tfjob",
    "kubeflow.org/xgboostjob",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "pod",
    "ray.io/raycluster",
    "ray.io/rayjob",
    "ray.io/rayservice",
    "sparkoperator.k8s.io/sparkapplication",
    "statefulset",
    "trainer.kubeflow.org/trainjob",
    "workload.codeflare.dev/appwrapper",
];

/// What is decided about queueing.
#[derive(Clone, Debug, PartialEq)]
pub struct Queueing {
    /// How long pods may take, and what then; nobody waits for pods if there is none.
    pub wait_for_pods_ready: Option<WaitForPodsReady>,
    /// Whether jobs that name no queue are managed too, and so wait for ever.
    pub manage_jobs_without_queue_name: bool,
    /// Jobs of which namespaces are managed.
    pub managed_namespaces: LabelSelector,
    /// Which kinds of jobs are managed.
    pub integrations: Integrations,
    /// Labels that are copied from jobs to their Workloads.
    pub label_keys_to_copy: Vec<String>,
    /// How resources are counted.
    pub resources: Resources,
    /// When what has ended is deleted.
    pub retention: Retention,
    /// Whether new jobs get the WorkloadPriorityClass `default` where there is one.
    pub defaults_priority_class: bool,
    /// Whether quota and usage of ClusterQueues are among the metrics.
    pub has_resource_metrics: bool,
    /// Whether those who share a cohort are to have shares by weight.
    pub fair_sharing: bool,
    /// Whether LocalQueues are to have shares of what they have used.
    pub admission_fair_sharing: bool,
}

/// Which kinds of jobs are managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integrations {
    /// Jobs of batch/v1.
    pub job: bool,
    /// JobSets.
    pub jobset: bool,
}

/// How resources are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Whether resources that a queue does not cover are not counted, instead of keeping out who
    /// asks for them.
    pub ignore_undeclared: bool,
    /// Resources whose names begin so are not counted.
    pub exclude_prefixes: Vec<String>,
    /// What resources are counted as, by name.
    pub transformations: BTreeMap<String, Transformation>,
}

/// What a resource is counted as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transformation {
    /// Whether it is still counted as itself.
    pub retains_input: bool,
    /// The amount is multiplied by what is asked for of this one.
    pub multiply_by: Option<String>,
    /// How much of what each unit counts as: quantities by name.
    pub outputs: BTreeMap<String, String>,
}

/// When what has ended is deleted; never if there is no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Workloads, so long after they finished.
    pub after_finished: Option<Duration>,
    /// Jobs, so long after a limit deactivated their Workload.
    pub after_deactivated: Option<Duration>,
}

impl Default for Queueing {
    /// What holds without a file: the defaults of v1beta2.
    fn default() -> Self {
        Self {
            wait_for_pods_ready: Some(WaitForPodsReady::default()),
            manage_jobs_without_queue_name: false,
            managed_namespaces: all_but_system(NAMESPACE),
            integrations: Integrations { job: true, jobset: true },
            label_keys_to_copy: Vec::new(),
            resources: Resources::default(),
            retention: Retention::default(),
            defaults_priority_class: true,
            has_resource_metrics: false,
            fair_sharing: false,
            admission_fair_sharing: false,
        }
    }
}

/// All namespaces but those of the system and of the controllers.
fn all_but_system(own: &str) -> LabelSelector {
    let names = LabelSelectorRequirement {
        key: NAMESPACE_LABEL.to_owned(),
        operator: "NotIn".to_owned(),
        values: Some(vec![SYSTEM_NAMESPACE.to_owned(), own.to_owned()]),
    };
    LabelSelector { match_expressions: Some(vec![names]), match_labels: None }
}

/// Which version of the file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1Beta1,
    V1Beta2,
}

/// What a document says: about queueing, about the process, and to no effect.
pub(super) struct Said {
    pub(super) queueing: Queueing,
    pub(super) process: Process,
    pub(super) unheeded: Vec<String>,
}

/// Reads a document.
pub(super) fn parse(text: &str, version: Version) -> Result<Said, ConfigError> {
    let file: File = documents::parse(text)?;
    if let Some(kind) = file.kind.as_deref().filter(|kind| *kind != KIND) {
        return Err(ConfigError::Invalid(format!("kind: {kind:?} must be {KIND:?}")));
    }
    let mut errors = wrong_version(&file, version);
    let mut unheeded = unheeded(&file, version);
    let gates = gates::read(file.feature_gates.clone().unwrap_or_default(), &mut unheeded)?;
    let wait = wait::read(file.wait_for_pods_ready.as_ref(), version, &mut errors);
    let own = file.namespace.as_deref().unwrap_or(NAMESPACE);
    let integrations = file.integrations.as_ref();
    let queueing = Queueing {
        wait_for_pods_ready: wait.filter(|_| !gates.disables_wait),
        manage_jobs_without_queue_name: file.manage_jobs_without_queue_name,
        managed_namespaces: match &file.managed_jobs_namespace_selector {
            Some(selector) => read_selector(selector, own, &mut errors),
            None => all_but_system(own),
        },
        integrations: read_integrations(integrations, &mut unheeded, &mut errors),
        label_keys_to_copy: integrations.map_or_else(Vec::new, |it| it.label_keys_to_copy.clone()),
        resources: read_resources(&file, &mut errors),
        retention: read_retention(&file, &mut errors),
        defaults_priority_class: gates.defaults_class,
        has_resource_metrics: file
            .metrics
            .as_ref()
            .is_some_and(|metrics| metrics.enable_cluster_queue_resources),
        fair_sharing: is_sharing(&file, version),
        admission_fair_sharing: file.admission_fair_sharing.is_some(),
    };
    errors.extend(validate_unused(&file));
    if let Some(fault) = file.leader_election.as_ref().and_then(|it| it.fault()) {
        return Err(ConfigError::Invalid(fault));
    }
    if !errors.is_empty() {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        return Err(ConfigError::Invalid(texts.join("; ")));
    }
    let metrics = file.metrics.and_then(|metrics| metrics.bind_address);
    let process = Process {
        leader_election: file.leader_election.unwrap_or_default(),
        metrics: MetricsAddress { bind_address: metrics, ..MetricsAddress::default() },
        health: file.health.unwrap_or_default(),
        client_connection: file.client_connection.unwrap_or_default(),
    };
    Ok(Said { queueing, process, unheeded })
}

/// Fields that the other version has.
fn wrong_version(file: &File, version: Version) -> ErrorList {
    if version == Version::V1Beta1 {
        return ErrorList::new();
    }
    let wait = file.wait_for_pods_ready.as_ref().and_then(|wait| wait.enable);
    let sharing = file.fair_sharing.as_ref().and_then(|sharing| sharing.enable);
    let pods = file.integrations.as_ref().and_then(|it| it.pod_options.as_ref());
    let fields = [
        (
            wait.is_some(),
            "waitForPodsReady.enable",
            "v1beta2 has no such field: pods are waited for unless featureGates has \
             DisableWaitForPodsReady: true",
        ),
        (
            sharing.is_some(),
            "fairSharing.enable",
            "v1beta2 has no such field: fair sharing is on when the block is there",
        ),
        (pods.is_some(), "integrations.podOptions", "v1beta2 has no such field"),
        (file.queue_visibility.is_some(), "queueVisibility", "v1beta2 has no such field"),
    ];
    let wrong = fields.into_iter().filter(|(is_there, ..)| *is_there);
    wrong.map(|(_, field, why)| FieldError::forbidden(&Path::new(field), why)).collect()
}

/// Whether fair sharing is asked for.
fn is_sharing(file: &File, version: Version) -> bool {
    let sharing = file.fair_sharing.as_ref();
    sharing.is_some_and(|it| version == Version::V1Beta2 || it.enable.unwrap_or_default())
}

/// What is known and has no effect.
fn unheeded(file: &File, version: Version) -> Vec<String> {
    let metrics = file.metrics.as_ref();
    let resources = file.resources.as_ref();
    let integrations = file.integrations.as_ref();
    let parts = [
        ("admissionFairSharing", file.admission_fair_sharing.is_some()),
        ("controller", file.controller.is_some()),
        ("fairSharing", is_sharing(file, version)),
        (
            "integrations.externalFrameworks",
            integrations.is_some_and(|it| it.external_frameworks.is_some()),
        ),
        ("integrations.podOptions", integrations.is_some_and(|it| it.pod_options.is_some())),
        ("internalCertManagement", file.internal_cert_management.is_some()),
        ("metrics.customLabels", metrics.is_some_and(|it| it.custom_labels.is_some())),
        ("multiKueue", file.multi_kueue.is_some()),
        ("pprofBindAddress", file.pprof_bind_address.is_some()),
        ("queueVisibility", file.queue_visibility.is_some()),
        (
            "resources.deviceClassMappings",
            resources.is_some_and(|it| it.device_class_mappings.is_some()),
        ),
        ("tls", file.tls.is_some()),
        ("visibilityServer", file.visibility_server.is_some()),
        ("webhook", file.webhook.is_some()),
    ];
    parts.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name.to_owned()).collect()
}

/// Jobs of the system and of the controllers themselves are never managed: whoever waited for a
/// queue then could be what queues need.
fn read_selector(selector: &Selector, own: &str, errors: &mut ErrorList) -> LabelSelector {
    let requirements = selector.match_expressions.as_ref().map(|all| {
        let each = all.iter().map(|one| LabelSelectorRequirement {
            key: one.key.clone(),
            operator: one.operator.clone(),
            values: one.values.clone(),
        });
        each.collect()
    });
    let read = LabelSelector {
        match_labels: selector.match_labels.clone(),
        match_expressions: requirements,
    };
    let path = Path::new("managedJobsNamespaceSelector");
    errors.extend(meta::validate_label_selector(&read, &path));
    let Ok(matcher) = selector::LabelSelector::from_meta(Some(&read)) else { return read };
    for namespace in [SYSTEM_NAMESPACE, own] {
        let labels = BTreeMap::from([(NAMESPACE_LABEL.to_owned(), namespace.to_owned())]);
        if matcher.matches_map(&labels) {
            let why = format!("should not match the {namespace:?} namespace");
            errors.push(FieldError::invalid(&path, json!(read), &why));
        }
    }
    read
}

/// Both kinds of jobs are managed unless the file lists some; upstream then manages Jobs only.
fn read_integrations(
    said: Option<&file::Integrations>,
    unheeded: &mut Vec<String>,
    errors: &mut ErrorList,
) -> Integrations {
    let Some(frameworks) = said.and_then(|it| it.frameworks.as_ref()) else {
        return Queueing::default().integrations;
    };
    let path = Path::new("integrations").child("frameworks");
    for (i, name) in frameworks.iter().enumerate() {
        if frameworks[..i].contains(name) {
            errors.push(FieldError::duplicate(&path.index(i), name));
        } else if OTHER_FRAMEWORKS.contains(&name.as_str()) {
            unheeded.push(format!("integrations.frameworks: {name}"));
        } else if ![JOBS, JOB_SETS].contains(&name.as_str()) {
            let mut known = vec![JOBS, JOB_SETS];
            known.extend(OTHER_FRAMEWORKS);
            errors.push(FieldError::not_supported(&path.index(i), name, &known));
        }
    }
    let has = |name: &str| frameworks.iter().any(|one| one == name);
    Integrations { job: has(JOBS), jobset: has(JOB_SETS) }
}

fn read_resources(file: &File, errors: &mut ErrorList) -> Resources {
    let Some(said) = &file.resources else { return Resources::default() };
    let path = Path::new("resources");
    let strategy = said.quota_check_strategy.as_deref().unwrap_or("BlockUndeclared");
    let ignore_undeclared = strategy == "IgnoreUndeclared";
    let strategy_path = path.child("quotaCheckStrategy");
    if ignore_undeclared && !said.exclude_resource_prefixes.is_empty() {
        let why =
            "excludeResourcePrefixes is not allowed when quotaCheckStrategy is IgnoreUndeclared";
        errors.push(FieldError::invalid(&strategy_path, strategy, why));
    }
    if !["IgnoreUndeclared", "BlockUndeclared"].contains(&strategy) {
        let known = ["IgnoreUndeclared", "BlockUndeclared"];
        errors.push(FieldError::not_supported(&strategy_path, strategy, &known));
    }
    let mut transformations = BTreeMap::new();
    for (i, one) in said.transformations.iter().enumerate() {
        let path = path.child("transformations").index(i);
        errors.extend(validate_transformation(one, &path));
        let read = Transformation {
            retains_input: one.strategy.as_deref() != Some("Replace"),
            multiply_by: one.multiply_by.clone().filter(|name| !name.is_empty()),
            outputs: one.outputs.clone(),
        };
        if transformations.insert(one.input.clone(), read).is_some() {
            errors.push(FieldError::duplicate(&path.child("input"), &one.input));
        }
    }
    let exclude_prefixes = said.exclude_resource_prefixes.clone();
    Resources { ignore_undeclared, exclude_prefixes, transformations }
}

fn validate_transformation(one: &file::Transformation, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if one.input.is_empty() {
        errors.push(FieldError::required(&path.child("input"), "must be specified"));
    }
    if let Some(strategy) = one.strategy.as_deref()
        && !["Retain", "Replace"].contains(&strategy)
    {
        let path = path.child("strategy");
        errors.push(FieldError::not_supported(&path, strategy, &["Retain", "Replace"]));
    }
    for (name, amount) in &one.outputs {
        if !Quantity::parse(amount).is_ok_and(|amount| amount.sign() >= 0) {
            let path = path.child("outputs").key(name);
            let why = "must be a quantity of 0 or more, such as 500m or 4Gi";
            errors.push(FieldError::invalid(&path, amount, why));
        }
    }
    errors
}

fn read_retention(file: &File, errors: &mut ErrorList) -> Retention {
    let said = file.object_retention_policies.as_ref().and_then(|it| it.workloads.as_ref());
    let path = Path::new("objectRetentionPolicies").child("workloads");
    let mut time = |span: Option<&Span>, field: &str| {
        span.and_then(|span| not_negative(span, &path.child(field), errors))
    };
    let Some(said) = said else { return Retention::default() };
    Retention {
        after_finished: time(said.after_finished.as_ref(), "afterFinished"),
        after_deactivated: time(
            said.after_deactivated_by_kueue.as_ref(),
            "afterDeactivatedByKueue",
        ),
    }
}

/// Times that nobody uses must be times all the same.
fn validate_unused(file: &File) -> ErrorList {
    let mut errors = ErrorList::new();
    let remote = file.multi_kueue.as_ref();
    let sharing = file.admission_fair_sharing.as_ref();
    let spans = [
        ("multiKueue.gcInterval", remote.and_then(|it| it.gc_interval.as_ref())),
        ("multiKueue.workerLostTimeout", remote.and_then(|it| it.worker_lost_timeout.as_ref())),
        (
            "admissionFairSharing.usageHalfLifeTime",
            sharing.and_then(|it| it.usage_half_life_time.as_ref()),
        ),
        (
            "admissionFairSharing.usageSamplingInterval",
            sharing.and_then(|it| it.usage_sampling_interval.as_ref()),
        ),
    ];
    for (field, span) in spans {
        if let Some(span) = span {
            let _ = not_negative(span, &Path::new(field), &mut errors);
        }
    }
    let strategies = file.fair_sharing.iter().flat_map(|it| &it.preemption_strategies);
    let listed: Vec<&str> = strategies.map(String::as_str).collect();
    const KNOWN: [&[&str]; 3] = [
        &["LessThanOrEqualToFinalShare"],
        &["LessThanInitialShare"],
        &["LessThanOrEqualToFinalShare", "LessThanInitialShare"],
    ];
    if !listed.is_empty() && !KNOWN.contains(&listed.as_slice()) {
        let known = KNOWN.map(|strategies| strategies.join(","));
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let path = Path::new("fairSharing").child("preemptionStrategies");
        errors.push(FieldError::not_supported(&path, listed, &known));
    }
    errors
}

/// A duration of zero or more.
fn not_negative(span: &Span, path: &Path, errors: &mut ErrorList) -> Option<Duration> {
    let time = Duration::try_from(span.value).ok();
    if time.is_none() {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path, &span.text, why));
    }
    time
}
