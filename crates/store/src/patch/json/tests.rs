//! What operations make of objects, and what is said when they make nothing.

use serde_json::{Value, json};

use super::{OPERATIONS_MAX, depth_after, parse};

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
            Err("error in remove for path: '/x': Unable to remove nonexistent key: x: missing \
                 value"),
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
            Err("error in add for path: '/l/x': value was not a proper array index: 'x': \
                 strconv.Atoi: parsing \"x\": invalid syntax"),
        ),
        (
            json!([{"op": "add", "path": "/l/4", "value": 1}]),
            Err("error in add for path: '/l/4': Unable to access invalid index: 4: invalid \
                 index referenced"),
        ),
        (
            json!([{"op": "remove", "path": "/l/99999999999999999999"}]),
            Err("error in remove for path: '/l/99999999999999999999': strconv.Atoi: parsing \
                 \"99999999999999999999\": value out of range"),
        ),
        (
            json!([{"op": "replace", "path": "", "value": 1}]),
            Err("replace operation value must be object or array: %!w(<nil>)"),
        ),
        (
            json!([{"op": "move", "from": "/a", "path": "/a/b"}]),
            Err("move operation does not apply: doc is missing destination path: /a/b: missing \
                 value"),
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
    ]);
}

#[test]
fn operations_that_do_not_say_where_are_told_so() {
    let from = "operation failed to decode from: operation, missing from field: missing value";
    let path = "operation failed to decode path: operation missing path field: missing value";
    let short = "operation failed to decode path: missing value";
    for (operation, want) in [
        (json!({"op": "remove"}), format!("remove {short}")),
        (json!({"op": "replace", "value": 1}), format!("replace {path}")),
        (json!({"op": "test"}), format!("test {path}")),
        (json!({"op": "move"}), format!("move {from}")),
        (json!({"op": "move", "from": "/a"}), format!("move {path}")),
        (json!({"op": "copy", "path": "/c"}), format!("copy {from}")),
        (json!({"op": "copy", "from": "/a"}), format!("copy {short}")),
    ] {
        check([(json!([operation]), Err(want.as_str()))]);
    }
}

#[test]
fn how_deep_an_object_becomes_is_known_without_measuring_it() {
    let after = |depth, operation: Value| {
        let operations = parse(json!([operation]).to_string().as_bytes()).unwrap();
        operations.list.iter().fold(depth, depth_after)
    };
    let nested = json!({"a": [1]});
    for (operation, want) in [
        (json!({"op": "add", "path": "/data/x", "value": 1}), 5),
        (json!({"op": "add", "path": "/a/b/c", "value": nested}), 6),
        (json!({"op": "replace", "path": "", "value": nested}), 5),
        (json!({"op": "test", "path": "/a/b/c/d/e/f", "value": nested}), 5),
        (json!({"op": "remove", "path": "/a/b/c/d/e/f"}), 5),
        (json!({"op": "move", "from": "/a/b", "path": "/c/d"}), 5),
        (json!({"op": "copy", "from": "/a", "path": "/c/d/e"}), 7),
    ] {
        assert_eq!(after(5, operation.clone()), want, "{operation}");
    }
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
