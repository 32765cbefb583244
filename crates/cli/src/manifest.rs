//! Manifests: what `-f` names, read into objects that remember where they came from.

pub(crate) mod yaml;

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::exit::{Ending, Exit};

/// File names taken from a folder, as kubectl takes them.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

/// One object of a manifest.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    /// The object, `apiVersion` and `kind` included.
    pub(crate) object: Map<String, Value>,
    /// The file as the user named it, or `STDIN`.
    pub(crate) file: String,
    document: std::sync::Arc<yaml::Document>,
    /// The path of the object inside its document: empty, or `items[2]` for a member of a List.
    within: String,
}

impl Manifest {
    /// `apiVersion`, or the empty string.
    pub(crate) fn api_version(&self) -> &str {
        self.text("apiVersion")
    }

    /// `kind`, or the empty string.
    pub(crate) fn kind(&self) -> &str {
        self.text("kind")
    }

    /// `metadata.name`, or the empty string.
    pub(crate) fn name(&self) -> &str {
        lockstep_api::json::text(&self.object, &["metadata", "name"])
    }

    /// `metadata.namespace`, or the empty string.
    pub(crate) fn namespace(&self) -> &str {
        lockstep_api::json::text(&self.object, &["metadata", "namespace"])
    }

    /// The line of a field path, or of the nearest node above it that is written out.
    pub(crate) fn line(&self, path: &str) -> u64 {
        let mut path = match (self.within.as_str(), path) {
            ("", path) => path.to_owned(),
            (within, "") => within.to_owned(),
            (within, path) => format!("{within}.{path}"),
        };
        loop {
            if let Some(&line) = self.document.lines.get(&path) {
                return line;
            }
            match path.rfind(['.', '[']) {
                Some(at) => path.truncate(at),
                None => return self.document.lines.get("").copied().unwrap_or(1),
            }
        }
    }

    fn text(&self, field: &str) -> &str {
        self.object.get(field).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Reads every object of every file, folder or `-` (standard input), in order.
pub(crate) fn read(names: &[String], is_recursive: bool) -> Result<Vec<Manifest>> {
    let mut manifests = Vec::new();
    for name in names {
        if name == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
            manifests.extend(parse("STDIN", &text)?);
            continue;
        }
        for file in files(Path::new(name), is_recursive)? {
            let shown = file.display().to_string();
            let bytes = fs::read(&file).with_context(|| format!("cannot read {shown}"))?;
            let text = String::from_utf8(bytes)
                .map_err(|_| Ending::error(Exit::Usage, format!("{shown} is not UTF-8 text")))?;
            manifests.extend(parse(&shown, &text)?);
        }
    }
    Ok(manifests)
}

/// Reads every object of one text; Lists are taken apart.
pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<Manifest>> {
    let documents = yaml::parse(text).map_err(|error| {
        let line = error.line.map(|line| format!(":{line}")).unwrap_or_default();
        Ending::error(Exit::Usage, format!("{file}{line}: not valid YAML: {error}"))
    })?;
    let mut manifests = Vec::new();
    for document in documents {
        let Value::Object(object) = document.value.clone() else {
            let line = document.lines.get("").copied().unwrap_or(1);
            let message =
                format!("{file}:{line}: a manifest is a mapping with apiVersion and kind");
            return Err(Ending::error(Exit::Usage, message));
        };
        let whole = Manifest {
            object,
            file: file.to_owned(),
            document: document.into(),
            within: String::new(),
        };
        expand(whole, &mut manifests)?;
    }
    Ok(manifests)
}

/// Takes a `List` apart; anything else is kept whole.
fn expand(manifest: Manifest, into: &mut Vec<Manifest>) -> Result<()> {
    let items = match manifest.object.get("items") {
        Some(Value::Array(items)) if manifest.kind().ends_with("List") => items.clone(),
        _ => {
            into.push(manifest);
            return Ok(());
        }
    };
    for (at, item) in items.into_iter().enumerate() {
        let within = format!("items[{at}]");
        let Value::Object(object) = item else {
            let line = manifest.line(&within);
            let message = format!("{}:{line}: {within} is not an object", manifest.file);
            return Err(Ending::error(Exit::Usage, message));
        };
        into.push(Manifest { object, within, ..manifest.clone() });
    }
    Ok(())
}

fn files(path: &Path, is_recursive: bool) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        if !path.exists() {
            let message = format!("the path {:?} does not exist", path.display().to_string());
            return Err(Ending::error(Exit::Usage, message));
        }
        return Ok(vec![path.to_path_buf()]);
    }
    let mut found = Vec::new();
    let entries =
        fs::read_dir(path).with_context(|| format!("cannot read folder {}", path.display()))?;
    for entry in entries {
        let entry = entry?.path();
        if entry.is_dir() {
            if is_recursive {
                found.extend(files(&entry, true)?);
            }
        } else if entry.extension().is_some_and(|e| EXTENSIONS.iter().any(|known| e == *known)) {
            found.push(entry);
        }
    }
    found.sort();
    if found.is_empty() {
        let message = format!("no .yaml, .yml or .json file in {}", path.display());
        return Err(Ending::error(Exit::Usage, message));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_taken_apart_and_its_members_keep_their_lines() {
        let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: p\n";
        let manifests = parse("f.yaml", text).expect("valid");
        assert_eq!(manifests.len(), 1);
        assert_eq!((manifests[0].kind(), manifests[0].name()), ("Pod", "p"));
        assert_eq!(manifests[0].line("metadata.name"), 7);
        assert_eq!(manifests[0].line("spec.containers[0].image"), 4, "the nearest node above");
    }

    #[test]
    fn what_is_no_manifest_is_refused_with_its_place() {
        for (text, want) in [
            ("- a\n", "f.yaml:1: a manifest is a mapping with apiVersion and kind"),
            ("---\nhello\n", "f.yaml:2: a manifest is a mapping with apiVersion and kind"),
            ("kind: PodList\nitems:\n- 1\n", "f.yaml:3: items[0] is not an object"),
        ] {
            let error = parse("f.yaml", text).expect_err(text);
            assert_eq!(error.to_string(), want);
            assert_eq!(crate::exit::of(&error), Exit::Usage);
        }
    }

    #[test]
    fn folders_give_their_manifests_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("b.yaml", "kind: B"), ("a.json", "{\"kind\":\"A\"}"), ("c.txt", "x")]
        {
            fs::write(folder.path().join(name), text).expect("written");
        }
        let named = vec![folder.path().display().to_string()];
        let kinds: Vec<String> =
            read(&named, false).expect("read").iter().map(|m| m.kind().to_owned()).collect();
        assert_eq!(kinds, ["A", "B"]);
    }
}
