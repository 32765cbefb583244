//! Rules that a schema has as expressions in CEL: what is wrong with them, and what they find.
//!
//! Expressions are parsed and evaluated by existing crates, which know no types: what upstream's
//! compiler would refuse because a field does not exist fails here when the rule is evaluated. What
//! an expression may cost is not limited.

mod depth;
mod functions;
mod program;
mod rewrite;
mod unordered;
mod value;

use serde::Serialize;
use serde_json::Value;

pub(super) use program::Programs;

use super::{
    fieldpath::follow,
    schema::{Keyed, Rule, Schema},
};
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
    let shown = Shown::of(rule);
    if let Err(why) = &programs.rule {
        let why = format!("compilation failed: {why}");
        errors.push(FieldError::invalid(&path.child("rule"), &shown, &why));
    }
    // A message is looked at only where there is something to tell.
    if let (Ok(_), Some(Err(why))) = (&programs.rule, &programs.message) {
        let why = format!("messageExpression compilation failed: {why}");
        errors.push(FieldError::invalid(&path.child("messageExpression"), &shown, &why));
    }
    match uncorrelated {
        Some(within) if programs.uses_old => {
            let why = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
            );
            errors.push(FieldError::invalid(&path.child("rule"), &rule.rule, &why));
        }
        _ => {}
    }
    if let Some(is_optional) = rule.old_optional.filter(|_| !programs.uses_old) {
        let why = "may not be set if oldSelf is not used in rule";
        errors.push(FieldError::invalid(&path.child("optionalOldSelf"), is_optional, why));
    }
    errors
}

/// A rule as messages show it.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Shown<'a> {
    rule: &'a str,
    message: &'a str,
    message_expression: &'a str,
    reason: Option<&'a str>,
    field_path: &'a str,
    optional_old_self: Option<bool>,
}

impl<'a> Shown<'a> {
    fn of(rule: &'a Rule) -> Self {
        Self {
            rule: &rule.rule,
            message: &rule.message,
            message_expression: &rule.message_expression,
            reason: Some(&*rule.reason).filter(|reason| !reason.is_empty()),
            field_path: &rule.field_path,
            optional_old_self: rule.old_optional,
        }
    }
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
    found(schema, object, old, Wanted::Errors)
}

/// What they find wrong and let pass, because it was so before.
pub(super) fn let_pass(schema: &Schema, object: &Json, old: &Json) -> ErrorList {
    found(schema, object, Some(old), Wanted::LetPass)
}

/// What the rules of a schema find wrong with what there is when nothing is given: as something
/// that stays as it was, and as something new. `is_whole` says whether it is an object of the API.
pub(super) fn check_default(
    schema: &Schema,
    value: &Value,
    is_whole: bool,
    path: &Path,
) -> ErrorList {
    let faults = |old| {
        let scene = Scene { new: value, old, is_whole, is_root: false, is_kept: None };
        let mut errors = ErrorList::new();
        visit(schema, scene, path, Wanted::Errors, &mut errors);
        errors
    };
    let errors = faults(Some(value));
    if errors.is_empty() { faults(None) } else { errors }
}

fn found(schema: &Schema, object: &Json, old: Option<&Json>, wanted: Wanted) -> ErrorList {
    let new = Value::Object(object.clone());
    let old = old.map(|it| Value::Object(it.clone()));
    // Of an object as a whole nobody can tell that it did not change: it has metadata.
    let is_kept = Some(false);
    let scene = Scene { new: &new, old: old.as_ref(), is_whole: true, is_root: true, is_kept };
    let mut errors = ErrorList::new();
    visit(schema, scene, &Path::default(), wanted, &mut errors);
    errors
}

/// What somebody wants to know of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// What it is refused for.
    Errors,
    /// What it would be refused for, had it not been so before.
    LetPass,
}

/// A value and what it was before.
#[derive(Clone, Copy)]
struct Scene<'a> {
    new: &'a Value,
    old: Option<&'a Value>,
    /// Whether it is a whole object, embedded or not.
    is_whole: bool,
    is_root: bool,
    /// Whether nothing has changed, as far as one can tell: of what cannot be found again, such as
    /// an element of a list without keys, whether that has not which it is in. Nothing where that
    /// does not matter.
    is_kept: Option<bool>,
}

impl<'a> Scene<'a> {
    /// A part of this one.
    fn part(&self, schema: &Schema, new: &'a Value, old: Option<&'a Value>) -> Self {
        // What has not changed as a whole has not changed in any part.
        let is_kept = self.is_kept.map(|is_kept| match old {
            Some(old) if !is_kept => schema.is_same(new, old),
            _ => is_kept,
        });
        Self { new, old, is_whole: schema.is_embedded, is_root: false, is_kept }
    }
}

fn visit(schema: &Schema, scene: Scene<'_>, path: &Path, wanted: Wanted, errors: &mut ErrorList) {
    if scene.new.is_null() || !schema.has_rules {
        return;
    }
    for rule in &schema.rules {
        let programs = rule.programs();
        // Rules about changes are not let pass where there are none.
        let may_pass = scene.is_kept == Some(true) && !programs.uses_old;
        let is_asked = may_pass || wanted == Wanted::Errors;
        if programs.unsupported.is_some() || !is_asked {
            continue;
        }
        if programs.uses_old && scene.old.is_none() && !rule.is_old_optional() {
            continue;
        }
        errors.extend(match fault(schema, rule, scene, path) {
            Verdict::Holds => None,
            Verdict::Fails(error) if may_pass == (wanted == Wanted::LetPass) => Some(error),
            Verdict::Failed(error) if wanted == Wanted::Errors => Some(error),
            Verdict::Fails(_) | Verdict::Failed(_) => None,
        });
    }
    visit_parts(schema, scene, path, wanted, errors);
}

fn visit_parts(
    schema: &Schema,
    scene: Scene<'_>,
    path: &Path,
    wanted: Wanted,
    errors: &mut ErrorList,
) {
    match scene.new {
        Value::Object(object) => {
            let old = scene.old.and_then(Value::as_object);
            for (name, new) in object {
                let Some(inner) = schema.field(name) else { continue };
                let mut part = scene.part(inner, new, old.and_then(|old| old.get(name)));
                // Both are said by the version that is asked for, before as now.
                if scene.is_root && matches!(name.as_str(), "apiVersion" | "kind") {
                    part.is_kept = Some(false);
                }
                let path = match schema.properties.contains_key(name) {
                    true => path.child(name),
                    false => path.key(name),
                };
                visit(inner, part, &path, wanted, errors);
            }
        }
        Value::Array(list) => {
            let Some(items) = schema.items.as_deref() else { return };
            let old = scene.old.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let old = Keyed::of(schema, old);
            for (at, new) in list.iter().enumerate() {
                let inner = scene.part(items, new, old.find(new));
                visit(items, inner, &path.index(at), wanted, errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a rule says of a value.
enum Verdict {
    Holds,
    /// It does not hold.
    Fails(FieldError),
    /// It cannot be evaluated.
    Failed(FieldError),
}

fn fault(schema: &Schema, rule: &Rule, scene: Scene<'_>, path: &Path) -> Verdict {
    let programs = rule.programs();
    let seen = |value: &Value| value::of(schema, value, scene.is_whole);
    let seen_sorted = |value: &Value| seen(&unordered::sorted(schema, value));
    let subject = Subject {
        new: seen(scene.new),
        old: scene.old.map(seen),
        sorted: programs.needs_sorted.then(|| (seen_sorted(scene.new), scene.old.map(seen_sorted))),
        is_old_optional: rule.is_old_optional(),
    };
    let outcome = programs.evaluate(&subject);
    let shown = if path.to_string().is_empty() { Path::new("<nil>") } else { path.clone() };
    let said = if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() };
    match outcome {
        Outcome::Holds => Verdict::Holds,
        Outcome::Failed(why) => {
            let why = format!("{why} evaluating rule: {said}");
            Verdict::Failed(FieldError::invalid(&shown, &schema.kind, &why))
        }
        Outcome::Unfit => {
            let why = format!(
                "'no such overload': call arguments did not match a supported operator, function \
                 or macro signature for rule: {said}"
            );
            Verdict::Failed(FieldError::invalid(&shown, &schema.kind, &why))
        }
        Outcome::Fails => {
            let detail = programs.message(&subject);
            let detail = detail.unwrap_or_else(|| match rule.message.is_empty() {
                true => format!("failed rule: {said}"),
                false => said.to_owned(),
            });
            let field = Some(&*rule.field_path).filter(|field| !field.is_empty());
            let field = field.and_then(|field| follow(schema, field, true).ok());
            let shown = field.map_or(shown, |(field, _)| path.child(&field.to_string()));
            Verdict::Fails(error(schema, rule, scene.new, &shown, &detail))
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

#[cfg(test)]
mod tests;
