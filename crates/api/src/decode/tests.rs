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
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
    ),
    (
        "a string for an element",
        r#"{"spec":{"containers":["x"]}}"#,
        Why::Pod(
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type v1.Container",
        ),
    ),
    (
        "a number for a string, in an embedded struct",
        r#"{"spec":{"volumes":[{"name":"v","hostPath":{"path":1}}]}}"#,
        Why::Pod(
            "json: cannot unmarshal number into Go struct field HostPathVolumeSource.spec.volumes.VolumeSource.hostPath.path of type string",
        ),
    ),
    (
        "a fraction for an integer",
        r#"{"spec":{"priority":1.5}}"#,
        Why::Pod(
            "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32",
        ),
    ),
    (
        "an integer out of range",
        r#"{"spec":{"priority":3000000000}}"#,
        Why::Pod(
            "json: cannot unmarshal number 3000000000 into Go struct field PodSpec.spec.priority of type int32",
        ),
    ),
    (
        "a number for a label",
        r#"{"metadata":{"labels":{"a":1}}}"#,
        Why::Pod(
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
    ),
    (
        "a time that is none",
        r#"{"metadata":{"creationTimestamp":"yesterday"}}"#,
        Why::Pod(
            r#"parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#,
        ),
    ),
    (
        "a quantity that is none",
        r#"{"spec":{"containers":[{"resources":{"limits":{"cpu":"lots"}}}]}}"#,
        Why::Pod(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ),
    (
        "unknown and doubled fields",
        r#"{"spec":{"foo":1,"containers":[{"name":"a","bar":{"x":1},"name":"b"}]},"spex":1}"#,
        Why::Pod(
            r#"strict decoding error: unknown field "spec.foo", unknown field "spec.containers[0].bar", duplicate field "spec.containers[0].name", unknown field "spex""#,
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
            "ConfigMap in version \"v1\" cannot be handled as a Pod: converting (v1.ConfigMap) to (core.Pod): unknown conversion",
        ),
    ),
    (
        "a kind nobody knows",
        r#"{"apiVersion":"apps/v1","kind":"Pod"}"#,
        Why::Pod(
            r#"no kind "Pod" is registered for version "apps/v1" in scheme "pkg/api/legacyscheme/scheme.go:30""#,
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
            "json: cannot unmarshal array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" } (5b5d)",
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
    let body = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":null,"annotations":{},
        "creationTimestamp":null},"spec":{"hostNetwork":false,"nodeName":"","priority":0,
        "automountServiceAccountToken":false,"tolerations":[],"securityContext":{},
        "containers":[{"name":"c","stdin":true,"tty":false,"env":[{"name":"A","value":""}],
        "resources":{"limits":{"cpu":0.5,"memory":"1024Mi"}},"command":["",null]}]}}"#;
    let want = json!({"metadata":{"name":"p"},"spec":{"priority":0,
        "automountServiceAccountToken":false,"securityContext":{},
        "containers":[{"name":"c","stdin":true,"env":[{"name":"A"}],
        "resources":{"limits":{"cpu":"500m","memory":"1Gi"}},"command":["",""]}]}});
    assert_eq!(Value::Object(pod(body).unwrap().object), want);
}
