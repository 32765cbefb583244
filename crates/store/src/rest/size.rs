//! How large an object may be: what etcd takes in one request, upstream.

use lockstep_api::{Status, strategy::Json};
use serde_json::Value;

use super::Scene;
use crate::object::{Draft, Object};

/// What an object may take as it is stored.
const SIZE_MAX: usize = 3 << 19;

/// An accepted object, encoded with its owners. If there is no room for them it has none, unless it
/// `needs_owners`, as one that was applied does.
pub(super) fn draft(
    scene: &Scene<'_>,
    object: Json,
    managed: &[u8],
    needs_owners: bool,
    old: Option<&Object>,
) -> Result<Draft, Status> {
    let size_max = SIZE_MAX + spent_on_json(scene, &object);
    // What is too large already must not get larger.
    let size_max = size_max.max(old.map_or(0, |old| old.body.len()));
    let draft = scene.draft(object, managed);
    if draft.size() <= size_max {
        return Ok(draft);
    }
    if needs_owners || draft.size() - managed.len() > size_max {
        return Err(Status::too_large("etcdserver: request is too large"));
    }
    Ok(draft.without_owners())
}

/// By how much the JSON of an object is larger than its bytes, where it has many: Base64 has four
/// letters for three of them, and quotes and line breaks have escapes.
fn spent_on_json(scene: &Scene<'_>, object: &Json) -> usize {
    let sum = |member: &str, spent: fn(&str) -> usize| -> usize {
        let values = object.get(member).and_then(Value::as_object).into_iter().flatten();
        values.filter_map(|(_, value)| value.as_str()).map(spent).sum()
    };
    let on_base64 = |text: &str| text.len() / 4;
    match (&*scene.resource.group, &*scene.resource.plural) {
        ("", "secrets") => sum("data", on_base64),
        ("", "configmaps") => sum("binaryData", on_base64) + sum("data", spent_on_escapes),
        _ => 0,
    }
}

/// By how much a text is longer in JSON.
fn spent_on_escapes(text: &str) -> usize {
    let escape = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..0x20 => 5,
        _ => 0,
    };
    text.bytes().map(escape).sum()
}

#[cfg(test)]
mod tests {
    use lockstep_api::decode::FieldValidation;
    use serde_json::{Value, json};

    use crate::{
        patch::Patch,
        rest::{self, Configuration},
        testing::{World, map},
    };

    fn many(count: usize) -> Value {
        let long = "a-key-that-is-long-so-that-owners-take-as-much-as-what-they-own";
        let data = (0..count).map(|at| (format!("{long}-{at}"), "A".into())).collect();
        Value::Object(data)
    }

    #[test]
    fn owners_make_room_for_what_they_own_but_not_where_it_is_applied() {
        let mut world = World::new();
        let large = json!({"metadata": {"name": "a"}, "data": many(11_000)});
        let made = world.create("configmaps", "n", large.clone()).unwrap();
        assert!(made.managed().is_empty() && made.json()["data"] == large["data"]);
        let small = json!({"metadata": {"name": "b"}, "data": {"k": "v"}});
        assert!(!world.create("configmaps", "n", small).unwrap().managed().is_empty());
        let body = json!({"data": many(11_000)}).to_string();
        let patch = Patch::merge(body.as_bytes()).unwrap();
        let patched = world.write("configmaps", "n", |scene| {
            rest::patch(scene, None, "b", &patch, FieldValidation::Strict)
        });
        assert!(patched.unwrap().managed().is_empty());
        let object =
            map(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}));
        let config = Configuration { object, is_forced: false, doubled: Vec::new() };
        let applied = world.write("configmaps", "n", |scene| {
            rest::apply(scene, None, "b", &config, FieldValidation::Strict)
        });
        let status = applied.unwrap_err();
        assert_eq!((status.code, &*status.message), (413, "etcdserver: request is too large"));
    }

    #[test]
    fn what_is_too_large_by_itself_is_refused() {
        let mut world = World::new();
        let text = "x".repeat(250 << 10);
        let containers: Vec<Value> = (0..7)
            .map(|at| json!({"name": format!("c{at}"), "image": "i", "args": [text]}))
            .collect();
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": containers}});
        assert_eq!(world.create("pods", "n", pod).unwrap_err().code, 413);
        // As many bytes as a secret may have take a third more as they are written.
        let data = json!({"k": "A".repeat((1 << 20) / 3 * 4)});
        let note = json!({"note": "x".repeat(250 << 10)});
        let secret = json!({"metadata": {"name": "s", "annotations": note.clone()}, "data": data});
        world.create("secrets", "n", secret).unwrap();
        // So do quotes and line breaks.
        let data = json!({"k": "\"\n\u{1}a".repeat(1 << 18)});
        let map = json!({"metadata": {"name": "m", "annotations": note}, "data": data});
        world.create("configmaps", "n", map).unwrap();
    }

    #[test]
    fn what_is_spent_on_escapes_is_known() {
        for text in ["", "plain", "\"quoted\"\\", "\n\r\t\u{8}\u{c}", "\0\u{1f}\u{7f}é\u{2028}"] {
            let encoded = serde_json::to_string(text).unwrap().len() - 2;
            assert_eq!(super::spent_on_escapes(text), encoded - text.len(), "{text:?}");
        }
    }
}
