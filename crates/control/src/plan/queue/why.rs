//! Why a workload waits, with the numbers.

use std::fmt;

use jiff::Timestamp;

use super::amount::{FlavorResource, quantity_text};
use crate::plan::Key;

/// Why a workload waits. Shown to users in our own condition of the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is not enough quota at the moment.
    NotEnoughQuota {
        /// The queue.
        cluster_queue: String,
        /// What is missing.
        shortages: Vec<Shortage>,
        /// What keeps the workload from what is free, if that is something else.
        note: Option<&'static str>,
    },
    /// More is asked for than there can ever be.
    NeverFits {
        /// The queue.
        cluster_queue: String,
        /// What is too much, and what else is wrong.
        faults: Vec<Fault>,
    },
    /// No flavor matches the pods.
    NoMatchingFlavor {
        /// The queue.
        cluster_queue: String,
        /// What is wrong with each.
        faults: Vec<Fault>,
    },
    /// Others are giving way to it and have not gone yet.
    WaitingForPreemptedWorkloads {
        /// Who.
        victims: Vec<Key>,
    },
    /// Others have pods that are not ready.
    WaitingForPodsReady {
        /// Who, with nothing as amounts.
        unready: Holders,
    },
    /// A queue does not exist.
    QueueMissing {
        /// Which, such as `LocalQueue main`.
        queue: String,
    },
    /// A queue is stopped.
    QueueStopped {
        /// Which, such as `LocalQueue main`.
        queue: String,
    },
    /// A ClusterQueue cannot admit anybody.
    QueueInactive {
        /// Which, such as `ClusterQueue main`.
        queue: String,
        /// What its condition says.
        message: String,
    },
    /// The ClusterQueue takes nobody of the namespace.
    NamespaceMismatch {
        /// The queue.
        cluster_queue: String,
        /// The namespace.
        namespace: String,
    },
    /// It may not be tried before a time.
    BackOff {
        /// The time.
        until: Timestamp,
    },
    /// It was evicted and has not been put back yet.
    NotRequeued {
        /// Why it was evicted.
        reason: String,
    },
    /// Somebody has deactivated it.
    Deactivated,
    /// An annotation keeps it from being admitted.
    Gated {
        /// What the annotation says.
        by: String,
    },
    /// Its job has no pods.
    OnHold,
    /// Its pods ask for more than their limits, or for what their namespace does not allow.
    InvalidRequests {
        /// What is wrong.
        message: String,
    },
    /// An admission check has failed.
    FailedChecks,
    /// Another workload of its queue has to go first.
    BehindHead {
        /// The queue.
        cluster_queue: String,
        /// Who.
        head: Key,
    },
    /// The API did not take the admission; it is tried again.
    Refused {
        /// When.
        until: Timestamp,
    },
}

/// What is missing of a resource in a flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// What.
    pub what: FlavorResource,
    /// How much is asked for.
    pub asked: i64,
    /// How much is free, what may be borrowed included.
    pub free: i64,
    /// How much of that would be borrowed.
    pub borrowable: i64,
    /// Who holds it.
    pub holders: Holders,
}

/// Some workloads, and how many more there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// The first few, with how much each holds.
    pub first: Vec<(Key, i64)>,
    /// How many more there are.
    pub more: usize,
}

/// What is wrong with a flavor for a pod set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The queue does not cover a resource.
    Uncovered {
        /// Which.
        resource: String,
    },
    /// There is no such flavor.
    Missing {
        /// Which.
        flavor: String,
    },
    /// Its nodes have a taint that the pods do not bear.
    Tainted {
        /// Which flavor.
        flavor: String,
        /// Key, value and effect.
        taint: String,
    },
    /// Its nodes are not those the pods ask for.
    Affinity {
        /// Which flavor.
        flavor: String,
    },
    /// It has no quota of a resource.
    NotProvided {
        /// What.
        what: FlavorResource,
    },
    /// More is asked for than there can ever be.
    TooMuch {
        /// Of what.
        what: FlavorResource,
        /// What pod sets before this one ask for.
        before: i64,
        /// What this one asks for.
        asked: i64,
        /// What there can be.
        max: i64,
    },
    /// There is not enough at the moment.
    Short {
        /// Of what.
        what: FlavorResource,
        /// How much is asked for, pod sets before this one included.
        asked: i64,
        /// How much is free, what may be borrowed included.
        free: i64,
        /// How much of that would be borrowed.
        borrowable: i64,
    },
}

impl fmt::Display for Fault {
    /// In the words of the condition `QuotaReserved`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uncovered { resource } => {
                write!(f, "resource {resource} unavailable in ClusterQueue")
            }
            Self::Missing { flavor } => write!(f, "flavor {flavor} not found"),
            Self::Tainted { flavor, taint } => {
                write!(f, "untolerated taint {taint} in flavor {flavor}")
            }
            Self::Affinity { flavor } => write!(f, "flavor {flavor} doesn't match node affinity"),
            Self::NotProvided { what } => {
                write!(f, "flavor {} does not provide resource {}", what.flavor, what.resource)
            }
            Self::TooMuch { what, before, asked, max } => write!(
                f,
                "insufficient quota for {what}, previously considered podsets requests ({}) + \
                 current podset request ({}) > maximum capacity ({})",
                quantity_text(&what.resource, *before),
                quantity_text(&what.resource, *asked),
                quantity_text(&what.resource, *max),
            ),
            Self::Short { what, asked, free, .. } => write!(
                f,
                "insufficient unused quota for {what}, {} more needed",
                quantity_text(&what.resource, asked.saturating_sub(*free)),
            ),
        }
    }
}

impl Why {
    /// The reason of our own condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotEnoughQuota { .. } => "NotEnoughQuota",
            Self::NeverFits { .. } => "NeverFits",
            Self::NoMatchingFlavor { .. } => "NoMatchingFlavor",
            Self::WaitingForPreemptedWorkloads { .. } => "WaitingForPreemptedWorkloads",
            Self::WaitingForPodsReady { .. } => "WaitingForPodsReady",
            Self::QueueMissing { .. } => "QueueMissing",
            Self::QueueStopped { .. } => "QueueStopped",
            Self::QueueInactive { .. } => "QueueInactive",
            Self::NamespaceMismatch { .. } => "NamespaceMismatch",
            Self::BackOff { .. } => "BackOff",
            Self::NotRequeued { .. } => "NotRequeued",
            Self::Deactivated => "Deactivated",
            Self::Gated { .. } => "Gated",
            Self::OnHold => "OnHold",
            Self::InvalidRequests { .. } => "InvalidRequests",
            Self::FailedChecks => "FailedChecks",
            Self::BehindHead { .. } => "BehindHead",
            Self::Refused { .. } => "Refused",
        }
    }

    /// The smallest change that would let the workload go on, if one can be named.
    pub fn smallest_change(&self) -> Option<String> {
        Some(match self {
            Self::NotEnoughQuota { cluster_queue, shortages, .. } => {
                let least = shortages.iter().min_by_key(|it| it.asked.saturating_sub(it.free))?;
                least.remedy(cluster_queue)
            }
            Self::NeverFits { cluster_queue, faults } => {
                let least = faults.iter().filter_map(excess).min_by_key(|(_, by)| *by)?;
                raise(cluster_queue, least.0, least.1)
            }
            Self::NoMatchingFlavor { cluster_queue, faults } => match faults.first()? {
                Fault::Uncovered { resource } => {
                    format!("give ClusterQueue {cluster_queue} quota for {resource}")
                }
                Fault::Missing { flavor } => format!("create ResourceFlavor {flavor}"),
                Fault::Tainted { flavor, taint } => {
                    format!("tolerate the taint {taint} of flavor {flavor}")
                }
                Fault::Affinity { flavor } => {
                    format!("let the pods run on the nodes of flavor {flavor}")
                }
                Fault::NotProvided { what }
                | Fault::TooMuch { what, .. }
                | Fault::Short { what, .. } => {
                    format!("give ClusterQueue {cluster_queue} quota for {what}")
                }
            },
            Self::WaitingForPreemptedWorkloads { victims } => {
                format!("wait until {} are gone", listed(victims.iter().map(Key::to_string)))
            }
            Self::WaitingForPodsReady { unready } => {
                format!("wait until the pods of {unready} are ready, or delete them")
            }
            Self::QueueMissing { queue } => format!("create {queue}"),
            Self::QueueStopped { queue } => format!("set stopPolicy of {queue} to None"),
            Self::QueueInactive { queue, message } => format!("repair {queue}: {message}"),
            Self::NamespaceMismatch { cluster_queue, namespace } => format!(
                "label namespace {namespace} so that namespaceSelector of ClusterQueue \
                 {cluster_queue} selects it"
            ),
            Self::BackOff { until } | Self::Refused { until } => format!("wait until {until}"),
            Self::Deactivated => "set spec.active to true".to_owned(),
            Self::Gated { by } => {
                format!("take the annotation kueue.x-k8s.io/admission-gated-by ({by}) away")
            }
            Self::BehindHead { head, .. } => format!("let {head} run, or deactivate it"),
            Self::InvalidRequests { message } => format!("correct the job: {message}"),
            Self::NotRequeued { .. } | Self::OnHold | Self::FailedChecks => return None,
        })
    }
}

impl Shortage {
    fn missing(&self) -> i64 {
        self.asked.saturating_sub(self.free)
    }

    fn remedy(&self, cluster_queue: &str) -> String {
        let raise = raise(cluster_queue, &self.what, self.missing());
        let enough = |held: &&(Key, i64)| held.1 >= self.missing();
        let ends: Vec<String> =
            self.holders.first.iter().filter(enough).map(|(key, _)| key.to_string()).collect();
        match ends.len() {
            0 if self.holders.first.is_empty() => raise,
            0 => format!("{raise}, or wait until some of {} end", self.holders),
            1 => format!("{raise}, or wait until {} ends", ends[0]),
            _ => format!("{raise}, or wait until one of {} ends", ends.join(", ")),
        }
    }
}

fn raise(cluster_queue: &str, what: &FlavorResource, by: i64) -> String {
    format!(
        "raise nominalQuota of {what} of ClusterQueue {cluster_queue} by {}",
        quantity_text(&what.resource, by)
    )
}

fn excess(fault: &Fault) -> Option<(&FlavorResource, i64)> {
    let Fault::TooMuch { what, before, asked, max } = fault else { return None };
    Some((what, before.saturating_add(*asked).saturating_sub(*max)))
}

fn listed(names: impl Iterator<Item = String>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Holders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = listed(self.first.iter().map(|(key, _)| key.to_string()));
        write!(f, "{names}")?;
        if self.more > 0 { write!(f, " and {} more", self.more) } else { Ok(()) }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |amount| quantity_text(&self.what.resource, amount);
        write!(f, "asks for {} {}, {} free", text(self.asked), self.what, text(self.free))?;
        if self.borrowable > 0 {
            write!(f, " ({} of it borrowed)", text(self.borrowable))?;
        }
        if self.holders.first.is_empty() {
            return Ok(());
        }
        let held = self.holders.first.iter();
        let held = listed(held.map(|(key, amount)| format!("{key} ({})", text(*amount))));
        write!(f, ", held by {held}")?;
        if self.holders.more > 0 { write!(f, " and {} more", self.holders.more) } else { Ok(()) }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEnoughQuota { cluster_queue, shortages, note } => {
                let all = shortages.iter().map(Shortage::to_string).collect::<Vec<_>>().join("; ");
                write!(f, "not enough quota in ClusterQueue {cluster_queue}: {all}")?;
                note.map_or(Ok(()), |note| write!(f, "; {note}"))
            }
            Self::NeverFits { cluster_queue, faults } => {
                let all = listed(faults.iter().map(Fault::to_string));
                write!(f, "can never fit into ClusterQueue {cluster_queue}: {all}")
            }
            Self::NoMatchingFlavor { cluster_queue, faults } => {
                let all = listed(faults.iter().map(Fault::to_string));
                write!(f, "no flavor of ClusterQueue {cluster_queue} matches: {all}")
            }
            Self::WaitingForPreemptedWorkloads { victims } => {
                let shown = listed(victims.iter().take(HOLDERS_SHOWN).map(Key::to_string));
                write!(f, "waits until those are gone that give way: {shown}")?;
                match victims.len().saturating_sub(HOLDERS_SHOWN) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::WaitingForPodsReady { unready } => {
                write!(f, "waits until the pods of others are ready: {unready}")
            }
            Self::QueueMissing { queue } => write!(f, "{queue} does not exist"),
            Self::QueueStopped { queue } => write!(f, "{queue} is stopped"),
            Self::QueueInactive { queue, message } => write!(f, "{queue} is inactive: {message}"),
            Self::NamespaceMismatch { cluster_queue, namespace } => {
                write!(f, "ClusterQueue {cluster_queue} takes nobody of namespace {namespace}")
            }
            Self::BackOff { until } => write!(f, "is not tried again before {until}"),
            Self::NotRequeued { reason } => {
                write!(f, "was evicted ({reason}) and has not been put back yet")
            }
            Self::Deactivated => write!(f, "is deactivated"),
            Self::Gated { by } => write!(f, "admission is gated by {by}"),
            Self::OnHold => write!(f, "its job has no pods"),
            Self::InvalidRequests { message } => write!(f, "{message}"),
            Self::FailedChecks => write!(f, "an admission check has failed"),
            Self::BehindHead { cluster_queue, head } => {
                write!(f, "{head} goes first in ClusterQueue {cluster_queue}")
            }
            Self::Refused { until } => {
                write!(f, "the API did not take the admission; tried again at {until}")
            }
        }
    }
}

/// How many workloads are named at the most.
pub(super) const HOLDERS_SHOWN: usize = 5;
