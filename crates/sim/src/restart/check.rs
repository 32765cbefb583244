//! What must never happen to a gang that is restarted in place, checked against what is true in a
//! world, whichever protocol it runs. The names are those of the invariants in the design of the
//! protocol.

use std::collections::{BTreeMap, BTreeSet};

/// What has happened, as an observer sees it who knows everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A worker process runs user code from now on.
    Started {
        /// Its place.
        slot: u32,
        /// Its pod.
        pod: u64,
        /// What it was started for.
        epoch: u32,
    },
    /// Nothing is left of a worker process.
    Ended {
        /// Its pod.
        pod: u64,
        /// What it was started for.
        epoch: u32,
    },
    /// A worker ended by itself, and well.
    Succeeded {
        /// Its place.
        slot: u32,
        /// What it was started for.
        epoch: u32,
    },
    /// A pod is no more; `is_done` if it has completed.
    PodEnded {
        /// Its place.
        slot: u32,
        /// Whether it has completed.
        is_done: bool,
    },
    /// There are so many places now; what was beyond them is forgotten.
    Resized {
        /// How many.
        slots: u32,
    },
    /// Something ended or took away a worker that should have gone on.
    Lost {
        /// Its place.
        slot: u32,
        /// What it was started for, or would have been.
        epoch: u32,
    },
    /// An agent stops the process of `epoch` in order to reach `towards`; `None` if it was not
    /// asked for a restart.
    Stopped {
        /// Its place.
        slot: u32,
        /// What the process was started for.
        epoch: u32,
        /// What the agent is asked to reach.
        towards: Option<u32>,
    },
    /// An agent has promised to wait for the release of `epoch`, with nothing running.
    Promised {
        /// Its place.
        slot: u32,
        /// Its pod.
        pod: u64,
        /// What it waits for.
        epoch: u32,
    },
    /// A decision was written down.
    Written(Written),
    /// A write of an earlier leader than the store had seen has changed it, or an agent has acted
    /// on the word of one.
    Overruled,
    /// The store has lost writes.
    RolledBack,
    /// The user or the job's own policy asks for a new epoch: suspended, resized, made anew.
    Asked,
    /// The job is deleted, and the store has been told to take nothing of it any more.
    Deleted,
    /// Nothing moves, and nothing says why or until when.
    Silent,
}

/// A decision, as it was written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The pods it is about.
    pub generation: u32,
    /// The epoch it is about.
    pub epoch: u32,
    /// How many workers the epoch has.
    pub slots: u32,
    /// Whether the job is suspended, so that nobody has heard of the epoch yet.
    pub is_suspended: bool,
    /// Whether the epoch is released.
    pub is_release: bool,
    /// Whether the gang has succeeded.
    pub is_success: bool,
    /// Whether it has failed.
    pub is_failure: bool,
    /// Restarts that count.
    pub counted: u32,
}

/// What is to be kept to.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// How many restarts may count.
    pub max_restarts: u32,
    /// Whether a worker that has succeeded takes part in later epochs.
    pub is_rejoining: bool,
}

/// The checkers of one world.
#[derive(Clone, Debug)]
pub struct Checks {
    rules: Rules,
    /// Processes there are: by pod the slot and what each was started for.
    alive: BTreeMap<u64, (u32, u32)>,
    /// How many of them there are for each epoch.
    epochs: BTreeMap<u32, u32>,
    /// Who waits for which epoch.
    promised: BTreeMap<u32, BTreeSet<u32>>,
    /// Successes by epoch.
    succeeded: BTreeMap<u32, u32>,
    /// Those whose last run has ended well.
    well: BTreeSet<u32>,
    /// Those of whose pods that cannot be seen any more, since they were deleted or have crashed:
    /// they have succeeded, and may have to do it again.
    unseen: BTreeSet<u32>,
    /// Those whose pods have completed.
    done: BTreeSet<u32>,
    /// Epochs in which something was lost, and how often.
    lost: BTreeMap<u32, u32>,
    written: Option<Written>,
    terminal: Option<Written>,
    /// What has happened that a restart may be for.
    causes: u32,
    /// Restarts that counted, as far as the store was ever told.
    most_counted: u32,
    generation: u32,
    /// The last epoch that was released.
    released: Option<u32>,
    is_deleted: bool,
    /// What went wrong, in order, once for each invariant.
    violations: Vec<(&'static str, String)>,
}

impl Checks {
    /// For a gang of which nothing has happened.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            alive: BTreeMap::new(),
            epochs: BTreeMap::new(),
            promised: BTreeMap::new(),
            succeeded: BTreeMap::new(),
            well: BTreeSet::new(),
            unseen: BTreeSet::new(),
            done: BTreeSet::new(),
            lost: BTreeMap::new(),
            written: None,
            terminal: None,
            causes: 0,
            most_counted: 0,
            generation: 1,
            released: None,
            is_deleted: false,
            violations: Vec::new(),
        }
    }

    /// What went wrong, in order, once for each invariant: its name and how.
    pub fn violations(&self) -> &[(&'static str, String)] {
        &self.violations
    }

    /// Takes note, and looks whether it may be.
    pub fn note(&mut self, fact: Fact) {
        match fact {
            Fact::Started { slot, pod, epoch } => self.started(slot, pod, epoch),
            Fact::Ended { pod, epoch } => {
                if self.alive.remove(&pod).is_some() {
                    match self.epochs.get_mut(&epoch) {
                        Some(count) if *count > 1 => *count -= 1,
                        _ => {
                            self.epochs.remove(&epoch);
                        }
                    }
                }
            }
            Fact::Succeeded { slot, epoch } => {
                self.well.insert(slot);
                *self.succeeded.entry(epoch).or_default() += 1;
            }
            Fact::PodEnded { slot, is_done: true } => drop(self.done.insert(slot)),
            Fact::PodEnded { slot, is_done: false } => self.unsee(slot),
            Fact::Resized { slots } => {
                self.well.retain(|slot| *slot < slots);
                self.unseen.retain(|slot| *slot < slots);
                self.done.retain(|slot| *slot < slots);
            }
            Fact::Lost { slot, epoch } => {
                self.causes += 1;
                self.unsee(slot);
                *self.lost.entry(epoch).or_default() += 1;
            }
            Fact::Stopped { slot, epoch, towards } => {
                if towards.is_some_and(|towards| towards <= epoch) {
                    self.fail(
                        "S5",
                        &format!("worker {slot} of epoch {epoch} stopped for {towards:?}"),
                    );
                }
                if towards.is_some() && self.causes == 0 {
                    self.fail("S9", &format!("worker {slot} stopped while nothing had failed"));
                }
            }
            Fact::Promised { slot, epoch, pod } => {
                if self.alive.contains_key(&pod) {
                    self.fail("S3", &format!("worker {slot} promised {epoch} while it ran"));
                }
                self.promised.entry(epoch).or_default().insert(slot);
            }
            Fact::Written(written) => self.written(written),
            Fact::Overruled => self.fail("S7", "an earlier leader was listened to"),
            Fact::RolledBack => {
                self.written = None;
                self.terminal = None;
            }
            Fact::Asked => self.causes += 1,
            Fact::Deleted => self.is_deleted = true,
            Fact::Silent => self.fail("L2", "nothing moves and nothing says why"),
        }
    }

    /// Looks at the end, after which nothing happens any more.
    pub fn end(&mut self, epoch: u32, is_terminal: bool) {
        if let Some((lost, _)) = self.lost.last_key_value()
            && *lost >= epoch
            && !is_terminal
        {
            self.fail("S12", &format!("a failure in epoch {lost} led to nothing"));
        }
    }

    /// Whether any worker process is there.
    pub fn is_anyone_running(&self) -> bool {
        !self.alive.is_empty()
    }

    /// Something is wrong that only the world itself can see.
    pub fn fail(&mut self, invariant: &'static str, what: &str) {
        if self.violations.iter().all(|(known, _)| *known != invariant) {
            self.violations.push((invariant, what.to_owned()));
        }
    }

    fn unsee(&mut self, slot: u32) {
        if self.well.remove(&slot) {
            self.unseen.insert(slot);
        }
    }

    fn started(&mut self, slot: u32, pod: u64, epoch: u32) {
        if let Some(other) = self.epochs.keys().find(|other| **other != epoch) {
            self.fail("S2", &format!("worker {slot} starts {epoch} while {other} runs"));
        }
        if self.is_deleted && Some(epoch) > self.released {
            self.fail("S8", &format!("worker {slot} starts {epoch} of a job that was deleted"));
        }
        if self.alive.values().any(|other| *other == (slot, epoch)) {
            self.fail("S4", &format!("two workers {slot} in epoch {epoch}"));
        }
        self.unseen.remove(&slot);
        if self.well.remove(&slot) && !self.rules.is_rejoining {
            self.fail("S10", &format!("worker {slot} has succeeded, and starts {epoch}"));
        }
        self.alive.insert(pod, (slot, epoch));
        *self.epochs.entry(epoch).or_default() += 1;
    }

    fn written(&mut self, now: Written) {
        let before = self.written;
        if self.is_deleted {
            self.fail("S8", &format!("{now:?} after the job was deleted"));
        }
        // Pods that are made anew are a restart of their own.
        if now.generation > self.generation {
            self.generation = now.generation;
            self.causes += 1;
            // Whatever was done has to be done again.
            self.done.clear();
            self.well.clear();
        }
        let is_same = |it: Written| (it.generation, it.epoch) == (now.generation, now.epoch);
        if let Some(before) = before {
            let is_back = (now.generation, now.epoch) < (before.generation, before.epoch);
            if is_back
                || (is_same(before)
                    && before.is_release
                    && !now.is_release
                    && !now.is_failure
                    && !now.is_success)
            {
                self.fail("S1", &format!("{now:?} after {before:?}"));
            }
            if is_same(before) && now.slots != before.slots && !before.is_suspended {
                let (epoch, slots) = (now.epoch, before.slots);
                self.fail("S3", &format!("epoch {epoch} of {slots} workers has {}", now.slots));
            }
            if now.counted < before.counted || now.counted > self.most_counted + 1 {
                self.fail("S6", &format!("{} restarts after {}", now.counted, before.counted));
            }
        }
        if self
            .terminal
            .is_some_and(|end| end.is_success != now.is_success || end.is_failure != now.is_failure)
        {
            self.fail("S8", &format!("{now:?} after the end"));
        }
        if now.is_release && self.released.is_none_or(|released| now.epoch > released) {
            self.released = Some(now.epoch);
            self.released(&now);
        }
        if now.counted > self.most_counted {
            self.most_counted = now.counted;
            // The failure may be that of pods which could not be made anew any more.
            let causes = self.causes + u32::from(now.is_failure);
            if now.counted > self.rules.max_restarts + 1 || now.counted > causes {
                self.fail(
                    "S6",
                    &format!("{} restarts counted for {} causes", now.counted, self.causes),
                );
            }
        }
        if now.is_success && self.terminal.is_none() {
            let count = if self.rules.is_rejoining {
                // A store that was wiped may not know the epoch, only that all have completed.
                self.succeeded.values().copied().max().unwrap_or(0)
            } else {
                let well = self.well.union(&self.unseen).filter(|slot| **slot < now.slots);
                u32::try_from(well.count()).unwrap_or(u32::MAX)
            };
            if count < now.slots {
                self.fail("S10", &format!("{count} of {} have succeeded", now.slots));
            }
        }
        if now.is_success || now.is_failure {
            self.terminal = Some(now);
        }
        self.written = Some(now);
    }

    fn released(&mut self, now: &Written) {
        let none = BTreeSet::new();
        let promised = self.promised.get(&now.epoch).unwrap_or(&none);
        // Who has left for good is not waited for.
        let promised = promised.union(&self.done).filter(|slot| **slot < now.slots).count();
        if promised < now.slots as usize {
            self.fail("S3", &format!("{} released after {promised} promises", now.epoch));
        }
        if let Some(other) = self.epochs.keys().find(|other| **other != now.epoch) {
            self.fail("S3", &format!("{} released while {other} runs", now.epoch));
        }
        if now.counted > self.rules.max_restarts {
            self.fail("S6", "released although the restarts are used up");
        }
    }
}
