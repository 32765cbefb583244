//! One round of a cycle: one workload of each queue.

use std::{cell::RefCell, collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use lockstep_api::reasons::kueue::quota_reserved as reasons;

use crate::plan::{
    Key,
    queue::{
        Cycle, Decision, Queues, Why,
        agenda::Order,
        amount::{self, Amounts, FlavorResource},
        assign::{Assignment, Market, Mode, Severity},
        decide,
        entry::{Flight, FlightKind, Holding, Place, queued_at},
        ledger::Tree,
        pending::{Parked, Rank},
        pool::Reclaim,
        preempt::{self, Candidate, Lookup, Preemptor, Target},
        wait::Scope,
    },
};

use super::sweep::{Claim, Entrant, Sweep};

/// A workload that is tried, and what could be done for it when the round began.
pub(super) struct Nominee {
    pub queue: Arc<str>,
    pub rank: Arc<Rank>,
    pub class: Arc<str>,
    pub assignment: Assignment,
    pub targets: Vec<Target>,
    /// Whether others have given way to it, or are to.
    pub is_preemptor: bool,
}

/// What has happened in a round so far.
#[derive(Default)]
struct Round {
    /// Those that give way, and that nobody else may count on.
    victims: BTreeSet<Key>,
    /// Where somebody was admitted, or is to give way since now.
    moved: BTreeSet<Tree>,
    /// Where somebody has a claim that ends with the round.
    claimed: BTreeSet<Tree>,
    /// Where something was tried out.
    tried: BTreeSet<Arc<str>>,
    /// What the one that is tried keeps from others.
    claim: Claim,
}

const SKIPPED: &str = "Workload no longer fits after processing another workload";
const OVERLAPS: &str = "Workload has overlapping preemption targets with another workload";
const DEFERRED: &str = "Workload has overlapping preemption targets with another workload, but \
                        will fit after these preemptions complete";

impl Queues {
    /// Tries the heads of these queues.
    pub(super) fn round(
        &mut self,
        queues: &[Arc<str>],
        sweep: &mut Sweep,
        now: Timestamp,
        cycle: &mut Cycle,
    ) {
        let mut round = Round::default();
        for entrant in self.entrants(queues, sweep, cycle) {
            match entrant {
                Entrant::Waits(queue, claim) => {
                    for (of, usage) in &claim.tried {
                        self.ledger.try_out(of, usage);
                        round.tried.insert(Arc::clone(of));
                    }
                    round.victims.extend(claim.victims.iter().cloned());
                    sweep.keep_claim(queue, claim);
                }
                Entrant::Tried(nominee) => {
                    round.claim = Claim::new(&nominee);
                    self.process(&nominee, &mut round, now, cycle);
                    let pending = self.clusters.get(&nominee.queue).map(|it| &it.pending);
                    let claim = std::mem::take(&mut round.claim);
                    sweep.keep(nominee, claim, pending);
                }
            }
        }
        self.ledger.end_round(&round.tried);
        sweep.forget(|queue| round.moved.contains(&self.ledger.tree(queue)));
        for queue in queues {
            self.refresh(queue);
        }
    }

    /// Who takes part in a round, in the order in which they have their turns. What was found out
    /// about somebody is true until something moves.
    fn entrants(&self, queues: &[Arc<str>], sweep: &mut Sweep, cycle: &mut Cycle) -> Vec<Entrant> {
        let none = BTreeSet::new();
        let mut entrants = Vec::new();
        for queue in queues {
            let pending = self.clusters.get(queue).map(|cluster| &cluster.pending);
            entrants.extend(sweep.take(queue, pending).or_else(|| {
                let nominee = self.nominate(queue, &none)?;
                cycle.visited += 1;
                Some(Entrant::Tried(nominee))
            }));
        }
        entrants.sort_by_cached_key(Entrant::order);
        entrants
    }

    /// Looks for what the head of a queue could be given, where `gone` are as good as gone.
    fn nominate(&self, queue: &Arc<str>, gone: &BTreeSet<Key>) -> Option<Nominee> {
        let cluster = self.clusters.get(queue)?;
        let rank = Arc::clone(cluster.pending.head()?);
        let entry = self.workloads.get(&rank.key)?;
        let preemptor = Preemptor { queue, priority: rank.priority.0, at: rank.at };
        let candidate = |key: &Key| self.candidate(key).filter(|_| !gone.contains(key));
        let queued_at = |key: &Key| self.queued_at(key);
        let lookup = Lookup { candidate: &candidate, queued_at: &queued_at };
        // Gates are opened by nobody yet.
        let may_preempt = entry.object.spec.preemption_gates.is_empty();
        let search = |wanted: &Amounts, needed: &BTreeSet<FlavorResource>| {
            if !may_preempt {
                return Vec::new();
            }
            preempt::targets(&self.ledger, preemptor, wanted, needed, lookup)
        };
        let last = RefCell::new(None);
        let preemption = |what: &FlavorResource, amount: i64| {
            let wanted = Amounts::from([(what.clone(), amount)]);
            let targets = search(&wanted, &BTreeSet::from([what.clone()]));
            let own = || targets.iter().filter(|it| it.queue == *queue);
            let mode = match targets.first() {
                None => Mode::NoCandidates,
                Some(_) if own().next().is_some() => Mode::Preempt,
                Some(_) => Mode::Reclaim,
            };
            let given = own().map(|it| amount::of(&it.usage, what));
            let given = given.fold(0, i64::saturating_add);
            let borrows = self.ledger.borrows_with(queue, what, amount.saturating_sub(given));
            last.replace(Some((wanted, targets)));
            (mode, borrows)
        };
        let market = Market {
            ledger: &self.ledger,
            flavors: &self.flavors,
            settings: &self.settings,
            queue,
            pool: &cluster.pool,
            preemption: &preemption,
        };
        let assignment = market.assign(&entry.object, &entry.needs);
        let targets = match (assignment.mode, last.into_inner()) {
            // Of one that asks for a single resource this was asked already.
            (Mode::Preempt | Mode::Reclaim, Some((wanted, targets)))
                if wanted == assignment.usage && assignment.needed.iter().eq(wanted.keys()) =>
            {
                targets
            }
            (Mode::Preempt | Mode::Reclaim, _) => search(&assignment.usage, &assignment.needed),
            (Mode::NoFit | Mode::NoCandidates | Mode::Fit, _) => Vec::new(),
        };
        let is_preemptor = cluster.pending.is_preemptor(&rank);
        let (queue, class) = (Arc::clone(queue), Arc::clone(&entry.class));
        Some(Nominee { queue, rank, class, assignment, targets, is_preemptor })
    }

    /// What is known of somebody who may have to give way.
    fn candidate(&self, key: &Key) -> Option<Candidate<'_>> {
        let entry = self.workloads.get(key)?;
        let Place::Holding(Holding { queue, held, .. }) = &entry.place else { return None };
        let is_evicted = self.is_leaving(key, entry);
        Some(Candidate { queue, standing: &held.standing, usage: &held.usage, is_evicted })
    }

    /// The time by which somebody stood in its queue that holds something now.
    fn queued_at(&self, key: &Key) -> Option<Timestamp> {
        let entry = self.workloads.get(key)?;
        let Place::Holding(holding) = &entry.place else { return None };
        let layers = self.layers(&entry.object, Some(&holding.queue), std::iter::empty());
        Some(queued_at(&entry.object, layers.requeued_by(self.settings.wait.as_ref())))
    }

    fn process(&mut self, nominee: &Nominee, round: &mut Round, now: Timestamp, cycle: &mut Cycle) {
        let mut nominee = nominee;
        let again;
        if nominee.targets.iter().any(|it| round.victims.contains(&it.key)) {
            cycle.visited += 1;
            let Some(new) = self.nominate(&nominee.queue, &round.victims) else { return };
            match new.assignment.mode {
                Mode::Fit => {
                    self.try_out(&new.queue, &new.assignment.usage, round);
                    return self.skip(nominee, DEFERRED, round);
                }
                _ if new.targets.is_empty() => return self.skip(nominee, OVERLAPS, round),
                Mode::NoFit | Mode::NoCandidates | Mode::Preempt | Mode::Reclaim => {
                    again = new;
                    nominee = &again;
                }
            }
        }
        match nominee.assignment.mode {
            Mode::NoFit => self.did_not_fit(nominee),
            _ if nominee.assignment.mode != Mode::Fit && nominee.targets.is_empty() => {
                self.keep_claim(nominee, round);
                self.did_not_fit(nominee);
            }
            _ if !self.still_fits(nominee) => self.skip(nominee, SKIPPED, round),
            Mode::Fit => self.admit_unless_blocked(nominee, round, now, cycle),
            Mode::NoCandidates | Mode::Preempt | Mode::Reclaim => self.preempt(nominee, round),
        }
    }

    /// Whether a nominee still fits once those are gone that give way: to it, or to others. One to
    /// which nobody gives way has to fit beside all of them, who are not gone yet.
    fn still_fits(&self, nominee: &Nominee) -> bool {
        let mut own = Amounts::new();
        let mut shared = Amounts::new();
        for target in &nominee.targets {
            if target.queue == nominee.queue {
                amount::add(&mut own, &target.usage);
            }
            amount::add(&mut shared, &target.usage);
        }
        nominee.assignment.usage.iter().all(|(what, wanted)| {
            let (own, shared) = (amount::of(&own, what), amount::of(&shared, what));
            *wanted <= self.ledger.available_after(&nominee.queue, what, own, shared)
                && (!nominee.targets.is_empty()
                    || *wanted <= self.ledger.available_by_now(&nominee.queue, what))
        })
    }

    fn try_out(&mut self, queue: &Arc<str>, usage: &Amounts, round: &mut Round) {
        self.ledger.try_out(queue, usage);
        round.tried.insert(Arc::clone(queue));
        round.claim.tried.push((Arc::clone(queue), usage.clone()));
    }

    /// Keeps those behind it from taking what a nominee cannot have yet, where it cannot take it
    /// back from them. In a strict queue it stays the first and has a claim in every round; in
    /// another it is not tried again at once, so that its claim ends with this one.
    fn keep_claim(&mut self, nominee: &Nominee, round: &mut Round) {
        let Some(cluster) = self.clusters.get(&nominee.queue) else { return };
        if cluster.pool.reclaim == Reclaim::Any {
            return;
        }
        let mut claim = Amounts::new();
        for (what, wanted) in &nominee.assignment.usage {
            let unused = self.ledger.unused(&nominee.queue, what);
            let quota = cluster.pool.quotas.get(what);
            let limit = quota.and_then(|quota| quota.borrowing_limit);
            let most = match (nominee.assignment.borrows, limit) {
                (true, None) => *wanted,
                (true, Some(limit)) => unused.saturating_add(limit),
                (false, _) => unused,
            };
            claim.insert(what.clone(), most.min(*wanted).max(0));
        }
        if !cluster.pool.is_strict {
            round.claimed.insert(self.ledger.tree(&nominee.queue));
        }
        self.try_out(&nominee.queue, &claim, round);
    }

    /// A nominee cannot be given what it asks for.
    fn did_not_fit(&mut self, nominee: &Nominee) {
        let severity = nominee.assignment.severity.unwrap_or(Severity::WaitingForQuota);
        let why = Arc::new(self.why_not(nominee, severity, None));
        let message = nominee.assignment.message();
        self.judge(nominee, Some((severity.reason(), message)), Arc::clone(&why));
        let parked = Parked { reason: severity.reason(), why };
        let Some(cluster) = self.clusters.get_mut(&nominee.queue) else { return };
        let untold = cluster.pending.did_not_fit(&nominee.rank, &nominee.class, parked);
        self.tell_later(untold);
    }

    /// A nominee lost what it was to have to another one.
    fn skip(&mut self, nominee: &Nominee, message: &'static str, round: &Round) {
        let why = Arc::new(self.why_not(nominee, Severity::WaitingForQuota, Some(message)));
        self.judge(nominee, Some((reasons::WAITING_FOR_QUOTA, message.to_owned())), why);
        // If anything has moved it is tried again at once, and also if what it lost is free again
        // when the round ends; otherwise when something moves.
        let tree = self.ledger.tree(&nominee.queue);
        if round.moved.contains(&tree) || round.claimed.contains(&tree) {
            if let Some(cluster) = self.clusters.get_mut(&nominee.queue) {
                cluster.pending.unblock();
            }
        } else {
            self.wait_for(nominee, Vec::new());
        }
    }

    fn preempt(&mut self, nominee: &Nominee, round: &mut Round) {
        for target in &nominee.targets {
            let usage = &target.usage;
            let given = usage.iter().map(|(what, it)| (what.clone(), it.saturating_neg()));
            self.try_out(&target.queue, &given.collect(), round);
            let key = &target.key;
            round.victims.insert(key.clone());
            round.claim.victims.push(key.clone());
            if !target.is_evicted {
                round.moved.insert(self.ledger.tree(&nominee.queue));
                let order = Order { target: target.clone(), preemptor: nominee.rank.key.clone() };
                self.agenda.orders.insert(key.clone(), order);
                self.ledger.leaves(&target.queue, key);
                self.agenda.has_orders = true;
            }
        }
        self.try_out(&nominee.queue, &nominee.assignment.usage, round);
        let victims = nominee.targets.iter().map(|it| it.key.clone()).collect();
        let message = format!(
            "{}. Pending the preemption of {} workload(s)",
            nominee.assignment.message(),
            nominee.targets.len(),
        );
        let why = Arc::new(Why::WaitingForPreemptedWorkloads { victims });
        self.judge(nominee, Some((reasons::WAITING_FOR_PREEMPTED, message)), why);
        if let Some(cluster) = self.clusters.get_mut(&nominee.queue) {
            cluster.pending.set_preemptor(&nominee.rank);
        }
        self.wait_for(nominee, Vec::new());
    }

    fn admit_unless_blocked(
        &mut self,
        nominee: &Nominee,
        round: &mut Round,
        now: Timestamp,
        cycle: &mut Cycle,
    ) {
        let scopes = self.scopes_not_ready(nominee);
        if !scopes.is_empty() {
            self.try_out(&nominee.queue, &nominee.assignment.usage, round);
            return self.wait_for_pods(nominee, scopes);
        }
        let Some(entry) = self.workloads.get_mut(&nominee.rank.key) else { return };
        let admission = nominee.assignment.admission(&nominee.queue);
        let id = self.next_id;
        self.next_id += 1;
        let considered = nominee.assignment.considered();
        let write = decide::admit(entry, &admission, &considered, (id, now));
        cycle.decisions.push(Decision::Admit(write));
        let kind = FlightKind::Admit(Arc::new(admission));
        entry.flight = Some(Flight::new(id, entry.version, kind, now));
        round.moved.insert(self.ledger.tree(&nominee.queue));
        self.settle(&nominee.rank.key, now);
    }

    /// Where pods have to get ready before a nominee may be admitted.
    fn scopes_not_ready(&self, nominee: &Nominee) -> Vec<Scope> {
        let Some(entry) = self.workloads.get(&nominee.rank.key) else { return Vec::new() };
        let sets = nominee.assignment.pod_sets.iter();
        let flavors: BTreeSet<Arc<str>> =
            sets.flat_map(|set| set.flavors.values().cloned()).collect();
        let flavors = flavors.iter().map(|flavor| &**flavor);
        let layers = self.layers(&entry.object, Some(&nominee.queue), flavors);
        let mut scopes = layers.scopes(self.settings.wait.as_ref());
        scopes.retain(|scope| self.unready.contains_key(scope));
        scopes
    }

    fn wait_for_pods(&mut self, nominee: &Nominee, scopes: Vec<Scope>) {
        let key = &nominee.rank.key;
        let why = Arc::new(Why::WaitingForPodsReady { unready: self.unready_in(&scopes) });
        let mut is_first = false;
        for scope in &scopes {
            if !self.waiters.get(scope).is_some_and(|waiter| self.waits_for_pods(waiter)) {
                self.waiters.insert(scope.clone(), key.clone());
            }
            is_first |= self.waiters.get(scope) == Some(key);
            let waiting = self.agenda.blocked_on.entry(scope.clone()).or_default();
            waiting.insert(Arc::clone(&nominee.queue));
        }
        let message = "waiting for all admitted workloads to be in PodsReady condition";
        let quota = is_first.then(|| (reasons::WAITING_FOR_PODS_READY, message.to_owned()));
        self.judge(nominee, quota, why);
        self.wait_for(nominee, scopes);
    }

    /// Whether a workload is known to wait for the pods of others.
    fn waits_for_pods(&self, key: &Key) -> bool {
        self.workloads.get(key).is_some_and(|entry| {
            matches!(entry.place, Place::Queued { .. })
                && matches!(entry.why(), Some(Why::WaitingForPodsReady { .. }))
        })
    }

    fn wait_for(&mut self, nominee: &Nominee, scopes: Vec<Scope>) {
        let Some(cluster) = self.clusters.get_mut(&nominee.queue) else { return };
        let untold = cluster.pending.wait_for(&nominee.rank, scopes);
        self.tell_later(untold);
    }
}
