use jiff::Timestamp;
use serde_json::{Value, json};

use super::{gather::Seen, report::Report, text};
use crate::{
    events::Event,
    golden,
    queueing::{
        queue::{
            ClusterQueue, LocalQueue,
            tests::{cluster_queue, local_queue},
        },
        workload::{
            Owner, Workload,
            tests::{admitted, condition, object},
        },
    },
};

fn now() -> Timestamp {
    "2026-01-01T00:05:00Z".parse().expect("a moment")
}

/// Job `train` in a cluster with queues, and its Workload as it stands.
fn seen(workload: Option<&Value>) -> Seen {
    let subject =
        Owner { kind: "Job".to_owned(), name: "train".to_owned(), uid: "train".to_owned() };
    let own = workload.map(Workload::read);
    Seen {
        subject,
        namespace: "default".to_owned(),
        job: Some(json!({"metadata": {"namespace": "default", "name": "train", "uid": "train",
            "labels": {"kueue.x-k8s.io/queue-name": "team"}},
            "spec": {"suspend": true, "parallelism": 4, "completions": 4}})),
        has_queues: true,
        workloads: own.iter().cloned().collect(),
        workload: own,
        local_queues: vec![
            LocalQueue::read(&local_queue("default", "team", "pool", 3)),
            LocalQueue::read(&local_queue("research", "lab", "other", 1)),
        ],
        cluster_queues: vec![
            ClusterQueue::read(&cluster_queue("pool", "8", "0")),
            ClusterQueue::read(&cluster_queue("other", "4", "0")),
        ],
        ..Seen::default()
    }
}

fn of(conditions: Vec<Value>) -> Value {
    json!({ "conditions": conditions })
}

fn other(name: &str, second: u32, status: Value) -> Workload {
    Workload::read(&object(name, second, status))
}

fn waiting() -> Seen {
    let shortage = "not enough quota in ClusterQueue pool: asks for 4 cpu in flavor spot, 0 free, \
                    held by default/job-big-1a2b3 (6); position 7 of 9 in ClusterQueue pool\n\
                    raise nominalQuota of cpu in flavor spot of ClusterQueue pool by 4, or wait \
                    until default/job-big-1a2b3 ends";
    let workload = object(
        "train",
        9,
        of(vec![
            condition("QuotaReserved", false, "WaitingForQuota", "couldn't assign flavors"),
            condition("lockstep.dev/Waiting", true, "NotEnoughQuota", shortage),
        ]),
    );
    let mut seen = seen(Some(&workload));
    seen.workloads.extend([
        other("first", 1, json!({})),
        // It waits, but not in line.
        other(
            "late",
            0,
            of(vec![condition("Requeued", false, "PodsReadyTimeout", "Exceeded the timeout")]),
        ),
        other("later", 30, json!({})),
        other("big", 0, admitted("6", Some((true, "Started")))),
        other("small", 0, admitted("2", Some((true, "Started")))),
        other("over", 0, of(vec![condition("Finished", true, "Succeeded", "m")])),
    ]);
    let mut lender = other("lab", 0, admitted("4", None));
    (lender.namespace, lender.cluster_queue) = ("research".to_owned(), "other".to_owned());
    seen.workloads.push(lender);
    for number in 0..4 {
        seen.workloads.push(other(&format!("tiny-{number}"), 0, admitted("100m", None)));
    }
    seen
}

fn back_off() -> Seen {
    let late = "Exceeded the PodsReady timeout default/job-train-1a2b3";
    let mut workload = object(
        "train",
        0,
        of(vec![
            condition("Evicted", true, "PodsReadyTimeout", late),
            condition("QuotaReserved", false, "PendingEvaluation", late),
            condition("Requeued", false, "PodsReadyTimeout", late),
            condition(
                "lockstep.dev/Waiting",
                true,
                "BackOff",
                "is not tried again before 2026-01-01T00:06:00Z",
            ),
        ]),
    );
    workload["status"]["requeueState"] = json!({"count": 2, "requeueAt": "2026-01-01T00:06:00Z"});
    workload["status"]["schedulingStats"] = json!({"evictions": [
        {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 2}]});
    seen(Some(&workload))
}

fn pod(name: &str, status: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "default"}, "status": status})
}

fn starting() -> Seen {
    let mut workload = object("train", 0, admitted("4", Some((false, "WaitForStart"))));
    workload["metadata"]["annotations"] = json!({"lockstep.dev/pods-ready-timeout": "5m"});
    let mut seen = seen(Some(&workload));
    let unplaced = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled",
        "reason": "Unschedulable", "message": "0/1 nodes are available: 1 Insufficient cpu."}]});
    seen.pods = vec![
        pod(
            "train-0-x",
            json!({"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True"}]}),
        ),
        pod("train-1-x", unplaced.clone()),
        pod("train-2-x", unplaced),
        pod("train-old", json!({"phase": "Failed"})),
    ];
    seen
}

/// A JobSet whose second part waits for the first, of which one pod has no command.
fn in_stages() -> Seen {
    let mut workload = object("train", 0, admitted("4", Some((false, "WaitForStart"))));
    workload["spec"]["podSets"] = json!([{"name": "driver", "count": 2}, {"name": "workers",
        "count": 3}]);
    let stage = condition(
        "lockstep.dev/StartupStage",
        true,
        "Starting",
        "replicated job driver is \
        starting (1 of 2)",
    );
    workload["status"]["conditions"].as_array_mut().expect("conditions").push(stage);
    let mut seen = seen(Some(&workload));
    seen.subject.kind = "JobSet".to_owned();
    seen.job = Some(json!({"metadata": {"name": "train", "namespace": "default"},
        "spec": {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": [
            {"name": "driver", "replicas": 1, "template": {"spec": {"template": {}}}},
            {"name": "workers", "replicas": 3, "template": {"spec": {"template": {}}}}]},
        "status": {"replicatedJobsStatus": [{"name": "driver", "ready": 0, "succeeded": 0,
            "failed": 0, "active": 1, "suspended": 0}],
            "conditions": [condition("JobSetStartupPolicyCompleted", false, "m", "m")]}}));
    let status = |reason: &str| {
        json!({"phase": "Pending", "containerStatuses": [{"name": "c", "state": {"waiting":
            {"reason": reason, "message": "no command"}}}]})
    };
    let mut broken = pod("train-driver-0-0-x", status("CreateContainerConfigError"));
    broken["metadata"]["labels"] = json!({"jobset.sigs.k8s.io/replicatedjob-name": "driver"});
    seen.pods = vec![broken];
    seen
}

fn deactivated() -> Seen {
    let why = "The workload is deactivated due to exceeding the maximum number of re-queuing \
               retries";
    let reason = "DeactivatedDueToRequeuingLimitExceeded";
    let mut workload = object(
        "train",
        0,
        of(vec![
            condition("Evicted", true, reason, why),
            condition("Requeued", false, reason, why),
            condition("QuotaReserved", false, "Deactivated", "The workload is deactivated"),
        ]),
    );
    workload["spec"]["active"] = json!(false);
    workload["status"]["schedulingStats"] = json!({"evictions": [
        {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 3},
        {"reason": "Deactivated", "underlyingCause": "RequeuingLimitExceeded", "count": 1}]});
    seen(Some(&workload))
}

fn stopping() -> Seen {
    let mut status = admitted("4", Some((true, "Started")));
    let gives_way = "Preempted to accommodate a workload (UID: u, JobUID: j) due to prioritization \
                     in the ClusterQueue";
    status["conditions"].as_array_mut().expect("conditions").push(condition(
        "Evicted",
        true,
        "Preempted",
        gives_way,
    ));
    seen(Some(&object("train", 0, status)))
}

fn without_workload(change: impl Fn(&mut Seen)) -> Seen {
    let mut seen = seen(None);
    change(&mut seen);
    seen
}

/// Jobs that have a Workload, in every state of one.
fn with_workload() -> Vec<(&'static str, Seen)> {
    let running = seen(Some(&object("train", 0, admitted("4", Some((true, "Started"))))));
    let lost = seen(Some(&object("train", 0, admitted("4", Some((false, "WaitForRecovery"))))));
    let over = of(vec![condition("Finished", true, "Succeeded", "Job finished successfully")]);
    let too_big = of(vec![condition(
        "QuotaReserved",
        false,
        "ExceedsMaxQuota",
        "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor spot, \
         previously considered podsets requests (0) + current podset request (40) > maximum \
         capacity (12)",
    )]);
    let missing = of(vec![condition(
        "QuotaReserved",
        false,
        "Misconfigured",
        "LocalQueue team doesn't exist",
    )]);
    let mut nowhere = seen(Some(&object("train", 0, missing)));
    nowhere.local_queues.clear();
    vec![
        ("waits for quota", waiting()),
        ("evicted, waits before it is tried again", back_off()),
        ("can never fit, on a cluster with Kueue", seen(Some(&object("train", 0, too_big)))),
        ("its queue is missing", nowhere),
        ("just made", seen(Some(&object("train", 0, json!({}))))),
        ("admitted, not ready", starting()),
        ("a JobSet in stages", in_stages()),
        ("lost pods", lost),
        ("runs", running),
        ("evicted, being stopped", stopping()),
        ("deactivated", deactivated()),
        ("finished", seen(Some(&object("train", 0, over)))),
    ]
}

/// Jobs that have none, for every reason there is.
fn without() -> Vec<(&'static str, Seen)> {
    let unlabelled = |seen: &mut Seen| {
        seen.job.as_mut().expect("a job")["metadata"]["labels"] = json!({});
    };
    let warning = json!({"type": "Warning", "reason": "WorkloadPriorityClassNotFound",
        "message": "WorkloadPriorityClass \"urgent\" not found"});
    let nothing = without_workload(|seen| {
        unlabelled(seen);
        seen.has_queues = false;
    });
    let over = without_workload(|seen| {
        unlabelled(seen);
        let complete = condition("Complete", true, "CompletionsReached", "reached");
        seen.job.as_mut().expect("a job")["status"] = of(vec![complete]);
    });
    let no_queue = without_workload(|seen| {
        seen.local_queues.remove(0);
    });
    let told = without_workload(|seen| seen.events = vec![Event::read(&warning)]);
    vec![
        ("in no queue", without_workload(unlabelled)),
        ("in no queue, and there are none", nothing),
        ("no Workload, no such LocalQueue", no_queue),
        ("no Workload yet", without_workload(|_| {})),
        ("no Workload, and somebody said why", told),
        ("labelled on a cluster without queues", without_workload(|seen| seen.has_queues = false)),
        ("finished and in no queue", over),
    ]
}

#[test]
fn every_state_is_explained() {
    let screens = with_workload().into_iter().chain(without()).map(|(name, seen)| {
        let report = Report::of(&seen, now());
        format!("# {name}\n{}\n", text::render(&report, now()))
    });
    let json = format!("# -o json\n{:#}\n", Report::of(&waiting(), now()).json());
    let screens: String = screens.chain([json]).collect();
    golden::check("why.txt", &screens);
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tasks = std::fs::read_to_string(root.join("docs/tasks.md")).expect("it is there");
    for (name, lines) in [("waits for quota", 5), ("a JobSet in stages", 5)] {
        let drawn = screens.lines().skip_while(|line| *line != format!("# {name}")).skip(1);
        let drawn = drawn.take(lines).collect::<Vec<_>>().join("\n");
        assert!(tasks.contains(&drawn), "docs/tasks.md must show:\n{drawn}");
    }
}

#[test]
fn a_restart_in_place_that_waits_says_so() {
    let told = |phase: &str, waiting: &str| {
        let mut seen = seen(None);
        seen.subject.kind = "JobSet".to_owned();
        seen.job =
            Some(json!({"metadata": {"namespace": "default", "name": "train", "uid": "train",
            "annotations": {"alpha.jobset.sigs.k8s.io/inplace-restarts": "1"}},
            "spec": {"replicatedJobs": []}, "status": {"lockstep": {"inPlace": {
                "epoch": 2, "restarts": 1, "phase": phase, "waiting": waiting}}}}));
        let report = Report::of(&seen, now());
        (report.summary.clone(), report.because.clone())
    };
    let (summary, because) = told("Stopping", "1 worker is missing: 3");
    assert!(summary.ends_with("; its workers restart in place (epoch 2)"), "{summary}");
    let want = ("InPlaceRestart".to_owned(), "the workers wait: 1 worker is missing: 3".to_owned());
    assert_eq!(because, Some(want));
    let (summary, because) = told("Running", "");
    assert!(!summary.contains("in place"), "{summary}");
    assert_eq!(because, None);
}
