//! Planners that are broken on purpose: the simulator is worth something only if it finds them out.

use std::{collections::BTreeSet, time::Duration};

use jiff::SignedDuration;
use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};
use lockstep_control::plan::job::{Options, Plan, Step, Waiting};
use lockstep_sim::{Setup, jobs::Meddler, run};

/// Asserts that a broken planner is found out for what it does: in one of the first worlds the
/// violation is one of these. In others it may come to light by what follows from it.
fn assert_found(meddler: Meddler, words: &[&str]) {
    assert_told(words, |setup| setup.meddler = Some(meddler));
}

fn assert_told(words: &[&str], change: impl Fn(&mut Setup)) {
    let mut others = BTreeSet::new();
    let is_told = (0..400).any(|seed| {
        let mut setup = Setup { seed, ..Setup::default() };
        change(&mut setup);
        let Some(violation) = run(&setup).violation else { return false };
        let is_it = words.iter().any(|word| violation.0.contains(word));
        others.insert(violation.0);
        is_it
    });
    assert!(is_told, "none of {words:?}, but {others:#?}");
}

fn statuses(plan: &mut Plan) -> impl Iterator<Item = &mut JobStatus> {
    plan.steps.iter_mut().filter_map(|step| match step {
        Step::WriteStatus(write) => Some(&mut write.status),
        _ => None,
    })
}

fn conditions(plan: &mut Plan) -> impl Iterator<Item = &mut JobCondition> {
    statuses(plan).flat_map(|status| status.conditions.iter_mut().flatten())
}

#[test]
fn letting_go_of_pods_before_they_are_written_down_is_found() {
    fn meddle(plan: &mut Plan) {
        plan.steps.sort_by_key(|step| !matches!(step, Step::RemoveFinalizers(_)));
    }
    assert_found(meddle, &["was removed before the pod was counted"]);
}

#[test]
fn counting_a_pod_when_it_is_listed_and_again_when_it_is_not_is_found() {
    fn meddle(plan: &mut Plan) {
        for status in statuses(plan) {
            let lists = status.uncounted_terminated_pods.as_ref();
            let listed = lists.and_then(|lists| lists.failed.as_ref()).map_or(0, Vec::len);
            let listed = i32::try_from(listed).unwrap();
            status.failed = Some(status.failed.unwrap_or_default() + listed);
        }
    }
    assert_found(meddle, &["Failed went from"]);
}

#[test]
fn overwriting_what_somebody_else_has_written_is_found() {
    fn meddle(plan: &mut Plan) {
        for step in &mut plan.steps {
            if let Step::WriteStatus(write) = step {
                write.resource_version.clear();
            }
        }
    }
    // What is lost depends on what was overwritten: counts, decisions, the start.
    assert_found(
        meddle,
        &[
            "Failed went from",
            "cannot decrease the failed counter",
            "is completed no longer",
            "changed although it was finished",
            "lost its SuccessCriteriaMet",
            "lost its FailureTarget",
        ],
    );
}

#[test]
fn success_where_failure_comes_first_is_found() {
    fn meddle(plan: &mut Plan) {
        for condition in conditions(plan) {
            match condition.type_.as_str() {
                "FailureTarget" => condition.type_ = "SuccessCriteriaMet".to_owned(),
                "Failed" => condition.type_ = "Complete".to_owned(),
                _ => {}
            }
        }
    }
    assert_found(meddle, &["succeeds although", "but not so"]);
}

#[test]
fn dropping_the_decision_that_a_job_has_succeeded_is_found() {
    fn meddle(plan: &mut Plan) {
        for status in statuses(plan) {
            let is_over = status.completion_time.is_some();
            let conditions = status.conditions.iter_mut();
            conditions
                .for_each(|list| list.retain(|it| is_over || it.type_ != "SuccessCriteriaMet"));
        }
    }
    assert_found(meddle, &["never ends", "not at rest", "cannot", "counted", "although"]);
}

#[test]
fn making_one_pod_too_many_is_found() {
    fn meddle(plan: &mut Plan) {
        for step in &mut plan.steps {
            if let Step::Create(pods) = step {
                let mut twin = pods[0].clone();
                twin.name.push('2');
                twin.pod.metadata.name = Some(twin.name.clone());
                pods.push(twin);
            }
        }
    }
    assert_found(meddle, &["active pods, allowed are", "both stand for index"]);
}

#[test]
fn never_making_a_pod_is_found() {
    fn meddle(plan: &mut Plan) {
        plan.steps.retain(|step| !matches!(step, Step::Create(_)));
    }
    assert_found(meddle, &["never ends", "not at rest"]);
}

#[test]
fn failing_an_index_that_has_not_failed_is_found() {
    fn meddle(plan: &mut Plan) {
        for status in statuses(plan) {
            let is_done = status.completed_indexes.as_deref().unwrap_or_default().contains('0');
            if let Some(failed) = status.failed_indexes.as_mut().filter(|_| !is_done)
                && failed.is_empty()
            {
                failed.push('0');
            }
        }
    }
    assert_found(meddle, &["is failed, but no pod of it makes it so"]);
}

#[test]
fn keeping_quiet_about_a_failed_index_is_found() {
    fn meddle(plan: &mut Plan) {
        for status in statuses(plan) {
            status.failed_indexes.iter_mut().for_each(String::clear);
        }
    }
    assert_found(meddle, &["but the status does not say so"]);
}

#[test]
fn replacing_failed_pods_at_once_is_found() {
    fn meddle(options: &mut Options) {
        options.pod_backoff_base = Duration::ZERO;
    }
    let words = ["failures hold it until", "is held until"];
    assert_told(&words, |setup| setup.tune = Some(meddle));
}

#[test]
fn forgetting_how_often_an_index_has_failed_is_found() {
    fn meddle(plan: &mut Plan) {
        for step in &mut plan.steps {
            let Step::Create(pods) = step else { continue };
            for pod in pods {
                let notes = pod.pod.metadata.annotations.get_or_insert_default();
                notes.insert("batch.kubernetes.io/job-index-failure-count".into(), "0".into());
            }
        }
    }
    assert_found(meddle, &["failures of index"]);
}

#[test]
fn a_status_that_lags_behind_the_pods_is_found() {
    fn meddle(plan: &mut Plan) {
        if let [Step::WriteStatus(_)] = *plan.steps {
            plan.steps.clear();
            plan.waiting = Some(Waiting::NoParallelism);
        }
    }
    assert_found(meddle, &["its status says"]);
}

#[test]
fn going_on_from_the_old_start_after_a_suspension_is_found() {
    fn meddle(plan: &mut Plan) {
        for status in statuses(plan) {
            let mut conditions = status.conditions.iter().flatten();
            let resumed = conditions.find(|it| it.type_ == "Suspended" && it.status == "False");
            let resumed = resumed.and_then(|it| it.last_transition_time.as_ref());
            if let Some(start) = &mut status.start_time
                && resumed.is_some_and(|at| at.0 == start.0)
            {
                start.0 -= SignedDuration::from_secs(60);
            }
        }
    }
    assert_found(meddle, &["but starts at"]);
}
