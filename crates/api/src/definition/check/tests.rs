use serde_json::json;

use super::*;

fn faults(schema: Value, value: Value) -> Vec<String> {
    let schema = Schema::read(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"x": schema}}}}));
    let object = json!({"spec": {"x": value}});
    let Value::Object(object) = object else { unreachable!("it is one") };
    check(&schema, &object, None).iter().map(ToString::to_string).collect()
}

/// A schema, a value, and what is wrong with it.
type Case = (Value, Value, &'static str);

#[test]
fn faults_are_worded_as_upstream_words_them() {
    for (schema, value, want) in plain_cases().into_iter().chain(other_cases()) {
        assert_eq!(faults(schema.clone(), value), [want], "{schema}");
    }
}

fn plain_cases() -> Vec<Case> {
    vec![
        (
            json!({"type": "integer"}),
            json!("a"),
            "spec.x: Invalid value: \"string\": spec.x in body must be of type integer: \"string\"",
        ),
        (
            json!({"type": "string"}),
            json!(null),
            "spec.x: Invalid value: \"null\": spec.x in body must be of type string: \"null\"",
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            "spec.x: Invalid value: \"boolean\": spec.x in body must be of type integer,string: \
             \"boolean\"",
        ),
        (
            json!({"type": "integer", "minimum": 1}),
            json!(0),
            "spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1",
        ),
        (
            json!({"type": "integer", "maximum": 2_147_483_647}),
            json!(3_000_000_000_u64),
            "spec.x: Invalid value: 3000000000: spec.x in body should be less than or equal to \
             2.147483647e+09",
        ),
        (
            json!({"type": "number", "minimum": 0.5, "exclusiveMinimum": true}),
            json!(0.5),
            "spec.x: Invalid value: 0.5: spec.x in body should be greater than 0.5",
        ),
        (
            json!({"type": "integer", "multipleOf": 4}),
            json!(6),
            "spec.x: Invalid value: 6: spec.x in body should be a multiple of 4",
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            json!("b"),
            "spec.x: Invalid value: \"b\": spec.x in body should match '^a+$'",
        ),
    ]
}

fn other_cases() -> Vec<Case> {
    vec![
        (
            json!({"type": "string", "maxLength": 2}),
            json!("abc"),
            "spec.x: Too long: may not be more than 2 bytes",
        ),
        (
            json!({"type": "string", "minLength": 2}),
            json!("a"),
            "spec.x: Invalid value: \"a\": spec.x in body should be at least 2 chars long",
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            "spec.x: Unsupported value: \"c\": supported values: \"a\", \"b\"",
        ),
        (
            json!({"type": "array", "maxItems": 1, "items": {"type": "string"}}),
            json!(["a", "b"]),
            "spec.x: Too many: 2: must have at most 1 item",
        ),
        (
            json!({"type": "array", "items": {"type": "object", "required": ["n"]}}),
            json!([{}]),
            "spec.x[0].n: Required value",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
            json!({"k": 1}),
            "spec.x.k: Invalid value: \"integer\": spec.x.k in body must be of type boolean: \
             \"integer\"",
        ),
        (
            json!({"type": "string", "format": "ipv4"}),
            json!("x"),
            "spec.x: Invalid value: \"x\": spec.x in body must be of type ipv4: \"x\"",
        ),
        (
            json!({"type": "string", "not": {"enum": ["a"]}}),
            json!("a"),
            "<nil>: Invalid value: \"\": \"spec.x\" must not validate the schema (not)",
        ),
    ]
}

#[test]
fn alternatives_are_counted() {
    let text = json!({"type": "string"});
    let one = json!({"type": "object", "properties": {"a": text, "b": text},
                     "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    assert_eq!(faults(one.clone(), json!({"a": ""})), Vec::<String>::new());
    assert_eq!(
        faults(one.clone(), json!({})),
        [
            "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema (oneOf). \
             Found none valid",
            "spec.x.a: Required value",
        ]
    );
    assert_eq!(
        faults(one, json!({"a": "", "b": ""})),
        ["<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema (oneOf). \
          Found 2 valid alternatives"]
    );
}

#[test]
fn whole_numbers_are_integers_however_they_are_written() {
    assert_eq!(faults(json!({"type": "integer"}), json!(2.0)), Vec::<String>::new());
    assert_eq!(faults(json!({"type": "integer"}), json!(2.5)).len(), 1);
    assert_eq!(faults(json!({"type": "number"}), json!(2)), Vec::<String>::new());
}

#[test]
fn numbers_are_printed_as_go_prints_them() {
    let cases = [
        (0.0, "0"),
        (1.0, "1"),
        (-2.5, "-2.5"),
        (100_000.0, "100000"),
        (1_000_000.0, "1e+06"),
        (1_234_567.5, "1.2345675e+06"),
        (0.0001, "0.0001"),
        (0.000_01, "1e-05"),
    ];
    for (number, want) in cases {
        assert_eq!(go_float(number), want);
    }
}

#[test]
fn what_was_wrong_before_may_stay_as_it_is() {
    let schema = Schema::read(&json!({"type": "object", "properties": {"spec": {
    "type": "object", "properties": {
        "a": {"type": "integer", "maximum": 5},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["n"], "items": {"type": "object", "properties": {
                "n": {"type": "string"}, "v": {"type": "integer", "maximum": 5}}}},
    }}}}));
    let faults = |new: Value, old: Value| {
        let [new, old] = [new, old].map(|it| it.as_object().unwrap().clone());
        check(&schema, &new, Some(&old)).len()
    };
    let spec = |a: i64, v: i64| json!({"spec": {"a": a, "keyed": [{"n": "x", "v": v}]}});
    assert_eq!(faults(spec(9, 9), spec(9, 9)), 0);
    assert_eq!(faults(spec(9, 1), spec(9, 9)), 0);
    assert_eq!(faults(spec(8, 9), spec(9, 9)), 1);
    assert_eq!(faults(spec(8, 8), spec(9, 9)), 2);
}
