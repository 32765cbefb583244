//! A Valkey of one test, that can be killed, started again without its data, and held up.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::support::signal;

/// A server on this machine.
pub(crate) struct Valkey {
    pub(crate) port: u16,
    folder: TempDir,
    child: Child,
}

impl Drop for Valkey {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Valkey {
    /// A server that lets everybody in.
    pub(crate) fn start() -> Self {
        Self::configured(|_| String::new())
    }

    /// A server with these lines in its configuration, which may be about a port and a folder.
    pub(crate) fn configured(lines: impl FnOnce(&Where<'_>) -> String) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = free.expect("a port").port();
        let lines = lines(&Where { port, folder: &folder });
        let listens = if lines.contains("tls-port") { 0 } else { port };
        let configuration = format!(
            "port {listens}\nbind 127.0.0.1\nsave \"\"\nappendonly no\ndir {}\n{lines}\n",
            folder.path().display()
        );
        fs::write(folder.path().join("valkey.conf"), configuration).expect("written");
        let child = spawn(&folder);
        let valkey = Self { port, folder, child };
        valkey.until_there();
        valkey
    }

    pub(crate) fn url(&self) -> String {
        format!("valkey://127.0.0.1:{}", self.port)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Ends it without any warning. All data are lost.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    /// Starts it again, empty.
    pub(crate) fn start_again(&mut self) {
        self.child = spawn(&self.folder);
        self.until_there();
    }

    /// Holds it up, or lets it go on.
    pub(crate) fn signal(&self, which: &str) {
        signal(which, self.child.id());
    }

    /// Asks it something, as a user who may do everything.
    pub(crate) fn ask(&self, line: &str) -> String {
        self.ask_as("", line)
    }

    /// Asks it something after some other line, such as a login.
    pub(crate) fn ask_as(&self, login: &str, line: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
        let login = if login.is_empty() { String::new() } else { format!("{login}\r\n") };
        write!(stream, "{login}{line}\r\nQUIT\r\n").expect("written");
        let mut said = Vec::new();
        stream.read_to_end(&mut said).expect("it answers and hangs up");
        String::from_utf8_lossy(&said).into_owned()
    }

    /// The connections of agents: those that listen to orders.
    pub(crate) fn agents(&self) -> Vec<String> {
        let list = self.ask("CLIENT LIST");
        let word = |line: &str, name: &str| {
            let mut words = line.split(' ');
            words.find_map(|word| word.strip_prefix(name).map(ToOwned::to_owned))
        };
        let listening = list.lines().filter(|line| word(line, "sub=").as_deref() == Some("2"));
        listening.filter_map(|line| word(line, "id=")).collect()
    }

    fn until_there(&self) {
        let end = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < end, "Valkey does not come up:\n{log}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// What a configuration may have to name.
pub(crate) struct Where<'a> {
    pub(crate) port: u16,
    pub(crate) folder: &'a TempDir,
}

fn spawn(folder: &TempDir) -> Child {
    let program = std::env::var_os("LOCKSTEP_VALKEY").unwrap_or_else(|| "valkey-server".into());
    let log = fs::File::create(folder.path().join("log")).expect("a file");
    Command::new(&program)
        .arg(folder.path().join("valkey.conf"))
        .stdin(Stdio::null())
        .stdout(log)
        .spawn()
        .expect("a server, named by $LOCKSTEP_VALKEY or in $PATH")
}
