//! PersistentVolumeClaim: a wish for a folder that outlives pods.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaimSpec;
use serde_json::{Value, json};

use crate::{
    duration::age,
    field::{ErrorList, FieldError, Path},
    json::{at, list, object_mut, set_default, text},
    kinds::{IMMUTABLE, view, without_absent},
    names,
    pod::validation::validate_claim_spec,
    quantity::Quantity,
    strategy::{Column, Json, MetadataCheck, Strategy, WriteContext},
    table::{self, AGE, NAME, column, wide},
};

/// Finalizer of claims that keeps them as long as a pod uses them.
pub const PROTECTION: &str = "kubernetes.io/pvc-protection";

const FIXED: &str = "spec is immutable after creation except resources.requests and \
                     volumeAttributesClassName for bound claims";

const COLUMNS: &[Column] = &[
    NAME,
    column("Status", "Whether the claim has its volume: Pending, Bound or Lost."),
    column("Volume", "The volume it is bound to."),
    column("Capacity", "How large the volume is."),
    column("Access Modes", "How the volume may be mounted."),
    column("StorageClass", "The class of storage it asks for."),
    column("VolumeAttributesClass", "The class of attributes it asks for."),
    AGE,
    wide("VolumeMode", "Whether it is a file system or a device."),
];

/// PersistentVolumeClaim.
#[derive(Debug)]
pub struct VolumeClaimStrategy;

impl Strategy for VolumeClaimStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        if let Some(Value::Object(spec)) = object.get_mut("spec") {
            set_default(spec, "volumeMode", "Filesystem");
        }
        set_default(object_mut(object, "status"), "phase", "Pending");
    }

    /// Clears the status, and does what the plugin for objects in use does.
    fn prepare_create(&self, object: &mut Json, _context: &WriteContext) {
        object.insert("status".to_owned(), json!({"phase": "Pending"}));
        let meta = object_mut(object, "metadata");
        let finalizers = meta.entry("finalizers").or_insert_with(|| json!([]));
        if let Value::Array(finalizers) = finalizers
            && !finalizers.iter().any(|name| name == PROTECTION)
        {
            finalizers.push(PROTECTION.into());
        }
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        let mut errors = ErrorList::new();
        let spec: PersistentVolumeClaimSpec = view(object, "spec", &mut errors);
        if errors.is_empty() {
            errors = validate_claim_spec(&spec, &Path::new("spec"));
        }
        errors
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        let mut errors = self.validate_create(object);
        let path = Path::new("spec");
        let is_bound = text(old, &["status", "phase"]) == "Bound";
        if comparable(object, old, is_bound) != comparable(old, old, is_bound) {
            errors.push(FieldError::forbidden(&path, FIXED));
        }
        let size = |object: &Json, path: &[&str]| Quantity::parse(text(object, path)).ok();
        let requested = ["spec", "resources", "requests", "storage"];
        let has = ["status", "capacity", "storage"];
        if let (Some(new), Some(before)) = (size(object, &requested), size(old, &requested))
            && new < before
            && size(old, &has).is_none_or(|has| new <= has)
        {
            let path = path.child("resources").child("requests").child("storage");
            let why = "field can not be less than status.capacity";
            errors.push(FieldError::forbidden(&path, why));
        }
        let mode = |object: &Json| at(object, &["spec", "volumeMode"]).cloned();
        if mode(object) != mode(old) {
            errors.push(FieldError::invalid(&Path::new("volumeMode"), mode(object), IMMUTABLE));
        }
        errors
    }

    fn metadata_check(&self) -> MetadataCheck {
        MetadataCheck::Both
    }

    fn delete_returns_object(&self) -> bool {
        true
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        let is_deleting = at(object, &["metadata", "deletionTimestamp"]).is_some();
        let phase = if is_deleting { "Terminating" } else { text(object, &["status", "phase"]) };
        let volume = text(object, &["spec", "volumeName"]);
        let (capacity, modes) = match volume {
            "" => (String::new(), String::new()),
            _ => (text(object, &["status", "capacity", "storage"]).to_owned(), modes(object)),
        };
        let or_unset = |path: &[&str]| match text(object, path) {
            "" => "<unset>".to_owned(),
            text => text.to_owned(),
        };
        vec![
            table::name(object),
            phase.into(),
            volume.into(),
            capacity.into(),
            modes.into(),
            text(object, &["spec", "storageClassName"]).into(),
            or_unset(&["spec", "volumeAttributesClassName"]).into(),
            age(object, now).into(),
            or_unset(&["spec", "volumeMode"]).into(),
        ]
    }
}

/// The spec with what may change as in `old`: the size and the attributes of a bound claim, and the
/// volume, which is set once.
fn comparable(object: &Json, old: &Json, is_bound: bool) -> Value {
    let mut spec = object.get("spec").cloned().unwrap_or_default();
    let before = old.get("spec").cloned().unwrap_or_default();
    if text(old, &["spec", "volumeName"]).is_empty() {
        spec["volumeName"] = Value::Null;
    }
    if is_bound {
        spec["volumeAttributesClassName"] = before["volumeAttributesClassName"].clone();
        if !spec["resources"]["requests"].is_null() {
            spec["resources"]["requests"]["storage"] =
                before["resources"]["requests"]["storage"].clone();
        }
    }
    without_absent(&spec)
}

/// The access modes in short: `RWO,RWX`.
fn modes(object: &Json) -> String {
    let has = |mode: &str| list(object, &["status", "accessModes"]).iter().any(|it| it == mode);
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let found: Vec<&str> =
        known.into_iter().filter(|(mode, _)| has(mode)).map(|(_, short)| short).collect();
    found.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(spec: Value) -> Json {
        let mut object = json!({"metadata": {"name": "c"}, "spec": {"accessModes":
            ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        for (key, value) in spec.as_object().unwrap() {
            object["spec"][key] = value.clone();
        }
        let mut object = object.as_object().unwrap().clone();
        VolumeClaimStrategy.fill_defaults(&mut object);
        object
    }

    fn texts(errors: &ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_new_claim_waits_and_is_protected() {
        let mut object = claim(json!({}));
        object.insert("status".to_owned(), json!({"phase": "Bound"}));
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let context = WriteContext { now, uid: "u".into(), user: "me".into() };
        VolumeClaimStrategy.prepare_create(&mut object, &context);
        assert_eq!(object["status"], json!({"phase": "Pending"}));
        assert_eq!(object["metadata"]["finalizers"], json!([PROTECTION]));
        assert_eq!(object["spec"]["volumeMode"], "Filesystem");
        assert!(VolumeClaimStrategy.validate_create(&object).is_empty());
    }

    #[test]
    fn a_claim_says_how_and_how_much() {
        let cases = [
            (
                json!({"accessModes": []}),
                "spec.accessModes: Required value: at least 1 access mode \
              is required",
            ),
            (json!({"resources": {}}), "spec.resources[storage]: Required value"),
            (
                json!({"volumeMode": "Odd"}),
                "spec.volumeMode: Unsupported value: \"Odd\": supported \
              values: \"Block\", \"Filesystem\"",
            ),
        ];
        for (spec, want) in cases {
            let found = texts(&VolumeClaimStrategy.validate_create(&claim(spec)));
            assert_eq!(found, [want]);
        }
    }

    #[test]
    fn only_the_size_of_a_bound_claim_and_its_volume_once_may_change() {
        let bound = |spec: Value| {
            let mut object = claim(spec);
            object.insert(
                "status".to_owned(),
                json!({"phase": "Bound",
                "capacity": {"storage": "1Gi"}}),
            );
            object
        };
        let size = |size: &str| json!({"resources": {"requests": {"storage": size}}});
        let fixed = format!("spec: Forbidden: {FIXED}");
        let less = "spec.resources.requests.storage: Forbidden: field can not be less than \
                    status.capacity"
            .to_owned();
        let cases = [
            ("the same", claim(json!({})), claim(json!({})), vec![]),
            ("a volume", claim(json!({"volumeName": "v"})), claim(json!({})), vec![]),
            (
                "another volume",
                claim(json!({"volumeName": "w"})),
                claim(json!({"volumeName": "v"})),
                vec![fixed.clone()],
            ),
            ("more, unbound", claim(size("2Gi")), claim(json!({})), vec![fixed.clone()]),
            ("more, bound", bound(size("2Gi")), bound(json!({})), vec![]),
            ("less, bound", bound(size("1Mi")), bound(json!({})), vec![less]),
            (
                "another class",
                bound(json!({"storageClassName": "x"})),
                bound(json!({})),
                vec![fixed],
            ),
        ];
        for (name, new, old, want) in cases {
            assert_eq!(texts(&VolumeClaimStrategy.validate_update(&new, &old)), want, "{name}");
        }
    }

    #[test]
    fn a_row_shows_the_volume_once_there_is_one() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let mut object = claim(json!({}));
        let row = Value::from(VolumeClaimStrategy.row(&object, now));
        assert_eq!(
            row,
            json!(["c", "Pending", "", "", "", "", "<unset>", "<unknown>", "Filesystem"])
        );
        object["spec"]["volumeName"] = json!("v");
        object["status"] = json!({"phase": "Bound", "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany", "ReadWriteOnce"]});
        let row = Value::from(VolumeClaimStrategy.row(&object, now));
        assert_eq!(
            row,
            json!(["c", "Bound", "v", "1Gi", "RWO,RWX", "", "<unset>", "<unknown>", "Filesystem"])
        );
    }
}
