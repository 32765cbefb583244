//! Field paths and the errors that point at them, worded as Kubernetes words them.

use std::fmt;

use crate::quote::quoted;

/// Where in an object something is, written `spec.containers[0].ports[1].protocol`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(String);

impl Path {
    /// A path that starts at `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The path of the field `name` of the object at this path.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        // Every check of every write names its field: joining is several times cheaper than
        // formatting.
        if self.0.is_empty() { Self(name.to_owned()) } else { Self([&self.0, ".", name].concat()) }
    }

    /// The path of element `index` of the list at this path.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.key(&index.to_string())
    }

    /// The path of the entry `key` of the map at this path.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self([&self.0, "[", key, "]"].concat())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The field must be given.
    Required,
    /// The value is malformed or out of range.
    Invalid,
    /// The value is not one of a fixed set.
    NotSupported,
    /// The field may not be set, or not now.
    Forbidden,
    /// The value must be unique and is not.
    Duplicate,
    /// A string is too long.
    TooLong,
    /// A list or map has too many entries.
    TooMany,
    /// The value names something that does not exist.
    NotFound,
    /// The value has the wrong JSON type.
    TypeInvalid,
    /// Something is wrong that no single field is to blame for.
    Internal,
}

impl ErrorKind {
    /// The `reason` of the cause in a Status.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }
}

/// One thing wrong with one field. `body` is everything after the path: `Invalid value: "x": why`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Where.
    pub path: Path,
    /// The message without the path.
    pub body: String,
}

impl FieldError {
    /// `Required value` with an optional explanation.
    pub fn required(path: &Path, detail: &str) -> Self {
        let body = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        Self { kind: ErrorKind::Required, path: path.clone(), body }
    }

    /// `Invalid value: <value>: <detail>`; `value` is printed as JSON, a string as Go
    /// quotes it.
    pub fn invalid(path: &Path, value: impl serde::Serialize, detail: &str) -> Self {
        let body = format!("Invalid value: {}: {detail}", shown(&value));
        Self { kind: ErrorKind::Invalid, path: path.clone(), body }
    }

    /// As [`FieldError::invalid`] for a value that upstream holds by a pointer: it shows the JSON
    /// of those, also of strings.
    pub fn invalid_json(path: &Path, value: impl serde::Serialize, detail: &str) -> Self {
        let json = serde_json::to_string(&value).unwrap_or_default();
        let body = format!("Invalid value: {json}: {detail}");
        Self { kind: ErrorKind::Invalid, path: path.clone(), body }
    }

    /// `Invalid value: <detail>`, for errors about something too large to be shown.
    pub fn invalid_unshown(path: &Path, detail: &str) -> Self {
        let body = format!("Invalid value: {detail}");
        Self { kind: ErrorKind::Invalid, path: path.clone(), body }
    }

    /// `Unsupported value: <value>: supported values: "a", "b"`; the set is printed in the order
    /// given.
    pub fn not_supported(path: &Path, value: impl serde::Serialize, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|s| quoted(s)).collect();
        let body = if quoted.is_empty() {
            format!("Unsupported value: {}", shown(&value))
        } else {
            format!("Unsupported value: {}: supported values: {}", shown(&value), quoted.join(", "))
        };
        Self { kind: ErrorKind::NotSupported, path: path.clone(), body }
    }

    /// `Forbidden: <detail>`.
    pub fn forbidden(path: &Path, detail: &str) -> Self {
        let body = format!("Forbidden: {detail}");
        Self { kind: ErrorKind::Forbidden, path: path.clone(), body }
    }

    /// `Duplicate value: <value>`.
    pub fn duplicate(path: &Path, value: impl serde::Serialize) -> Self {
        let body = format!("Duplicate value: {}", shown(&value));
        Self { kind: ErrorKind::Duplicate, path: path.clone(), body }
    }

    /// `Too long: may not be more than <max> bytes`.
    pub fn too_long(path: &Path, max: usize) -> Self {
        let body = format!("Too long: may not be more than {max} bytes");
        Self { kind: ErrorKind::TooLong, path: path.clone(), body }
    }

    /// `Too many: <actual>: must have at most <max> items`.
    pub fn too_many(path: &Path, actual: usize, max: usize) -> Self {
        let noun = if max == 1 { "item" } else { "items" };
        let body = format!("Too many: {actual}: must have at most {max} {noun}");
        Self { kind: ErrorKind::TooMany, path: path.clone(), body }
    }

    /// `Internal error: <detail>` of no field: what webhooks say of the object as a whole.
    pub fn internal(detail: &str) -> Self {
        let body = format!("Internal error: {detail}");
        Self { kind: ErrorKind::Internal, path: Path::new("<nil>"), body }
    }

    /// `Not found: <value>`.
    pub fn not_found(path: &Path, value: impl serde::Serialize) -> Self {
        let body = format!("Not found: {}", shown(&value));
        Self { kind: ErrorKind::NotFound, path: path.clone(), body }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body)
    }
}

fn shown(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    match serde_json::from_str::<String>(&json) {
        Ok(text) => quoted(&text),
        Err(_) => json,
    }
}

/// All that is wrong with one object, in the order it was found.
pub type ErrorList = Vec<FieldError>;
