//! The kinds of the group: what they are called, what they print, which rules are their own.

use super::rules;
use crate::{
    custom::{Printed, columns},
    field::ErrorList,
    resource::Scope,
    strategy::{Column, Json},
};

/// Before the names of the types of the group in OpenAPI documents.
pub(crate) const SCHEMA_PREFIX: &str = "io.x-k8s.kueue.v1beta2.";
/// The same of the version that is served by conversion.
pub(crate) const OLD_SCHEMA_PREFIX: &str = "io.x-k8s.kueue.v1beta1.";

/// A kind of the group.
#[derive(Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// Its name in paths.
    pub plural: &'static str,
    /// Whether objects live in a namespace.
    pub scope: Scope,
    /// Short names.
    pub short_names: &'static [&'static str],
    /// Its columns, beside the name.
    pub printed: &'static [Printed],
    /// Whether `status` is written through its own subresource.
    pub has_status: bool,
    /// The fields selectors may name beside those of all kinds.
    pub selectable: &'static [&'static str],
    /// The names of its schemas in OpenAPI documents, of the stored version and of the older one.
    pub(crate) schemas: [&'static str; 2],
    /// Its members beside metadata and status.
    pub(crate) members: &'static [&'static str],
    pub(crate) columns: &'static [Column],
    /// What the definition has as expressions: for an object, and what it was before.
    pub(crate) expressions: Rule,
    /// What a webhook checks.
    pub(crate) webhook: Rule,
}

/// Says what is wrong with an object that may have been another before.
pub(crate) type Rule = fn(&Json, Option<&Json>) -> ErrorList;

macro_rules! schemas {
    ($name:literal) => {
        [concat!("io.x-k8s.kueue.v1beta2.", $name), concat!("io.x-k8s.kueue.v1beta1.", $name)]
    };
}

/// Workloads.
pub static WORKLOAD: Kind = Kind {
    name: "Workload",
    plural: "workloads",
    scope: Scope::Namespaced,
    short_names: &["kwl", "kueueworkload", "kueueworkloads"],
    printed: &WORKLOAD_PRINTED,
    has_status: true,
    selectable: &["status.admission.clusterQueue"],
    schemas: schemas!("Workload"),
    members: &["spec"],
    columns: &WORKLOAD_COLUMNS,
    expressions: rules::workload::expressions,
    webhook: rules::workload::webhook,
};

const WORKLOAD_PRINTED: [Printed; 5] = [
    Printed::text("Queue", ".spec.queueName", "Name of the queue this workload was submitted to"),
    Printed::text(
        "Reserved in",
        ".status.admission.clusterQueue",
        "Name of the ClusterQueue where the workload is reserving quota",
    ),
    Printed::text(
        "Admitted",
        ".status.conditions[?(@.type=='Admitted')].status",
        "Admission status",
    ),
    Printed::text(
        "Finished",
        ".status.conditions[?(@.type=='Finished')].status",
        "Workload finished",
    ),
    Printed::age("Time this workload was created"),
];
static WORKLOAD_COLUMNS: [Column; 6] = columns(&WORKLOAD_PRINTED);

/// ClusterQueues.
pub static CLUSTER_QUEUE: Kind = Kind {
    name: "ClusterQueue",
    plural: "clusterqueues",
    scope: Scope::Cluster,
    short_names: &["cq"],
    printed: &CLUSTER_QUEUE_PRINTED,
    has_status: true,
    selectable: &[],
    schemas: schemas!("ClusterQueue"),
    members: &["spec"],
    columns: &CLUSTER_QUEUE_COLUMNS,
    expressions: rules::cluster_queue::expressions,
    webhook: rules::cluster_queue::webhook,
};

const CLUSTER_QUEUE_PRINTED: [Printed; 4] = [
    Printed::text("Cohort", ".spec.cohortName", "Cohort that this ClusterQueue belongs to"),
    Printed::text(
        "Strategy",
        ".spec.queueingStrategy",
        "The queueing strategy used to prioritize workloads",
    )
    .wide(),
    Printed::number("Pending Workloads", ".status.pendingWorkloads", "Number of pending workloads"),
    Printed::number(
        "Admitted Workloads",
        ".status.admittedWorkloads",
        "Number of admitted workloads that haven't finished yet",
    )
    .wide(),
];
static CLUSTER_QUEUE_COLUMNS: [Column; 5] = columns(&CLUSTER_QUEUE_PRINTED);

/// LocalQueues.
pub static LOCAL_QUEUE: Kind = Kind {
    name: "LocalQueue",
    plural: "localqueues",
    scope: Scope::Namespaced,
    short_names: &["queue", "queues", "lq"],
    printed: &LOCAL_QUEUE_PRINTED,
    has_status: true,
    selectable: &[],
    schemas: schemas!("LocalQueue"),
    members: &["spec"],
    columns: &LOCAL_QUEUE_COLUMNS,
    expressions: rules::local_queue::expressions,
    webhook: rules::local_queue::webhook,
};

const LOCAL_QUEUE_PRINTED: [Printed; 3] = [
    Printed::text("ClusterQueue", ".spec.clusterQueue", "Backing ClusterQueue"),
    Printed::number("Pending Workloads", ".status.pendingWorkloads", "Number of pending workloads"),
    Printed::number(
        "Admitted Workloads",
        ".status.admittedWorkloads",
        "Number of admitted workloads that haven't finished yet.",
    ),
];
static LOCAL_QUEUE_COLUMNS: [Column; 4] = columns(&LOCAL_QUEUE_PRINTED);

/// ResourceFlavors.
pub static RESOURCE_FLAVOR: Kind = Kind {
    name: "ResourceFlavor",
    plural: "resourceflavors",
    scope: Scope::Cluster,
    short_names: &["flavor", "flavors", "rf"],
    printed: &RESOURCE_FLAVOR_PRINTED,
    has_status: false,
    selectable: &[],
    schemas: schemas!("ResourceFlavor"),
    members: &["spec"],
    columns: &RESOURCE_FLAVOR_COLUMNS,
    expressions: rules::resource_flavor::expressions,
    webhook: rules::resource_flavor::webhook,
};

const RESOURCE_FLAVOR_PRINTED: [Printed; 1] = [Printed::age("Time this flavor was created")];
static RESOURCE_FLAVOR_COLUMNS: [Column; 2] = columns(&RESOURCE_FLAVOR_PRINTED);

/// WorkloadPriorityClasses.
pub static PRIORITY_CLASS: Kind = Kind {
    name: "WorkloadPriorityClass",
    plural: "workloadpriorityclasses",
    scope: Scope::Cluster,
    short_names: &["wpc"],
    printed: &PRIORITY_CLASS_PRINTED,
    has_status: false,
    selectable: &[],
    schemas: schemas!("WorkloadPriorityClass"),
    members: &["value", "description"],
    columns: &PRIORITY_CLASS_COLUMNS,
    expressions: rules::nothing,
    webhook: rules::nothing,
};

const PRIORITY_CLASS_PRINTED: [Printed; 1] =
    [Printed::number("Value", ".value", "Value of workloadPriorityClass's Priority")];
static PRIORITY_CLASS_COLUMNS: [Column; 2] = columns(&PRIORITY_CLASS_PRINTED);

/// All kinds of the group.
pub static KINDS: [&Kind; 5] =
    [&CLUSTER_QUEUE, &LOCAL_QUEUE, &RESOURCE_FLAVOR, &WORKLOAD, &PRIORITY_CLASS];
