//! Which pods have to leave so that a more important one fits.

use std::cmp::Reverse;

use jiff::Timestamp;

use super::Victim;
use super::cluster::Cluster;
use super::filter::{Diagnosis, View};
use super::message::fit_error;
use super::wanted::Wanted;

/// The least number of nodes tried; a tenth of all when that is more.
const TRIED_MIN: usize = 100;

/// What preemption can do for a pod.
pub(super) enum Outcome {
    /// It fits this node once these have left.
    Found { node: String, victims: Vec<Victim> },
    /// Nothing, and why.
    Not(String),
}

struct Candidate {
    node: String,
    /// Most important first.
    victims: Vec<Wanted>,
}

impl Cluster {
    /// Finds the node where `pod` fits at the least cost to others. Pods are taken away and put
    /// back
    /// for that: afterwards the cluster is what it was.
    pub(super) fn preempt(&mut self, pod: &Wanted, diagnosis: &Diagnosis) -> Outcome {
        if !pod.may_preempt {
            return Outcome::Not("not eligible due to preemptionPolicy=Never.".to_owned());
        }
        if self.is_waiting_for_victims(pod, diagnosis) {
            let why = "not eligible due to a terminating pod on the nominated node.";
            return Outcome::Not(why.to_owned());
        }
        let tried_max = TRIED_MIN.max(self.node_count() / 10);
        let mut candidates = Vec::new();
        let mut reasons: Vec<String> = Vec::new();
        let mut tried = 0;
        for (node, reject) in diagnosis {
            if !reject.is_resolvable || tried >= tried_max {
                reasons.push("Preemption is not helpful for scheduling".to_owned());
                continue;
            }
            tried += 1;
            match self.victims_on(pod, node) {
                Ok(victims) => candidates.push(Candidate { node: node.clone(), victims }),
                Err(why) => reasons.extend(why),
            }
        }
        match candidates.into_iter().min_by_key(cost) {
            Some(best) => {
                let victims = best.victims.into_iter().map(|victim| Victim {
                    namespace: victim.namespace,
                    name: victim.name,
                    uid: victim.uid,
                });
                Outcome::Found { node: best.node, victims: victims.collect() }
            }
            None => Outcome::Not(fit_error(self.node_count(), reasons.iter().map(String::as_str))),
        }
    }

    /// Whether pods that were made to leave for `pod` have not left yet.
    fn is_waiting_for_victims(&self, pod: &Wanted, diagnosis: &Diagnosis) -> bool {
        let Some(nominated) = &pod.nominated else { return false };
        if diagnosis.get(nominated).is_some_and(|reject| !reject.is_resolvable) {
            return false;
        }
        let Some(node) = self.node(nominated) else { return false };
        node.pods.iter().filter_map(|uid| self.pods.get(uid)).any(|other| {
            other.priority < pod.priority && other.is_terminating && other.is_preempted
        })
    }

    /// The fewest pods of lower priority that have to leave `node`, or why that does not help.
    fn victims_on(&mut self, pod: &Wanted, node: &str) -> Result<Vec<Wanted>, Vec<String>> {
        let on_node = self.node(node).map(|entry| entry.pods.clone()).unwrap_or_default();
        let mut lower: Vec<Wanted> = on_node
            .iter()
            .filter_map(|uid| self.pods.get(uid))
            .filter(|other| other.priority < pod.priority)
            .cloned()
            .collect();
        if lower.is_empty() {
            return Err(vec!["No preemption victims found for incoming pod".to_owned()]);
        }
        for other in &lower {
            self.discount(&other.uid);
        }
        let outcome = self.check_one(pod, node);
        if let Err(reasons) = outcome {
            for other in lower {
                self.count(other);
            }
            return Err(reasons);
        }
        // The most important, and among equals those that have run longest, are spared first.
        lower.sort_by_key(|other| (Reverse(other.priority), started(other)));
        let mut victims = Vec::new();
        for other in lower {
            self.count(other.clone());
            if self.check_one(pod, node).is_err() {
                self.discount(&other.uid);
                victims.push(other);
            }
        }
        for victim in &victims {
            self.count(victim.clone());
        }
        Ok(victims)
    }

    fn check_one(&self, pod: &Wanted, node: &str) -> Result<(), Vec<String>> {
        let Some(entry) = self.node(node) else { return Err(Vec::new()) };
        View::of(self, pod).check(entry).map_err(|reject| reject.reasons)
    }
}

fn started(pod: &Wanted) -> Timestamp {
    pod.started_at.unwrap_or(Timestamp::MAX)
}

/// What a candidate costs, in the order in which the scheduler compares.
fn cost(candidate: &Candidate) -> (i64, i64, usize, Reverse<Timestamp>) {
    let highest = candidate.victims.first().map_or(i64::MIN, |victim| victim.priority.into());
    let offset = i64::from(i32::MAX) + 1;
    let sum = candidate.victims.iter().map(|it| i64::from(it.priority) + offset).sum();
    let of_highest = candidate.victims.iter().filter(|it| i64::from(it.priority) == highest);
    let earliest = of_highest.map(started).min().unwrap_or(Timestamp::MAX);
    (highest, sum, candidate.victims.len(), Reverse(earliest))
}
