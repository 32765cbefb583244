//! Rules that a schema has as expressions in CEL: what is wrong with them, and what they find.
//!
//! Expressions are parsed and evaluated by existing crates, which know no types: what upstream's
//! compiler would refuse because a field does not exist fails here when the rule is evaluated. What
//! an expression may cost is not limited.

mod functions;
mod program;
mod rewrite;
mod unordered;
mod value;

use serde_json::Value;

pub(super) use program::Programs;

use super::schema::{Rule, Schema};
use crate::{
    field::{ErrorKind, ErrorList, FieldError, Path},
    strategy::Json,
};
use program::{Outcome, Subject};

/// What is wrong with rule number `at` of a schema.
pub(super) fn faults(
    schema: &Schema,
    at: usize,
    path: &Path,
    uncorrelated: Option<&Path>,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(rule) = schema.rules.get(at) else { return errors };
    let programs = rule.programs();
    let shown = serde_json::json!({
        "Rule": rule.rule, "Message": rule.message, "MessageExpression": rule.message_expression,
    });
    if let Err(why) = &programs.rule {
        let why = format!("compilation failed: {why}");
        errors.push(FieldError::invalid(&path.child("rule"), &shown, &why));
    }
    if let Some(Err(why)) = &programs.message {
        let why = format!("messageExpression compilation failed: {why}");
        errors.push(FieldError::invalid(&path.child("messageExpression"), &shown, &why));
    }
    if !rule.field_path.is_empty() && target(schema, &rule.field_path).is_none() {
        let path = path.child("fieldPath");
        errors.push(FieldError::invalid(&path, &rule.field_path, "fieldPath must be a valid path"));
    }
    match uncorrelated {
        Some(within) if programs.uses_old => {
            let why = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
            );
            errors.push(FieldError::invalid(&path.child("rule"), &rule.rule, &why));
        }
        _ if rule.is_old_optional && !programs.uses_old => {
            let why = "may not be set if oldSelf is not used in rule";
            errors.push(FieldError::invalid(&path.child("optionalOldSelf"), true, why));
        }
        _ => {}
    }
    errors
}

/// The rules that are not looked at, as warnings.
pub(super) fn unenforced(schema: &Schema, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (at, rule) in schema.rules.iter().enumerate() {
        if let Some(function) = rule.programs().unsupported.as_ref() {
            warnings.push(format!(
                "{path}.x-kubernetes-validations[{at}].rule: is not enforced: {function} is not \
                 supported"
            ));
        }
    }
    for (name, property) in &schema.properties {
        warnings.extend(unenforced(property, &format!("{path}.properties[{name}]")));
    }
    if let Some(items) = schema.items.as_deref() {
        warnings.extend(unenforced(items, &format!("{path}.items")));
    }
    if let Some(additional) = schema.additional.schema() {
        warnings.extend(unenforced(additional, &format!("{path}.additionalProperties")));
    }
    warnings
}

/// What the rules of a schema find wrong with an object that may have been another before.
pub(super) fn check(schema: &Schema, object: &Json, old: Option<&Json>) -> ErrorList {
    let mut errors = ErrorList::new();
    let [new, old] = [Some(object), old].map(|it| it.map(|it| Value::Object(it.clone())));
    if let Some(new) = new {
        visit(
            schema,
            Scene { new: &new, old: old.as_ref(), is_root: true, is_kept: false },
            &Path::default(),
            &mut errors,
        );
    }
    errors
}

/// A value and what it was before.
#[derive(Clone, Copy)]
struct Scene<'a> {
    new: &'a Value,
    old: Option<&'a Value>,
    is_root: bool,
    /// Whether nothing has changed, as far as one can tell: of what cannot be found again, such as
    /// an element of a list without keys, whether that has not which it is in.
    is_kept: bool,
}

impl<'a> Scene<'a> {
    /// A part of this one.
    fn part(&self, new: &'a Value, old: Option<&'a Value>) -> Self {
        let is_kept = old.map_or(self.is_kept, |old| old == new);
        Self { new, old, is_root: false, is_kept }
    }
}

fn visit(schema: &Schema, scene: Scene<'_>, path: &Path, errors: &mut ErrorList) {
    if scene.new.is_null() || !schema.any(&|schema| !schema.rules.is_empty()) {
        return;
    }
    for rule in &schema.rules {
        let programs = rule.programs();
        // What did not change may stay as it is, but for rules about changes.
        if programs.unsupported.is_some() || (scene.is_kept && !programs.uses_old) {
            continue;
        }
        if programs.uses_old && scene.old.is_none() && !rule.is_old_optional {
            continue;
        }
        errors.extend(fault(schema, rule, scene, path));
    }
    match scene.new {
        Value::Object(object) => {
            let old = scene.old.and_then(Value::as_object);
            for (name, new) in object {
                let inner = scene.part(new, old.and_then(|old| old.get(name)));
                if let Some(property) = schema.properties.get(name) {
                    visit(property, inner, &path.child(name), errors);
                } else if let Some(additional) = schema.additional.schema() {
                    visit(additional, inner, &path.key(name), errors);
                }
            }
        }
        Value::Array(list) => {
            let Some(items) = schema.items.as_deref() else { return };
            let old = scene.old.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            for (at, new) in list.iter().enumerate() {
                let inner = scene.part(new, schema.same_element(old, new));
                visit(items, inner, &path.index(at), errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a rule finds wrong with a value.
fn fault(schema: &Schema, rule: &Rule, scene: Scene<'_>, path: &Path) -> Option<FieldError> {
    let is_whole = scene.is_root || schema.is_embedded;
    let programs = rule.programs();
    let seen = |value: &Value| value::of(schema, value, is_whole);
    let seen_sorted = |value: &Value| seen(&unordered::sorted(schema, value));
    let subject = Subject {
        new: seen(scene.new),
        old: scene.old.map(seen),
        sorted: programs.needs_sorted.then(|| (seen_sorted(scene.new), scene.old.map(seen_sorted))),
        is_old_optional: rule.is_old_optional,
    };
    let outcome = programs.evaluate(&subject);
    let shown = if path.to_string().is_empty() { Path::new("<nil>") } else { path.clone() };
    let said = if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() };
    match outcome {
        Outcome::Holds => None,
        Outcome::Failed(why) => {
            let why = format!("{why} evaluating rule: {said}");
            Some(FieldError::invalid(&shown, &schema.kind, &why))
        }
        Outcome::Unfit => {
            let why = format!(
                "'no such overload': call arguments did not match a supported operator, function \
                 or macro signature for rule: {said}"
            );
            Some(FieldError::invalid(&shown, &schema.kind, &why))
        }
        Outcome::Fails => {
            let detail = programs.message(&subject);
            let detail = detail.unwrap_or_else(|| match rule.message.is_empty() {
                true => format!("failed rule: {said}"),
                false => said.to_owned(),
            });
            let shown = match rule.field_path.is_empty() {
                true => shown,
                false => path.child(rule.field_path.trim().trim_start_matches('.')),
            };
            Some(error(schema, rule, scene.new, &shown, &detail))
        }
    }
}

fn error(schema: &Schema, rule: &Rule, value: &Value, path: &Path, detail: &str) -> FieldError {
    match &*rule.reason {
        "FieldValueForbidden" => FieldError::forbidden(path, detail),
        "FieldValueRequired" => FieldError::required(path, detail),
        "FieldValueDuplicate" if matches!(&*schema.kind, "object" | "array") => {
            let body = "Duplicate value".to_owned();
            FieldError { kind: ErrorKind::Duplicate, path: path.clone(), body }
        }
        "FieldValueDuplicate" => FieldError::duplicate(path, value),
        _ if matches!(&*schema.kind, "object" | "array") => {
            FieldError::invalid_unshown(path, detail)
        }
        _ => FieldError::invalid(path, value, detail),
    }
}

/// The schema of the field that a path leads to: `.a.b` or `.a['b']`.
fn target<'a>(schema: &'a Schema, path: &str) -> Option<&'a Schema> {
    let plain = path.trim().replace("['", ".").replace("']", "");
    let keys = plain.strip_prefix('.')?.split('.');
    keys.filter(|key| !key.is_empty()).try_fold(schema, |schema, key| schema.field(key))
}

#[cfg(test)]
mod tests;
