//! Everything a change must pass, in the order that fails fastest.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::shell;

/// Crates whose code decides: what they link must be unable to do IO.
const PURE: [&str; 4] = ["lockstep-api", "lockstep-control", "lockstep-sim", "lockstep-store"];

/// Crates no pure crate may reach, not even through others.
const IMPURE: [&str; 8] =
    ["async-std", "hyper", "kube-client", "mio", "rand", "reqwest", "tokio", "tracing"];

/// Options of `cargo xtask check`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Leave out the tests.
    #[arg(long)]
    no_test: bool,
}

/// Runs all checks; the first that fails ends it.
pub(crate) fn run(options: &Options) -> Result<()> {
    shell::run(&mut shell::cargo(["fmt", "--all", "--check"]))?;
    let lint = "clippy --workspace --all-targets --locked -- -D warnings";
    shell::run(&mut shell::cargo(lint.split(' ')))?;
    if !options.no_test {
        shell::run(&mut shell::cargo(["test", "--workspace", "--locked"]))?;
    }
    let doc = "doc --workspace --no-deps --document-private-items --locked";
    shell::run(shell::cargo(doc.split(' ')).env("RUSTDOCFLAGS", "-D warnings"))?;
    purity()
}

/// Fails when a pure crate links something that does IO, keeps time or is random.
fn purity() -> Result<()> {
    for package in PURE {
        let tree =
            ["tree", "--locked", "-p", package, "-e", "normal", "--prefix", "none", "-f", "{p}"];
        let linked = shell::output(&mut shell::cargo(tree))?;
        let found = impure(&linked);
        if !found.is_empty() {
            bail!(
                "{package} is pure but links {}",
                found.into_iter().collect::<Vec<_>>().join(", ")
            );
        }
        println!("{package} links nothing impure");
    }
    Ok(())
}

fn impure(tree: &str) -> BTreeSet<&str> {
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.filter(|name| IMPURE.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impure_crate_is_found_anywhere_in_the_tree() {
        let tree = "lockstep-api v0.1.0 (/x)\nserde v1.0.0\ntokio v1.4.0 (*)\ntokio-util v0.7.0\n";
        assert_eq!(impure(tree), BTreeSet::from(["tokio"]));
        assert!(impure("serde v1.0.0\n").is_empty());
    }
}
