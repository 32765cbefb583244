//! What holds for all sets and all objects.

use proptest::prelude::*;
use serde_json::{Value, json};

use lockstep_api::strategy::Json;

use super::{Element, Place, Set, compare, merge, owned, remove};
use crate::testing::map;

fn element() -> impl Strategy<Value = Element> {
    prop_oneof![
        "[a-c]".prop_map(|name| Element::field(&name)),
        "[a\"\\\\é ]{1,2}".prop_map(|name| Element::field(&name)),
        (0..3_i64).prop_map(|port| Element::Key(vec![("port".into(), port.into())])),
        "[a-c]".prop_map(|text| Element::Value(text.into())),
        (0..3_i64).prop_map(Element::Index),
    ]
}

fn set() -> impl Strategy<Value = Set> {
    let path = proptest::collection::vec(element(), 1..4);
    proptest::collection::vec(path, 0..8).prop_map(|paths| {
        let mut set = Set::default();
        paths.iter().for_each(|path| set.insert(path));
        set
    })
}

/// Configurations of a pod, with few different things in them.
fn pod() -> impl Strategy<Value = Value> {
    let text = || proptest::option::of("[xy]");
    let labels = proptest::collection::btree_map("[a-c]", "[xy]", 0..3);
    let port = (1..4_i64, proptest::option::of(prop_oneof![Just("TCP"), Just("UDP")]))
        .prop_map(|(port, protocol)| json!({"containerPort": port, "protocol": protocol}));
    let ports = proptest::collection::vec(port, 0..3);
    let container = ("[a-c]", text(), ports)
        .prop_map(|(name, image, ports)| json!({"name": name, "image": image, "ports": ports}));
    let containers = proptest::collection::vec(container, 0..3);
    let selector = proptest::collection::btree_map("[a-c]", "[xy]", 0..2);
    let finalizers = proptest::collection::btree_set("[a-c]", 0..3);
    (labels, finalizers, containers, selector, text()).prop_map(
        |(labels, finalizers, containers, selector, node)| {
            let mut pod = json!({
                "metadata": {"labels": labels, "finalizers": finalizers},
                "spec": {"containers": containers, "nodeSelector": selector, "nodeName": node},
            });
            tidy(&mut pod);
            pod
        },
    )
}

/// Drops what says nothing, and elements that are there twice.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.values_mut().for_each(tidy);
            object
                .retain(|_, value| !value.is_null() && *value != json!({}) && *value != json!([]));
        }
        Value::Array(list) => {
            let mut seen = Vec::new();
            list.retain(|item| {
                let protocol = item.get("protocol").filter(|it| !it.is_null());
                let protocol = protocol.cloned().unwrap_or_else(|| "TCP".into());
                let key = json!([item.get("name"), item.get("containerPort"), protocol]);
                let is_new = !item.is_object() || !seen.contains(&key);
                seen.push(key);
                is_new
            });
            list.iter_mut().for_each(tidy);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn place() -> Place<'static> {
    Place::Known(lockstep_api::schema::of("", "v1", "Pod").unwrap())
}

proptest! {
    #[test]
    fn sets_survive_the_wire(set in set()) {
        let mut out = Vec::new();
        set.write(&mut out);
        prop_assert_eq!(serde_json::from_slice::<Set>(&out).unwrap(), set);
    }

    #[test]
    fn sets_are_sets(a in set(), b in set()) {
        let (all, both, rest) = (a.union(&b), a.intersection(&b), a.difference(&b));
        prop_assert_eq!(both.union(&rest), a.clone());
        prop_assert_eq!(all.difference(&b), rest.clone());
        prop_assert!(all.contains(&a) && all.contains(&b) && a.contains(&both));
        prop_assert_eq!(a.meets(&b), !both.is_empty());
        prop_assert!(!rest.meets(&b) && rest.contains(&a.outside(&b)));
        for path in all.paths() {
            prop_assert_eq!(all.has(&path.0), a.has(&path.0) || b.has(&path.0));
            prop_assert_eq!(both.has(&path.0), a.has(&path.0) && b.has(&path.0));
            prop_assert_eq!(rest.has(&path.0), a.has(&path.0) && !b.has(&path.0));
        }
    }

    #[test]
    fn what_differs_from_nothing_is_all_there_is(pod in pod()) {
        let none = Set::default();
        let found = compare(place(), &Json::new(), &map(pod.clone()), &none);
        prop_assert!(found.modified.is_empty() && found.removed.is_empty());
        prop_assert!(found.added.contains(&owned(place(), &pod)));
        prop_assert!(compare(place(), &map(pod.clone()), &map(pod.clone()), &none).is_empty());
        let back = compare(place(), &map(pod), &Json::new(), &none);
        prop_assert_eq!(back.removed, found.added);
    }

    #[test]
    fn a_merged_object_says_what_both_said(live in pod(), config in pod()) {
        let merged = merge(place(), &live, &config);
        prop_assert_eq!(&merge(place(), &merged, &config), &merged);
        prop_assume!(merged.is_object());
        let found = compare(place(), &map(live), &map(merged.clone()), &Set::default());
        prop_assert!(found.removed.is_empty());
        let said = owned(place(), &config);
        let differs = compare(place(), &map(merged), &map(config), &Set::default());
        prop_assert!(!differs.modified.meets(&said) && !differs.added.meets(&said));
    }

    #[test]
    fn what_is_removed_is_not_there_and_nothing_else_goes(pod in pod(), config in pod()) {
        let gone = owned(place(), &config);
        let rest = remove(place(), &pod, &gone);
        let left = owned(place(), &rest);
        let all = owned(place(), &pod);
        prop_assert!(all.outside(&gone).difference(&left).paths().is_empty());
        prop_assert!(!left.meets(&gone) || rest.is_null());
    }
}
