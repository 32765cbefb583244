//! Restarts in place: what the workers do, how long each restart took, and what is left of them.

use lockstep_api::{
    jobset::{InPlaceRestart, InPlaceStatus, InPlaceWorkers},
    reasons::jobset::{IN_PLACE_RESTART_FAILED, REACHED_MAX_RESTARTS},
};

use super::JobSet;

/// Phases of a gang in which its workers do not run, or not all of them, and somebody may ask why.
const HELD: [&str; 4] = ["Forming", "Stopping", "Recreating", "Surrendered"];

/// So many restarts in place a set remembers.
const RESTARTS_KEPT: usize = 16;

impl JobSet {
    /// How the workers of a set that restarts in place are doing.
    pub(crate) fn in_place(&self) -> Option<&InPlaceStatus> {
        self.status.lockstep.as_ref()?.in_place.as_ref()
    }

    /// Whether its workers have yet to come together for the first time, so that none of them runs.
    pub(crate) fn is_forming(&self) -> bool {
        let is_led = self.in_place_restarts.is_some();
        !self.has_ended() && is_led && self.in_place().is_none_or(|told| told.phase == "Forming")
    }

    /// How many workers it has.
    pub(crate) fn workers(&self) -> i64 {
        let groups = self.spec.replicated_jobs.iter();
        groups.map(|group| i64::from(group.replicas) * group_width(group)).sum()
    }

    /// What was restarted in place since a version of before was seen.
    pub(crate) fn restarted_in_place_since(&self, before: &Self) -> &[InPlaceRestart] {
        let last = before.in_place().and_then(|it| it.last_restarts.last());
        let last = last.map_or(-1, |restart| restart.epoch);
        let all = self.in_place().map(|it| it.last_restarts.as_slice()).unwrap_or_default();
        &all[all.partition_point(|restart| restart.epoch <= last)..]
    }

    /// A restart in place in two lines: what happened, and how long each part of it took.
    pub(crate) fn in_place_note(&self, restart: &InPlaceRestart) -> [String; 2] {
        let (workers, took) = (self.workers(), span(restart.total_micros()));
        let budget = self.budget().map(|budget| format!("; {budget}")).unwrap_or_default();
        let parts = restart.parts().map(|(part, micros)| format!("{part} {}", span(micros)));
        [
            format!(
                "restarted {workers} workers in place in {took} (epoch {}): {}{budget}",
                restart.epoch,
                cause(restart)
            ),
            parts.join(", "),
        ]
    }

    /// The last restart in place: `took 23.4 ms (epoch 1): train-workers-0-3 exited with code 1`.
    pub(crate) fn last_in_place(&self) -> Option<String> {
        let restart = self.in_place()?.last_restarts.last()?;
        let took = span(restart.total_micros());
        Some(format!("took {took} (epoch {}): {}", restart.epoch, cause(restart)))
    }

    /// How many restarts in place of a set that has ended did not get so far that all workers ran:
    /// one of them had failed again before.
    pub(crate) fn restarts_cut_short(&self) -> i64 {
        let Some(told) = self.in_place().filter(|_| self.has_ended()) else { return 0 };
        let is_all = told.last_restarts.len() < RESTARTS_KEPT;
        let whole = i64::try_from(told.last_restarts.len()).unwrap_or(i64::MAX);
        // The one that a set has failed of was counted, but never made.
        let refused = i64::from(self.why.reason == REACHED_MAX_RESTARTS);
        let made = i64::from(told.restarts) - i64::from(self.recreations()) - refused;
        if is_all { (made - whole).max(0) } else { 0 }
    }

    /// Where the workers are, and what each does where that differs:
    /// `epoch 2, Stopping: 5 waiting (0-4), 3 stopping (5-7)`.
    pub(crate) fn workers_words(&self) -> Option<String> {
        let told = self.in_place()?;
        if self.has_ended() {
            return Some(format!("epoch {}", told.epoch));
        }
        let words = format!("epoch {}, {}", told.epoch, told.phase);
        let groups = doing(told);
        let is_old = groups == self.history.workers_before;
        if groups.is_empty() || is_old || is_all_running(told, groups) {
            return Some(words);
        }
        let groups: Vec<String> = groups.iter().map(group_words).collect();
        Some(format!("{words}: {}", groups.join(", ")))
    }

    /// Why the workers do not run, when they have not for some time.
    pub(crate) fn why_workers_wait(&self) -> Option<String> {
        let told = self.in_place().filter(|told| HELD.contains(&told.phase.as_str()))?;
        let is_said = !self.has_ended() && !told.waiting.is_empty();
        is_said.then(|| format!("the workers wait: {}", told.waiting))
    }

    /// The same without its numbers: how many wait changes all the time, what for does not.
    pub(crate) fn kind_of_wait(&self) -> String {
        let said = self.why_workers_wait().unwrap_or_default();
        let words = said.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic));
        let epoch = self.in_place().map(|it| it.epoch).unwrap_or_default();
        format!("{epoch} {}", words.collect::<Vec<_>>().join(" "))
    }

    /// How many restarts count, in place and otherwise. The last one that a set has failed of was
    /// counted, but never made.
    pub(super) fn in_place_counted(&self) -> Option<i64> {
        let counted = self.gang_counted()? + self.own_restarts_counted();
        let is_refused = self.has_ended() && self.why.reason == REACHED_MAX_RESTARTS;
        Some(if is_refused { counted.min(self.restarts_max()) } else { counted })
    }

    /// How many restarts in place did not count, because a rule on exit codes says so.
    pub(super) fn in_place_uncounted(&self) -> i64 {
        let Some((told, counted)) = self.in_place().zip(self.gang_counted()) else { return 0 };
        i64::from(told.restarts) - counted
    }

    /// How many restarts that count are not the set's own. The annotation has both, but of the
    /// set's own those only that were there when it was written.
    fn gang_counted(&self) -> Option<i64> {
        let own = self.history.own_in_count.unwrap_or_else(|| self.own_restarts_counted());
        Some(i64::from(self.in_place_restarts?) - own)
    }

    /// Takes note of how many restarts of the set's own its annotation has.
    pub(super) fn note_own_in_count(&mut self, before: &Self) {
        let is_written = self.in_place_restarts != before.in_place_restarts;
        let known = before.history.own_in_count.unwrap_or_else(|| before.own_restarts_counted());
        let own = if is_written { self.own_restarts_counted() } else { known };
        self.history.own_in_count = Some(own);
    }

    /// How often all Jobs were made anew because the workers could not be restarted in place. The
    /// workers' own count has them.
    pub(super) fn recreations(&self) -> i32 {
        let records = self.status.lockstep.iter().flat_map(|own| &own.last_restarts);
        let anew = records.filter(|record| record.reason == IN_PLACE_RESTART_FAILED).count();
        i32::try_from(anew).unwrap_or(i32::MAX)
    }

    fn restarts_max(&self) -> i64 {
        self.spec.failure_policy.as_ref().map_or(0, |policy| i64::from(policy.max_restarts))
    }
}

/// How many pods a Job of a replicated job has.
pub(crate) fn group_width(group: &lockstep_api::jobset::ReplicatedJob) -> i64 {
    let job = group.template.spec.as_ref();
    i64::from(job.and_then(|job| job.parallelism).unwrap_or(1))
}

/// What the workers do, unless that was told before the phase they are in now: it is written down
/// only when it has not changed for a while.
pub(crate) fn doing(told: &InPlaceStatus) -> &[InPlaceWorkers] {
    let is_old = |group: &InPlaceWorkers| match told.phase.as_str() {
        "Forming" | "Stopping" | "Recreating" => {
            matches!(group.state.as_str(), "Running" | "Starting")
        }
        "Running" | "Surrendered" => {
            matches!(group.state.as_str(), "Stopping" | "Waiting")
                || group.epoch.is_some_and(|epoch| epoch != told.epoch)
        }
        _ => true,
    };
    if told.workers.iter().any(is_old) { &[] } else { &told.workers }
}

/// Who failed, and of what: `train-workers-0-3 exited with code 1`.
pub(crate) fn cause(restart: &InPlaceRestart) -> String {
    let InPlaceRestart { worker, cause, .. } = restart;
    // What happened to its pod or container is no sentence about the worker.
    if cause.starts_with("its ") {
        format!("{worker}: {cause}")
    } else {
        format!("{worker} {cause}")
    }
}

/// A time as people read it: `0.4 ms`, `345 ms`, `3.01 s`.
pub(crate) fn span(micros: i64) -> String {
    let micros = micros.max(0);
    match micros {
        0..99_950 => {
            let tenths = (micros + 50) / 100;
            format!("{}.{} ms", tenths / 10, tenths % 10)
        }
        99_950..999_500 => format!("{} ms", (micros + 500) / 1000),
        _ => {
            let hundredths = (micros + 5_000) / 10_000;
            format!("{}.{:02} s", hundredths / 100, hundredths % 100)
        }
    }
}

fn is_all_running(told: &InPlaceStatus, groups: &[InPlaceWorkers]) -> bool {
    told.phase == "Running" && groups.iter().all(|group| group.state == "Running")
}

fn group_words(group: &InPlaceWorkers) -> String {
    format!("{} {} ({})", group.count, group.state.to_lowercase(), group.places)
}

#[cfg(test)]
pub(crate) mod tests;
