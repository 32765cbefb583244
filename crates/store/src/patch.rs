//! The three ways to say what should change: a JSON patch, a merge patch, a strategic merge patch.

mod json;
mod strategic;

use lockstep_api::{Resource, Status, decode, schema, status::Details, strategy::Json};
use serde_json::Value;

pub use json::{OPERATIONS_MAX, Operations};

/// A patch as a client sent it.
#[derive(Clone, Debug)]
pub enum Patch {
    /// RFC 6902: a list of operations.
    Json(Operations),
    /// RFC 7386: the members to change, null to remove.
    Merge(Document),
    /// A merge patch that knows which lists have keys.
    Strategic(Document),
}

/// The body of a merge patch.
#[derive(Clone, Debug)]
pub struct Document {
    value: Value,
    /// What a strict reader finds wrong with the body.
    faults: Vec<String>,
}

impl Patch {
    /// Reads a JSON patch.
    ///
    /// # Errors
    /// 400 when it is none, 413 when it has too many operations.
    pub fn json(body: &[u8]) -> Result<Self, Status> {
        json::parse(body).map(Self::Json)
    }

    /// Reads a merge patch.
    ///
    /// # Errors
    /// 400 when it is no JSON object.
    pub fn merge(body: &[u8]) -> Result<Self, Status> {
        let refused = |why| Status::bad_request(format!("error decoding patch: {why}"));
        let (value, faults) = decode::patch_body(body).map_err(refused)?;
        Ok(Self::Merge(Document { value, faults }))
    }

    /// Reads a strategic merge patch.
    ///
    /// # Errors
    /// 400 when it is no JSON object.
    pub fn strategic(body: &[u8]) -> Result<Self, Status> {
        let (value, faults) = decode::patch_body(body).map_err(Status::bad_request)?;
        Ok(Self::Strategic(Document { value, faults }))
    }

    /// The patched object, made to fit its schema. `current` is what is patched, in the version of
    /// `resource`.
    ///
    /// # Errors
    /// The Status a real API server gives when the patch does not apply.
    pub fn apply(
        &self,
        resource: &Resource,
        current: &Json,
        validation: decode::FieldValidation,
    ) -> Result<decode::Decoded, Status> {
        self.outcome(resource, current, validation).map_err(Refused::into_status)
    }

    /// As [`Patch::apply`], which tells what was refused.
    pub(crate) fn outcome(
        &self,
        resource: &Resource,
        current: &Json,
        validation: decode::FieldValidation,
    ) -> Result<decode::Decoded, Refused> {
        if let Some(patch) = self.members().filter(|_| !resource.strategy.is_converted()) {
            // What the patch does not change was accepted before and stays as it is.
            let is_named = |(key, value): &(&String, &Value)| {
                patch.get(*key).is_some_and(|change| !is_said_by(value, change))
            };
            let owned = |(key, value): (&String, &Value)| (key.clone(), value.clone());
            let named = current.iter().filter(is_named).map(owned).collect();
            if let Ok(mut decoded) = self.apply_to(resource, named, validation) {
                decoded.object.extend(current.iter().filter(|it| !is_named(it)).map(owned));
                return Ok(decoded);
            }
            // What is wrong with the patch is said in terms of the whole.
        }
        self.apply_to(resource, current.clone(), validation)
    }

    /// The members of the object that the patch names, if it is one that says nothing of others.
    pub(crate) fn members(&self) -> Option<&Json> {
        let (Self::Merge(patch) | Self::Strategic(patch)) = self else { return None };
        let members = patch.value.as_object()?;
        (!members.keys().any(|key| key.starts_with('$'))).then_some(members)
    }

    /// Whether the patch says anything about the managed fields, or needs to see them.
    pub(crate) fn names_owners(&self) -> bool {
        match self {
            Self::Json(operations) => operations.name_owners(),
            Self::Merge(patch) | Self::Strategic(patch) => {
                patch.value.get("metadata").is_some_and(|meta| meta.get("managedFields").is_some())
            }
        }
    }

    fn apply_to(
        &self,
        resource: &Resource,
        mut object: Json,
        validation: decode::FieldValidation,
    ) -> Result<decode::Decoded, Refused> {
        object.insert("apiVersion".to_owned(), resource.api_version().into());
        object.insert("kind".to_owned(), resource.kind.to_string().into());
        let (patched, made_by, faults) = match self {
            Self::Json(operations) => {
                let patched = operations.apply(Value::Object(object)).map_err(Refused::Patch)?;
                (patched, decode::PatchKind::Json, operations.faults.clone())
            }
            Self::Merge(patch) => {
                let mut value = Value::Object(object);
                json_patch::merge(&mut value, &patch.value);
                (value, decode::PatchKind::Json, patch.faults.clone())
            }
            Self::Strategic(patch) => {
                let schema = schema::of(&resource.group, &resource.version, &resource.kind);
                let document = patch.value.as_object().cloned().unwrap_or_default();
                let merged = strategic::merge(object, document, schema).map_err(Refused::Patch)?;
                let made_by = decode::PatchKind::Strategic(&patch.value);
                (Value::Object(merged), made_by, patch.faults.clone())
            }
        };
        let checked = decode::prune_and_check(resource, &patched, made_by, validation, faults);
        checked.map_err(Refused::Outcome)
    }
}

/// Why nothing comes of a patch.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It does not apply.
    Patch(Status),
    /// What it makes does not fit its kind. That is told with all of the object.
    Outcome(Status),
}

impl Refused {
    pub(crate) fn into_status(self) -> Status {
        let (Self::Patch(status) | Self::Outcome(status)) = self;
        status
    }
}

/// Whether `value` says all that `change` says, as metadata does of the uid and the version that a
/// patch insists on. Lists are not looked into.
fn is_said_by(value: &Value, change: &Value) -> bool {
    match (value, change) {
        (Value::Object(value), Value::Object(change)) => change
            .iter()
            .all(|(key, change)| value.get(key).is_some_and(|value| is_said_by(value, change))),
        (Value::Null | Value::Array(_) | Value::Object(_), _) => false,
        (value, change) => value == change,
    }
}

/// 422 without a reason: a patch that is well-formed but does not apply.
fn unprocessable(message: String) -> Status {
    let mut status = Status::bad_request(message);
    status.code = 422;
    status.reason = String::new();
    status.with_details(Details::default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::World;

    #[test]
    fn what_does_not_apply_is_known_from_what_does_not_fit() {
        let mut world = World::new();
        world.create("configmaps", "n", json!({"metadata": {"name": "m"}})).unwrap();
        let (resource, current) = (world.resource("configmaps"), world.get("configmaps", "n/m"));
        let current = current.unwrap();
        for (patch, applies) in [
            (json!([{"op": "test", "path": "/data/k", "value": "v"}]), false),
            (json!([{"op": "add", "path": "/data", "value": 1}]), true),
        ] {
            let patch = Patch::json(patch.to_string().as_bytes()).unwrap();
            let refused = patch.outcome(&resource, &current, decode::FieldValidation::Warn);
            let is_outcome = matches!(refused.unwrap_err(), Refused::Outcome(_));
            assert_eq!(is_outcome, applies, "{patch:?}");
        }
    }

    #[test]
    fn what_a_patch_does_not_name_makes_no_difference_to_it() {
        let mut world = World::new();
        let pod = json!({
            "metadata": {"name": "p", "labels": {"a": "1"}, "finalizers": ["x.io/y", "x.io/z"]},
            "spec": {"containers": [{"name": "c", "image": "i", "terminationMessagePath": "/m"}]},
        });
        world.create("pods", "n", pod).unwrap();
        let (resource, current) = (world.resource("pods"), world.get("pods", "n/p").unwrap());
        let cases = [
            json!({}),
            json!({"metadata": {"name": "p"}, "status": {"phase": "Running"}}),
            json!({"metadata": {"name": "p", "labels": {"a": "1"}}}),
            json!({"metadata": {"labels": {"a": null}, "name": "p"}}),
            json!({"metadata": {"finalizers": ["x.io/z"], "name": "p"}}),
            json!({"metadata": {}, "spec": {"containers": [{"name": "c"}], "nonsense": 1}}),
            json!({"metadata": {"uid": "u", "labels": {"b": "2", "a": null}}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/y"]}}),
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready"}]}}),
            json!({"status": null, "nonsense": 1}),
            json!({"spec": {"nonsense": 1, "containers": [{"name": "c", "image": "j"}]}}),
            json!({"spec": {"containers": 3}}),
            json!({"metadata": 3}),
            json!({"kind": "Job"}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": null}),
            json!({"$patch": "replace", "metadata": {"name": "p"}}),
            json!({"$retainKeys": ["metadata"], "metadata": {"name": "p"}}),
        ];
        for case in &cases {
            let body = case.to_string();
            let patches = [Patch::merge(body.as_bytes()), Patch::strategic(body.as_bytes())];
            for patch in patches.map(Result::unwrap) {
                let validation = decode::FieldValidation::Warn;
                let quick = patch.apply(&resource, &current, validation);
                let whole = patch.apply_to(&resource, current.clone(), validation);
                let comparable = |outcome: Result<decode::Decoded, Status>| match outcome {
                    Ok(decoded) => Ok((complete(&resource, decoded.object), decoded.warnings)),
                    Err(status) => Err((status.code, status.message)),
                };
                let whole = whole.map_err(Refused::into_status);
                assert_eq!(comparable(quick), comparable(whole), "{case}");
            }
        }
    }

    /// What is always written is put back before anything is stored.
    fn complete(resource: &Resource, mut object: Json) -> Json {
        decode::complete(resource, &mut object);
        object
    }
}
