//! The priority of a job: that of its own class, of its pods, or of all that have none.

use lockstep_api::kueue::{GROUP, PriorityClassRef};
use lockstep_api::labels::kueue as labels;

use super::{Pass, Waiting};

/// A priority, and the class it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Priority {
    pub(super) class: Option<PriorityClassRef>,
    pub(super) value: i32,
}

/// The priority of a job.
///
/// # Errors
/// When there is no such class.
pub(super) fn of(pass: &Pass<'_>) -> Result<Priority, Waiting> {
    match of_class(pass)? {
        Some(priority) => Ok(priority),
        None => of_pods(pass),
    }
}

/// The priority of the class of workloads that a job names, if it names one.
///
/// # Errors
/// When there is no such class.
pub(super) fn of_class(pass: &Pass<'_>) -> Result<Option<Priority>, Waiting> {
    let Some(name) = pass.job.label(labels::PRIORITY_CLASS) else { return Ok(None) };
    let Some(value) = pass.known.classes.get(name) else {
        return Err(Waiting::PriorityClassMissing(name.to_owned()));
    };
    let class = class(GROUP, "WorkloadPriorityClass", name);
    Ok(Some(Priority { class: Some(class), value: *value }))
}

/// The priority of the first pods that name a class, or of pods that name none.
///
/// # Errors
/// When there is no such class: quota would be held for pods that nobody can create.
fn of_pods(pass: &Pass<'_>) -> Result<Priority, Waiting> {
    let specs = pass.job.templates().into_iter().flatten().filter_map(|one| one.spec.as_ref());
    let mut names = specs.filter_map(|spec| spec.priority_class_name.as_ref());
    let classes = &pass.known.pod_classes;
    let found = match names.find(|name| !name.is_empty()) {
        Some(name) => {
            let found = classes.get_key_value(name);
            Some(found.ok_or_else(|| Waiting::PodClassMissing(name.clone()))?)
        }
        None => {
            let defaults = classes.iter().filter(|(_, class)| class.is_default);
            defaults.min_by_key(|(_, class)| class.value)
        }
    };
    let Some((name, of_pods)) = found else { return Ok(Priority::default()) };
    let class = class("scheduling.k8s.io", "PriorityClass", name);
    Ok(Priority { class: Some(class), value: of_pods.value })
}

fn class(group: &str, kind: &str, name: &str) -> PriorityClassRef {
    PriorityClassRef { group: group.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
}
