//! How JobSets are filled in, checked and shown.

use jiff::Timestamp;
use serde_json::Value;

use super::{JobSetSpec, SCHEMA, cel, defaults, lint, table, update, validation};
use crate::{
    annotations, custom,
    field::ErrorList,
    gates::Gates,
    json,
    kinds::view,
    kueue::jobs,
    names,
    strategy::{Column, Json, Strategy, WriteContext, keep},
};

/// JobSet.
#[derive(Debug)]
pub struct JobSetStrategy {
    gates: Gates,
}

impl JobSetStrategy {
    /// JobSets with these features.
    pub const fn new(gates: Gates) -> Self {
        Self { gates }
    }
}

impl Strategy for JobSetStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        custom::fill(SCHEMA, object);
    }

    fn prepare_create(&self, object: &mut Json, _context: &WriteContext) {
        object.remove("status");
        defaults::fill_new(object);
        custom::fill(SCHEMA, object);
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        let errors = by_schema(object, None);
        if !errors.is_empty() {
            return errors;
        }
        validation::validate(object, self.gates)
    }

    fn prepare_update(&self, object: &mut Json, old: &Json, _context: &WriteContext) {
        keep(object, old, "status");
        defaults::fill_lists(object);
        custom::fill(SCHEMA, object);
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        let errors = by_schema(object, Some(old));
        if !errors.is_empty() {
            return errors;
        }
        update::validate(object, old, self.gates)
    }

    fn validate_status_update(&self, object: &Json, _old: &Json) -> ErrorList {
        let mut errors = custom::check(SCHEMA, object, &["status"]).errors;
        errors.extend(custom::duplicates(SCHEMA, object, &["status"]));
        errors
    }

    fn warnings(&self, object: &Json, old: Option<&Json>) -> Vec<String> {
        let mut warnings = annotations::warnings(object, old, annotations::OF_JOB_SETS);
        if old.is_some_and(|old| old.get("spec") == object.get("spec")) {
            return warnings;
        }
        warnings.extend(self.lint(object).iter().map(ToString::to_string));
        if old.is_none() {
            warnings.extend(jobs::warnings(object));
        }
        let strategy = json::text(object, &["spec", "failurePolicy", "restartStrategy"]);
        if strategy == "InPlaceRestart" {
            warnings.push(
                "spec.failurePolicy.restartStrategy: InPlaceRestart is not acted on so far: a \
                 restart makes all Jobs anew, as Recreate does"
                    .to_owned(),
            );
        }
        warnings
    }

    fn lint(&self, object: &Json) -> ErrorList {
        let spec: JobSetSpec = view(object, "spec", &mut ErrorList::new());
        lint::errors(object, &spec, self.gates)
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn is_custom(&self) -> bool {
        true
    }

    fn has_status(&self) -> bool {
        true
    }

    fn reset_fields(&self, part: Option<&str>) -> &'static [&'static [&'static str]] {
        custom::reset_fields(true, part)
    }

    fn columns(&self) -> &'static [Column] {
        &table::COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        custom::row(&table::PRINTED, object, now)
    }
}

/// What an API server finds by the CustomResourceDefinition alone.
fn by_schema(object: &Json, old: Option<&Json>) -> ErrorList {
    custom::by_definition(SCHEMA, object, &["spec"], |object| {
        let mut errors = cel::validate(object);
        if let Some(old) = old {
            errors.extend(cel::validate_change(object, old));
        }
        errors
    })
}
