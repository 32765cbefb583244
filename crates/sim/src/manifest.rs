//! Jobs as users might write them: drawn over everything the API accepts.

pub mod jobset;
pub mod queue;

use lockstep_api::strategy::Json;
use serde_json::{Value, json};

use crate::{api::map, chance::Chance};

/// The label of pods that a Job with a selector of its own selects by.
pub const MANUAL_LABEL: &str = "sim/team";

/// A Job named `name`.
pub fn job(chance: &mut Chance, name: &str) -> Json {
    let is_indexed = chance.percent(55);
    let mut spec = map(json!({}));
    let mut set = |key: &str, value: Value| drop(spec.insert(key.to_owned(), value));
    let completions = match is_indexed {
        true => Some(chance.weighted(&[(1, 0), (8, 1), (20, 2), (30, 3), (20, 4), (10, 6)])),
        false if chance.percent(25) => None,
        false => Some(chance.weighted(&[(1, 0), (10, 1), (20, 2), (20, 3), (10, 5)])),
    };
    let parallelism = chance.weighted(&[(1, 0), (15, 1), (30, 2), (20, 3), (10, 5)]);
    if let Some(completions) = completions {
        set("completions", json!(completions));
    }
    set("parallelism", json!(parallelism));
    set("completionMode", json!(if is_indexed { "Indexed" } else { "NonIndexed" }));
    if chance.percent(70) {
        set("backoffLimit", json!(chance.weighted(&[(3, 0), (4, 1), (5, 2), (4, 4), (2, 8)])));
    }
    let has_index_limit = is_indexed && chance.percent(35);
    if has_index_limit {
        set("backoffLimitPerIndex", json!(chance.between(0, 2)));
        if chance.percent(40) {
            let most = completions.unwrap_or_default();
            set("maxFailedIndexes", json!(chance.between(0, most)));
        }
    }
    let has_rules = chance.percent(30);
    if has_rules {
        set("podFailurePolicy", json!({"rules": failure_rules(chance, has_index_limit)}));
    }
    if is_indexed && completions.is_some_and(|n| n > 0) && chance.percent(40) {
        let most = completions.unwrap_or_default();
        set("successPolicy", json!({"rules": success_rules(chance, most)}));
    }
    if chance.percent(15) {
        set("activeDeadlineSeconds", json!(chance.pick(&[1, 5, 20, 60, 400])));
    }
    if chance.percent(15) {
        set("ttlSecondsAfterFinished", json!(chance.pick(&[0, 5, 100])));
    }
    if !has_rules && chance.percent(50) {
        set("podReplacementPolicy", json!(chance.pick(&["Failed", "TerminatingOrFailed"])));
    }
    if has_rules && chance.percent(50) {
        set("podReplacementPolicy", json!("Failed"));
    }
    match chance.below(40) {
        0 => set("managedBy", json!("example.com/other")),
        1 => set("managedBy", json!("kubernetes.io/job-controller")),
        _ => {}
    }
    if chance.percent(12) {
        set("suspend", json!(true));
    }
    let is_manual = chance.percent(8);
    if is_manual {
        set("manualSelector", json!(true));
        set("selector", json!({"matchLabels": {MANUAL_LABEL: name}}));
    }
    set("template", template(chance, name, has_rules));
    map(json!({"metadata": {"name": name}, "spec": spec}))
}

fn template(chance: &mut Chance, name: &str, has_rules: bool) -> Value {
    let policy = if !has_rules && chance.percent(25) { "OnFailure" } else { "Never" };
    json!({
        "metadata": {"labels": {MANUAL_LABEL: name}},
        "spec": {
            "restartPolicy": policy,
            "terminationGracePeriodSeconds": chance.pick(&[0, 1, 5, 30]),
            "containers": [{"name": "main", "image": "worker"}],
        },
    })
}

fn failure_rules(chance: &mut Chance, has_index_limit: bool) -> Vec<Value> {
    let count = chance.between(1, 3);
    (0..count)
        .map(|_| {
            let mut actions = vec!["FailJob", "Ignore", "Ignore", "Count"];
            if has_index_limit {
                actions.push("FailIndex");
            }
            let action = chance.pick(&actions);
            if chance.percent(40) {
                let condition = json!({"type": "DisruptionTarget", "status": "True"});
                return json!({"action": action, "onPodConditions": [condition]});
            }
            let (operator, values) = chance.pick(&[
                ("In", &[42] as &[i32]),
                ("In", &[1, 2]),
                ("In", &[137]),
                ("NotIn", &[1]),
                ("NotIn", &[0, 42]),
            ]);
            let mut codes = json!({"operator": operator, "values": values});
            if chance.percent(30) {
                codes["containerName"] = json!("main");
            }
            json!({"action": action, "onExitCodes": codes})
        })
        .collect()
}

fn success_rules(chance: &mut Chance, completions: i32) -> Vec<Value> {
    let count = chance.between(1, 2);
    (0..count)
        .map(|_| {
            let first = chance.between(0, completions - 1);
            let last = chance.between(first, completions - 1);
            let list = match last - first {
                0 => first.to_string(),
                _ => format!("{first}-{last}"),
            };
            match chance.below(3) {
                0 => json!({"succeededIndexes": list}),
                1 => json!({"succeededCount": chance.between(0, completions)}),
                _ => {
                    let most = last - first + 1;
                    json!({"succeededIndexes": list, "succeededCount": chance.between(1, most)})
                }
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::job;
    use crate::{
        api::{Api, Kind},
        chance::Chance,
    };

    #[test]
    fn every_job_drawn_is_one_the_api_accepts() {
        for seed in 0..500 {
            let mut api = Api::new(Timestamp::UNIX_EPOCH);
            let job = job(&mut Chance::new(seed, "job"), "a");
            let shown = serde_json::to_string(&job).unwrap();
            if let Err(status) = api.create(Kind::Job, job) {
                panic!("seed {seed}: {status}\n{shown}");
            }
        }
    }

    #[test]
    fn everything_a_job_can_ask_for_is_drawn() {
        let jobs: Vec<String> = (0..500)
            .map(|seed| serde_json::to_string(&job(&mut Chance::new(seed, "job"), "a")).unwrap())
            .collect();
        for wanted in [
            "\"Indexed\"",
            "\"NonIndexed\"",
            "backoffLimitPerIndex",
            "maxFailedIndexes",
            "FailIndex",
            "FailJob",
            "Ignore",
            "Count",
            "onPodConditions",
            "NotIn",
            "succeededIndexes",
            "succeededCount",
            "activeDeadlineSeconds",
            "ttlSecondsAfterFinished",
            "TerminatingOrFailed",
            "example.com/other",
            "kubernetes.io/job-controller",
            "\"suspend\":true",
            "manualSelector",
            "OnFailure",
            "\"completions\":0",
            "\"parallelism\":0",
        ] {
            let count = jobs.iter().filter(|job| job.contains(wanted)).count();
            assert!(count >= 3, "{wanted} is drawn {count} times of 500");
        }
        assert!(jobs.iter().any(|job| !job.contains("completions\"")), "a work queue is drawn");
    }
}
