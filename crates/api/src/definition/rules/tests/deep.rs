//! Expressions that go deep: nothing that somebody writes may end the process.

use std::thread;

use serde_json::json;

use super::*;

/// What a thread of a server has.
const STACK: usize = 2 << 20;
/// How much of a stack it takes to evaluate what may be evaluated: nothing of the parser is
/// optimised where this is debugged, and a bracket takes 200 KiB instead of 8.
const STACK_MAX: usize = if cfg!(debug_assertions) { 64 * STACK } else { STACK };

/// What is wrong with a rule, and what it finds, on a stack of some size.
fn on_a_stack(stack: usize, rule: String) -> [Vec<String>; 2] {
    let asked = move || {
        let schema = Schema::read(&json!({"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "integer"}}},
            "x-kubernetes-validations": [{"rule": rule, "messageExpression": rule}]}));
        let object = json!({"list": [0, 1], "metadata": {}}).as_object().cloned().unwrap();
        let texts = |errors: ErrorList| errors.iter().map(ToString::to_string).collect();
        [
            texts(faults(&schema, 0, &Path::new("p"), None)),
            texts(check(&schema, &object, Some(&object))),
        ]
    };
    thread::Builder::new().stack_size(stack).spawn(asked).unwrap().join().unwrap()
}

#[test]
fn what_goes_too_deep_is_refused() {
    let count = 10_000;
    let rules = [
        format!("1{} > 0", "+1".repeat(count)),
        format!("self{} == 1", ".a".repeat(count)),
        format!("self{} == 1", "[0]".repeat(count)),
        format!("1{}", " == 1".repeat(count)),
        format!("self{}", ".f(self".repeat(count)),
        format!("{}1", "true ? 1 : ".repeat(7_000)),
        "[".repeat(count),
        "(".repeat(count),
    ];
    for rule in rules {
        let [faults, found] = on_a_stack(STACK, rule.clone());
        let limit = if rule.contains("((") || rule.contains("[[") || rule.contains(".f(") {
            96
        } else {
            250
        };
        let want = format!(
            "compilation failed: ERROR: <input>:-1:0: expression recursion limit exceeded: {limit}"
        );
        assert!(faults[0].ends_with(&want), "{}: {}", &rule[..20], faults[0].len());
        assert_eq!(found, Vec::<String>::new());
    }
    let [faults, _] = on_a_stack(STACK, "x".repeat(100_001));
    assert!(faults[0].ends_with("code point size exceeds limit: size: 100001, limit 100000"));
}

#[test]
fn what_goes_as_deep_as_it_may_is_evaluated() {
    let nested = |count: usize, open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(count), close.repeat(count))
    };
    let rules = [
        nested(248, "1+", "1 > 0", ""),
        nested(247, "1+", "1/0 == 2", ""),
        nested(248, "false ? true : ", "true", ""),
        nested(95, "(", "true", ")"),
        format!("size({}) == 1", nested(95, "[", "1", "]")),
        format!("size({}) == 1", nested(80, "{1: ", "1", "}")),
        nested(96, "[1].all(x, ", "true", ")"),
        nested(95, "[1].exists(x, ", "[][0] == 1", ")"),
        nested(95, "[1].all(x, y, ", "true", ")"),
        nested(80, "[1].transformList(x, y, ", "1", ")") + " != []",
        format!("self{} == 1", nested(246, ".list", "", "")),
        format!("optional.of(1){}.hasValue()", nested(244, ".optMap(x, x)", "", "")),
        nested(48, "optional.of(1).optMap(x, ", "1", ").hasValue()"),
        nested(47, "optional.of(1).optFlatMap(x, ", "optional.of(1)", ")") + ".hasValue()",
        format!("[1]{} == [1]", nested(244, ".map(x, x)", "", "")),
        nested(80, "[1].map(x, ", "1", ")[0]") + " == 1",
    ];
    for rule in rules {
        let [faults, found] = on_a_stack(STACK_MAX, rule.clone());
        assert_eq!(faults, Vec::<String>::new(), "{rule}");
        let is_evaluated = found.iter().all(|it| !it.contains("cannot be"));
        assert!(is_evaluated, "{rule}: {found:?}");
    }
}
