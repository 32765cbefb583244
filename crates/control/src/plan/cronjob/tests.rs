use serde_json::{Value, json};

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A CronJob made at ten, every hour on the hour, with parts of its spec and its status.
fn cron(spec: Value, status: Value) -> CronJob {
    let mut all = json!({
        "metadata": {
            "name": "c", "namespace": "n", "uid": "cron",
            "creationTimestamp": "2026-03-02T10:00:30Z",
        },
        "spec": {
            "schedule": "0 * * * *",
            "jobTemplate": {
                "metadata": {"labels": {"a": "b"}, "annotations": {"k": "v"}},
                "spec": {"template": {"spec": {"containers": []}}},
            },
        },
        "status": status,
    });
    all["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

/// A Job that was started at a time, with a condition if it has one.
fn job(time: &str, condition: &str) -> Job {
    let minutes = at(time).as_second() / 60;
    let conditions = match condition {
        "" => json!([]),
        kind => json!([{"type": kind, "status": "True"}]),
    };
    serde_json::from_value(json!({
        "metadata": {
            "name": format!("c-{minutes}"), "namespace": "n", "uid": format!("job-{minutes}"),
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": time},
        },
        "status": {"conditions": conditions, "startTime": time, "completionTime": time},
    }))
    .unwrap()
}

fn active(jobs: &[&Job]) -> Value {
    let references = jobs.iter().map(|job| reference(job));
    json!({"active": references.collect::<Vec<_>>()})
}

fn planned(cron: &CronJob, jobs: &[&Job], now: &str) -> Plan {
    plan(View { cron, jobs }, at(now))
}

/// A plan in a few words: steps, then reasons of events, then why it waits.
fn words(plan: &Plan) -> String {
    let steps = plan.steps.iter().map(|step| match step {
        Step::Delete { name, .. } => format!("delete {name}"),
        Step::Start { job, .. } => format!("start {}", job.metadata.name.as_deref().unwrap()),
        Step::Record(_) => "record".to_owned(),
    });
    let events = plan.events.iter().map(|event| event.reason.clone());
    let waiting = plan.waiting.map(|waiting| format!("{waiting:?}"));
    steps.chain(events).chain(waiting).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_last_time_that_has_come_is_started_once() {
    let noon = "2026-03-02T11:00:00Z";
    let done = json!({"lastScheduleTime": noon});
    let cases = [
        ("not yet", json!({}), json!({}), "2026-03-02T10:59:59Z", "Time"),
        ("now", json!({}), json!({}), noon, "start c-29540820"),
        ("done", json!({}), done.clone(), "2026-03-02T11:00:01Z", "Time"),
        ("several missed", json!({}), done.clone(), "2026-03-02T15:30:00Z", "start c-29541060"),
        (
            "very many missed",
            json!({}),
            done.clone(),
            "2026-03-12T15:30:00Z",
            "start c-29555460, TooManyMissedTimes",
        ),
        (
            "within the deadline",
            json!({"startingDeadlineSeconds": 60}),
            done.clone(),
            "2026-03-12T15:00:59Z",
            "start c-29555460",
        ),
        (
            "beyond the deadline",
            json!({"startingDeadlineSeconds": 60}),
            done.clone(),
            "2026-03-12T15:01:01Z",
            "Time",
        ),
        ("suspended", json!({"suspend": true}), done.clone(), "2026-03-02T12:00:00Z", "Suspended"),
        (
            "in another time zone",
            json!({"schedule": "0 9 * * *", "timeZone": "America/New_York"}),
            json!({}),
            "2026-03-02T14:00:00Z",
            "start c-29541000",
        ),
        (
            "in a time zone that is none",
            json!({"timeZone": "Nowhere/Land"}),
            json!({}),
            noon,
            "UnknownTimeZone, NoSchedule",
        ),
        (
            "a schedule that is none",
            json!({"schedule": "often"}),
            json!({}),
            noon,
            "UnparseableSchedule, NoSchedule",
        ),
        (
            "a schedule that never comes",
            json!({"schedule": "59 23 31 2 *"}),
            json!({}),
            noon,
            "InvalidSchedule, NoSchedule",
        ),
        (
            "every ten minutes from when it was made",
            json!({"schedule": "@every 10m"}),
            json!({}),
            "2026-03-02T10:10:30Z",
            "start c-29540770",
        ),
    ];
    for (name, spec, status, now, want) in cases {
        assert_eq!(words(&planned(&cron(spec, status), &[], now)), want, "{name}");
    }
}

#[test]
fn policies_say_what_becomes_of_a_job_that_still_runs() {
    let running = job("2026-03-02T11:00:00Z", "");
    let almost = job("2026-03-02T11:00:00Z", "SuccessCriteriaMet");
    let ended = job("2026-03-02T11:00:00Z", "Complete");
    let now = "2026-03-02T12:00:00Z";
    let cases = [
        ("Allow", &running, "start c-29540880"),
        ("Forbid", &running, "JobAlreadyActive, Active"),
        // Its pods may still run: only the end counts.
        ("Forbid", &almost, "JobAlreadyActive, Active"),
        ("Forbid", &ended, "start c-29540880, SawCompletedJob"),
        ("Replace", &running, "delete c-29540820, start c-29540880"),
    ];
    for (policy, job, want) in cases {
        let mut status = active(&[job]);
        status["lastScheduleTime"] = "2026-03-02T11:00:00Z".into();
        let cron = cron(json!({"concurrencyPolicy": policy}), status);
        assert_eq!(words(&planned(&cron, &[job], now)), want, "{policy}");
    }
}

#[test]
fn the_status_follows_the_jobs() {
    let now = "2026-03-02T11:30:00Z";
    let running = job("2026-03-02T11:00:00Z", "");
    let done = job("2026-03-02T11:00:00Z", "Complete");
    let failed = job("2026-03-02T11:00:00Z", "Failed");
    let mut by_hand = running.clone();
    by_hand.metadata.name = Some("by-hand".to_owned());
    let last = |mut status: Value| {
        status["lastScheduleTime"] = "2026-03-02T11:00:00Z".into();
        status
    };
    let cases = [
        ("it runs", last(active(&[&running])), vec![&running], "Time"),
        ("it is done", last(active(&[&done])), vec![&done], "record, SawCompletedJob, Time"),
        ("it has failed", last(active(&[&failed])), vec![&failed], "record, SawCompletedJob, Time"),
        ("it is gone", last(active(&[&running])), vec![], "record, MissingJob, Time"),
        ("it was not written down", json!({}), vec![&running], "record, Time"),
        ("it is somebody's", last(json!({})), vec![&by_hand], "UnexpectedJob, Time"),
    ];
    for (name, status, jobs, want) in cases {
        let plan = planned(&cron(json!({}), status), &jobs, now);
        assert_eq!(words(&plan), want, "{name}");
    }
    let plan = planned(&cron(json!({}), last(active(&[&done]))), &[&done], now);
    let Some(Step::Record(status)) = plan.steps.first() else { panic!("{plan:?}") };
    assert_eq!(status.last_successful_time, Some(Time(at("2026-03-02T11:00:00Z"))));
    assert_eq!(status.active, None);
}

#[test]
fn old_jobs_are_cleaned_up_the_oldest_first() {
    let hours = ["08", "09", "10", "11"];
    let ended =
        |condition: &str| hours.map(|hour| job(&format!("2026-03-02T{hour}:00:00Z"), condition));
    let (complete, failed) = (ended("Complete"), ended("Failed"));
    let status = json!({
        "lastScheduleTime": "2026-03-02T11:00:00Z",
        "lastSuccessfulTime": "2026-03-02T11:00:00Z",
    });
    let limits = json!({"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1});
    let now = "2026-03-02T11:30:00Z";
    let cron = cron(limits, status);
    let plan = planned(&cron, &complete.iter().rev().collect::<Vec<_>>(), now);
    assert_eq!(words(&plan), "delete c-29540640, Time");
    let plan = planned(&cron, &failed.iter().collect::<Vec<_>>(), now);
    assert_eq!(words(&plan), "delete c-29540640, delete c-29540700, delete c-29540760, Time");
}

#[test]
fn a_job_is_what_the_template_says_and_knows_its_time() {
    let cron = cron(json!({"timeZone": "Asia/Tokyo"}), json!({}));
    let plan = planned(&cron, &[], "2026-03-02T11:00:00Z");
    let Some(Step::Start { job, status, done }) = plan.steps.first() else { panic!("{plan:?}") };
    let meta = serde_json::to_value(&job.metadata).unwrap();
    assert_eq!(
        meta,
        json!({
            "name": "c-29540820", "namespace": "n",
            "labels": {"a": "b"},
            "annotations": {
                "k": "v",
                "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-03-02T20:00:00+09:00",
            },
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "cron",
                "controller": true, "blockOwnerDeletion": true,
            }],
        })
    );
    assert_eq!(status.last_schedule_time, Some(Time(at("2026-03-02T11:00:00Z"))));
    assert_eq!((&*done.reason, &*done.message), ("SuccessfulCreate", "Created job c-29540820"));
    assert_eq!(plan.wake_at, Some(at("2026-03-02T12:00:00.1Z")));
}

#[test]
fn a_carried_out_plan_leaves_nothing_to_do() {
    let now = "2026-03-02T15:30:00Z";
    let running = job("2026-03-02T11:00:00Z", "");
    let done = job("2026-03-02T12:00:00Z", "Complete");
    for policy in ["Allow", "Forbid", "Replace"] {
        let spec = json!({"concurrencyPolicy": policy, "successfulJobsHistoryLimit": 0});
        let mut cron = cron(spec, active(&[&running, &done]));
        let mut jobs = vec![running.clone(), done.clone()];
        let first = planned(&cron, &jobs.iter().collect::<Vec<_>>(), now);
        for step in first.steps {
            match step {
                Step::Delete { uid, .. } => {
                    jobs.retain(|job| job.metadata.uid != Some(uid.clone()))
                }
                Step::Record(status) => cron.status = Some(*status),
                Step::Start { mut job, mut status, .. } => {
                    job.metadata.uid = Some("new".to_owned());
                    status.active.get_or_insert_default().push(reference(&job));
                    cron.status = Some(*status);
                    jobs.push(*job);
                }
            }
        }
        let again = planned(&cron, &jobs.iter().collect::<Vec<_>>(), now);
        assert_eq!(again.steps, [], "{policy}");
        assert_eq!(again.wake_at, Some(at("2026-03-02T16:00:00.1Z")), "{policy}");
    }
}
