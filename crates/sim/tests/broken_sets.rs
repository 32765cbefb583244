//! Planners of JobSets that are broken on purpose: the simulator must find them out.

use std::collections::BTreeSet;

use lockstep_api::jobset::JobSetStatus;
use lockstep_control::plan::jobset::{Plan, Step, Waiting};
use lockstep_sim::{Setup, Sort, run, sets::Meddler};

/// Asserts that a broken planner is found out for what it does: in one of the first worlds the
/// violation is one of these. In others it may come to light by what follows from it.
fn assert_found(meddler: Meddler, words: &[&str]) {
    let mut others = BTreeSet::new();
    let is_told = (0..300).any(|seed| {
        let set_meddler = Some(meddler);
        let setup = Setup { seed, sort: Sort::JobSets, set_meddler, ..Setup::default() };
        let Some(violation) = run(&setup).violation else { return false };
        let is_it = words.iter().any(|word| violation.0.contains(word));
        others.insert(violation.0);
        is_it
    });
    assert!(is_told, "none of {words:?}, but {others:#?}");
}

fn statuses(plan: &mut Plan) -> impl Iterator<Item = &mut JobSetStatus> {
    plan.steps.iter_mut().filter_map(|step| match step {
        Step::WriteStatus(write) => Some(&mut write.status),
        _ => None,
    })
}

#[test]
fn restarting_without_counting_it_is_found() {
    fn meddle(plan: &mut Plan) {
        for status in statuses(plan) {
            status.restarts_count_towards_max = 0;
        }
    }
    assert_found(meddle, &["restarts without a reason", "counts -1 restarts at once"]);
}

#[test]
fn restarting_twice_for_one_failure_is_found() {
    fn meddle(plan: &mut Plan) {
        for status in statuses(plan).filter(|status| status.restarts == 1) {
            let restarting = |it: &&k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
                it.type_ == "RestartingJobSet" && it.status == "True"
            };
            status.restarts += i32::from(status.conditions.iter().any(|it| restarting(&it)));
        }
    }
    assert_found(meddle, &["restarts without a reason"]);
}

#[test]
fn deciding_on_a_version_that_has_changed_is_found() {
    fn meddle(plan: &mut Plan) {
        for step in &mut plan.steps {
            if let Step::WriteStatus(write) = step {
                write.resource_version.clear();
            }
        }
    }
    assert_found(meddle, &["must be specified for an update"]);
}

#[test]
fn starting_everything_at_once_is_found() {
    // What is made suspended, waiting for its turn, is let go at once.
    fn meddle(plan: &mut Plan) {
        plan.steps.retain(|step| !matches!(step, Step::WriteStatus(_)));
        for step in &mut plan.steps {
            let Step::CreateJobs(jobs) = step else { continue };
            for job in jobs {
                job.spec.iter_mut().for_each(|spec| spec.suspend = Some(false));
            }
        }
    }
    assert_found(meddle, &["runs before"]);
}

#[test]
fn keeping_the_jobs_of_an_earlier_attempt_is_found() {
    fn meddle(plan: &mut Plan) {
        plan.steps.retain(|step| !matches!(step, Step::DeleteJobs(_)));
        if plan.steps.is_empty() && plan.waiting.is_none() {
            plan.waiting = Some(Waiting::Running);
        }
    }
    assert_found(meddle, &["of an earlier attempt stays", "goes on", "never ends"]);
}

#[test]
fn changing_an_end_is_found() {
    fn meddle(plan: &mut Plan) {
        for status in statuses(plan) {
            for condition in &mut status.conditions {
                let is_counted = status.replicated_jobs_status.iter().all(|job| job.active == 0);
                if condition.type_ == "Failed" && is_counted {
                    condition.type_ = "Completed".to_owned();
                    status.terminal_state = "Completed".to_owned();
                }
            }
        }
    }
    assert_found(meddle, &["the end of set", "although Job", "is complete with"]);
}

#[test]
fn a_status_that_lags_behind_the_jobs_is_found() {
    fn meddle(plan: &mut Plan) {
        if let [Step::WriteStatus(_)] = *plan.steps {
            plan.steps.clear();
            plan.waiting = Some(Waiting::Suspended);
        }
    }
    assert_found(meddle, &["its status says"]);
}
