//! Environment variables and where their values come from.

use k8s_openapi::api::core::v1::{
    EnvFromSource, EnvVar, EnvVarSource, FileKeySelector, ObjectFieldSelector,
    ResourceFieldSelector,
};

use super::rules::{dns_label, no_backsteps, option, qualified, text};
use crate::{
    field::{ErrorList, FieldError, Path},
    meta::invalid,
    names,
    quantity::{self, Quantity},
};

/// What a variable may hold of the pod.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// What either a variable or a file may hold of the pod, or could once.
const KNOWN_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
];

const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

const ONE_AT_A_TIME: &str = "may not have more than one field specified at a time";

/// Says what is wrong with `env`.
pub(super) fn validate(variables: &[EnvVar], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (at, variable) in variables.iter().enumerate() {
        let path = path.index(at);
        if variable.name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else {
            let faults = names::env_var_name(&variable.name);
            errors.extend(invalid(&path.child("name"), &variable.name, faults));
        }
        if let Some(source) = &variable.value_from {
            let has_value = !text(&variable.value).is_empty();
            errors.extend(value_from(source, has_value, &path.child("valueFrom")));
        }
    }
    errors
}

/// Says what is wrong with `envFrom`.
pub(super) fn validate_from(sources: &[EnvFromSource], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (at, source) in sources.iter().enumerate() {
        let item = path.index(at);
        let prefix = text(&source.prefix);
        if !prefix.is_empty() {
            errors.extend(invalid(&item.child("prefix"), prefix, names::env_var_name(prefix)));
        }
        let config_map = source.config_map_ref.as_ref().map(|it| ("configMapRef", &it.name));
        let secret = source.secret_ref.as_ref().map(|it| ("secretRef", &it.name));
        for (field, name) in config_map.into_iter().chain(secret) {
            let name_path = item.child(field).child("name");
            if name.is_empty() {
                errors.push(FieldError::required(&name_path, ""));
            } else {
                errors.extend(invalid(&name_path, name, names::name_is_dns_subdomain(name, true)));
            }
        }
        // These two point at the list, not at its entry, as upstream has it.
        match (config_map, secret) {
            (None, None) => {
                let why = "must specify one of: `configMapRef` or `secretRef`";
                errors.push(FieldError::invalid(path, "", why));
            }
            (Some(_), Some(_)) => errors.push(FieldError::invalid(path, "", ONE_AT_A_TIME)),
            _ => {}
        }
    }
    errors
}

fn value_from(source: &EnvVarSource, has_value: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut sources = 0;
    if let Some(field) = &source.field_ref {
        sources += 1;
        errors.extend(field_ref(field, &FIELDS, &path.child("fieldRef")));
    }
    if let Some(resource) = &source.resource_field_ref {
        sources += 1;
        errors.extend(resource_field_ref(resource, false, &path.child("resourceFieldRef")));
    }
    if let Some(key) = &source.config_map_key_ref {
        sources += 1;
        errors.extend(key_ref(&key.name, &key.key, &path.child("configMapKeyRef")));
    }
    if let Some(key) = &source.secret_key_ref {
        sources += 1;
        errors.extend(key_ref(&key.name, &key.key, &path.child("secretKeyRef")));
    }
    if let Some(key) = &source.file_key_ref {
        sources += 1;
        errors.extend(file_key_ref(key, &path.child("fileKeyRef")));
    }
    if sources == 0 {
        let why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
                   `secretKeyRef` or `fileKeyRef`";
        errors.push(FieldError::invalid(path, "", why));
    } else if has_value {
        let why = "may not be specified when `value` is not empty";
        errors.push(FieldError::invalid(path, "", why));
    } else if sources > 1 {
        errors.push(FieldError::invalid(path, "", ONE_AT_A_TIME));
    }
    errors
}

/// Says what is wrong with a reference to a field of the pod; `fields` are those that may be named
/// here, sorted.
pub(super) fn field_ref(field: &ObjectFieldSelector, fields: &[&str], path: &Path) -> ErrorList {
    let version = text(&field.api_version);
    if version.is_empty() {
        return vec![FieldError::required(&path.child("apiVersion"), "")];
    }
    let name = field.field_path.as_str();
    let name_path = path.child("fieldPath");
    if name.is_empty() {
        return vec![FieldError::required(&name_path, "")];
    }
    let unconvertible = |why: String| {
        let why = format!("error converting fieldPath: {why}");
        vec![FieldError::invalid(&name_path, name, &why)]
    };
    if version != "v1" {
        return unconvertible(format!("unsupported pod version: {version}"));
    }
    match subscript(name) {
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            invalid(path, &key, names::qualified_name(&key))
        }
        Some(("metadata.labels", key)) => qualified(key, path),
        Some(_) => unconvertible(format!("field label does not support subscript: {name}")),
        None => {
            let name = if name == "spec.host" { "spec.nodeName" } else { name };
            if !FIELDS.contains(&name) && !KNOWN_FIELDS.contains(&name) {
                return unconvertible(format!("field label not supported: {name}"));
            }
            option(name, fields, &name_path).into_iter().collect()
        }
    }
}

/// Splits `metadata.labels['key']`.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (field, key) = path.strip_suffix("']")?.split_once("['")?;
    (!field.is_empty()).then_some((field, key))
}

/// Says what is wrong with a reference to a container's resource; files must name the container.
pub(super) fn resource_field_ref(
    resource: &ResourceFieldSelector,
    is_file: bool,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = resource.resource.as_str();
    let is_huge = name.starts_with("requests.hugepages-") || name.starts_with("limits.hugepages-");
    if is_file && text(&resource.container_name).is_empty() {
        errors.push(FieldError::required(&path.child("containerName"), ""));
    } else if name.is_empty() {
        errors.push(FieldError::required(&path.child("resource"), ""));
    } else if !is_huge {
        errors.extend(option(name, &RESOURCES, &path.child("resource")));
    }
    let divisor = resource.divisor.as_ref().map(|quantity| quantity.0.as_str());
    errors.extend(divisor.and_then(|divisor| validate_divisor(name, divisor, path)));
    errors
}

fn validate_divisor(resource: &str, divisor: &str, path: &Path) -> Option<FieldError> {
    const SIZES: [&str; 13] =
        ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let path = path.child("divisor");
    let amount = match Quantity::parse(divisor) {
        Ok(amount) => amount,
        Err(error) => return Some(FieldError::invalid(&path, divisor, &error.to_string())),
    };
    if amount.is_zero() {
        return None;
    }
    let written = quantity::canonical(divisor).unwrap_or_default();
    let (_, kind) = resource.split_once('.')?;
    let sizes = SIZES.join(", ");
    let (is_supported, what) = match kind {
        "cpu" => (matches!(written.as_str(), "1" | "1m"), "1m and 1 are supported with the cpu"),
        "memory" => (SIZES.contains(&written.as_str()), "memory"),
        "ephemeral-storage" => (SIZES.contains(&written.as_str()), "local ephemeral storage"),
        _ if kind.starts_with("hugepages-") => (SIZES.contains(&written.as_str()), "hugepages"),
        _ => return None,
    };
    if is_supported {
        return None;
    }
    let why = if kind == "cpu" {
        format!("only divisor's values {what} resource")
    } else {
        format!("only divisor's values {sizes} are supported with the {what} resource")
    };
    Some(FieldError::invalid(&path, resource, &why))
}

fn key_ref(name: &str, key: &str, path: &Path) -> ErrorList {
    let faults = names::name_is_dns_subdomain(name, false);
    let mut errors = invalid(&path.child("name"), name, faults);
    if key.is_empty() {
        errors.push(FieldError::required(&path.child("key"), ""));
    } else {
        errors.extend(invalid(&path.child("key"), key, names::config_map_key(key)));
    }
    errors
}

fn file_key_ref(file: &FileKeySelector, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if file.key.is_empty() {
        errors.push(FieldError::required(&path.child("key"), ""));
    } else {
        errors.extend(invalid(&path.child("key"), &file.key, names::env_var_name(&file.key)));
    }
    if file.volume_name.is_empty() {
        errors.push(FieldError::required(&path.child("volumeName"), ""));
    } else {
        errors.extend(dns_label(&file.volume_name, &path.child("volumeName")));
    }
    if file.path.is_empty() {
        errors.push(FieldError::required(&path.child("path"), ""));
    } else {
        errors.extend(no_backsteps(&file.path, &path.child("path")));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::assert_container;

    #[test]
    fn variables_are_refused_in_upstream_words() {
        let from = |source: Value| json!({"env": [{"name": "A", "valueFrom": source}]});
        let at = "spec.containers[0].env[0].valueFrom";
        let cases = [
            (json!({"env": [{"name": ""}]}), "spec.containers[0].env[0].name: Required value".to_owned()),
            (
                json!({"env": [{"name": "a=b"}]}),
                "spec.containers[0].env[0].name: Invalid value: \"a=b\": a valid environment variable name must consist only of printable ASCII characters other than '='".to_owned(),
            ),
            (
                from(json!({})),
                format!("{at}: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"),
            ),
            (
                json!({"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
                format!("{at}: Invalid value: \"\": may not be specified when `value` is not empty"),
            ),
            (
                from(json!({"fieldRef": {"fieldPath": "metadata.name"}, "secretKeyRef": {"name": "s", "key": "k"}})),
                format!("{at}: Invalid value: \"\": may not have more than one field specified at a time"),
            ),
            (
                from(json!({"fieldRef": {"fieldPath": "spec.foo"}})),
                format!("{at}.fieldRef.fieldPath: Invalid value: \"spec.foo\": error converting fieldPath: field label not supported: spec.foo"),
            ),
            (
                from(json!({"fieldRef": {"fieldPath": "status.phase"}})),
                format!("{at}.fieldRef.fieldPath: Unsupported value: \"status.phase\": supported values: \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\""),
            ),
            (
                from(json!({"fieldRef": {"fieldPath": "metadata.name['x']"}})),
                format!("{at}.fieldRef.fieldPath: Invalid value: \"metadata.name['x']\": error converting fieldPath: field label does not support subscript: metadata.name['x']"),
            ),
            (
                from(json!({"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}})),
                format!("{at}.fieldRef.fieldPath: Invalid value: \"metadata.name\": error converting fieldPath: unsupported pod version: v2"),
            ),
            (
                from(json!({"resourceFieldRef": {"resource": "limits.gpu"}})),
                format!("{at}.resourceFieldRef.resource: Unsupported value: \"limits.gpu\": supported values: \"limits.cpu\", \"limits.ephemeral-storage\", \"limits.memory\", \"requests.cpu\", \"requests.ephemeral-storage\", \"requests.memory\""),
            ),
            (
                from(json!({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}})),
                format!("{at}.resourceFieldRef.divisor: Invalid value: \"limits.cpu\": only divisor's values 1m and 1 are supported with the cpu resource"),
            ),
            (
                from(json!({"resourceFieldRef": {"resource": "limits.memory", "divisor": "1m"}})),
                format!("{at}.resourceFieldRef.divisor: Invalid value: \"limits.memory\": only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the memory resource"),
            ),
            (
                from(json!({"configMapKeyRef": {"name": "c", "key": ""}})),
                format!("{at}.configMapKeyRef.key: Required value"),
            ),
            (
                json!({"envFrom": [{}]}),
                "spec.containers[0].envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`".to_owned(),
            ),
            (
                json!({"envFrom": [{"configMapRef": {"name": ""}}]}),
                "spec.containers[0].envFrom[0].configMapRef.name: Required value".to_owned(),
            ),
        ];
        for (container, want) in cases {
            assert_container(container, &[&want]);
        }
    }

    #[test]
    fn the_downward_api_is_accepted() {
        assert_container(
            json!({"env": [
                {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app.io/x']"}}},
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['X']"}}},
                {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
                {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            ]}),
            &[],
        );
    }
}
