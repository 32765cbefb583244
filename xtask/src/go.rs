//! Programs built from published Go modules.
//!
//! `go install module@version` refuses modules with replace directives and packages that are no
//! program, so a wrapper module of a few lines requires what is wanted. Programs are kept by
//! version in the user's cache folder.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::shell;

/// A program to build.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    /// What it is called.
    pub(crate) name: &'a str,
    /// The folder it is kept in.
    pub(crate) folder: &'a Path,
    /// The package it is, as the wrapper module sees it.
    pub(crate) package: &'a str,
    /// Options for the linker.
    pub(crate) linker: &'a str,
    /// About how long building it takes.
    pub(crate) effort: &'a str,
}

impl Program<'_> {
    /// The path of the program. If it is not there, `files` are written as the wrapper module and
    /// the program is built.
    pub(crate) fn binary(
        &self,
        files: impl FnOnce() -> Result<Vec<(&'static str, String)>>,
    ) -> Result<PathBuf> {
        let binary = self.folder.join(self.name);
        if binary.is_file() {
            return Ok(binary);
        }
        eprintln!("building {} ({}, once)", self.name, self.effort);
        // One module for each program: what building one writes to go.mod changes no other.
        let source = self.folder.join("source").join(self.name);
        write(&source, files()?)?;
        let unfinished = self.folder.join(format!("{}.unfinished", self.name));
        let mut build = Command::new("nice");
        build
            .args(["-n", "15", "go", "build", "-mod=mod", "-trimpath", "-buildvcs=false"])
            .args(["-ldflags", self.linker, "-o"])
            .arg(&unfinished)
            .arg(self.package)
            .current_dir(&source)
            .env("CGO_ENABLED", "0");
        shell::output(&mut build).with_context(|| {
            format!("{} is built from source and needs Go 1.26 or later on the PATH", self.name)
        })?;
        // A rename is atomic: an interrupted build never leaves half a binary under the final name.
        fs::rename(&unfinished, &binary)
            .with_context(|| format!("cannot put {} in place", binary.display()))?;
        Ok(binary)
    }
}

fn write(folder: &Path, files: Vec<(&str, String)>) -> Result<()> {
    let failed = || format!("cannot write to {}", folder.display());
    fs::create_dir_all(folder).with_context(failed)?;
    for (name, text) in files {
        fs::write(folder.join(name), text).with_context(failed)?;
    }
    Ok(())
}

/// The minor and the patch version of a Kubernetes release.
pub(crate) fn parts(version: &str) -> Result<(u32, u32)> {
    let numbers: Vec<&str> = version.split('.').collect();
    if let ["1", minor, patch] = numbers.as_slice()
        && let (Ok(minor), Ok(patch)) = (minor.parse(), patch.parse())
    {
        return Ok((minor, patch));
    }
    bail!("{version:?} is no Kubernetes version; one looks like 1.36.4")
}

/// Linker options by which a program of Kubernetes knows its version. Without them it believes that
/// it is v0.0.0.
pub(crate) fn version_flags(version: &str, minor: u32) -> String {
    let mut flags = SMALL.to_owned();
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

/// Linker options that leave out what only debuggers read.
pub(crate) const SMALL: &str = "-s -w";

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

    #[test]
    fn a_program_that_is_there_is_not_built_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = Program {
            name: "tool",
            folder: folder.path(),
            package: "nowhere.invalid/tool",
            linker: SMALL,
            effort: "no time",
        };
        fs::write(folder.path().join("tool"), "there").expect("a file");
        let found = program.binary(|| bail!("it is built")).expect("it is there");
        assert_eq!(found, folder.path().join("tool"));
    }
}
