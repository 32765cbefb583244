//! Restarts in place through a real Valkey: two operators on a real control plane, of which the
//! leader is killed while workers restart.

use std::{
    ffi::OsString,
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::{
    super::{check::Suite, valkey},
    cases,
    operator::{Operator, await_leader, free_port},
};
use crate::shell;

/// When the leader is killed, after the cases began: while the first of them restart.
const KILLED_AFTER: Duration = Duration::from_secs(4);

/// Runs the cases of restarts in place on a bus, with operators that have a kubeconfig of their
/// own.
pub(super) fn restarts(
    suite: &mut Suite,
    binary: &Path,
    (kubeconfig, own): (&Path, &Path),
    folder: &Path,
) -> Result<()> {
    let server = Server::start(folder)?;
    let arguments = server.arguments()?;
    let start = |name| Operator::start_with(binary, own, (folder, name), &arguments);
    let first = start("bus-first")?;
    suite.prove("an operator leads on a bus", |_| await_leader(&first));
    let second = start("bus-second")?;
    let killing = thread::spawn(move || {
        thread::sleep(KILLED_AFTER);
        drop(first);
    });
    cases(suite, kubeconfig, &["in_place"]);
    drop(killing.join());
    suite.prove("the second has followed", |_| match second.leads() {
        true => Ok(()),
        false => Err(second.said()),
    });
    suite.prove("what is left of the sets is forgotten", |_| server.has_forgotten());
    Ok(())
}

/// Counts the orders that say something.
const ORDERS: &str = "local left = 0; for _, key in ipairs(redis.call('KEYS', ARGV[1])) do left = \
    left + redis.call('HEXISTS', key, 'frame') end; return left";

/// A Valkey with the users of the documentation; it is killed when this is dropped.
struct Server {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Server {
    fn start(folder: &Path) -> Result<Self> {
        let (program, _) = valkey::server()?;
        let (folder, port) = (folder.join("valkey"), free_port()?);
        fs::create_dir_all(&folder)?;
        let users = fs::read_to_string(shell::root().join("deploy/valkey/users.acl"))?;
        let users = users.replace("AGENT-PASSWORD", "agent");
        let users = users.replace("ORCHESTRATOR-PASSWORD", "leader");
        let admin = "user admin on >admin ~* &* +@all";
        fs::write(folder.join("users.acl"), format!("{users}\n{admin}\n"))?;
        fs::write(folder.join("leader"), "leader\n")?;
        fs::write(folder.join("agent"), "agent\n")?;
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.arg("--aclfile").arg(folder.join("users.acl")).arg("--dir").arg(&folder);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let server = Self { child: command.spawn().context("cannot start Valkey")?, port, folder };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if begun.elapsed() > Duration::from_secs(20) {
                bail!("Valkey does not come up");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// What an operator is told of it.
    fn arguments(&self) -> Result<Vec<OsString>> {
        let url = format!("valkey://127.0.0.1:{}", self.port);
        let words = ["--bus", &url, "--bus-user", "lockstep-orchestrator", "--bus-password-file"];
        let mut arguments: Vec<OsString> = words.map(OsString::from).into();
        arguments.push(self.folder.join("leader").into());
        let words = ["--agent-bus-user", "lockstep-agent", "--agent-bus-password-file"];
        arguments.extend(words.map(OsString::from));
        arguments.push(self.folder.join("agent").into());
        Ok(arguments)
    }

    /// Of sets that are over there is nothing but the word that they are.
    fn has_forgotten(&self) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let orders = self.ask(&format!("EVAL \"{ORDERS}\" 0 lockstep:*:order"))?;
            if orders.starts_with("+OK\r\n:0\r\n") {
                return Ok(());
            }
            if begun.elapsed() > Duration::from_secs(30) {
                return Err(format!("orders that are left: {orders}"));
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn ask(&self, question: &str) -> Result<String, String> {
        use std::io::{Read as _, Write as _};
        let ask = || -> Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            write!(stream, "AUTH admin admin\r\n{question}\r\nQUIT\r\n")?;
            let mut said = String::new();
            stream.read_to_string(&mut said)?;
            Ok(said)
        };
        ask().map_err(|error| format!("{error:#}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
