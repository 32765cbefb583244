//! Planners that are broken on purpose: the simulator is worth something only if it finds them out.

use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};
use lockstep_control::plan::job::{Plan, Step};
use lockstep_sim::{Setup, controller::Meddler, run};

/// The first violation in the first worlds, and how many worlds it took.
fn found(meddler: Meddler) -> Option<String> {
    (0..400).find_map(|seed| {
        let setup = Setup { seed, meddler: Some(meddler), ..Setup::default() };
        Some(run(&setup).violation?.to_string())
    })
}

/// Asserts that a broken planner is found out for what it does.
fn assert_found(meddler: Meddler, words: &[&str]) {
    let violation = found(meddler).expect("a broken planner is found out");
    assert!(words.iter().any(|word| violation.contains(word)), "{violation}");
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
    assert_found(meddle, &[""]);
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
