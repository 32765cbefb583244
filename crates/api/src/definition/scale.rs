//! The subresource `scale`: replicas, wherever a kind has them.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    field::{ErrorList, FieldError, Path},
    json::{at, text},
    names,
    resource::{Resource, Scope},
    strategy::{Column, Json, Strategy},
    table,
};

/// `Scale` itself, as far as requests carry it.
#[derive(Debug)]
struct ScaleStrategy;

impl Strategy for ScaleStrategy {
    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn columns(&self) -> &'static [Column] {
        table::NAME_AND_AGE
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        table::name_and_age(object, now)
    }
}

/// The kind that requests for `scale` carry.
pub fn resource() -> Resource {
    Resource {
        group: "autoscaling".into(),
        version: "v1".into(),
        plural: "scales".into(),
        singular: "scale".into(),
        kind: "Scale".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: Scope::Namespaced,
        verbs: &[],
        subresources: Vec::new(),
        table: "scales".into(),
        strategy: Arc::new(ScaleStrategy),
    }
}

/// Stands in a `Scale` that is being changed for replicas that nobody has said anything of.
pub const UNSAID: i64 = -2_147_483_648;

/// Where a kind has its replicas.
#[derive(Clone, Debug)]
pub struct Scale {
    spec: String,
    status: String,
    selector: String,
}

impl Scale {
    /// Reads where a version has its replicas; nothing when it cannot be scaled.
    pub(super) fn read(version: &Value) -> Option<Self> {
        let scale = &version["subresources"]["scale"];
        let text = |key: &str| scale[key].as_str().unwrap_or_default().to_owned();
        scale.is_object().then(|| Self {
            spec: text("specReplicasPath"),
            status: text("statusReplicasPath"),
            selector: text("labelSelectorPath"),
        })
    }

    /// The path to the replicas that are wanted, as the definition has it.
    pub fn spec_path(&self) -> &str {
        &self.spec
    }

    /// The keys that lead to the replicas that are wanted.
    pub fn spec_keys(&self) -> Vec<&str> {
        keys(&self.spec)
    }

    /// How an object is scaled, as a `Scale`, and whether it says a number of replicas.
    ///
    /// # Errors
    /// What stands where replicas should be.
    pub fn of(&self, object: &Json) -> Result<(Json, bool), String> {
        let wanted = integer(object, &self.spec)?;
        let current = integer(object, &self.status)?.unwrap_or_default();
        let selector = selector(object, &self.selector)?;
        let mut meta = Map::new();
        for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            if let Some(value) = at(object, &["metadata", key]) {
                meta.insert(key.to_owned(), value.clone());
            }
        }
        let mut status = json!({"replicas": current});
        if !selector.is_empty() {
            status["selector"] = selector.into();
        }
        let mut spec = Map::new();
        if let Some(wanted) = wanted.filter(|wanted| *wanted != 0) {
            spec.insert("replicas".to_owned(), wanted.into());
        }
        let members =
            [("metadata", Value::Object(meta)), ("spec", Value::Object(spec)), ("status", status)];
        let scale = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok((scale, wanted.is_some()))
    }

    /// Makes an object want as many replicas as a `Scale` says.
    pub fn apply(&self, object: &mut Json, scale: &Json) {
        let wanted = at(scale, &["spec", "replicas"]).and_then(Value::as_i64).unwrap_or_default();
        let keys = keys(&self.spec);
        let Some((last, before)) = keys.split_last() else { return };
        let mut place = object;
        for key in before {
            let slot = place.entry(*key).or_insert_with(|| json!({}));
            if !slot.is_object() {
                *slot = json!({});
            }
            let Value::Object(inner) = slot else { return };
            place = inner;
        }
        place.insert((*last).to_owned(), wanted.into());
    }

    pub(super) fn spec_faults(&self, object: &Json) -> ErrorList {
        range_fault(object, &self.spec).into_iter().collect()
    }

    pub(super) fn status_faults(&self, object: &Json) -> ErrorList {
        let mut errors: ErrorList = range_fault(object, &self.status).into_iter().collect();
        if let Err(why) = selector(object, &self.selector) {
            errors.push(FieldError::invalid(&Path::new(self.selector.clone()), "", &why));
        }
        errors
    }
}

fn keys(path: &str) -> Vec<&str> {
    path.trim_start_matches('.').split('.').collect()
}

fn integer(object: &Json, path: &str) -> Result<Option<i64>, String> {
    match at(object, &keys(path)) {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| {
            format!("{path} accessor error: {value} is of the type {}, expected int64", go(value))
        }),
    }
}

fn selector(object: &Json, path: &str) -> Result<String, String> {
    if path.is_empty() {
        return Ok(String::new());
    }
    match at(object, &keys(path)) {
        None | Some(Value::String(_)) => Ok(text(object, &keys(path)).to_owned()),
        Some(value) => Err(format!(
            "{path} accessor error: {value} is of the type {}, expected string",
            go(value)
        )),
    }
}

/// The name of a value's type in Go.
fn go(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn range_fault(object: &Json, path: &str) -> Option<FieldError> {
    let place = Path::new(path);
    match integer(object, path) {
        Err(why) => Some(FieldError::invalid(&place, 0, &why)),
        Ok(Some(count)) if count < 0 => {
            Some(FieldError::invalid(&place, count, "should be a non-negative integer"))
        }
        Ok(Some(count)) if count > i64::from(i32::MAX) => {
            let why = format!("should be less than or equal to {}", i32::MAX);
            Some(FieldError::invalid(&place, count, &why))
        }
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_found_and_set_where_the_definition_says() {
        let scale = Scale::read(&json!({"subresources": {"scale": {
            "specReplicasPath": ".spec.size.count", "statusReplicasPath": ".status.count",
            "labelSelectorPath": ".status.selector"}}}))
        .unwrap();
        let given = json!({
            "metadata": {"name": "x", "labels": {"a": "b"}, "uid": "u"},
            "spec": {"size": {"count": 3}}, "status": {"count": 2, "selector": "a=b"},
        });
        let Value::Object(mut object) = given else { unreachable!("it is one") };
        let (shown, is_said) = scale.of(&object).unwrap();
        assert!(is_said);
        assert_eq!(
            Value::Object(shown),
            json!({"metadata": {"name": "x", "uid": "u"}, "spec": {"replicas": 3},
                   "status": {"replicas": 2, "selector": "a=b"}})
        );
        let Value::Object(wanted) = json!({"spec": {"replicas": 7}}) else {
            unreachable!("is one")
        };
        scale.apply(&mut object, &wanted);
        assert_eq!(object["spec"]["size"]["count"], 7);
        object.remove("spec");
        assert!(!scale.of(&object).unwrap().1);
        scale.apply(&mut object, &wanted);
        assert_eq!(object["spec"]["size"]["count"], 7);
        object["status"]["count"] = (-1).into();
        let faults = scale.status_faults(&object);
        assert_eq!(
            faults[0].to_string(),
            ".status.count: Invalid value: -1: should be a non-negative integer"
        );
    }
}
