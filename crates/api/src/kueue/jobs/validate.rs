//! What labels and annotations of jobs may say, and when they may change.

use std::num::IntErrorKind;

use super::{JobKind, queue_name};
use crate::{
    field::{ErrorList, FieldError, Path},
    json::{at, flag, integer, text},
    kinds::IMMUTABLE,
    kueue::wait,
    labels::kueue::{
        COMPLETIONS_EQUAL_PARALLELISM, ELASTIC_JOB, MAX_EXEC_TIME, MIN_PARALLELISM,
        PREBUILT_WORKLOAD, PRIORITY_CLASS, QUEUE_NAME, STOPPING,
    },
    names,
    quote::quoted,
    strategy::Json,
};

fn label<'a>(object: &'a Json, key: &str) -> &'a str {
    text(object, &["metadata", "labels", key])
}

fn annotation<'a>(object: &'a Json, key: &str) -> Option<&'a str> {
    at(object, &["metadata", "annotations", key])?.as_str()
}

fn label_path(key: &str) -> Path {
    Path::new("metadata").child("labels").key(key)
}

/// A job that is being stopped still runs.
fn is_suspended(object: &Json) -> bool {
    flag(object, &["spec", "suspend"]) && annotation(object, STOPPING) != Some("true")
}

/// Says what is wrong with a new job.
pub fn validate_create(kind: JobKind, object: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(named(object, QUEUE_NAME));
    errors.extend(named(object, PREBUILT_WORKLOAD));
    errors.extend(max_exec_time(object));
    if kind == JobKind::Job {
        errors.extend(partial_admission(object));
    }
    errors.extend(wait::validate(object));
    errors
}

/// Says what is wrong with a change of a job; `has_default_queue` is asked whether the namespace
/// has a queue for jobs that name none.
pub fn validate_update(
    kind: JobKind,
    object: &Json,
    old: &Json,
    has_default_queue: impl Fn() -> bool,
) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(queue_change(object, old, has_default_queue));
    let is_suspended_now = is_suspended(object);
    let is_elastic = |of| annotation(of, ELASTIC_JOB) == Some("true");
    if is_suspended_now || is_elastic(old) {
        errors.extend(named(object, PREBUILT_WORKLOAD));
    } else if prebuilt(object) != prebuilt(old) {
        let path = label_path(PREBUILT_WORKLOAD);
        errors.push(FieldError::invalid(&path, prebuilt(object), IMMUTABLE));
    }
    let limit = |of| label(of, MAX_EXEC_TIME);
    if limit(object) != limit(old) {
        if is_suspended_now && is_suspended(old) {
            errors.extend(max_exec_time(object));
        } else {
            let path = label_path(MAX_EXEC_TIME);
            errors.push(FieldError::invalid(&path, limit(object), IMMUTABLE));
        }
    }
    errors.extend(class_change(object, old));
    if is_elastic(object) != is_elastic(old) {
        // Upstream looks for it among the labels when it says so.
        let path = label_path(ELASTIC_JOB);
        errors.push(FieldError::invalid(&path, is_elastic(object), IMMUTABLE));
    }
    if kind == JobKind::Job {
        errors.extend(partial_admission_change(object, old));
    }
    let annotations = |of| at(of, &["metadata", "annotations"]);
    if annotations(object) != annotations(old) {
        errors.extend(wait::validate(object));
    }
    errors
}

/// The Workload a job is to use.
fn prebuilt(object: &Json) -> &str {
    annotation(object, PREBUILT_WORKLOAD).unwrap_or_else(|| label(object, PREBUILT_WORKLOAD))
}

/// A label that names an object.
fn named(object: &Json, key: &str) -> Option<FieldError> {
    let value = at(object, &["metadata", "labels", key])?.as_str()?;
    let faults = names::dns1123_subdomain(value);
    (!faults.is_empty()).then(|| FieldError::invalid(&label_path(key), value, &faults.join(",")))
}

fn queue_change(object: &Json, old: &Json, has_default_queue: impl Fn() -> bool) -> ErrorList {
    let (now, before) = (queue_name(object), queue_name(old));
    let path = label_path(QUEUE_NAME);
    let mut errors = ErrorList::new();
    if now == before {
        return errors;
    }
    errors.extend(named(object, QUEUE_NAME));
    if !is_suspended(object) {
        errors.push(FieldError::invalid(&path, now, IMMUTABLE));
    }
    if now.is_empty() && has_default_queue() {
        let why = "queue-name must not be empty in namespace with default queue";
        errors.push(FieldError::invalid(&path, "", why));
    }
    errors
}

fn class_change(object: &Json, old: &Json) -> Option<FieldError> {
    let (now, before) = (label(object, PRIORITY_CLASS), label(old, PRIORITY_CLASS));
    let path = label_path(PRIORITY_CLASS);
    if before.is_empty() && !now.is_empty() && !is_suspended(object) {
        let why = "WorkloadPriorityClass cannot be added to a non-suspended workload";
        return Some(FieldError::invalid(&path, now, why));
    }
    (now.is_empty() && !before.is_empty()).then(|| {
        let why = "WorkloadPriorityClass cannot be removed from a workload";
        FieldError::invalid(&path, now, why)
    })
}

fn max_exec_time(object: &Json) -> Option<FieldError> {
    let value = at(object, &["metadata", "labels", MAX_EXEC_TIME])?.as_str()?;
    let path = label_path(MAX_EXEC_TIME);
    match whole(value) {
        Err(why) => Some(FieldError::invalid(&path, value, &why)),
        Ok(seconds) if seconds <= 0 => {
            Some(FieldError::invalid(&path, seconds, "should be greater than 0"))
        }
        Ok(_) => None,
    }
}

/// A whole number, or the words in which Go says that there is none.
fn whole(text: &str) -> Result<i64, String> {
    text.parse::<i64>().map_err(|error| {
        let is_large =
            [IntErrorKind::PosOverflow, IntErrorKind::NegOverflow].contains(error.kind());
        let what = if is_large { "value out of range" } else { "invalid syntax" };
        format!("strconv.Atoi: parsing {}: {what}", quoted(text))
    })
}

/// How many pods of a Job run at once.
fn pods_count(object: &Json) -> i64 {
    let parallelism = integer(object, &["spec", "parallelism"]).unwrap_or(1);
    integer(object, &["spec", "completions"]).map_or(parallelism, |most| most.min(parallelism))
}

fn annotation_path(key: &str) -> Path {
    Path::new("metadata").child("annotations").key(key)
}

fn partial_admission(object: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(value) = annotation(object, MIN_PARALLELISM) {
        let path = annotation_path(MIN_PARALLELISM);
        let pods = pods_count(object);
        match whole(value) {
            Err(why) => errors.push(FieldError::invalid(&path, value, &why)),
            Ok(least) if least <= 0 || least >= pods => {
                let why = format!("should be between 0 and {}", pods - 1);
                errors.push(FieldError::invalid(&path, least, &why));
            }
            Ok(_) => {}
        }
    }
    let Some(value) = annotation(object, COMPLETIONS_EQUAL_PARALLELISM) else { return errors };
    let path = annotation_path(COMPLETIONS_EQUAL_PARALLELISM);
    match boolean(value) {
        Some(true) => {
            if text(object, &["spec", "completionMode"]) != "Indexed" {
                let why = "should not be enabled for NonIndexed jobs";
                errors.push(FieldError::invalid(&path, value, why));
            }
            let size = |field| integer(object, &["spec", field]).unwrap_or(1);
            if size("parallelism") != size("completions") {
                let path = Path::new("spec").child("completions");
                let why = format!(
                    "should be equal to parallelism when {COMPLETIONS_EQUAL_PARALLELISM} is \
                     annotation is true"
                );
                errors.push(FieldError::invalid(&path, size("completions"), &why));
            }
        }
        Some(false) => {}
        None => {
            let why = format!("strconv.ParseBool: parsing {}: invalid syntax", quoted(value));
            errors.push(FieldError::invalid(&path, value, &why));
        }
    }
    errors
}

fn partial_admission_change(object: &Json, old: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    let said = |of| [MIN_PARALLELISM, COMPLETIONS_EQUAL_PARALLELISM].map(|key| annotation(of, key));
    let size = |of| integer(of, &["spec", "parallelism"]).unwrap_or(1);
    if annotation(old, MIN_PARALLELISM).is_some() && !is_suspended(old) && size(object) != size(old)
    {
        let path = Path::new("spec").child("parallelism");
        let why = "cannot change when partial admission is enabled and the job is not suspended";
        errors.push(FieldError::forbidden(&path, why));
    }
    let is_equal = |of| annotation(of, COMPLETIONS_EQUAL_PARALLELISM).and_then(boolean);
    let is_equal = |of| is_equal(of).unwrap_or_default();
    if !is_suspended(old) && !is_suspended(object) && is_equal(object) != is_equal(old) {
        let path = annotation_path(COMPLETIONS_EQUAL_PARALLELISM);
        let why = "field is immutable while the job is not suspended";
        errors.push(FieldError::forbidden(&path, why));
    }
    if said(object) != said(old) {
        errors.extend(partial_admission(object));
    }
    errors
}

/// A boolean as Go reads one.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}
