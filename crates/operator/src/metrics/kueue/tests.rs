//! The text that Prometheus reads.

use serde_json::{Value, json};

use super::*;
use crate::metrics::Metrics;

fn text(metrics: &Metrics) -> String {
    let mut text = String::new();
    metrics.write(&mut text).unwrap();
    text
}

/// A line, with the role that closes the labels.
fn line(name: &str, labels: &[(&str, &str)], role: &str, value: &str) -> String {
    let labels: String = labels.iter().map(|(key, value)| format!("{key}=\"{value}\",")).collect();
    format!("kueue_{name}{{{labels}replica_role=\"{role}\"}} {value}")
}

fn has(metrics: &Metrics, lines: &[String]) {
    let text = text(metrics);
    for line in lines {
        assert!(text.lines().any(|there| there == line), "{line} is not in {text}");
    }
}

fn workload(evictions: &Value) -> Workload {
    serde_json::from_value(json!({
        "metadata": {"name": "w", "namespace": "team"},
        "spec": {"podSets": [], "queueName": "lq", "priority": 1, "priorityClassRef": {
            "group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}},
        "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": []},
                   "schedulingStats": {"evictions": evictions}},
    }))
    .unwrap()
}

fn queue() -> Arc<ClusterQueue> {
    let usage = |cpu: &str, gpus: &str| {
        json!([{"name": "spot", "resources": [
            {"name": "cpu", "total": cpu}, {"name": "nvidia.com/gpu", "total": gpus}]}])
    };
    let queue = json!({
        "metadata": {"name": "cq"},
        "spec": {"cohortName": "all", "resourceGroups": [{
            "coveredResources": ["cpu", "nvidia.com/gpu"],
            "flavors": [{"name": "spot", "resources": [
                {"name": "cpu", "nominalQuota": "2500m", "borrowingLimit": "1"},
                {"name": "nvidia.com/gpu", "nominalQuota": "4", "lendingLimit": "2"},
            ]}],
        }]},
        "status": {
            "conditions": [{"type": "Active", "status": "True", "reason": "Ready", "message": "",
                            "lastTransitionTime": "2026-11-17T12:00:00Z"}],
            "flavorsReservation": usage("1500m", "3"), "flavorsUsage": usage("500m", "1"),
            "pendingWorkloads": 7, "reservingWorkloads": 3, "admittedWorkloads": 2,
        },
    });
    Arc::new(serde_json::from_value(queue).unwrap())
}

#[test]
fn counters_have_the_names_and_labels_kueue_has() {
    let metrics = Metrics::new();
    let kueue = &metrics.kueue;
    kueue.cycle(3, 1, Duration::from_millis(20));
    let none = workload(&json!([]));
    let cluster_queue = "cq".to_owned();
    let admitted = queue::Fact::Admitted { cluster_queue, waited_seconds: 4 };
    kueue.decided(&admitted, &none);
    kueue.reached(Milestone::Started { since_queued: 9, since_admitted: 5 }, &none);
    kueue.reached(Milestone::Finished, &none);
    let of =
        |name: &str, labels: &[(&str, &str)], value: &str| line(name, labels, "standalone", value);
    let of_queue = |name: &str, value: &str| {
        of(name, &[("cluster_queue", "cq"), ("priority_class", "high")], value)
    };
    let of_local_queue = |name: &str, value: &str| {
        let labels = [("name", "lq"), ("namespace", "team"), ("priority_class", "high")];
        of(&format!("local_queue_{name}"), &labels, value)
    };
    let within = [("le", "0.025"), ("result", "success")];
    has(
        &metrics,
        &[
            of("admission_attempts_total", &[("result", "success")], "1"),
            of("admission_attempt_duration_seconds_bucket", &within, "1"),
            of_queue("quota_reserved_workloads_total", "1"),
            of_queue("quota_reserved_wait_time_seconds_sum", "4.0"),
            of_queue("admitted_workloads_total", "1"),
            of_queue("admission_wait_time_seconds_sum", "4.0"),
            of_queue("ready_wait_time_seconds_sum", "9.0"),
            of_queue("admitted_until_ready_wait_time_seconds_sum", "5.0"),
            of_queue("finished_workloads_total", "1"),
            of_local_queue("quota_reserved_workloads_total", "1"),
            of_local_queue("admitted_workloads_total", "1"),
            of_local_queue("admission_wait_time_seconds_sum", "4.0"),
            of_local_queue("ready_wait_time_seconds_sum", "9.0"),
            of_local_queue("finished_workloads_total", "1"),
        ],
    );
    assert!(text(&metrics).contains("kueue_build_info{git_version=\"v"), "{}", text(&metrics));
    let ends: Vec<f64> = counts::waits(14).collect();
    assert_eq!((ends.len(), &ends[..4], ends[13]), (14, &[1.0, 2.5, 5.0, 10.0][..], 10240.0));
}

#[test]
fn an_eviction_is_counted_each_time_and_once_for_each_workload() {
    let metrics = Metrics::new();
    let timeout = workload::Fact::Evicted {
        cluster_queue: "cq".to_owned(),
        reason: "PodsReadyTimeout".to_owned(),
        cause: "WaitForStart".to_owned(),
    };
    let before = [
        json!([]),
        json!([{"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 1}]),
    ];
    for evictions in &before {
        metrics.kueue.note(&timeout, &workload(evictions));
    }
    let preempted = queue::Fact::Preempted {
        preemptor_queue: "other".to_owned(),
        cluster_queue: "cq".to_owned(),
        reason: "InClusterQueue",
    };
    for count in [1, 2] {
        let after = json!([{"reason": "Preempted", "underlyingCause": "", "count": count}]);
        metrics.kueue.decided(&preempted, &workload(&after));
    }
    let nowhere = workload::Fact::Evicted {
        cluster_queue: String::new(),
        reason: "Deactivated".to_owned(),
        cause: String::new(),
    };
    metrics.kueue.note(&nowhere, &workload(&json!([])));
    let evicted = |name: &str, reason: &str, cause: &str, count: &str| {
        let labels = [
            ("cluster_queue", "cq"),
            ("reason", reason),
            ("underlying_cause", cause),
            ("priority_class", "high"),
        ];
        line(name, &labels, "standalone", count)
    };
    let gave_way = [("preempting_cluster_queue", "other"), ("reason", "InClusterQueue")];
    has(
        &metrics,
        &[
            evicted("evicted_workloads_total", "PodsReadyTimeout", "WaitForStart", "2"),
            evicted("evicted_workloads_once_total", "PodsReadyTimeout", "WaitForStart", "1"),
            evicted("evicted_workloads_total", "Preempted", "", "2"),
            evicted("evicted_workloads_once_total", "Preempted", "", "1"),
            line("preempted_workloads_total", &gave_way, "standalone", "2"),
        ],
    );
    assert!(!text(&metrics).contains("Deactivated"), "it had no quota to be evicted from");
    let labels = [
        ("name", "lq"),
        ("namespace", "team"),
        ("reason", "Preempted"),
        ("underlying_cause", ""),
        ("priority_class", "high"),
    ];
    has(&metrics, &[line("local_queue_evicted_workloads_total", &labels, "standalone", "2")]);
}

#[test]
fn a_cluster_queue_is_told_as_it_is_until_it_is_gone() {
    let metrics = Metrics::new();
    metrics.kueue.configure(&Leadership::alone(), false);
    metrics.kueue.cluster_queue_seen(&queue());
    let of = |name: &str, status: Option<&str>, value: &str| {
        let status = status.map(|status| ("status", status));
        let labels: Vec<_> = [("cluster_queue", "cq")].into_iter().chain(status).collect();
        line(name, &labels, "standalone", value)
    };
    has(
        &metrics,
        &[
            of("pending_workloads", Some("active"), "7"),
            of("pending_workloads", Some("inadmissible"), "0"),
            of("reserving_active_workloads", None, "3"),
            of("admitted_active_workloads", None, "2"),
            of("cluster_queue_status", Some("active"), "1"),
            of("cluster_queue_status", Some("pending"), "0"),
        ],
    );
    // (of seven that wait are not tried) -> (active, inadmissible)
    for (parked, active, inadmissible) in [(5, "2", "5"), (9, "0", "7"), (0, "7", "0")] {
        metrics.kueue.inadmissible("cq", parked);
        let waits = |status, number| of("pending_workloads", Some(status), number);
        has(&metrics, &[waits("active", active), waits("inadmissible", inadmissible)]);
    }
    metrics.kueue.cluster_queue_gone("cq");
    assert!(!text(&metrics).contains(r#"cluster_queue="cq""#));
}

#[test]
fn who_does_not_lead_does_not_know_who_is_tried() {
    let metrics = Metrics::new();
    metrics.kueue.configure(&Leadership::never(), false);
    metrics.kueue.cluster_queue_seen(&queue());
    metrics.kueue.inadmissible("cq", 5);
    let of = |status, value: &str| {
        let labels = [("cluster_queue", "cq"), ("status", status)];
        line("pending_workloads", &labels, "follower", value)
    };
    has(&metrics, &[of("active", "7"), of("inadmissible", "0")]);
}

#[test]
fn quota_and_usage_are_told_when_asked_for() {
    let metrics = Metrics::new();
    metrics.kueue.cluster_queue_seen(&queue());
    assert!(!text(&metrics).contains("kueue_cluster_queue_resource_usage"));
    metrics.kueue.configure(&Leadership::alone(), true);
    let cases = [
        ("resource_reservation", "1.5", "3.0"),
        ("resource_usage", "0.5", "1.0"),
        ("nominal_quota", "2.5", "4.0"),
        ("borrowing_limit", "1.0", "+Inf"),
        ("lending_limit", "+Inf", "2.0"),
    ];
    for (name, cpu, gpus) in cases {
        let of = |resource: &str, value: &str| {
            let labels = [
                ("cohort", "all"),
                ("cluster_queue", "cq"),
                ("flavor", "spot"),
                ("resource", resource),
            ];
            line(&format!("cluster_queue_{name}"), &labels, "standalone", value)
        };
        has(&metrics, &[of("cpu", cpu), of("nvidia.com/gpu", gpus)]);
    }
}

#[test]
fn a_local_queue_is_told_as_it_is_until_it_is_gone() {
    let metrics = Metrics::new();
    let used = json!([{"name": "spot", "resources": [{"name": "cpu", "total": "1500m"}]}]);
    let queue = json!({
        "metadata": {"name": "lq", "namespace": "team"},
        "spec": {"clusterQueue": "cq"},
        "status": {
            "conditions": [{"type": "Active", "status": "False", "reason": "Stopped",
                            "message": "", "lastTransitionTime": "2026-11-17T12:00:00Z"}],
            "pendingWorkloads": 5, "reservingWorkloads": 3, "admittedWorkloads": 2,
            "flavorsReservation": used,
        },
    });
    metrics.kueue.local_queue_seen(&Arc::new(serde_json::from_value(queue).unwrap()));
    let of = |name: &str, more: &[(&'static str, &'static str)], value: &str| {
        let labels = [&[("name", "lq"), ("namespace", "team")], more].concat();
        line(&format!("local_queue_{name}"), &labels, "standalone", value)
    };
    has(
        &metrics,
        &[
            of("pending_workloads", &[("status", "active")], "5"),
            of("reserving_active_workloads", &[], "3"),
            of("admitted_active_workloads", &[], "2"),
            of("status", &[("active", "True")], "0"),
            of("status", &[("active", "False")], "1"),
        ],
    );
    assert!(!text(&metrics).contains("local_queue_resource"), "nobody has asked for it");
    metrics.kueue.configure(&Leadership::alone(), true);
    let place = [("flavor", "spot"), ("resource", "cpu")];
    has(&metrics, &[of("resource_reservation", &place, "1.5")]);
    metrics.kueue.local_queue_gone("team", "lq");
    assert!(!text(&metrics).contains(r#"name="lq""#));
}
