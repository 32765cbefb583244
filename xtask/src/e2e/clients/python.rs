//! The official Python client, from its published package.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use crate::shell;

/// The version of the package `kubernetes`.
const VERSION: &str = "37.0.2";

/// An environment that has the client; it is made when it is not in the cache.
pub(super) fn environment() -> Result<PathBuf> {
    let folder = shell::cache()?.join("python-client").join(format!("v{VERSION}"));
    // Written last: an interrupted installation is begun again.
    let mark = folder.join("installed");
    if mark.is_file() {
        return Ok(folder);
    }
    println!("installing the Python client {VERSION} in {}", folder.display());
    let mut make = Command::new("python3");
    shell::run(make.args(["-m", "venv", "--clear"]).arg(&folder))
        .context("the Python client needs python3 with its module venv")?;
    let wanted = format!("kubernetes=={VERSION}");
    let mut install = Command::new(folder.join("bin/pip"));
    shell::run(install.args(["install", "--quiet", "--no-cache-dir", &wanted]))?;
    fs::write(&mark, VERSION).with_context(|| format!("cannot write {}", mark.display()))?;
    Ok(folder)
}
