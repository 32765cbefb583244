//! The three ways to say what should change: a JSON patch, a merge patch, a strategic merge patch.

mod json;
mod strategic;

use lockstep_api::{Resource, Status, decode, schema, status::Details, strategy::Json};
use serde_json::Value;

pub use json::OPERATIONS_MAX;

/// A patch as a client sent it.
#[derive(Clone, Debug)]
pub enum Patch {
    /// RFC 6902: a list of operations.
    Json(Vec<json_patch::PatchOperation>),
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
        let (value, faults) = decode::patch_body(body)?;
        Ok(Self::Merge(Document { value, faults }))
    }

    /// Reads a strategic merge patch.
    ///
    /// # Errors
    /// 400 when it is no JSON object.
    pub fn strategic(body: &[u8]) -> Result<Self, Status> {
        let (value, faults) = decode::patch_body(body)?;
        Ok(Self::Strategic(Document { value, faults }))
    }

    /// The patched object, made to fit its schema. `object` is the current one, in the version of
    /// `resource`.
    ///
    /// # Errors
    /// The Status a real API server gives when the patch does not apply.
    pub fn apply(
        &self,
        resource: &Resource,
        mut object: Json,
        validation: decode::FieldValidation,
    ) -> Result<decode::Decoded, Status> {
        object.insert("apiVersion".to_owned(), resource.api_version().into());
        object.insert("kind".to_owned(), resource.kind.to_string().into());
        let (patched, made_by, faults) = match self {
            Self::Json(operations) => {
                let patched = json::apply(Value::Object(object), operations)?;
                (patched, decode::PatchKind::Json, Vec::new())
            }
            Self::Merge(patch) => {
                let mut value = Value::Object(object);
                json_patch::merge(&mut value, &patch.value);
                (value, decode::PatchKind::Json, patch.faults.clone())
            }
            Self::Strategic(patch) => {
                let schema = schema::of(&resource.group, &resource.version, &resource.kind);
                let document = patch.value.as_object().cloned().unwrap_or_default();
                let merged = strategic::merge(object, document, schema)?;
                let made_by = decode::PatchKind::Strategic(&patch.value);
                (Value::Object(merged), made_by, patch.faults.clone())
            }
        };
        decode::prune_and_check(resource, &patched, made_by, validation, faults)
    }
}

/// 422 without a reason: a patch that is well-formed but does not apply.
fn unprocessable(message: String) -> Status {
    let mut status = Status::bad_request(message);
    status.code = 422;
    status.reason = String::new();
    status.with_details(Details::default())
}
