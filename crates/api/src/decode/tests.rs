use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::{resource::Scope, strategy::Column};

struct Plain;

impl crate::Strategy for Plain {
    fn validate_name(&self, _: &str, _: bool) -> Vec<String> {
        Vec::new()
    }
    fn columns(&self) -> &'static [Column] {
        &[]
    }
    fn row(&self, _: &Json, _: jiff::Timestamp) -> Vec<Value> {
        Vec::new()
    }
}

fn resource(group: &'static str, version: &'static str, kind: &'static str) -> Resource {
    let plural = format!("{}s", kind.to_lowercase());
    Resource {
        group: group.into(),
        version: version.into(),
        singular: kind.to_lowercase().into(),
        table: Arc::from(plural.as_str()),
        plural: plural.into(),
        kind: kind.into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: Scope::Namespaced,
        verbs: &[],
        subresources: Vec::new(),
        strategy: Arc::new(Plain),
    }
}

fn pod(body: &str) -> Result<Decoded, Status> {
    object(&resource("", "v1", "Pod"), body.as_bytes(), FieldValidation::Strict)
}

/// What a refusal says.
enum Why {
    /// After `Pod in version "v1" cannot be handled as a Pod: `.
    Pod(&'static str),
    /// After `the object provided is unrecognized ...: json parse error: `.
    Syntax(&'static str),
    /// All of it.
    Whole(&'static str),
}

/// A name, a body, and why it is refused as a Pod.
const REFUSALS: &[(&str, &str, Why)] = &[
    (
        "a string for a list",
        r#"{"apiVersion":"v1","kind":"Pod","spec":{"containers":"x"}}"#,
        Why::Pod(
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type \
             []v1.Container",
        ),
    ),
    (
        "a string for an element",
        r#"{"spec":{"containers":["x"]}}"#,
        Why::Pod(
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type \
             v1.Container",
        ),
    ),
    (
        "a number for a string, in an embedded struct",
        r#"{"spec":{"volumes":[{"name":"v","hostPath":{"path":1}}]}}"#,
        Why::Pod(
            "json: cannot unmarshal number into Go struct field \
             HostPathVolumeSource.spec.volumes.VolumeSource.hostPath.path of type string",
        ),
    ),
    (
        "a fraction for an integer",
        r#"{"spec":{"priority":1.5}}"#,
        Why::Pod(
            "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of \
             type int32",
        ),
    ),
    (
        "an integer out of range",
        r#"{"spec":{"priority":3000000000}}"#,
        Why::Pod(
            "json: cannot unmarshal number 3000000000 into Go struct field PodSpec.spec.priority \
             of type int32",
        ),
    ),
    (
        "a number for a label",
        r#"{"metadata":{"labels":{"a":1}}}"#,
        Why::Pod(
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of \
             type string",
        ),
    ),
    (
        "a time that is none",
        r#"{"metadata":{"creationTimestamp":"yesterday"}}"#,
        Why::Pod(
            "parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \
             \"yesterday\" as \"2006\"",
        ),
    ),
    (
        "a quantity that is none",
        r#"{"spec":{"containers":[{"resources":{"limits":{"cpu":"lots"}}}]}}"#,
        Why::Pod(
            "quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ),
    (
        "unknown and doubled fields",
        r#"{"spec":{"foo":1,"containers":[{"name":"a","bar":{"x":1},"name":"b"}]},"spex":1}"#,
        Why::Pod(
            "strict decoding error: unknown field \"spec.foo\", unknown field \
             \"spec.containers[0].bar\", duplicate field \"spec.containers[0].name\", unknown \
             field \"spex\"",
        ),
    ),
    (
        "fields in another case",
        r#"{"Spec":{}}"#,
        Why::Pod(r#"strict decoding error: unknown field "Spec""#),
    ),
    (
        "another kind",
        r#"{"apiVersion":"v1","kind":"ConfigMap"}"#,
        Why::Whole(
            "ConfigMap in version \"v1\" cannot be handled as a Pod: converting (v1.ConfigMap) \
             to (core.Pod): unknown conversion",
        ),
    ),
    (
        "a kind nobody knows",
        r#"{"apiVersion":"apps/v1","kind":"Pod"}"#,
        Why::Pod(
            "no kind \"Pod\" is registered for version \"apps/v1\" in scheme \
             \"pkg/api/legacyscheme/scheme.go:30\"",
        ),
    ),
    (
        "no JSON",
        "{\"spec\":x}",
        Why::Syntax("invalid character 'x' looking for beginning of value ({\"spec\":x})"),
    ),
    (
        "no object",
        "[]",
        Why::Syntax(
            "json: cannot unmarshal array into Go value of type struct { APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" \
             } (5b5d)",
        ),
    ),
    ("nothing", "", Why::Syntax("unexpected end of JSON input (<empty>)")),
];

#[test]
fn refusals_are_worded_as_kubernetes_words_them() {
    for (name, body, why) in REFUSALS {
        let want = match why {
            Why::Pod(why) => format!("Pod in version \"v1\" cannot be handled as a Pod: {why}"),
            Why::Syntax(why) => format!(
                "the object provided is unrecognized (must be of type Pod): couldn't get \
                 version/kind; json parse error: {why}"
            ),
            Why::Whole(why) => (*why).to_owned(),
        };
        let status = pod(body).expect_err(name);
        assert_eq!(status.message, want, "{name}");
        assert_eq!((status.code, &*status.reason), (400, "BadRequest"), "{name}");
    }
}

#[test]
fn what_go_cannot_tell_from_absent_is_left_out() {
    let body = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":null,
        "annotations":{},"creationTimestamp":null},
        "spec":{"hostNetwork":false,"nodeName":"","priority":0,
        "automountServiceAccountToken":false,"tolerations":[],"securityContext":{},
        "containers":[{"name":"c","stdin":true,"tty":false,"env":[{"name":"A","value":""}],
        "resources":{"limits":{"cpu":0.5,"memory":"1024Mi"}},"command":["",null]}]}}"#;
    let want = json!({"metadata":{"name":"p"},"spec":{"priority":0,
        "automountServiceAccountToken":false,"securityContext":{},
        "containers":[{"name":"c","stdin":true,"env":[{"name":"A"}],
        "resources":{"limits":{"cpu":"500m","memory":"1Gi"}},"command":["",""]}]}});
    assert_eq!(Value::Object(pod(body).unwrap().object), want);
}

#[test]
fn fields_that_go_always_writes_are_put_back() {
    let node = resource("", "v1", "Node");
    let mut object = object(&node, b"{\"spec\":{}}", FieldValidation::Strict).unwrap().object;
    complete(&node, &mut object);
    let want = json!({"metadata": {}, "spec": {}, "status": {
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
        "nodeInfo": {"machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "",
            "osImage": "", "containerRuntimeVersion": "", "kubeletVersion": "",
            "kubeProxyVersion": "", "operatingSystem": "", "architecture": ""}}});
    assert_eq!(Value::Object(object), want);
    let service = resource("", "v1", "Service");
    let body = br#"{"spec":{"ports":[{"port":80}]},"status":{"conditions":[{"type":"A"}]}}"#;
    let mut object = super::object(&service, body, FieldValidation::Strict).unwrap().object;
    complete(&service, &mut object);
    let want = json!({"metadata": {}, "spec": {"ports": [{"port": 80, "targetPort": 0}]},
        "status": {"loadBalancer": {}, "conditions": [{"type": "A", "status": "", "reason": "",
            "message": "", "lastTransitionTime": null}]}});
    assert_eq!(Value::Object(object), want);
}

#[test]
fn scalars_are_written_as_go_writes_them() {
    let lease = |text: &str| {
        let body = json!({"spec": {"renewTime": text}}).to_string();
        let decoded = object(
            &resource("coordination.k8s.io", "v1", "Lease"),
            body.as_bytes(),
            FieldValidation::Strict,
        );
        decoded.map(|decoded| decoded.object["spec"]["renewTime"].as_str().unwrap().to_owned())
    };
    assert_eq!(lease("2020-01-02T03:04:05.000600+02:00").unwrap(), "2020-01-02T01:04:05.000600Z");
    let prefix = "Lease in version \"v1\" cannot be handled as a Lease: parsing time ";
    let cases = [
        (
            "2020-01-02T03:04:05Z",
            r#" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#,
        ),
        ("2020-13-02T03:04:05Z", ": month out of range"),
        ("2020-02-30T03:04:05.000000Z", ": day out of range"),
        ("2020-02-20T24:04:05.000000Z", ": hour out of range"),
        ("2020-02-20T23:04:05.000000Z ", r#": extra text: " ""#),
        (
            "2020-02-20T23:04:05.000000",
            r#" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "" as "Z07:00""#,
        ),
    ];
    for (text, why) in cases {
        assert_eq!(lease(text).unwrap_err().message, format!("{prefix}\"{text}\"{why}"));
    }
    let secret = |value: Value| {
        let body = json!({"data": {"a": value}}).to_string();
        let kind = resource("", "v1", "Secret");
        let decoded = object(&kind, body.as_bytes(), FieldValidation::Strict);
        decoded.map(|decoded| decoded.object["data"]["a"].clone()).map_err(|s| s.message)
    };
    assert_eq!(secret(json!("Zm9v\nYmFy")), Ok(json!("Zm9vYmFy")));
    assert_eq!(secret(json!("Zh==")), Ok(json!("Zg==")));
    assert_eq!(secret(json!([102, 111, 111])), Ok(json!("Zm9v")));
    for (text, at) in [("Zm9", 0), ("Zm9vZ", 4), ("Zm9v!", 4), ("Zg=", 3), ("Zg==Zg", 4)] {
        let want = format!(
            "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input \
             byte {at}"
        );
        assert_eq!(secret(json!(text)), Err(want), "{text}");
    }
}

#[test]
fn field_validation_decides_between_warning_and_silence() {
    let body = br#"{"data":{"a":"1","a":"2"},"foo":{"x":{"y":1,"y":2}}}"#;
    let kind = resource("", "v1", "ConfigMap");
    let problems = ["duplicate field \"data.a\"", "unknown field \"foo\""];
    let warned = object(&kind, body, FieldValidation::Warn).unwrap();
    assert_eq!(warned.warnings, problems);
    assert_eq!(Value::Object(warned.object), json!({"data": {"a": "2"}}));
    assert!(object(&kind, body, FieldValidation::Ignore).unwrap().warnings.is_empty());
    let refused = object(&kind, body, FieldValidation::Strict).unwrap_err();
    assert!(refused.message.ends_with(&format!("strict decoding error: {}", problems.join(", "))));
}

#[test]
fn kinds_without_a_built_in_type_must_say_what_they_are() {
    let kind = resource("example.com", "v1", "Widget");
    let decode = |body: &str| object(&kind, body.as_bytes(), FieldValidation::Warn);
    let body =
        r#"{"apiVersion":"example.com/v1","kind":"Widget","spec":{"a":1,"a":[{"b":1,"b":2}]}}"#;
    let decoded = decode(body).unwrap();
    assert_eq!(decoded.warnings, ["duplicate field \"spec.a\"", "duplicate field \"spec.a[0].b\""]);
    assert_eq!(Value::Object(decoded.object), json!({"spec": {"a": [{"b": 2}]}}));
    let missing = |body: &str| decode(body).unwrap_err().message;
    assert_eq!(missing(r#"{"a":1}"#), r#"Object 'Kind' is missing in '{"a":1}'"#);
    assert_eq!(
        missing(r#"{"kind":"Widget"}"#),
        r#"Object 'apiVersion' is missing in '{"kind":"Widget"}'"#
    );
}

#[test]
fn options_may_come_in_the_name_of_any_group() {
    #[derive(serde::Deserialize, Default, Debug, PartialEq)]
    #[serde(rename_all = "camelCase", default)]
    struct DeleteOptions {
        grace_period_seconds: Option<i64>,
    }
    let expected = Gvk { group: "", version: "v1", kind: "DeleteOptions" };
    let read = |body: &str| options::<DeleteOptions>(expected, body.as_bytes());
    let five = DeleteOptions { grace_period_seconds: Some(5) };
    for body in [
        r#"{"gracePeriodSeconds":5}"#,
        r#"{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":5,"other":1}"#,
        r#"{"kind":"DeleteOptions","apiVersion":"batch/v1","gracePeriodSeconds":5}"#,
    ] {
        assert_eq!(read(body).unwrap(), five, "{body}");
    }
    assert_eq!(read("").unwrap(), DeleteOptions::default());
    assert_eq!(
        read(r#"{"gracePeriodSeconds":"5"}"#).unwrap_err().message,
        "DeleteOptions in version \"v1\" cannot be handled as a DeleteOptions: json: cannot \
         unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64"
    );
    assert!(read(r#"{"kind":"Pod","apiVersion":"v1"}"#).is_err());
}

#[test]
fn patched_objects_are_refused_as_patches() {
    let kind = resource("", "v1", "Pod");
    let check = |value: Value, how: PatchKind<'_>, validation| {
        prune_and_check(&kind, &value, how, validation, Vec::new())
    };
    let patch = json!({"spec": {"priority": "high", "x": [1, null]}});
    let status =
        check(json!({"spec": {"priority": "high"}}), PatchKind::Json, FieldValidation::Warn)
            .unwrap_err();
    assert_eq!((status.code, &*status.reason), (422, "Invalid"));
    assert_eq!(
        status.message,
        " \"\" is invalid: patch: Invalid value: \
         \"{\\\"spec\\\":{\\\"priority\\\":\\\"high\\\"}}\": json: cannot unmarshal string into Go \
         struct field PodSpec.spec.priority of type int32"
    );
    let status = check(patch.clone(), PatchKind::Strategic(&patch), FieldValidation::Strict);
    assert!(status.unwrap_err().message.starts_with(
        " \"\" is invalid: patch: Invalid value: \"map[spec:map[priority:high x:[1 <nil>]]]\": "
    ));
    let cases = [
        (json!({"spec": {"priority": "high"}}), "unrecognized type: int32"),
        (json!({"spec": {"priority": 1.5}}), "cannot convert float64 to int32"),
        (json!({"spec": {"restartPolicy": 1}}), "cannot convert int64 to v1.RestartPolicy"),
        (json!({"spec": {"restartPolicy": true}}), "unrecognized type: string"),
        (json!({"spec": {"containers": {}}}), "cannot restore slice from map"),
        (json!({"spec": {"containers": [1]}}), "cannot restore struct from: int64"),
        (json!({"metadata": {"labels": "a"}}), "cannot restore map from string"),
        (
            json!({"metadata": {"creationTimestamp": 1}}),
            "json: cannot unmarshal number into Go value of type string",
        ),
    ];
    for (patch, why) in cases {
        let made_by = PatchKind::Strategic(&patch);
        let refused = check(patch.clone(), made_by, FieldValidation::Warn).unwrap_err();
        assert!(refused.message.ends_with(&format!("\": {why}")), "{}", refused.message);
    }
    let whole = json!({"spec": {"priority": 2.0}});
    let fine = check(whole.clone(), PatchKind::Strategic(&whole), FieldValidation::Warn).unwrap();
    assert_eq!(Value::Object(fine.object), json!({"spec": {"priority": 2}}));
    let unknown = json!({"kind": "Pod", "apiVersion": "v1", "spec": {"foo": 1, "priority": 1}});
    let fine = check(unknown.clone(), PatchKind::Json, FieldValidation::Warn).unwrap();
    assert_eq!(Value::Object(fine.object), json!({"spec": {"priority": 1}}));
    assert_eq!(fine.warnings, ["unknown field \"spec.foo\""]);
    let refused = check(unknown, PatchKind::Json, FieldValidation::Strict).unwrap_err();
    assert!(refused.message.ends_with(r#": strict decoding error: unknown field "spec.foo""#));
}

#[test]
fn patches_do_not_change_what_an_object_is() {
    let config_map = resource("", "v1", "ConfigMap");
    let check = |value: &Value, how: PatchKind<'_>| {
        prune_and_check(&config_map, value, how, FieldValidation::Warn, Vec::new())
    };
    let scheme = "in scheme \"pkg/api/legacyscheme/scheme.go:30\"";
    for (value, why) in [
        (
            json!({"apiVersion": "v1", "kind": "Secret"}),
            "converting (v1.Secret) to (core.ConfigMap): unknown conversion".to_owned(),
        ),
        (
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"k": "v"}}),
            "illegal base64 data at input byte 0".to_owned(),
        ),
        (
            json!({"apiVersion": "v2", "kind": "ConfigMap"}),
            format!("no kind \"ConfigMap\" is registered for version \"v2\" {scheme}"),
        ),
        (
            json!({"apiVersion": "v1", "kind": "Mystery"}),
            format!("no kind \"Mystery\" is registered for version \"v1\" {scheme}"),
        ),
        (
            json!({"apiVersion": "a/b/c", "kind": "ConfigMap"}),
            "unexpected GroupVersion string: a/b/c".to_owned(),
        ),
    ] {
        let status = check(&value, PatchKind::Json).unwrap_err();
        let shown = Value::from(value.to_string());
        let want = format!(" \"\" is invalid: patch: Invalid value: {shown}: {why}");
        assert_eq!((status.code, status.message), (422, want));
        // A strategic patch cannot say it at all.
        if value.get("data").is_none() {
            assert!(check(&value, PatchKind::Strategic(&value)).unwrap().object.is_empty());
        }
    }
}

#[test]
fn what_is_applied_is_refused_as_such() {
    let pod = resource("", "v1", "Pod");
    let requests = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "x"}}}]});
    let config = json!({"metadata": {"name": "p", "namespace": "n"}, "spec": requests});
    let made_by = PatchKind::Applied(config.as_object().unwrap());
    let ignore = FieldValidation::Ignore;
    let status = prune_and_check(&pod, &config, made_by, ignore, Vec::new()).unwrap_err();
    assert_eq!(
        (status.code, &*status.message),
        (
            400,
            "failed to convert new object (n/p; /v1, Kind=Pod) to proper version: unable to \
             convert unstructured object to /v1, Kind=Pod: quantities must match the regular \
             expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    );
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("{\"a\":", "}"), ("[", "]")] {
        let body = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        let widget = resource("example.com", "v1", "Widget");
        let status = object(&widget, body.as_bytes(), FieldValidation::Strict).unwrap_err();
        assert!(status.message.contains("exceeded max depth"), "{}", status.message.len());
        assert!(patch_body(body.as_bytes()).is_err());
        // Where the schema knows nothing of it, it is skipped without descending.
        let body = format!("{{\"foo\":{body}}}");
        let decoded = object(&resource("", "v1", "Pod"), body.as_bytes(), FieldValidation::Warn);
        assert_eq!(decoded.unwrap().warnings, ["unknown field \"foo\""]);
    }
}

/// Values that are often right and often wrong for the field they are put in.
fn any_json() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9.:TZ-]{0,24}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(&["1Gi", "0.5", "2020-01-01T00:00:00Z", "Zm9v", "80"][..])
            .prop_map(Value::from),
    ];
    let names = &[
        "metadata",
        "spec",
        "status",
        "name",
        "labels",
        "containers",
        "volumes",
        "resources",
        "limits",
        "env",
        "value",
        "ports",
        "containerPort",
        "creationTimestamp",
        "priority",
        "hostNetwork",
        "conditions",
        "lastTransitionTime",
        "managedFields",
        "fieldsV1",
        "foo",
    ][..];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(names), inner, 0..6).prop_map(|map| {
                map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(body: Vec<u8>) {
        let _ = object(&resource("", "v1", "Pod"), &body, FieldValidation::Strict);
        let _ = patch_body(&body);
    }

    #[test]
    fn what_was_decoded_decodes_to_itself(spec in any_json(), metadata in any_json()) {
        let kind = resource("", "v1", "Pod");
        let body = json!({"metadata": metadata, "spec": spec}).to_string();
        let Ok(first) = object(&kind, body.as_bytes(), FieldValidation::Ignore) else {
            return Ok(());
        };
        let again = serde_json::to_vec(&first.object).unwrap();
        let second = object(&kind, &again, FieldValidation::Strict).unwrap();
        proptest::prop_assert_eq!(&first.object, &second.object);
        let mut full = first.object.clone();
        complete(&kind, &mut full);
        let value = Value::Object(full.clone());
        let third =
            prune_and_check(&kind, &value, PatchKind::Json, FieldValidation::Strict, Vec::new());
        let mut third = third.unwrap().object;
        complete(&kind, &mut third);
        proptest::prop_assert_eq!(full, third);
    }
}

#[test]
fn typed_views_read_what_was_completed() {
    use k8s_openapi::api::{batch, coordination, core, discovery, events, scheduling};
    fn check<T: DeserializeOwned>(group: &'static str, kind: &'static str, body: Value) {
        let kind = resource(group, "v1", kind);
        let body = body.to_string();
        let decoded = object(&kind, body.as_bytes(), FieldValidation::Strict);
        let mut object = decoded.expect(&body).object;
        complete(&kind, &mut object);
        let shown = Value::Object(object.clone()).to_string();
        serde_json::from_value::<T>(Value::Object(object))
            .unwrap_or_else(|e| panic!("{e}: {shown}"));
    }
    let conditions = json!({"status": {"conditions": [{}]}});
    check::<core::v1::Pod>(
        "",
        "Pod",
        json!({"spec": {"containers": [{}], "volumes": [{}]},
        "status": {"conditions": [{}], "containerStatuses": [{"state": {"terminated": {}}}]}}),
    );
    check::<core::v1::Pod>("", "Pod", json!({}));
    check::<core::v1::Node>("", "Node", conditions.clone());
    check::<core::v1::Namespace>("", "Namespace", conditions.clone());
    check::<core::v1::Service>("", "Service", json!({"spec": {"ports": [{}]}}));
    check::<core::v1::Event>("", "Event", json!({}));
    check::<core::v1::Endpoints>("", "Endpoints", json!({"subsets": [{"addresses": [{}]}]}));
    check::<core::v1::Secret>("", "Secret", json!({"data": {"a": null}}));
    check::<events::v1::Event>("events.k8s.io", "Event", json!({}));
    check::<batch::v1::Job>("batch", "Job", conditions);
    check::<batch::v1::Job>("batch", "Job", json!({"spec": {"podFailurePolicy": {"rules": [{}]}}}));
    check::<coordination::v1::Lease>("coordination.k8s.io", "Lease", json!({}));
    check::<scheduling::v1::PriorityClass>("scheduling.k8s.io", "PriorityClass", json!({}));
    check::<discovery::v1::EndpointSlice>(
        "discovery.k8s.io",
        "EndpointSlice",
        json!({"endpoints": [{}], "ports": [{}]}),
    );
}

#[test]
fn custom_kinds_must_be_named_and_built_in_ones_need_not() {
    let jobset = Gvk { group: "jobset.x-k8s.io", version: "v1alpha2", kind: "JobSet" };
    let cases: [(Gvk<'_>, &str, &str); 4] = [
        (jobset, "{}", "Object 'Kind' is missing in '{}'"),
        (
            jobset,
            r#"{"kind":"JobSet"}"#,
            "Object 'apiVersion' is missing in '{\"kind\":\"JobSet\"}'",
        ),
        (jobset, r#"{"kind":"JobSet","apiVersion":"jobset.x-k8s.io/v1alpha2"}"#, ""),
        (Gvk { group: "", version: "v1", kind: "Pod" }, "{}", ""),
    ];
    for (expected, body, want) in cases {
        let got = kind(expected, body.as_bytes(), FieldValidation::Strict);
        assert_eq!(got.err().map(|error| error.message).unwrap_or_default(), want, "{body}");
    }
}

#[test]
fn a_quantity_that_is_none_is_told_with_its_place_in_custom_kinds() {
    let expected = Gvk { group: "kueue.x-k8s.io", version: "v1beta2", kind: "ClusterQueue" };
    let body = r#"{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ClusterQueue","spec":{
        "resourceGroups":[{"flavors":[{"resources":[{"nominalQuota":"5 cores"}]}]}]}}"#;
    let refused = kind(expected, body.as_bytes(), FieldValidation::Strict).unwrap_err();
    assert_eq!(refused.code, 400);
    assert_eq!(
        refused.message,
        "ClusterQueue in version \"v1beta2\" cannot be handled as a ClusterQueue: \
         spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: quantities must match the \
         regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
}
