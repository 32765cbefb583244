//! What a workload that was admitted brings to the pods of its job.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use lockstep_api::kueue::{PodSet, PodSetAssignment, Workload};
use lockstep_api::labels::kueue as labels;
use lockstep_api::names;

use super::known::Known;
use super::look::{Look, merge};

/// What the pods of one set are given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Info {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) node_selector: BTreeMap<String, String>,
    pub(super) tolerations: Vec<Toleration>,
    /// How many pods were admitted.
    pub(super) count: i32,
}

/// A pod is to have a key with one value, and has it with another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid admission check PodSetUpdate: conflict for {field}: conflict for key={key}, \
     value1={known}, value2={wanted}"
)]
pub(super) struct Conflict {
    pub(super) field: &'static str,
    pub(super) key: String,
    pub(super) known: String,
    pub(super) wanted: String,
}

/// Why it cannot be said what pods are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// A flavor is not there, at least not yet.
    FlavorMissing(String),
    /// Never.
    Conflict(Conflict),
}

impl From<Conflict> for Trouble {
    fn from(conflict: Conflict) -> Self {
        Self::Conflict(conflict)
    }
}

/// What each pod set of a workload is given, in their order. Pods of a workload without admission
/// are given nothing.
pub(super) fn of_workload(known: &Known, workload: &Workload) -> Result<Vec<Info>, Trouble> {
    workload.spec.pod_sets.iter().map(|set| of_pod_set(known, workload, set)).collect()
}

fn of_pod_set(known: &Known, workload: &Workload, set: &PodSet) -> Result<Info, Trouble> {
    let status = workload.status.as_ref();
    let admission = status.and_then(|status| status.admission.as_ref());
    let Some(admission) = admission else {
        return Ok(Info { count: set.count, ..Info::default() });
    };
    let mut assignments = admission.pod_set_assignments.iter();
    let assignment = assignments.find(|assignment| assignment.name == set.name);
    let mut info = Info {
        count: assignment.and_then(|assignment| assignment.count).unwrap_or(set.count),
        ..Info::default()
    };
    info.labels.insert(labels::POD_SET.to_owned(), set.name.clone());
    let queue = &workload.spec.queue_name;
    if !queue.is_empty() && names::label_value(queue).is_empty() {
        info.labels.insert(labels::LOCAL_QUEUE_NAME.to_owned(), queue.clone());
    }
    if names::dns1123_label(&admission.cluster_queue).is_empty() {
        let queue = admission.cluster_queue.clone();
        info.labels.insert(labels::CLUSTER_QUEUE_NAME.to_owned(), queue);
    }
    let name = workload.metadata.name.clone().unwrap_or_default();
    info.annotations.insert(labels::WORKLOAD.to_owned(), name);
    add_flavors(known, assignment, &mut info)?;
    for check in status.iter().flat_map(|status| &status.admission_checks) {
        for update in check.pod_set_updates.iter().filter(|update| update.name == set.name) {
            merge("labels", &mut info.labels, &update.labels)?;
            merge("annotations", &mut info.annotations, &update.annotations)?;
            merge("nodeSelector", &mut info.node_selector, &update.node_selector)?;
            add_tolerations(&mut info.tolerations, &update.tolerations);
        }
    }
    Ok(info)
}

/// Each flavor counts once, however many resources come from it.
fn add_flavors(
    known: &Known,
    assignment: Option<&PodSetAssignment>,
    info: &mut Info,
) -> Result<(), Trouble> {
    let mut names: Vec<&String> = Vec::new();
    for name in assignment.into_iter().flat_map(|assignment| assignment.flavors.values()) {
        if names.contains(&name) {
            continue;
        }
        names.push(name);
        let flavor = known.flavors.get(name).ok_or_else(|| Trouble::FlavorMissing(name.clone()))?;
        merge("nodeSelector", &mut info.node_selector, &flavor.node_labels)?;
        add_tolerations(&mut info.tolerations, &flavor.tolerations);
    }
    Ok(())
}

fn add_tolerations(there: &mut Vec<Toleration>, more: &[Toleration]) {
    for toleration in more {
        if !there.contains(toleration) {
            there.push(toleration.clone());
        }
    }
}

/// How the pods of each set look when they run.
pub(super) fn running_looks(known: &Known, workload: &Workload) -> Result<Vec<Look>, Trouble> {
    let infos = of_workload(known, workload)?;
    let sets = workload.spec.pod_sets.iter().zip(&infos);
    sets.map(|(set, info)| Ok(Look::of(&set.template).with(info)?)).collect()
}
