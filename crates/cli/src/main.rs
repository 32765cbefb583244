//! The `lockstep` binary: talks to people, wires the shells, decides nothing.

mod agent;
mod apply;
mod args;
mod bus;
mod catalog;
mod chosen;
mod cluster;
mod config;
mod create;
mod datadir;
mod delete;
mod describe;
mod down;
mod events;
mod exit;
mod get;
#[cfg(test)]
mod golden;
mod logs;
mod manifest;
mod manifests;
mod node;
mod operator;
mod output;
mod queueing;
mod queues;
mod refusal;
mod run;
mod signals;
mod suggest;
mod table;
mod tabs;
mod targets;
mod up;
mod validate;
mod version;
mod wait;
mod waiting;
mod watching;
mod why;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser};
use lockstep_api::jsonpath;
use lockstep_local::node::shim;
use mimalloc::MiMalloc;

use self::{
    args::{Cli, Command},
    exit::Exit,
};

/// Objects are many small pieces, made on one thread and dropped on another: a quarter of the time
/// of a restart of thousands of pods went into the allocator of the C library.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// What a thread may have on its stack. The default fits what is nested as deep as anything may be,
/// but not in programs that are not optimised, whose frames are larger; only what is used is taken.
const STACK: usize = 16 << 20;

fn main() -> ExitCode {
    // A container's parent must not start a runtime: it forks, and threads do not survive that.
    if shim::is_requested() {
        return shim::main();
    }
    let command = Cli::parse_from(args::tidy(std::env::args_os().collect())).command;
    // An agent takes every child that ends: no other thread may wait for one.
    if let Command::Agent(options) = &command {
        return agent::main(options);
    }
    let done = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK)
        .build()
        .context("cannot start the runtime")
        .and_then(|runtime| runtime.block_on(dispatch(command)));
    match done {
        Ok(exit) => exit.into(),
        Err(error) if output::is_closed_pipe(&error) => Exit::Success.into(),
        Err(error) => {
            let message = exit::explain(&error);
            if !message.is_empty() {
                output::note(message);
            }
            exit::of(&error).into()
        }
    }
}

async fn dispatch(command: Command) -> Result<Exit> {
    match command {
        Command::Run(options) => return run::run(&options).await,
        Command::Up(options) => return up::run(&options).await,
        Command::Operator(options) => return operator::run(&options).await,
        Command::Agent(_) => unreachable!("agents have a runtime of their own"),
        Command::Down(options) => down::run(&options).await?,
        Command::Apply(options) => apply::run(&options).await?,
        Command::Create(options) => create::run(&options).await?,
        Command::Get(options) => get::run(&options).await?,
        Command::Describe(options) => describe::run(&options).await?,
        Command::Logs(options) => logs::run(&options).await?,
        Command::Events(options) => events::run(&options).await?,
        Command::Why(options) => why::run(&options).await?,
        Command::Queues(options) => queues::run(&options).await?,
        Command::Delete(options) => delete::run(&options).await?,
        Command::Wait(options) => wait::run(&options).await?,
        Command::Manifests(options) => manifests::run(&options)?,
        Command::Validate(options) => validate::run(&options)?,
        Command::Version(options) => version::run(&options).await?,
        Command::Completions(options) => {
            let mut script = Vec::new();
            clap_complete::generate(options.shell, &mut Cli::command(), "lockstep", &mut script);
            output::data(script)?;
        }
    }
    Ok(Exit::Success)
}
