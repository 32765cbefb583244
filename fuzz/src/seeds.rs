//! What a target begins with: its file of seeds, and what the repository has anyway, which are
//! the examples, a sample of each kind, and the requests of the differential suite.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::parts::BREAK;

/// How many requests of a script are one seed: the first ones make what later ones change.
const REQUESTS: usize = 8;

/// All seeds of a target.
///
/// # Errors
/// When the repository cannot be read.
pub fn of(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let mut seeds = own(target)?;
    match target {
        "json" | "create" => seeds.extend(objects()?.into_iter().map(text)),
        "yaml" => seeds.extend(documents()?.into_iter().map(String::into_bytes)),
        "protobuf" => seeds.extend(samples()?.into_iter().map(|(bytes, _)| bytes)),
        "json_patch" | "merge_patch" | "strategic_patch" => seeds.extend(patches(target)?),
        "apply" => seeds.extend(applied()?),
        "requests" => {
            let scripts = scripts()?;
            let requests = scripts.iter().flat_map(|steps| steps.chunks(REQUESTS));
            seeds.extend(requests.map(|steps| join(steps.iter().map(Step::request))));
        }
        _ => {}
    }
    seeds.sort();
    seeds.dedup();
    Ok(seeds)
}

/// Words that inputs of a target are made of.
///
/// # Errors
/// When the repository cannot be read.
pub fn words(target: &str) -> io::Result<BTreeSet<String>> {
    let fixed: &[&str] = match target {
        "cron" => &["@every ", "@daily", "*/", "jan", "MON", "TZ=", "Europe/Berlin", "?", "-"],
        "frames" => &["open ", "data ", "end ", "reset ", "streamtype=error", "streamtype=data"],
        "jsonpath" => &["{range ", "{end}", "[?(@.", "..", "[*]", ")]", "==", ".items", "[-1:]"],
        "numbers" => {
            &["Ki", "Ei", "e-9", "E", "m", "u", "n", "ns", "µs", "h", "9223372036854775807"]
        }
        "pages" => &["\"rv\":", "\"start\":", "\"left\":", "meta.k8s.io/v1", "default/"],
        "regex" => &["(?i:", "[[:alpha:]]", "\\p{Greek}", "\\Q", "\\E", "{2,3}", "\\b", "(?P<n>"],
        "selectors" => &[" in (", " notin (", "!=", "==", " gt ", "metadata.name", "x.io/y"],
        _ => &["null", "\"$patch\":\"delete\"", "$setElementOrder/", "$retainKeys", "\n---\n"],
    };
    let mut words: BTreeSet<String> = fixed.iter().map(|&word| word.to_owned()).collect();
    if own(target)?.iter().any(|seed| seed.contains(&b'{'))
        && !matches!(target, "jsonpath" | "pages")
    {
        for (_, object) in samples()? {
            names(&object, &mut words);
        }
    }
    Ok(words)
}

/// The names of all members, quoted as they are in JSON.
fn names(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                into.insert(format!("\"{name}\":"));
                names(value, into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Writes all seeds of a target into a folder, and a dictionary of its words beside it.
///
/// # Errors
/// When the repository cannot be read, or the folder not be written.
pub fn write(target: &str, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (at, seed) in of(target)?.into_iter().enumerate() {
        fs::write(folder.join(format!("seed-{at:04}")), seed)?;
    }
    let quoted = |word: String| {
        let bytes = word.bytes().map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(byte)),
            0x20..0x7f => char::from(byte).to_string(),
            other => format!("\\x{other:02x}"),
        });
        format!("\"{}\"\n", bytes.collect::<String>())
    };
    let words: String = words(target)?.into_iter().map(quoted).collect();
    fs::write(folder.with_extension("dict"), words)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What was written down for it: texts, with a line between them that has nothing else in it.
fn own(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let file = format!("{}/seeds/{target}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.split("\n===\n").map(|seed| seed.as_bytes().to_vec()).collect())
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn text(value: Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn join(parts: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    parts.collect::<Vec<_>>().join(BREAK)
}

/// The documents of the examples.
fn documents() -> io::Result<Vec<String>> {
    let mut documents = Vec::new();
    for file in files(&root().join("examples"))? {
        let text = fs::read_to_string(file)?;
        documents.extend(text.split("\n---\n").map(str::to_owned));
    }
    Ok(documents)
}

/// Objects of all kinds.
fn objects() -> io::Result<Vec<Value>> {
    let mut objects: Vec<Value> = samples()?.into_iter().map(|(_, object)| object).collect();
    let documents = documents()?;
    objects.extend(documents.iter().filter_map(|text| serde_saphyr::from_str(text).ok()));
    Ok(objects)
}

/// An object of each kind with all of its fields, in protobuf without what each begins with, and as
/// JSON.
fn samples() -> io::Result<Vec<(Vec<u8>, Value)>> {
    let text = fs::read(root().join("crates/api/openapi/samples.json"))?;
    let samples: BTreeMap<String, Value> = serde_json::from_slice(&text)?;
    let pairs = samples.into_values().filter_map(|mut sample| {
        let bytes = STANDARD.decode(sample["protobuf"].as_str()?).ok()?;
        Some((bytes.get(4..)?.to_vec(), sample["json"].take()))
    });
    Ok(pairs.collect())
}

/// A request of a script.
struct Step {
    method: &'static str,
    path: String,
    media_type: String,
    accept: String,
    body: Vec<u8>,
}

impl Step {
    fn of(step: &Value) -> Option<Self> {
        let verbs = ["get", "post", "put", "patch", "delete"];
        let methods = ["GET", "POST", "PUT", "PATCH", "DELETE"];
        let at = verbs.iter().position(|verb| step[verb].is_string())?;
        // The words of the suite for what is long.
        let media_type = match step["type"].as_str().unwrap_or("application/json") {
            "yaml" => "application/yaml",
            "patch" => "application/json-patch+json",
            "merge" => "application/merge-patch+json",
            "strategic" => "application/strategic-merge-patch+json",
            "apply" => "application/apply-patch+yaml",
            other => other,
        };
        let accept = match step["accept"].as_str().unwrap_or("application/json") {
            "table" => "application/json;as=Table;v=v1;g=meta.k8s.io",
            "metadata" => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "metadata-list" => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            other => other,
        };
        let body = match (&step["body"], step["text"].as_str()) {
            (_, Some(text)) => text.to_owned(),
            (Value::Null, None) => String::new(),
            (body, None) => body.to_string(),
        };
        Some(Self {
            method: methods[at],
            path: step[verbs[at]].as_str()?.replace("$ns", "default"),
            media_type: media_type.to_owned(),
            accept: accept.to_owned(),
            body: body.replace("$ns", "default").into_bytes(),
        })
    }

    fn request(&self) -> Vec<u8> {
        let Self { method, path, media_type, accept, body } = self;
        let head = format!("{method} {path}\ncontent-type: {media_type}\naccept: {accept}\n\n");
        [head.as_bytes(), body].concat()
    }

    /// The name of the object, with the path of its kind.
    fn object(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }
}

/// The requests of the differential suite.
fn scripts() -> io::Result<Vec<Vec<Step>>> {
    let mut scripts = Vec::new();
    for file in files(&root().join("tests/differential"))? {
        let text = fs::read_to_string(file)?;
        let script: Value = serde_saphyr::from_str(&text).map_err(io::Error::other)?;
        let steps = script["steps"].as_array().into_iter().flatten();
        scripts.push(steps.filter_map(Step::of).collect());
    }
    Ok(scripts)
}

/// Objects with patches of them: those of the suite, and for merges the next object.
fn patches(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let wanted = match target {
        "json_patch" => "application/json-patch+json",
        "merge_patch" => "application/merge-patch+json",
        _ => "application/strategic-merge-patch+json",
    };
    let mut seeds = Vec::new();
    for steps in scripts()? {
        for step in steps.iter().filter(|step| step.media_type == wanted) {
            let path = step.object();
            let is_its_maker = |maker: &&Step| {
                let name = path.strip_prefix(maker.object()).map(|rest| rest.replace('/', ""));
                let body = String::from_utf8_lossy(&maker.body);
                maker.method == "POST"
                    && name.is_some_and(|name| body.contains(&format!("\"{name}\"")))
            };
            if let Some(maker) = steps.iter().find(is_its_maker) {
                seeds.push(join([maker.body.clone(), step.body.clone()].into_iter()));
            }
        }
    }
    if target != "json_patch" {
        for object in objects()? {
            let mut changed = object.clone();
            changed["metadata"]["labels"] = serde_json::json!({"a": "b"});
            seeds.push(join([text(object), text(changed)].into_iter()));
        }
    }
    Ok(seeds)
}

/// What the suite applies to one object, one after the other; and each kind applied by two.
fn applied() -> io::Result<Vec<Vec<u8>>> {
    let mut seeds = Vec::new();
    for steps in scripts()? {
        let mut writes: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
        for step in &steps {
            let verb = match step.media_type.as_str() {
                "application/apply-patch+yaml" if step.path.contains("force=true") => "force",
                "application/apply-patch+yaml" => "apply",
                "application/merge-patch+json" => "merge",
                "application/strategic-merge-patch+json" => "strategic",
                _ if step.method == "PUT" => "update",
                _ => continue,
            };
            let manager = step.path.split("fieldManager=").nth(1).unwrap_or("somebody");
            let manager = manager.split('&').next().unwrap_or_default();
            let write = [format!("{manager} {verb}\n").as_bytes(), &step.body].concat();
            writes.entry(step.object()).or_default().push(write);
        }
        let runs = writes.values().flat_map(|writes| writes.chunks(REQUESTS));
        seeds.extend(runs.map(|writes| join(writes.iter().cloned())));
    }
    for object in objects()? {
        let body = object.to_string();
        let writes = ["one apply", "two apply", "three force", "four update"];
        let writes = writes.map(|head| format!("{head}\n{body}").into_bytes());
        seeds.push(join(writes.into_iter()));
    }
    Ok(seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_of_the_suite_are_said_in_full() {
        for step in scripts().unwrap().iter().flatten() {
            assert!(step.media_type.contains('/'), "{}", step.media_type);
            assert!(step.accept.contains('/'), "{}", step.accept);
        }
        let is_from_the_suite = |seed: &Vec<u8>| seed.starts_with(br#"{"apiVersion""#);
        assert!(patches("json_patch").unwrap().iter().any(is_from_the_suite));
    }
}
