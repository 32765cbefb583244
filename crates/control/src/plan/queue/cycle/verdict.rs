//! Why those wait that were tried.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::plan::{
    Key,
    queue::{
        Fault, Queues, Why,
        amount::FlavorResource,
        assign::Severity,
        decide,
        entry::{Found, Verdict},
        pending::Rank,
        wait::Scope,
        why::{HOLDERS_SHOWN, Holders, Shortage},
    },
};

use super::round::Nominee;

impl Queues {
    /// Notes why a nominee waits.
    pub(super) fn judge(
        &mut self,
        nominee: &Nominee,
        quota: Option<(&'static str, String)>,
        why: Arc<Why>,
    ) {
        let key = &nominee.rank.key;
        let position = self.position(&nominee.queue, &nominee.rank);
        let verdict = Verdict { quota, why, found: Found::Tried, position };
        if let Some(entry) = self.workloads.get_mut(key) {
            entry.verdict = Some(verdict);
            self.agenda.to_write.insert(key.clone());
        }
    }

    /// Why a nominee cannot be given what it asks for.
    pub(super) fn why_not(
        &self,
        nominee: &Nominee,
        severity: Severity,
        note: Option<&'static str>,
    ) -> Why {
        let cluster_queue = nominee.queue.to_string();
        let faults = || nominee.assignment.faults().cloned().collect::<Vec<_>>();
        match severity {
            Severity::ExceedsMaxQuota => Why::NeverFits { cluster_queue, faults: faults() },
            Severity::NoMatchingFlavor => Why::NoMatchingFlavor { cluster_queue, faults: faults() },
            Severity::WaitingForQuota => {
                let shortages = self.shortages(nominee);
                Why::NotEnoughQuota { cluster_queue, shortages, note }
            }
        }
    }

    fn shortages(&self, nominee: &Nominee) -> Vec<Shortage> {
        let mut shortages: BTreeMap<FlavorResource, Shortage> = BTreeMap::new();
        for fault in nominee.assignment.faults() {
            let Fault::Short { what, asked, free, borrowable } = fault else { continue };
            let shortage = Shortage {
                what: what.clone(),
                asked: *asked,
                free: (*free).max(0),
                borrowable: *borrowable,
                holders: self.ledger.holders(&nominee.queue, what),
            };
            let known = shortages.get(what).map_or(0, |known| known.asked);
            if *asked >= known {
                shortages.insert(what.clone(), shortage);
            }
        }
        shortages.into_values().collect()
    }

    /// How many come before a workload in its queue, and how many there are.
    pub(super) fn position(&self, queue: &Arc<str>, rank: &Rank) -> Option<(Option<usize>, usize)> {
        let pending = &self.clusters.get(queue)?.pending;
        Some((pending.before(rank, decide::POSITIONS_MAX), pending.len()))
    }

    /// Some of those whose pods are not ready.
    pub(super) fn unready_in(&self, scopes: &[Scope]) -> Holders {
        let unready: BTreeSet<&Key> =
            scopes.iter().filter_map(|scope| self.unready.get(scope)).flatten().collect();
        Holders {
            first: unready.iter().take(HOLDERS_SHOWN).map(|key| ((*key).clone(), 0)).collect(),
            more: unready.len().saturating_sub(HOLDERS_SHOWN),
        }
    }
}
