//! Manifests: what `-f` names, read into objects that remember where they came from.

pub(crate) mod yaml;

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::exit::usage;

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
        let path = &plain(path);
        let mut path = match (self.within.as_str(), path.as_str()) {
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

/// A field path with keys of maps written like fields: `data[my.key]` as `data.my.key`.
fn plain(path: &str) -> String {
    let Some((before, rest)) = path.split_once('[') else { return path.to_owned() };
    let Some((inside, after)) = rest.split_once(']') else { return path.to_owned() };
    let is_index = inside.bytes().all(|byte| byte.is_ascii_digit());
    let (open, close) = if is_index { ("[", "]") } else { (".", "") };
    format!("{before}{open}{inside}{close}{}", plain(after))
}

/// What reading found, in the order of files and lines.
#[derive(Debug)]
pub(crate) enum Entry {
    /// An object.
    Manifest(Manifest),
    /// Something that is no object.
    Fault(Fault),
}

/// Something that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The file as the user named it, or `STDIN`.
    pub(crate) file: String,
    /// Where in it, if it could be read at all.
    pub(crate) line: Option<u64>,
    /// What is wrong.
    pub(crate) what: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.file.as_str(), self.line) {
            (file, Some(line)) => write!(f, "{file}:{line}: {}", self.what),
            (_, None) => f.write_str(&self.what),
        }
    }
}

/// Reads every object of every file, folder or `-` (standard input), in order.
///
/// # Errors
/// When something cannot be read; the error tells of everything that cannot.
pub(crate) fn read(names: &[String], is_recursive: bool) -> Result<Vec<Manifest>> {
    whole(read_all(names, is_recursive))
}

/// Reads like [`read`], and goes on after what cannot be read.
pub(crate) fn read_all(names: &[String], is_recursive: bool) -> Vec<Entry> {
    let mut entries = Vec::new();
    for name in names {
        if name == "-" {
            let mut bytes = Vec::new();
            let read = std::io::stdin().read_to_end(&mut bytes).map(|_| bytes);
            entries.extend(parse_bytes("STDIN", read));
            continue;
        }
        match files(Path::new(name), is_recursive) {
            Ok(files) => {
                let parsed = files
                    .iter()
                    .flat_map(|file| parse_bytes(&file.display().to_string(), fs::read(file)));
                entries.extend(parsed);
            }
            Err(error) => {
                let what = format!("{error:#}");
                entries.push(Entry::Fault(Fault { file: name.clone(), line: None, what }));
            }
        }
    }
    entries
}

/// The objects, when nothing else was found.
fn whole(entries: Vec<Entry>) -> Result<Vec<Manifest>> {
    let mut faults = Vec::new();
    let mut manifests = Vec::new();
    for entry in entries {
        match entry {
            Entry::Manifest(manifest) => manifests.push(manifest),
            Entry::Fault(fault) => faults.push(fault.to_string()),
        }
    }
    if faults.is_empty() { Ok(manifests) } else { Err(usage(faults.join("\n"))) }
}

fn parse_bytes(file: &str, bytes: std::io::Result<Vec<u8>>) -> Vec<Entry> {
    let fault = |what| vec![Entry::Fault(Fault { file: file.to_owned(), line: None, what })];
    match bytes.map(String::from_utf8) {
        Err(error) => fault(format!("cannot read {file}: {error}")),
        Ok(Err(_)) => fault(format!("{file} is not UTF-8 text, so it is no manifest")),
        Ok(Ok(text)) => parse_all(file, &text),
    }
}

/// Reads every object of one text; Lists are taken apart.
pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<Manifest>> {
    whole(parse_all(file, text))
}

fn parse_all(file: &str, text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    for document in yaml::parse(text) {
        let fault = |line, what| Fault { file: file.to_owned(), line: Some(line), what };
        match document {
            Err(error) => entries.push(Entry::Fault(fault(error.line, error.what))),
            Ok(document) => match document.value.clone() {
                Value::Object(object) => {
                    let (file, document) = (file.to_owned(), document.into());
                    expand(
                        Manifest { object, file, document, within: String::new() },
                        &mut entries,
                    );
                }
                _ => {
                    let line = document.lines.get("").copied().unwrap_or(1);
                    let what = "a manifest is a mapping with apiVersion and kind".to_owned();
                    entries.push(Entry::Fault(fault(line, what)));
                }
            },
        }
    }
    entries
}

/// Takes a `List` apart; anything else is kept whole.
fn expand(manifest: Manifest, into: &mut Vec<Entry>) {
    let items = match manifest.object.get("items") {
        Some(Value::Array(items)) if manifest.kind().ends_with("List") => items.clone(),
        _ => return into.push(Entry::Manifest(manifest)),
    };
    for (at, item) in items.into_iter().enumerate() {
        let within = format!("items[{at}]");
        into.push(match item {
            Value::Object(object) => {
                Entry::Manifest(Manifest { object, within, ..manifest.clone() })
            }
            _ => {
                let line = Some(manifest.line(&within));
                let what = format!("{within} is not an object");
                Entry::Fault(Fault { file: manifest.file.clone(), line, what })
            }
        });
    }
}

fn files(path: &Path, is_recursive: bool) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        if !path.exists() {
            let path = path.display().to_string();
            return Err(usage(format!("the path {path:?} does not exist")));
        }
        return Ok(vec![path.to_path_buf()]);
    }
    let mut found = Vec::new();
    let entries =
        fs::read_dir(path).with_context(|| format!("cannot read folder {}", path.display()))?;
    for entry in entries {
        let entry = entry?.path();
        if entry.is_dir() {
            // A folder without manifests matters only where it was named.
            if is_recursive {
                found.extend(files(&entry, true).unwrap_or_default());
            }
        } else if entry.extension().is_some_and(|e| EXTENSIONS.iter().any(|known| e == *known)) {
            found.push(entry);
        }
    }
    found.sort();
    if found.is_empty() {
        let hint = if is_recursive { "" } else { "; -R looks into folders inside it too" };
        let message = format!("no .yaml, .yml or .json file in {}{hint}", path.display());
        return Err(usage(message));
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
            assert_eq!(crate::exit::of(&error), crate::exit::Exit::Usage);
        }
    }

    #[test]
    fn everything_that_cannot_be_read_is_told_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let named = ["a.yaml", "b.yaml", "c.yaml"].map(|name| {
            let path = folder.path().join(name);
            fs::write(&path, if name == "b.yaml" { "kind: B" } else { "a: [\n" }).expect("written");
            path.display().to_string()
        });
        let entries = read_all(&named, false);
        let kinds = entries.iter().map(|entry| matches!(entry, Entry::Manifest(_)));
        assert_eq!(kinds.collect::<Vec<_>>(), [false, true, false]);
        let error = read(&named, false).expect_err("two are broken").to_string();
        assert_eq!(error.lines().count(), 2, "{error}");
    }

    #[test]
    fn keys_of_maps_have_lines_too() {
        let text = "kind: ConfigMap\ndata:\n  a.b: x\n  c: y\n";
        let manifests = parse("f.yaml", text).expect("valid");
        assert_eq!(manifests[0].line("data[a.b]"), 3);
        assert_eq!(manifests[0].line("data"), 2);
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
