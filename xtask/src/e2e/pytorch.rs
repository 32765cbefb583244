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

/// A PATH whose first `python3` has PyTorch: the one that is there, or one with an environment made
/// for this, which is kept for the next time.
fn python_with_torch() -> Result<Option<OsString>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if has_torch(Path::new("python3")) {
        return Ok(Some(path));
    }
    let folder = shell::cache()?.join("pytorch");
    let programs = folder.join("bin");
    if !has_torch(&programs.join("python3")) {
        println!("installing PyTorch in {}", folder.display());
        let made = shell::run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        let pip = programs.join("pip");
        let wanted = ["install", "--quiet", "torch", "numpy"];
        let installed = made.and_then(|()| shell::run(Command::new(pip).args(wanted)));
        if installed.is_err() || !has_torch(&programs.join("python3")) {
            return Ok(None);
        }
    }
    let folders = std::iter::once(programs).chain(std::env::split_paths(&path));
    let joined = std::env::join_paths(folders.collect::<Vec<PathBuf>>());
    joined.context("a folder in PATH has a colon").map(Some)
}

fn has_torch(python: &Path) -> bool {
    let output = Command::new(python).args(["-c", "import torch"]).output();
    output.is_ok_and(|output| output.status.success())
}
