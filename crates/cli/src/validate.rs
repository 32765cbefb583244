//! `lockstep validate`: what the API would say about manifests, without asking one.

use std::io::ErrorKind;

use anyhow::Result;
use jiff::Timestamp;
use lockstep_api::{
    builtin,
    decode::{self, FieldValidation},
    field::FieldError,
    meta,
    resource::{Registry, Resource},
    strategy::WriteContext,
};

use crate::{
    exit::{Ending, Exit},
    manifest::{self, Manifest},
    output,
};

/// Options of `lockstep validate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is sent anywhere. Problems are printed one per line, as FILE:LINE: FIELD: what is wrong;
the command then ends with 2.

Examples:
  lockstep validate pod.yaml
  lockstep validate manifests/ -R
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
}

/// Checks all manifests and prints every problem found.
pub(crate) fn run(options: &Options) -> Result<()> {
    let manifests = manifest::read(&options.files, options.recursive)?;
    let registry = builtin::registry();
    let mut is_valid = true;
    for manifest in &manifests {
        let verdict = judge(&registry, manifest);
        for warning in &verdict.warnings {
            output::note(format!("{}:{}: Warning: {warning}", manifest.file, manifest.line("")));
        }
        for problem in &verdict.problems {
            is_valid = false;
            tell(format!("{}:{}: {}", manifest.file, problem.line, problem.what))?;
        }
        if verdict.problems.is_empty() && !options.quiet {
            let (file, line) = (&manifest.file, manifest.line(""));
            tell(format!("{file}:{line}: {} is valid", shown(manifest)))?;
        }
    }
    if manifests.is_empty() {
        return Err(Ending::error(Exit::Usage, "error: there is no object in these files"));
    }
    if is_valid { Ok(()) } else { Err(Ending::silent(Exit::Usage)) }
}

/// Prints a line for whoever listens. The exit code is for the others.
fn tell(line: String) -> Result<()> {
    match output::line(line) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        told => Ok(told?),
    }
}

/// What the API would say about one object.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Why it would be refused.
    pub(crate) problems: Vec<Problem>,
    /// What the user would be told beside.
    pub(crate) warnings: Vec<String>,
}

/// One reason to refuse an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Where in the file.
    pub(crate) line: u64,
    /// The field and what is wrong with it.
    pub(crate) what: String,
}

/// Takes one object the way a create takes, as far as that needs no cluster.
pub(crate) fn judge(registry: &Registry, manifest: &Manifest) -> Verdict {
    let mut verdict = Verdict::default();
    let refuse = |verdict: &mut Verdict, path: &str, what: String| {
        verdict.problems.push(Problem { line: manifest.line(path), what });
    };
    for field in ["apiVersion", "kind"] {
        if !manifest.object.get(field).is_some_and(serde_json::Value::is_string) {
            refuse(
                &mut verdict,
                field,
                format!("{field}: Required value: must name what this object is"),
            );
        }
    }
    if !verdict.problems.is_empty() {
        return verdict;
    }
    let (group, version) =
        manifest.api_version().split_once('/').unwrap_or_else(|| ("", manifest.api_version()));
    let Some(resource) = registry.by_kind(group, version, manifest.kind()) else {
        let (kind, served) = (manifest.kind(), manifest.api_version());
        refuse(&mut verdict, "kind", format!("no matches for kind {kind:?} in version {served:?}"));
        return verdict;
    };
    let body = serde_json::to_vec(&manifest.object).expect("a JSON object can be written");
    let decoded = match decode::object(resource, &body, FieldValidation::Warn) {
        Ok(decoded) => decoded,
        Err(status) => {
            refuse(&mut verdict, named_field(&status.message), status.message.clone());
            return verdict;
        }
    };
    for unknown in &decoded.warnings {
        refuse(&mut verdict, named_field(unknown), unknown.clone());
    }
    let (errors, warnings) = rules(resource, decoded.object);
    for error in &errors {
        refuse(&mut verdict, &error.path.to_string(), error.to_string());
    }
    verdict.warnings = warnings;
    verdict
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
    if let Some(serde_json::Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("uid".to_owned(), context.uid.clone().into());
        // Where it goes is decided later, by the command that creates it.
        if resource.is_namespaced() {
            metadata.entry("namespace").or_insert_with(|| "default".into());
        }
        if !metadata.contains_key("name")
            && let Some(prefix) = metadata.get("generateName").and_then(|value| value.as_str())
        {
            let name = format!("{prefix}xxxxx");
            metadata.insert("name".to_owned(), name.into());
        }
    }
    strategy.fill_defaults(&mut object);
    strategy.prepare_create(&mut object, &context);
    let names = |name: &str, is_prefix: bool| strategy.validate_name(name, is_prefix);
    let mut errors = meta::validate_create(&object, resource.is_namespaced(), names);
    errors.extend(strategy.validate_create(&object));
    let warnings = strategy.warnings(&object, None);
    (errors, warnings)
}

/// The field a message names in quotes: `unknown field "spec.foo"`.
fn named_field(message: &str) -> &str {
    let named = message.split_once("field \"").and_then(|(_, rest)| rest.split_once('"'));
    named.map_or("", |(field, _)| field)
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
                vec![(9, "unknown field \"spec.containers[0].imagee\"")],
            ),
            (
                "missing containers",
                format!("{head}  restartPolicy: Never\n"),
                vec![(6, "spec.containers: Required value")],
            ),
            (
                "unknown kind",
                "apiVersion: v2\nkind: Pod\n".to_owned(),
                vec![(2, "no matches for kind \"Pod\" in version \"v2\"")],
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
    fn a_wrong_type_is_refused_with_the_servers_words() {
        let text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers: 5\n";
        let found = problems(text);
        assert_eq!(found.len(), 1);
        assert!(found[0].1.contains("cannot be handled as a Pod"), "{found:?}");
    }
}
