//! The rules all kinds share, case by case.

use lockstep_api::{decode::FieldValidation, strategy::Json};
use serde_json::{Value, json};

use crate::{
    patch::Patch,
    rest::{self, DeleteOptions},
    testing::{World, map},
};

fn pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], "nodeName": "node"},
        "status": {"phase": "Running"},
    })
}

fn config(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"k": "v"}})
}

fn grace(seconds: i64) -> DeleteOptions {
    DeleteOptions { grace_period_seconds: Some(seconds), ..DeleteOptions::default() }
}

fn set(object: &mut Json, path: &[&str], value: Value) {
    let (last, parents) = path.split_last().unwrap();
    let mut at = object;
    for key in parents {
        at = lockstep_api::json::object_mut(at, key);
    }
    at.insert((*last).to_owned(), value);
}

#[test]
fn the_server_sets_what_only_it_may_set() {
    let mut world = World::new();
    let given = json!({
        "metadata": {
            "name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z",
            "deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5,
            "generation": 9, "selfLink": "x", "managedFields": [{"manager": "m"}],
        },
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
        "status": {"phase": "Succeeded"},
    });
    let created = world.create("pods", "n", given).unwrap().json();
    let meta = created["metadata"].as_object().unwrap();
    assert_eq!(meta["creationTimestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(meta["namespace"], "n");
    assert_eq!(meta["generation"], 1);
    assert_ne!(meta["uid"], "mine");
    for absent in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"] {
        assert!(!meta.contains_key(absent), "{absent}");
    }
    assert_eq!(created["status"]["phase"], "Pending");
}

#[test]
fn creations_are_refused_in_the_words_clients_know() {
    let mut world = World::new();
    world.create("configmaps", "n", config("a")).unwrap();
    let mut elsewhere = config("b");
    elsewhere["metadata"]["namespace"] = json!("m");
    let mut versioned = config("b");
    versioned["metadata"]["resourceVersion"] = json!("5");
    let cases = [
        ("n", config("a"), 409, "configmaps \"a\" already exists"),
        ("m", config("b"), 404, "namespaces \"m\" not found"),
        (
            "n",
            elsewhere,
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        ("n", versioned, 400, "resourceVersion should not be set on objects to be created"),
        (
            "n",
            json!({"metadata": {}}),
            422,
            "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is \
             required",
        ),
    ];
    for (namespace, object, code, message) in cases {
        let status = world.create("configmaps", namespace, object).unwrap_err();
        assert_eq!((status.code, status.message.as_str()), (code, message));
    }
}

#[test]
fn names_are_generated_from_a_prefix() {
    let mut world = World::new();
    let generated = json!({"metadata": {"generateName": "prefix-"}});
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let created = world.create("configmaps", "n", generated.clone()).unwrap();
        let suffix = created.meta.name.strip_prefix("prefix-").unwrap().to_owned();
        assert_eq!(suffix.len(), 5);
        assert!(suffix.bytes().all(|byte| b"bcdfghjklmnpqrstvwxz2456789".contains(&byte)));
        names.insert(suffix);
    }
    assert_eq!(names.len(), 200);
    let long = json!({"metadata": {"generateName": "x".repeat(80)}});
    assert_eq!(world.create("configmaps", "n", long).unwrap().meta.name.len(), 63);
    let both = json!({"metadata": {"name": "a", "generateName": "prefix-"}});
    world.create("configmaps", "n", both.clone()).unwrap();
    let taken = world.create("configmaps", "n", both).unwrap_err();
    assert_eq!(
        taken.message,
        "configmaps \"a\" already exists, the server was not able to generate a unique name for \
         the object"
    );
    assert_eq!(taken.details.unwrap().retry_after_seconds, 1);
}

#[test]
fn updates_must_be_based_on_what_is_there() {
    let mut world = World::new();
    let first = world.create("configmaps", "n", config("a")).unwrap().json();
    let mut second = first.clone();
    set(&mut second, &["data", "k"], json!("w"));
    world.update("configmaps", None, ("n", "a"), second.clone()).unwrap();
    let stale = world.update("configmaps", None, ("n", "a"), second.clone()).unwrap_err();
    assert_eq!(
        stale.message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please \
         apply your changes to the latest version and try again"
    );
    second["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    set(&mut second, &["data", "k"], json!("x"));
    world.update("configmaps", None, ("n", "a"), second.clone()).expect("no version, no condition");
    set(&mut second, &["metadata", "uid"], json!("other"));
    let other = world.update("configmaps", None, ("n", "a"), second.clone()).unwrap_err();
    assert_eq!(other.code, 409);
    assert!(other.message.contains("Precondition failed: UID in precondition: other"));
    let misnamed = world.update("configmaps", None, ("n", "b"), second).unwrap_err();
    assert_eq!(
        misnamed.message,
        "the name of the object (a) does not match the name on the URL (b)"
    );
    let lease = json!({"metadata": {"name": "l"}, "spec": {}});
    world.create("leases", "n", lease.clone()).unwrap();
    let loose = world.update("leases", None, ("n", "l"), map(lease)).unwrap_err();
    assert_eq!(
        loose.message,
        "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: \
         must be specified for an update"
    );
}

#[test]
fn a_deletion_is_not_asked_for_by_its_time() {
    let mut world = World::new();
    let at = "2026-01-02T03:04:05Z";
    for plural in ["configmaps", "pods"] {
        let object = if plural == "pods" { pod("a") } else { config("a") };
        let mut object = world.create(plural, "n", object).unwrap().json();
        set(&mut object, &["metadata", "deletionTimestamp"], json!(at));
        let status = world.update(plural, None, ("n", "a"), object.clone()).unwrap_err();
        let why =
            format!("metadata.deletionTimestamp: Invalid value: \"{at}\": field is immutable");
        assert!(status.code == 422 && status.message.contains(&why), "{}", status.message);
        if plural == "pods" {
            let updated = world.update(plural, Some("status"), ("n", "a"), object).unwrap();
            assert!(!updated.meta.is_deleting());
        }
    }
    let mut object = world.get("configmaps", "n/a").unwrap();
    set(&mut object, &["metadata", "deletionGracePeriodSeconds"], json!(3));
    let status = world.update("configmaps", None, ("n", "a"), object).unwrap_err();
    let why = "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable";
    assert!(status.message.contains(why), "{}", status.message);
}

#[test]
fn who_owns_an_object_is_said_once() {
    let mut world = World::new();
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u"});
    let mut object = config("a");
    object["metadata"]["ownerReferences"] = json!([owner("p"), owner("q"), owner("p")]);
    let want = json!([owner("p"), owner("q")]);
    let text = |when: &str| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: u"
        )
    };
    let owners = |object: &Json| object["metadata"]["ownerReferences"].clone();
    let plan = |world: &mut World, plan: &dyn Fn(&rest::Scene<'_>) -> _| {
        let planned: rest::Plan = world.planned("configmaps", "n", plan).unwrap();
        planned.warnings
    };
    let warnings = plan(&mut world, &|scene| rest::create(scene, map(object.clone())));
    assert_eq!(warnings, [text("")]);
    let created = world.create("configmaps", "n", object.clone()).unwrap();
    assert_eq!(owners(&created.json()), want);
    let warnings = plan(&mut world, &|scene| rest::update(scene, None, "a", map(object.clone())));
    assert_eq!(warnings, [text("")]);
    world.update("configmaps", None, ("n", "a"), map(object)).unwrap();
    let body = json!({"metadata": {"ownerReferences": [owner("q"), owner("q")]}});
    let patch = Patch::merge(body.to_string().as_bytes()).unwrap();
    let patched =
        |scene: &rest::Scene<'_>| rest::patch(scene, None, "a", &patch, FieldValidation::Strict);
    let warnings = plan(&mut world, &patched);
    assert_eq!(warnings, [text(" after mutating admission happens")]);
    let patched = world.write("configmaps", "n", patched).unwrap();
    assert_eq!(owners(&patched.json()), json!([owner("q")]));
}

#[test]
fn who_names_the_uid_of_what_is_gone_does_not_make_it_again() {
    let mut world = World::new();
    let spec = json!({"ports": [{"port": 80}]});
    for (plural, kind, folder) in [
        ("leases", "leases.coordination.k8s.io", "leases"),
        ("services", "services", "services/specs"),
        ("endpoints", "endpoints", "services/endpoints"),
        ("roles", "roles.rbac.authorization.k8s.io", "roles"),
    ] {
        let spec = if plural == "services" { spec.clone() } else { json!({}) };
        let mut object = map(json!({"metadata": {"name": "x", "uid": "u"}, "spec": spec}));
        let gone = world.update(plural, None, ("n", "x"), object.clone()).unwrap_err();
        let want = format!(
            "Operation cannot be fulfilled on {kind} \"x\": StorageError: invalid object, Code: 4, \
             Key: /registry/{folder}/n/x, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
             failed: UID in precondition: u, UID in object meta: "
        );
        assert_eq!((gone.code, gone.message), (409, want));
        object["metadata"].as_object_mut().unwrap().remove("uid");
        world.update(plural, None, ("n", "x"), object).unwrap();
    }
}

#[test]
fn a_write_that_changes_nothing_is_no_write() {
    let mut world = World::new();
    let created = world.create("pods", "n", pod("a")).unwrap();
    let before = world.revision();
    let again = world.update("pods", None, ("n", "a"), created.json()).unwrap();
    assert_eq!(again.revision(), created.revision());
    let mut noisy = created.json();
    set(&mut noisy, &["metadata", "managedFields"], json!([{"manager": "m"}]));
    set(&mut noisy, &["status", "phase"], json!("Failed"));
    world.update("pods", None, ("n", "a"), noisy).unwrap();
    let patch = Patch::merge(br#"{"metadata":{"labels":null}}"#).unwrap();
    world
        .write("pods", "n", |scene| rest::patch(scene, None, "a", &patch, FieldValidation::Warn))
        .unwrap();
    assert_eq!(world.revision(), before);
}

#[test]
fn status_and_the_rest_are_written_apart() {
    let mut world = World::new();
    let created = world.create("pods", "n", pod("a")).unwrap().json();
    let mut object = created.clone();
    set(&mut object, &["status", "phase"], json!("Running"));
    set(&mut object, &["metadata", "labels"], json!({"x": "y"}));
    set(&mut object, &["spec", "activeDeadlineSeconds"], json!(5));
    let status = world.update("pods", Some("status"), ("n", "a"), object.clone()).unwrap().json();
    assert_eq!(status["status"]["phase"], "Running");
    assert_eq!(status["metadata"]["labels"]["x"], "y", "metadata goes with the status");
    assert_eq!(status["spec"], created["spec"]);
    assert_eq!(status["metadata"]["generation"], 1);
    object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    set(&mut object, &["status", "phase"], json!("Failed"));
    let main = world.update("pods", None, ("n", "a"), object).unwrap().json();
    assert_eq!(main["status"]["phase"], "Running");
    assert_eq!(main["metadata"]["labels"]["x"], "y");
    assert_eq!(main["metadata"]["generation"], 2);
    let patch = Patch::merge(br#"{"metadata":{"labels":{"x":"z"}}}"#).unwrap();
    let patched = world
        .write("pods", "n", |scene| rest::patch(scene, None, "a", &patch, FieldValidation::Strict))
        .unwrap();
    assert_eq!(patched.meta.generation, 2, "metadata is no spec");
}

#[test]
fn a_patch_may_name_the_version_it_is_for() {
    let mut world = World::new();
    let created = world.create("configmaps", "n", config("a")).unwrap();
    let patch = |version: u64| {
        let body =
            json!({"metadata": {"resourceVersion": version.to_string()}, "data": {"k": "w"}});
        Patch::merge(body.to_string().as_bytes()).unwrap()
    };
    let run = |world: &mut World, patch: &Patch| {
        world.write("configmaps", "n", |scene| {
            rest::patch(scene, None, "a", patch, FieldValidation::Warn)
        })
    };
    run(&mut world, &patch(created.revision())).unwrap();
    assert_eq!(run(&mut world, &patch(created.revision())).unwrap_err().reason, "Conflict");
}

#[test]
fn a_patch_for_another_incarnation_is_refused() {
    let mut world = World::new();
    let created = world.create("pods", "n", pod("a")).unwrap();
    for sub in [None, Some("status")] {
        let run = |world: &mut World, uid: &str| {
            let body = json!({"metadata": {"uid": uid, "labels": {"x": uid}},
                "status": {"message": uid}});
            let patch = Patch::strategic(body.to_string().as_bytes()).unwrap();
            world.write("pods", "n", |scene| {
                rest::patch(scene, sub, "a", &patch, FieldValidation::Warn)
            })
        };
        let refused = run(&mut world, "other").unwrap_err();
        assert_eq!((refused.code, refused.reason.as_str()), (409, "Conflict"), "{sub:?}");
        let why = format!(
            "Precondition failed: UID in precondition: other, UID in object meta: {}",
            created.meta.uid
        );
        assert!(refused.message.ends_with(&why), "{}", refused.message);
        run(&mut world, &created.meta.uid).unwrap();
    }
}

#[test]
fn a_status_brings_its_labels_but_no_owners_of_pods() {
    let mut world = World::new();
    let job = json!({
        "metadata": {"name": "j"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "c", "image": "i:1"},
        ]}}},
    });
    world.create("jobs", "n", job).unwrap();
    world.create("pods", "n", pod("j")).unwrap();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"});
    let body = json!({
        "metadata": {"annotations": {"patched": "yes"}, "ownerReferences": [owner],
            "generation": 7},
        "spec": {"activeDeadlineSeconds": 9},
    });
    let patch = Patch::merge(body.to_string().as_bytes()).unwrap();
    for (kind, has_owner) in [("jobs", true), ("pods", false)] {
        let written = world
            .write(kind, "n", |scene| {
                rest::patch(scene, Some("status"), "j", &patch, FieldValidation::Warn)
            })
            .unwrap();
        let shown = written.json();
        assert_eq!(shown["metadata"]["annotations"]["patched"], "yes", "{kind}");
        assert_eq!(shown["metadata"].get("ownerReferences").is_some(), has_owner, "{kind}");
        assert_eq!(shown["metadata"]["generation"], 1, "{kind}");
        assert!(shown["spec"].get("activeDeadlineSeconds").is_none(), "{kind}");
    }
}

#[test]
fn a_status_of_a_custom_kind_brings_nothing_else() {
    let mut world = World::new();
    let containers = json!([{"name": "c", "image": "i:1"}]);
    let template = json!({"spec": {"restartPolicy": "Never", "containers": containers}});
    let job_set = json!({
        "metadata": {"name": "j"},
        "spec": {"replicatedJobs": [{"name": "r", "template": {"spec": {"template": template}}}]},
    });
    world.create("jobsets", "n", job_set).unwrap();
    let body = json!({"metadata": {"labels": {"a": "b"}}, "status": {"restarts": 1}});
    let patch = Patch::merge(body.to_string().as_bytes()).unwrap();
    world.manager = "other".to_owned();
    let written = world
        .write("jobsets", "n", |scene| {
            rest::patch(scene, Some("status"), "j", &patch, FieldValidation::Warn)
        })
        .unwrap();
    assert_eq!(written.json()["status"]["restarts"], 1);
    assert!(written.meta.labels.is_empty());
    let owners = String::from_utf8(written.managed().to_vec()).unwrap();
    assert!(owners.contains("f:restarts") && !owners.contains("f:labels"), "{owners}");
}

#[test]
fn a_patch_that_does_not_fit_is_shown_with_all_of_its_object() {
    let mut world = World::new();
    world.create("configmaps", "n", config("a")).unwrap();
    let patch = Patch::json(br#"[{"op": "add", "path": "/extra", "value": 1}]"#).unwrap();
    let refused = world.write("configmaps", "n", |scene| {
        rest::patch(scene, None, "a", &patch, FieldValidation::Strict)
    });
    let message = refused.unwrap_err().message;
    assert!(message.contains("managedFields") && message.contains("extra"), "{message}");
}

#[test]
fn grace_begins_once_and_only_gets_shorter() {
    let mut world = World::new();
    world.create("pods", "n", pod("a")).unwrap();
    let marked = world.delete("pods", ("n", "a"), &DeleteOptions::default()).unwrap();
    assert_eq!(marked.meta.deletion_grace_seconds, Some(30));
    assert_eq!(marked.json()["metadata"]["deletionTimestamp"], "2026-01-02T03:04:35Z");
    assert_eq!(marked.meta.generation, 2);
    world.pass(5);
    let longer = world.delete("pods", ("n", "a"), &grace(60)).unwrap();
    assert_eq!(longer.revision(), marked.revision());
    let shorter = world.delete("pods", ("n", "a"), &grace(10)).unwrap();
    assert_eq!(shorter.json()["metadata"]["deletionTimestamp"], "2026-01-02T03:04:15Z");
    assert_eq!(shorter.meta.generation, 2);
    world.pass(20);
    let over = world.delete("pods", ("n", "a"), &grace(3)).unwrap();
    assert_eq!(over.meta.deletion_grace_seconds, Some(1), "less than a second is no grace");
    world.delete("pods", ("n", "a"), &grace(0)).unwrap();
    assert!(world.get("pods", "n/a").is_none());
}

#[test]
fn a_grace_beyond_all_time_is_cut_short() {
    let mut world = World::new();
    let mut patient = pod("b");
    patient["spec"]["terminationGracePeriodSeconds"] = json!(i64::MAX);
    world.create("pods", "n", pod("a")).unwrap();
    world.create("pods", "n", patient).unwrap();
    let asked = world.delete("pods", ("n", "a"), &grace(i64::MAX)).unwrap();
    let own = world.delete("pods", ("n", "b"), &DeleteOptions::default()).unwrap();
    for marked in [asked, own] {
        assert_eq!(marked.meta.deletion_grace_seconds, Some(super::metadata::GRACE_MAX));
        assert!(marked.meta.deletion.is_some());
    }
    let shorter = world.delete("pods", ("n", "a"), &grace(10)).unwrap();
    assert_eq!(shorter.json()["metadata"]["deletionTimestamp"], "2026-01-02T03:04:15Z");
}

#[test]
fn finalizers_hold_an_object_until_the_last_is_gone() {
    let mut world = World::new();
    let mut held = config("a");
    held["metadata"]["finalizers"] = json!(["example.com/x"]);
    world.create("configmaps", "n", held).unwrap();
    let marked = world.delete("configmaps", ("n", "a"), &DeleteOptions::default()).unwrap();
    assert!(marked.meta.is_deleting());
    let again = world.delete("configmaps", ("n", "a"), &DeleteOptions::default()).unwrap();
    assert_eq!(again.revision(), marked.revision());
    let mut more = again.json();
    set(&mut more, &["metadata", "finalizers"], json!(["example.com/x", "example.com/y"]));
    let refused = world.update("configmaps", None, ("n", "a"), more).unwrap_err();
    assert!(
        refused.message.contains("no new finalizers can be added if the object is being deleted")
    );
    let exists = world.create("configmaps", "n", config("a")).unwrap_err();
    assert_eq!(exists.message, "object is being deleted: configmaps \"a\" already exists");
    let mut freed = again.json();
    freed["metadata"].as_object_mut().unwrap().remove("finalizers");
    world.update("configmaps", None, ("n", "a"), freed).unwrap();
    assert!(world.get("configmaps", "n/a").is_none());
}

#[test]
fn deletions_can_be_tied_to_an_incarnation() {
    let mut world = World::new();
    let created = world.create("configmaps", "n", config("a")).unwrap();
    let wrong = DeleteOptions { uid: Some("other".to_owned()), ..DeleteOptions::default() };
    let status = world.delete("configmaps", ("n", "a"), &wrong).unwrap_err();
    assert_eq!(
        status.message,
        format!(
            "Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition (other) \
             does not match the UID in record ({}). The object might have been deleted and then \
             recreated",
            created.meta.uid
        )
    );
    let stale =
        DeleteOptions { resource_version: Some("1".to_owned()), ..DeleteOptions::default() };
    assert_eq!(world.delete("configmaps", ("n", "a"), &stale).unwrap_err().reason, "Conflict");
    let right = DeleteOptions { uid: Some(created.meta.uid.to_string()), ..stale };
    let right = DeleteOptions { resource_version: Some(created.revision().to_string()), ..right };
    world.delete("configmaps", ("n", "a"), &right).unwrap();
    let missing = world.delete("configmaps", ("n", "a"), &right).unwrap_err();
    assert_eq!(missing.message, "configmaps \"a\" not found");
}

#[test]
fn a_dry_run_shows_the_object_without_writing_it() {
    let mut world = World::new();
    let revision = world.revision();
    let head = world.store.head().clone();
    let mut preview = None;
    let refused = world.write("configmaps", "n", |scene| {
        let plan = rest::create(scene, map(config("a")))?;
        preview = Some(plan.preview(&head));
        Err(lockstep_api::Status::bad_request("only a rehearsal"))
    });
    assert!(refused.is_err());
    let shown = preview.unwrap().json();
    assert_eq!(shown["data"]["k"], "v");
    assert!(shown["metadata"].get("resourceVersion").is_none(), "{shown:?}");
    assert_eq!(world.revision(), revision);
}

#[test]
fn services_get_addresses_no_other_has() {
    let mut world = World::new();
    let service = |name: &str, ip: Option<&str>| {
        let mut spec = json!({"ports": [{"port": 80}]});
        if let Some(ip) = ip {
            spec["clusterIP"] = json!(ip);
        }
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let ip = |world: &World, key: &str| {
        world.get("services", key).unwrap()["spec"]["clusterIP"].as_str().unwrap().to_owned()
    };
    world.create("services", "n", service("a", None)).unwrap();
    world.create("services", "n", service("b", None)).unwrap();
    let (a, b) = (ip(&world, "n/a"), ip(&world, "n/b"));
    assert!(a.starts_with("127.32.") && b.starts_with("127.32.") && a != b, "{a} {b}");
    let taken = world.create("services", "n", service("c", Some(&a))).unwrap_err();
    assert!(taken.message.contains("provided IP is already allocated"), "{}", taken.message);
    world.create("services", "n", service("d", Some("127.32.0.9"))).unwrap();
    assert_eq!(ip(&world, "n/d"), "127.32.0.9");
    world.create("services", "n", service("e", Some("None"))).unwrap();
    assert_eq!(ip(&world, "n/e"), "None");
}

#[test]
fn pods_get_the_priority_of_their_class() {
    let mut world = World::new();
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    world.create("priorityclasses", "", class).unwrap();
    let mut high = pod("a");
    high["spec"]["priorityClassName"] = json!("high");
    let created = world.create("pods", "n", high.clone()).unwrap().json();
    assert_eq!(created["spec"]["priority"], 1000);
    high["metadata"]["name"] = json!("b");
    high["spec"]["priorityClassName"] = json!("none-such");
    let refused = world.create("pods", "n", high).unwrap_err();
    assert_eq!(
        refused.message,
        "pods \"b\" is forbidden: no PriorityClass with name none-such was found"
    );
}
