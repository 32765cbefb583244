//! Which time has come, and which comes next. The counting is upstream's
//! (`pkg/controller/cronjob/utils.go`): rough where very many times were missed, so that a CronJob
//! that nobody looked at for years costs no more than one that was looked at a minute ago.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, CronJobStatus};
use lockstep_api::cron::Schedule;

/// From so many missed times on something is wrong.
const MISSED_MAX: i64 = 100;

const TOO_CLOSE: &str = "time difference between two schedules is less than 1 second";

/// How many times were missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missed {
    None,
    Few,
    Many,
}

/// The last time that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) at: Option<Timestamp>,
    pub(super) missed: Missed,
}

impl Due {
    /// The last time that has come since the one that was last acted on, and within the deadline.
    pub(super) fn of(
        cron: &CronJob,
        status: &CronJobStatus,
        now: Timestamp,
        schedule: &Schedule,
    ) -> Result<Self, &'static str> {
        let mut since = since(cron, status);
        if let Some(limit) = cron.spec.starting_deadline_seconds {
            let earliest = now.saturating_sub(SignedDuration::from_secs(limit));
            since = since.max(earliest.unwrap_or(Timestamp::MIN));
        }
        most_recent(since, now, schedule)
    }
}

/// When to look again: the first time after the last one that has come.
pub(super) fn next(
    cron: &CronJob,
    status: &CronJobStatus,
    now: Timestamp,
    schedule: &Schedule,
) -> Option<Timestamp> {
    let since = since(cron, status);
    let last = match most_recent(since, now, schedule) {
        Ok(Due { at: Some(at), .. }) => at,
        Ok(Due { at: None, missed: Missed::None }) => since,
        Ok(_) | Err(_) => now,
    };
    schedule.next(last)
}

/// From when on times count.
fn since(cron: &CronJob, status: &CronJobStatus) -> Timestamp {
    let created = cron.metadata.creation_timestamp.as_ref();
    let last = status.last_schedule_time.as_ref().or(created);
    last.map_or(Timestamp::MIN, |time| time.0)
}

fn most_recent(since: Timestamp, now: Timestamp, schedule: &Schedule) -> Result<Due, &'static str> {
    let first = schedule.next(since).ok_or(TOO_CLOSE)?;
    if now < first {
        return Ok(Due { at: None, missed: Missed::None });
    }
    let second = schedule.next(first).ok_or(TOO_CLOSE)?;
    if now < second {
        return Ok(Due { at: Some(first), missed: Missed::None });
    }
    let between = second.duration_since(first).as_secs();
    if between < 1 {
        return Err(TOO_CLOSE);
    }
    let count = now.duration_since(first).as_secs() / between + 1;
    // One more step back than the count says: not all times are equally far apart.
    let back = SignedDuration::from_secs((count - 2).saturating_mul(between));
    let mut at = None;
    let mut from = first.saturating_add(back).unwrap_or(Timestamp::MAX);
    while let Some(time) = schedule.next(from).filter(|time| *time <= now) {
        (at, from) = (Some(time), time);
    }
    let missed = if count > MISSED_MAX { Missed::Many } else { Missed::Few };
    Ok(Due { at, missed })
}
