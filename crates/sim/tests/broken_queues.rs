//! Planners of queues that are broken on purpose: the simulator must find them out.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use lockstep_api::kueue::{Admission, PodSetAssignment, WorkloadStatus};
use lockstep_api::labels::kueue::WORKLOAD;
use lockstep_sim::{
    Setup, Sort,
    queues::{Meddled, Meddler},
    run,
};

/// Asserts that a broken planner is found out for what it does: in one of the first worlds the
/// violation is one of these. In others it may come to light by what follows from it.
fn assert_found(meddler: Meddler, words: &[&str]) {
    let mut others = BTreeSet::new();
    let is_told = (0..300).any(|seed| {
        let queue_meddler = Some(meddler);
        let setup = Setup { seed, sort: Sort::Queues, queue_meddler, ..Setup::default() };
        let Some(violation) = run(&setup).violation else { return false };
        let is_it = words.iter().any(|word| violation.0.contains(word));
        others.insert(violation.0);
        is_it
    });
    assert!(is_told, "none of {words:?}, but {others:#?}");
}

fn is(status: &WorkloadStatus, kind: &str) -> bool {
    status.conditions.iter().any(|it| it.type_ == kind && it.status == "True")
}

fn say(status: &mut WorkloadStatus, kind: &str, is_true: &str) {
    for condition in status.conditions.iter_mut().filter(|it| it.type_ == kind) {
        is_true.clone_into(&mut condition.status);
    }
}

/// One of the flavor that every world has.
fn admission() -> Admission {
    let one = Quantity("1".to_owned());
    let assignment = PodSetAssignment {
        name: "main".to_owned(),
        count: Some(1),
        flavors: [("cpu".to_owned(), "f0".to_owned())].into(),
        resource_usage: [("cpu".to_owned(), one)].into(),
        ..PodSetAssignment::default()
    };
    Admission { cluster_queue: "c0".to_owned(), pod_set_assignments: vec![assignment] }
}

fn drop_condition(status: &mut WorkloadStatus, kind: &str) {
    status.conditions.retain(|it| it.type_ != kind);
}

#[test]
fn giving_more_than_a_queue_has_is_found() {
    fn meddle(meddled: Meddled<'_>) {
        let Meddled::ClusterQueue(queue) = meddled else { return };
        let groups = queue.spec.resource_groups.iter_mut();
        for quota in groups.flat_map(|it| &mut it.flavors).flat_map(|it| &mut it.resources) {
            let nominal: i64 = quota.nominal_quota.0.parse().unwrap_or_default();
            quota.nominal_quota = Quantity((nominal + 1).to_string());
        }
    }
    assert_found(meddle, &["it has", "are shared, of"]);
}

#[test]
fn borrowing_without_end_is_found() {
    fn meddle(meddled: Meddled<'_>) {
        let Meddled::ClusterQueue(queue) = meddled else { return };
        let groups = queue.spec.resource_groups.iter_mut();
        for quota in groups.flat_map(|it| &mut it.flavors).flat_map(|it| &mut it.resources) {
            quota.borrowing_limit = None;
            quota.lending_limit = None;
        }
    }
    assert_found(meddle, &["it has", "are shared, of"]);
}

#[test]
fn admitting_while_pods_are_not_ready_is_found() {
    fn meddle(meddled: Meddled<'_>) {
        let Meddled::Settings(settings) = meddled else { return };
        settings.wait.iter_mut().for_each(|wait| wait.block_admission = false);
    }
    assert_found(meddle, &["are not ready"]);
}

#[test]
fn passing_the_first_of_a_strict_queue_is_found() {
    fn meddle(meddled: Meddled<'_>) {
        let Meddled::ClusterQueue(queue) = meddled else { return };
        "BestEffortFIFO".clone_into(&mut queue.spec.queueing_strategy);
    }
    assert_found(meddle, &["which was first"]);
}

#[test]
fn giving_quota_back_while_pods_run_is_found() {
    // Who is evicted gives its quota back at once.
    fn meddle(meddled: Meddled<'_>) {
        let Meddled::Status(_, status) = meddled else { return };
        if is(status, "Evicted") && status.admission.take().is_some() {
            say(status, "QuotaReserved", "False");
            say(status, "Admitted", "False");
        }
    }
    assert_found(meddle, &["gives its quota back"]);
}

#[test]
fn keeping_quota_after_an_eviction_is_found() {
    fn meddle(meddled: Meddled<'_>) {
        let Meddled::Status(_, status) = meddled else { return };
        if is(status, "Evicted") && status.admission.is_none() {
            status.admission = Some(admission());
            say(status, "QuotaReserved", "True");
        }
    }
    assert_found(meddle, &["holds quota for nothing", "not at rest", "never runs"]);
}

#[test]
fn forgetting_to_put_somebody_back_is_found() {
    fn meddle(meddled: Meddled<'_>) {
        let Meddled::Status(_, status) = meddled else { return };
        for condition in &mut status.conditions {
            if condition.type_ == "Requeued" {
                "False".clone_into(&mut condition.status);
            }
        }
    }
    assert_found(meddle, &["never comes back", "never runs", "not at rest"]);
}

#[test]
fn forgetting_how_often_somebody_came_back_is_found() {
    fn meddle(meddled: Meddled<'_>) {
        let Meddled::Status(_, status) = meddled else { return };
        if !is(status, "Evicted") {
            status.requeue_state = None;
        }
    }
    assert_found(meddle, &["came back"]);
}

#[test]
fn changing_an_end_is_found() {
    fn meddle(meddled: Meddled<'_>) {
        let Meddled::Status(name, status) = meddled else { return };
        if name.contains("j1") && is(status, "Finished") && is(status, "PodsReady") {
            drop_condition(status, "Finished");
        }
    }
    assert_found(meddle, &["the end of", "its Workload has not", "not at rest"]);
}

#[test]
fn starting_who_was_not_admitted_is_found() {
    // The driver of jobs is told that everybody stands still: it stops nobody.
    fn meddle(meddled: Meddled<'_>) {
        let Meddled::Job(job) = meddled else { return };
        if let Some(status) = &mut job.status {
            status.active = None;
            status.start_time = None;
        }
        if let Some(spec) = &mut job.spec {
            spec.suspend = Some(true);
            let annotations =
                spec.template.metadata.as_mut().and_then(|it| it.annotations.as_mut());
            annotations.map(|annotations| annotations.remove(WORKLOAD));
        }
    }
    assert_found(meddle, &["nobody has admitted it", "gives its quota back"]);
}
