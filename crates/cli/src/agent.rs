//! `lockstep agent`: the process around a worker of a gang that restarts in place.

use std::{
    env,
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
    /// How long a worker that is asked to stop may take before it is killed; 2s if nothing is said
    /// [env: LOCKSTEP_GRACE]
    #[arg(
        long,
        value_name = "DURATION",
        alias = "worker-termination-grace-period",
        value_parser = span
    )]
    grace: Option<Duration>,
    /// A file that the worker touches as a sign of life [env: LOCKSTEP_HEARTBEAT_FILE]
    #[arg(long, value_name = "FILE")]
    heartbeat_file: Option<PathBuf>,
    /// A pattern in the lines that the worker writes as a sign of life, as a regular expression
    /// [env: LOCKSTEP_HEARTBEAT_PATTERN]
    #[arg(long, value_name = "PATTERN")]
    heartbeat_pattern: Option<Regex>,
    /// How long there may be no sign of life before the worker counts as failed
    /// [env: LOCKSTEP_HEARTBEAT_TIMEOUT]
    #[arg(long, value_name = "DURATION", value_parser = span)]
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
    let (manners, fault) = match Manners::of(options, |name| env::var(name).ok()) {
        Ok(manners) => (manners, None),
        Err(why) if Manners::is_given(options) => bail!(why),
        // A container that ends is started again, for ever. A worker that cannot be started is a
        // failure, which is counted and shown, and ends the gang.
        Err(why) => (Manners::default(), Some(why)),
    };
    let Manners { grace, heartbeat } = manners;
    Ok(agent::Options {
        via,
        ticket,
        pod: options.pod.clone().context("--pod is missing")?,
        grace,
        heartbeat,
        fault,
        command: options.command.clone(),
    })
}

/// How a worker is treated.
#[derive(Debug)]
struct Manners {
    grace: Duration,
    heartbeat: Option<Heartbeat>,
}

impl Default for Manners {
    fn default() -> Self {
        Self { grace: Duration::from_secs(2), heartbeat: None }
    }
}

impl Manners {
    /// What flags say, or else the environment; or what is wrong with it.
    fn of(options: &Options, env: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        fn or<T>(
            given: Option<T>,
            (name, said): (&str, Option<String>),
            read: impl Fn(&str) -> Result<T, String>,
        ) -> Result<Option<T>, String> {
            let Some(text) = said.filter(|_| given.is_none()) else { return Ok(given) };
            read(&text).map(Some).map_err(|why| format!("{name}: {why}"))
        }
        let said = |name: &'static str| (name, env(name));
        let pattern = |text: &str| Regex::new(text).map_err(|error| error.to_string());
        let grace = or(options.grace, said("LOCKSTEP_GRACE"), span)?;
        let within = or(options.heartbeat_timeout, said("LOCKSTEP_HEARTBEAT_TIMEOUT"), span)?;
        let Options { heartbeat_file: file, heartbeat_pattern: line, .. } = options;
        let file = or(file.clone(), said("LOCKSTEP_HEARTBEAT_FILE"), |text| Ok(text.into()))?;
        let line = or(line.clone(), said("LOCKSTEP_HEARTBEAT_PATTERN"), pattern)?;
        let heartbeat = match (file, line, within) {
            (None, None, None) => None,
            (_, _, Some(within)) if within.is_zero() => {
                return Err("the timeout of a sign of life must be above zero".to_owned());
            }
            (Some(file), None, Some(within)) => Some(Heartbeat::touching(file, within)),
            (None, Some(line), Some(within)) => Some(Heartbeat::writing(line, within)),
            (Some(_), Some(_), _) => {
                return Err("a sign of life is a file or a pattern, not both".to_owned());
            }
            (_, _, None) => return Err("a sign of life needs --heartbeat-timeout".to_owned()),
            (None, None, Some(_)) => {
                return Err("--heartbeat-timeout needs a file or a pattern".to_owned());
            }
        };
        Ok(Self { grace: grace.unwrap_or_else(|| Self::default().grace), heartbeat })
    }

    /// Whether any of it was said by flags, so that whoever did so reads the answer.
    const fn is_given(options: &Options) -> bool {
        options.grace.is_some()
            || options.heartbeat_file.is_some()
            || options.heartbeat_pattern.is_some()
            || options.heartbeat_timeout.is_some()
    }
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
    let program = env::current_exe().context("cannot find this program")?;
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
    fn what_the_environment_says_of_a_worker_is_read_or_refused() {
        use clap::Parser as _;
        #[derive(clap::Parser)]
        struct Cli {
            #[command(flatten)]
            options: Options,
        }
        let base = ["agent", "--orchestrator", "h:1", "--pod", "p"];
        let read = |flags: &[&str], said: &[(&str, &str)]| {
            let line = base.iter().chain(flags).chain(&["--", "true"]);
            let options = Cli::try_parse_from(line).expect("it parses").options;
            let env = |name: &str| {
                let name = name.trim_start_matches("LOCKSTEP_");
                said.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            Manners::of(&options, env).map(|it| (it.grace.as_secs(), it.heartbeat.is_some()))
        };
        assert_eq!(read(&[], &[]), Ok((2, false)));
        assert_eq!(read(&["--grace", "3s"], &[("GRACE", "4s")]), Ok((3, false)));
        let beats = [("HEARTBEAT_FILE", "f"), ("HEARTBEAT_TIMEOUT", "1s"), ("GRACE", "4s")];
        assert_eq!(read(&[], &beats), Ok((4, true)));
        assert_eq!(read(&["--heartbeat-pattern", "x"], &beats[1..]), Ok((4, true)));
        let said = read(&[], &[("GRACE", "soon")]).expect_err("it is wrong");
        assert!(said.starts_with("LOCKSTEP_GRACE: \"soon\" is no duration"), "{said}");
        for wrong in [
            &[("HEARTBEAT_FILE", "f")][..],
            &[("HEARTBEAT_TIMEOUT", "1s")],
            &[("HEARTBEAT_FILE", "f"), ("HEARTBEAT_TIMEOUT", "0s")],
            &[("HEARTBEAT_PATTERN", "("), ("HEARTBEAT_TIMEOUT", "1s")],
            &[("HEARTBEAT_PATTERN", "a"), ("HEARTBEAT_FILE", "f"), ("HEARTBEAT_TIMEOUT", "1s")],
        ] {
            assert!(read(&[], wrong).is_err(), "{wrong:?}");
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
