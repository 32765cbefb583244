//! Real kubectl binaries, built from the published Go modules.
//!
//! `k8s.io/kubectl` has no main package, so the wrapper module calls it as upstream's own `main`
//! does.

use std::path::PathBuf;

use anyhow::Result;

use crate::{
    go::{self, Program},
    shell,
};

/// The versions the end-to-end checks run with: the server's own minor, and an older one that still
/// speaks LIST + WATCH where newer ones stream lists.
pub(crate) const VERSIONS: [&str; 2] = ["1.36.4", "1.33.1"];

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
    Ok(())
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
