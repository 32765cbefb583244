//! What an API server finds wrong with a definition.

mod conversion;
mod names;
mod properties;
mod shown;
mod structural;
mod url;

use serde_json::Value;

use super::{condition, defaults, fieldpath::follow, schema::Schema};
use crate::{
    field::{ErrorList, FieldError, Path},
    json::{at, flag, list, text},
    names::{dns1035_label, dns1123_subdomain, name_is_dns_subdomain},
    strategy::Json,
};

pub(super) use names::{Approval, approval};

/// The most fields that objects of a version can be selected by.
const SELECTABLE_MAX: usize = 8;

/// What is wrong with a new definition.
pub(super) fn of_new(definition: &Json) -> ErrorList {
    let mut errors = of_name(definition);
    errors.extend(of_spec(definition, None));
    errors.extend(of_status(definition));
    errors.extend(names::approval_faults(definition, None));
    if flag(definition, &["spec", "preserveUnknownFields"]) {
        let path = Path::new("spec.preserveUnknownFields");
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                   spec.versions[*].schema instead";
        errors.push(FieldError::invalid(&path, true, why));
    }
    errors
}

/// What is wrong with a new version of a definition.
pub(super) fn of_changed(definition: &Json, old: &Json) -> ErrorList {
    let mut errors = of_spec(definition, Some(old));
    let mut constant = vec!["group", "names.plural"];
    if condition(old, "Established").is_some_and(|it| it["status"] == "True") {
        constant.splice(0..0, ["scope", "names.kind"]);
    }
    for name in constant {
        let keys: Vec<&str> = std::iter::once("spec").chain(name.split('.')).collect();
        let (is, was) = (text(definition, &keys), text(old, &keys));
        if is != was {
            let path = Path::new("spec").child(name);
            errors.push(FieldError::invalid(&path, is, "field is immutable"));
        }
    }
    errors.extend(of_status(definition));
    errors.extend(names::approval_faults(definition, Some(old)));
    let was_kept = flag(old, &["spec", "preserveUnknownFields"]);
    if flag(definition, &["spec", "preserveUnknownFields"]) && !was_kept {
        let path = Path::new("spec.preserveUnknownFields");
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                   spec.versions[*].schema instead";
        errors.push(FieldError::invalid(&path, true, why));
    }
    errors
}

/// What is wrong with the status of a definition.
pub(super) fn of_status_update(definition: &Json) -> ErrorList {
    names::faults(at(definition, &["status", "acceptedNames"]), &Path::new("status.acceptedNames"))
}

/// The name is that of the resource.
fn of_name(definition: &Json) -> ErrorList {
    let name = text(definition, &["metadata", "name"]);
    let spec = |key: &[&str]| text(definition, &[&["spec"], key].concat());
    let wanted = format!("{}.{}", spec(&["names", "plural"]), spec(&["group"]));
    // What names in general must be like is found elsewhere.
    if name == wanted || name.is_empty() || !name_is_dns_subdomain(name, false).is_empty() {
        return ErrorList::new();
    }
    let why = "must be spec.names.plural+\".\"+spec.group";
    vec![FieldError::invalid(&Path::new("metadata.name"), name, why)]
}

fn of_spec(definition: &Json, old: Option<&Json>) -> ErrorList {
    let path = Path::new("spec");
    let empty = Json::new();
    let spec = at(definition, &["spec"]).and_then(Value::as_object).unwrap_or(&empty);
    let mut errors = of_group_and_scope(spec, &path);
    let versions = list(spec, &["versions"]);
    for (index, version) in versions.iter().enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let path = path.child("versions").index(index).child("schema.openAPIV3Schema");
            errors.push(FieldError::required(&path, ""));
        }
    }
    let shared = Shared::of(versions);
    for (index, version) in versions.iter().enumerate() {
        errors.extend(of_version(version, &shared, &path.child("versions").index(index)));
    }
    let given: Vec<&str> = versions.iter().filter_map(|version| version["name"].as_str()).collect();
    let mut known = given.clone();
    known.sort_unstable();
    known.dedup();
    let mut of_versions = |why| {
        let shown: Vec<shown::Version<'_>> =
            versions.iter().map(|version| shown::Version::of(version, &shared)).collect();
        errors.push(FieldError::invalid(&path.child("versions"), shown, why));
    };
    if known.len() < given.len() {
        of_versions("must contain unique version names");
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        of_versions("must have exactly one version marked as storage version");
    }
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(spec, &["names", name]).is_empty() {
            errors.push(FieldError::required(&path.child("names").child(name), ""));
        }
    }
    errors.extend(names::faults(spec.get("names"), &path.child("names")));
    if let Some(version) = versions.first() {
        errors.extend(shared.faults(version, versions, &path));
    }
    errors.extend(conversion::faults(spec, old, &path.child("conversion")));
    errors
}

fn of_group_and_scope(spec: &Json, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let group = text(spec, &["group"]);
    let faults = dns1123_subdomain(group);
    let place = path.child("group");
    if group.is_empty() {
        errors.push(FieldError::required(&place, ""));
    } else if !faults.is_empty() {
        errors.push(FieldError::invalid(&place, group, &faults.join(",")));
    } else if !group.contains('.') {
        let why = "should be a domain with at least one dot";
        errors.push(FieldError::invalid(&place, group, why));
    }
    let scopes = ["Cluster", "Namespaced"];
    match text(spec, &["scope"]) {
        "" => errors.push(FieldError::required(&path.child("scope"), "")),
        scope if scopes.contains(&scope) => {}
        scope => errors.push(FieldError::not_supported(&path.child("scope"), scope, &scopes)),
    }
    errors
}

/// What all versions have in common: upstream looks at it once, under a path of its own.
struct Shared {
    has_schema: bool,
    has_subresources: bool,
    has_columns: bool,
    has_fields: bool,
}

impl Shared {
    fn of(versions: &[Value]) -> Self {
        let is_same = |key: &str| versions.iter().all(|version| version[key] == versions[0][key]);
        Self {
            has_schema: is_same("schema"),
            has_subresources: is_same("subresources"),
            has_columns: is_same("additionalPrinterColumns"),
            has_fields: is_same("selectableFields"),
        }
    }

    fn faults(&self, version: &Value, versions: &[Value], path: &Path) -> ErrorList {
        let mut errors = ErrorList::new();
        if self.has_schema {
            let has_status =
                versions.iter().any(|version| version["subresources"]["status"].is_object());
            let schema = &version["schema"]["openAPIV3Schema"];
            errors.extend(of_schema(schema, has_status, &path.child("validation")));
        }
        if self.has_subresources {
            let scale = &version["subresources"]["scale"];
            errors.extend(names::scale_faults(scale, &path.child("subresources")));
        }
        if self.has_columns {
            errors.extend(of_columns(version, &path.child("additionalPrinterColumns")));
        }
        if self.has_fields {
            errors.extend(of_fields(version, &path.child("selectableFields")));
        }
        errors
    }
}

fn of_version(version: &Value, shared: &Shared, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = version["name"].as_str().unwrap_or_default();
    let faults = dns1035_label(name);
    if !faults.is_empty() {
        errors.push(FieldError::invalid(&path.child("name"), name, &faults.join(",")));
    }
    if let Some(warning) = version["deprecationWarning"].as_str() {
        let is_deprecated = version["deprecated"] == true;
        for why in names::deprecation_faults(is_deprecated, warning) {
            let path = path.child("deprecationWarning");
            errors.push(FieldError::invalid_json(&path, warning, &why));
        }
    }
    if !shared.has_schema {
        let has_status = version["subresources"]["status"].is_object();
        let schema = &version["schema"]["openAPIV3Schema"];
        errors.extend(of_schema(schema, has_status, &path.child("schema")));
    }
    if !shared.has_subresources {
        let scale = &version["subresources"]["scale"];
        errors.extend(names::scale_faults(scale, &path.child("subresources")));
    }
    if !shared.has_columns {
        errors.extend(of_columns(version, &path.child("additionalPrinterColumns")));
    }
    if !shared.has_fields {
        errors.extend(of_fields(version, &path.child("selectableFields")));
    }
    errors
}

fn of_schema(schema: &Value, has_status: bool, path: &Path) -> ErrorList {
    let path = path.child("openAPIV3Schema");
    if !schema.is_object() {
        return ErrorList::new();
    }
    let mut errors = if has_status { properties::at_root(schema, &path) } else { ErrorList::new() };
    if schema["nullable"] == true {
        let why = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(&path.child("nullable"), why));
    }
    let read = Schema::read(schema);
    let unstructured = structural::faults(schema, &path);
    let has_values = match unstructured.is_empty() {
        true => {
            let faults = defaults::faults(&read, &path);
            let is_right = faults.is_empty();
            errors.extend(faults);
            is_right
        }
        false => false,
    };
    errors.extend(unstructured);
    errors.extend(properties::faults(schema, &read, has_values, &path));
    errors
}

fn of_columns(version: &Value, path: &Path) -> ErrorList {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] =
        ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let mut errors = ErrorList::new();
    let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
    for (index, column) in columns.enumerate() {
        let path = path.index(index);
        let text = |key: &str| column[key].as_str().unwrap_or_default();
        if text("name").is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        let one_of = |known: &[&str]| format!("must be one of {}", known.join(","));
        match text("type") {
            "" => errors.push(FieldError::required(&path.child("type"), &one_of(&TYPES))),
            kind if TYPES.contains(&kind) => {}
            kind => {
                errors.push(FieldError::invalid(&path.child("type"), kind, &one_of(&TYPES)));
            }
        }
        let format = text("format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            errors.push(FieldError::invalid(&path.child("format"), format, &one_of(&FORMATS)));
        }
        match text("jsonPath") {
            "" => errors.push(FieldError::required(&path.child("JSONPath"), "")),
            given => errors.extend(names::path_fault(given, &path.child("JSONPath"))),
        }
    }
    errors
}

fn of_fields(version: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let schema = Schema::read(&version["schema"]["openAPIV3Schema"]);
    let mut seen: Vec<String> = Vec::new();
    let fields = version["selectableFields"].as_array().into_iter().flatten();
    for (index, field) in fields.enumerate() {
        let path = path.index(index).child("jsonPath");
        let given = field["jsonPath"].as_str().unwrap_or_default();
        if given.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let (followed, found) = match follow(&schema, given, false) {
            Ok((followed, found)) => (followed.to_string(), found),
            Err(why) => {
                let why = format!("is an invalid path: {why}");
                errors.push(FieldError::invalid(&path, given, &why));
                continue;
            }
        };
        if followed.split(['.', '[']).next() == Some("metadata") {
            let why = "must not point to fields in metadata";
            errors.push(FieldError::invalid(&path, given, why));
        }
        if !matches!(&*found.kind, "string" | "boolean" | "integer") {
            let why = "must point to a field of type string, boolean or integer. Enum string \
                       fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&path, given, why));
        }
        if seen.contains(&followed) {
            errors.push(FieldError::duplicate(&path, given));
        } else {
            seen.push(followed);
        }
    }
    if seen.len() > SELECTABLE_MAX {
        errors.push(FieldError::too_many(path, seen.len(), SELECTABLE_MAX));
    }
    errors
}

fn of_status(definition: &Json) -> ErrorList {
    let mut errors = of_status_update(definition);
    let path = Path::new("status.storedVersions");
    let stored = list(definition, &["status", "storedVersions"]);
    if stored.is_empty() {
        let why = "must have at least one stored version";
        // None at all is null.
        let shown = at(definition, &["status", "storedVersions"]).unwrap_or(&Value::Null);
        errors.push(FieldError::invalid(&path, shown, why));
        return errors;
    }
    let versions = list(definition, &["spec", "versions"]);
    for version in versions.iter().filter(|version| version["storage"] == true) {
        if !stored.contains(&version["name"]) {
            let name = version["name"].as_str().unwrap_or_default();
            let why = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(&path, stored, &why));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if !versions.iter().any(|version| version["name"] == *name) {
            let name = name.as_str().unwrap_or_default();
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must \
                 remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.push(FieldError::invalid(&path.index(index), name, &why));
        }
    }
    errors
}

#[cfg(test)]
mod tests;
