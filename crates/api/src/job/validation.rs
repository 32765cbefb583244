//! What a Job may look like.

use k8s_openapi::api::batch::v1::JobSpec;
use serde_json::Value;

use crate::{
    field::{ErrorList, FieldError, Path},
    job::{is_indexed, policies, selector},
    json::{at, text},
    kinds::{NOT_NEGATIVE, each, view},
    meta::validate_label_selector,
    names,
    pod::validation::validate_template,
    selector::LabelSelector,
    strategy::Json,
};

/// Above so many completions an Indexed Job with a limit per index is restricted.
pub(super) const COMPLETIONS_SOFT_MAX: i32 = 100_000;
/// How parallel a Job above [`COMPLETIONS_SOFT_MAX`] may be.
pub(super) const PARALLELISM_SOFT_MAX: i32 = 10_000;
const INDEXED_MAX: i32 = 100_000;
const MANAGED_BY_BYTES_MAX: usize = 63;
const NEEDS_INDEXED: &str = "requires indexed completion mode";

/// Says what is wrong with a Job. `needs_prefixed_labels` is false only for Jobs that never had
/// them.
pub(super) fn validate(object: &Json, needs_prefixed_labels: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec: JobSpec = view(object, "spec", &mut errors);
    errors.extend(selector::validate(object, &spec, needs_prefixed_labels));
    errors.extend(validate_spec(object, &spec));
    if is_indexed(&spec)
        && let Some(completions) = spec.completions.filter(|completions| *completions > 0)
    {
        let name = text(object, &["metadata", "name"]);
        let hostname = format!("{name}-{}", completions - 1);
        if !names::dns1123_label(&hostname).is_empty() {
            let path = Path::new("metadata").child("name");
            let why = format!("will not able to create pod with invalid DNS label: {hostname}");
            errors.push(FieldError::invalid(&path, name, &why));
        }
    }
    errors
}

/// Says what is wrong with the spec of a Job, but for its selector: in a template there is none.
pub(super) fn validate_template_spec(object: &Json, spec: &JobSpec, path: &Path) -> ErrorList {
    let mut errors = validate_numbers(spec, path);
    if let Some(manager) = &spec.managed_by {
        errors.extend(validate_manager(manager, &path.child("managedBy")));
    }
    errors.extend(validate_mode(spec, path));
    errors.extend(policies::validate_pod_failure(spec, &path.child("podFailurePolicy")));
    errors.extend(policies::validate_success(spec, &path.child("successPolicy")));
    errors.extend(validate_replacement(spec, &path.child("podReplacementPolicy")));
    if let Some(template) = at(object, &["spec", "template"]).and_then(Value::as_object) {
        errors.extend(validate_template(template, &path.child("template")));
    }
    let path_of_policy = path.child("template").child("spec").child("restartPolicy");
    errors.extend(validate_restart_policy(spec, &path_of_policy));
    errors
}

fn validate_spec(object: &Json, spec: &JobSpec) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = validate_template_spec(object, spec, &path);
    match &spec.selector {
        None => errors.push(FieldError::required(&path.child("selector"), "")),
        Some(selector) => errors.extend(validate_label_selector(selector, &path.child("selector"))),
    }
    let labels = selector::template_labels(spec);
    if LabelSelector::from_meta(spec.selector.as_ref())
        .is_ok_and(|selector| !selector.matches_map(labels))
    {
        let path = path.child("template").child("metadata").child("labels");
        let why = "`selector` does not match template `labels`";
        let shown = spec.template.metadata.as_ref().and_then(|meta| meta.labels.as_ref());
        errors.push(FieldError::invalid(&path, shown, why));
    }
    errors
}

fn validate_numbers(spec: &JobSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let numbers = [
        ("parallelism", spec.parallelism.map(i64::from)),
        ("completions", spec.completions.map(i64::from)),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("backoffLimit", spec.backoff_limit.map(i64::from)),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished.map(i64::from)),
        ("backoffLimitPerIndex", spec.backoff_limit_per_index.map(i64::from)),
        ("maxFailedIndexes", spec.max_failed_indexes.map(i64::from)),
    ];
    for (field, number) in numbers {
        if let Some(number) = number.filter(|number| *number < 0) {
            errors.push(FieldError::invalid(&path.child(field), number, NOT_NEGATIVE));
        }
    }
    if spec.max_failed_indexes.is_some() && spec.backoff_limit_per_index.is_none() {
        let path = path.child("backoffLimitPerIndex");
        errors.push(FieldError::required(&path, "when maxFailedIndexes is specified"));
    }
    errors
}

/// Says what is wrong with the name of a controller: `domain/path`.
pub(crate) fn validate_manager(manager: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match manager.split_once('/') {
        _ if manager.is_empty() => errors.push(FieldError::required(path, "")),
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            errors.extend(each(path, host, names::dns1123_subdomain(host)));
            let is_path_byte =
                |b: u8| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b);
            if !rest.bytes().all(is_path_byte) {
                let why = "Invalid path (regex used for validation is \
                           '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
                errors.push(FieldError::invalid(path, rest, why));
            }
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid(path, manager, why));
        }
    }
    if manager.len() > MANAGED_BY_BYTES_MAX {
        errors.push(FieldError::too_long(path, MANAGED_BY_BYTES_MAX));
    }
    errors
}

fn validate_mode(spec: &JobSpec, path: &Path) -> ErrorList {
    match spec.completion_mode.as_deref() {
        Some("Indexed") => validate_indexed(spec, path),
        None | Some("NonIndexed") => {
            let fields = [
                ("backoffLimitPerIndex", spec.backoff_limit_per_index),
                ("maxFailedIndexes", spec.max_failed_indexes),
            ];
            let set = fields.into_iter().filter_map(|(field, value)| Some((field, value?)));
            set.map(|(field, value)| FieldError::invalid(&path.child(field), value, NEEDS_INDEXED))
                .collect()
        }
        Some(other) => {
            let path = path.child("completionMode");
            vec![FieldError::not_supported(&path, other, &["NonIndexed", "Indexed"])]
        }
    }
}

fn validate_indexed(spec: &JobSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let too_large = |field: &str, value: i32, limit: &str| {
        let why = format!("must be less than or equal to {limit}");
        FieldError::invalid(&path.child(field), value, &why)
    };
    let parallelism = spec.parallelism.unwrap_or_default();
    let failed = spec.max_failed_indexes;
    if spec.completions.is_none() {
        let why = "when completion mode is Indexed";
        errors.push(FieldError::required(&path.child("completions"), why));
    }
    if parallelism > INDEXED_MAX {
        let limit = format!("{INDEXED_MAX} when completion mode is Indexed");
        errors.push(too_large("parallelism", parallelism, &limit));
    }
    if let (Some(failed), Some(completions)) = (failed, spec.completions)
        && failed > completions
    {
        errors.push(too_large("maxFailedIndexes", failed, "completions"));
    }
    if let Some(failed) = failed.filter(|failed| *failed > INDEXED_MAX) {
        errors.push(too_large("maxFailedIndexes", failed, &INDEXED_MAX.to_string()));
    }
    let is_huge = spec.completions.is_some_and(|completions| completions > COMPLETIONS_SOFT_MAX);
    if is_huge && spec.backoff_limit_per_index.is_some() {
        let limit = format!(
            "{PARALLELISM_SOFT_MAX} when completions are above {COMPLETIONS_SOFT_MAX} and used \
             with backoff limit per index"
        );
        if failed.is_none() {
            let why = format!("must be specified when completions is above {COMPLETIONS_SOFT_MAX}");
            errors.push(FieldError::required(&path.child("maxFailedIndexes"), &why));
        }
        if parallelism > PARALLELISM_SOFT_MAX {
            errors.push(too_large("parallelism", parallelism, &limit));
        }
        if let Some(failed) = failed.filter(|failed| *failed > PARALLELISM_SOFT_MAX) {
            errors.push(too_large("maxFailedIndexes", failed, &limit));
        }
    }
    errors
}

fn validate_replacement(spec: &JobSpec, path: &Path) -> Option<FieldError> {
    let policy = spec.pod_replacement_policy.as_deref()?;
    let supported: &[&str] = if spec.pod_failure_policy.is_some() {
        &["Failed"]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    (!supported.contains(&policy)).then(|| FieldError::not_supported(path, policy, supported))
}

/// Pods of a Job end; `Always` is what an absent policy was filled in with.
fn validate_restart_policy(spec: &JobSpec, path: &Path) -> Option<FieldError> {
    let policy = spec.template.spec.as_ref().and_then(|pod| pod.restart_policy.as_deref());
    match policy.unwrap_or_default() {
        "" | "Always" => Some(FieldError::required(path, "valid values: \"OnFailure\", \"Never\"")),
        "Never" => None,
        "OnFailure" if spec.pod_failure_policy.is_none() => None,
        "OnFailure" => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            Some(FieldError::invalid(path, "OnFailure", why))
        }
        other => Some(FieldError::not_supported(path, other, &["OnFailure", "Never"])),
    }
}
