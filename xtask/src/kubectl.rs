//! Real kubectl binaries, built from the published Go modules.
//!
//! `go install k8s.io/kubectl@version` has no main package to install, so a wrapper module of a few
//! lines requires it and calls it as upstream's own `main` does. Binaries are kept by version in
//! the user's cache folder.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::shell;

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
    let (minor, patch) = parts(version)?;
    let folder = shell::cache()?.join("kubectl").join(format!("v{version}"));
    let binary = folder.join("kubectl");
    if binary.is_file() {
        return Ok(binary);
    }
    eprintln!("building kubectl v{version} (a few minutes, once)");
    let source = folder.join("source");
    write_wrapper(&source, &format!("v0.{minor}.{patch}"))?;
    let unfinished = folder.join("kubectl.unfinished");
    let mut build = Command::new("go");
    build
        .args(["build", "-mod=mod", "-trimpath", "-buildvcs=false", "-ldflags"])
        .arg(version_flags(version, minor))
        .arg("-o")
        .arg(&unfinished)
        .arg(".")
        .current_dir(&source)
        .env("CGO_ENABLED", "0");
    shell::output(&mut build)
        .context("kubectl is built from source and needs Go 1.26 or later on the PATH")?;
    // A rename is atomic: an interrupted build never leaves half a binary under the final name.
    fs::rename(&unfinished, &binary)
        .with_context(|| format!("cannot put {} in place", binary.display()))?;
    Ok(binary)
}

fn parts(version: &str) -> Result<(u32, u32)> {
    let numbers: Vec<&str> = version.split('.').collect();
    if let ["1", minor, patch] = numbers.as_slice()
        && let (Ok(minor), Ok(patch)) = (minor.parse(), patch.parse())
    {
        return Ok((minor, patch));
    }
    bail!("{version:?} is no Kubernetes version; one looks like 1.36.4")
}

fn write_wrapper(folder: &Path, module_version: &str) -> Result<()> {
    let module = format!(
        "module kubectl\n\ngo 1.24.0\n\nrequire (\n\tk8s.io/component-base {module_version}\n\t\
         k8s.io/kubectl {module_version}\n)\n"
    );
    let main = "package main\n\nimport (\n\t\"k8s.io/component-base/cli\"\n\t\
                \"k8s.io/kubectl/pkg/cmd\"\n\t\"k8s.io/kubectl/pkg/cmd/util\"\n)\n\n\
                func main() {\n\tkubectl := cmd.NewDefaultKubectlCommand()\n\t\
                if err := cli.RunNoErrOutput(kubectl); err != nil {\n\t\tutil.CheckErr(err)\n\t}\n}\n";
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(folder.join("go.mod"), module))
        .and_then(|()| fs::write(folder.join("main.go"), main))
        .with_context(|| format!("cannot write to {}", folder.display()))
}

/// Without these kubectl believes it is v0.0.0 and warns about every server.
fn version_flags(version: &str, minor: u32) -> String {
    let mut flags = "-s -w".to_owned();
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        for (name, value) in [
            ("gitVersion", format!("v{version}")),
            ("gitMajor", "1".into()),
            ("gitMinor", minor.to_string()),
        ] {
            flags.push_str(" -X ");
            flags.push_str(&[package, ".", name, "=", &value].concat());
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_versions_are_accepted() {
        for (text, want) in [
            ("1.36.4", Some((36, 4))),
            ("1.33.0", Some((33, 0))),
            ("1.36", None),
            ("2.0.1", None),
            ("1.x.0", None),
            ("", None),
        ] {
            assert_eq!(parts(text).ok(), want, "{text:?}");
        }
    }
}
