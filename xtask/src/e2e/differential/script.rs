//! Requests, as files have them.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

/// Requests that are sent one after the other, in a namespace of their own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    /// What it is about; also in the name of its namespace.
    pub(super) title: String,
    /// What may differ in every answer.
    #[serde(default)]
    pub(super) differs: Vec<Known>,
    /// The requests.
    pub(super) steps: Vec<Step>,
}

/// One request, or one that is repeated until something holds.
///
/// In paths and bodies `$ns` is the namespace and `$name` what was saved by that name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    /// What it is.
    pub(super) name: String,
    /// The path to send it to, by its verb: exactly one.
    pub(super) get: Option<String>,
    pub(super) post: Option<String>,
    pub(super) put: Option<String>,
    pub(super) patch: Option<String>,
    pub(super) delete: Option<String>,
    /// What to send, as JSON.
    pub(super) body: Option<Value>,
    /// What to send, as it is.
    pub(super) text: Option<String>,
    /// The kind of which a sample is sent in protobuf, as `group/version/Kind`.
    pub(super) sample: Option<String>,
    /// What the body is: a short name or a media type; JSON when nothing is said.
    #[serde(rename = "type")]
    pub(super) media_type: Option<String>,
    /// What to answer with.
    pub(super) accept: Option<String>,
    /// What to keep of the answer for later, as JSON pointers.
    #[serde(default)]
    pub(super) save: BTreeMap<String, String>,
    /// Repeated until the answer has these, as JSON pointers.
    #[serde(default)]
    pub(super) until: BTreeMap<String, Value>,
    /// What may differ in its answer.
    #[serde(default)]
    pub(super) differs: Vec<Known>,
}

/// A difference that stays.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    /// The beginning of a JSON pointer into code, headers and body; `*` is any one name.
    pub(super) at: String,
    /// The name of its explanation.
    pub(super) why: String,
}

impl Known {
    /// The name of its explanation.
    pub(super) fn why(&self) -> &str {
        &self.why
    }

    /// Whether it is about this place, or one inside it.
    pub(super) fn covers(&self, at: &str) -> bool {
        let mut names = at.split('/');
        self.at.split('/').all(|known| names.next().is_some_and(|it| known == "*" || known == it))
    }
}

impl Script {
    /// The namespace it works in.
    pub(super) fn namespace(&self) -> String {
        format!("differential-{}", self.title.replace(' ', "-"))
    }

    /// All differences it knows.
    pub(super) fn known(&self) -> impl Iterator<Item = &Known> {
        self.differs.iter().chain(self.steps.iter().flat_map(|step| &step.differs))
    }
}

impl Step {
    /// The verb and the path.
    pub(super) fn target(&self) -> Result<(http::Method, &str)> {
        let verbs = [
            (http::Method::GET, &self.get),
            (http::Method::POST, &self.post),
            (http::Method::PUT, &self.put),
            (http::Method::PATCH, &self.patch),
            (http::Method::DELETE, &self.delete),
        ];
        let mut given = verbs.into_iter().filter_map(|(verb, path)| Some((verb, path.as_deref()?)));
        let target = given.next().with_context(|| format!("{}: no verb", self.name))?;
        ensure!(given.next().is_none(), "{}: more than one verb", self.name);
        Ok(target)
    }

    /// The media type of its body.
    pub(super) fn media_type(&self) -> &str {
        match self.media_type.as_deref() {
            None if self.sample.is_some() => "application/vnd.kubernetes.protobuf",
            None | Some("json") => "application/json",
            Some("yaml") => "application/yaml",
            Some("merge") => "application/merge-patch+json",
            Some("patch") => "application/json-patch+json",
            Some("strategic") => "application/strategic-merge-patch+json",
            Some("apply") => "application/apply-patch+yaml",
            Some(other) => other,
        }
    }

    /// The form of answer it asks for.
    pub(super) fn accept(&self) -> &str {
        match self.accept.as_deref() {
            None => "application/json",
            Some("table") => "application/json;as=Table;v=v1;g=meta.k8s.io",
            Some("metadata") => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            Some("metadata-list") => {
                "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
            }
            Some(other) => other,
        }
    }
}

/// All scripts of a folder, in the order of their names.
pub(super) fn all(folder: &Path) -> Result<Vec<Script>> {
    let entries = fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|it| it == "yaml"));
    paths.sort();
    let read = |path: &std::path::PathBuf| -> Result<Script> {
        let text = fs::read_to_string(path)?;
        serde_saphyr::from_str(&text).with_context(|| format!("{} is no script", path.display()))
    };
    paths.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;

    #[test]
    fn a_known_difference_covers_what_is_inside_it() {
        let known = |at: &str| Known { at: at.into(), why: String::new() };
        for (at, place, is_covered) in [
            ("/body/items", "/body/items", true),
            ("/body/items", "/body/items/3/metadata", true),
            ("/body/items/*/metadata", "/body/items/3/metadata/name", true),
            ("/body/items/*/spec", "/body/items/3/metadata", false),
            ("/body/items", "/body/item", false),
            ("/body/items/0", "/body/items", false),
        ] {
            assert_eq!(known(at).covers(place), is_covered, "{at} {place}");
        }
    }

    #[test]
    fn all_scripts_can_be_read_and_have_one_verb_in_each_step() {
        let scripts = all(&shell::root().join("tests/differential")).unwrap();
        assert!(!scripts.is_empty());
        for step in scripts.iter().flat_map(|script| &script.steps) {
            step.target().unwrap();
        }
    }
}
