//! Each failure leads to one restart, of what its rule says, as often as the policy allows.

use std::collections::BTreeMap;

use lockstep_api::jobset::{Action, JobSetStatus, ReplicatedJobStatus};

use super::{Checker, JobBook, Place, SetBook, Violation, ensure, rules::action};

/// Everything a status says of restarts.
pub(super) fn all(status: &JobSetStatus) -> (i32, i32, BTreeMap<String, [Vec<i32>; 2]>) {
    let entries = status.replicated_jobs_status.iter();
    let used = entries.filter(|entry| entry.job_restarts.iter().any(|count| *count > 0));
    let lists = |entry: &ReplicatedJobStatus| {
        [entry.job_restarts.clone(), entry.job_restarts_count_towards_max.clone()]
    };
    let single = used.map(|entry| (entry.name.clone(), lists(entry))).collect();
    (status.restarts, status.restarts_count_towards_max, single)
}

/// How many restarts count.
pub(super) fn counted(status: &JobSetStatus) -> i64 {
    let entries = status.replicated_jobs_status.iter();
    let single = entries.flat_map(|entry| &entry.job_restarts_count_towards_max);
    i64::from(status.restarts_count_towards_max)
        + single.map(|count| i64::from(*count)).sum::<i64>()
}

impl Checker {
    /// The restarts of a set are what they were, or there was one more and a reason for it.
    pub(super) fn check_restart(
        &self,
        uid: &str,
        set: &SetBook,
        new: &JobSetStatus,
    ) -> Result<(), Violation> {
        if all(&set.status) == all(new) {
            return Ok(());
        }
        let name = &set.name;
        let more = counted(new) - counted(&set.status);
        ensure(more == 0 || more == 1, || format!("set {name} counts {more} restarts at once"))?;
        let is_counted = more == 1;
        let most = set.set.spec.failure_policy.as_ref().map(|policy| policy.max_restarts);
        let most = i64::from(most.unwrap_or_default());
        ensure(!is_counted || counted(new) <= most, || {
            format!("set {name} counts {} restarts, allowed are {most}", counted(new))
        })?;
        let by_rules = rule_restarts(new) - rule_restarts(&set.status);
        ensure(by_rules == 0 || by_rules == 1, || {
            format!("set {name} counts {by_rules} restarts of its rules at once")
        })?;
        let failed: Vec<(&Place, &JobBook)> =
            self.current(uid, set).filter(|(_, job)| job.has("Failed")).collect();
        let is_reason = |wanted: Action, of: &dyn Fn(&Place) -> bool| {
            failed.iter().any(|(place, job)| of(place) && action(set, place, job) == wanted)
        };
        let singles = singles(&set.status, new);
        let is_right = match new.restarts - set.status.restarts {
            1 if is_counted => singles.is_empty() && is_reason(Action::RestartJobSet, &|_| true),
            1 => {
                let wanted = Action::RestartJobSetAndIgnoreMaxRestarts;
                singles.is_empty() && is_reason(wanted, &|_| true)
            }
            0 => {
                let [(first, index), ..] = &*singles else { return Err(odd(name)) };
                let is_it = |place: &Place| *place.group == **first && place.index == *index;
                let of_group = |place: &Place| *place.group == **first;
                let is_one = singles.len() == 1;
                let is_whole = singles.len() == set.replicas(first)
                    && singles.iter().all(|(group, _)| group == first);
                match is_counted {
                    true if is_one && is_reason(Action::RestartJob, &is_it) => true,
                    true => is_whole && is_reason(Action::RestartReplicatedJob, &of_group),
                    false => is_one && is_reason(Action::RestartJobAndIgnoreMaxRestarts, &is_it),
                }
            }
            _ => false,
        };
        ensure(is_right, || {
            let (before, after) = (all(&set.status), all(new));
            format!("set {name} restarts without a reason: {before:?}, then {after:?}")
        })
    }
}

/// How many restarts the rules of a set have led to.
fn rule_restarts(status: &JobSetStatus) -> i32 {
    status.lockstep.iter().flat_map(|kept| kept.rule_restarts.values()).sum()
}

/// The Jobs that were restarted by themselves, once; one that was restarted otherwise comes twice.
fn singles(old: &JobSetStatus, new: &JobSetStatus) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for entry in &new.replicated_jobs_status {
        let before = old.replicated_jobs_status.iter().find(|known| known.name == entry.name);
        for (index, count) in entry.job_restarts.iter().enumerate() {
            let known = before.and_then(|known| known.job_restarts.get(index).copied());
            let more = count - known.unwrap_or_default();
            let times = if more == 1 { 1 } else { 2 * usize::from(more != 0) };
            found.extend((0..times).map(|_| (entry.name.clone(), index)));
        }
    }
    found
}

fn odd(name: &str) -> Violation {
    Violation(format!("set {name} counts restarts, but restarts nothing"))
}
