//! Whether a workload asks for what a job is.

use k8s_openapi::api::core::v1::{Container, PodSpec, Toleration};
use lockstep_api::kueue::{PodSet, Workload};

use super::look::Look;
use super::{Pass, build, condition, info};

/// Whether the workload asks for what the job is now. While it holds quota, the job may look as it
/// does when it runs; a job that stands still may also look as it did when it was admitted.
pub(super) fn matches(pass: &Pass<'_>, workload: &Workload) -> bool {
    let wanted = build::time_limit(pass.job);
    if workload.spec.maximum_execution_time_seconds != wanted {
        return false;
    }
    let sets = pass.job.pod_sets();
    if !condition::holds_quota(workload) {
        return are_same(&sets, &workload.spec.pod_sets, is_same);
    }
    let is_admitted = condition::is_admitted(workload);
    let is_alike = |a: &PodSet, b: &PodSet| is_alike(a, b, is_admitted);
    let Ok(running) = running(pass, workload) else {
        // What it was given cannot be told at the moment: nobody is stopped for that.
        return are_same(&sets, &workload.spec.pod_sets, is_asking_alike);
    };
    are_same(&sets, &running, is_alike)
        || (pass.job.is_suspended() && are_same(&sets, &workload.spec.pod_sets, is_alike))
}

/// Whether a workload that somebody else has made asks for what the job is, in all that quota
/// depends on.
pub(super) fn matches_prebuilt(pass: &Pass<'_>, workload: &Workload) -> bool {
    if condition::holds_quota(workload) {
        return matches(pass, workload);
    }
    are_same(&pass.job.pod_sets(), &workload.spec.pod_sets, |a, b| is_alike(a, b, false))
}

/// The pod sets of a workload as they are while it runs.
fn running(pass: &Pass<'_>, workload: &Workload) -> Result<Vec<PodSet>, info::Trouble> {
    let infos = info::of_workload(pass.known, workload)?;
    let looks = info::running_looks(pass.known, workload)?;
    let mut sets = workload.spec.pod_sets.clone();
    for ((set, look), info) in sets.iter_mut().zip(looks).zip(infos) {
        let spec = set.template.spec.get_or_insert_default();
        spec.node_selector = Some(look.node_selector);
        spec.tolerations = Some(look.tolerations);
        if set.min_count.is_some() {
            set.count = info.count;
        }
    }
    Ok(sets)
}

fn are_same(ours: &[PodSet], theirs: &[PodSet], same: impl Fn(&PodSet, &PodSet) -> bool) -> bool {
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| same(ours, theirs))
}

/// Whether two pod sets are one in all that matters to where and when their pods run, and to how
/// they are put back.
fn is_same(a: &PodSet, b: &PodSet) -> bool {
    let (a_spec, b_spec) = (a.template.spec.as_ref(), b.template.spec.as_ref());
    let affinity = |spec: Option<&PodSpec>| spec.and_then(|spec| spec.affinity.clone());
    let class = |spec: Option<&PodSpec>| spec.and_then(|spec| spec.priority_class_name.clone());
    is_alike(a, b, false)
        && Look::of(&a.template) == Look::of(&b.template)
        && affinity(a_spec) == affinity(b_spec)
        && class(a_spec) == class(b_spec)
}

/// Whether two pod sets ask for the same, in the same places. Others may add tolerations to what
/// runs.
fn is_alike(a: &PodSet, b: &PodSet, ignores_tolerations: bool) -> bool {
    let (a_spec, b_spec) = (a.template.spec.as_ref(), b.template.spec.as_ref());
    is_asking_alike(a, b)
        && selector(a_spec) == selector(b_spec)
        && (ignores_tolerations || tolerations(a_spec) == tolerations(b_spec))
}

/// Whether two pod sets ask for the same.
fn is_asking_alike(a: &PodSet, b: &PodSet) -> bool {
    let (a_spec, b_spec) = (a.template.spec.as_ref(), b.template.spec.as_ref());
    a.name == b.name
        && a.count == b.count
        && a.min_count == b.min_count
        && containers(a_spec) == containers(b_spec)
        && init_containers(a_spec) == init_containers(b_spec)
}

fn containers(spec: Option<&PodSpec>) -> &[Container] {
    spec.map(|spec| spec.containers.as_slice()).unwrap_or_default()
}

fn init_containers(spec: Option<&PodSpec>) -> &[Container] {
    spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default()
}

fn tolerations(spec: Option<&PodSpec>) -> &[Toleration] {
    spec.and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default()
}

fn selector(spec: Option<&PodSpec>) -> Vec<(&String, &String)> {
    spec.and_then(|spec| spec.node_selector.as_ref()).into_iter().flatten().collect()
}
