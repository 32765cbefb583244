//! What is filled in for a container.

use serde_json::{Value, json};

use super::{
    super::{image, object_mut, objects_mut},
    canonical_quantity, resource_list, set_default_number, set_default_text,
};
use crate::{json::set_default, strategy::Json};

/// Fills in one container of any kind.
pub(super) fn fill(container: &mut Json) {
    let policy = pull_policy(container.get("image"));
    set_default_text(container, "imagePullPolicy", policy);
    set_default_text(container, "terminationMessagePath", "/dev/termination-log");
    set_default_text(container, "terminationMessagePolicy", "File");
    set_default(container, "resources", json!({}));
    for port in objects_mut(container, "ports") {
        set_default_text(port, "protocol", "TCP");
    }
    for variable in objects_mut(container, "env") {
        if let Some(source) = object_mut(variable, "valueFrom") {
            fill_env_source(source);
        }
    }
    if let Some(resources) = object_mut(container, "resources") {
        resource_list(resources, "limits");
        resource_list(resources, "requests");
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = object_mut(container, key) {
            fill_probe(probe);
        }
    }
    if let Some(lifecycle) = object_mut(container, "lifecycle") {
        for key in ["postStart", "preStop"] {
            if let Some(hook) = object_mut(lifecycle, key) {
                fill_http_get(hook);
            }
        }
    }
}

/// `Always` for the tag `latest`, also when it is only implied.
pub(super) fn pull_policy(image: Option<&Value>) -> &'static str {
    match image::tag(image.and_then(Value::as_str).unwrap_or_default()) {
        Some("latest") => "Always",
        _ => "IfNotPresent",
    }
}

/// Fills in where an environment variable or a downward file comes from.
pub(super) fn fill_env_source(source: &mut Json) {
    if let Some(field) = object_mut(source, "fieldRef") {
        set_default_text(field, "apiVersion", "v1");
    }
    if let Some(key) = object_mut(source, "fileKeyRef") {
        set_default(key, "optional", false);
    }
    if let Some(resource) = object_mut(source, "resourceFieldRef") {
        // The quantity is no pointer upstream, so it is always written.
        set_default(resource, "divisor", "0");
        canonical_quantity(resource, "divisor");
    }
}

fn fill_probe(probe: &mut Json) {
    set_default_number(probe, "timeoutSeconds", 1);
    set_default_number(probe, "periodSeconds", 10);
    set_default_number(probe, "successThreshold", 1);
    set_default_number(probe, "failureThreshold", 3);
    fill_http_get(probe);
    if let Some(grpc) = object_mut(probe, "grpc") {
        set_default(grpc, "service", "");
    }
}

fn fill_http_get(handler: &mut Json) {
    if let Some(get) = object_mut(handler, "httpGet") {
        set_default_text(get, "path", "/");
        set_default_text(get, "scheme", "HTTP");
    }
}
