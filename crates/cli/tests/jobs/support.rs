//! Programs, clusters and terminals for tests.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// The binary, in a folder that is also its home.
pub(crate) fn lockstep(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    command
        .env_remove("KUBECONFIG")
        .env("HOME", folder)
        .env_remove("XDG_DATA_HOME")
        .stdin(Stdio::null())
        .current_dir(folder);
    command
}

/// What was written.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Sends a signal.
pub(crate) fn signal(which: &str, process: u32) {
    let sent = Command::new("kill").args([which, &process.to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// A cluster for one test.
pub(crate) struct Up {
    child: Child,
    folder: tempfile::TempDir,
    options: Vec<String>,
}

fn serve(folder: &Path, options: &[String]) -> Child {
    let mut child = lockstep(folder)
        .args(["up", "--log", "warn", "--data-dir", "here"])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("lockstep runs");
    let mut said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let is_ready = said.any(|line| line.is_ok_and(|line| line.contains("export KUBECONFIG=")));
    assert!(is_ready, "it ended before it was ready");
    child
}

impl Up {
    /// Starts it and waits until it serves.
    pub(crate) fn start() -> Self {
        Self::with(vec!["--in-memory".to_owned(), "--port".to_owned(), "0".to_owned()])
    }

    /// Starts one that can be started again, and is then found where it was.
    pub(crate) fn lasting() -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        Self::with(vec!["--port".to_owned(), port.to_string()])
    }

    fn with(options: Vec<String>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let child = serve(folder.path(), &options);
        Self { child, folder, options }
    }

    /// Kills it and starts it again.
    pub(crate) fn restart(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("it ends");
        self.child = serve(self.folder.path(), &self.options);
    }

    /// Where it lives.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a command on this cluster: how it ended, its stdout and stderr.
    pub(crate) fn run(&self, words: &str, stdin: &str) -> (Option<i32>, String, String) {
        // What stands after -- is not for lockstep.
        let is_gang = words.contains(" -- ");
        let place: &[&str] = if is_gang { &[] } else { &["--data-dir", "here"] };
        let mut child = lockstep(self.folder.path())
            .args(words.split(' '))
            .args(place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("lockstep runs");
        // A command that reads nothing may have ended by now.
        drop(child.stdin.take().expect("a pipe").write_all(stdin.as_bytes()));
        let output = child.wait_with_output().expect("it ends");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Runs a command until it says what is wanted.
    pub(crate) fn wait_for(&self, words: &str, wanted: &str) {
        let begun = Instant::now();
        loop {
            let (_, said, _) = self.run(words, "");
            if said.contains(wanted) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "no {wanted} in {said}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // In an orderly way: killed, it would leave the processes of its pods behind.
        signal("-TERM", self.child.id());
        drop(self.child.wait());
    }
}

/// A terminal that remembers what is written to it.
pub(crate) struct Terminal {
    master: OwnedFd,
    slave: File,
}

impl Terminal {
    /// One of this size.
    pub(crate) fn open(columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let slave = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).expect("opened");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size).expect("sized");
        Self { master, slave: slave.into() }
    }

    /// Starts a program on it.
    pub(crate) fn spawn(&mut self, command: &mut Command) -> Child {
        let slave = || self.slave.try_clone().expect("a copy");
        command.stdout(slave()).stderr(slave()).spawn().expect("it runs")
    }

    /// Everything that is written until the program ends.
    pub(crate) fn read_until_end(&mut self, child: &mut Child, limit: Duration) -> String {
        let mut reader = File::from(self.master.try_clone().expect("a copy"));
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut piece) {
                if sender.send(piece[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let begun = Instant::now();
        let mut all = Vec::new();
        loop {
            while let Ok(piece) = receiver.recv_timeout(Duration::from_millis(50)) {
                all.extend(piece);
            }
            if child.try_wait().expect("a child").is_some() {
                return text(&all);
            }
            assert!(begun.elapsed() < limit, "it does not end: {}", text(&all));
        }
    }
}
