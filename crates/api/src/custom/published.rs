//! Schemas of types that are not ours, for fields of types that are.
//!
//! Metadata of templates is cut down to what an API server keeps of embedded metadata.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::openapi;

/// Names of published types.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const JOB_SPEC: &str = "io.k8s.api.batch.v1.JobSpec";
const POD_SPEC: &str = "io.k8s.api.core.v1.PodSpec";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const SELECTOR: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
const TAINT: &str = "io.k8s.api.core.v1.Taint";
const TOLERATION: &str = "io.k8s.api.core.v1.Toleration";
const CLAIM_SPEC: &str = "io.k8s.api.core.v1.PersistentVolumeClaimSpec";

/// Metadata of the object itself.
pub fn object_meta(_: &mut SchemaGenerator) -> Schema {
    reference(META)
}

/// A moment.
pub fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// A quantity.
pub fn quantity(_: &mut SchemaGenerator) -> Schema {
    reference(QUANTITY)
}

/// Quantities by name.
pub fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object",
                  "additionalProperties": {"$ref": format!("#/components/schemas/{QUANTITY}")}})
}

/// A selector of labels.
pub fn label_selector(_: &mut SchemaGenerator) -> Schema {
    reference(SELECTOR)
}

/// At most eight taints of nodes.
pub fn taints(_: &mut SchemaGenerator) -> Schema {
    let effects = format!("self.all(x, x.effect in {EFFECTS})");
    few(TAINT, json!([{"rule": effects, "message": EFFECTS_RULE}]))
}

/// At most eight tolerations.
pub fn tolerations(_: &mut SchemaGenerator) -> Schema {
    let rule = |each: &str, message: &str| json!({"rule": format!("self.all(x, {each})"), "message": message});
    let rules = json!([
        rule("!has(x.key) ? x.operator == 'Exists' : true", KEYLESS_RULE),
        rule("has(x.tolerationSeconds) ? x.effect == 'NoExecute' : true", SECONDS_RULE),
        rule("!has(x.operator) || x.operator in ['Equal', 'Exists']", OPERATOR_RULE),
        rule("has(x.operator) && x.operator == 'Exists' ? !has(x.value) : true", VALUE_RULE),
        rule(&format!("!has(x.effect) || x.effect in {EFFECTS}"), EFFECTS_RULE),
    ]);
    few(TOLERATION, rules)
}

const EFFECTS: &str = "['NoSchedule', 'PreferNoSchedule', 'NoExecute']";
/// What is said of the effects of taints and tolerations.
pub(crate) const EFFECTS_RULE: &str =
    "supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'";
/// What is said of tolerations without a key.
pub(crate) const KEYLESS_RULE: &str =
    "operator must be Exists when 'key' is empty, which means 'match all values and all keys'";
/// What is said of tolerations for a time.
pub(crate) const SECONDS_RULE: &str = "effect must be 'NoExecute' when 'tolerationSeconds' is set";
/// What is said of the operators of tolerations.
pub(crate) const OPERATOR_RULE: &str = "supported toleration values: 'Equal'(default), 'Exists'";
/// What is said of the values of tolerations.
pub(crate) const VALUE_RULE: &str = "a value must be empty when 'operator' is 'Exists'";

/// Something nobody here looks into.
pub fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A template of pods.
pub fn pod_template(generator: &mut SchemaGenerator) -> Schema {
    let definitions = generator.definitions_mut();
    definitions.insert("EmbeddedObjectMeta".to_owned(), embedded_meta());
    definitions.insert("PodTemplateSpec".to_owned(), embedded_pod());
    reference("PodTemplateSpec")
}

/// A template of Jobs.
pub fn job_template(generator: &mut SchemaGenerator) -> Schema {
    let definitions = generator.definitions_mut();
    definitions.insert("EmbeddedObjectMeta".to_owned(), embedded_meta());
    definitions.insert("PodTemplateSpec".to_owned(), embedded_pod());
    let mut job = openapi::published(JOB_SPEC).expect("Jobs are served");
    let template = &mut job["properties"]["template"];
    *template = referring("PodTemplateSpec", template["description"].as_str().unwrap_or_default());
    definitions.insert("JobSpec".to_owned(), job);
    let template = json!({
        "description": "JobTemplateSpec is what each Job looks like.",
        "type": "object",
        "properties": {
            "metadata": referring("EmbeddedObjectMeta", "Labels and annotations of the Jobs."),
            "spec": referring("JobSpec", "What is wanted of each Job."),
        },
    });
    definitions.insert("JobTemplateSpec".to_owned(), template);
    reference("JobTemplateSpec")
}

/// A list of volume claims.
pub fn volume_claims(generator: &mut SchemaGenerator) -> Schema {
    let definitions = generator.definitions_mut();
    definitions.insert("EmbeddedObjectMeta".to_owned(), embedded_meta());
    let claim = json!({
        "description": "PersistentVolumeClaim is what a claim looks like.",
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string", "description": "v1."},
            "kind": {"type": "string", "description": "PersistentVolumeClaim."},
            "metadata": referring("EmbeddedObjectMeta", "Name, labels and annotations of the claim."),
            "spec": referring(CLAIM_SPEC, "What is wanted of the volume."),
        },
    });
    definitions.insert("PersistentVolumeClaim".to_owned(), claim);
    json_schema!({
        "type": "array",
        "maxItems": 50,
        "items": {"$ref": "#/components/schemas/PersistentVolumeClaim"},
        "x-kubernetes-list-type": "atomic",
    })
}

/// Conditions, with the limits an API server knows for them.
pub fn conditions(generator: &mut SchemaGenerator) -> Schema {
    let text = |description: &str, more: Value| {
        let mut schema = json!({"type": "string", "description": description});
        if let (Some(schema), Value::Object(more)) = (schema.as_object_mut(), more) {
            schema.extend(more);
        }
        schema
    };
    let condition = json!({
        "description": "Condition says whether something is true.",
        "type": "object",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "type": text("What is said, in CamelCase.", json!({
                "maxLength": 316,
                "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
                            (([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
            })),
            "status": text("Whether it is true.", json!({"enum": ["True", "False", "Unknown"]})),
            "observedGeneration": {
                "description": "The generation of the object it was said of.",
                "type": "integer", "format": "int64", "minimum": 0,
            },
            "lastTransitionTime":
                text("When the status last changed.", json!({"format": "date-time"})),
            "reason": text("Why, as one word in CamelCase.", json!({
                "minLength": 1, "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            })),
            "message": text("Why, in a sentence.", json!({"maxLength": 32768})),
        },
    });
    generator.definitions_mut().insert("Condition".to_owned(), condition);
    json_schema!({
        "type": "array",
        "items": {"$ref": "#/components/schemas/Condition"},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

/// What each pod looks like.
fn embedded_pod() -> Value {
    json!({
        "description": "PodTemplateSpec is what each pod looks like.",
        "type": "object",
        "properties": {
            "metadata": referring("EmbeddedObjectMeta", "Labels and annotations of the pods."),
            "spec": referring(POD_SPEC, "What is wanted of each pod."),
        },
    })
}

/// At most eight of a published type, with rules for the list.
fn few(name: &str, rules: Value) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 8,
        "items": {"$ref": format!("#/components/schemas/{name}")},
        "x-kubernetes-list-type": "atomic",
        "x-kubernetes-validations": rules,
    })
}

/// What an API server keeps of metadata inside of an object.
fn embedded_meta() -> Value {
    let map = |description: &str| {
        json!({"type": "object", "additionalProperties": {"type": "string"},
               "description": description})
    };
    let text = |description: &str| json!({"type": "string", "description": description});
    json!({
        "description": "EmbeddedObjectMeta is metadata within a template.",
        "type": "object",
        "properties": {
            "name": text("The name."),
            "namespace": text("The namespace."),
            "labels": map("Labels."),
            "annotations": map("Annotations."),
            "finalizers": {"type": "array", "items": {"type": "string"},
                           "description": "Finalizers."},
        },
    })
}

fn referring(name: &str, description: &str) -> Value {
    let mut schema = Map::new();
    schema.insert("$ref".to_owned(), format!("#/components/schemas/{name}").into());
    schema.insert("description".to_owned(), description.into());
    Value::Object(schema)
}

fn reference(name: &str) -> Schema {
    json_schema!({"$ref": format!("#/components/schemas/{name}")})
}
