//! What a ClusterQueue has and allows, read once from the object.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use lockstep_api::{
    kueue::{ClusterQueue, ClusterQueueSpec, ResourceQuota},
    selector::LabelSelector,
};

use super::{
    Settings, Stop,
    amount::{self, FlavorResource},
};

/// What a ClusterQueue has and allows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pool {
    pub groups: Vec<Group>,
    pub quotas: BTreeMap<FlavorResource, Quota>,
    pub cohort: Option<Arc<str>>,
    pub is_strict: bool,
    pub namespaces: LabelSelector,
    pub within: Within,
    pub reclaim: Reclaim,
    pub on_borrow: Search,
    pub on_preempt: Search,
    pub stop: Stop,
    /// What it uses that is not done yet.
    pub unsupported: Vec<String>,
    /// What cannot be understood.
    pub invalid: Vec<String>,
}

/// Resources that come in the same flavors.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Group {
    pub resources: BTreeSet<Arc<str>>,
    /// In the order in which they are tried.
    pub flavors: Vec<Arc<str>>,
}

/// How much of a resource in a flavor there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Quota {
    pub nominal: i64,
    /// How much may be borrowed; what there is if there is none.
    pub borrowing_limit: Option<i64>,
    /// How much others may have; all of it if there is none.
    pub lending_limit: Option<i64>,
}

impl Quota {
    /// How much of it nobody else can have.
    pub(super) fn kept(&self) -> i64 {
        self.lending_limit.map_or(0, |limit| self.nominal.saturating_sub(limit).max(0))
    }
}

/// Who may be preempted in the queue itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Within {
    #[default]
    Never,
    LowerPriority,
    LowerOrNewerEqualPriority,
}

/// Who may be preempted in other queues of the cohort that have borrowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reclaim {
    #[default]
    Never,
    LowerPriority,
    Any,
}

/// Whether a search for a flavor ends with one that can be had at a price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Search {
    #[default]
    MayStop,
    TryNext,
}

impl Pool {
    /// Reads a ClusterQueue.
    pub(super) fn of(queue: &ClusterQueue, settings: &Settings) -> Self {
        let spec = &queue.spec;
        let cohort = Some(spec.cohort_name.as_str()).filter(|name| !name.is_empty());
        let mut pool = Self {
            cohort: cohort.map(Arc::from),
            stop: Stop::of(spec.stop_policy.as_deref()),
            ..Self::default()
        };
        pool.read_namespaces(spec);
        pool.read_groups(spec);
        pool.read_strategy(spec);
        pool.read_preemption(spec);
        pool.note_unsupported(spec, settings);
        pool
    }

    /// The group that has a resource.
    pub(super) fn group_of(&self, resource: &str) -> Option<usize> {
        self.groups.iter().position(|group| group.resources.contains(resource))
    }

    /// Whether there is something that nobody else can have.
    pub(super) fn keeps_something(&self) -> bool {
        self.quotas.values().any(|quota| quota.kept() > 0)
    }

    /// The flavors it has quota in.
    pub(super) fn flavors(&self) -> impl Iterator<Item = &Arc<str>> {
        self.groups.iter().flat_map(|group| &group.flavors)
    }

    fn read_namespaces(&mut self, spec: &ClusterQueueSpec) {
        match LabelSelector::from_meta(spec.namespace_selector.as_ref()) {
            Ok(selector) => self.namespaces = selector,
            Err(error) => {
                self.namespaces = LabelSelector::nothing();
                self.invalid.push(format!("namespaceSelector: {error}"));
            }
        }
    }

    fn read_groups(&mut self, spec: &ClusterQueueSpec) {
        for group in &spec.resource_groups {
            let mut read = Group::default();
            read.resources.extend(group.covered_resources.iter().map(|it| Arc::from(it.as_str())));
            for quotas in &group.flavors {
                let flavor: Arc<str> = Arc::from(quotas.name.as_str());
                for quota in &quotas.resources {
                    self.read_quota(&flavor, quota);
                }
                read.flavors.push(flavor);
            }
            self.groups.push(read);
        }
    }

    fn read_quota(&mut self, flavor: &Arc<str>, quota: &ResourceQuota) {
        let what = FlavorResource::new(flavor, &Arc::from(quota.name.as_str()));
        let mut read = |field: &str, quantity: &Quantity| -> i64 {
            match amount::read(&quota.name, quantity) {
                Some(amount) if amount >= 0 => amount,
                _ => {
                    self.invalid.push(format!("{field} {:?} of {what}", quantity.0));
                    0
                }
            }
        };
        let nominal = read("nominalQuota", &quota.nominal_quota);
        let limit = quota.borrowing_limit.as_ref().map(|limit| read("borrowingLimit", limit));
        let lent = quota.lending_limit.as_ref().map(|limit| read("lendingLimit", limit));
        if lent.is_some() {
            self.unsupported.push("lendingLimit".to_owned());
        }
        if limit.is_some() && self.cohort.is_none() {
            self.invalid.push(format!("borrowingLimit of {what} without a cohort"));
        }
        self.quotas.insert(what, Quota { nominal, borrowing_limit: limit, lending_limit: lent });
    }

    fn read_strategy(&mut self, spec: &ClusterQueueSpec) {
        match spec.queueing_strategy.as_str() {
            "" | "BestEffortFIFO" => {}
            "StrictFIFO" => self.is_strict = true,
            other => self.unsupported.push(format!("queueingStrategy {other}")),
        }
        let fungibility = spec.flavor_fungibility.clone().unwrap_or_default();
        let mut read = |field: &str, text: &str, default| match text {
            "" => default,
            "MayStopSearch" | "Borrow" | "Preempt" => Search::MayStop,
            "TryNextFlavor" => Search::TryNext,
            other => {
                self.unsupported.push(format!("{field} {other}"));
                default
            }
        };
        self.on_borrow = read("whenCanBorrow", &fungibility.when_can_borrow, Search::MayStop);
        self.on_preempt = read("whenCanPreempt", &fungibility.when_can_preempt, Search::TryNext);
        if let Some(preference) = fungibility.preference.as_deref()
            && preference != "BorrowingOverPreemption"
        {
            self.unsupported.push(format!("flavorFungibility.preference {preference}"));
        }
    }

    fn read_preemption(&mut self, spec: &ClusterQueueSpec) {
        let preemption = spec.preemption.clone().unwrap_or_default();
        self.within = match preemption.within_cluster_queue.as_str() {
            "" | "Never" => Within::Never,
            "LowerPriority" => Within::LowerPriority,
            "LowerOrNewerEqualPriority" => Within::LowerOrNewerEqualPriority,
            other => {
                self.unsupported.push(format!("withinClusterQueue {other}"));
                Within::Never
            }
        };
        self.reclaim = match preemption.reclaim_within_cohort.as_str() {
            "" | "Never" => Reclaim::Never,
            "LowerPriority" => Reclaim::LowerPriority,
            "Any" => Reclaim::Any,
            other => {
                self.unsupported.push(format!("reclaimWithinCohort {other}"));
                Reclaim::Never
            }
        };
        let borrow = preemption.borrow_within_cohort.unwrap_or_default();
        if !matches!(borrow.policy.as_str(), "" | "Never") {
            self.unsupported.push("borrowWithinCohort".to_owned());
        }
    }

    fn note_unsupported(&mut self, spec: &ClusterQueueSpec, settings: &Settings) {
        // What a queue says about shares means nothing unless the configuration asks for them.
        let has_weight = spec.fair_sharing.as_ref().is_some_and(|it| it.weight.is_some());
        if settings.fair_sharing && has_weight {
            self.unsupported.push("fairSharing".to_owned());
        }
        let scope = spec.admission_scope.as_ref();
        let is_scoped = scope.is_some_and(|it| it.admission_mode != "NoAdmissionFairSharing");
        if settings.admission_fair_sharing && is_scoped {
            self.unsupported.push("admissionScope".to_owned());
        }
        let checks = spec.admission_checks_strategy.as_ref();
        if checks.is_some_and(|it| !it.admission_checks.is_empty()) {
            self.unsupported.push("admissionChecksStrategy".to_owned());
        }
        self.unsupported.sort();
        self.unsupported.dedup();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pool(spec: Value) -> Pool {
        let shares =
            Settings { fair_sharing: true, admission_fair_sharing: true, ..Settings::default() };
        pool_with(spec, &shares)
    }

    fn pool_with(spec: Value, settings: &Settings) -> Pool {
        let queue: ClusterQueue = serde_json::from_value(json!({"spec": spec})).unwrap();
        Pool::of(&queue, settings)
    }

    #[test]
    fn defaults_hold_where_nothing_is_said() {
        let pool = pool(json!({}));
        assert!(!pool.is_strict && pool.unsupported.is_empty() && pool.invalid.is_empty());
        assert_eq!((pool.within, pool.reclaim), (Within::Never, Reclaim::Never));
        assert_eq!((pool.on_borrow, pool.on_preempt), (Search::MayStop, Search::TryNext));
        assert!(!pool.namespaces.matches_map(&BTreeMap::new()), "no selector matches nothing");
    }

    // rule: queueing 1.4.3
    #[test]
    fn shares_mean_nothing_unless_the_configuration_asks_for_them() {
        let spec = json!({"fairSharing": {"weight": "2"},
            "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}});
        let cases: [(bool, bool, &[&str]); 4] = [
            (false, false, &[]),
            (true, false, &["fairSharing"]),
            (false, true, &["admissionScope"]),
            (true, true, &["admissionScope", "fairSharing"]),
        ];
        for (fair_sharing, admission_fair_sharing, want) in cases {
            let settings = Settings { fair_sharing, admission_fair_sharing, ..Settings::default() };
            assert_eq!(pool_with(spec.clone(), &settings).unsupported, want);
        }
        let none = json!({"fairSharing": {},
            "admissionScope": {"admissionMode": "NoAdmissionFairSharing"}});
        assert!(pool(none).unsupported.is_empty());
    }

    #[test]
    fn what_is_not_done_and_what_cannot_be_read_is_noted() {
        let quota = |quota: Value| {
            json!({"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
                {"name": "f", "resources": [quota]}]}]})
        };
        let cases = [
            (json!({"fairSharing": {"weight": "2"}}), "fairSharing"),
            (json!({"admissionScope": {"admissionMode": "x"}}), "admissionScope"),
            (
                json!({"admissionChecksStrategy": {"admissionChecks": [{"name": "a"}]}}),
                "admissionChecksStrategy",
            ),
            (
                json!({"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}}),
                "borrowWithinCohort",
            ),
            (
                json!({"flavorFungibility": {"preference": "PreemptionOverBorrowing"}}),
                "flavorFungibility.preference PreemptionOverBorrowing",
            ),
            (
                quota(json!({"name": "cpu", "nominalQuota": "1", "lendingLimit": "1"})),
                "lendingLimit",
            ),
            (json!({"queueingStrategy": "Other"}), "queueingStrategy Other"),
        ];
        for (spec, want) in cases {
            assert_eq!(pool(spec).unsupported, [want]);
        }
        let cases = [
            (
                json!({"name": "cpu", "nominalQuota": "-1"}),
                "nominalQuota \"-1\" of cpu in flavor f",
            ),
            (json!({"name": "cpu", "nominalQuota": "x"}), "nominalQuota \"x\" of cpu in flavor f"),
            (
                json!({"name": "cpu", "nominalQuota": "1", "borrowingLimit": "1"}),
                "borrowingLimit of cpu in flavor f without a cohort",
            ),
        ];
        for (spec, want) in cases {
            assert_eq!(pool(quota(spec)).invalid, [want]);
        }
        let odd = json!({"namespaceSelector": {"matchExpressions": [
            {"key": "a", "operator": "Like"}]}});
        assert_eq!(pool(odd).invalid.len(), 1);
    }
}
