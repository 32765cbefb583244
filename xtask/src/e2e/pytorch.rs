//! A real training: PyTorch's distributed data parallel over gloo, its master found by host name.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::check::{Check, Suite, Summary};
use crate::shell;

/// Runs the example and a gang from a command line. Where PyTorch cannot be installed there is
/// nothing to run, which is said and is no failure.
pub(crate) fn run(binary: &Path) -> Result<Summary> {
    let mut suite = Suite::new("PyTorch", binary);
    let Some(programs) = python_with_torch()? else {
        println!("skipped: PyTorch is not there and cannot be installed");
        return Ok(suite.finish());
    };
    suite.set("PATH", programs);
    let example = shell::root().join("examples/pytorch-ddp.yaml");
    let example = example.display();
    suite.check(
        "the example trains",
        Check::new(&format!("run --timeout 110s '{example}'"))
            .out("[ddp-0] step 150: loss ")
            .out("[ddp-0] rank 0 of 2: final loss 0.0000")
            .out("[ddp-1] rank 1 of 2: final loss 0.0000")
            .err("job/ddp succeeded (CompletionsReached"),
    );
    let example = shell::root().join("examples/pytorch-in-place.yaml");
    suite.check(
        "a worker that is killed is survived in place",
        Check::new(&format!("run --timeout 110s '{}'", example.display()))
            .out("[ddp-workers-0-0#0] epoch 0: on from step 0")
            .out("[ddp-workers-0-0#0] epoch 1: on from step 100")
            .out("[ddp-workers-0-1#0] rank 1 of 2: final loss 0.0000")
            .err("jobset/ddp restarted 2 workers in place in "),
    );
    let sum = "import torch, torch.distributed as d; d.init_process_group(\"gloo\"); \
               t = torch.tensor([d.get_rank() + 1.0]); d.all_reduce(t); print(t.item()); \
               d.destroy_process_group()";
    suite.check(
        "a gang from a command line finds itself",
        Check::new(&format!("run --timeout 110s --workers 3 --name gang -- python3 -c '{sum}'"))
            .out("[gang-0] 6.0")
            .out("[gang-2] 6.0"),
    );
    Ok(suite.finish())
}

/// A PATH whose first `python3` has PyTorch: the one that is there, the distribution's, or one with
/// an environment made for this, which is kept for the next time.
fn python_with_torch() -> Result<Option<OsString>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if has_torch(Path::new("python3")) {
        return Ok(Some(path));
    }
    let environment = shell::cache()?.join("pytorch");
    let Some(programs) = from_distribution().or_else(|| from_wheels(&environment)) else {
        return Ok(None);
    };
    let folders = std::iter::once(programs).chain(std::env::split_paths(&path));
    let joined = std::env::join_paths(folders.collect::<Vec<PathBuf>>());
    joined.context("a folder in PATH has a colon").map(Some)
}

/// The distribution's package: a build for CPUs, a hundredth of the size of the wheels.
fn from_distribution() -> Option<PathBuf> {
    let programs = PathBuf::from("/usr/bin");
    let python = programs.join("python3");
    if !has_torch(&python) {
        println!("installing PyTorch from the distribution");
        let mut install = Command::new("apt-get");
        install.env("DEBIAN_FRONTEND", "noninteractive");
        install.args(["install", "-y", "-qq", "--no-install-recommends", "python3-torch"]);
        shell::run(install.arg("python3-numpy")).ok()?;
    }
    has_torch(&python).then_some(programs)
}

/// The wheels, with all they bring along for GPUs, in an environment of their own.
fn from_wheels(folder: &Path) -> Option<PathBuf> {
    let programs = folder.join("bin");
    let python = programs.join("python3");
    if !has_torch(&python) {
        println!("installing PyTorch in {}", folder.display());
        shell::run(Command::new("python3").args(["-m", "venv"]).arg(folder)).ok()?;
        let wanted = ["install", "--quiet", "--no-cache-dir", "torch", "numpy"];
        shell::run(Command::new(programs.join("pip")).args(wanted)).ok()?;
    }
    has_torch(&python).then_some(programs)
}

fn has_torch(python: &Path) -> bool {
    let output = Command::new(python).args(["-c", "import torch"]).output();
    output.is_ok_and(|output| output.status.success())
}
