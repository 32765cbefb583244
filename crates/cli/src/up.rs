//! `lockstep up`: a cluster on this machine, until it is told to stop.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, ErrorKind, IsTerminal},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};
use lockstep_local::{
    Configuration,
    controllers::machine_queue,
    embedded::{self, Embedded, StartError},
};

use crate::{
    config,
    datadir::{self, Running},
    exit::{self, Ending, Exit, usage},
    node::NodeOptions,
    output,
    signals::Signals,
};

/// Where the API listens when nobody says and nobody else does: the port kubectl users know.
const PORT: u16 = 6443;

/// The last line of the banner, by which a detaching parent knows that all has been said.
const LAST_LINE: &str = "Stop it with";

/// Options of `lockstep up`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Images are not pulled: a container is a process of this machine, started from its `command`. One
without a command waits and says so; --image-command gives images one.

Examples:
  lockstep up                             in the foreground, until Ctrl-C
  lockstep up --detach                    in the background, until `lockstep down`
  lockstep up --in-memory                 nothing stays when it stops
  lockstep up --queue-all                 no job starts before all of it has room
  lockstep up --data-dir ./cluster --port 0
                                          a second cluster, on any free port
  lockstep up --image-command nginx='python3 -m http.server 8080 --directory /srv/www'
                                          what to run for an image, in the container's workingDir
                                          or, without one, in /
  lockstep up --fake-nodes 1000 --fake-node-label 'pool=pool-{i/100}'
                                          a thousand nodes whose pods only pretend")]
pub(crate) struct Options {
    /// Where to keep everything [default: $XDG_DATA_HOME/lockstep or ~/.local/share/lockstep]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Keep objects in memory only
    #[arg(long)]
    in_memory: bool,
    /// Return as soon as it is ready and leave it running
    #[arg(short, long)]
    detach: bool,
    /// The port to listen on; 0 for any free one [default: 6443, or any free one if taken]
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,
    /// Let --listen be an address that other machines can reach
    #[arg(long)]
    allow_remote: bool,
    /// Let all new Jobs and JobSets that name no queue wait in the queue `machine`: each starts
    /// when there is room for all of it
    #[arg(long)]
    queue_all: bool,
    /// A file with the configuration of the JobSet controller, of Kueue, or of both: features that
    /// are on, and how queues work
    #[arg(long, value_name = "FILE", value_parser = config::read)]
    config: Option<Configuration>,
    #[command(flatten)]
    node: NodeOptions,
    /// What to log to stderr: error, warn, info, debug, or a filter such as lockstep_local=debug
    #[arg(long, value_name = "FILTER", env = "LOCKSTEP_LOG", default_value = "info")]
    log: String,
    #[arg(long, hide = true)]
    detached: bool,
}

/// Serves until a signal comes.
pub(crate) async fn run(options: &Options) -> Result<Exit> {
    let folder = match &options.data_dir {
        Some(folder) => std::path::absolute(folder)?,
        None => datadir::default()?,
    };
    if !options.listen.is_loopback() && !options.allow_remote {
        let address = options.listen;
        return Err(usage(format!(
            "error: --listen {address} can be reached from other machines, and whoever has the \
             token can run programs as you: add --allow-remote if that is wanted, or leave out \
             --listen"
        )));
    }
    make_private(&folder).map_err(cannot_start)?;
    // Of two processes the one that a person sees says it.
    if !options.detached {
        config::warn(options.config.as_ref());
    }
    if options.detach && !options.detached {
        return detach(&folder).map_err(cannot_start);
    }
    if options.detached {
        // A session of its own: the terminal's signals are for the terminal's programs. The folder
        // we came from may be removed or unmounted, and by now nothing is relative to it.
        let _ = rustix::process::setsid();
        std::env::set_current_dir("/").context("cannot leave the current folder")?;
    }
    start_logging(&options.log)?;
    let _running = Running::claim(&folder).map_err(cannot_start)?;
    let mut signals = Signals::listen().map_err(cannot_start)?;
    let embedded = start(options, &folder).await?;
    if options.in_memory {
        let text = embedded.kubeconfig().unwrap_or_default();
        write_kubeconfig(&folder, text).map_err(cannot_start)?;
    }
    // A cluster nobody listens to is a cluster all the same.
    let _heard = output::data(banner(&embedded, &folder, options));
    signals.next().await;
    output::note("stopping: pods get their grace period (again to stop at once)");
    let killer = embedded.killer();
    signals.or_quickly(embedded.shutdown(), killer).await;
    // Signals are the documented way to stop a cluster, so being stopped is no failure.
    Ok(Exit::Success)
}

/// A cluster that does not start has failed.
fn cannot_start(error: anyhow::Error) -> anyhow::Error {
    exit::or(error, Exit::Cluster)
}

async fn start(options: &Options, folder: &Path) -> Result<Embedded> {
    let wanted = options.port.unwrap_or(PORT);
    match Embedded::start(embedded_options(options, folder, wanted)).await {
        Err(StartError::Listen { source, .. })
            if options.port.is_none() && source.kind() == ErrorKind::AddrInUse =>
        {
            Embedded::start(embedded_options(options, folder, 0)).await
        }
        other => other,
    }
    .map_err(|error| {
        let error = anyhow::Error::new(error);
        Ending::error(Exit::Cluster, format!("error: cannot start: {error:#}"))
    })
}

fn embedded_options(options: &Options, folder: &Path, port: u16) -> embedded::Options {
    let mut wanted = options.node.embedded();
    wanted.data_dir = (!options.in_memory).then(|| folder.to_path_buf());
    wanted.listen = Some(SocketAddr::new(options.listen, port));
    wanted.allows_remote = options.allow_remote;
    wanted.configuration = options.config.clone().unwrap_or_default();
    wanted.queue_for_all = options.queue_all.then(|| machine_queue::NAME.to_owned());
    wanted
}

fn banner(embedded: &Embedded, folder: &Path, options: &Options) -> String {
    let address = embedded.address().map(|a| a.to_string()).unwrap_or_default();
    let kubeconfig = datadir::kubeconfig(folder);
    let stop = match options.detached {
        true => format!("`{}`", datadir::down(folder)),
        false => "Ctrl-C".to_owned(),
    };
    let kept = if options.in_memory { "nothing stays" } else { "what is stored stays" };
    // Said before the rest: it explains what pods will be like.
    let limits = embedded.lacks_namespaces().map(|reason| {
        format!(
            "User namespaces cannot be used here ({reason}): names of other pods are replaced by \
             addresses\nin environment values, and volumes are links. To allow them on Ubuntu 24.04 \
             or later:\n\n  sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0\n\n"
        )
    });
    let limits = limits.unwrap_or_default();
    format!(
        "lockstep {} is up at https://{address} (Kubernetes {}, ready in {} ms)\n\
         Images are not pulled: containers are processes of this machine.\n\n\
         {limits}  \
         export KUBECONFIG={}\n\n\
         {LAST_LINE} {stop}; {kept}.\n",
        env!("CARGO_PKG_VERSION"),
        lockstep_api::KUBERNETES_VERSION,
        embedded.ready_after().as_millis(),
        kubeconfig.display()
    )
}

/// Starts this program again without a terminal, passes on what it says until it is ready, and
/// leaves it.
fn detach(folder: &Path) -> Result<Exit> {
    let path = datadir::log(folder);
    let log = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let told_before = log.metadata()?.len();
    let mut child = Command::new(std::env::current_exe().context("cannot find this program")?)
        .args(std::env::args_os().skip(1))
        .arg("--detached")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .context("cannot start the cluster")?;
    let said = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    for line in said.lines() {
        let line = line?;
        let _heard = output::line(&line);
        if line.starts_with(LAST_LINE) {
            return Ok(Exit::Success);
        }
    }
    let status = child.wait()?;
    let log = fs::read(&path).unwrap_or_default();
    let told = usize::try_from(told_before).unwrap_or_default().min(log.len());
    let why = String::from_utf8_lossy(&log[told..]).trim().to_owned();
    let message = if why.is_empty() { format!("error: it ended with {status}") } else { why };
    let is_usage = status.code() == Some(i32::from(Exit::Usage as u8));
    Err(Ending::error(if is_usage { Exit::Usage } else { Exit::Cluster }, message))
}

fn make_private(folder: &Path) -> Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("cannot make {}", folder.display()))
}

fn write_kubeconfig(folder: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    let path = datadir::kubeconfig(folder);
    let mut file = File::options()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

/// Sends what the program logs to stderr.
pub(crate) fn start_logging(filter: &str) -> Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_new(filter)
        .map_err(|error| Ending::error(Exit::Usage, format!("error: --log {filter:?}: {error}")))?;
    let is_terminal = std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(is_terminal)
        .with_writer(std::io::stderr)
        .init();
    Ok(())
}
