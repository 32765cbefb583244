//! What holds for every pod the schema lets through, however odd.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{PodStrategy, fill_pod};
use crate::{
    schema::{self, SchemaNode, Shape},
    strategy::{Json, Strategy as _, WriteContext},
};

/// A source of choices that shrinks with its seed.
struct Choices(u64);

impl Choices {
    fn below(&mut self, bound: usize) -> usize {
        // The multiplier is Knuth's; the upper bits are the random ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap_or_default() % bound
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const TEXTS: [&str; 24] = [
    "",
    "a",
    "b",
    "A",
    "a.b",
    "x/y",
    "/",
    "..",
    "é",
    "-",
    "Always",
    "Never",
    "OnFailure",
    "In",
    "Exists",
    "TCP",
    "Localhost",
    "linux",
    "windows",
    "10.0.0.1",
    "::1",
    "iqn.é",
    "None",
    "metadata.labels['é']",
];
const QUANTITIES: [&str; 8] = ["1", "500m", "1Gi", "-1", "0", "1e30", "0.000000001n", "x"];

fn arbitrary(node: &SchemaNode, choices: &mut Choices, depth: usize) -> Value {
    match node.shape() {
        Shape::Struct => {
            let mut object = Json::new();
            for field in node.fields() {
                if choices.below(100) < if depth < 3 { 25 } else { 12 } {
                    let value = arbitrary(&node.at_field(field), choices, depth + 1);
                    object.insert(field.name.to_owned(), value);
                }
            }
            Value::Object(object)
        }
        Shape::Map => {
            let mut object = Json::new();
            for _ in 0..choices.below(3) {
                let key = choices.one_of(&["cpu", "memory", "a", "x/y", "hugepages-2Mi", "é", ""]);
                object.insert(key.to_owned(), arbitrary(&node.elem(), choices, depth + 1));
            }
            Value::Object(object)
        }
        Shape::List => {
            (0..choices.below(3)).map(|_| arbitrary(&node.elem(), choices, depth + 1)).collect()
        }
        Shape::Bool => json!(choices.below(2) == 0),
        Shape::Int32 => json!(choices.one_of(&[0, 1, -1, 30, 600, i64::from(i32::MAX)])),
        Shape::Int64 => json!(choices.one_of(&[0, 1, -1, 30, 600, i64::MAX, i64::MIN])),
        Shape::Time | Shape::MicroTime => json!("2026-11-15T10:00:00Z"),
        Shape::Quantity => json!(choices.one_of(&QUANTITIES)),
        Shape::IntOrString => {
            if choices.below(2) == 0 {
                json!(80)
            } else {
                json!(choices.one_of(&TEXTS))
            }
        }
        Shape::String | Shape::Bytes | Shape::Duration | Shape::Any => {
            json!(choices.one_of(&TEXTS))
        }
    }
}

fn pod(seed: u64) -> Json {
    let schema = schema::of("", "v1", "Pod").expect("pods are built in");
    let mut choices = Choices(seed);
    let pod = arbitrary(&schema, &mut choices, 0);
    let mut pod = pod.as_object().expect("a struct").clone();
    // Most random pods lack them, and then little else is looked at.
    let field = |name: &str| schema.field(name).expect("pods have it");
    pod.insert("spec".to_owned(), arbitrary(&field("spec"), &mut choices, 1));
    pod.insert("status".to_owned(), arbitrary(&field("status"), &mut choices, 1));
    pod
}

fn context() -> WriteContext {
    WriteContext {
        now: jiff::Timestamp::UNIX_EPOCH,
        uid: "u".to_owned(),
        user: "someone".to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn filling_in_twice_is_filling_in_once(seed in any::<u64>()) {
        let mut once = pod(seed);
        fill_pod(&mut once);
        let mut twice = once.clone();
        fill_pod(&mut twice);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn any_pod_is_judged_and_shown(seed in any::<u64>(), other in any::<u64>()) {
        let (mut new, mut old) = (pod(seed), pod(other));
        for object in [&mut new, &mut old] {
            PodStrategy.fill_defaults(object);
            let status = object["status"].clone();
            PodStrategy.prepare_create(object, &context());
            object.insert("status".to_owned(), status);
        }
        let _ = PodStrategy.validate_create(&new);
        let _ = PodStrategy.warnings(&new, None);
        let _ = PodStrategy.validate_update(&new, &old);
        let _ = PodStrategy.validate_status_update(&new, &old);
        let _ = PodStrategy.grace_period(&new, None);
        let cells = PodStrategy.row(&new, context().now);
        prop_assert_eq!(cells.len(), PodStrategy.columns().len());
    }

    #[test]
    fn a_pod_may_stay_as_it_is(seed in any::<u64>()) {
        let mut it = pod(seed);
        PodStrategy.fill_defaults(&mut it);
        PodStrategy.prepare_create(&mut it, &context());
        it["spec"]["ephemeralContainers"] = json!([]);
        let before = PodStrategy.validate_create(&it);
        let after = PodStrategy.validate_update(&it, &it);
        let was_wrong = |path| before.iter().any(|error| error.path == path);
        prop_assert!(after.iter().all(|it| was_wrong(it.path.clone())), "{:?}", after);
    }
}
