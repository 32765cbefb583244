//! Queues, and Jobs that wait in them.

use std::time::Duration;

use lockstep_api::{
    kueue::{Requeuing, RequeuingTimestamp, WaitForPodsReady},
    labels::kueue::{
        BLOCK_ADMISSION, PODS_READY_RECOVERY_TIMEOUT, PODS_READY_TIMEOUT, PRIORITY_CLASS,
        QUEUE_NAME, REQUEUING_BASE, REQUEUING_LIMIT, REQUEUING_TIMESTAMP, WAIT_FOR_PODS_READY,
    },
    strategy::Json,
};
use serde_json::{Value, json};

use crate::{
    api::{Kind, map},
    chance::Chance,
};

/// The classes of priority there are.
pub const CLASSES: [(&str, i32); 2] = [("low", -10), ("high", 10)];
/// The LocalQueues there are.
pub const LOCAL_QUEUES: [&str; 3] = ["q0", "q1", "q2"];
const FLAVORS: [&str; 2] = ["f0", "f1"];

/// What is drawn about the queues of a world.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Flavors and queues, in the order in which they are to be made.
    pub objects: Vec<(Kind, Json)>,
    /// Whether and how pods are waited for.
    pub wait: Option<WaitForPodsReady>,
}

/// Draws the queues of a world.
pub fn draw(chance: &mut Chance) -> Drawn {
    let wait = chance.percent(80).then(|| wait(chance));
    let flavors = chance.weighted(&[(3, 1), (1, 2)]);
    let queues = chance.weighted(&[(3, 1), (4, 2), (3, 3)]);
    let has_cohort = chance.percent(60);
    let mut objects = Vec::new();
    for name in &FLAVORS[..flavors] {
        let spec = json!({"nodeLabels": {"sim/flavor": name}});
        let meta = json!({"name": name, "annotations": annotations(chance, 15)});
        objects.push((Kind::Flavor, map(json!({"metadata": meta, "spec": spec}))));
    }
    for number in 0..queues {
        let queue = cluster_queue(chance, &format!("c{number}"), &FLAVORS[..flavors], has_cohort);
        objects.push((Kind::ClusterQueue, queue));
    }
    for (number, name) in LOCAL_QUEUES.iter().enumerate() {
        let spec = json!({"clusterQueue": format!("c{}", number % queues)});
        let meta = json!({"name": name, "annotations": annotations(chance, 15)});
        objects.push((Kind::LocalQueue, map(json!({"metadata": meta, "spec": spec}))));
    }
    Drawn { objects, wait }
}

fn wait(chance: &mut Chance) -> WaitForPodsReady {
    let seconds = Duration::from_secs;
    WaitForPodsReady {
        timeout: seconds(chance.pick(&[4, 10, 30])),
        recovery_timeout: chance.pick(&[None, Some(3), Some(20)]).map(seconds),
        block_admission: chance.percent(40),
        requeuing: Requeuing {
            timestamp: chance.pick(&[RequeuingTimestamp::Eviction, RequeuingTimestamp::Creation]),
            limit: chance.pick(&[None, Some(0), Some(1), Some(3)]),
            base: seconds(chance.pick(&[1, 5])),
            max: seconds(chance.pick(&[2, 20])),
        },
    }
}

/// In so many of a hundred cases, what is said here otherwise than for all.
fn annotations(chance: &mut Chance, percent: u32) -> Value {
    let mut said = json!({});
    if !chance.percent(percent) {
        return said;
    }
    let words: [(&str, &[&str]); 7] = [
        (BLOCK_ADMISSION, &["true", "true", "false"]),
        (WAIT_FOR_PODS_READY, &["true", "true", "false"]),
        (PODS_READY_TIMEOUT, &["4s", "10s"]),
        (PODS_READY_RECOVERY_TIMEOUT, &["0s", "3s"]),
        (REQUEUING_TIMESTAMP, &["Eviction", "Creation"]),
        (REQUEUING_LIMIT, &["0", "2"]),
        (REQUEUING_BASE, &["1", "3"]),
    ];
    for (key, values) in words {
        if chance.percent(40) {
            said[key] = json!(chance.pick(values));
        }
    }
    said
}

fn cluster_queue(chance: &mut Chance, name: &str, flavors: &[&str], has_cohort: bool) -> Json {
    let mut quotas = Vec::new();
    for flavor in flavors {
        let nominal = chance.between(1, 5);
        let mut quota = json!({"name": "cpu", "nominalQuota": nominal.to_string()});
        if has_cohort && chance.percent(40) {
            quota["borrowingLimit"] = json!(chance.between(0, 3).to_string());
        }
        quotas.push(json!({"name": flavor, "resources": [quota]}));
    }
    let mut spec = json!({
        "namespaceSelector": {},
        "queueingStrategy": chance.pick(&["StrictFIFO", "BestEffortFIFO"]),
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": quotas}],
        "preemption": {
            "withinClusterQueue":
                chance.pick(&["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
            "reclaimWithinCohort": chance.pick(&["Never", "LowerPriority", "Any"]),
        },
    });
    if has_cohort {
        spec["cohortName"] = json!("all");
    }
    let meta = json!({"name": name, "annotations": annotations(chance, 25)});
    map(json!({"metadata": meta, "spec": spec}))
}

/// A JobSet named `name` that waits in one of the queues. Most start in order, so that pods are
/// waited for stage by stage.
pub fn jobset(chance: &mut Chance, name: &str) -> Json {
    let mut labels = json!({QUEUE_NAME: chance.pick(&LOCAL_QUEUES)});
    if chance.percent(40) {
        labels[PRIORITY_CLASS] = json!(chance.pick(&["low", "high"]));
    }
    let names = ["x", "y", "z"];
    let names = &names[..chance.weighted(&[(1, 1_usize), (4, 2), (2, 3)])];
    let jobs = names.iter().map(|name| {
        let size = chance.weighted(&[(4, 1), (2, 2)]);
        let cpu = chance.weighted(&[(8, "1"), (2, "500m"), (1, "2")]);
        let container = json!({"name": "main", "image": "worker",
            "resources": {"requests": {"cpu": cpu}}});
        let template = json!({"spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": chance.pick(&[0, 1, 5]),
            "containers": [container],
        }});
        let spec = json!({"parallelism": size, "completions": size,
            "backoffLimit": chance.pick(&[0, 2]), "template": template});
        json!({"name": name, "replicas": chance.weighted(&[(4, 1), (1, 2)]),
            "template": {"spec": spec}})
    });
    let mut spec = json!({"suspend": true, "replicatedJobs": jobs.collect::<Vec<_>>()});
    if chance.percent(75) {
        spec["startupPolicy"] = json!({"startupPolicyOrder": "InOrder"});
    }
    if chance.percent(60) {
        spec["failurePolicy"] = json!({"maxRestarts": chance.pick(&[0, 1, 3])});
    }
    map(json!({"metadata": {"name": name, "labels": labels}, "spec": spec}))
}

/// A Job named `name` that waits in one of the queues.
pub fn job(chance: &mut Chance, name: &str) -> Json {
    let parallelism = chance.weighted(&[(4, 1), (4, 2), (2, 3)]);
    let completions = parallelism + chance.weighted(&[(4, 0), (2, 1), (1, 2)]);
    let is_indexed = chance.percent(50);
    let cpu = chance.weighted(&[(8, "1"), (4, "2"), (2, "500m"), (1, "20")]);
    let mut labels = json!({QUEUE_NAME: chance.pick(&LOCAL_QUEUES)});
    if chance.percent(40) {
        labels[PRIORITY_CLASS] = json!(chance.pick(&["low", "high"]));
    }
    let template = json!({"spec": {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": chance.pick(&[0, 1, 5]),
        "containers": [{
            "name": "main",
            "image": "worker",
            "resources": {"requests": {"cpu": cpu}},
        }],
    }});
    let spec: Value = json!({
        "suspend": true,
        "parallelism": parallelism,
        "completions": completions,
        "completionMode": if is_indexed { "Indexed" } else { "NonIndexed" },
        "backoffLimit": chance.pick(&[0, 2, 6]),
        "template": template,
    });
    map(json!({"metadata": {"name": name, "labels": labels}, "spec": spec}))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::{draw, job, jobset};
    use crate::{
        api::{Api, Kind},
        chance::Chance,
    };

    #[test]
    fn every_queue_and_job_drawn_is_one_the_api_accepts() {
        for seed in 0..200 {
            let mut api = Api::new(Timestamp::UNIX_EPOCH);
            for (kind, object) in draw(&mut Chance::new(seed, "queues")).objects {
                let shown = serde_json::to_string(&object).unwrap();
                let made = api.create(kind, object);
                assert!(made.is_ok(), "seed {seed}: {}\n{shown}", made.unwrap_err());
            }
            let made = api.create(Kind::Job, job(&mut Chance::new(seed, "job"), "a"));
            assert!(made.is_ok(), "seed {seed}: {}", made.unwrap_err());
            let made = api.create(Kind::JobSet, jobset(&mut Chance::new(seed, "job"), "b"));
            assert!(made.is_ok(), "seed {seed}: {}", made.unwrap_err());
        }
    }
}
