//! What every object says about itself: the parsed view the store keeps, and the rules for it.

use jiff::Timestamp;
use serde_json::Value;

use crate::{json, status::Status, strategy::Json};

mod managed;
mod validation;

pub(crate) use validation::invalid;
pub use validation::{
    ANNOTATIONS_MAX, annotations_size, validate_annotations, validate_create, validate_embedded,
    validate_finalizer_name, validate_label_name, validate_label_selector, validate_labels,
    validate_owner_references, validate_qualified_finalizers, validate_update,
};

/// Keeps an object until all its dependents that block its deletion are gone.
pub const FINALIZER_FOREGROUND: &str = "foregroundDeletion";
/// Keeps an object until its dependents have been cut loose.
pub const FINALIZER_ORPHAN: &str = "orphan";

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Group and version of the owner.
    pub api_version: Box<str>,
    /// Kind of the owner.
    pub kind: Box<str>,
    /// Name of the owner.
    pub name: Box<str>,
    /// The owner's uid: this, not the name, says who the owner is.
    pub uid: Box<str>,
    /// Whether the owner is the one that manages the object.
    pub controller: bool,
    /// Whether a foreground deletion of the owner waits for the object.
    pub block_owner_deletion: bool,
}

/// The metadata of a stored object, parsed. Labels are sorted by key; lists keep their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Name.
    pub name: Box<str>,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: Box<str>,
    /// Uid.
    pub uid: Box<str>,
    /// The revision that wrote the object, 0 while it has none.
    pub resource_version: u64,
    /// Generation, 0 for kinds that keep none.
    pub generation: i64,
    /// Labels, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// Owners.
    pub owners: Box<[Owner]>,
    /// Finalizers.
    pub finalizers: Box<[Box<str>]>,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// When it is to be gone; set once its deletion was asked for.
    pub deletion: Option<Timestamp>,
    /// How many seconds of grace its deletion gives.
    pub deletion_grace_seconds: Option<i64>,
}

impl Meta {
    /// Reads the metadata of an object. What is missing or malformed reads as absent: accepted
    /// objects have passed the schema and [`validate_create`].
    pub fn of(object: &Json) -> Self {
        let Some(meta) = object.get("metadata").and_then(Value::as_object) else {
            return Self::default();
        };
        // The map is ordered by key, so the labels come out sorted.
        let labels = meta
            .get("labels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
            .collect();
        let finalizers =
            json::list(meta, &["finalizers"]).iter().filter_map(Value::as_str).map(Into::into);
        Self {
            name: json::text(meta, &["name"]).into(),
            namespace: json::text(meta, &["namespace"]).into(),
            uid: json::text(meta, &["uid"]).into(),
            resource_version: json::text(meta, &["resourceVersion"]).parse().unwrap_or_default(),
            generation: json::integer(meta, &["generation"]).unwrap_or_default(),
            labels,
            owners: json::list(meta, &["ownerReferences"]).iter().map(owner).collect(),
            finalizers: finalizers.collect(),
            created: time(meta, "creationTimestamp"),
            deletion: time(meta, "deletionTimestamp"),
            deletion_grace_seconds: json::integer(meta, &["deletionGracePeriodSeconds"]),
        }
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }

    /// The owner that manages the object.
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.controller)
    }

    /// Whether its deletion was asked for.
    pub fn is_deleting(&self) -> bool {
        self.deletion.is_some()
    }
}

/// The resourceVersion a request names, `None` when it names none.
///
/// # Errors
/// 400 when it is no number: revisions are opaque to clients but not to the server.
pub fn requested_version(object: &Json) -> Result<Option<u64>, Status> {
    let text = json::text(object, &["metadata", "resourceVersion"]);
    // "0" means "no version" just as the empty text does.
    if text.is_empty() || text == "0" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        Status::bad_request(format!("strconv.ParseUint: parsing {text:?}: invalid syntax"))
    })
}

fn owner(value: &Value) -> Owner {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().into();
    let flag = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or_default();
    Owner {
        api_version: text("apiVersion"),
        kind: text("kind"),
        name: text("name"),
        uid: text("uid"),
        controller: flag("controller"),
        block_owner_deletion: flag("blockOwnerDeletion"),
    }
}

fn time(meta: &Json, key: &str) -> Option<Timestamp> {
    json::text(meta, &[key]).parse().ok()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::{Json, Meta, Owner, requested_version};

    fn object(value: Value) -> Json {
        value.as_object().expect("tests pass objects").clone()
    }

    #[test]
    fn metadata_is_read_whole() {
        let meta = Meta::of(&object(json!({"metadata": {
            "name": "p", "namespace": "d", "uid": "u", "resourceVersion": "12", "generation": 3,
            "labels": {"b": "2", "a": "1"}, "finalizers": ["z", "y"],
            "creationTimestamp": "2026-11-15T10:00:00Z",
            "deletionTimestamp": "2026-11-15T10:01:00Z", "deletionGracePeriodSeconds": 30,
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "ju", "controller": true}
            ],
        }})));
        assert_eq!(
            meta,
            Meta {
                name: "p".into(),
                namespace: "d".into(),
                uid: "u".into(),
                resource_version: 12,
                generation: 3,
                labels: [("a".into(), "1".into()), ("b".into(), "2".into())].into(),
                owners: [Owner {
                    api_version: "batch/v1".into(),
                    kind: "Job".into(),
                    name: "j".into(),
                    uid: "ju".into(),
                    controller: true,
                    block_owner_deletion: false,
                }]
                .into(),
                finalizers: ["z".into(), "y".into()].into(),
                created: Some(Timestamp::from_second(1_794_736_800).unwrap()),
                deletion: Some(Timestamp::from_second(1_794_736_860).unwrap()),
                deletion_grace_seconds: Some(30),
            }
        );
        assert_eq!(meta.label("b"), Some("2"));
        assert_eq!(meta.label("c"), None);
        assert_eq!(&*meta.controller().unwrap().name, "j");
        assert!(meta.is_deleting());
    }

    #[test]
    fn absent_metadata_reads_as_empty() {
        assert_eq!(Meta::of(&Json::new()), Meta::default());
        assert_eq!(
            Meta::of(&object(json!({"metadata": {"labels": null, "creationTimestamp": null}}))),
            Meta::default()
        );
    }

    #[test]
    fn a_requested_version_is_a_number_or_nothing() {
        let version =
            |v: Value| requested_version(&object(json!({"metadata": {"resourceVersion": v}})));
        assert_eq!(version(json!("7")).unwrap(), Some(7));
        assert_eq!(version(json!("")).unwrap(), None);
        assert_eq!(version(json!("0")).unwrap(), None);
        assert_eq!(version(json!(null)).unwrap(), None);
        assert_eq!(version(json!("x")).unwrap_err().code, 400);
    }
}
