mod deep;

use serde_json::json;

use super::*;

/// What a rule of `spec` finds wrong, given its schema, the new spec and the old one.
fn found(rule: Value, new: Value, old: Option<Value>) -> Vec<String> {
    let schema = Schema::read(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {
            "n": {"type": "integer"}, "m": {"type": "integer"}, "s": {"type": "string"},
            "f": {"type": "number"}, "when": {"type": "string", "format": "date-time"},
            "list": {"type": "array", "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "a-b": {"type": "string"}, "q": {"x-kubernetes-int-or-string": true},
        },
        "x-kubernetes-validations": [rule],
    }}}));
    let whole = |spec: Value| {
        let object = json!({"metadata": {"name": "x"}, "spec": spec});
        object.as_object().cloned().unwrap()
    };
    let old = old.map(whole);
    check(&schema, &whole(new), old.as_ref()).iter().map(ToString::to_string).collect()
}

#[test]
fn rules_that_hold_say_nothing() {
    let cases = [
        ("self.n <= self.m", json!({"n": 1, "m": 2})),
        ("!has(self.s) || self.s.startsWith('a')", json!({})),
        ("self.list.all(x, x.size() > 1)", json!({"list": ["aa", "bb"]})),
        ("self.list.exists_one(x, x == 'aa')", json!({"list": ["aa", "bb"]})),
        ("self.map.all(k, self.map[k] > 0)", json!({"map": {"x": 1}})),
        ("self.s.matches('^[a-z]+$')", json!({"s": "abc"})),
        ("self.f == 2.0", json!({"f": 2})),
        ("self.when > timestamp('2020-01-01T00:00:00Z')", json!({"when": "2026-11-15T12:00:00Z"})),
        ("self.a__dash__b == 'x'", json!({"a-b": "x"})),
        (
            "isQuantity(self.s) && quantity(self.s).isGreaterThan(quantity('1Gi'))",
            json!({"s": "2Gi"}),
        ),
        (
            "isURL(self.s) && url(self.s).getHost() == 'example.com'",
            json!({"s": "https://example.com/"}),
        ),
        ("isIP(self.s)", json!({"s": "10.0.0.1"})),
        ("sets.contains(['aa', 'bb', 'cc'], self.list)", json!({"list": ["aa", "bb"]})),
        ("type(self.q) == int ? self.q > 0 : self.q != ''", json!({"q": "x"})),
    ];
    for (rule, spec) in cases {
        let none: Vec<String> = Vec::new();
        assert_eq!(found(json!({"rule": rule}), spec, None), none, "{rule}");
    }
}

#[test]
fn fields_that_may_be_nothing_are_nothing_where_they_are_not() {
    let cases = [
        ("self.?s.orValue('') != 'bad'", json!({})),
        ("self.?s.orValue('') == 'x'", json!({"s": "x"})),
        ("!self.?s.hasValue()", json!({})),
        ("self.?map.x.orValue(1) == 1", json!({})),
        ("self.?map.x.orValue(1) == 1", json!({"map": {"y": 2}})),
        ("self.?map.x.orValue(1) == 2", json!({"map": {"x": 2}})),
        ("self.?map[?'y'].orValue(3) == 3", json!({"map": {"x": 2}})),
        ("self.?list[5].orValue('none') == 'none'", json!({"list": ["a"]})),
        ("!has(self.?map.y) && has(self.?map.x)", json!({"map": {"x": 2}})),
        ("self.?n.or(self.?m).value() == 2", json!({"m": 2})),
        ("self.?s.optMap(it, it.size()).orValue(0) == 0", json!({})),
        ("self.?s.optMap(it, it.size()).orValue(0) == 2", json!({"s": "ab"})),
        ("self.?map.optFlatMap(it, it.?x).orValue(0) == 2", json!({"map": {"x": 2}})),
        ("optional.of(self.map).x.value() == 2", json!({"map": {"x": 2}})),
        ("self.?map.optMap(it, it).x.orValue(0) == 2", json!({"map": {"x": 2}})),
        (
            "self.?n.optMap(a, self.?m.optMap(b, a + b).value()).value() == 3",
            json!({"n": 1, "m": 2}),
        ),
    ];
    for (rule, spec) in cases {
        let none: Vec<String> = Vec::new();
        assert_eq!(found(json!({"rule": rule}), spec, None), none, "{rule}");
    }
    let old = json!({"rule": "oldSelf.n.orValue(7) == 7", "optionalOldSelf": true});
    assert!(found(old.clone(), json!({"n": 1}), None).is_empty());
    assert!(found(old.clone(), json!({"n": 1}), Some(json!({"m": 1}))).is_empty());
    assert_eq!(found(old, json!({"n": 1}), Some(json!({"n": 2}))).len(), 1);
}

#[test]
fn loops_and_conversions_are_those_of_upstream() {
    let list = || json!({"list": ["a", "2"]});
    let map = || json!({"map": {"x": 1, "y": 2}});
    let cases = [
        ("self.list.all(i, it, i >= 0 && self.list[i] == it)", list()),
        ("self.list.exists(i, it, i == 1 && it == '2')", list()),
        ("self.list.existsOne(i, it, i > 0)", list()),
        ("self.map.all(k, v, self.map[k] == v)", map()),
        ("self.map.exists(k, v, k == 'y' && v == 2)", map()),
        ("self.map.exists_one(k, v, v > 1)", map()),
        ("self.list.transformList(i, it, string(i) + it) == ['0a', '12']", list()),
        ("self.map.transformList(k, v, v > 1, k) == ['y']", map()),
        ("self.map.transformMap(k, v, v + 1) == {'x': 2, 'y': 3}", map()),
        ("self.map.transformMap(k, v, k == 'x', v) == {'x': 1}", map()),
        ("self.list.all(i, a, self.list.exists(j, b, i == j && a == b))", list()),
        // One element fails, and another decides.
        ("self.list.exists(it, int(it) == 2)", list()),
        ("!self.list.all(it, int(it) > 2)", list()),
        ("!self.list.all(a, self.list.exists(b, int(b) == 2 && a == 'a'))", list()),
        ("dyn(self.s) == 'x'", json!({"s": "x"})),
        ("bool(self.s) && !bool('f')", json!({"s": "True"})),
        ("size(self.s) == 2 && self.s.size() == 2", json!({"s": "\u{e9}\u{1f600}"})),
        ("string(true) + string(self.f) == 'true1.5'", json!({"f": 1.5})),
        ("string(timestamp('2026-11-15T12:00:00Z')) == '2026-11-15T12:00:00Z'", json!({})),
        ("string(timestamp('2026-11-15T12:00:00.50Z')) == '2026-11-15T12:00:00.5Z'", json!({})),
        ("string(duration('1ns')) == '0.000000001s'", json!({})),
        ("string(duration('-1500ms')) == '-1.5s'", json!({})),
        ("string(duration('1m30s')) == '90s' && string(ip('::1')) == '::1'", json!({})),
        ("type(self.q) == int", json!({"q": 1})),
        ("type(self.q) != int && type(self.q) == string", json!({"q": "x"})),
        ("type(self.when) == google.protobuf.Timestamp", json!({"when": "2026-11-15T12:00:00Z"})),
    ];
    for (rule, spec) in cases {
        let none: Vec<String> = Vec::new();
        assert_eq!(found(json!({"rule": rule}), spec.clone(), None), none, "{rule}");
        let schema = Schema::read(&json!({"x-kubernetes-validations": [{"rule": rule}]}));
        assert_eq!(unenforced(&schema, "s"), none, "{rule}");
    }
    let undecided = found(json!({"rule": "self.list.exists(it, int(it) == 3)"}), list(), None);
    let why = "type conversion error from 'string' to 'int' evaluating rule: self.list";
    assert!(undecided[0].contains(why), "{undecided:?}");
}

#[test]
fn rules_that_do_not_hold_say_so_in_their_words() {
    let spec = || json!({"n": 3, "m": 2});
    let cases = [
        (json!({"rule": "self.n <= self.m"}), "spec: Invalid value: failed rule: self.n <= self.m"),
        (
            json!({"rule": "self.n <= self.m", "message": "n is too large"}),
            "spec: Invalid value: n is too large",
        ),
        (
            json!({"rule": "self.n <= self.m", "messageExpression": "'n is ' + string(self.n)"}),
            "spec: Invalid value: n is 3",
        ),
        (
            json!({"rule": "self.n <= self.m", "message": "no", "reason": "FieldValueForbidden",
                   "fieldPath": ".n"}),
            "spec.n: Forbidden: no",
        ),
        (
            json!({"rule": "self.n <= self.m", "message": "no", "reason": "FieldValueRequired"}),
            "spec: Required value: no",
        ),
        (
            json!({"rule": "self.s == 'x'", "message": "no"}),
            "spec: Invalid value: \"object\": no such key: s evaluating rule: no",
        ),
        (
            json!({"rule": "self.n / (self.m - 2) == 1"}),
            "spec: Invalid value: \"object\": division by zero evaluating rule: self.n / (self.m - \
             2) == 1",
        ),
        (
            json!({"rule": "dyn(self.n) + 'x' == 'x'", "message": "no"}),
            "spec: Invalid value: \"object\": 'no such overload': call arguments did not match a \
             supported operator, function or macro signature for rule: no",
        ),
    ];
    for (rule, want) in cases {
        assert_eq!(found(rule.clone(), spec(), None), [want], "{rule}");
    }
}

#[test]
fn rules_about_changes_need_something_before() {
    let rule = json!({"rule": "self.n >= oldSelf.n", "message": "n may not shrink"});
    let none: Vec<String> = Vec::new();
    assert_eq!(found(rule.clone(), json!({"n": 1}), None), none);
    assert_eq!(found(rule.clone(), json!({"n": 2}), Some(json!({"n": 1}))), none);
    assert_eq!(
        found(rule, json!({"n": 1}), Some(json!({"n": 2}))),
        ["spec: Invalid value: n may not shrink"]
    );
    let optional = json!({"rule": "oldSelf.hasValue() || self.n == 1", "message": "begin with 1",
                          "optionalOldSelf": true});
    assert_eq!(found(optional.clone(), json!({"n": 1}), None), none);
    assert_eq!(
        found(optional.clone(), json!({"n": 2}), None),
        ["spec: Invalid value: begin with 1"]
    );
    assert_eq!(found(optional, json!({"n": 2}), Some(json!({"n": 1}))), none);
}

#[test]
fn what_did_not_change_may_stay() {
    let rule = json!({"rule": "self.n <= self.m", "message": "no"});
    let wrong = json!({"n": 3, "m": 2});
    assert!(found(rule.clone(), wrong.clone(), Some(wrong.clone())).is_empty());
    assert_eq!(found(rule, json!({"n": 4, "m": 2}), Some(wrong)).len(), 1);
}

/// A whole object with this in its spec.
fn with_spec(spec: Value) -> Json {
    json!({"spec": spec}).as_object().cloned().unwrap()
}

#[test]
fn what_is_let_pass_is_told() {
    let schema = Schema::read(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {
            "note": {"type": "string"},
            "n": {"type": "integer", "x-kubernetes-validations": [
                {"rule": "self < 5", "message": "too large"}]},
            "q": {"x-kubernetes-int-or-string": true, "x-kubernetes-validations": [
                {"rule": "self < 5"}]},
        },
    }}}));
    let old = with_spec(json!({"n": 7}));
    let new = with_spec(json!({"n": 7, "note": "x"}));
    assert_eq!(check(&schema, &new, Some(&old)), []);
    let told = let_pass(&schema, &new, &old);
    assert_eq!(told[0].to_string(), "spec.n: Invalid value: 7: too large");
    assert_eq!(let_pass(&schema, &with_spec(json!({"n": 8})), &old), []);
    // What cannot be evaluated is not let pass.
    let odd = with_spec(json!({"q": "x"}));
    let new = with_spec(json!({"q": "x", "note": "y"}));
    assert_eq!(check(&schema, &new, Some(&odd)).len(), 1);
    assert_eq!(let_pass(&schema, &new, &odd), []);
}

#[test]
fn elements_that_cannot_be_found_again_may_stay_in_a_list_that_did_not_change() {
    let schema = Schema::read(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {
            "note": {"type": "string"},
            "list": {"type": "array", "items": {"type": "string",
                "x-kubernetes-validations": [{"rule": "self != 'bad'"}]}},
        },
    }}}));
    let faults = |new: Value, old: Value| check(&schema, &with_spec(new), Some(&with_spec(old)));
    let old = || json!({"list": ["bad", "good"]});
    assert_eq!(faults(json!({"list": ["bad", "good"], "note": "x"}), old()), []);
    assert_eq!(faults(json!({"list": ["bad", "better"]}), old()).len(), 1);
}

#[test]
fn members_of_atomic_maps_are_known_again() {
    let schema = Schema::read(&json!({"type": "object", "properties": {"spec": {
        "type": "object", "x-kubernetes-map-type": "atomic",
        "properties": {"unit": {"type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "stays"}]}},
    }}}));
    let unit = |text: &str| with_spec(json!({"unit": text}));
    let found = check(&schema, &unit("s"), Some(&unit("m")));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(check(&schema, &unit("m"), Some(&unit("m"))), []);
}

#[test]
fn functions_that_nobody_knows_are_told() {
    let schema = Schema::read(&json!({"type": "object", "x-kubernetes-validations": [
        {"rule": "self.fly()"}, {"rule": "true"}]}));
    assert_eq!(
        unenforced(&schema, "s"),
        ["s.x-kubernetes-validations[0].rule: is not enforced: the function fly is not supported"]
    );
    let broken = Schema::read(&json!({"type": "object", "x-kubernetes-validations": [
        {"rule": "self ="}]}));
    let faults = faults(&broken, 0, &Path::new("p"), None);
    assert!(faults[0].to_string().contains("compilation failed: "), "{faults:?}");
}

#[test]
fn the_order_of_sets_and_maps_means_nothing_where_they_are_compared() {
    let lists = json!({
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "properties": {
                    "k": {"type": "string"}, "v": {"type": "integer"}}}},
        "plain": {"type": "array", "items": {"type": "string"}},
    });
    let before = json!({"set": ["a", "b"], "map": [{"k": "x", "v": 1}, {"k": "y", "v": 2}],
                        "plain": ["a", "b"]});
    let turned = json!({"set": ["b", "a"], "map": [{"k": "y", "v": 2}, {"k": "x", "v": 1}],
                        "plain": ["b", "a"]});
    let cases = [
        ("self.set == oldSelf.set", true),
        ("self.map == oldSelf.map", true),
        ("!(self.set != oldSelf.set) && self.set[0] == 'b'", true),
        ("[1].all(x, self.map == oldSelf.map)", true),
        ("self.plain == oldSelf.plain", false),
        ("self == oldSelf", false),
        ("self.set[0] == oldSelf.set[0]", false),
        ("self.map.map(it, it.k) == oldSelf.map.map(it, it.k)", false),
    ];
    let object = |value: &Value| value.as_object().cloned().unwrap();
    for (rule, holds) in cases {
        let schema = Schema::read(&json!({"type": "object", "properties": lists,
                                          "x-kubernetes-validations": [{"rule": rule}]}));
        let found = check(&schema, &object(&turned), Some(&object(&before)));
        assert_eq!(found.is_empty(), holds, "{rule}: {found:?}");
        let mut other = turned.clone();
        other["set"] = json!(["c"]);
        other["map"][0]["v"] = 3.into();
        let found = check(&schema, &object(&other), Some(&object(&before)));
        assert!(!found.is_empty(), "{rule}");
    }
    let schema = Schema::read(&json!({"type": "object", "properties": lists,
        "x-kubernetes-validations": [{"optionalOldSelf": true,
            "rule": "!oldSelf.hasValue() || self.set == oldSelf.value().set"}]}));
    assert!(check(&schema, &object(&turned), Some(&object(&before))).is_empty());
}
