//! The programs of a control plane, built from their published Go modules.
//!
//! `k8s.io/kubernetes` refers to the modules it is published beside by folders of its own
//! repository. The wrapper module replaces each of them by the published one of the same release.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::{
    go::{self, Program},
    shell,
};

/// The release the end-to-end checks run with: the one the embedded server is like.
pub(crate) const VERSION: &str = "1.36.4";

/// Where the programs are.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) etcd: PathBuf,
    pub(crate) apiserver: PathBuf,
    pub(crate) controller_manager: PathBuf,
    pub(crate) scheduler: PathBuf,
}

impl Programs {
    /// Finds the programs of a release; builds what is not in the cache.
    pub(crate) fn of(version: &str) -> Result<Self> {
        let (minor, patch) = go::parts(version)?;
        let folder = shell::cache()?.join("kubernetes").join(format!("v{version}"));
        let linker = go::version_flags(version, minor);
        let kubernetes = |name: &'static str, effort| {
            let package = format!("k8s.io/kubernetes/cmd/{name}");
            let program =
                Program { name, folder: &folder, package: &package, linker: &linker, effort };
            program.binary(|| {
                let module = kubernetes_module(&published(version)?, version, minor, patch);
                Ok(vec![("go.mod", module)])
            })
        };
        Ok(Self {
            etcd: etcd(&folder, version)?,
            apiserver: kubernetes("kube-apiserver", "about 10 minutes of one core")?,
            controller_manager: kubernetes("kube-controller-manager", "a few minutes")?,
            scheduler: kubernetes("kube-scheduler", "a minute")?,
        })
    }
}

/// The etcd of the release that the API server's client is of.
fn etcd(folder: &Path, version: &str) -> Result<PathBuf> {
    let program = Program {
        name: "etcd",
        folder,
        package: "go.etcd.io/etcd/server/v3",
        linker: go::SMALL,
        effort: "a minute",
    };
    program.binary(|| {
        let published = published(version)?;
        let client = required(&published, "go.etcd.io/etcd/client/v3")
            .context("the API server does not say which etcd it wants")?;
        let require = format!("require go.etcd.io/etcd/server/v3 {client}");
        Ok(vec![("go.mod", format!("module etcd\n\ngo 1.24.0\n\n{require}\n"))])
    })
}

/// The go.mod that Kubernetes was published with.
fn published(version: &str) -> Result<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Download {
        go_mod: PathBuf,
    }
    let mut download = Command::new("go");
    download
        .args(["mod", "download", "-json", &format!("k8s.io/kubernetes@v{version}")])
        .current_dir(std::env::temp_dir());
    let answer = shell::output(&mut download)
        .with_context(|| format!("cannot download Kubernetes v{version}"))?;
    let download: Download =
        serde_json::from_str(&answer).context("`go mod download` does not say what it did")?;
    fs::read_to_string(&download.go_mod)
        .with_context(|| format!("cannot read {}", download.go_mod.display()))
}

/// The wrapper module: `published` is the go.mod of Kubernetes itself.
fn kubernetes_module(published: &str, version: &str, minor: u32, patch: u32) -> String {
    let beside = published.lines().filter_map(|line| line.split_once(" => ./staging/"));
    let replaced = beside.map(|(module, _)| {
        let module = module.trim().trim_start_matches("replace ");
        format!("\t{module} => {module} v0.{minor}.{patch}\n")
    });
    let go = published.lines().find(|line| line.starts_with("go ")).unwrap_or("go 1.24.0");
    format!(
        "module kubernetes\n\n{go}\n\nrequire k8s.io/kubernetes v{version}\n\nreplace (\n{})\n",
        replaced.collect::<String>()
    )
}

/// The version of `module` that a go.mod asks for.
fn required<'a>(published: &'a str, module: &str) -> Option<&'a str> {
    published.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(module)).then(|| words.next()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: &str = "module k8s.io/kubernetes\n\ngo 1.26.0\n\nrequire (\n\
        \tgo.etcd.io/etcd/client/v3 v3.6.8\n\tk8s.io/api v0.0.0\n)\n\nreplace (\n\
        \tk8s.io/api => ./staging/src/k8s.io/api\n\
        \tk8s.io/kms => ./staging/src/k8s.io/kms\n)\n";

    #[test]
    fn modules_of_the_same_repository_are_replaced_by_published_ones() {
        let module = kubernetes_module(PUBLISHED, "1.36.4", 36, 4);
        let want = "module kubernetes\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.36.4\n\n\
            replace (\n\tk8s.io/api => k8s.io/api v0.36.4\n\tk8s.io/kms => k8s.io/kms v0.36.4\n)\n";
        assert_eq!(module, want);
    }

    #[test]
    fn etcd_is_of_the_version_the_client_is() {
        assert_eq!(required(PUBLISHED, "go.etcd.io/etcd/client/v3"), Some("v3.6.8"));
        assert_eq!(required(PUBLISHED, "go.etcd.io/etcd/client"), None);
    }
}
