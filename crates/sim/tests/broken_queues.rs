//! Planners of queues that are broken on purpose: the simulator must find them out.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use lockstep_api::kueue::WorkloadStatus;
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

fn drop_condition(status: &mut WorkloadStatus, kind: &str) {
    status.conditions.retain(|it| it.type_ != kind);
}

#[test]
#[ignore = "takes minutes so far: cargo test -p lockstep-sim --test broken_queues -- --ignored"]
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
#[ignore = "takes minutes so far: cargo test -p lockstep-sim --test broken_queues -- --ignored"]
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
#[ignore = "takes minutes so far: cargo test -p lockstep-sim --test broken_queues -- --ignored"]
fn admitting_while_pods_are_not_ready_is_found() {
    fn meddle(meddled: Meddled<'_>) {
        let Meddled::Settings(settings) = meddled else { return };
        settings.wait.iter_mut().for_each(|wait| wait.block_admission = false);
    }
    assert_found(meddle, &["are not ready"]);
}

#[test]
#[ignore = "takes minutes so far: cargo test -p lockstep-sim --test broken_queues -- --ignored"]
fn passing_the_first_of_a_strict_queue_is_found() {
    fn meddle(meddled: Meddled<'_>) {
        let Meddled::ClusterQueue(queue) = meddled else { return };
        "BestEffortFIFO".clone_into(&mut queue.spec.queueing_strategy);
    }
    assert_found(meddle, &["which was first"]);
}

#[test]
#[ignore = "takes minutes so far: cargo test -p lockstep-sim --test broken_queues -- --ignored"]
fn giving_quota_back_while_pods_run_is_found() {
    fn meddle(meddled: Meddled<'_>) {
        let Meddled::Job(job) = meddled else { return };
        job.status.iter_mut().for_each(|status| status.active = None);
    }
    assert_found(meddle, &["gives its quota back"]);
}

#[test]
#[ignore = "takes minutes so far: cargo test -p lockstep-sim --test broken_queues -- --ignored"]
fn keeping_quota_after_an_eviction_is_found() {
    fn meddle(meddled: Meddled<'_>) {
        let Meddled::Status(_, status) = meddled else { return };
        if is(status, "Evicted") && status.admission.is_none() {
            for condition in &mut status.conditions {
                if condition.type_ == "QuotaReserved" {
                    "True".clone_into(&mut condition.status);
                }
            }
        }
    }
    assert_found(meddle, &["holds quota for nothing", "not at rest", "never runs"]);
}

#[test]
#[ignore = "takes minutes so far: cargo test -p lockstep-sim --test broken_queues -- --ignored"]
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
#[ignore = "takes minutes so far: cargo test -p lockstep-sim --test broken_queues -- --ignored"]
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
#[ignore = "takes minutes so far: cargo test -p lockstep-sim --test broken_queues -- --ignored"]
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
#[ignore = "takes minutes so far: cargo test -p lockstep-sim --test broken_queues -- --ignored"]
fn starting_who_was_not_admitted_is_found() {
    // The driver of jobs is told that everybody is suspended: it stops nobody.
    fn meddle(meddled: Meddled<'_>) {
        let Meddled::Job(job) = meddled else { return };
        job.spec.iter_mut().for_each(|spec| spec.suspend = Some(true));
    }
    assert_found(meddle, &["nobody has admitted it", "gives its quota back", "not at rest"]);
}
