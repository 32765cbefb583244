//! What any cluster that runs JobSets and has queues must do.
//!
//! Each case is written once, against nothing but the API, and has a namespace of its own. The pods
//! need fake nodes, which `lockstep up --fake-nodes` and `cargo xtask kubernetes --fake-nodes`
//! have: a case ends the pods it picks by annotation. `cargo xtask e2e conformance` runs all of it
//! on the embedded cluster and on a real control plane.
#![expect(clippy::print_stdout, reason = "a suite talks to a terminal")]

mod cases;
mod player;
mod queue;
mod world;

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use clap::Parser;
use futures::StreamExt;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use self::{cases::Case, world::World};

/// How long one case may take on a busy machine.
const STUCK: Duration = Duration::from_secs(180);

/// Checks a cluster.
#[derive(Parser)]
struct Options {
    /// The kubeconfig to use; by default what kubectl would use.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// How many cases run at the same time.
    #[arg(long, default_value_t = 4)]
    at_once: usize,
    /// Only cases whose names contain one of these, or that are about one of them.
    names: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let config = match &options.kubeconfig {
        Some(path) => {
            let read = Kubeconfig::read_from(path).context("the kubeconfig cannot be read")?;
            Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?
        }
        None => Config::infer().await?,
    };
    let client = Client::try_from(config)?;
    let is_wanted = |case: &Case| {
        let is_named =
            |name: &String| case.name.contains(name) || case.room.rsplit("::").next() == Some(name);
        options.names.is_empty() || options.names.iter().any(is_named)
    };
    let wanted: Vec<Case> = cases::all().into_iter().filter(is_wanted).collect();
    let count = wanted.len();
    let failed = futures::stream::iter(wanted)
        .map(|case| run(&client, case))
        .buffer_unordered(options.at_once.max(1))
        .filter(|is_ok| std::future::ready(!is_ok))
        .count()
        .await;
    println!("conformance: {} passed, {failed} failed", count - failed);
    Ok(if failed == 0 && count > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs one case; says how it went.
async fn run(client: &Client, case: Case) -> bool {
    let begun = Instant::now();
    let outcome = tokio::time::timeout(STUCK, in_its_namespace(client, &case)).await;
    let took = begun.elapsed().as_secs_f64();
    match outcome {
        Ok(Ok(())) => println!("ok    {} ({took:.1} s)", case.name),
        Ok(Err(ref error)) => println!("FAIL  {} ({took:.1} s)\n  {error:#}", case.name),
        Err(_) => println!("FAIL  {} is stuck after {took:.0} s", case.name),
    }
    matches!(outcome, Ok(Ok(())))
}

async fn in_its_namespace(client: &Client, case: &Case) -> Result<()> {
    let world = World::new(client.clone(), case.name).await?;
    let outcome = (case.run)(world.clone()).await;
    world.remove().await;
    outcome
}
