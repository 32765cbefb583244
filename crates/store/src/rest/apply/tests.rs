//! Server-side apply and the owners that other writes leave, from request to stored object.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::{
    Object,
    managed::Managers,
    patch::Patch,
    rest,
    testing::{World, map},
};

impl World {
    fn apply(
        &mut self,
        manager: &str,
        (plural, sub, name): (&str, Option<&str>, &str),
        object: Value,
        is_forced: bool,
    ) -> Result<Arc<Object>, Status> {
        manager.clone_into(&mut self.manager);
        let config = Configuration { object: map(object), is_forced, doubled: Vec::new() };
        let namespace = if self.resource(plural).is_namespaced() { "n" } else { "" };
        self.write(plural, namespace, |scene| {
            apply(scene, sub, name, &config, FieldValidation::Strict)
        })
    }

    fn patch(&mut self, plural: &str, name: &str, patch: &Patch) -> Result<Arc<Object>, Status> {
        self.write(plural, "n", |scene| {
            rest::patch(scene, None, name, patch, FieldValidation::Strict)
        })
    }
}

fn config(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
}

fn pod(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
}

/// Each owner with its fields.
fn owners(object: &Object) -> Vec<String> {
    let managers = Managers::decode(object.managed());
    let shown = managers.entries().iter().map(|entry| {
        let paths: Vec<String> = entry.fields.paths().iter().map(ToString::to_string).collect();
        let sub = if entry.subresource.is_empty() { "" } else { "/" };
        let sub = format!("{sub}{}", entry.subresource);
        format!("{}{sub} {:?}: {}", entry.manager, entry.operation, paths.join(" "))
    });
    shown.collect()
}

const CONFIG: (&str, Option<&str>, &str) = ("configmaps", None, "c");
const POD: (&str, Option<&str>, &str) = ("pods", None, "p");

#[test]
fn an_object_that_is_not_there_is_created_and_then_kept_as_it_is() {
    let mut world = World::new();
    let made = world.apply("me", CONFIG, config(json!({"a": "1"})), false).unwrap();
    assert_eq!(owners(&made), ["me Apply: .data.a"]);
    world.pass(60);
    let again = world.apply("me", CONFIG, config(json!({"a": "1"})), false).unwrap();
    assert_eq!((again.revision(), again.managed()), (made.revision(), made.managed()));
    let other = world.apply("you", CONFIG, config(json!({"a": "1"})), false).unwrap();
    assert!(other.revision() > made.revision(), "to own something is news");
    assert_eq!(owners(&other), ["you Apply: .data.a", "me Apply: .data.a"]);
}

#[test]
fn conflicts_are_refused_unless_forced_and_dropped_fields_go() {
    let mut world = World::new();
    world.apply("me", CONFIG, config(json!({"a": "1", "b": "1"})), false).unwrap();
    let refused =
        world.apply("you", CONFIG, config(json!({"a": "2", "c": "2"})), false).unwrap_err();
    assert_eq!((refused.code, refused.reason.as_str()), (409, "Conflict"));
    assert_eq!(refused.message, "Apply failed with 1 conflict: conflict with \"me\": .data.a");
    let cause = &refused.details.unwrap().causes[0];
    assert_eq!(
        (cause.reason.as_str(), cause.message.as_str(), cause.field.as_str()),
        ("FieldManagerConflict", "conflict with \"me\"", ".data.a")
    );
    let forced = world.apply("you", CONFIG, config(json!({"a": "2", "c": "2"})), true).unwrap();
    assert_eq!(owners(&forced), ["me Apply: .data.b", "you Apply: .data.a .data.c"]);
    let less = world.apply("you", CONFIG, config(json!({"a": "2"})), false).unwrap();
    assert_eq!(less.json()["data"], json!({"a": "2", "b": "1"}));
}

#[test]
fn what_is_defaulted_is_owned_by_who_creates_but_not_by_who_applies() {
    let mut world = World::new();
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    let applied = world.apply("me", POD, pod(spec.clone()), false).unwrap();
    assert_eq!(applied.json()["spec"]["restartPolicy"], "Always");
    let container = ".spec.containers[name=\"c\"]";
    let paths = [container, &format!("{container}.image"), &format!("{container}.name")];
    assert_eq!(owners(&applied), [format!("me Apply: {}", paths.join(" "))]);
    world.manager = "you".to_owned();
    let mut other = pod(spec);
    other["metadata"]["name"] = "q".into();
    other["status"] = json!({"phase": "Running"});
    let created = world.create("pods", "n", map(other).into()).unwrap();
    let shown = owners(&created).join("\n");
    for owned in [".spec.restartPolicy", ".resources", ".terminationMessagePath"] {
        assert!(shown.contains(owned), "{shown}");
    }
    for unowned in ["status", ".metadata", ".spec.priority", ".spec.serviceAccountName"] {
        assert!(!shown.contains(unowned), "{shown}");
    }
}

#[test]
fn the_status_is_applied_apart() {
    let mut world = World::new();
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    let mut whole = pod(spec.clone());
    whole["status"] = json!({"phase": "Failed"});
    let absent =
        world.apply("me", ("pods", Some("status"), "p"), whole.clone(), false).unwrap_err();
    assert_eq!((absent.code, absent.message.as_str()), (404, "pods \"p\" not found"));
    let made = world.apply("me", POD, whole.clone(), false).unwrap();
    assert_eq!(made.json()["status"]["phase"], "Pending");
    let status = world.apply("node", ("pods", Some("status"), "p"), whole, false).unwrap();
    assert_eq!(status.json()["status"]["phase"], "Failed");
    let shown = owners(&status);
    assert_eq!(shown.last().unwrap(), "node/status Apply: .status.phase");
    assert!(!shown[0].contains("status"), "{shown:?}");
}

#[test]
fn configurations_that_cannot_be_meant_are_refused() {
    let mut world = World::new();
    world.apply("me", CONFIG, config(json!({"a": "1"})), false).unwrap();
    let with = |name: &str, member: &str, value: Value| {
        let mut object = config(json!({}));
        object["metadata"]["name"] = name.into();
        object["metadata"][member] = value;
        object
    };
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let cases = [
        (
            "d",
            nameless.clone(),
            (
                400,
                "the name of the object (d based on URL) was undeterminable: name must be provided",
            ),
        ),
        ("c", nameless, (0, "")),
        (
            "d",
            with("c", "labels", json!({})),
            (400, "the name of the object (c) does not match the name on the URL (d)"),
        ),
        (
            "d",
            with("d", "uid", json!("u")),
            (
                409,
                "Operation cannot be fulfilled on configmaps \"d\": uid mismatch: the provided \
                 object specified uid u, and no existing object was found",
            ),
        ),
        (
            "c",
            with("c", "resourceVersion", json!("1")),
            (
                409,
                "Operation cannot be fulfilled on configmaps \"c\": the object has been modified; \
                 please apply your changes to the latest version and try again",
            ),
        ),
        ("d", with("d", "resourceVersion", json!("1")), (0, "")),
        (
            "e",
            with("e", "resourceVersion", json!("x")),
            (400, "strconv.ParseUint: parsing \"x\": invalid syntax"),
        ),
        ("c", with("c", "managedFields", json!([])), (400, "metadata.managedFields must be nil")),
        (
            "c",
            json!({"kind": "ConfigMap", "apiVersion": "v1", "dat": {}}),
            (
                500,
                "failed to create typed patch object (/; /v1, Kind=ConfigMap): .dat: field not \
                 declared in schema",
            ),
        ),
        (
            "c",
            json!({"kind": "Secret", "apiVersion": "v1"}),
            (400, "invalid object type: /v1, Kind=Secret"),
        ),
    ];
    for (name, object, (code, message)) in cases {
        let text = object.to_string();
        let got = world.apply("me", ("configmaps", None, name), object, false);
        let got = got.err().map_or((0, String::new()), |status| (status.code, status.message));
        assert_eq!(got, (code, message.to_owned()), "{name} {text}");
    }
}

#[test]
fn owners_can_be_read_written_and_cleared() {
    let mut world = World::new();
    let made = world.apply("me", CONFIG, config(json!({"a": "1"})), false).unwrap();
    // As clients do that read, change and write.
    let mut object = owners_shown(&made);
    let same = world.update("configmaps", None, ("n", "c"), object.clone()).unwrap();
    assert_eq!(same.revision(), made.revision());
    // As kubectl does that moves objects to server-side apply.
    object["metadata"]["managedFields"][0]["manager"] = "you".into();
    let version = made.revision().to_string();
    let managed = &object["metadata"]["managedFields"];
    let moved = json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": managed},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
    ]);
    let patch = Patch::json(moved.to_string().as_bytes()).unwrap();
    let moved = world.patch("configmaps", "c", &patch).unwrap();
    assert_eq!(owners(&moved), ["you Apply: .data.a"]);
    for (at, empty) in ["[]", "[{}]"].iter().enumerate() {
        let value = at.to_string();
        world.apply("me", CONFIG, config(json!({"a": value})), true).unwrap();
        let body = format!(r#"{{"metadata":{{"managedFields":{empty}}}}}"#);
        let cleared = world.patch("configmaps", "c", &Patch::merge(body.as_bytes()).unwrap());
        let cleared = cleared.unwrap();
        assert!(cleared.managed().is_empty(), "{empty}");
        assert!(!String::from_utf8_lossy(&cleared.body).contains("managedFields"));
        world.manager = "later".to_owned();
        let patch = Patch::merge(br#"{"data":{"b":"1"}}"#).unwrap();
        assert!(world.patch("configmaps", "c", &patch).unwrap().managed().is_empty());
        let applied = world.apply("me", CONFIG, config(json!({"a": value})), false).unwrap();
        assert_eq!(owners(&applied)[1].split(':').next(), Some("before-first-apply Update"));
        let gone = Patch::merge(br#"{"data":{"b":null}}"#).unwrap();
        world.patch("configmaps", "c", &gone).unwrap();
    }
}

fn owners_shown(object: &Object) -> Json {
    owners::with_owners(&object.json(), object)
}

#[test]
fn deletions_and_bindings_leave_owners_alone() {
    let mut world = World::new();
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    let made = world.apply("me", POD, pod(spec), false).unwrap();
    world.manager = "scheduler".to_owned();
    let binding = map(json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "x"}}));
    let bound = world.write("pods", "n", |scene| rest::bind(scene, "p", &binding)).unwrap();
    assert_eq!(bound.managed(), made.managed());
    let deleted = world.delete("pods", ("n", "p"), &rest::DeleteOptions::default()).unwrap();
    assert_eq!(deleted.managed(), made.managed());
}

#[test]
fn custom_kinds_are_applied_by_their_schema_in_any_version() {
    let mut world = World::new();
    let job = |name: &str, replicas: u32| {
        let containers = json!([{"name": "c", "image": "i"}]);
        let pod = json!({"spec": {"restartPolicy": "Never", "containers": containers}});
        json!({"name": name, "replicas": replicas, "template": {"spec": {"template": pod}}})
    };
    let set = |jobs: Vec<Value>| {
        json!({
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": "s"}, "spec": {"replicatedJobs": jobs},
        })
    };
    let at = ("jobsets", None, "s");
    world.apply("me", at, set(vec![job("a", 1), job("b", 1)]), false).unwrap();
    let conflict = world.apply("you", at, set(vec![job("b", 2)]), false).unwrap_err();
    assert_eq!(
        conflict.message,
        "Apply failed with 1 conflict: conflict with \"me\": \
         .spec.replicatedJobs[name=\"b\"].replicas"
    );
    let flavor = |version: &str, labels: Value| {
        json!({
            "apiVersion": format!("kueue.x-k8s.io/{version}"), "kind": "ResourceFlavor",
            "metadata": {"name": "f"}, "spec": {"nodeLabels": labels},
        })
    };
    let (old, new) = ("v1beta1/resourceflavors", "v1beta2/resourceflavors");
    world.apply("me", (old, None, "f"), flavor("v1beta1", json!({"a": "1"})), false).unwrap();
    let other = flavor("v1beta2", json!({"a": "2", "b": "1"}));
    let conflict = world.apply("you", (new, None, "f"), other, false).unwrap_err();
    assert_eq!(
        conflict.message,
        "Apply failed with 1 conflict: conflict with \"me\": .spec.nodeLabels.a"
    );
    let shared = flavor("v1beta2", json!({"b": "1"}));
    world.apply("you", (new, None, "f"), shared, false).unwrap();
    let moved = flavor("v1beta2", json!({"c": "1"}));
    let moved = world.apply("me", (new, None, "f"), moved, false).unwrap();
    assert_eq!(moved.json()["spec"]["nodeLabels"], json!({"b": "1", "c": "1"}));
    let versions = Managers::decode(moved.managed());
    assert!(versions.entries().iter().all(|it| it.api_version == "kueue.x-k8s.io/v1beta2"));
}
