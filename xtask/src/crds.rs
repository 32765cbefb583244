//! Writes what is generated from the types of custom kinds.
//!
//! The crate `api` makes the texts itself (`crates/api/examples/generate.rs`, which also has the
//! test that the committed ones are current); this puts them where they belong.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, ensure};

use crate::shell;

/// Options of `cargo xtask crds`.
#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// Change nothing; fail if the committed files are not what would be generated.
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let example = "run --quiet --locked -p lockstep-api --example generate";
    let printed = shell::output(&mut shell::cargo(example.split(' ')))?;
    let files: BTreeMap<String, String> =
        serde_json::from_str(&printed).context("the generator did not print JSON")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (name, text) in files {
        let path = root.join(&name);
        if options.check {
            let committed = fs::read_to_string(&path).unwrap_or_default();
            ensure!(committed == text, "{name} is out of date: run `cargo xtask crds`");
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}
