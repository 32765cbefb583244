//! Starts programs inside the container.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::Access;
use rustix::process::{Gid, Pid, Resource, Rlimit, Signal, Uid};

use super::signals;
use super::stdio::Theirs;
use super::wire::ShimLaunch;
use crate::node::limits::Cgroup;
use crate::node::runtime::{Credentials, ExecFailure};

/// Where programs are looked for when the container has no `PATH`.
const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The priority of a container whose CPU use cannot be limited otherwise.
const NICE: i32 = 10;

/// What container runtimes add to the environment of a process with a terminal.
const TERMINAL: [(&str, &str); 1] = [("TERM", "xterm")];

/// A program to start: the main process of the container, or one beside it.
pub(super) struct Program<'a> {
    command: &'a [String],
    env: &'a [(String, String)],
    dir: &'a Path,
    credentials: &'a Credentials,
    cgroups: Vec<OwnedFd>,
    data_bytes_max: Option<u64>,
    is_nice: bool,
}

impl<'a> Program<'a> {
    /// `command` as a process of the container of `launch`.
    pub(super) fn of(
        launch: &'a ShimLaunch,
        command: &'a [String],
        cgroup: Option<&Cgroup>,
    ) -> Self {
        Self {
            command,
            env: &launch.env,
            dir: &launch.working_dir,
            credentials: &launch.credentials,
            cgroups: cgroup.map(Cgroup::procs).unwrap_or_default(),
            // Reserved address space costs nothing, so only memory that can be written counts.
            data_bytes_max: launch.limits.memory_bytes.filter(|_| cgroup.is_none()),
            is_nice: launch.limits.cpu_milli.is_some() && cgroup.is_none(),
        }
    }

    /// Who it runs as, if that is somebody else.
    pub(super) fn user(&self) -> Option<u32> {
        self.credentials.user
    }

    /// Starts it in a process group of its own.
    pub(super) fn spawn(self, streams: &Theirs) -> Result<Pid, ExecFailure> {
        let Some(name) = self.command.first() else {
            return Err(ExecFailure::NotFound { program: String::new() });
        };
        let mut refusal = None;
        // What we may run, the user of the container may not: then the next one in the PATH is it.
        for program in self.find(name)? {
            match self.start(&program, streams) {
                Ok(pid) => return Ok(pid),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    refusal.get_or_insert(error);
                }
                Err(error) => return Err(super::refused(name, &error)),
            }
        }
        let refusal = refusal.unwrap_or_else(|| io::ErrorKind::NotFound.into());
        Err(super::refused(name, &refusal))
    }

    fn start(&self, program: &Path, streams: &Theirs) -> io::Result<Pid> {
        let stdio = |fd: &Option<OwnedFd>| match fd {
            Some(fd) => fd.try_clone().map(Stdio::from),
            None => Ok(Stdio::null()),
        };
        let mut command = Command::new(program);
        command
            .arg0(&self.command[0])
            .args(&self.command[1..])
            .env_clear()
            .envs(TERMINAL.into_iter().filter(|_| streams.is_terminal))
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(self.dir)
            .stdin(stdio(&streams.input)?)
            .stdout(stdio(&streams.out)?)
            .stderr(stdio(&streams.err)?);
        if !streams.is_session {
            command.process_group(0);
        }
        let prepare = self.preparation(streams);
        #[expect(unsafe_code, reason = "the child must join its cgroups before it is the program")]
        // SAFETY: the closure makes system calls only; it neither allocates nor takes locks.
        unsafe {
            command.pre_exec(prepare);
        }
        command.spawn().map(|child| Pid::from_child(&child))
    }

    /// What the child does between fork and exec.
    fn preparation(
        &self,
        streams: &Theirs,
    ) -> impl FnMut() -> io::Result<()> + Send + Sync + use<> {
        let (is_session, is_terminal) = (streams.is_session, streams.is_terminal);
        let cgroups: Vec<_> = self.cgroups.iter().filter_map(|fd| fd.try_clone().ok()).collect();
        let (data_bytes_max, is_nice) = (self.data_bytes_max, self.is_nice);
        let is_root = rustix::process::geteuid().is_root();
        let identity = Identity::of(self.credentials).filter(|_| is_root);
        let dropped = self.credentials.dropped_capabilities.clone();
        let is_held = self.credentials.no_new_privileges || !is_root;
        move || {
            if is_session {
                rustix::process::setsid()?;
            }
            if is_terminal {
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
            }
            for procs in &cgroups {
                rustix::io::write(procs, b"0")?;
            }
            if let Some(bytes) = data_bytes_max {
                let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
                rustix::process::setrlimit(Resource::Data, limit)?;
            }
            if is_nice {
                rustix::process::nice(NICE)?;
            }
            dropped.iter().for_each(|capability| drop_capability(*capability));
            if let Some(identity) = &identity {
                identity.assume()?;
            }
            if is_held {
                // Without rights of our own, a program that became another user could not be
                // killed any more.
                rustix::thread::set_no_new_privs(true)?;
            }
            // After the change of user, which would undo it.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            signals::unblock_all()
        }
    }

    /// Finds the program as a shell would, with the errors of a container runtime: all that have
    /// the name, and at least one.
    fn find(&self, name: &str) -> Result<Vec<PathBuf>, ExecFailure> {
        if let Err(error) = std::fs::read_dir(self.dir).or_else(|error| match error.kind() {
            // A folder that cannot be listed may still be entered.
            io::ErrorKind::PermissionDenied => std::fs::read_dir("/"),
            _ => Err(error),
        }) {
            let cause = super::system_words(&error);
            return Err(ExecFailure::WorkingDir { dir: self.dir.to_owned(), cause });
        }
        let program = || name.to_owned();
        if name.contains('/') {
            let path = self.dir.join(name);
            return match path.metadata() {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    Err(ExecFailure::PermissionDenied { program: program() })
                }
                Err(_) => Err(ExecFailure::NotFound { program: program() }),
                Ok(meta) if meta.is_dir() => Err(ExecFailure::IsDirectory { program: program() }),
                Ok(_) if !is_executable(&path) => {
                    Err(ExecFailure::PermissionDenied { program: program() })
                }
                Ok(_) => Ok(vec![path]),
            };
        }
        let path = self.env.iter().rev().find(|(key, _)| key == "PATH");
        let path = path.map_or(PATH_DEFAULT, |(_, value)| value);
        let found: Vec<PathBuf> = path
            .split(':')
            .map(|dir| self.dir.join(OsStr::from_bytes(dir.as_bytes())).join(name))
            .filter(|path| path.is_file() && is_executable(path))
            .collect();
        if found.is_empty() {
            return Err(ExecFailure::NotInPath { program: program() });
        }
        Ok(found)
    }
}

/// A user and all its groups.
struct Identity {
    user: Option<Uid>,
    group: Option<Gid>,
    groups: Vec<Gid>,
}

impl Identity {
    /// What of it was asked for; `None` if nothing was.
    fn of(wanted: &Credentials) -> Option<Self> {
        let group = wanted.group.or(wanted.user);
        if group.is_none() && wanted.groups.is_empty() {
            return None;
        }
        let groups = group.iter().chain(&wanted.groups).map(|group| Gid::from_raw(*group));
        Some(Self {
            user: wanted.user.map(Uid::from_raw),
            group: group.map(Gid::from_raw),
            groups: groups.collect(),
        })
    }

    /// Makes this process have it. The user comes last: then there are no rights for the rest.
    fn assume(&self) -> rustix::io::Result<()> {
        rustix::thread::set_thread_groups(&self.groups)?;
        if let Some(group) = self.group {
            rustix::thread::set_thread_gid(group)?;
        }
        self.user.map_or(Ok(()), rustix::thread::set_thread_uid)
    }
}

/// Takes a capability from everything this process becomes. Without the right to do so it has none.
#[expect(unsafe_code, reason = "capabilities by number have no safe wrapper among our crates")]
fn drop_capability(number: u32) {
    // SAFETY: the call takes a number and touches no memory.
    unsafe {
        libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), 0, 0, 0);
    }
}

fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, Access::EXEC_OK).is_ok()
}
