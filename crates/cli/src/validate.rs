//! `lockstep validate`: what the API would say about manifests, without asking one.

mod shape;

use std::{collections::BTreeSet, io::ErrorKind};

use anyhow::Result;
use jiff::Timestamp;
use lockstep_api::{
    builtin,
    decode::{self, FieldValidation},
    field::{FieldError, Path},
    meta, refused,
    resource::{Registry, Resource},
    schema,
    strategy::WriteContext,
};
use serde_json::{Value, json};

use crate::{
    exit::{Ending, Exit, usage},
    get,
    manifest::{self, Entry, Manifest},
    output,
    refusal::Refused,
    suggest,
};

/// Options of `lockstep validate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is sent anywhere. All problems of all files are printed, one per line, in the order of files
and lines, as FILE:LINE: FIELD: what is wrong; the command then ends with 2.

Examples:
  lockstep validate pod.yaml
  lockstep validate manifests/ -R
  lockstep validate -q *.yaml             only problems
  lockstep validate pod.yaml -o json      for programs
  generate | lockstep validate -")]
pub(crate) struct Options {
    /// Files, folders, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Also look into folders inside folders
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Print problems only
    #[arg(short, long)]
    quiet: bool,
    /// As a JSON list of problems and warnings: file, line, object, field, severity, message
    #[arg(short, long, value_parser = ["json"], value_name = "FORMAT")]
    output: Option<String>,
}

/// Checks all manifests and prints every problem found.
pub(crate) fn run(options: &Options) -> Result<()> {
    let entries = manifest::read_all(&options.files, options.recursive);
    if entries.is_empty() {
        return Err(usage("error: there is no object in these files"));
    }
    let registry = builtin::registry();
    let mut report = Report { options, listed: Vec::new(), is_valid: true };
    for entry in &entries {
        match entry {
            Entry::Manifest(manifest) => report.judged(manifest, &judge(&registry, manifest))?,
            Entry::Fault(fault) => {
                let (line, what) = (fault.line.unwrap_or_default(), fault.what.clone());
                let problem = Problem { line, field: String::new(), what };
                report.problem(&fault.file, "", &problem, &fault.to_string())?;
            }
        }
    }
    if options.output.is_some() {
        tell(get::json(&Value::Array(report.listed)).trim_end().to_owned())?;
    }
    if report.is_valid { Ok(()) } else { Err(Ending::silent(Exit::Usage)) }
}

/// What has been found so far.
struct Report<'a> {
    options: &'a Options,
    listed: Vec<Value>,
    is_valid: bool,
}

impl Report<'_> {
    fn judged(&mut self, manifest: &Manifest, verdict: &Verdict) -> Result<()> {
        let (file, object) = (&manifest.file, shown(manifest));
        for warning in &verdict.warnings {
            let line = manifest.line(field_of(warning));
            if self.options.output.is_some() {
                self.listed.push(json!({
                    "file": file, "line": line, "object": object, "field": field_of(warning),
                    "severity": "warning", "message": warning}));
            } else {
                output::note(self::warning(manifest, warning));
            }
        }
        for problem in &verdict.problems {
            let text = format!("{file}:{}: {}", problem.line, problem.what);
            self.problem(file, &object, problem, &text)?;
        }
        let is_told = !self.options.quiet && self.options.output.is_none();
        if verdict.problems.is_empty() && is_told {
            tell(format!("{file}:{}: {object} is valid", manifest.line("")))?;
        }
        Ok(())
    }

    fn problem(&mut self, file: &str, object: &str, problem: &Problem, text: &str) -> Result<()> {
        self.is_valid = false;
        if self.options.output.is_none() {
            return tell(text.to_owned());
        }
        self.listed.push(json!({
            "file": file, "line": problem.line, "object": object, "field": problem.field,
            "severity": "error", "message": problem.what}));
        Ok(())
    }
}

/// A warning with its place.
pub(crate) fn warning(manifest: &Manifest, warning: &str) -> String {
    format!("{}:{}: Warning: {warning}", manifest.file, manifest.line(field_of(warning)))
}

/// Prints a line for whoever listens. The exit code is for the others.
fn tell(line: String) -> Result<()> {
    match output::line(line) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        told => Ok(told?),
    }
}

/// Says where in the file the mistakes are that made a server refuse an object. The server cannot
/// know the file; what else it minds, it has said.
pub(crate) fn note_places(error: &anyhow::Error, manifest: &Manifest) {
    if error.downcast_ref::<Refused>().is_none_or(|refused| refused.exit() != Exit::Usage) {
        return;
    }
    for problem in judge(&builtin::registry(), manifest).problems {
        output::note(format!("  {}:{}: {}", manifest.file, problem.line, problem.what));
    }
}

/// What the API would say about one object.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Why it would be refused, in the order of lines.
    pub(crate) problems: Vec<Problem>,
    /// What the user would be told beside.
    pub(crate) warnings: Vec<String>,
}

/// One reason to refuse an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Where in the file.
    pub(crate) line: u64,
    /// Where in the object; empty for the whole of it.
    pub(crate) field: String,
    /// The field and what is wrong with it.
    pub(crate) what: String,
}

/// Takes one object the way a create takes, as far as that needs no cluster.
pub(crate) fn judge(registry: &Registry, manifest: &Manifest) -> Verdict {
    let mut verdict = find(registry, manifest);
    // Rules that share a part say twice what is wrong with it.
    let mut seen = BTreeSet::new();
    verdict.problems.retain(|problem| seen.insert((problem.line, problem.what.clone())));
    verdict.problems.sort_by_key(|problem| problem.line);
    verdict
}

fn find(registry: &Registry, manifest: &Manifest) -> Verdict {
    let mut verdict = Verdict::default();
    let problem = |field: &str, what: String| Problem {
        line: manifest.line(field),
        field: field.to_owned(),
        what,
    };
    for field in ["apiVersion", "kind"] {
        if !manifest.object.get(field).is_some_and(Value::is_string) {
            let what = format!("{field}: Required value: must name what this object is");
            verdict.problems.push(problem(field, what));
        }
    }
    if !verdict.problems.is_empty() {
        return verdict;
    }
    let (kind, served) = (manifest.kind(), manifest.api_version());
    let (group, version) = served.split_once('/').unwrap_or(("", served));
    let Some(resource) = registry.by_kind(group, version, kind) else {
        let what = match refused::instead_of(group, version, kind) {
            Some(instead) => format!("{kind}: {instead}"),
            None => {
                let hint = near_kind(registry, served, kind);
                format!("no matches for kind {kind:?} in version {served:?}{hint}")
            }
        };
        verdict.problems.push(problem("kind", what));
        return verdict;
    };
    let mut is_mistyped = false;
    if let Some(node) = schema::of(group, version, kind) {
        for misfit in shape::check(node, &Value::Object(manifest.object.clone())) {
            is_mistyped |= misfit.is_mistyped;
            let what = format!("{}: {}", misfit.path, misfit.what);
            verdict.problems.push(problem(&misfit.path, what));
        }
    }
    if is_mistyped {
        // What a value means can only be judged when it has the right type.
        return verdict;
    }
    let body = serde_json::to_vec(&manifest.object).expect("a JSON object can be written");
    match decode::object(resource, &body, FieldValidation::Ignore) {
        Ok(decoded) => {
            let (errors, warnings) = rules(resource, decoded.object);
            let found = errors.iter().map(|e| problem(&e.path.to_string(), said(e)));
            verdict.problems.extend(found);
            verdict.warnings = warnings;
        }
        Err(status) => verdict.problems.push(problem("", status.message.clone())),
    }
    verdict
}

/// What is wrong, without the words that stand for the lack of a field.
fn said(error: &FieldError) -> String {
    let text = error.to_string();
    text.strip_prefix("<nil>: Internal error: ").unwrap_or(&text).to_owned()
}

/// What may have been meant by a kind that is not known.
fn near_kind(registry: &Registry, api_version: &str, kind: &str) -> String {
    match registry.iter().find(|resource| resource.kind == kind) {
        Some(known) if known.api_version() != api_version => {
            format!("; it is served in {:?}", known.api_version())
        }
        _ => suggest::did_you_mean(kind, registry.iter().map(|r| &*r.kind)),
    }
}

/// The kind's own rules, in the order the server applies them.
fn rules(
    resource: &Resource,
    mut object: lockstep_api::strategy::Json,
) -> (Vec<FieldError>, Vec<String>) {
    let strategy = &resource.strategy;
    let context = WriteContext {
        now: Timestamp::UNIX_EPOCH,
        uid: "00000000-0000-4000-8000-000000000000".to_owned(),
        user: String::new(),
    };
    let mut unnamed = None;
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata {
        metadata.insert("uid".to_owned(), context.uid.clone().into());
        // Where it goes is decided later, by the command that creates it.
        if resource.is_namespaced() {
            metadata.entry("namespace").or_insert_with(|| "default".into());
        }
        if metadata.get("name").is_none_or(|name| name == "") {
            let prefix = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default();
            if prefix.is_empty() {
                // Said once: what is made of the name would be wrong in many places.
                let path = Path::new("metadata").child("name");
                unnamed = Some(FieldError::required(&path, "name or generateName is required"));
            }
            let name = format!("{prefix}xxxxx");
            metadata.insert("name".to_owned(), name.into());
        }
    }
    strategy.fill_defaults(&mut object);
    strategy.prepare_create(&mut object, &context);
    let names = |name: &str, is_prefix: bool| strategy.validate_name(name, is_prefix);
    let mut errors: Vec<FieldError> = unnamed.into_iter().collect();
    errors.extend(meta::validate_create(&object, resource.is_namespaced(), names));
    errors.extend(strategy.validate_create(&object));
    let lint = strategy.lint(&object);
    let mut warnings = strategy.warnings(&object, None);
    // The API would only warn of these, and nobody would see it in time.
    warnings.retain(|warning| !lint.iter().any(|error| error.to_string() == *warning));
    errors.extend(lint);
    (errors, warnings)
}

/// The field a warning begins with: `metadata.name: this is used ...`.
fn field_of(warning: &str) -> &str {
    let first = warning.split(": ").next().unwrap_or_default();
    if first.contains(' ') { "" } else { first }
}

fn shown(manifest: &Manifest) -> String {
    let name = match manifest.name() {
        "" => lockstep_api::json::text(&manifest.object, &["metadata", "generateName"]),
        name => name,
    };
    format!("{}/{name}", manifest.kind().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<(u64, String)> {
        let registry = builtin::registry();
        let manifests = manifest::parse("f.yaml", text).expect("YAML");
        let judged = manifests.iter().flat_map(|manifest| judge(&registry, manifest).problems);
        judged.map(|problem| (problem.line, problem.what)).collect()
    }

    #[test]
    fn problems_name_the_field_and_its_line() {
        let head = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n";
        let cases = [
            ("fine", format!("{head}  containers:\n  - name: c\n    image: x\n"), vec![]),
            (
                "unknown field",
                format!("{head}  containers:\n  - name: c\n    image: x\n    imagee: y\n"),
                vec![(9, "spec.containers[0].imagee: unknown field; did you mean \"image\"?")],
            ),
            (
                "missing containers",
                format!("{head}  restartPolicy: Never\n"),
                vec![(5, "spec.containers: Required value")],
            ),
            (
                "unknown kind",
                "apiVersion: v2\nkind: Pod\n".to_owned(),
                vec![(2, "no matches for kind \"Pod\" in version \"v2\"; it is served in \"v1\"")],
            ),
            (
                "no kind",
                "metadata: {name: x}\n".to_owned(),
                vec![
                    (1, "apiVersion: Required value: must name what this object is"),
                    (1, "kind: Required value: must name what this object is"),
                ],
            ),
        ];
        for (name, text, want) in cases {
            let found = problems(&text);
            let found: Vec<(u64, &str)> =
                found.iter().map(|(line, what)| (*line, what.as_str())).collect();
            assert_eq!(found, want, "{name}");
        }
    }

    #[test]
    fn no_problem_is_told_twice() {
        let name = "a".repeat(64);
        let found = problems(&format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\nspec:\n  template:\n    \
             spec:\n      restartPolicy: Never\n      containers: [{{name: c, image: x}}]\n"
        ));
        assert!(!found.is_empty());
        for (at, problem) in found.iter().enumerate() {
            assert!(!found[..at].contains(problem), "{found:?}");
        }
    }

    #[test]
    fn a_wrong_type_has_a_path_and_a_line_and_hides_no_other() {
        let text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: 7\nspec:\n  containers: 5\n";
        let found = problems(text);
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [4, 6]);
        assert!(found[0].1.starts_with("metadata.name: must be a text"), "{found:?}");
        assert!(found[1].1.starts_with("spec.containers: must be a list"), "{found:?}");
    }
}
