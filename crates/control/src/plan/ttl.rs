//! When a finished Job has been kept long enough (`spec.ttlSecondsAfterFinished`).

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;

/// When the Job is to be deleted; `None` while nothing says that it ever is. A moment in the past
/// means now.
pub fn expires_at(job: &Job) -> Option<Timestamp> {
    if job.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let ttl = job.spec.as_ref()?.ttl_seconds_after_finished?;
    let conditions = job.status.as_ref()?.conditions.as_deref().unwrap_or_default();
    let finished = conditions.iter().find(|condition| {
        matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True"
    })?;
    // Without the moment it finished, the moment it is seen again will do: it comes with a change.
    let at = finished.last_transition_time.as_ref()?.0;
    Some(at.saturating_add(SignedDuration::from_secs(ttl.into())).unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(ttl: Value, conditions: Value, deleted: Value) -> Job {
        serde_json::from_value(json!({
            "metadata": {"deletionTimestamp": deleted},
            "spec": {"ttlSecondsAfterFinished": ttl, "template": {}},
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    fn condition(kind: &str, status: &str, at: &str) -> Value {
        json!({"type": kind, "status": status, "lastTransitionTime": at})
    }

    #[test]
    fn a_job_expires_so_long_after_it_finished() {
        let at = "2026-01-01T00:00:10Z";
        let done = json!([
            condition("Suspended", "True", "2026-01-01T00:00:01Z"),
            condition("SuccessCriteriaMet", "True", "2026-01-01T00:00:02Z"),
            condition("Complete", "True", at),
        ]);
        let failed = json!([condition("Failed", "True", at)]);
        let unfinished = json!([condition("Complete", "False", at)]);
        let timeless = json!([{"type": "Complete", "status": "True"}]);
        let cases = [
            ("complete", job(json!(5), done.clone(), Value::Null), Some("2026-01-01T00:00:15Z")),
            ("at once", job(json!(0), failed.clone(), Value::Null), Some(at)),
            ("no limit", job(Value::Null, failed, Value::Null), None),
            ("not finished", job(json!(5), unfinished, Value::Null), None),
            ("being deleted", job(json!(5), done, json!(at)), None),
            ("nobody knows when", job(json!(5), timeless, Value::Null), None),
            ("nothing known", Job::default(), None),
        ];
        for (name, job, want) in cases {
            assert_eq!(expires_at(&job), want.map(|at| at.parse().unwrap()), "{name}");
        }
    }
}
