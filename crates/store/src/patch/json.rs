//! RFC 6902, with the limits and the words of the API server.
//!
//! It is not taken to the letter: `replace` makes a member that is not there, `copy` of one that is
//! not there makes a null, and numbers below zero count from the end of a list.

use lockstep_api::{
    Status,
    decode::{Operation, patch_operations},
};
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

/// What is said of what is not there.
const MISSING: &str = "missing value";

/// A list of operations.
#[derive(Clone, Debug)]
pub struct Operations {
    list: Vec<Operation>,
    /// What a strict reader finds wrong with them.
    pub(super) faults: Vec<String>,
}

/// Reads the operations.
pub(super) fn parse(body: &[u8]) -> Result<Operations, Status> {
    let (list, faults) = patch_operations(body)?;
    if list.len() > OPERATIONS_MAX {
        return Err(Status::too_large(format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is \
             {OPERATIONS_MAX}, got {}",
            list.len()
        )));
    }
    Ok(Operations { list, faults })
}

impl Operations {
    /// Whether any reads or writes the managed fields, or something that they are in.
    pub(super) fn name_owners(&self) -> bool {
        let paths = self.list.iter().flat_map(|operation| [&operation.path, &operation.from]);
        paths.flatten().map(|path| steps(path).unwrap_or_default()).any(|steps| {
            let mut steps = steps.iter().map(String::as_str);
            matches!(
                (steps.next(), steps.next()),
                (None, _) | (Some("metadata"), None | Some("managedFields"))
            )
        })
    }

    /// Applies the operations one after the other.
    pub(super) fn apply(&self, mut document: Value) -> Result<Value, Status> {
        let mut copied = 0;
        let mut depth = depth_of(&document);
        for operation in &self.list {
            carry_out(&mut document, operation, &mut copied).map_err(super::unprocessable)?;
            // An operation puts what is there, or a value of the patch, below the steps of its
            // path.
            let path = operation.path.as_deref().unwrap_or_default();
            depth += path.split('/').count() + depth_of(&operation.value);
            if depth > DEPTH_ESTIMATE_MAX {
                depth = check_depth(&document)?;
            }
        }
        check_depth(&document)?;
        Ok(document)
    }
}

/// Carries out one operation. All copies so far have added so many bytes.
fn carry_out(
    document: &mut Value,
    operation: &Operation,
    copied: &mut usize,
) -> Result<(), String> {
    let op = operation.op.as_deref().unwrap_or("unknown");
    let known = ["add", "remove", "replace", "move", "test", "copy"];
    if !known.contains(&op) {
        return Err(format!("Unexpected kind: {op}"));
    }
    let Some(path) = operation.path.as_deref() else {
        return Err(format!("{op} operation failed to decode path: {MISSING}"));
    };
    let from = || {
        let from = operation.from.as_deref();
        from.ok_or_else(|| format!("{op} operation failed to decode from: {MISSING}"))
    };
    let value = || operation.value.clone();
    match op {
        "add" => add(document, path, value()),
        "remove" => remove(document, path),
        "replace" => replace(document, path, value()),
        "test" => test(document, path, &operation.value),
        "move" => move_value(document, from()?, path),
        _ => copy(document, from()?, path, copied),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let Some((parent, member)) = find(document, path) else {
        return Err(format!(
            "add operation does not apply: doc is missing path: \"{path}\": {MISSING}"
        ));
    };
    insert(parent, member, value).map_err(|why| format!("error in add for path: '{path}': {why}"))
}

fn remove(document: &mut Value, path: &str) -> Result<(), String> {
    let Some((parent, member)) = find(document, path) else {
        return Err(format!(
            "remove operation does not apply: doc is missing path: \"{path}\": {MISSING}"
        ));
    };
    let taken = take(parent, &member);
    taken.map(drop).map_err(|why| format!("error in remove for path: '{path}': {why}"))
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err("replace operation value must be object or array".to_owned());
        }
        *document = value;
        return Ok(());
    }
    let missing =
        |what: &str| format!("replace operation does not apply: doc is missing {what}: {MISSING}");
    match find(document, path) {
        Some((Value::Object(members), member)) => drop(members.insert(member, value)),
        Some((Value::Array(items), member)) => match index(&member, items.len()) {
            Ok(at) => items[at] = value,
            Err(_) => return Err(missing(&format!("key: {path}"))),
        },
        _ => return Err(missing(&format!("path: {path}"))),
    }
    Ok(())
}

fn test(document: &mut Value, path: &str, value: &Value) -> Result<(), String> {
    let is_so = if path.is_empty() {
        *document == *value
    } else {
        let Some((parent, member)) = find(document, path) else {
            return Err(format!(
                "test operation does not apply: is missing path: {path}: {MISSING}"
            ));
        };
        let found = seen(parent, &member);
        // What is not there is null. Clients ask so for what nobody may have added yet.
        *found.map_err(|why| format!("error in test for path: '{path}': {why}"))? == *value
    };
    is_so.then_some(()).ok_or_else(|| format!("testing value {path} failed: test failed"))
}

fn move_value(document: &mut Value, from: &str, path: &str) -> Result<(), String> {
    let Some((parent, member)) = find(document, from) else {
        return Err(format!(
            "move operation does not apply: doc is missing from path: {from}: {MISSING}"
        ));
    };
    let value = take(parent, &member)
        .map_err(|why| format!("error in move for path: '{member}': {why}"))?;
    let Some((parent, member)) = find(document, path) else {
        return Err(format!(
            "move operation does not apply: doc is missing destination path: {path}: {MISSING}"
        ));
    };
    insert(parent, member, value).map_err(|why| format!("error in move for path: '{path}': {why}"))
}

fn copy(document: &mut Value, from: &str, path: &str, copied: &mut usize) -> Result<(), String> {
    let Some((parent, member)) = find(document, from) else {
        return Err(format!(
            "copy operation does not apply: doc is missing from path: {from}: {MISSING}"
        ));
    };
    let value = seen(parent, &member)
        .map_err(|why| format!("error in copy for from: '{from}': {why}"))?
        .clone();
    let Some((parent, member)) = find(document, path) else {
        return Err(format!(
            "copy operation does not apply: doc is missing destination path: {path}: {MISSING}"
        ));
    };
    *copied += value.to_string().len();
    if *copied > COPIED_MAX {
        return Err(format!(
            "Unable to complete the copy, the accumulated size increase of copy is {copied}, \
             exceeding the limit {COPIED_MAX}"
        ));
    }
    insert(parent, member, value)
        .map_err(|why| format!("error while adding value during copy: {why}"))
}

/// The steps of a path, nothing for one that leads nowhere. Whatever is before the first slash does
/// not count.
fn steps(path: &str) -> Option<Vec<String>> {
    let (_, steps) = path.split_once('/')?;
    Some(steps.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}

/// The map or list that the last step of a path is in, and that step.
fn find<'a>(document: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let mut steps = steps(path)?;
    let last = steps.pop()?;
    let mut parent = document;
    for step in steps {
        parent = match parent {
            Value::Object(members) => members.get_mut(&step)?,
            Value::Array(items) => {
                let at = index(&step, items.len()).ok()?;
                items.get_mut(at)?
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
    (parent.is_object() || parent.is_array()).then_some((parent, last))
}

/// The number of an element, of so many. The last one is also number -1.
fn index(step: &str, count: usize) -> Result<usize, String> {
    let Ok(number) = step.parse::<isize>() else {
        return Err(format!("strconv.Atoi: parsing {step:?}: invalid syntax"));
    };
    let from_end = || count.checked_sub(number.unsigned_abs());
    let at = if number < 0 { from_end() } else { Some(number.unsigned_abs()) };
    at.filter(|at| *at < count).ok_or_else(|| {
        format!("Unable to access invalid index: {number}: invalid index referenced")
    })
}

/// What is at a step, null where a map has nothing.
fn seen<'a>(parent: &'a Value, step: &str) -> Result<&'a Value, String> {
    if let Value::Array(items) = parent {
        return Ok(&items[index(step, items.len())?]);
    }
    Ok(parent.get(step).unwrap_or(&Value::Null))
}

fn insert(parent: &mut Value, step: String, value: Value) -> Result<(), String> {
    if let Value::Array(items) = parent {
        let at = if step == "-" { items.len() } else { index(&step, items.len() + 1)? };
        items.insert(at, value);
    } else if let Value::Object(members) = parent {
        members.insert(step, value);
    }
    Ok(())
}

fn take(parent: &mut Value, step: &str) -> Result<Value, String> {
    if let Value::Array(items) = parent {
        return Ok(items.remove(index(step, items.len())?));
    }
    let taken = parent.as_object_mut().and_then(|members| members.remove(step));
    taken.ok_or_else(|| format!("Unable to remove nonexistent key: {step}: {MISSING}"))
}

fn check_depth(document: &Value) -> Result<usize, Status> {
    let depth = depth_of(document);
    if depth > DEPTH_MAX {
        let why = format!("the patched object is nested more than {DEPTH_MAX} deep");
        return Err(super::unprocessable(why));
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{OPERATIONS_MAX, parse};

    fn patched(document: Value, patch: &Value) -> Result<Value, lockstep_api::Status> {
        parse(patch.to_string().as_bytes())?.apply(document)
    }

    /// What patches make of one object.
    fn check<const N: usize>(cases: [(Value, Result<Value, &str>); N]) {
        for (patch, want) in cases {
            let document = json!({"a": {"b": 1}, "l": [1, 2]});
            let got = patched(document, &patch).map_err(|status| (status.code, status.message));
            assert_eq!(got, want.map_err(|text| (422, text.to_owned())), "{patch}");
        }
    }

    #[test]
    fn operations_apply_or_say_why_not() {
        check([
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
        ]);
    }

    #[test]
    fn operations_on_what_is_not_there_say_so() {
        check([
            (
                json!([{"op": "remove", "path": "/x"}]),
                Err(
                    "error in remove for path: '/x': Unable to remove nonexistent key: x: missing \
                     value",
                ),
            ),
            (
                json!([{"op": "replace", "path": "/x/y", "value": 1}]),
                Err("replace operation does not apply: doc is missing path: /x/y: missing value"),
            ),
            (
                json!([{"op": "replace", "path": "/l/2", "value": 1}]),
                Err("replace operation does not apply: doc is missing key: /l/2: missing value"),
            ),
            (
                json!([{"op": "add", "path": "/l/x", "value": 1}]),
                Err("error in add for path: '/l/x': strconv.Atoi: parsing \"x\": invalid syntax"),
            ),
            (
                json!([{"op": "move", "from": "/a", "path": "/a/b"}]),
                Err(
                    "move operation does not apply: doc is missing destination path: /a/b: missing \
                     value",
                ),
            ),
            (json!([{"op": "explode", "path": "/a"}]), Err("Unexpected kind: explode")),
            (json!([{"path": "/a"}]), Err("Unexpected kind: unknown")),
            (
                json!([{"op": "add", "path": "a", "value": 1}]),
                Err("add operation does not apply: doc is missing path: \"a\": missing value"),
            ),
            (
                json!([{"op": "add", "value": 1}]),
                Err("add operation failed to decode path: missing value"),
            ),
            (
                json!([{"op": "copy", "path": "/c"}]),
                Err("copy operation failed to decode from: missing value"),
            ),
        ]);
    }

    #[test]
    fn operations_are_not_taken_to_the_letter() {
        let document = json!({"a": {"b": 1}, "l": [1, 2]});
        for (patch, want) in [
            (
                json!([{"op": "replace", "path": "/a/c", "value": 2}]),
                json!({"a": {"b": 1, "c": 2}, "l": [1, 2]}),
            ),
            (
                json!([{"op": "copy", "from": "/a/x", "path": "/a/c"}]),
                json!({"a": {"b": 1, "c": null}, "l": [1, 2]}),
            ),
            (
                json!([{"op": "add", "path": "/a/c"}, {"op": "replace", "path": "/a/b"}]),
                json!({"a": {"b": null, "c": null}, "l": [1, 2]}),
            ),
            (json!([{"op": "test", "path": "/a/c"}]), document.clone()),
            (
                json!([{"op": "replace", "path": "/l/-1", "value": 3}]),
                json!({"a": {"b": 1}, "l": [1, 3]}),
            ),
            (
                json!([{"op": "add", "path": "/l/-1", "value": 3}]),
                json!({"a": {"b": 1}, "l": [1, 2, 3]}),
            ),
            (json!([{"op": "remove", "path": "/l/-2"}]), json!({"a": {"b": 1}, "l": [2]})),
            (json!([{"op": "replace", "path": "", "value": {"c": 1}}]), json!({"c": 1})),
            (
                json!([{"op": "add", "path": "x/a/~1~01", "value": 3}]),
                json!({"a": {"b": 1, "/~1": 3}, "l": [1, 2]}),
            ),
        ] {
            assert_eq!(patched(document.clone(), &patch).unwrap(), want, "{patch}");
        }
    }

    #[test]
    fn operations_on_owners_are_known() {
        for (path, is_known) in [
            ("", true),
            ("/metadata", true),
            ("/metadata/managedFields", true),
            ("x/metadata/managedFields/0", true),
            ("/metadata/name", false),
            ("/metadata/managedFields~1x", false),
            ("/spec/managedFields", false),
        ] {
            for patch in [
                json!([{"op": "add", "path": path}]),
                json!([{"op": "copy", "path": "/a", "from": path}]),
            ] {
                let operations = parse(patch.to_string().as_bytes()).unwrap();
                assert_eq!(operations.name_owners(), is_known, "{patch}");
            }
        }
    }

    #[test]
    fn malformed_and_oversized_patches_are_refused() {
        let many: Vec<Value> =
            (0..=OPERATIONS_MAX).map(|_| json!({"op": "remove", "path": "/a"})).collect();
        for (body, code) in [
            (json!({"op": "add"}), 400),
            (json!([{"op": "add", "path": 1}]), 400),
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
