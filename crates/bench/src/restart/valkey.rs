//! A Valkey, or the Redis it comes from, and as much of its protocol as is needed.

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::agents::from_address;
use super::patience::PATIENCE;

/// How many clients it may have: less than the descriptors that a process may.
const CLIENTS_MAX: &str = "18000";
const NAMES: [&str; 2] = ["valkey-server", "redis-server"];

/// A server that keeps nothing.
pub(super) struct Valkey {
    child: Child,
    pub(super) address: SocketAddr,
    /// What it is.
    pub(super) version: String,
}

impl Valkey {
    /// Starts one, installing it if need be; an error says what to do.
    pub(super) async fn start() -> Result<Self, String> {
        let program = match installed() {
            Some(program) => program,
            None => install()?,
        };
        let version = Command::new(program).arg("--version").output();
        let version = version.map_err(|error| format!("{program}: {error}"))?.stdout;
        let version = String::from_utf8_lossy(&version);
        let words: Vec<&str> = version.split_whitespace().take(3).collect();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let child = Command::new(program)
            .args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--maxclients", CLIENTS_MAX])
            // Clients come from several addresses of the loopback device.
            .args(["--tcp-backlog", "4096", "--protected-mode", "no"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let server = Self { child, address, version: words.join(" ") };
        for _ in 0..100 {
            if TcpStream::connect(address).await.is_ok() {
                return Ok(server);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err(format!("{program} does not listen"))
    }

    /// Seconds of processor time it has used.
    pub(super) fn processor_time(&self) -> f64 {
        super::processor_time(&self.child.id().to_string())
    }
}

impl Drop for Valkey {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn installed() -> Option<&'static str> {
    let is_there = |name: &&str| {
        let version = Command::new(name).arg("--version").stdout(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    NAMES.into_iter().find(is_there)
}

fn install() -> Result<&'static str, String> {
    for name in NAMES {
        println!("installing {name} with apt-get, to compare with");
        // As for a machine that is being set up: nothing is started.
        let installing = Command::new("apt-get")
            .args(["install", "--yes", "--quiet=2", "--no-install-recommends", name])
            .envs([("DEBIAN_FRONTEND", "noninteractive"), ("RUNLEVEL", "1")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if let Ok(mut installing) = installing {
            end(&mut installing);
        }
        if let Some(name) = installed() {
            return Ok(name);
        }
    }
    Err("there is no valkey-server and no redis-server, and neither can be installed: put one of \
         them in PATH"
        .to_owned())
}

/// Waits for the end of it, or brings it about.
fn end(child: &mut Child) {
    let begun = Instant::now();
    while child.try_wait().is_ok_and(|ended| ended.is_none()) {
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Text(String),
    Number(i64),
    Nothing,
    List(Vec<Self>),
    /// What nobody has asked for.
    Push(Vec<Self>),
}

impl Reply {
    /// A hash, as it is told.
    pub(super) fn pairs(self) -> Vec<(String, String)> {
        let Self::List(all) = self else { return Vec::new() };
        let mut all =
            all.into_iter().map(|it| if let Self::Text(it) = it { it } else { "".into() });
        let mut pairs = Vec::new();
        while let (Some(key), Some(value)) = (all.next(), all.next()) {
            pairs.push((key, value));
        }
        pairs
    }
}

/// A connection to the server.
pub(super) struct Client {
    mouth: Mouth,
    ear: Ear,
}

/// Where requests go.
pub(super) struct Mouth(OwnedWriteHalf);

/// Where answers come from, and on some connections messages between them.
pub(super) struct Ear(BufReader<OwnedReadHalf>);

impl Client {
    /// Connects the client of this number.
    pub(super) async fn new(number: u32, address: SocketAddr) -> io::Result<Self> {
        let stream = timeout(PATIENCE, from_address(number, address)).await??;
        let (reader, writer) = stream.into_split();
        Ok(Self { mouth: Mouth(writer), ear: Ear(BufReader::with_capacity(512, reader)) })
    }

    /// Asks, and waits for the answer; not for ever.
    pub(super) async fn ask(&mut self, words: &[&str]) -> io::Result<Reply> {
        self.mouth.say(words).await?;
        timeout(PATIENCE, self.ear.answer()).await?
    }

    /// Waits for what the server says next.
    pub(super) async fn answer(&mut self) -> io::Result<Reply> {
        self.ear.answer().await
    }

    /// Both ends apart.
    pub(super) fn split(self) -> (Mouth, Ear) {
        (self.mouth, self.ear)
    }
}

impl Mouth {
    pub(super) async fn say(&mut self, words: &[&str]) -> io::Result<()> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            let _ = write!(request, "${}\r\n{word}\r\n", word.len());
        }
        self.0.write_all(request.as_bytes()).await
    }
}

impl Ear {
    pub(super) async fn answer(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        if self.0.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        let bad = || io::Error::new(io::ErrorKind::InvalidData, line.to_owned());
        let (kind, rest) = line.split_at_checked(1).ok_or_else(bad)?;
        match kind {
            "+" => Ok(Reply::Text(rest.to_owned())),
            ":" => Ok(Reply::Number(rest.parse().map_err(|_| bad())?)),
            "_" => Ok(Reply::Nothing),
            "$" | "*" if rest == "-1" => Ok(Reply::Nothing),
            "$" => {
                let length: usize = rest.parse().map_err(|_| bad())?;
                let mut text = vec![0; length + 2];
                self.0.read_exact(&mut text).await?;
                text.truncate(length);
                Ok(Reply::Text(String::from_utf8_lossy(&text).into_owned()))
            }
            "*" | ">" | "%" => {
                let count: usize = rest.parse().map_err(|_| bad())?;
                let count = if kind == "%" { count * 2 } else { count };
                let mut all = Vec::with_capacity(count);
                for _ in 0..count {
                    all.push(Box::pin(self.answer()).await?);
                }
                Ok(if kind == ">" { Reply::Push(all) } else { Reply::List(all) })
            }
            _ => Err(bad()),
        }
    }
}
