//! What the status of a Job may say. Most rules are checked only when something they are about has
//! changed, so that an update of something else is never refused.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{JobSpec, JobStatus, UncountedTerminatedPods};
use serde::{Deserialize, de::value::MapDeserializer};
use serde_json::Value;

use crate::{
    field::{ErrorList, FieldError, Path},
    job::{indexes, is_indexed, shown},
    kinds::{IMMUTABLE, NOT_NEGATIVE, view},
    strategy::Json,
};

/// Says what is wrong with an update of the status.
pub(super) fn validate(object: &Json, old: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = spec_view(object, &mut errors);
    let new: JobStatus = view(object, "status", &mut errors);
    let old: JobStatus = view(old, "status", &mut ErrorList::new());
    let update = Update { spec: &spec, new: &new, old: &old, path: Path::new("status") };
    errors.extend(update.numbers());
    errors.extend(update.completion());
    errors.extend(update.finish());
    errors.extend(update.indexes());
    errors.extend(update.pods());
    errors.extend(update.criteria());
    errors.extend(update.transitions());
    errors
}

/// The spec without its template, which is most of it and says nothing about the status. It was
/// accepted when it was written.
fn spec_view(object: &Json, errors: &mut ErrorList) -> JobSpec {
    let Some(Value::Object(spec)) = object.get("spec") else {
        return view(object, "spec", errors);
    };
    let fields = spec.iter().filter(|(field, _)| *field != "template");
    let fields = fields.map(|(field, value)| (field.as_str(), value));
    JobSpec::deserialize(MapDeserializer::new(fields)).unwrap_or_else(|why: serde_json::Error| {
        errors.push(FieldError::invalid_unshown(&Path::new("spec"), &why.to_string()));
        JobSpec::default()
    })
}

/// Whether any condition of a type is true.
pub(super) fn is_true(status: &JobStatus, kind: &str) -> bool {
    has(status, kind, "True")
}

fn has(status: &JobStatus, kind: &str, value: &str) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|condition| condition.type_ == kind && condition.status == value)
}

fn is_finished(status: &JobStatus) -> bool {
    is_true(status, "Complete") || is_true(status, "Failed")
}

struct Update<'a> {
    spec: &'a JobSpec,
    new: &'a JobStatus,
    old: &'a JobStatus,
    path: Path,
}

impl Update<'_> {
    fn is(&self, kind: &str) -> bool {
        is_true(self.new, kind)
    }

    fn is_changed(&self, kind: &str) -> bool {
        is_true(self.new, kind) != is_true(self.old, kind)
    }

    fn is_finish_changed(&self) -> bool {
        is_finished(self.new) != is_finished(self.old)
    }

    fn conditions(&self, why: &str) -> FieldError {
        FieldError::invalid_unshown(&self.path.child("conditions"), why)
    }

    fn numbers(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let numbers = [
            ("active", self.new.active),
            ("succeeded", self.new.succeeded),
            ("failed", self.new.failed),
            ("ready", self.new.ready),
            ("terminating", self.new.terminating),
        ];
        for (field, number) in numbers {
            if let Some(number) = number.filter(|number| *number < 0) {
                errors.push(FieldError::invalid(&self.path.child(field), number, NOT_NEGATIVE));
            }
        }
        let path = self.path.child("uncountedTerminatedPods");
        let mut seen = BTreeSet::new();
        let (succeeded, failed) = uncounted(self.new);
        for (list, uids) in [("succeeded", succeeded), ("failed", failed)] {
            for (at, uid) in uids.iter().enumerate() {
                let path = path.child(list).index(at);
                if uid.is_empty() {
                    errors.push(FieldError::invalid(&path, uid, "must not be empty"));
                } else if !seen.insert(uid) {
                    errors.push(FieldError::duplicate(&path, uid));
                }
            }
        }
        errors
    }

    fn completion(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let is_complete = self.is("Complete");
        let is_complete_changed = self.is_changed("Complete");
        let is_start_changed = self.new.start_time != self.old.start_time;
        let is_time_changed = self.new.completion_time != self.old.completion_time;
        if (is_complete_changed || self.is_changed("Failed")) && is_complete && self.is("Failed") {
            errors.push(self.conditions("cannot set Complete=True and Failed=true conditions"));
        }
        if (is_complete_changed || self.is_changed("FailureTarget"))
            && is_complete
            && self.is("FailureTarget")
        {
            let why = "cannot set Complete=True and FailureTarget=true conditions";
            errors.push(self.conditions(why));
        }
        let path = self.path.child("completionTime");
        if is_complete_changed || is_time_changed {
            match &self.new.completion_time {
                Some(time) if !is_complete => {
                    let why = "cannot set completionTime when there is no Complete=True condition";
                    errors.push(FieldError::invalid(&path, time, why));
                }
                None if is_complete => {
                    let why = "completionTime is required for Complete jobs";
                    errors.push(FieldError::required(&path, why));
                }
                _ => {}
            }
        }
        if let (Some(start), Some(end)) = (&self.new.start_time, &self.new.completion_time)
            && (is_start_changed || is_time_changed)
            && end.0 < start.0
        {
            let why = "must be equal to or after `startTime`";
            errors.push(FieldError::invalid(&path, end, why));
        }
        errors
    }

    fn finish(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let is_failed_list_changed = self.new.failed_indexes != self.old.failed_indexes;
        if (self.is_changed("Failed") || is_failed_list_changed)
            && self.is("Failed")
            && !self.is("FailureTarget")
        {
            let why = "cannot set Failed=True condition without the FailureTarget=true condition";
            errors.push(self.conditions(why));
        }
        if (self.is_changed("Complete") || self.is_changed("SuccessCriteriaMet"))
            && self.is("Complete")
            && !self.is("SuccessCriteriaMet")
        {
            let why =
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
            errors.push(self.conditions(why));
        }
        let is_finished = is_finished(self.new);
        let active = self.new.active.unwrap_or_default();
        let is_active_changed = active != self.old.active.unwrap_or_default();
        if (self.is_finish_changed() || is_active_changed) && is_finished && active > 0 {
            let why = "active>0 is invalid for finished job";
            errors.push(FieldError::invalid(&self.path.child("active"), active, why));
        }
        let is_start_changed = self.new.start_time != self.old.start_time;
        let never_ran = self.spec.suspend == Some(true) && self.spec.completions == Some(0);
        if (self.is_finish_changed() || is_start_changed)
            && is_finished
            && !never_ran
            && self.new.start_time.is_none()
        {
            let why = "startTime is required for finished job";
            errors.push(FieldError::required(&self.path.child("startTime"), why));
        }
        let (succeeded, failed) = uncounted(self.new);
        let is_uncounted_changed = uncounted(self.new) != uncounted(self.old);
        if (self.is_finish_changed() || is_uncounted_changed)
            && is_finished
            && !(succeeded.is_empty() && failed.is_empty())
        {
            let path = self.path.child("uncountedTerminatedPods");
            let pods = self.new.uncounted_terminated_pods.as_ref().map(shown::uncounted);
            errors.push(FieldError::invalid(&path, pods, "must be empty for finished job"));
        }
        errors
    }

    fn indexes(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let completed = self.new.completed_indexes.as_deref().unwrap_or_default();
        let is_completed_changed =
            completed != self.old.completed_indexes.as_deref().unwrap_or_default();
        let failed = self.new.failed_indexes.as_deref();
        let is_failed_changed = failed != self.old.failed_indexes.as_deref();
        let completed_path = self.path.child("completedIndexes");
        let failed_path = self.path.child("failedIndexes");
        let has_limit = self.spec.backoff_limit_per_index.is_some();
        if let Some(completions) = self.spec.completions {
            if is_completed_changed && let Err(why) = indexes::validate_list(completed, completions)
            {
                let why = format!("error parsing completedIndexes: {why}");
                errors.push(FieldError::invalid(&completed_path, completed, &why));
            }
            if let Some(failed) = failed.filter(|_| is_failed_changed && has_limit)
                && let Err(why) = indexes::validate_list(failed, completions)
            {
                let why = format!("error parsing failedIndexes: {why}");
                errors.push(FieldError::invalid(&failed_path, failed, &why));
            }
        }
        if is_completed_changed && !completed.is_empty() && !is_indexed(self.spec) {
            let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
            errors.push(FieldError::invalid(&completed_path, completed, why));
        }
        let Some(failed) = failed else { return errors };
        if is_failed_changed && !has_limit {
            let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            errors.push(FieldError::invalid(&failed_path, failed, why));
        }
        if let Some(completions) = self.spec.completions
            && (is_failed_changed || is_completed_changed)
            && let Some(index) = indexes::first_overlap(completed, failed, completions)
        {
            let why = format!("failedIndexes and completedIndexes overlap at index: {index}");
            errors.push(FieldError::invalid(&failed_path, failed, &why));
        }
        errors
    }

    fn pods(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let terminating = self.new.terminating.unwrap_or_default();
        if (self.is_finish_changed() || self.new.terminating != self.old.terminating)
            && is_finished(self.new)
            && terminating > 0
        {
            let why = "terminating>0 is invalid for finished job";
            errors.push(FieldError::invalid(&self.path.child("terminating"), terminating, why));
        }
        let active = self.new.active.unwrap_or_default();
        let is_active_changed = active != self.old.active.unwrap_or_default();
        if let Some(ready) = self.new.ready.filter(|ready| *ready > active)
            && (is_active_changed || self.new.ready != self.old.ready)
        {
            let why = "cannot set more ready pods than active";
            errors.push(FieldError::invalid(&self.path.child("ready"), ready, why));
        }
        errors
    }

    fn criteria(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let is_met = self.is("SuccessCriteriaMet");
        if is_met && self.is("Failed") {
            let why = "cannot set SuccessCriteriaMet=True and Failed=true conditions";
            errors.push(self.conditions(why));
        }
        if is_met && self.is("FailureTarget") {
            let why = "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions";
            errors.push(self.conditions(why));
        }
        if self.spec.success_policy.is_some() && !is_met && self.is("Complete") {
            let why = "cannot set Complete=True for Job with SuccessPolicy unless \
                       SuccessCriteriaMet=True";
            errors.push(self.conditions(why));
        }
        errors
    }

    fn transitions(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        for kind in ["Failed", "Complete", "FailureTarget"] {
            if is_true(self.old, kind) && !self.is(kind) {
                let why = format!("cannot disable the terminal {kind}=True condition");
                errors.push(self.conditions(&why));
            }
        }
        // An elastic Job that shrinks forgets indexes that had succeeded.
        let is_elastic = is_indexed(self.spec) && self.spec.completions == self.spec.parallelism;
        let counters = [
            ("failed", self.new.failed, self.old.failed, true),
            ("succeeded", self.new.succeeded, self.old.succeeded, !is_elastic),
        ];
        for (field, new, old, is_checked) in counters {
            let (new, old) = (new.unwrap_or_default(), old.unwrap_or_default());
            if is_checked && new < old {
                let why = format!("cannot decrease the {field} counter");
                errors.push(FieldError::invalid(&self.path.child(field), new, &why));
            }
        }
        if let (Some(new), Some(old)) = (&self.new.completion_time, &self.old.completion_time)
            && new != old
        {
            errors.push(FieldError::invalid(&self.path.child("completionTime"), new, IMMUTABLE));
        }
        let is_resuming = is_true(self.old, "Suspended") && has(self.new, "Suspended", "False");
        if self.old.start_time.is_some()
            && self.new.start_time != self.old.start_time
            && !is_resuming
            && self.spec.suspend != Some(true)
        {
            let why = "field is immutable for unsuspended job once set";
            let path = self.path.child("startTime");
            errors.push(FieldError::invalid(&path, &self.new.start_time, why));
        }
        let was_met = is_true(self.old, "SuccessCriteriaMet");
        let is_met = self.is("SuccessCriteriaMet");
        if was_met && !is_met {
            errors.push(self.conditions("cannot disable the SuccessCriteriaMet=True condition"));
        }
        if is_true(self.old, "Complete") && !was_met && is_met {
            let why =
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
            errors.push(self.conditions(why));
        }
        errors
    }
}

/// The uids of pods that ended and are not yet counted: those that succeeded, those that failed.
fn uncounted(status: &JobStatus) -> (&[String], &[String]) {
    let pods = status.uncounted_terminated_pods.as_ref();
    let list = |of: fn(&UncountedTerminatedPods) -> Option<&[String]>| {
        pods.and_then(of).unwrap_or_default()
    };
    (list(|pods| pods.succeeded.as_deref()), list(|pods| pods.failed.as_deref()))
}

#[cfg(test)]
mod tests;
