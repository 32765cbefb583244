//! Classes of priority: workloads that name one follow its value.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_api::kueue::{GROUP, Workload};

use crate::plan::Key;

/// WorkloadPriorityClasses, and who names them.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    values: BTreeMap<String, i32>,
    members: BTreeMap<String, BTreeSet<Key>>,
}

impl Classes {
    /// Notes a class and its value. Those who are to follow it are returned.
    pub(super) fn class_seen(&mut self, name: &str, value: i32) -> Vec<Key> {
        if self.values.insert(name.to_owned(), value) == Some(value) {
            return Vec::new();
        }
        self.members.get(name).into_iter().flatten().cloned().collect()
    }

    /// Notes that a class is gone. Workloads keep what they have.
    pub(super) fn class_gone(&mut self, name: &str) {
        self.values.remove(name);
    }

    /// Notes what a workload is instead of what it was.
    pub(super) fn moved(&mut self, key: &Key, old: Option<&Workload>, new: Option<&Workload>) {
        let (old, new) = (old.and_then(class), new.and_then(class));
        if old == new {
            return;
        }
        if let Some(old) = old
            && let Some(members) = self.members.get_mut(old)
        {
            members.remove(key);
            if members.is_empty() {
                self.members.remove(old);
            }
        }
        if let Some(new) = new {
            self.members.entry(new.to_owned()).or_default().insert(key.clone());
        }
    }

    /// The value of the class of a workload.
    pub(super) fn value_of(&self, workload: &Workload) -> Option<i32> {
        self.values.get(class(workload)?).copied()
    }
}

/// The class of workloads that one names. One of pods is for the job to see to.
fn class(workload: &Workload) -> Option<&str> {
    let class = workload.spec.priority_class_ref.as_ref()?;
    let is_ours = class.group == GROUP && class.kind == "WorkloadPriorityClass";
    is_ours.then_some(class.name.as_str())
}
