//! One JobSet of a run: where it stands, how far its replicated jobs are, and what is left of its
//! restarts.

mod answer;
mod history;
pub(crate) mod in_place;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use lockstep_api::{
    jobset::{self, DependsOnStatus, JobSetStatus, ReplicatedJobStatus},
    labels::jobset::{IN_PLACE_RESTARTS, MANAGED_BY_SELF, RESTARTS_MAX_PREFIX},
    reasons::jobset::{COMPLETED, FAILED, RESTARTING, STARTUP_POLICY, SUSPENDED},
};
use serde::Deserialize;
use serde_json::Value;

pub(crate) use self::{
    answer::why_matches,
    history::{Failure, History, Restart, recreation_words},
};
use super::job::{self, Why};

/// Where a JobSet stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nobody has looked at it yet.
    #[default]
    Pending,
    /// It runs.
    Running,
    /// It is suspended.
    Suspended,
    /// Its Jobs are replaced by those of the next attempt.
    Restarting,
    /// It succeeded.
    Completed,
    /// It failed.
    Failed,
    /// It disappeared before it ended.
    Gone,
}

impl Phase {
    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Suspended => "Suspended",
            Self::Restarting => "Restarting",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
            Self::Gone => "Deleted",
        }
    }
}

/// A JobSet as it was last seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobSet {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Its uid.
    pub(crate) uid: String,
    /// The LocalQueue it is to wait in, if it names one.
    pub(crate) queue: Option<String>,
    /// Where it stands.
    pub(crate) phase: Phase,
    /// What decided that.
    pub(crate) why: Why,
    /// What it is meant to be.
    pub(crate) spec: jobset::JobSetSpec,
    /// How far it is.
    pub(crate) status: JobSetStatus,
    /// How often single rules may restart something, by their names.
    pub(crate) limits: BTreeMap<String, i64>,
    /// How many restarts count, as a set that restarts in place says.
    pub(crate) in_place_restarts: Option<u32>,
    /// When it was made.
    pub(crate) created: Option<Timestamp>,
    /// When it ended.
    pub(crate) ended: Option<Timestamp>,
    /// What its attempts came to.
    pub(crate) history: History,
}

impl JobSet {
    /// Reads a JobSet. What cannot be read counts as absent.
    pub(crate) fn read(object: &Value) -> Self {
        let meta = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let status = JobSetStatus::deserialize(&object["status"]).unwrap_or_default();
        let mut set = Self {
            namespace: text(&meta["namespace"]),
            name: text(&meta["name"]),
            uid: text(&meta["uid"]),
            queue: job::queue(meta),
            spec: jobset::JobSetSpec::deserialize(&object["spec"]).unwrap_or_default(),
            limits: limits(&meta["annotations"]),
            in_place_restarts: meta["annotations"][IN_PLACE_RESTARTS]
                .as_str()
                .and_then(|count| count.parse().ok()),
            created: meta["creationTimestamp"].as_str().and_then(|text| text.parse().ok()),
            status,
            ..Self::default()
        };
        let order = [
            (COMPLETED, Phase::Completed),
            (FAILED, Phase::Failed),
            (SUSPENDED, Phase::Suspended),
            (RESTARTING, Phase::Restarting),
        ];
        let mut found = order.into_iter().filter_map(|(kind, phase)| {
            let condition = set.condition(kind).filter(|it| it.status == "True")?;
            Some((phase, condition.clone()))
        });
        let has_begun = !set.status.replicated_jobs_status.is_empty();
        let (phase, condition) = match found.next() {
            Some((phase, condition)) => (phase, Some(condition)),
            None if has_begun => (Phase::Running, None),
            None => (Phase::Pending, None),
        };
        set.phase = phase;
        if let Some(condition) = condition {
            if set.has_ended() {
                set.ended = Some(condition.last_transition_time.0);
            }
            set.why = Why { reason: condition.reason, message: condition.message };
        }
        set
    }

    /// Whether it is over.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Completed | Phase::Failed | Phase::Gone)
    }

    /// Whether it is meant to be suspended.
    pub(crate) fn is_suspended(&self) -> bool {
        self.spec.suspend == Some(true)
    }

    /// Whoever else runs it, if somebody does.
    pub(crate) fn manager(&self) -> Option<&str> {
        self.spec.managed_by.as_deref().filter(|name| *name != MANAGED_BY_SELF)
    }

    /// Whether anything of it may be started more than once.
    pub(crate) fn may_restart(&self) -> bool {
        self.spec.failure_policy.is_some()
    }

    /// How far a replicated job is.
    pub(crate) fn counts(&self, name: &str) -> Option<&ReplicatedJobStatus> {
        self.status.replicated_jobs_status.iter().find(|entry| entry.name == name)
    }

    /// What keeps it from ever ending, whatever else happens in a cluster of one's own.
    pub(crate) fn hindrance(&self) -> Option<String> {
        let replicas = self.spec.replicated_jobs.iter().map(|job| i64::from(job.replicas));
        if self.has_ended() {
            None
        } else if let Some(manager) = self.manager() {
            Some(format!("is left to {manager} (spec.managedBy), which does not run here"))
        } else if self.is_suspended() {
            Some("is suspended: set spec.suspend to false to start it".to_owned())
        } else if replicas.sum::<i64>() == 0 {
            Some("has no Jobs (spec.replicatedJobs), so it never completes".to_owned())
        } else {
            None
        }
    }

    /// What it waits for by its own account: a replicated job that others depend on, or that comes
    /// before them.
    pub(crate) fn why_holds_back(&self) -> Option<String> {
        if self.has_ended() || self.is_suspended() {
            return None;
        }
        let order = self.condition(STARTUP_POLICY).filter(|it| it.status == "False");
        if let Some(condition) = order {
            return Some(condition.message.clone());
        }
        self.blocked().next()
    }

    /// Why replicated jobs do not start that depend on others.
    pub(crate) fn blocked(&self) -> impl Iterator<Item = String> {
        self.spec.replicated_jobs.iter().filter_map(|job| {
            let depends = job.depends_on.iter().flatten();
            let unmet = depends.into_iter().find(|it| !self.is_met(&it.name, it.status))?;
            let wanted = match unmet.status {
                DependsOnStatus::Complete => "to be complete",
                _ => "to be ready",
            };
            Some(format!("replicated job {} waits for {} {wanted}", job.name, unmet.name))
        })
    }

    fn is_met(&self, name: &str, wanted: DependsOnStatus) -> bool {
        let job = self.spec.replicated_jobs.iter().find(|job| job.name == name);
        let (Some(job), Some(counts)) = (job, self.counts(name)) else { return false };
        let have = match wanted {
            DependsOnStatus::Complete => counts.succeeded,
            DependsOnStatus::Ready | DependsOnStatus::Unknown => {
                counts.failed + counts.ready + counts.succeeded
            }
        };
        have == job.replicas
    }

    /// How many restarts counted, of Jobs alone and in place too.
    pub(crate) fn restarts_counted(&self) -> i64 {
        self.own_restarts_counted().max(self.in_place_counted().unwrap_or_default())
    }

    /// The same without those in place.
    fn own_restarts_counted(&self) -> i64 {
        let entries = self.status.replicated_jobs_status.iter();
        let alone = entries.flat_map(|entry| &entry.job_restarts_count_towards_max);
        i64::from(self.status.restarts_count_towards_max)
            + alone.map(|count| i64::from(*count)).sum::<i64>()
    }

    /// `1 of 10 restarts used, 9 left; 2 more did not count`; nothing where there is no policy.
    pub(crate) fn budget(&self) -> Option<String> {
        let most = i64::from(self.spec.failure_policy.as_ref()?.max_restarts);
        let used = self.restarts_counted();
        let left = (most - used).max(0);
        let anew = self.status.restarts - self.status.restarts_count_towards_max;
        let anew = i64::from(anew - self.recreations()).max(0);
        let free = match anew + self.in_place_uncounted().max(0) {
            ..=0 => String::new(),
            more => format!("; {more} more did not count"),
        };
        let rules: String = self
            .limits
            .keys()
            .filter_map(|rule| Some(format!("; {}", self.rule_budget(rule)?)))
            .collect();
        Some(format!("{used} of {most} restarts used, {left} left{free}{rules}"))
    }

    /// `rule r used 2 of 3`; nothing where the rule has no limit of its own.
    pub(crate) fn rule_budget(&self, rule: &str) -> Option<String> {
        let most = self.limits.get(rule)?;
        let own = self.status.lockstep.as_ref();
        let used = own.and_then(|own| own.rule_restarts.get(rule)).copied().unwrap_or_default();
        Some(format!("rule {rule} used {used} of {most}"))
    }

    /// `attempt 1; driver 1/1 ready; workers 2/4 ready, 1 done`.
    pub(crate) fn progress(&self) -> String {
        let groups = self.spec.replicated_jobs.iter();
        let groups = groups.map(|job| format!("{} {}", job.name, self.group_words(job)));
        let attempt = self.may_restart().then(|| format!("attempt {}", self.status.restarts));
        let workers = self.workers_words();
        attempt.into_iter().chain(workers).chain(groups).collect::<Vec<_>>().join("; ")
    }

    /// How far a replicated job is: `2/4 ready, 1 done, 1 failed`.
    pub(crate) fn group_words(&self, job: &jobset::ReplicatedJob) -> String {
        let none = ReplicatedJobStatus::default();
        let counts = self.counts(&job.name).unwrap_or(&none);
        let total = job.replicas;
        if counts.succeeded == total && total > 0 {
            return format!("{total}/{total} done");
        }
        let mut parts = vec![format!("{}/{total} ready", counts.ready)];
        let more = [
            (counts.succeeded, "done"),
            (counts.failed, "failed"),
            (counts.suspended, "suspended"),
            (counts.job_restarts.iter().sum(), "restarted alone"),
        ];
        parts.extend(
            more.into_iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")),
        );
        parts.join(", ")
    }

    /// How many of its Jobs are complete: `3/5 Jobs done`.
    pub(crate) fn jobs_done(&self) -> String {
        let done: i32 = self.status.replicated_jobs_status.iter().map(|it| it.succeeded).sum();
        let total: i64 = self.spec.replicated_jobs.iter().map(|job| i64::from(job.replicas)).sum();
        format!("{done}/{total} Jobs done")
    }

    fn condition(
        &self,
        kind: &str,
    ) -> Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
        self.status.conditions.iter().find(|condition| condition.type_ == kind)
    }
}

fn limits(annotations: &Value) -> BTreeMap<String, i64> {
    let all = annotations.as_object().into_iter().flatten();
    all.filter_map(|(key, value)| {
        let rule = key.strip_prefix(RESTARTS_MAX_PREFIX)?;
        Some((rule.to_owned(), value.as_str()?.parse().ok()?))
    })
    .collect()
}
