//! How Jobs are filled in, checked and shown.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobSpec;
use serde_json::Value;

use crate::{
    annotations,
    field::ErrorList,
    gates::Gates,
    job::{
        defaults, is_indexed, policies, selector, status, table, update,
        validation::{self, COMPLETIONS_SOFT_MAX, PARALLELISM_SOFT_MAX},
    },
    json::{at, integer, object_mut, text},
    kinds::view,
    kueue::jobs::{self, JobKind},
    names,
    pod::warnings_for_template,
    strategy::{Column, Json, Propagation, Strategy, WriteContext, keep},
};

/// Job.
#[derive(Debug)]
pub struct JobStrategy {
    gates: Gates,
}

impl JobStrategy {
    /// Jobs with these features.
    pub const fn new(gates: Gates) -> Self {
        Self { gates }
    }

    /// Takes away what belongs to features that are off, unless `old` has it already.
    fn drop_disabled(&self, object: &mut Json, old: Option<&Json>) {
        let had_policy = old.is_some_and(|old| at(old, &["spec", "successPolicy"]).is_some());
        if !self.gates.job_success_policy && !had_policy {
            object_mut(object, "spec").remove("successPolicy");
        }
    }
}

impl Strategy for JobStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        defaults::fill(object);
    }

    fn prepare_create(&self, object: &mut Json, context: &WriteContext) {
        object.remove("status");
        self.drop_disabled(object, None);
        selector::generate(object, &context.uid);
        selector::copy_labels(object);
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        validation::validate(object, true)
    }

    fn prepare_update(&self, object: &mut Json, old: &Json, _context: &WriteContext) {
        keep(object, old, "status");
        self.drop_disabled(object, Some(old));
        selector::copy_labels(object);
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        let mut errors = validation::validate(object, update::has_prefixed_labels(old));
        errors.extend(update::validate(object, old));
        errors
    }

    fn validate_status_update(&self, object: &Json, old: &Json) -> ErrorList {
        status::validate(object, old)
    }

    fn warnings(&self, object: &Json, old: Option<&Json>) -> Vec<String> {
        let mut warnings = annotations::warnings(object, old, annotations::OF_JOBS);
        if old.is_none() {
            warnings.extend(jobs::warnings(object));
        }
        match old {
            None => warnings.extend(warn_about_name(text(object, &["metadata", "name"]))),
            Some(old) if old.get("spec") == object.get("spec") => return warnings,
            Some(_) => {}
        }
        let spec: JobSpec = view(object, "spec", &mut ErrorList::new());
        if is_indexed(&spec)
            && spec.completions.unwrap_or_default() > COMPLETIONS_SOFT_MAX
            && spec.parallelism.unwrap_or_default() > PARALLELISM_SOFT_MAX
        {
            warnings.push(
                "spec: In Indexed Jobs with a number of completions higher than 10^5 and a \
                 parallelism higher than 10^4, Kubernetes might not be able to track \
                 completedIndexes when a big number of indexes fail"
                    .to_owned(),
            );
        }
        warnings.extend(policies::warn_about_success(&spec));
        if let Some(template) = at(object, &["spec", "template"]).and_then(Value::as_object) {
            warnings.extend(warnings_for_template(template, "spec.template"));
        }
        warnings
    }

    fn lint(&self, object: &Json) -> ErrorList {
        jobs::validate_create(JobKind::Job, object)
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn default_propagation(&self) -> Propagation {
        Propagation::Orphan
    }

    fn warning_on_default_propagation(&self) -> Option<&'static str> {
        Some(
            "child pods are preserved by default when jobs are deleted; set \
             propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
             suppress this warning",
        )
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["status.successful"]
    }

    fn field_value(&self, object: &Json, _field: &str) -> String {
        integer(object, &["status", "succeeded"]).unwrap_or_default().to_string()
    }

    fn unsupported_field(&self, field: &str) -> String {
        format!("field label {field:?} not supported for Job")
    }

    fn columns(&self) -> &'static [Column] {
        table::COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        table::row(object, now)
    }
}

/// What a name is not good for that pods and hosts are named after.
pub(super) fn warn_about_name(name: &str) -> Option<String> {
    let faults = names::dns1123_label(name);
    (!faults.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in \
             surprising behavior; a DNS label is recommended: [{}]",
            faults.join(" ")
        )
    })
}
