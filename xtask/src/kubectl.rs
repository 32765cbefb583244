//! Real kubectl binaries, built from the published Go modules.
//!
//! `k8s.io/kubectl` has no main package, so the wrapper module calls it as upstream's own `main`
//! does.

use std::{path::PathBuf, process::Command};

use anyhow::Result;

use crate::{
    go::{self, Program},
    shell,
};

/// The versions the end-to-end checks run with: the newest there is, and an older one that still
/// speaks LIST + WATCH where newer ones stream lists.
pub(crate) const VERSIONS: [&str; 2] = ["1.37.2", "1.33.1"];

/// Options of `cargo xtask kubectl`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which version, such as 1.36.4; all that the checks use when left out.
    version: Option<String>,
}

/// Builds what is missing and prints the paths.
pub(crate) fn run(options: &Options) -> Result<()> {
    let versions: Vec<&str> = match &options.version {
        Some(version) => vec![version.trim_start_matches('v')],
        None => VERSIONS.to_vec(),
    };
    for version in versions {
        println!("{}", binary(version)?.display());
    }
    note_of_newer();
    Ok(())
}

/// A note when kubectl has been released for a newer minor version than the newest that the checks
/// run with. Whoever cannot ask for that does without.
pub(crate) fn note_of_newer() {
    let mut list = Command::new("go");
    list.args(["list", "-m", "-versions", "k8s.io/kubectl"]).current_dir(std::env::temp_dir());
    let Ok(listed) = shell::output(list.env("GOFLAGS", "-mod=mod")) else { return };
    if let Some(newer) = newer(&listed) {
        println!("note: kubectl v{newer} is out; the newest of the checks is v{}", VERSIONS[0]);
    }
}

/// The newest release among `listed` that is of a later minor version than the newest known here.
/// Candidates of releases, which have a dash, are none.
fn newer(listed: &str) -> Option<String> {
    let (known, _) = go::parts(VERSIONS[0]).ok()?;
    let released = listed.split_whitespace().filter_map(|word| {
        let (minor, patch) = word.strip_prefix("v0.")?.split_once('.')?;
        Some((minor.parse::<u32>().ok()?, patch.parse::<u32>().ok()?))
    });
    let (minor, patch) = released.max()?;
    (minor > known).then(|| format!("1.{minor}.{patch}"))
}

/// The path of kubectl `version`, which is built first when it is not in the cache.
pub(crate) fn binary(version: &str) -> Result<PathBuf> {
    let (minor, patch) = go::parts(version)?;
    let program = Program {
        name: "kubectl",
        folder: &shell::cache()?.join("kubectl").join(format!("v{version}")),
        package: ".",
        linker: &go::version_flags(version, minor),
        effort: "a few minutes",
    };
    program.binary(|| Ok(wrapper(&format!("v0.{minor}.{patch}"))))
}

fn wrapper(module_version: &str) -> Vec<(&'static str, String)> {
    let module = format!(
        "module kubectl\n\ngo 1.24.0\n\nrequire (\n\tk8s.io/component-base {module_version}\n\t\
         k8s.io/kubectl {module_version}\n)\n"
    );
    let main = "package main\n\nimport (\n\t\"k8s.io/component-base/cli\"\n\t\
                \"k8s.io/kubectl/pkg/cmd\"\n\t\"k8s.io/kubectl/pkg/cmd/util\"\n)\n\n\
                func main() {\n\tkubectl := cmd.NewDefaultKubectlCommand()\n\t\
                if err := cli.RunNoErrOutput(kubectl); err != nil {\n\t\tutil.CheckErr(err)\n\t}\n}\n";
    vec![("go.mod", module), ("main.go", main.to_owned())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_release_of_a_later_minor_version_is_newer() {
        let (minor, patch) = go::parts(VERSIONS[0]).expect("a version");
        let listed =
            |more: &str| newer(&format!("k8s.io/kubectl v0.9.1 v0.{minor}.{patch} {more}"));
        assert_eq!(listed(""), None);
        assert_eq!(listed(&format!("v0.{minor}.{}", patch + 3)), None);
        assert_eq!(listed(&format!("v0.{}.0-rc.1 kubernetes-1.5.0", minor + 1)), None);
        let next = format!("v0.{}.0 v0.{}.2", minor + 1, minor + 1);
        assert_eq!(listed(&next), Some(format!("1.{}.2", minor + 1)));
        assert_eq!(newer(""), None);
    }
}
