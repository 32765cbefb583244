//! Kinds that users define, and objects of them.

use serde_json::{Value, json};

use super::support::Api;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"],
                      "categories": ["all"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas"}},
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "additionalPrinterColumns": [
                    {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["color"], "properties": {
                        "color": {"type": "string", "enum": ["red", "blue"]},
                        "size": {"type": "integer", "minimum": 1, "default": 3},
                        "replicas": {"type": "integer", "default": 1},
                        "parts": {"type": "array", "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["name"],
                            "items": {"type": "object", "required": ["name"], "properties": {
                                "name": {"type": "string"}, "count": {"type": "integer"}}}},
                    }},
                    "status": {"type": "object", "properties": {
                        "replicas": {"type": "integer"}, "phase": {"type": "string"}}},
                }}},
            }],
        },
    })
}

fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name},
           "spec": spec})
}

/// A cluster that knows widgets.
async fn start() -> Api {
    let api = Api::start().await;
    let answer = api.post(DEFINITIONS, &definition()).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    api
}

/// Asks until something is gone.
async fn until_gone(api: &Api, path: &str) {
    for _ in 0..500 {
        if api.get(path).await.code == 404 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{path} is still there: {}", api.get(path).await.text);
}

#[tokio::test]
async fn a_definition_is_filled_in_and_established_at_once() {
    let api = Api::start().await;
    let answer = api.post(DEFINITIONS, &definition()).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    let created = answer.json();
    let names = json!({"plural": "widgets", "singular": "widget", "kind": "Widget",
                       "listKind": "WidgetList", "shortNames": ["wd"], "categories": ["all"]});
    assert_eq!(created["spec"]["names"], names);
    assert_eq!(created["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(created["status"]["acceptedNames"], names);
    assert_eq!(created["status"]["storedVersions"], json!(["v1"]));
    let said: Vec<Value> = created["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["type"], it["status"], it["reason"], it["message"]]))
        .collect();
    assert_eq!(
        said,
        [
            json!(["NamesAccepted", "True", "NoConflicts", "no conflicts found"]),
            json!([
                "Established",
                "True",
                "InitialNamesAccepted",
                "the initial names have been accepted"
            ]),
        ]
    );
}

#[tokio::test]
async fn objects_of_a_defined_kind_live_like_others() {
    let api = start().await;
    let mut watch = api.watch(&format!("{WIDGETS}?watch=true"), &[]).await;
    let created = api.post(WIDGETS, &widget("a", &json!({"color": "red"}))).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let created = created.json();
    assert_eq!(created["spec"], json!({"color": "red", "size": 3, "replicas": 1}));
    assert_eq!(created["metadata"]["generation"], 1);
    let event = watch.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["kind"]), (&json!("ADDED"), &json!("Widget")));
    let listed = api.get(WIDGETS).await.json();
    assert_eq!(listed["kind"], "WidgetList");
    assert_eq!(listed["items"][0]["kind"], "Widget");
    let path = format!("{WIDGETS}/a");
    let patched = api.patch(&path, "merge", r#"{"spec":{"size":5}}"#).await.json();
    assert_eq!(
        (&patched["spec"]["size"], &patched["metadata"]["generation"]),
        (&json!(5), &json!(2))
    );
    let strategic = api.patch(&path, "strategic", r#"{"spec":{"size":5}}"#).await;
    assert_eq!(strategic.code, 415);
    let unversioned = api.put(&path, &widget("a", &json!({"color": "blue"}))).await;
    assert_eq!(unversioned.code, 422);
    assert!(unversioned.message().contains("must be specified for an update"));
    let status = api
        .patch(&format!("{path}/status"), "merge", r#"{"status":{"phase":"On"},"spec":{"size":9}}"#)
        .await;
    assert_eq!(status.json()["status"], json!({"phase": "On"}));
    assert_eq!(status.json()["spec"]["size"], 5);
    assert_eq!(status.json()["metadata"]["generation"], 2);
    assert_eq!(api.get(&format!("{WIDGETS}?fieldSelector=spec.color=red")).await.names(), ["a"]);
    assert!(api.get(&format!("{WIDGETS}?fieldSelector=spec.color=blue")).await.names().is_empty());
    let unknown = api.get(&format!("{WIDGETS}?fieldSelector=spec.size=5")).await;
    assert_eq!((unknown.code, &*unknown.message()), (400, "field label not supported: spec.size"));
    assert_eq!(api.delete(&path, "").await.code, 200);
    assert_eq!(api.get(&path).await.code, 404);
}

#[tokio::test]
async fn what_the_schema_does_not_allow_is_refused() {
    let api = start().await;
    let cases = [
        (json!({}), "Widget.example.com \"x\" is invalid: spec.color: Required value"),
        (
            json!({"color": "green"}),
            "Widget.example.com \"x\" is invalid: spec.color: Unsupported value: \"green\": \
             supported values: \"red\", \"blue\"",
        ),
        (
            json!({"color": "red", "size": "big"}),
            "Widget.example.com \"x\" is invalid: spec.size: Invalid value: \"string\": spec.size \
             in body must be of type integer: \"string\"",
        ),
        (
            json!({"color": "red", "size": 0}),
            "Widget.example.com \"x\" is invalid: spec.size: Invalid value: 0: spec.size in body \
             should be greater than or equal to 1",
        ),
        (
            json!({"color": "red", "parts": [{"name": "p"}, {"name": "p"}]}),
            "Widget.example.com \"x\" is invalid: spec.parts[1]: Duplicate value: {\"name\":\"p\"}",
        ),
    ];
    for (spec, want) in cases {
        let answer = api.post(WIDGETS, &widget("x", &spec)).await;
        assert_eq!((answer.code, &*answer.message()), (422, want));
    }
}

#[tokio::test]
async fn unknown_fields_are_pruned_and_told() {
    let api = start().await;
    let given = widget("a", &json!({"color": "red", "colour": "red"}));
    let strict = api.post(&format!("{WIDGETS}?fieldValidation=Strict"), &given).await;
    assert_eq!(strict.code, 400);
    assert!(strict.message().ends_with("strict decoding error: unknown field \"spec.colour\""));
    let told = api.post(WIDGETS, &given).await;
    assert_eq!(told.header("warning"), "299 - \"unknown field \\\"spec.colour\\\"\"");
    assert_eq!(told.json()["spec"].get("colour"), None);
    let quiet =
        api.post(&format!("{WIDGETS}?fieldValidation=Ignore"), &widget("b", &given["spec"])).await;
    assert_eq!((quiet.code, quiet.header("warning")), (201, ""));
}

#[tokio::test]
async fn clients_find_the_kind_and_its_schema() {
    let api = start().await;
    let list = api.get("/apis/example.com/v1").await.json();
    let named: Vec<&Value> =
        list["resources"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(named, ["widgets", "widgets/status", "widgets/scale"]);
    assert_eq!(list["resources"][0]["shortNames"], json!(["wd"]));
    let index = api.get("/openapi/v3").await.json();
    let url = index["paths"]["apis/example.com/v1"]["serverRelativeURL"].as_str().unwrap();
    let document = api.get(url).await.json();
    let schema = &document["components"]["schemas"]["com.example.v1.Widget"];
    assert_eq!(schema["properties"]["spec"]["properties"]["size"]["default"], 3);
    assert_eq!(
        schema["x-kubernetes-group-version-kind"],
        json!([{"group": "example.com", "version": "v1", "kind": "Widget"}])
    );
    let swagger = api.get("/openapi/v2").await.json();
    assert!(swagger["definitions"]["com.example.v1.Widget"].is_object());
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    api.post(WIDGETS, &widget("a", &json!({"color": "red"}))).await;
    let table = api.with("GET", WIDGETS, &accept, "").await.json();
    assert_eq!(table["columnDefinitions"][1]["name"], "Color");
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[..2], [json!("a"), json!("red")]);
}

#[tokio::test]
async fn replicas_are_scaled() {
    let api = start().await;
    api.post(WIDGETS, &widget("a", &json!({"color": "red"}))).await;
    let path = format!("{WIDGETS}/a/scale");
    let scale = api.get(&path).await.json();
    assert_eq!((&scale["kind"], &scale["spec"]), (&json!("Scale"), &json!({"replicas": 1})));
    let scaled = api.patch(&path, "merge", r#"{"spec":{"replicas":4}}"#).await;
    assert_eq!((scaled.code, &scaled.json()["spec"]["replicas"]), (200, &json!(4)));
    assert_eq!(api.get(&format!("{WIDGETS}/a")).await.json()["spec"]["replicas"], 4);
    let refused = api.patch(&path, "merge", r#"{"spec":{"replicas":-1}}"#).await;
    let below = "Widget.example.com \"a\" is invalid: .spec.replicas: Invalid value: -1: should be a \
                 non-negative integer";
    assert_eq!((refused.code, &*refused.message()), (422, below));
}

#[tokio::test]
async fn objects_go_with_their_definition() {
    let api = start().await;
    api.post(WIDGETS, &widget("a", &json!({"color": "red"}))).await;
    let mut held = widget("held", &json!({"color": "red"}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    assert_eq!(api.post(WIDGETS, &held).await.code, 201);
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let going = api.delete(&path, "").await.json();
    assert_eq!(
        going["metadata"]["finalizers"],
        json!(["customresourcecleanup.apiextensions.k8s.io"])
    );
    until_gone(&api, &format!("{WIDGETS}/a")).await;
    let refused = api.post(WIDGETS, &widget("b", &json!({"color": "red"}))).await;
    assert_eq!(refused.code, 403);
    assert!(
        refused
            .message()
            .contains("create not allowed while custom resource definition is terminating")
    );
    assert_eq!(api.get(&path).await.code, 200);
    let let_go = r#"{"metadata":{"finalizers":null}}"#;
    assert_eq!(api.patch(&format!("{WIDGETS}/held"), "merge", let_go).await.code, 200);
    until_gone(&api, &path).await;
    assert_eq!(api.get(WIDGETS).await.code, 404);
    assert_eq!(api.post(DEFINITIONS, &definition()).await.code, 201);
    assert!(api.get(WIDGETS).await.names().is_empty());
}

#[tokio::test]
async fn names_that_others_have_wait_until_they_are_free() {
    let api = start().await;
    let mut other = definition();
    other["metadata"]["name"] = "gadgets.example.com".into();
    other["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget", "shortNames": ["wd"]});
    let refused = api.post(DEFINITIONS, &other).await.json();
    assert_eq!(refused["status"]["conditions"][0]["reason"], "ShortNamesConflict");
    assert_eq!(refused["status"]["conditions"][1]["status"], "False");
    assert_eq!(api.get("/apis/example.com/v1/gadgets").await.code, 404);
    api.delete(&format!("{DEFINITIONS}/widgets.example.com"), "").await;
    for _ in 0..500 {
        if api.get("/apis/example.com/v1/gadgets").await.code == 200 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{}", api.get(&format!("{DEFINITIONS}/gadgets.example.com")).await.text);
}

#[tokio::test]
async fn definitions_that_say_too_much_or_too_little_are_refused() {
    let api = Api::start().await;
    let cases: [(&str, Value, &str); 5] = [
        (
            "/spec/versions/0/storage",
            json!(false),
            "must have exactly one version marked as storage version",
        ),
        (
            "/metadata/name",
            json!("foos.example.com"),
            "metadata.name: Invalid value: \"foos.example.com\": must be \
          spec.names.plural+\".\"+spec.group",
        ),
        (
            "/spec/scope",
            json!("Galaxy"),
            "spec.scope: Unsupported value: \"Galaxy\": supported values: \"Cluster\", \
          \"Namespaced\"",
        ),
        (
            "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
            json!({}),
            "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty \
          for specified object fields",
        ),
        (
            "/spec/versions/0/schema",
            json!({}),
            "spec.versions[0].schema.openAPIV3Schema: Required value",
        ),
    ];
    for (pointer, value, want) in cases {
        let mut given = definition();
        *given.pointer_mut(pointer).unwrap() = value;
        let answer = api.post(DEFINITIONS, &given).await;
        assert_eq!(answer.code, 422, "{pointer}");
        assert!(answer.message().contains(want), "{pointer}: {}", answer.message());
    }
}

#[tokio::test]
async fn fields_of_objects_have_owners() {
    let api = start().await;
    let apply = "application/apply-patch+yaml";
    let given = widget("a", &json!({"color": "red", "parts": [{"name": "x", "count": 1}]}));
    let path = format!("{WIDGETS}/a?fieldManager=one");
    assert_eq!(api.patch(&path, apply, &given.to_string()).await.code, 201);
    let other = widget("a", &json!({"color": "blue", "parts": [{"name": "y", "count": 1}]}));
    let path = format!("{WIDGETS}/a?fieldManager=two");
    let conflict = api.patch(&path, apply, &other.to_string()).await;
    assert_eq!(conflict.code, 409, "{}", conflict.text);
    assert!(conflict.message().contains("conflict with \"one\": .spec.color"));
    let forced = api.patch(&format!("{path}&force=true"), apply, &other.to_string()).await.json();
    assert_eq!(forced["spec"]["color"], "blue");
    assert_eq!(
        forced["spec"]["parts"],
        json!([{"name": "x", "count": 1}, {"name": "y", "count": 1}])
    );
    let unknown = widget("a", &json!({"color": "red", "colour": 1}));
    let refused = api.patch(&path, apply, &unknown.to_string()).await;
    assert!(
        refused.message().contains(".spec.colour: field not declared in schema"),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn kinds_and_objects_outlive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let options = || lockstep_local::embedded::Options {
        data_dir: Some(dir.path().to_owned()),
        ..Default::default()
    };
    let api = Api::with_options(options()).await;
    assert_eq!(api.post(DEFINITIONS, &definition()).await.code, 201);
    assert_eq!(api.post(WIDGETS, &widget("a", &json!({"color": "red"}))).await.code, 201);
    let before = api.get(&format!("{WIDGETS}/a")).await.json();
    api.embedded.shutdown().await;
    let api = Api::with_options(options()).await;
    assert_eq!(api.get(&format!("{WIDGETS}/a")).await.json(), before);
}

#[tokio::test]
async fn stored_objects_are_shown_by_the_schema_of_today() {
    let api = start().await;
    api.post(WIDGETS, &widget("a", &json!({"color": "red", "parts": [{"name": "x"}]}))).await;
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let mut changed = api.get(&path).await.json();
    let properties = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let fields = changed.pointer_mut(properties).unwrap().as_object_mut().unwrap();
    fields.remove("parts");
    fields.insert("added".to_owned(), json!({"type": "string", "default": "new"}));
    assert_eq!(api.put(&path, &changed).await.code, 200);
    let shown = api.get(&format!("{WIDGETS}/a")).await.json();
    assert_eq!(shown["spec"], json!({"color": "red", "size": 3, "replicas": 1, "added": "new"}));
}

#[tokio::test]
async fn versions_share_their_objects() {
    let api = Api::start().await;
    let mut both = definition();
    let mut second = both["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    second["deprecated"] = true.into();
    both["spec"]["versions"].as_array_mut().unwrap().push(second);
    let answer = api.post(DEFINITIONS, &both).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    api.post(WIDGETS, &widget("a", &json!({"color": "red"}))).await;
    let shown = api.get("/apis/example.com/v2/namespaces/default/widgets/a").await;
    assert_eq!(shown.json()["apiVersion"], "example.com/v2");
    assert_eq!(shown.json()["spec"]["color"], "red");
    assert_eq!(shown.header("warning"), "299 - \"example.com/v2 Widget is deprecated\"");
}
