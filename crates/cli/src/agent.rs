//! `lockstep agent`: the process around a worker of a gang that restarts in place.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use lockstep_restart::agent::{self, Address, Heartbeat, Trust, Via};
use lockstep_restart::valkey::Server;
use regex::bytes::Regex;
use tracing::warn;

use crate::{
    bus::{BusOptions, trusting},
    exit::{self, Exit},
    output,
    up::start_logging,
};

/// Options of `lockstep agent`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The worker is started when all workers of its gang are there, and again together with all of them
whenever one has failed. It finds the number of the start, from 0, in $LOCKSTEP_EPOCH. While nobody
leads the gang a healthy worker runs on, and a failed one stays down.

JobSets with the annotation alpha.jobset.sigs.k8s.io/inplace-timeout have it around their workers
without being asked; by hand it is for other launchers.

Example:
  lockstep agent --orchestrator 10.0.0.7:7411 --ca ca.pem --pod 5d6f... -- python train.py
  lockstep agent --bus valkeys://valkey:6379 --bus-ca ca.pem --pod 5d6f... -- python train.py")]
pub(crate) struct Options {
    /// Where the orchestrator listens: HOST:PORT
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "LOCKSTEP_ORCHESTRATOR",
        value_parser = address,
        required_unless_present_any = ["install", "bus", "valkey_address"],
        conflicts_with = "bus"
    )]
    orchestrator: Option<Address>,
    #[command(flatten)]
    bus: BusOptions,
    /// The certificates that the orchestrator's may be signed with, as a PEM file
    #[arg(long, value_name = "FILE", env = "LOCKSTEP_ORCHESTRATOR_CA")]
    ca: Option<PathBuf>,
    /// The same certificates, as text
    #[arg(long, env = "LOCKSTEP_ORCHESTRATOR_CA_PEM", conflicts_with = "ca", hide = true)]
    ca_pem: Option<String>,
    /// Talk to the orchestrator without TLS
    #[arg(long, env = "LOCKSTEP_ORCHESTRATOR_PLAINTEXT", conflicts_with_all = ["ca", "ca_pem"])]
    plaintext: bool,
    /// The ticket that lets it speak for its pod
    #[arg(long, value_name = "TICKET", env = "LOCKSTEP_TICKET", hide_env_values = true)]
    ticket: Option<String>,
    /// A file with that ticket
    #[arg(long, value_name = "FILE", env = "LOCKSTEP_TICKET_FILE", conflicts_with = "ticket")]
    ticket_file: Option<PathBuf>,
    /// The uid of its pod
    #[arg(
        long,
        value_name = "UID",
        env = "LOCKSTEP_POD_UID",
        alias = "worker-pod-uid",
        required_unless_present = "install"
    )]
    pod: Option<String>,
    /// How long a worker that is asked to stop may take before it is killed
    #[arg(
        long,
        value_name = "DURATION",
        env = "LOCKSTEP_GRACE",
        alias = "worker-termination-grace-period",
        value_parser = span,
        default_value = "2s"
    )]
    grace: Duration,
    /// A file that the worker touches as a sign of life
    #[arg(
        long,
        value_name = "FILE",
        env = "LOCKSTEP_HEARTBEAT_FILE",
        group = "heartbeat",
        requires = "heartbeat_timeout"
    )]
    heartbeat_file: Option<PathBuf>,
    /// A pattern in the lines that the worker writes as a sign of life, as a regular expression
    #[arg(
        long,
        value_name = "PATTERN",
        env = "LOCKSTEP_HEARTBEAT_PATTERN",
        group = "heartbeat",
        requires = "heartbeat_timeout"
    )]
    heartbeat_pattern: Option<Regex>,
    /// How long there may be no sign of life before the worker counts as failed
    #[arg(
        long,
        value_name = "DURATION",
        env = "LOCKSTEP_HEARTBEAT_TIMEOUT",
        value_parser = span,
        requires = "heartbeat"
    )]
    heartbeat_timeout: Option<Duration>,
    /// What to log to stderr: error, warn, info, debug, or a filter
    #[arg(long, value_name = "FILTER", env = "LOCKSTEP_LOG", default_value = "warn")]
    log: String,
    /// Copy this program into a folder as `lockstep` and end, so that a pod has it
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    install: Option<PathBuf>,
    #[command(flatten)]
    kep: Kep,
    /// The worker and its arguments
    #[arg(required_unless_present = "install", last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Flags of the agent that KEP-876 shows, which this one has no use for.
#[derive(Clone, Debug, clap::Args)]
struct Kep {
    #[arg(long, hide = true)]
    worker_jobset_uid: Option<String>,
    #[arg(long, hide = true)]
    worker_id: Option<String>,
    #[arg(long, hide = true)]
    worker_container_name: Option<String>,
    #[arg(long, hide = true)]
    cri_socket_path: Option<String>,
    #[arg(long, hide = true)]
    cri_polling_interval: Option<String>,
    /// The bus, without TLS and without a user.
    #[arg(long, hide = true)]
    valkey_address: Option<String>,
}

impl Kep {
    /// Those that were given, each with why it does nothing.
    fn unheeded(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let pod = "the orchestrator knows it from the pod";
        let wraps = "the agent is the parent of the worker and needs no container runtime";
        [
            ("--worker-jobset-uid", &self.worker_jobset_uid, pod),
            ("--worker-id", &self.worker_id, pod),
            ("--worker-container-name", &self.worker_container_name, wraps),
            ("--cri-socket-path", &self.cri_socket_path, wraps),
            ("--cri-polling-interval", &self.cri_polling_interval, wraps),
        ]
        .into_iter()
        .filter(|(_, given, _)| given.is_some())
        .map(|(flag, _, why)| (flag, why))
    }
}

/// Runs a worker in its gang, and ends as it does. It needs a runtime of its own, of one thread.
pub(crate) fn main(options: &Options) -> ExitCode {
    if let Some(folder) = &options.install {
        return match install(folder) {
            Ok(()) => Exit::Success.into(),
            Err(error) => {
                output::note(exit::explain(&error));
                Exit::Failed.into()
            }
        };
    }
    let ended = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
        .and_then(|runtime| {
            let options = prepare(options).map_err(|error| exit::or(error, Exit::Usage))?;
            runtime.block_on(agent::run(options)).context("cannot watch the worker")
        });
    match ended {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        Err(error) => {
            output::note(exit::explain(&error));
            exit::of(&error).into()
        }
    }
}

fn prepare(options: &Options) -> Result<agent::Options> {
    start_logging(&options.log)?;
    for (flag, why) in options.kep.unheeded() {
        warn!("{flag} has no effect: {why}");
    }
    let ticket = match (&options.ticket, &options.ticket_file) {
        (Some(ticket), _) => ticket.clone(),
        (None, Some(file)) => fs::read_to_string(file)
            .with_context(|| format!("cannot read the ticket {}", file.display()))?
            .trim()
            .to_owned(),
        (None, None) => bail!("a ticket is needed: give --ticket-file or $LOCKSTEP_TICKET"),
    };
    let via = match bus(options)? {
        Some(server) => Via::bus(server, &ticket).context("the ticket does not name a job")?,
        None => hub(options)?,
    };
    let heartbeat = options.heartbeat_timeout.and_then(|within| {
        let Options { heartbeat_file: file, heartbeat_pattern: pattern, .. } = options;
        let writing = pattern.clone().map(|pattern| Heartbeat::writing(pattern, within));
        writing.or_else(|| file.clone().map(|file| Heartbeat::touching(file, within)))
    });
    Ok(agent::Options {
        via,
        ticket,
        pod: options.pod.clone().context("--pod is missing")?,
        grace: options.grace,
        heartbeat,
        command: options.command.clone(),
    })
}

/// The bus, if the orchestrator is reached through one.
fn bus(options: &Options) -> Result<Option<Server>> {
    let mut bus = options.bus.clone();
    if let Some(address) = &options.kep.valkey_address {
        if options.orchestrator.is_some() || bus.bus.is_some() {
            warn!("--valkey-address has no effect: --orchestrator or --bus is given");
        } else {
            bus.bus = Some(format!("valkey://{address}"));
        }
    }
    bus.server()
}

/// The orchestrator's own address.
fn hub(options: &Options) -> Result<Via> {
    let trust = match (&options.ca, &options.ca_pem, options.plaintext) {
        (Some(file), ..) => {
            let pem = fs::read(file)
                .with_context(|| format!("cannot read the certificates in {}", file.display()))?;
            Trust::Tls(trusting(&pem, "the orchestrator")?)
        }
        (None, Some(pem), _) => Trust::Tls(trusting(pem.as_bytes(), "the orchestrator")?),
        (None, None, true) => Trust::Anyone,
        (None, None, false) => {
            bail!("give --ca to verify the orchestrator, or --plaintext to trust it")
        }
    };
    let address = options.orchestrator.clone().context("--orchestrator or --bus is missing")?;
    Ok(Via::Hub(address, trust))
}

/// Puts this program where a worker's pod finds it.
fn install(folder: &Path) -> Result<()> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let copy = folder.join("lockstep");
    fs::copy(&program, &copy).with_context(|| format!("cannot write {}", copy.display()))?;
    Ok(())
}

fn address(text: &str) -> Result<Address, String> {
    let wrong = || format!("{text:?} is no address; one looks like 10.0.0.7:7411 or host:7411");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().map_err(|_| wrong())?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err(wrong());
    }
    Ok(Address { host: host.to_owned(), port })
}

fn span(text: &str) -> Result<Duration, String> {
    let parsed: Result<jiff::SignedDuration, _> = text.parse();
    parsed
        .ok()
        .and_then(|span| Duration::try_from(span).ok())
        .ok_or_else(|| format!("{text:?} is no duration; one looks like 500ms, 5s or 2m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        let read = |text| address(text).map(|Address { host, port }| (host, port)).ok();
        assert_eq!(read("10.0.0.7:7411"), Some(("10.0.0.7".into(), 7411)));
        assert_eq!(read("[::1]:7411"), Some(("::1".into(), 7411)));
        for bad in ["", "host", "host:", "host:x", ":1", "host:70000"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_reference_names_every_flag_and_what_a_set_may_ask_for() {
        use clap::Args as _;
        use lockstep_api::labels::jobset as keys;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let reference = fs::read_to_string(root.join("docs/reference.md")).expect("it is there");
        let command = Options::augment_args(clap::Command::new("agent"));
        let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
        let shown: Vec<_> = shown.collect();
        let flags = shown.iter().filter_map(|flag| Some(format!("`--{}", flag.get_long()?)));
        let variables = shown.iter().filter_map(|flag| flag.get_env());
        let variables = variables.map(|name| format!("`{}`", name.to_string_lossy()));
        let annotations = [
            keys::IN_PLACE_TIMEOUT,
            keys::IN_PLACE_RESTARTS,
            keys::IN_PLACE_REJOIN,
            keys::IN_PLACE_STALLED_MAX,
            keys::IN_PLACE_PROGRESS,
        ];
        let annotations = annotations.map(|key| format!("`{key}`"));
        for name in flags.chain(variables).chain(annotations) {
            assert!(reference.contains(&name), "docs/reference.md does not name {name}");
        }
    }

    #[test]
    fn durations_may_be_short() {
        assert_eq!(span("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(span("0s"), Ok(Duration::ZERO));
        assert!(span("-1s").is_err());
        assert!(span("soon").is_err());
    }
}
