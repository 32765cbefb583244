//! The options of requests, read from queries (and, for deletes, bodies) and checked with the words
//! of the upstream server.

use std::num::IntErrorKind;

use lockstep_api::{
    ErrorList, FieldError, Path, Status, decode::FieldValidation, strategy::Propagation,
};
use serde::Deserialize;

use super::{error::invalid_options, query::Query};

/// How long the name of a manager may be.
pub(crate) const FIELD_MANAGER_LENGTH_MAX: usize = 128;

/// Which revision a list must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// The latest, or whatever is at hand: the same thing here.
    Latest,
    /// At least this one.
    NotOlderThan(u64),
    /// Exactly this one.
    Exact(u64),
}

/// What a list or watch asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListOptions {
    /// Whether it is a watch.
    pub(crate) is_watch: bool,
    /// Unparsed label selector.
    pub(crate) label_selector: String,
    /// Unparsed field selector.
    pub(crate) field_selector: String,
    /// `resourceVersion` as given.
    pub(crate) resource_version: String,
    /// `resourceVersionMatch` as given.
    pub(crate) version_match: String,
    /// The page's size; 0 for everything.
    pub(crate) limit: usize,
    /// Where the page begins.
    pub(crate) continue_token: String,
    /// When a watch ends.
    pub(crate) timeout_seconds: Option<u64>,
    /// Whether a watch may carry bookmarks.
    pub(crate) allows_bookmarks: bool,
    /// Whether a watch begins with what is there already.
    pub(crate) send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Reads and checks the options of a list or watch.
    pub(crate) fn read(query: &Query, is_watch: bool) -> Result<Self, Status> {
        let limit = query.integer("limit")?.unwrap_or_default();
        let timeout = query.integer("timeoutSeconds")?;
        let options = Self {
            is_watch,
            label_selector: query.text("labelSelector").to_owned(),
            field_selector: query.text("fieldSelector").to_owned(),
            resource_version: query.text("resourceVersion").to_owned(),
            version_match: query.text("resourceVersionMatch").to_owned(),
            // A negative limit is no limit, a negative timeout is none.
            limit: usize::try_from(limit).unwrap_or_default(),
            continue_token: query.text("continue").to_owned(),
            timeout_seconds: timeout.and_then(|s| u64::try_from(s).ok()).filter(|&s| s > 0),
            allows_bookmarks: query.flag("allowWatchBookmarks"),
            send_initial_events: query.optional_flag("sendInitialEvents"),
        };
        let errors = if is_watch { options.watch_errors() } else { options.list_errors() };
        if errors.is_empty() { Ok(options) } else { Err(invalid_options("ListOptions", &errors)) }
    }

    /// The revision of `resourceVersion`; 0 when absent.
    pub(crate) fn revision(&self) -> Result<u64, Status> {
        if self.resource_version.is_empty() {
            return Ok(0);
        }
        parse_revision(&self.resource_version).map_err(|why| match self.is_watch {
            true => Status::bad_request(why),
            false => Status::bad_request(format!("invalid resource version: {why}")),
        })
    }

    /// Which revision a list must show.
    pub(crate) fn freshness(&self) -> Result<Freshness, Status> {
        let revision = self.revision()?;
        let is_exact = match self.version_match.as_str() {
            "Exact" => true,
            // Without a match, a page is cut from exactly the revision asked for.
            "" => self.limit > 0 && revision > 0,
            _ => false,
        };
        Ok(match revision {
            0 => Freshness::Latest,
            _ if is_exact => Freshness::Exact(revision),
            _ => Freshness::NotOlderThan(revision),
        })
    }

    fn list_errors(&self) -> ErrorList {
        let path = Path::new("resourceVersionMatch");
        let mut errors = ErrorList::new();
        if !self.version_match.is_empty() {
            if self.resource_version.is_empty() {
                errors.push(FieldError::forbidden(
                    &path,
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if !self.continue_token.is_empty() {
                errors.push(forbidden_with_continue(&path));
            }
            if !matches!(self.version_match.as_str(), "Exact" | "NotOlderThan") {
                let supported = ["Exact", "NotOlderThan", ""];
                errors.push(FieldError::not_supported(&path, &self.version_match, &supported));
            }
            if self.version_match == "Exact" && self.resource_version == "0" {
                errors.push(FieldError::forbidden(
                    &path,
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
        }
        if self.send_initial_events.is_some() {
            errors.push(FieldError::forbidden(
                &Path::new("sendInitialEvents"),
                "sendInitialEvents is forbidden for list",
            ));
        }
        errors
    }

    fn watch_errors(&self) -> ErrorList {
        let path = Path::new("resourceVersionMatch");
        let mut errors = ErrorList::new();
        let wanted = "NotOlderThan";
        if self.send_initial_events.is_some() && self.version_match != wanted {
            errors.push(FieldError::forbidden(
                &path,
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        if !self.version_match.is_empty() {
            if self.send_initial_events.is_none() {
                errors.push(FieldError::forbidden(
                    &path,
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
                     provided",
                ));
            }
            if self.version_match != wanted {
                errors.push(FieldError::not_supported(&path, &self.version_match, &[wanted]));
            }
            if !self.continue_token.is_empty() {
                errors.push(forbidden_with_continue(&path));
            }
        }
        errors
    }
}

/// The revision that `resourceVersion` says, or what is wrong with it.
pub(crate) fn parse_revision(text: &str) -> Result<u64, String> {
    let why = match text.parse() {
        Ok(revision) if !text.starts_with('+') => return Ok(revision),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => "value out of range",
        _ => "invalid syntax",
    };
    Err(format!(
        "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {why}"
    ))
}

fn forbidden_with_continue(path: &Path) -> FieldError {
    FieldError::forbidden(path, "resourceVersionMatch is forbidden when continue is provided")
}

/// The options of a create, update or patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MutationOptions {
    /// Whether nothing is stored.
    pub(crate) is_dry_run: bool,
    /// Who owns the fields written.
    pub(crate) field_manager: String,
    /// What to do about fields nobody knows.
    pub(crate) field_validation: FieldValidation,
}

impl MutationOptions {
    /// Reads and checks the options; `kind` is `CreateOptions`, `UpdateOptions`, `PatchOptions` or,
    /// for those of a patch that is applied, `ApplyOptions`.
    pub(crate) fn read(query: &Query, kind: &str) -> Result<Self, Status> {
        let field_manager = query.text("fieldManager").to_owned();
        let mut errors = ErrorList::new();
        if kind == "PatchOptions" && query.first("force").is_some() {
            errors.push(FieldError::forbidden(
                &Path::new("force"),
                "may not be specified for non-apply patch",
            ));
        }
        let (kind, is_apply) = match kind {
            "ApplyOptions" => ("PatchOptions", true),
            kind => (kind, false),
        };
        if is_apply && field_manager.is_empty() {
            let path = Path::new("fieldManager");
            errors.push(FieldError::required(&path, "is required for apply patch"));
        }
        errors.extend(field_manager_errors(&field_manager));
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        errors.extend(dry_run_errors(&dry_run));
        let text = query.text("fieldValidation");
        let field_validation = FieldValidation::parse(text).unwrap_or_else(|| {
            let supported = ["", "Ignore", "Strict", "Warn"];
            let path = Path::new("fieldValidation");
            errors.push(FieldError::not_supported(&path, text, &supported));
            FieldValidation::default()
        });
        if !errors.is_empty() {
            return Err(invalid_options(kind, &errors));
        }
        Ok(Self { is_dry_run: !dry_run.is_empty(), field_manager, field_validation })
    }
}

fn field_manager_errors(manager: &str) -> ErrorList {
    let path = Path::new("fieldManager");
    let mut errors = ErrorList::new();
    if manager.len() > FIELD_MANAGER_LENGTH_MAX {
        errors.push(FieldError::too_long(&path, FIELD_MANAGER_LENGTH_MAX));
    }
    for (position, character) in manager.char_indices().filter(|(_, c)| c.is_control()) {
        let code = u32::from(character);
        let detail = format!("invalid character U+{code:04X} (at position {position})");
        errors.push(FieldError::invalid(&path, manager, &detail));
    }
    errors
}

fn dry_run_errors(values: &[&str]) -> Option<FieldError> {
    let is_known = values.iter().all(|&value| value == "All");
    (!is_known).then(|| FieldError::not_supported(&Path::new("dryRun"), values, &["All"]))
}

/// The options of a delete.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DeleteRequest {
    kind: String,
    api_version: String,
    /// Seconds of grace asked for.
    pub(crate) grace_period_seconds: Option<i64>,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    dry_run: Option<Vec<String>>,
    preconditions: Option<Preconditions>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl DeleteRequest {
    /// The options in a body; `body` is JSON.
    pub(crate) fn from_body(body: &[u8]) -> Result<Self, Status> {
        let failed =
            |error| Status::bad_request(format!("unable to decode DeleteOptions: {error}"));
        // By way of a map, because serde would take a list for a struct.
        let object: serde_json::Map<_, _> = serde_json::from_slice(body).map_err(failed)?;
        let options: Self = serde_json::from_value(object.into()).map_err(failed)?;
        if !matches!(options.kind.as_str(), "" | "DeleteOptions") {
            return Err(Status::bad_request("decoded object cannot be converted to DeleteOptions"));
        }
        options.checked()
    }

    /// The options in a query.
    pub(crate) fn from_query(query: &Query) -> Result<Self, Status> {
        let dry_run: Vec<String> = query.all("dryRun").map(str::to_owned).collect();
        Self {
            grace_period_seconds: query.integer("gracePeriodSeconds")?,
            propagation_policy: query.first("propagationPolicy").map(str::to_owned),
            orphan_dependents: query.optional_flag("orphanDependents"),
            dry_run: Some(dry_run),
            ..Self::default()
        }
        .checked()
    }

    /// What happens to dependents, if the request says so.
    pub(crate) fn propagation(&self) -> Option<Propagation> {
        match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some(_), _) | (None, Some(false)) => Some(Propagation::Background),
            (None, None) => None,
        }
    }

    /// Whether nothing is deleted.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run.as_ref().is_some_and(|values| !values.is_empty())
    }

    /// Whether the deprecated `orphanDependents: false` was sent: such clients expect 202.
    pub(crate) fn expects_accepted(&self) -> bool {
        self.orphan_dependents == Some(false)
    }

    /// The uid the object must have.
    pub(crate) fn uid(&self) -> Option<&str> {
        self.preconditions.as_ref()?.uid.as_deref()
    }

    /// The resourceVersion the object must have.
    pub(crate) fn resource_version(&self) -> Option<&str> {
        self.preconditions.as_ref()?.resource_version.as_deref()
    }

    fn checked(self) -> Result<Self, Status> {
        let path = Path::new("propagationPolicy");
        let mut errors = ErrorList::new();
        if let Some(policy) = &self.propagation_policy {
            if self.orphan_dependents.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(FieldError::invalid(&path, policy, detail));
            }
            if !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan") {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(&path, policy, &supported));
            }
        }
        let dry_run = self.dry_run.iter().flatten().map(String::as_str).collect::<Vec<_>>();
        errors.extend(dry_run_errors(&dry_run));
        if errors.is_empty() { Ok(self) } else { Err(invalid_options("DeleteOptions", &errors)) }
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
