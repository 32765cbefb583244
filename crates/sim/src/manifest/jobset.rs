//! JobSets as users might write them.

use lockstep_api::{labels::jobset::RESTARTS_MAX_PREFIX, strategy::Json};
use serde_json::{Value, json};

use crate::{api::map, chance::Chance};

/// A JobSet named `name`.
pub fn jobset(chance: &mut Chance, name: &str) -> Json {
    let names = ["x", "y", "z"];
    let names = &names[..chance.weighted(&[(3, 1_usize), (5, 2), (2, 3)])];
    let order = chance.weighted(&[(4, Order::Any), (3, Order::Listed), (3, Order::DependsOn)]);
    let jobs: Vec<Value> =
        (0..names.len()).map(|at| replicated_job(chance, names, at, order)).collect();
    // What is waited for must be able to come.
    let is_there =
        |name: &&str| jobs.iter().any(|job| job["name"] == *name && job["replicas"] != 0);
    let there: Vec<&str> = names.iter().copied().filter(is_there).collect();
    let mut spec = map(json!({}));
    let mut set = |key: &str, value: Value| drop(spec.insert(key.to_owned(), value));
    if order == Order::Listed {
        set("startupPolicy", json!({"startupPolicyOrder": "InOrder"}));
    }
    if chance.percent(60) {
        let operator = chance.pick(&["All", "Any"]);
        let targets = if chance.percent(50) { some(chance, &there) } else { Vec::new() };
        set("successPolicy", json!({"operator": operator, "targetReplicatedJobs": targets}));
    }
    if chance.percent(80) {
        set("failurePolicy", failure_policy(chance, &there));
    }
    if chance.percent(12) {
        set("suspend", json!(true));
    }
    if chance.percent(12) {
        set("ttlSecondsAfterFinished", json!(chance.pick(&[0, 5, 100])));
    }
    if chance.percent(20) {
        set("network", json!({"enableDNSHostnames": false}));
    }
    if chance.percent(2) {
        set("managedBy", json!("example.com/other"));
    }
    set("replicatedJobs", jobs.into());
    let rules = spec.get("failurePolicy").and_then(|policy| policy["rules"].as_array());
    let mut limits = Json::new();
    for rule in rules.into_iter().flatten().filter_map(|rule| rule["name"].as_str()) {
        if chance.percent(15) {
            let most = chance.between(0, 2).to_string();
            limits.insert(format!("{RESTARTS_MAX_PREFIX}{rule}"), json!(most));
        }
    }
    map(json!({"metadata": {"name": name, "annotations": limits}, "spec": spec}))
}

/// What says which replicated job starts when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Any,
    Listed,
    DependsOn,
}

fn replicated_job(chance: &mut Chance, names: &[&str], at: usize, order: Order) -> Value {
    let least = if at == 0 { 1 } else { 0 };
    let replicas = chance.weighted(&[(1, least), (10, 1), (8, 2)]);
    let mut job =
        json!({"name": names[at], "replicas": replicas, "template": {"spec": job_spec(chance)}});
    if order == Order::DependsOn && at > 0 && chance.percent(80) {
        let wanted = some(chance, &names[..at]);
        let status = |chance: &mut Chance| chance.pick(&["Ready", "Ready", "Complete"]);
        let list = wanted.iter().map(|on| json!({"name": on, "status": status(chance)}));
        job["dependsOn"] = list.collect::<Vec<_>>().into();
    }
    job
}

fn job_spec(chance: &mut Chance) -> Value {
    let size = chance.weighted(&[(3, 1), (2, 2)]);
    let policy = if chance.percent(15) { "OnFailure" } else { "Never" };
    let mut spec = json!({
        "parallelism": size,
        "completions": size,
        "backoffLimit": chance.weighted(&[(5, 0), (2, 1)]),
        "template": {"spec": {
            "restartPolicy": policy,
            "terminationGracePeriodSeconds": chance.pick(&[0, 1, 5]),
            "containers": [{"name": "main", "image": "worker"}],
        }},
    });
    if policy == "Never" && chance.percent(20) {
        let codes = json!({"operator": "In", "values": [42]});
        spec["podFailurePolicy"] = json!({"rules": [{"action": "FailJob", "onExitCodes": codes}]});
    }
    if chance.percent(8) {
        // Long enough for what goes well: what fails for ever is restarted for ever.
        spec["activeDeadlineSeconds"] = json!(chance.pick(&[30, 60]));
    }
    if chance.percent(15) {
        spec["ttlSecondsAfterFinished"] = json!(chance.pick(&[0, 5, 30]));
    }
    spec
}

fn failure_policy(chance: &mut Chance, there: &[&str]) -> Value {
    const ACTIONS: [&str; 7] = [
        "FailJobSet",
        "RestartJobSet",
        "RestartJobSetAndIgnoreMaxRestarts",
        "RestartJob",
        "RestartJobAndIgnoreMaxRestarts",
        "RestartReplicatedJob",
        "FailJob",
    ];
    const REASONS: [&str; 3] = ["BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy"];
    let rules = (0..chance.between(0, 3)).map(|at| {
        let mut rule = json!({"name": format!("rule{at}"), "action": chance.pick(&ACTIONS)});
        if chance.percent(40) {
            rule["onJobFailureReasons"] = json!([chance.pick(&REASONS)]);
        }
        if chance.percent(15) {
            rule["onJobFailureMessagePatterns"] = json!([chance.pick(&["limit$", "dead", "("])]);
        }
        if chance.percent(30) {
            rule["targetReplicatedJobs"] = json!(some(chance, there));
        }
        rule
    });
    let rules: Vec<Value> = rules.collect();
    json!({
        "maxRestarts": chance.weighted(&[(2, 0), (4, 1), (4, 2), (2, 5)]),
        "restartStrategy": chance.pick(&["Recreate", "BlockingRecreate"]),
        "rules": rules,
    })
}

/// At least one of `all`, in their order.
fn some<'a>(chance: &mut Chance, all: &[&'a str]) -> Vec<&'a str> {
    let first = chance.pick(all);
    all.iter().copied().filter(|one| *one == first || chance.percent(40)).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::jobset;
    use crate::{
        api::{Api, Kind},
        chance::Chance,
    };

    #[test]
    fn every_set_drawn_is_one_the_api_accepts_and_all_policies_are_drawn() {
        let mut shown = Vec::new();
        for seed in 0..400 {
            let mut api = Api::new(Timestamp::UNIX_EPOCH);
            let set = jobset(&mut Chance::new(seed, "job"), "a");
            shown.push(serde_json::to_string(&set).unwrap());
            let done = api.create(Kind::JobSet, set);
            assert!(done.is_ok(), "seed {seed}: {}\n{}", done.unwrap_err(), shown[shown.len() - 1]);
        }
        for wanted in [
            "InOrder",
            "\"Complete\"",
            "\"Ready\"",
            "\"Any\"",
            "BlockingRecreate",
            "\"Recreate\"",
            "FailJobSet",
            "\"RestartJobSet\"",
            "RestartJobSetAndIgnoreMaxRestarts",
            "\"RestartJob\"",
            "RestartJobAndIgnoreMaxRestarts",
            "RestartReplicatedJob",
            "\"FailJob\"",
            "\"replicas\":0",
            "\"suspend\":true",
            "ttlSecondsAfterFinished",
            "example.com/other",
            "max-restarts.rule0",
        ] {
            let count = shown.iter().filter(|set| set.contains(wanted)).count();
            assert!(count >= 3, "{wanted} is drawn {count} times of 400");
        }
    }
}
