//! When a JobSet is complete.

use lockstep_api::jobset::SuccessOperator;

use super::{Bucket, Event, condition, pass::Pass};

/// Completes the set if as many Jobs have succeeded as must. Says whether it did.
pub(super) fn decide(pass: &mut Pass<'_>) -> bool {
    let is_met = pass.view.size(Bucket::Successful) > 0 && is_met(pass);
    if is_met {
        condition::completed(pass);
    }
    is_met
}

/// Tells that the set would be complete if it had not just failed.
pub(super) fn tell_lost(pass: &mut Pass<'_>) {
    let has_failed = condition::finished(pass.status()).is_some();
    if has_failed && pass.view.size(Bucket::Successful) > 0 && is_met(pass) {
        let message = "the success policy is met as well: a failure that is seen at the same time \
                       comes first";
        pass.emit(Event::warning("SuccessPolicyOverruled", message));
    }
}

fn is_met(pass: &Pass<'_>) -> bool {
    let policy = pass.spec().success_policy.as_ref();
    let targets = policy.map(|policy| policy.target_replicated_jobs.as_slice()).unwrap_or_default();
    let jobs = pass.spec().replicated_jobs.iter();
    let counted = jobs.filter(|job| targets.is_empty() || targets.contains(&job.name));
    let (mut succeeded, mut all) = (0, 0);
    for job in counted {
        succeeded += i64::from(pass.view.counts(&job.name).succeeded);
        all += i64::from(job.replicas);
    }
    match policy.map(|policy| policy.operator).unwrap_or_default() {
        SuccessOperator::Any => succeeded >= 1,
        SuccessOperator::All | SuccessOperator::Unknown => succeeded >= all,
    }
}
