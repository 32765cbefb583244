//! Developer commands: `cargo xtask <command>`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "developer commands talk to a terminal"
)]

mod bench;
mod check;
mod conformance;
mod crds;
mod e2e;
mod fuzz;
mod go;
mod kubectl;
mod kubernetes;
mod openapi;
mod shell;
mod sim;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Developer commands of Lockstep.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Format, lint, test, document; then crate edges and purity.
    Check(check::Options),
    /// Write what is generated from the published OpenAPI documents.
    Openapi(openapi::Options),
    /// Write what is generated from the types of custom kinds: schemas and definitions.
    Crds(crds::Options),
    /// Write which test proves which rule of the specifications.
    Conformance(conformance::Options),
    /// Build kubectl from its published Go modules into the user's cache and print its path.
    Kubectl(kubectl::Options),
    /// Run a real Kubernetes control plane on loopback, built from its published Go modules.
    Kubernetes(kubernetes::Options),
    /// End-to-end checks of the real binary.
    E2e(e2e::Options),
    /// Measure against the budgets of the design.
    Bench(bench::Options),
    /// Feed nonsense to whatever reads what others write, under libFuzzer.
    Fuzz(fuzz::Options),
    /// Run simulated worlds, or tell the story of one.
    Sim(sim::Options),
}

fn main() -> ExitCode {
    if let Some(code) = fuzz::compile_if_asked() {
        return code;
    }
    let done = match Cli::parse().command {
        Command::Check(options) => check::run(&options),
        Command::Openapi(options) => openapi::run(&options),
        Command::Crds(options) => crds::run(&options),
        Command::Conformance(options) => conformance::run(&options),
        Command::Kubectl(options) => kubectl::run(&options),
        Command::Kubernetes(options) => kubernetes::run(&options),
        Command::E2e(options) => e2e::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Sim(options) => sim::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
