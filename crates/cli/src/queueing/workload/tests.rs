use serde_json::json;

use super::*;

/// A Workload of Job `train`, made at `second`, of 4 pods with one cpu each.
pub(crate) fn object(name: &str, second: u32, status: Value) -> Value {
    let template = json!({"spec": {"containers": [
        {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}});
    json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {"namespace": "default", "name": format!("job-{name}-1a2b3"),
            "uid": format!("w-{name}"),
            "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": name,
                "controller": true}]},
        "spec": {"queueName": "team", "priority": 0, "active": true,
            "podSets": [{"name": "main", "count": 4, "template": template}]},
        "status": status})
}

/// A condition that is so since 00:01:00.
pub(crate) fn condition(kind: &str, is_true: bool, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": if is_true { "True" } else { "False" }, "reason": reason,
        "message": message, "lastTransitionTime": "2026-01-01T00:01:00Z"})
}

/// The status of a Workload with quota in ClusterQueue `pool`.
pub(crate) fn admitted(cpu: &str, ready: Option<(bool, &str)>) -> Value {
    let mut conditions = vec![
        condition(QUOTA_RESERVED, true, "QuotaReserved", "Quota reserved in ClusterQueue pool"),
        condition(ADMITTED, true, "Admitted", "The workload is admitted"),
    ];
    conditions.extend(ready.map(|(is, why)| condition(PODS_READY, is, why, "m")));
    json!({"conditions": conditions, "admission": {"clusterQueue": "pool", "podSetAssignments": [
        {"name": "main", "count": 4, "flavors": {"cpu": "spot", "memory": "spot"},
            "resourceUsage": {"cpu": cpu, "memory": "4Gi"}}]}})
}

#[test]
fn a_workload_stands_where_its_conditions_say() {
    let reserved = || condition(QUOTA_RESERVED, true, "QuotaReserved", "m");
    let evicted = |reason: &str| condition(EVICTED, true, reason, "m");
    let of = |conditions: Vec<Value>| json!({ "conditions": conditions });
    let cases = [
        ("new", json!({}), State::Pending),
        ("waits", of(vec![condition(QUOTA_RESERVED, false, "Pending", "m")]), State::Pending),
        ("checks are open", of(vec![reserved()]), State::Reserved),
        ("nobody counts", admitted("4", None), State::Admitted),
        ("starts", admitted("4", Some((false, "WaitForStart"))), State::Starting),
        ("runs", admitted("4", Some((true, "Started"))), State::Running),
        ("lost a pod", admitted("4", Some((false, "WaitForRecovery"))), State::Recovering),
        ("is stopped", of(vec![reserved(), evicted("Preempted")]), State::Stopping),
        ("was stopped", of(vec![evicted("Preempted")]), State::Pending),
        ("over", of(vec![condition(FINISHED, true, "Succeeded", "m")]), State::Finished),
    ];
    for (name, status, want) in cases {
        assert_eq!(Workload::read(&object("train", 0, status)).state(), want, "{name}");
    }
    let mut asleep = object("train", 0, json!({}));
    asleep["spec"]["active"] = json!(false);
    assert_eq!(Workload::read(&asleep).state(), State::Deactivated);
}

#[test]
fn our_own_condition_counts_more_and_may_name_a_change() {
    let theirs = condition(QUOTA_RESERVED, false, "WaitingForQuota", "couldn't assign flavors");
    let read = |conditions: Vec<Value>| {
        Workload::read(&object("train", 0, json!({ "conditions": conditions }))).waiting()
    };
    let kueue = read(vec![theirs.clone()]);
    assert_eq!((kueue.reason.as_str(), kueue.change), ("WaitingForQuota", None));
    let ours = condition(WAITING, true, "NotEnoughQuota", "asks for 4, 1 free\nraise it by 3");
    let ours = read(vec![theirs, ours]);
    assert_eq!(ours.message, "asks for 4, 1 free");
    assert_eq!(ours.change.as_deref(), Some("raise it by 3"));
    assert_eq!(read(vec![]).reason, "PendingEvaluation");
}

#[test]
fn priority_counts_first_then_time_and_the_late_begin_anew() {
    let read = |name: &str, second, priority: i64, evicted: Option<&str>| {
        let conditions: Vec<Value> =
            evicted.map(|reason| condition(EVICTED, true, reason, "m")).into_iter().collect();
        let mut object = object(name, second, json!({ "conditions": conditions }));
        object["spec"]["priority"] = json!(priority);
        Workload::read(&object)
    };
    let first = read("a", 1, 0, None);
    let second = read("b", 2, 0, None);
    let urgent = read("c", 9, 10, None);
    let preempted = read("d", 0, 0, Some("Preempted"));
    let late = read("e", 0, 0, Some("PodsReadyTimeout"));
    let order = [&urgent, &preempted, &first, &second, &late];
    for (at, one) in order.iter().enumerate() {
        for other in &order[at + 1..] {
            assert!(one.is_before(other), "{} before {}", one.name, other.name);
            assert!(!other.is_before(one), "{} not before {}", other.name, one.name);
        }
    }
}

#[test]
fn what_is_asked_for_is_what_was_counted_or_what_pods_say() {
    let asked = |status| super::super::list(&Workload::read(&object("train", 0, status)).asked);
    assert_eq!(asked(json!({})), "4 cpu, 4Gi memory");
    let counted = json!({"resourceRequests": [
        {"name": "a", "resources": {"cpu": "1500m"}}, {"name": "b", "resources": {"cpu": "1"}}]});
    assert_eq!(asked(counted), "2500m cpu");
    let running = Workload::read(&object("train", 0, admitted("4", None)));
    let held: Vec<String> =
        running.held.iter().map(|((flavor, of), much)| format!("{flavor} {of} {much}")).collect();
    assert_eq!(held, ["spot cpu 4", "spot memory 4Gi"]);
}

#[test]
fn evictions_are_counted_by_cause() {
    let status = json!({"schedulingStats": {"evictions": [
        {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 2},
        {"reason": "Preempted", "underlyingCause": "", "count": 1}]}});
    let workload = Workload::read(&object("train", 0, status));
    assert_eq!(
        workload.evictions_words().as_deref(),
        Some("2 times for PodsReadyTimeout (WaitForStart), once for Preempted")
    );
    assert_eq!(workload.what(), "job/train");
}
