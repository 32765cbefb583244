//! Manifests as users of JobSet have them, one for each of its features: they run unchanged and end
//! as its documentation says.

#[path = "common/up.rs"]
mod up;

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use up::{Up, lockstep};

/// A run of some of the manifests, in one cluster of its own.
struct Ran {
    code: Option<i32>,
    /// What the pods wrote, and how it went.
    said: String,
    items: Vec<Value>,
}

fn run(names: &[&str]) -> Ran {
    let files = names.iter().map(|name| format!("upstream-{name}.yaml"));
    let output = lockstep()
        .args(["run", "-q", "-o", "json", "--timeout", "120s", "--node-name", "here"])
        .args(files)
        .output()
        .expect("lockstep runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let list: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    assert!(!items.is_empty(), "{names:?}: {said}");
    Ran { code: output.status.code(), said, items }
}

const SET: &str = "jobset.sigs.k8s.io/jobset-name";
const GROUP: &str = "jobset.sigs.k8s.io/replicatedjob-name";

impl Ran {
    fn set(&self, name: &str) -> &Value {
        let mut sets = self.items.iter().filter(|item| item["kind"] == "JobSet");
        let set = sets.find(|item| item["metadata"]["name"] == name);
        assert!(set.is_some(), "no {name}: {}", self.said);
        set.unwrap_or(&Value::Null)
    }

    /// How a set has ended: the condition's reason, restarts, and those of them that count.
    fn end(&self, name: &str) -> (String, i64, i64) {
        let status = &self.set(name)["status"];
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        let end = conditions.find(|one| one["type"] == status["terminalState"]);
        let reason = end.and_then(|one| one["reason"].as_str()).unwrap_or_default();
        let number = |field: &str| status[field].as_i64().unwrap_or_default();
        (reason.to_owned(), number("restarts"), number("restartsCountTowardsMax"))
    }

    /// What is kept of a replicated job of a set.
    fn counts(&self, name: &str, group: &str) -> &Value {
        let entries = self.set(name)["status"]["replicatedJobsStatus"].as_array();
        let mut entries = entries.into_iter().flatten();
        entries.find(|entry| entry["name"] == group).expect("every replicated job has an entry")
    }

    /// The objects of a kind that a replicated job of a set has had.
    fn of(&self, kind: &str, name: &str, group: &str) -> Vec<&Value> {
        let items = self.items.iter().filter(|item| item["kind"] == kind);
        let labels = |item: &Value| item["metadata"]["labels"].clone();
        items.filter(|item| labels(item)[SET] == name && labels(item)[GROUP] == group).collect()
    }

    /// A time of each of them.
    fn times(&self, kind: &str, name: &str, group: &str, path: &str) -> Vec<&str> {
        let all = self.of(kind, name, group).into_iter();
        all.map(|item| item.pointer(path).and_then(Value::as_str).unwrap_or_default()).collect()
    }

    fn wrote(&self, lines: &[&str]) {
        for line in lines {
            assert!(self.said.contains(&format!("{line}\n")), "no {line:?} in\n{}", self.said);
        }
    }
}

const MADE: &str = "/metadata/creationTimestamp";
const BEGUN: &str = "/status/containerStatuses/0/state/terminated/startedAt";
const ENDED: &str = "/status/containerStatuses/0/state/terminated/finishedAt";

fn completed(ran: &Ran, names: &[&str]) {
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    for name in names {
        assert_eq!(ran.set(name)["status"]["terminalState"], "Completed", "{name}");
    }
}

#[test]
fn sets_are_complete_when_their_success_policy_says_so() {
    let ran = run(&["parallel-jobs", "success-all", "success-any", "ttl"]);
    completed(&ran, &["paralleljobs", "success-all", "success-any", "ttl"]);
    ran.wrote(&[
        "[paralleljobs-workers-0-3] I am a worker",
        "[paralleljobs-driver-0-0] I am the driver",
    ]);
    // What nobody waits for has not succeeded, and is ended.
    assert_eq!(ran.counts("success-all", "workers")["succeeded"], 2);
    assert_eq!(ran.counts("success-all", "driver")["succeeded"], 0);
    assert_eq!(ran.counts("success-any", "search")["succeeded"], 1);
    ran.wrote(&["[success-any-search-1-0] found with seed 1", "[ttl-workers-1-0] short lived"]);
}

#[test]
fn restarts_are_those_that_the_failure_policy_asks_for() {
    let names =
        ["restart-jobset", "ignore-max-restarts", "restart-job", "restart-job-ignore-max-restarts"];
    let ran = run(&names);
    let sets = ["restart-jobset", "ignore-max-restarts", "restart-job", "restart-job-free"];
    completed(&ran, &sets);
    let restarts = sets.map(|name| {
        let (_, restarts, counted) = ran.end(name);
        (restarts, counted)
    });
    assert_eq!(restarts, [(1, 1), (2, 0), (0, 0), (0, 0)]);
    let alone = |name: &str, field: &str| ran.counts(name, "worker")[field].clone();
    assert_eq!(alone("restart-job", "jobRestarts"), json!([0, 1]));
    assert_eq!(alone("restart-job", "jobRestartsCountTowardsMax"), json!([0, 1]));
    assert_eq!(alone("restart-job-free", "jobRestarts"), json!([2, 0]));
    assert_eq!(alone("restart-job-free", "jobRestartsCountTowardsMax"), Value::Null);
    // Jobs of every attempt: all of them again, or one alone.
    assert_eq!(ran.of("Job", "restart-jobset", "workers").len(), 2);
    assert_eq!(ran.of("Job", "ignore-max-restarts", "workers").len(), 3);
    assert_eq!(ran.of("Job", "restart-job", "worker").len(), 3);
    assert_eq!(ran.of("Job", "restart-job-free", "worker").len(), 4);
}

#[test]
fn sets_fail_when_the_failure_policy_says_so() {
    let ran = run(&["max-restarts", "fail-jobset", "message-patterns", "host-maintenance"]);
    assert_eq!(ran.code, Some(1), "{}", ran.said);
    let ends = ["max-restarts", "fail-jobset", "message-patterns", "host-maintenance"]
        .map(|name| ran.end(name));
    let want = [
        ("ReachedMaxRestarts", 2, 2),
        ("FailJobSetFailurePolicyAction", 0, 0),
        ("FailJobSetFailurePolicyAction", 1, 1),
        ("ReachedMaxRestarts", 1, 0),
    ];
    assert_eq!(ends, want.map(|(reason, all, counted)| (reason.to_owned(), all, counted)));
    for want in [
        "(brokenInput: FailJobSet), for the reason PodFailurePolicy and for a message like",
        "rule failurePolicyRule0 says RestartJobSetAndIgnoreMaxRestarts\n",
    ] {
        assert!(ran.said.contains(want), "{want}\n{}", ran.said);
    }
}

#[test]
fn jobs_start_in_the_order_that_is_asked_for() {
    let ran = run(&["startup-in-order", "depends-on", "mpi"]);
    completed(&ran, &["in-order", "depends-on", "mpi"]);
    let drivers = ran.times("Pod", "in-order", "driver", BEGUN);
    let workers = ran.times("Job", "in-order", "workers", MADE);
    assert_eq!((drivers.len(), workers.len()), (1, 2));
    // It takes the driver more than a second to be ready.
    assert!(drivers.iter().max() < workers.iter().min(), "{drivers:?} {workers:?}");
    let conditions = ran.set("in-order")["status"]["conditions"].to_string();
    assert!(conditions.contains("in order startup policy has completed"), "{conditions}");
    let trainer = ran.times("Job", "depends-on", "trainer", MADE);
    for (group, path) in [("dataset", ENDED), ("model", ENDED), ("queue", BEGUN)] {
        let before = ran.times("Pod", "depends-on", group, path);
        assert!(before.len() == 1 && before[0] <= trainer[0], "{group} {before:?} {trainer:?}");
    }
    let hosts =
        [0, 1, 2].map(|rank| format!("[mpi-launcher-0-0#0] mpi-worker-0-{rank}.mpi slots=1"));
    ran.wrote(&hosts.each_ref().map(String::as_str));
}

#[test]
fn pods_know_and_find_each_other() {
    let mut names = vec!["network", "no-network", "coordinator", "groups"];
    // There is no server of sockets in a shell: where there is no python3, there is no gang.
    if Command::new("python3").args(["-c", ""]).output().is_ok() {
        names.push("pytorch");
    } else {
        println!("skipped: there is no python3");
    }
    let ran = run(&names);
    completed(&ran, &names);
    for pod in ["network-workers-0-0", "network-workers-0-1"] {
        let found = [
            "network-leader-0-0.example",
            "network-leader-0-0.example.default.svc.cluster.local",
            "network-workers-0-1.example",
        ];
        found.iter().for_each(|name| ran.wrote(&[&format!("[{pod}] {name} is found")]));
    }
    let subdomain =
        |name: &str, group: &str| ran.of("Pod", name, group)[0]["spec"]["subdomain"].clone();
    assert_eq!(subdomain("network", "leader"), "example");
    assert_eq!(subdomain("no-network", "alone"), Value::Null);
    assert_eq!(subdomain("groups", "critic"), "groups");
    ran.wrote(&[
        "[coordinator-workers-0-1] coordinated by coordinator-driver-0-0.coordinator",
        "[groups-actor-1-0] rollout 1 of 3",
        "[groups-learner-0-0] train 0 of 1",
        "[groups-critic-0-0] rollout 2 of 3",
    ]);
    for rank in names.contains(&"pytorch").then_some(0..4).into_iter().flatten() {
        ran.wrote(&[&format!("[pytorch-workers-0-{rank}#0] rank {rank}: the sum is 6")]);
    }
}

#[test]
fn a_job_that_wants_a_host_for_itself_has_it() {
    let ran = run(&["exclusive-placement"]);
    completed(&ran, &["exclusive"]);
    let pods = ran.of("Pod", "exclusive", "workers");
    assert_eq!(pods.len(), 4);
    let of_job = |index: &str, path: &str| -> Vec<String> {
        let own = pods
            .iter()
            .filter(|pod| pod["metadata"]["labels"]["jobset.sigs.k8s.io/job-index"] == index);
        own.map(|pod| pod.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned())
            .collect()
    };
    // There is one host: one Job is over when the other begins.
    let [first, second] = ["0", "1"].map(|index| (of_job(index, BEGUN), of_job(index, ENDED)));
    let is_after = |(begun, _): &(Vec<String>, _), (_, ended): &(_, Vec<String>)| {
        begun.iter().min() >= ended.iter().max()
    };
    assert!(is_after(&first, &second) || is_after(&second, &first), "{first:?} {second:?}");
}

/// Runs a command until it says what is wanted.
fn until(up: &Up, words: &str, is_it: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    loop {
        let output = up.output(words, "");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        if is_it(&said) {
            return said;
        }
        assert!(begun.elapsed() < Duration::from_secs(100), "{words}: {said}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn on_a_cluster_sets_wait_for_a_queue_leave_volumes_behind_and_go_by_themselves() {
    let up = Up::start();
    let read = |name: &str| {
        let path = format!("{}/tests/data/upstream-{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        fs::read_to_string(path).expect("a manifest")
    };
    let apply = |text: &str| {
        let output = up.output("apply -f -", text);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    ["suspended", "volume-claims", "ttl", "tpu-slices"].iter().for_each(|name| apply(&read(name)));
    let state = "get jobset suspended -o jsonpath={.status.conditions[*].reason}";
    until(&up, state, |said| said == "SuspendedJobs");
    let jobs = "get jobs -o jsonpath={.items[*].spec.suspend} -l jobset.sigs.k8s.io/jobset-name=";
    until(&up, &format!("{jobs}suspended"), |said| said == "true true");
    until(&up, &format!("{jobs}tpu-slices"), |said| said == "true true");
    // The queue that it names lets it go.
    apply(
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: user-queue}, \
         spec: {clusterQueue: machine}}",
    );
    until(&up, state, |said| said.contains("ResumeJobs") && said.contains("AllJobsCompleted"));

    until(&up, "get jobset claims -o jsonpath={.status.terminalState}", |said| said == "Completed");
    assert!(up.output("delete jobset claims", "").status.success());
    let kept = "persistentvolumeclaim/checkpoints-claims\n";
    until(&up, "get pvc -o name", |said| said == kept);
    until(&up, "get jobset ttl", |said| said.contains("NotFound"));
}

#[test]
fn all_of_them_are_valid_as_they_are() {
    let folder =
        fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")).expect("a folder");
    let names = folder.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let names: Vec<String> = names.filter(|name| name.starts_with("upstream-")).collect();
    assert_eq!(names.len(), 24);
    let output = lockstep().arg("validate").args(&names).output().expect("lockstep runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains("warning") && !said.contains("Warning"), "{said}");
}
