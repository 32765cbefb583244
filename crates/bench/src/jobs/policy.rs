//! Success policies of the largest size.

use std::fmt::Write;
use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use lockstep_control::plan::job::{Memory, Options, View, plan};
use serde_json::json;

use crate::report::{Budget, Report, median};

const INDEXES: i32 = 100_000;
const RULES: usize = 20;
const RULE_BYTES: usize = 65_536;

/// How long it takes to read the rules, and to look at them once.
pub(crate) fn measure(report: &mut Report) {
    let with = job(RULES);
    let without = job(0);
    let read = |job: &Job| median((0..9).map(|_| timed(|| View::new(job.clone()))).collect());
    let reading = read(&with) - read(&without);
    let look = |job: &Job| {
        let (view, options, now) = (View::new(job.clone()), Options::default(), Timestamp::now());
        let memory = Memory::default();
        median((0..9).map(|_| timed(|| plan(&view, &memory, &options, now))).collect())
    };
    let looking = (look(&with) - look(&without)).max(0.0);
    report.add("reading 20 rules of 64 KiB", reading, "ms", Budget::None);
    let what = "success policy, 100,000 indexes, 20 rules of 64 KiB, one pass";
    report.add(what, looking, "ms", Budget::AtMost(20.0));
    let count = f64::from(u32::try_from(RULES).unwrap());
    report.add("the same, one rule", looking / count, "ms", Budget::AtMost(1.0));
}

/// How many milliseconds something takes.
fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let begun = Instant::now();
    let outcome = work();
    let took = begun.elapsed().as_secs_f64() * 1000.0;
    drop(outcome);
    took
}

/// A Job of which every second index has succeeded, with rules that want the others.
fn job(rules: usize) -> Job {
    let wanted = listed(1, RULE_BYTES);
    let rules: Vec<_> = (0..rules).map(|_| json!({"succeededIndexes": wanted})).collect();
    serde_json::from_value(json!({
        "metadata": {"name": "j", "namespace": "default", "uid": "u", "resourceVersion": "1"},
        "spec": {
            "completions": INDEXES, "parallelism": 1, "completionMode": "Indexed",
            "backoffLimit": 6, "successPolicy": {"rules": rules},
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}},
            "template": {"metadata": {"labels": {"batch.kubernetes.io/controller-uid": "u"}},
                "spec": {"containers": [{"name": "c"}], "restartPolicy": "Never"}},
        },
        "status": {"startTime": "2026-01-01T00:00:00Z", "completedIndexes": listed(0, usize::MAX)},
    }))
    .unwrap()
}

/// Every second index from `first` on, as far as there is room.
fn listed(first: i32, bytes_max: usize) -> String {
    let mut text = String::new();
    for index in (first..INDEXES).step_by(2) {
        if text.len() + 7 > bytes_max {
            break;
        }
        let comma = if text.is_empty() { "" } else { "," };
        write!(text, "{comma}{index}").unwrap();
    }
    text
}
