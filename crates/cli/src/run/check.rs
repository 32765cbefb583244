//! What is wrong with the manifests of a run, before anything is started.

use std::collections::BTreeMap;

use anyhow::Result;
use lockstep_api::builtin;

use super::submit::is_run;
use crate::{
    exit::{Ending, Exit},
    manifest::Manifest,
    output, validate,
};

/// Refuses what the API would refuse, and what would never end. Kinds that only the cluster knows
/// are left to it.
///
/// # Errors
/// When something is wrong; every problem has been told then.
pub(crate) fn check(manifests: &[Manifest], is_private: bool) -> Result<()> {
    let registry = builtin::registry();
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    for manifest in manifests {
        let api_version = manifest.api_version();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_known = registry.by_kind(group, version, manifest.kind()).is_some();
        if !is_known && !is_private && !manifest.kind().is_empty() {
            continue;
        }
        let verdict = validate::judge(&registry, manifest);
        for problem in verdict.problems {
            problems.push(format!("{}:{}: {}", manifest.file, problem.line, problem.what));
        }
        let warned = verdict.warnings.iter();
        warnings.extend(warned.map(|warning| validate::warning(manifest, warning)));
    }
    problems.extend(repeated(manifests));
    if !problems.is_empty() {
        // What is created comes back with its warnings; this is not.
        warnings.iter().chain(&problems).for_each(output::note);
        return Err(Ending::silent(Exit::Usage));
    }
    if !manifests.iter().any(is_run) {
        let message = "error: there is no JobSet, no Job and no Pod in these files, so there is \
                       nothing to run";
        return Err(Ending::error(Exit::Usage, message));
    }
    Ok(())
}

/// Objects that are given twice: one of them would be lost.
fn repeated(manifests: &[Manifest]) -> Vec<String> {
    let mut seen: BTreeMap<[&str; 4], &Manifest> = BTreeMap::new();
    let mut problems = Vec::new();
    for manifest in manifests.iter().filter(|manifest| !manifest.name().is_empty()) {
        let group = manifest.api_version().split_once('/').map_or("", |(group, _)| group);
        let namespace = match manifest.namespace() {
            "" => "default",
            own => own,
        };
        let key = [group, manifest.kind(), namespace, manifest.name()];
        if let Some(first) = seen.get(&key) {
            let place = |it: &Manifest| format!("{}:{}", it.file, it.line("metadata.name"));
            let (kind, name) = (manifest.kind().to_lowercase(), manifest.name());
            problems.push(format!(
                "{}: metadata.name: Duplicate value: {kind}/{name} is already given at {}; \
                 rename one of them",
                place(manifest),
                place(first)
            ));
        } else {
            seen.insert(key, manifest);
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest;

    #[test]
    fn an_object_given_twice_is_named_with_both_places() {
        let pod = |name: &str, more: &str| {
            format!("apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n{more}---\n")
        };
        let text = pod("a", "")
            + &pod("b", "")
            + &pod("a", "  namespace: default\n")
            + &pod("a", "  namespace: other\n")
            + "apiVersion: v1\nkind: Pod\nmetadata:\n  generateName: g-\n---\n"
            + "apiVersion: v1\nkind: Pod\nmetadata:\n  generateName: g-\n";
        let manifests = manifest::parse("f.yaml", &text).expect("YAML");
        assert_eq!(
            repeated(&manifests),
            ["f.yaml:14: metadata.name: Duplicate value: pod/a is already given at f.yaml:4; \
              rename one of them"]
        );
    }
}
