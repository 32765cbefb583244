//! Who else is late. Gangs that wait for each other's nodes are late together; were they evicted
//! together, they would come back together, and wait for each other again. So of those that use
//! nodes of one flavor one goes at a time, and when it has gone the others have the whole time
//! again: what it has left may be all they need.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use lockstep_api::kueue::Workload;
use lockstep_api::reasons::kueue::{evicted, workload as conditions};

use crate::plan::Key;

/// What others that use nodes of the same flavors do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Company {
    /// Whether one of them was evicted for being late, and still holds its nodes.
    pub is_leaving: bool,
    /// When the last one that was gave its nodes back.
    pub left_at: Option<Timestamp>,
}

/// Those who leave, by flavor.
#[derive(Clone, Debug, Default)]
pub(super) struct Departures {
    flavors: BTreeMap<String, Departure>,
    /// The flavors of those who leave.
    leaving: BTreeMap<Key, BTreeSet<String>>,
}

#[derive(Clone, Debug, Default)]
struct Departure {
    leaving: BTreeSet<Key>,
    left_at: Option<Timestamp>,
    /// Those who wait for that.
    held: BTreeSet<Key>,
}

impl Departures {
    /// What the others do, as far as it concerns this workload.
    pub(super) fn company_of(&self, key: &Key, workload: &Workload) -> Company {
        let flavors = flavors(workload);
        let known = flavors.iter().filter_map(|flavor| self.flavors.get(flavor));
        known.fold(Company::default(), |company, flavor| Company {
            is_leaving: company.is_leaving || flavor.leaving.iter().any(|other| other != key),
            left_at: company.left_at.max(flavor.left_at),
        })
    }

    /// A workload is late, and waits until another has left.
    pub(super) fn hold(&mut self, key: &Key, workload: &Workload) {
        for flavor in flavors(workload) {
            self.flavors.entry(flavor).or_default().held.insert(key.clone());
        }
    }

    /// A workload was told to leave for being late.
    pub(super) fn leaves(&mut self, key: &Key, workload: &Workload) {
        let flavors = flavors(workload);
        for flavor in &flavors {
            self.flavors.entry(flavor.clone()).or_default().leaving.insert(key.clone());
        }
        self.leaving.insert(key.clone(), flavors);
    }

    /// Notes what a workload is like now. Those who waited for it to leave are returned when it
    /// has.
    pub(super) fn seen(
        &mut self,
        key: &Key,
        workload: Option<&Workload>,
        now: Timestamp,
    ) -> Vec<Key> {
        if workload.is_some_and(is_leaving) {
            if let Some(workload) = workload.filter(|_| !self.leaving.contains_key(key)) {
                self.leaves(key, workload);
            }
            return Vec::new();
        }
        let mut held = BTreeSet::new();
        for flavor in self.leaving.remove(key).into_iter().flatten() {
            let Some(departure) = self.flavors.get_mut(&flavor) else { continue };
            departure.leaving.remove(key);
            // One that was only about to leave, and did not, has left nothing.
            if workload.is_none_or(|workload| !holds_quota(workload)) {
                departure.left_at = departure.left_at.max(Some(now));
            }
            held.append(&mut departure.held);
        }
        held.into_iter().collect()
    }
}

fn holds_quota(workload: &Workload) -> bool {
    let status = workload.status.as_ref();
    status.is_some_and(|status| {
        status.is_true(conditions::QUOTA_RESERVED) && !status.is_true(conditions::FINISHED)
    })
}

fn is_leaving(workload: &Workload) -> bool {
    let status = workload.status.as_ref();
    let evicted = status.and_then(|status| status.condition(conditions::EVICTED));
    holds_quota(workload)
        && evicted.is_some_and(|evicted| {
            evicted.status == "True" && evicted.reason == evicted::PODS_READY_TIMEOUT
        })
}

/// The flavors of what a workload was given.
fn flavors(workload: &Workload) -> BTreeSet<String> {
    let given = workload.status.as_ref().and_then(|status| status.admission.as_ref());
    let sets = given.into_iter().flat_map(|given| &given.pod_set_assignments);
    sets.flat_map(|set| set.flavors.values().cloned()).collect()
}
