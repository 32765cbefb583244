//! Terms of pod affinity, and how many pods each of them finds where.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::PodAffinityTerm;

use super::select::{Labels, Selector};
use super::wanted::Wanted;

/// Which pods a term is about, and what "near" means for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Term {
    namespaces: BTreeSet<String>,
    /// Namespaces by their labels; `None` when there is no such selector.
    namespace_selector: Option<Selector>,
    selector: Selector,
    pub(super) topology_key: String,
}

impl Term {
    pub(super) fn of(term: &PodAffinityTerm, namespace: &str) -> Self {
        let mut namespaces: BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.insert(namespace.to_owned());
        }
        Self {
            namespaces,
            namespace_selector: term
                .namespace_selector
                .as_ref()
                .map(|selector| Selector::of_labels(Some(selector))),
            selector: Selector::of_labels(term.label_selector.as_ref()),
            topology_key: term.topology_key.clone(),
        }
    }

    /// A term about the pods of one namespace.
    pub(super) fn within(namespace: &str, selector: Selector, topology_key: &str) -> Self {
        Self {
            namespaces: BTreeSet::from([namespace.to_owned()]),
            namespace_selector: None,
            selector,
            topology_key: topology_key.to_owned(),
        }
    }

    pub(super) fn is_about(&self, pod: &Wanted, namespaces: &BTreeMap<String, Labels>) -> bool {
        let empty = Labels::new();
        let is_in = self.namespaces.contains(&pod.namespace)
            || self.namespace_selector.as_ref().is_some_and(|selector| {
                selector.matches(namespaces.get(&pod.namespace).unwrap_or(&empty))
            });
        is_in && self.selector.matches(&pod.labels)
    }
}

/// Terms with the number of pods each has in each domain.
///
/// Terms are found by a label that all their pods carry, so that a pod is held only against the few
/// terms that can be about it.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    counts: BTreeMap<Term, BTreeMap<String, i64>>,
    by_label: BTreeMap<(String, String), BTreeSet<Term>>,
    general: BTreeSet<Term>,
}

impl Terms {
    pub(super) fn contains(&self, term: &Term) -> bool {
        self.counts.contains_key(term)
    }

    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Makes room for a term.
    pub(super) fn register(&mut self, term: &Term) {
        if self.contains(term) {
            return;
        }
        match term.selector.exact() {
            Some((key, value)) => {
                let place = (key.to_owned(), value.to_owned());
                self.by_label.entry(place).or_default().insert(term.clone());
            }
            None => drop(self.general.insert(term.clone())),
        }
        self.counts.insert(term.clone(), BTreeMap::new());
    }

    /// Adds `amount` to what `term` counts in `domain`; forgets what has come to nothing.
    pub(super) fn change(&mut self, term: &Term, domain: &str, amount: i64, keeps_empty: bool) {
        let Some(counts) = self.counts.get_mut(term) else { return };
        let count = counts.entry(domain.to_owned()).or_insert(0);
        *count += amount;
        if *count <= 0 {
            counts.remove(domain);
        }
        if counts.is_empty() && !keeps_empty {
            self.counts.remove(term);
            self.general.remove(term);
            if let Some((key, value)) = term.selector.exact() {
                let place = (key.to_owned(), value.to_owned());
                if let Some(set) = self.by_label.get_mut(&place) {
                    set.remove(term);
                    if set.is_empty() {
                        self.by_label.remove(&place);
                    }
                }
            }
        }
    }

    /// How many pods `term` has in each domain.
    pub(super) fn counts(&self, term: &Term) -> Option<&BTreeMap<String, i64>> {
        self.counts.get(term)
    }

    /// The terms that are about `pod`.
    pub(super) fn about<'a>(
        &'a self,
        pod: &'a Wanted,
        namespaces: &'a BTreeMap<String, Labels>,
    ) -> Vec<&'a Term> {
        if self.counts.is_empty() {
            return Vec::new();
        }
        let by_label = pod
            .labels
            .iter()
            .filter_map(|(key, value)| self.by_label.get(&(key.clone(), value.clone())))
            .flatten();
        by_label.chain(&self.general).filter(|term| term.is_about(pod, namespaces)).collect()
    }
}
