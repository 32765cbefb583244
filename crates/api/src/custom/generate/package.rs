//! Which custom kinds there are, for the documents about them.

use schemars::SchemaGenerator;

use crate::{
    custom::Printed,
    jobset::{self, JobSet},
    kueue::{self, ClusterQueue, LocalQueue, ResourceFlavor, Workload, WorkloadPriorityClass},
    resource::Scope,
};

/// Kinds of one group and version, which share types.
pub(super) struct Package {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    /// Before the names of its types in OpenAPI documents.
    pub(super) prefix: &'static str,
    pub(super) kinds: &'static [Kind],
    /// A version that is served by conversion where somebody converts.
    pub(super) older: Option<Older>,
}

/// An older version of a package.
pub(super) struct Older {
    pub(super) version: &'static str,
    pub(super) prefix: &'static str,
    /// What clients are told that use it.
    pub(super) warning: &'static str,
}

/// A custom kind, for the documents about it.
pub(super) struct Kind {
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) scope: Scope,
    pub(super) short_names: &'static [&'static str],
    pub(super) printed: &'static [Printed],
    pub(super) has_status: bool,
    pub(super) selectable: &'static [&'static str],
    pub(super) derive: fn(&mut SchemaGenerator),
}

/// All packages.
pub(super) static PACKAGES: [Package; 2] = [
    Package {
        group: jobset::GROUP,
        version: jobset::VERSION,
        prefix: "io.x-k8s.jobset.v1alpha2.",
        kinds: &[Kind {
            kind: jobset::KIND,
            plural: jobset::PLURAL,
            scope: Scope::Namespaced,
            short_names: &[],
            printed: &jobset::PRINTED,
            has_status: true,
            selectable: &[],
            derive: |generator| drop(generator.subschema_for::<JobSet>()),
        }],
        older: None,
    },
    Package {
        group: kueue::GROUP,
        version: kueue::VERSION,
        prefix: kueue::SCHEMA_PREFIX,
        kinds: &[
            queueing(&kueue::CLUSTER_QUEUE, |generator| {
                drop(generator.subschema_for::<ClusterQueue>());
            }),
            queueing(&kueue::LOCAL_QUEUE, |generator| {
                drop(generator.subschema_for::<LocalQueue>());
            }),
            queueing(&kueue::RESOURCE_FLAVOR, |generator| {
                drop(generator.subschema_for::<ResourceFlavor>());
            }),
            queueing(&kueue::WORKLOAD, |generator| {
                drop(generator.subschema_for::<Workload>());
            }),
            queueing(&kueue::PRIORITY_CLASS, |generator| {
                drop(generator.subschema_for::<WorkloadPriorityClass>());
            }),
        ],
        older: Some(Older {
            version: kueue::OLD_VERSION,
            prefix: kueue::OLD_SCHEMA_PREFIX,
            warning: kueue::OLD_VERSION_WARNING,
        }),
    },
];

const fn queueing(kind: &'static kueue::Kind, derive: fn(&mut SchemaGenerator)) -> Kind {
    Kind {
        kind: kind.name,
        plural: kind.plural,
        scope: kind.scope,
        short_names: kind.short_names,
        printed: kind.printed,
        has_status: kind.has_status,
        selectable: kind.selectable,
        derive,
    }
}
