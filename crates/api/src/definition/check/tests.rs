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
             2147483647",
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
fn the_faults_of_the_alternative_with_the_most_matches_are_told() {
    let schema = |key: &str| {
        let text = json!({"type": "string"});
        json!({"type": "object", "properties": {"kind": text, "a": text, "b": text}, key: [
            {"required": ["a"], "properties": {"kind": {"enum": ["A"]}}},
            {"required": ["b", "c"], "properties": {"kind": {"enum": ["B"]}, "a": {}}},
        ]})
    };
    for key in ["oneOf", "anyOf"] {
        let found = faults(schema(key), json!({"kind": "A"}));
        assert_eq!(found[1..], ["spec.x.a: Required value"], "{key}");
        // The second one has looked at more.
        let found = faults(schema(key), json!({"kind": "C", "a": "x"}));
        let first = "spec.x.kind: Unsupported value: \"C\": supported values: \"B\"";
        let want = [first, "spec.x.b: Required value", "spec.x.c: Required value"];
        assert_eq!(found[1..], want, "{key}");
    }
}

#[test]
fn choices_are_compared_by_their_type() {
    let one_of = |choices: Value| json!({"type": "number", "nullable": true, "enum": choices});
    let none = Vec::<String>::new();
    for (choices, value) in
        [(json!([1]), json!(1)), (json!([1]), json!(1.5)), (json!([1.5]), json!(1.5))]
    {
        assert_eq!(faults(one_of(choices.clone()), value.clone()), none, "{choices} {value}");
    }
    assert_eq!(faults(one_of(json!([1.5])), json!(1)).len(), 1);
    assert_eq!(faults(one_of(json!([1, null])), json!(null)).len(), 1);
}

#[test]
fn whole_numbers_are_integers_however_they_are_written() {
    assert_eq!(faults(json!({"type": "integer"}), json!(2.0)), Vec::<String>::new());
    assert_eq!(faults(json!({"type": "integer"}), json!(2.5)).len(), 2);
    assert_eq!(faults(json!({"type": "number"}), json!(2)), Vec::<String>::new());
}

#[test]
fn numbers_have_to_fit_their_format() {
    let number = |format: &str| json!({"type": "number", "format": format});
    let integer = |format: &str| json!({"type": "integer", "format": format});
    let with_type = |kind: &str| format!("must be of type {kind} in spec.x");
    let cases = [
        (integer("int32"), json!(2_147_483_647), None),
        (integer("int32"), json!(2_147_483_648_u64), Some("integer with format int32")),
        (integer("int64"), json!(2_147_483_648_u64), None),
        (integer("int8"), json!(2_147_483_648_u64), None),
        (number("float"), json!(1e39), Some("number with format float")),
        (number("float"), json!(1e38), None),
        (number("double"), json!(1e39), None),
        (json!({"x-kubernetes-int-or-string": true, "format": "int32"}), json!(1_u64 << 40), None),
    ];
    for (schema, value, want) in cases {
        let want = want
            .map(|kind| format!("<nil>: Invalid value: \"\": Checked value {}", with_type(kind)));
        let want: Vec<String> = want.into_iter().collect();
        assert_eq!(faults(schema.clone(), value.clone()), want, "{schema} {value}");
    }
    assert_eq!(
        faults(json!({"type": "integer"}), json!(1.5)),
        [
            "spec.x: Invalid value: \"number\": spec.x in body must be of type integer: \"number\"",
            "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in \
             spec.x",
        ]
    );
}

#[test]
fn limits_of_whole_numbers_are_whole() {
    let all = |limit: Value| {
        json!({"type": "object", "properties": {"n": {}}, "allOf": [
        {"properties": {"n": limit}}]})
    };
    let none = Vec::<String>::new();
    for (limit, value) in [
        (json!({"maximum": 2.5}), json!(2)),
        (json!({"minimum": 2.5}), json!(2)),
        (json!({"multipleOf": 0.1}), json!(0.3)),
        (json!({"multipleOf": 0.1}), json!(-0.3)),
        (json!({"minimum": 9, "exclusiveMinimum": true}), json!(9.5)),
    ] {
        assert_eq!(faults(all(limit.clone()), json!({"n": value})), none, "{limit} {value}");
    }
    assert_eq!(
        faults(json!({"type": "number", "multipleOf": 0.1}), json!(0.35)),
        ["spec.x: Invalid value: 0.35: spec.x in body should be a multiple of 0.1"]
    );
    assert_eq!(
        faults(json!({"type": "integer", "maximum": 2.5}), json!(2)),
        ["<nil>: Invalid value: \"\": Maximum boundary value must be of type integer (default \
          format) in spec.x"]
    );
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

#[test]
fn alternatives_look_at_what_did_not_change() {
    let alternatives = |key: &str| {
        Schema::read(&json!({"type": "object", "properties": {
            "apiVersion": {"type": "string", "enum": ["other"]},
            "spec": {"type": "object",
                "properties": {"type": {"type": "string"}, "n": {"type": "integer"}},
                key: [{"properties": {"type": {"enum": ["A"]}}},
                      {"properties": {"type": {"enum": ["B"]}}}]}}}))
    };
    let object =
        |kind: &str, n: i64| json!({"spec": {"type": kind, "n": n}}).as_object().cloned().unwrap();
    let faults = |key: &str, new: Json, old: Json| {
        check(&alternatives(key), &new, Some(&old)).iter().map(ToString::to_string).collect()
    };
    let none = Vec::<String>::new();
    assert_eq!(faults("oneOf", object("A", 2), object("A", 1)), none);
    assert_eq!(faults("anyOf", object("A", 2), object("A", 1)), none);
    let wrong: Vec<String> = faults("oneOf", object("C", 2), object("C", 1));
    assert!(wrong[0].ends_with("(oneOf). Found none valid"), "{wrong:?}");
    assert_eq!(faults("oneOf", object("C", 1), object("C", 1)), none);
    let said = |n: i64| {
        let Value::Object(mut object) = Value::Object(object("A", n)) else { unreachable!() };
        object.insert("apiVersion".to_owned(), "v1".into());
        object
    };
    let wrong: Vec<String> = faults("oneOf", said(2), said(1));
    assert_eq!(wrong, ["apiVersion: Unsupported value: \"v1\": supported values: \"other\""]);
}

#[test]
fn lists_that_are_maps_are_the_same_in_any_order() {
    let schema = Schema::read(&json!({"type": "object", "properties": {"spec": {
    "type": "object", "properties": {
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "keyed": {"type": "array", "maxItems": 1, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["n"], "items": {"type": "object", "properties": {
                "n": {"type": "string"}, "v": {"type": "integer"}}}},
    }}}}));
    let faults = |new: Value, old: Value| {
        let [new, old] = [new, old].map(|it| json!({"spec": it}).as_object().cloned().unwrap());
        check(&schema, &new, Some(&old)).len()
    };
    let item = |n: &str, v: i64| json!({"n": n, "v": v});
    let keyed = |a: Value, b: Value| json!({"keyed": [a, b]});
    let old = || keyed(item("x", 1), item("y", 2));
    assert_eq!(faults(keyed(item("y", 2), item("x", 1)), old()), 0);
    assert_eq!(faults(keyed(item("y", 2), item("x", 3)), old()), 1);
    assert_eq!(faults(keyed(item("z", 2), item("x", 1)), old()), 1);
}

#[test]
fn elements_without_their_keys_are_not_known_again() {
    let schema = Schema::read(&json!({"type": "object", "properties": {"spec": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"],
        "items": {"type": "object", "properties": {
            "k": {"type": "string"}, "l": {"type": "integer"},
            "n": {"type": "integer", "maximum": 5}}}}}}));
    let faults = |new: Value, old: Value| {
        let [new, old] = [new, old].map(|it| json!({"spec": it}).as_object().cloned().unwrap());
        check(&schema, &new, Some(&old)).len()
    };
    let with = |n: i64| json!([{"k": "a", "l": 1, "n": n}, {"k": "b", "l": 1, "n": 7}]);
    assert_eq!(faults(with(6), with(7)), 1);
    let without = |n: i64| json!([{"k": "a", "n": n}, {"k": "b", "n": 7}]);
    assert_eq!(faults(without(6), without(7)), 2);
    let with_null = |n: i64| json!([{"k": "a", "l": null, "n": n}, {"k": "b", "n": 7}]);
    assert!(faults(with_null(6), with_null(7)) > 2);
    // Of two with the same keys the first one counts.
    let twice = |n: i64| json!([{"k": "a", "l": 1, "n": n}, {"k": "a", "l": 1, "n": 7}]);
    assert_eq!(faults(twice(6), twice(6)), 1);
}

#[test]
fn long_lists_are_checked_in_the_time_it_takes_to_read_them() {
    let count = 30_000;
    let keyed = |last: i64| -> Vec<Value> {
        let item = |k: i64| json!({"k": k, "n": if k == count - 1 { last } else { 6 }});
        (0..count).map(item).collect()
    };
    let schema = Schema::read(&json!({"type": "object", "properties": {"spec": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {
            "k": {"type": "integer"}, "n": {"type": "integer", "maximum": 5}}}}}}));
    let with = |last: i64| json!({"spec": keyed(last)}).as_object().cloned().unwrap();
    assert_eq!(check(&schema, &with(7), Some(&with(6))).len(), 1);
    let wrong = faults(json!({"type": "array", "items": {"type": "string"}}), json!(keyed(1)));
    assert_eq!(wrong.len(), keyed(1).len());
}

#[test]
fn whole_numbers_are_not_taken_for_their_neighbours() {
    let choices = json!({"type": "integer", "enum": [9_007_199_254_740_993_i64]});
    assert!(faults(choices.clone(), json!(9_007_199_254_740_993_i64)).is_empty());
    assert_eq!(faults(choices, json!(9_007_199_254_740_992_i64)).len(), 1);
}
