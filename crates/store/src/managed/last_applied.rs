//! Objects that `kubectl apply` made before it applied on the server.
//!
//! Such an object has its last configuration in an annotation. What is there and still true was
//! the same user's, so it is no conflict when kubectl applies it on the server.

use lockstep_api::{
    meta::{ANNOTATIONS_MAX, annotations_size},
    strategy::Json,
};
use serde_json::Value;

use super::{Conflict, Entry, Writer};
use crate::fields::{self, Set};

/// The manager whose applies mind the annotation.
pub(super) const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The conflicts that the last configuration does not explain.
pub(super) fn unexpected(
    writer: &Writer<'_>,
    live: &Json,
    conflicts: Vec<Conflict>,
) -> Vec<Conflict> {
    match explained(writer, live) {
        Some(explained) => conflicts
            .into_iter()
            .map(|Conflict { owner }| {
                let fields = owner.fields.difference(&explained);
                Conflict { owner: Entry { fields, ..owner } }
            })
            .filter(|left| !left.owner.fields.is_empty())
            .collect(),
        None => conflicts,
    }
}

/// The fields of the last configuration that still are as it has them.
fn explained(writer: &Writer<'_>, live: &Json) -> Option<Set> {
    let text = annotation(live)?;
    let last: Json = serde_json::from_str(text).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(writer.api_version) {
        return None;
    }
    let place = writer.place();
    let value = Value::Object(last.clone());
    fields::check(place, &value).ok()?;
    let found = fields::compare(place, &last, live, &Set::default());
    let owned = fields::owned(place, &value);
    Some(owned.difference(&found.modified).difference(&found.added).difference(&found.removed))
}

fn annotation(object: &Json) -> Option<&str> {
    let annotations = object.get("metadata")?.get("annotations")?;
    annotations.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// Makes the annotation, where there is one, say what was applied on the server, so that kubectl
/// can go back to applying by itself. Where there is no room for that, the annotation goes.
pub(super) fn renew(object: &mut Json, config: &Json) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    let annotations = config.get_mut("metadata").and_then(|meta| meta.get_mut("annotations"));
    if let Some(Value::Object(annotations)) = annotations {
        annotations.remove(ANNOTATION);
    }
    let text = format!("{}\n", Value::Object(config));
    let Some(Value::Object(meta)) = object.get_mut("metadata") else { return };
    let Some(Value::Object(annotations)) = meta.get_mut("annotations") else { return };
    annotations.insert(ANNOTATION.to_owned(), text.into());
    if annotations_size(annotations) > ANNOTATIONS_MAX {
        annotations.remove(ANNOTATION);
        if annotations.is_empty() {
            meta.remove("annotations");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::map;

    fn renewed(annotations: &Value, data: &str) -> Value {
        let mut object = map(json!({"metadata": {"name": "c", "annotations": annotations}}));
        renew(&mut object, &map(json!({"data": {"x": data}})));
        object["metadata"].clone()
    }

    #[test]
    fn the_annotation_is_dropped_where_it_would_take_too_much() {
        let known = json!({ANNOTATION: "{}"});
        let text = |data: &str| format!("{{\"data\":{{\"x\":\"{data}\"}}}}\n");
        let fits = "x".repeat(ANNOTATIONS_MAX - ANNOTATION.len() - text("").len());
        assert_eq!(renewed(&known, &fits)["annotations"][ANNOTATION], text(&fits));
        assert_eq!(renewed(&known, &format!("{fits}x")), json!({"name": "c"}));
        // What else there is counts too, and stays.
        let others = json!({ANNOTATION: "{}", "a": "b"});
        let want = json!({"name": "c", "annotations": {"a": "b"}});
        assert_eq!(renewed(&others, &fits), want);
        assert_eq!(renewed(&json!({"a": "b"}), ""), want);
    }
}
