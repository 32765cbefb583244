//! Label selectors and field selectors.

use std::collections::BTreeMap;

use lockstep_api::selector::{FieldSelector, LabelSelector};
use serde_json::json;

use crate::{bound::bounded_and_stretched, kinds::CATALOG};

/// Takes a selector, of labels and of fields.
pub fn feed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    feed_labels(text);
    feed_fields(text);
}

fn feed_labels(text: &str) {
    let parse = |bytes: &[u8]| LabelSelector::parse(&String::from_utf8_lossy(bytes));
    let Ok(selector) = bounded_and_stretched(text.as_bytes(), parse) else { return };
    let shown = selector.to_string();
    let again = LabelSelector::parse(&shown).unwrap_or_else(|why| panic!("{shown}: {why}"));
    assert_eq!(again.to_string(), shown);
    // What it names, in all ways in which it can matter.
    let names = selector.requirements().iter().map(|requirement| requirement.key());
    let values = selector.requirements().iter().flat_map(|requirement| requirement.values());
    let values: Vec<String> = values.take(8).cloned().chain([String::new()]).collect();
    let mut labels = BTreeMap::new();
    assert_eq!(again.matches_map(&labels), selector.matches_map(&labels), "{shown}");
    for (at, name) in names.take(16).enumerate() {
        labels.insert(name.to_owned(), values[at % values.len()].clone());
        assert_eq!(again.matches_map(&labels), selector.matches_map(&labels), "{shown}");
        let all = selector.requirements();
        let each =
            all.iter().all(|one| LabelSelector::all_of(vec![one.clone()]).matches_map(&labels));
        assert_eq!(each, selector.matches_map(&labels), "{shown}: all must fit, and no more");
    }
    let object = json!({"metadata": {"labels": labels}});
    let object = object.as_object().expect("an object");
    assert_eq!(selector.matches_object(object), selector.matches_map(&labels), "{shown}");
}

fn feed_fields(text: &str) {
    let parse = |bytes: &[u8]| FieldSelector::parse_any(&String::from_utf8_lossy(bytes));
    let parsed = bounded_and_stretched(text.as_bytes(), parse);
    for plural in ["pods", "events", "secrets"] {
        let resource = CATALOG.registry().get("", "v1", plural).expect("they are served");
        let strategy = &*resource.strategy;
        let Ok(selector) = FieldSelector::parse(text, strategy) else { continue };
        assert!(parsed.is_ok(), "a kind takes what none does: {text}");
        let pod = json!({"metadata": {"name": "a"}, "type": "b", "status": {"phase": "c"}});
        let object = pod.as_object().expect("an object");
        let is_meant = selector.matches_object(object, strategy);
        let both = FieldSelector::parse(&format!("{text},{text}"), strategy);
        if let Ok(both) = both {
            assert_eq!(both.matches_object(object, strategy), is_meant, "{text}: twice is once");
        }
    }
}
