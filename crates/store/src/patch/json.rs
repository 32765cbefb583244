//! RFC 6902, with the limits and the words of the API server.
//!
//! It is not taken to the letter: `replace` makes a member that is not there, `copy` of one that is
//! not there makes a null, and numbers below zero count from the end of a list.

use std::num::IntErrorKind;

use lockstep_api::{
    Status,
    decode::{Operation, patch_operations},
    quote::quoted,
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
            depth = depth_after(depth, operation);
            if depth > DEPTH_ESTIMATE_MAX {
                depth = check_depth(&document)?;
            }
        }
        check_depth(&document)?;
        Ok(document)
    }
}

/// How deep a document that was no deeper than `depth` can be after an operation.
fn depth_after(depth: usize, operation: &Operation) -> usize {
    let steps = |path: &Option<String>| path.as_deref().unwrap_or_default().matches('/').count();
    match operation.op.as_deref() {
        Some("add" | "replace") => depth.max(steps(&operation.path) + depth_of(&operation.value)),
        // What is put somewhere else is as deep as before, below other steps.
        Some("move" | "copy") => {
            depth + steps(&operation.path).saturating_sub(steps(&operation.from))
        }
        _ => depth,
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
    let path = || operation.path.as_deref().ok_or_else(|| pathless(op));
    let from = || {
        let missing = "operation, missing from field";
        let from = operation.from.as_deref();
        from.ok_or_else(|| format!("{op} operation failed to decode from: {missing}: {MISSING}"))
    };
    let value = || operation.value.clone();
    match op {
        "add" => add(document, path()?, value()),
        "remove" => remove(document, path()?),
        "replace" => replace(document, path()?, value()),
        "test" => test(document, path()?, &operation.value),
        "move" => move_value(document, from()?, path),
        _ => copy(document, from()?, path, copied),
    }
}

/// What is said of an operation without a path.
fn pathless(op: &str) -> String {
    let why = match op {
        "replace" | "test" | "move" => "operation missing path field: ",
        _ => "",
    };
    format!("{op} operation failed to decode path: {why}{MISSING}")
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
            return Err("replace operation value must be object or array: %!w(<nil>)".to_owned());
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

fn move_value<'a>(
    document: &mut Value,
    from: &str,
    path: impl Fn() -> Result<&'a str, String>,
) -> Result<(), String> {
    let Some((parent, member)) = find(document, from) else {
        return Err(format!(
            "move operation does not apply: doc is missing from path: {from}: {MISSING}"
        ));
    };
    let value = take(parent, &member)
        .map_err(|why| format!("error in move for path: '{member}': {why}"))?;
    let path = path()?;
    let Some((parent, member)) = find(document, path) else {
        return Err(format!(
            "move operation does not apply: doc is missing destination path: {path}: {MISSING}"
        ));
    };
    insert(parent, member, value).map_err(|why| format!("error in move for path: '{path}': {why}"))
}

fn copy<'a>(
    document: &mut Value,
    from: &str,
    path: impl Fn() -> Result<&'a str, String>,
    copied: &mut usize,
) -> Result<(), String> {
    let Some((parent, member)) = find(document, from) else {
        return Err(format!(
            "copy operation does not apply: doc is missing from path: {from}: {MISSING}"
        ));
    };
    let value = seen(parent, &member)
        .map_err(|why| format!("error in copy for from: '{from}': {why}"))?
        .clone();
    let path = path()?;
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
    let number = step.parse::<isize>().map_err(|error| {
        let is_too_large =
            matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
        let why = if is_too_large { "value out of range" } else { "invalid syntax" };
        format!("strconv.Atoi: parsing {}: {why}", quoted(step))
    })?;
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
        let at = match &*step {
            "-" => Ok(items.len()),
            step => index(step, items.len() + 1),
        };
        let misfit = |why: String| match why.strip_prefix("strconv") {
            Some(_) => format!("value was not a proper array index: '{step}': {why}"),
            None => why,
        };
        items.insert(at.map_err(misfit)?, value);
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
mod tests;
