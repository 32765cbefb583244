//! Which test proves which rule of the specifications: `docs/conformance`.

mod rules;

use std::fs;

use anyhow::{Context, Result, bail};

use crate::shell;

/// Options of `cargo xtask conformance`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write nothing; fail if something would change.
    #[arg(long)]
    check: bool,
}

/// Writes the tables, or checks them.
pub(crate) fn run(options: &Options) -> Result<()> {
    let report = rules::report(&shell::root()).context("cannot read the repository")?;
    let mut faults = report.faults;
    for document in &report.documents {
        let is_current = fs::read_to_string(&document.path).is_ok_and(|text| text == document.text);
        if is_current {
            continue;
        }
        if options.check {
            faults.push(format!("{} is out of date", document.path.display()));
        } else {
            fs::write(&document.path, &document.text)
                .with_context(|| format!("cannot write {}", document.path.display()))?;
            println!("wrote {}", document.path.display());
        }
    }
    for document in &report.documents {
        println!("{}", document.summary);
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(())
}
