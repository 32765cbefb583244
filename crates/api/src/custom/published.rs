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
const CLAIM_SPEC: &str = "io.k8s.api.core.v1.PersistentVolumeClaimSpec";

/// Metadata of the object itself.
pub fn object_meta(_: &mut SchemaGenerator) -> Schema {
    reference(META)
}

/// A moment.
pub fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// A template of Jobs.
pub fn job_template(generator: &mut SchemaGenerator) -> Schema {
    let definitions = generator.definitions_mut();
    definitions.insert("EmbeddedObjectMeta".to_owned(), embedded_meta());
    let pod = json!({
        "description": "PodTemplateSpec is what each pod looks like.",
        "type": "object",
        "properties": {
            "metadata": referring("EmbeddedObjectMeta", "Labels and annotations of the pods."),
            "spec": referring(POD_SPEC, "What is wanted of each pod."),
        },
    });
    definitions.insert("PodTemplateSpec".to_owned(), pod);
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
