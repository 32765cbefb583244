//! Which flavors a workload is given, at which price.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use lockstep_api::{
    kueue::{Admission, PODS_RESOURCE, PodSetAssignment, Workload},
    reasons::kueue::quota_reserved as reasons,
};

use super::{
    Fault, Settings,
    amount::{self, Amounts, FlavorResource},
    flavors::{self, Flavors},
    ledger::Ledger,
    pool::{Group, Pool, Search},
    request::Need,
};

/// How well something can be had, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    /// Not at all.
    NoFit,
    /// Only if others gave way, and none may be made to.
    NoCandidates,
    /// If others give way, some of them of the same queue.
    Preempt,
    /// If others give way that have borrowed.
    Reclaim,
    /// At once.
    Fit,
}

/// How bad it is that something cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    WaitingForQuota,
    ExceedsMaxQuota,
    NoMatchingFlavor,
}

impl Severity {
    /// The reason of `QuotaReserved`.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::WaitingForQuota => reasons::WAITING_FOR_QUOTA,
            Self::ExceedsMaxQuota => reasons::EXCEEDS_MAX_QUOTA,
            Self::NoMatchingFlavor => reasons::NO_MATCHING_FLAVOR,
        }
    }

    fn of(fault: &Fault) -> Self {
        match fault {
            Fault::Short { .. } => Self::WaitingForQuota,
            Fault::TooMuch { .. } => Self::ExceedsMaxQuota,
            Fault::Uncovered { .. }
            | Fault::Missing { .. }
            | Fault::Tainted { .. }
            | Fault::Affinity { .. }
            | Fault::NotProvided { .. } => Self::NoMatchingFlavor,
        }
    }
}

/// What a workload would be given.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub pod_sets: Vec<Assigned>,
    /// What all of it uses.
    pub usage: Amounts,
    /// What of it cannot be had at once.
    pub needed: BTreeSet<FlavorResource>,
    pub mode: Mode,
    /// Whether something is borrowed.
    pub borrows: bool,
    /// How bad it is, where something cannot be had.
    pub severity: Option<Severity>,
}

/// What a pod set would be given.
#[derive(Clone, Debug)]
pub(super) struct Assigned {
    pub name: Arc<str>,
    pub count: i64,
    pub flavors: BTreeMap<Arc<str>, Arc<str>>,
    pub resources: BTreeMap<Arc<str>, i64>,
    pub mode: Mode,
    pub faults: Vec<Fault>,
    /// The flavors that were looked at, unless there was nothing to be said of them.
    attempts: Vec<Attempt>,
}

/// A flavor that was looked at.
#[derive(Clone, Debug)]
struct Attempt {
    flavor: Arc<str>,
    mode: Mode,
    borrows: bool,
    faults: Vec<Fault>,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            Mode::NoFit => "NoFit",
            Mode::NoCandidates => "preemptionMode=NoCandidates",
            Mode::Preempt => "preemptionMode=Preempt",
            Mode::Reclaim => "preemptionMode=Reclaim",
            Mode::Fit => "Fit",
        };
        write!(f, "{}({mode}", self.flavor)?;
        if self.borrows {
            // How far away what is borrowed is: cohorts have no cohorts yet.
            write!(f, ";borrow=1")?;
        }
        let faults: BTreeSet<String> = self.faults.iter().map(Fault::to_string).collect();
        for fault in faults {
            write!(f, ";{fault}")?;
        }
        write!(f, ")")
    }
}

/// What is known where a workload looks for flavors.
pub(super) struct Market<'a> {
    pub ledger: &'a Ledger,
    pub flavors: &'a Flavors,
    pub settings: &'a Settings,
    pub queue: &'a Arc<str>,
    pub pool: &'a Pool,
    /// How well so much of one thing can be had if others give way, and whether some of it would
    /// be borrowed then.
    pub preemption: &'a dyn Fn(&FlavorResource, i64) -> (Mode, bool),
}

/// One flavor for the resources of a group.
#[derive(Clone)]
struct Choice {
    flavor: Arc<str>,
    mode: Mode,
    borrows: bool,
    needed: BTreeSet<FlavorResource>,
}

impl Market<'_> {
    /// Finds flavors for all pod sets.
    pub(super) fn assign(&self, workload: &Workload, needs: &[Need]) -> Assignment {
        let mut all = Assignment {
            pod_sets: Vec::new(),
            usage: Amounts::new(),
            needed: BTreeSet::new(),
            mode: Mode::Fit,
            borrows: false,
            severity: None,
        };
        for (at, need) in needs.iter().enumerate() {
            let template = workload.spec.pod_sets.get(at).and_then(|it| it.template.spec.as_ref());
            let mut assigned = Assigned {
                name: Arc::clone(&need.name),
                count: need.count,
                flavors: BTreeMap::new(),
                resources: need.resources.clone(),
                mode: Mode::Fit,
                faults: Vec::new(),
                attempts: Vec::new(),
            };
            if self.pool.group_of(PODS_RESOURCE).is_some() {
                assigned.resources.insert(Arc::from(PODS_RESOURCE), need.count);
            }
            self.drop_undeclared(&mut assigned, &mut all);
            for group in &self.pool.groups {
                self.assign_group(group, template, &mut assigned, &mut all);
            }
            all.mode = all.mode.min(assigned.mode);
            all.pod_sets.push(assigned);
        }
        all
    }

    /// Resources that the queue does not cover are overlooked, or are what is wrong.
    fn drop_undeclared(&self, assigned: &mut Assigned, all: &mut Assignment) {
        let undeclared = assigned.resources.keys().filter(|it| self.pool.group_of(it).is_none());
        let undeclared: Vec<Arc<str>> = undeclared.cloned().collect();
        for resource in undeclared {
            assigned.resources.remove(&resource);
            if !self.settings.ignore_undeclared {
                assigned.faults.push(Fault::Uncovered { resource: resource.to_string() });
                assigned.mode = Mode::NoFit;
                all.severity = Some(Severity::NoMatchingFlavor);
            }
        }
    }

    fn assign_group(
        &self,
        group: &Group,
        template: Option<&k8s_openapi::api::core::v1::PodSpec>,
        assigned: &mut Assigned,
        all: &mut Assignment,
    ) {
        let asked = assigned.resources.iter().filter(|(name, _)| group.resources.contains(*name));
        let asked: Vec<(Arc<str>, i64)> = asked.map(|(name, it)| (Arc::clone(name), *it)).collect();
        if asked.is_empty() {
            return;
        }
        let keys = flavors::label_keys(self.flavors, group);
        let mut best: Option<Choice> = None;
        let mut least: Option<Severity> = None;
        let mut faults = Vec::new();
        for flavor in &group.flavors {
            if let Some(fault) = flavors::fault(self.flavors, flavor, &keys, template) {
                let severity = Severity::of(&fault);
                least = Some(least.map_or(severity, |it| it.min(severity)));
                assigned.attempts.push(Attempt {
                    flavor: Arc::clone(flavor),
                    mode: Mode::NoFit,
                    borrows: false,
                    faults: vec![fault.clone()],
                });
                faults.push(fault);
                continue;
            }
            let (choice, wrong) = self.consider(flavor, &asked, all);
            if let Some(worst) = wrong.iter().map(Severity::of).max() {
                least = Some(least.map_or(worst, |it| it.min(worst)));
            }
            if choice.mode != Mode::Fit || choice.borrows {
                assigned.attempts.push(Attempt {
                    flavor: Arc::clone(flavor),
                    mode: choice.mode,
                    borrows: choice.borrows,
                    faults: wrong.clone(),
                });
            }
            faults.extend(wrong);
            let stops = self.stops_at(&choice);
            if best.as_ref().is_none_or(|best| is_better(&choice, best)) {
                best = Some(choice);
            }
            if stops {
                break;
            }
        }
        let mode = best.as_ref().map_or(Mode::NoFit, |best| best.mode);
        assigned.mode = assigned.mode.min(mode);
        if mode != Mode::Fit {
            assigned.faults.extend(faults);
            all.severity = all.severity.max(least);
        }
        let Some(best) = best.filter(|best| best.mode != Mode::NoFit) else { return };
        all.borrows |= best.borrows;
        all.needed.extend(best.needed);
        for (resource, amount) in asked {
            let what = FlavorResource::new(&best.flavor, &resource);
            assigned.flavors.insert(resource, Arc::clone(&best.flavor));
            let sum = all.usage.entry(what).or_insert(0);
            *sum = sum.saturating_add(amount);
        }
    }

    /// How well the resources of a group can be had in a flavor, and what is wrong with it.
    fn consider(
        &self,
        flavor: &Arc<str>,
        asked: &[(Arc<str>, i64)],
        all: &Assignment,
    ) -> (Choice, Vec<Fault>) {
        let mut choice = Choice {
            flavor: Arc::clone(flavor),
            mode: Mode::Fit,
            borrows: false,
            needed: BTreeSet::new(),
        };
        let mut faults = Vec::new();
        for (resource, amount) in asked {
            let what = FlavorResource::new(flavor, resource);
            let before = amount::of(&all.usage, &what);
            let total = before.saturating_add(*amount);
            let borrows = || self.ledger.borrows_with(self.queue, &what, total);
            let (mode, borrows) = match self.fault(&what, before, *amount) {
                None => (Mode::Fit, borrows()),
                Some(fault @ Fault::Short { .. }) => {
                    faults.push(fault);
                    let nominal = self.pool.quotas.get(&what).map_or(0, |quota| quota.nominal);
                    // More than the queue has itself is not taken away from anybody.
                    if total > nominal {
                        (Mode::NoFit, borrows())
                    } else {
                        (self.preemption)(&what, total)
                    }
                }
                Some(fault) => {
                    faults.push(fault);
                    (Mode::NoFit, false)
                }
            };
            choice.mode = choice.mode.min(mode);
            choice.borrows |= borrows;
            if mode != Mode::Fit {
                choice.needed.insert(what);
            }
        }
        (choice, faults)
    }

    /// Why so much cannot be had at once, if it cannot.
    fn fault(&self, what: &FlavorResource, before: i64, asked: i64) -> Option<Fault> {
        if !self.pool.quotas.contains_key(what) {
            return Some(Fault::NotProvided { what: what.clone() });
        }
        let total = before.saturating_add(asked);
        let max = self.ledger.potential(self.queue, what);
        if total > max {
            return Some(Fault::TooMuch { what: what.clone(), before, asked, max });
        }
        let available = self.ledger.available(self.queue, what);
        (total > available).then(|| {
            let own = self.ledger.unused(self.queue, what).max(0);
            let borrowable = available.saturating_sub(own).max(0);
            Fault::Short { what: what.clone(), asked: total, free: available, borrowable }
        })
    }

    fn stops_at(&self, choice: &Choice) -> bool {
        match choice.mode {
            Mode::NoFit | Mode::NoCandidates => false,
            Mode::Preempt | Mode::Reclaim if self.pool.on_preempt == Search::TryNext => false,
            Mode::Preempt | Mode::Reclaim | Mode::Fit => {
                !(choice.borrows && self.pool.on_borrow == Search::TryNext)
            }
        }
    }
}

/// Better modes first, then those that do not borrow; of equal ones the first counts.
fn is_better(choice: &Choice, than: &Choice) -> bool {
    (choice.mode, !choice.borrows) > (than.mode, !than.borrows)
}

impl Assignment {
    /// In the words of the condition `QuotaReserved`; empty if all can be had.
    pub(super) fn message(&self) -> String {
        let unfit = self.pod_sets.iter().filter(|set| set.mode != Mode::Fit);
        let lines = unfit.map(|set| {
            let mut faults: Vec<String> = set.faults.iter().map(Fault::to_string).collect();
            faults.sort();
            format!("couldn't assign flavors to pod set {}: {}", set.name, faults.join(", "))
        });
        lines.collect::<Vec<_>>().join("; ")
    }

    /// In the words of the event that tells of a reservation: the flavors that were passed over,
    /// and those of which some is borrowed. Empty if there are none.
    pub(super) fn considered(&self) -> String {
        let sets = self.pod_sets.iter().filter(|set| !set.attempts.is_empty()).map(|set| {
            let mut attempts: Vec<&Attempt> = set.attempts.iter().collect();
            attempts.sort_by(|a, b| a.flavor.cmp(&b.flavor));
            let attempts: Vec<String> = attempts.into_iter().map(Attempt::to_string).collect();
            format!("{}: {}", set.name, attempts.join(", "))
        });
        sets.collect::<Vec<_>>().join(" | ")
    }

    /// All that is wrong.
    pub(super) fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.pod_sets.iter().filter(|set| set.mode != Mode::Fit).flat_map(|set| &set.faults)
    }

    /// As the API has it.
    pub(super) fn admission(&self, queue: &str) -> Admission {
        let sets = self.pod_sets.iter().map(|set| PodSetAssignment {
            name: set.name.to_string(),
            flavors: set.flavors.iter().map(|(r, f)| (r.to_string(), f.to_string())).collect(),
            resource_usage: set
                .resources
                .iter()
                .filter(|(resource, _)| set.flavors.contains_key(*resource))
                .map(|(resource, it)| (resource.to_string(), amount::write(resource, *it)))
                .collect(),
            count: Some(i32::try_from(set.count).unwrap_or(i32::MAX)),
            ..PodSetAssignment::default()
        });
        Admission { cluster_queue: queue.to_owned(), pod_set_assignments: sets.collect() }
    }
}
