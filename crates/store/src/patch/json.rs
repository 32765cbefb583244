//! RFC 6902, with the limits and the words of the API server.

use json_patch::{PatchErrorKind, PatchOperation, jsonptr::Pointer};
use lockstep_api::Status;
use serde_json::Value;

/// How many operations one patch may have.
pub const OPERATIONS_MAX: usize = 10_000;
/// How much all copies of one patch may add.
const COPIED_MAX: usize = 3 << 20;
/// How deep an object may be nested. What is stored must be readable again, and readers stop at
/// 128.
const DEPTH_MAX: usize = 120;
/// How far the estimate of the depth may run ahead before the object is measured.
const DEPTH_ESTIMATE_MAX: usize = 1_000;

/// Reads the operations.
pub(super) fn parse(body: &[u8]) -> Result<Vec<PatchOperation>, Status> {
    let items: Vec<Value> = serde_json::from_slice(body)
        .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
    if items.len() > OPERATIONS_MAX {
        return Err(Status::too_large(format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is \
             {OPERATIONS_MAX}, got {}",
            items.len()
        )));
    }
    let operation = |item| {
        serde_json::from_value(item)
            .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))
    };
    items.into_iter().map(operation).collect()
}

/// The paths an operation reads or writes at.
pub(super) fn paths(operation: &PatchOperation) -> impl Iterator<Item = &str> {
    let from = match operation {
        PatchOperation::Move(it) => Some(it.from.as_str()),
        PatchOperation::Copy(it) => Some(it.from.as_str()),
        PatchOperation::Add(_)
        | PatchOperation::Remove(_)
        | PatchOperation::Replace(_)
        | PatchOperation::Test(_) => None,
    };
    from.into_iter().chain([operation.path().as_str()])
}

/// Applies the operations one after the other.
pub(super) fn apply(mut document: Value, operations: &[PatchOperation]) -> Result<Value, Status> {
    let mut copied = 0;
    let mut depth = depth_of(&document);
    for operation in operations {
        if let PatchOperation::Copy(copy) = operation {
            copied += copy.from.resolve(&document).map_or(0, |value| value.to_string().len());
            if copied > COPIED_MAX {
                return Err(refused(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is \
                     {copied}, exceeding the limit {COPIED_MAX}"
                )));
            }
        }
        if let PatchOperation::Test(test) = operation
            && lacks(&document, &test.path)
        {
            // What is not there is null, as upstream tests it. Clients ask so for what nobody may
            // have added yet.
            if test.value.is_null() {
                continue;
            }
            return Err(refused(explain(operation, &PatchErrorKind::TestFailed)));
        }
        json_patch::patch_unsafe(&mut document, std::slice::from_ref(operation))
            .map_err(|error| refused(explain(operation, &error.kind)))?;
        // An operation puts what is there, or a value of the patch, below the steps of its path.
        depth += operation.path().count() + added_depth(operation);
        if depth > DEPTH_ESTIMATE_MAX {
            depth = check_depth(&document)?;
        }
    }
    check_depth(&document)?;
    Ok(document)
}

/// Whether the parent of a path is an object without that member.
fn lacks(document: &Value, path: &Pointer) -> bool {
    let Some((parent, member)) = path.split_back() else { return false };
    let parent = parent.resolve(document).ok().and_then(Value::as_object);
    parent.is_some_and(|parent| !parent.contains_key(&*member.decoded()))
}

fn added_depth(operation: &PatchOperation) -> usize {
    match operation {
        PatchOperation::Add(add) => depth_of(&add.value),
        PatchOperation::Replace(replace) => depth_of(&replace.value),
        PatchOperation::Remove(_)
        | PatchOperation::Move(_)
        | PatchOperation::Copy(_)
        | PatchOperation::Test(_) => 0,
    }
}

fn check_depth(document: &Value) -> Result<usize, Status> {
    let depth = depth_of(document);
    if depth > DEPTH_MAX {
        return Err(refused(format!("the patched object is nested more than {DEPTH_MAX} deep")));
    }
    Ok(depth)
}

/// How deep a value is nested, found without recursion: it may be deeper than the stack.
fn depth_of(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => open.extend(map.values().map(|item| (item, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    deepest
}

/// 422 without a reason, as the API server answers for patches that do not apply.
fn refused(message: String) -> Status {
    super::unprocessable(message)
}

/// What went wrong, in the words clients know.
fn explain(operation: &PatchOperation, kind: &PatchErrorKind) -> String {
    let path = operation.path();
    match (operation, kind) {
        (PatchOperation::Test(_), PatchErrorKind::TestFailed) => {
            format!("testing value {path} failed: test failed")
        }
        (PatchOperation::Test(_), _) => {
            format!("test operation does not apply: is missing path: {path}: missing value")
        }
        (PatchOperation::Add(_), _) => {
            format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
        }
        (PatchOperation::Remove(_), _) => format!(
            "remove operation does not apply: doc is missing path: \"{path}\": missing value"
        ),
        (PatchOperation::Replace(_), _) => {
            format!("replace operation does not apply: doc is missing key: {path}: missing value")
        }
        (PatchOperation::Move(moved), PatchErrorKind::InvalidFromPointer) => format!(
            "move operation does not apply: doc is missing from path: {}: missing value",
            moved.from
        ),
        (PatchOperation::Copy(copied), PatchErrorKind::InvalidFromPointer) => format!(
            "copy operation does not apply: doc is missing from path: {}: missing value",
            copied.from
        ),
        (PatchOperation::Move(_), PatchErrorKind::CannotMoveInsideItself) => {
            format!("error in move for path: '{path}': cannot move the value inside itself")
        }
        (PatchOperation::Move(_), _) => format!(
            "move operation does not apply: doc is missing destination path: {path}: missing value"
        ),
        (PatchOperation::Copy(_), _) => format!(
            "copy operation does not apply: doc is missing destination path: {path}: missing value"
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{OPERATIONS_MAX, apply, parse};

    fn patched(document: Value, patch: &Value) -> Result<Value, lockstep_api::Status> {
        apply(document, &parse(patch.to_string().as_bytes())?)
    }

    #[test]
    fn operations_apply_or_say_why_not() {
        let document = || json!({"a": {"b": 1}, "l": [1, 2]});
        let cases = [
            (
                json!([{"op": "add", "path": "/a/c", "value": 2}]),
                Ok(json!({"a": {"b": 1, "c": 2}, "l": [1, 2]})),
            ),
            (json!([{"op": "remove", "path": "/l/0"}]), Ok(json!({"a": {"b": 1}, "l": [2]}))),
            (
                json!([{"op": "add", "path": "/l/-", "value": 3}]),
                Ok(json!({"a": {"b": 1}, "l": [1, 2, 3]})),
            ),
            (
                json!([{"op": "test", "path": "/a/b", "value": 2}]),
                Err("testing value /a/b failed: test failed"),
            ),
            (
                json!([{"op": "test", "path": "/a/c", "value": null}]),
                Ok(json!({"a": {"b": 1}, "l": [1, 2]})),
            ),
            (
                json!([{"op": "test", "path": "/a/b", "value": null}]),
                Err("testing value /a/b failed: test failed"),
            ),
            (
                json!([{"op": "test", "path": "/a/c", "value": 1}]),
                Err("testing value /a/c failed: test failed"),
            ),
            (
                json!([{"op": "test", "path": "/x/c", "value": null}]),
                Err("test operation does not apply: is missing path: /x/c: missing value"),
            ),
            (
                json!([{"op": "remove", "path": "/x"}]),
                Err("remove operation does not apply: doc is missing path: \"/x\": missing value"),
            ),
            (
                json!([{"op": "replace", "path": "/x", "value": 1}]),
                Err("replace operation does not apply: doc is missing key: /x: missing value"),
            ),
        ];
        for (patch, want) in cases {
            let got = patched(document(), &patch).map_err(|status| (status.code, status.message));
            assert_eq!(got, want.map_err(|text| (422, text.to_owned())), "{patch}");
        }
    }

    #[test]
    fn malformed_and_oversized_patches_are_refused() {
        let many: Vec<Value> =
            (0..=OPERATIONS_MAX).map(|_| json!({"op": "remove", "path": "/a"})).collect();
        for (body, code) in [
            (json!({"op": "add"}), 400),
            (json!([{"op": "explode", "path": "/a"}]), 400),
            (json!([{"op": "add", "path": "a", "value": 1}]), 400),
            (json!([{"op": "add", "path": "/a"}]), 400),
            (Value::Array(many), 413),
        ] {
            assert_eq!(parse(body.to_string().as_bytes()).unwrap_err().code, code);
        }
    }

    #[test]
    fn copies_cannot_grow_an_object_without_bound() {
        let copies: Vec<Value> =
            (0..60).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"})).collect();
        let status = patched(json!({"a": [1]}), &Value::Array(copies)).unwrap_err();
        assert_eq!(status.code, 422);
        let text = "x".repeat(10_000);
        let copies: Vec<Value> = (0..1_000)
            .map(|at| json!({"op": "copy", "from": "/a", "path": format!("/b{at}")}))
            .collect();
        let status = patched(json!({"a": text}), &Value::Array(copies)).unwrap_err();
        assert!(status.message.starts_with("Unable to complete the copy"), "{}", status.message);
    }

    #[test]
    fn moves_cannot_nest_an_object_without_bound() {
        let mut moves = Vec::new();
        for _ in 0..3_000 {
            moves.push(json!({"op": "add", "path": "/b", "value": {}}));
            moves.push(json!({"op": "move", "from": "/a", "path": "/b/a"}));
            moves.push(json!({"op": "move", "from": "/b", "path": "/a"}));
        }
        assert_eq!(patched(json!({"a": {}}), &Value::Array(moves)).unwrap_err().code, 422);
    }
}
