//! Many agents in one process, each with a connection of its own and the real machine. Their
//! workers are started and stopped in no time.

use std::io::{BufRead, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lockstep_control::plan::restart::{Agent, AgentEffect, Cause, Identity, Moment, Order};
use lockstep_restart::wire::{Down, Hello, PROTOCOL, Up, frame, read};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpSocket;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;

/// How many connections come from one address: more than this, and finding a free port is slow.
const PER_ADDRESS: u32 = 7_000;

enum News {
    Connected(mpsc::UnboundedSender<Up>),
    Order(Order),
    Fail,
}

/// When the workers of an epoch started, from the last failure on.
struct Board {
    size: u32,
    begun: Mutex<Instant>,
    count: AtomicU32,
    times: Mutex<Vec<f64>>,
}

impl Board {
    fn started(&self) {
        let span = self.begun.lock().unwrap().elapsed().as_secs_f64() * 1e3;
        self.times.lock().unwrap().push(span);
        if self.count.fetch_add(1, Ordering::SeqCst) + 1 == self.size {
            self.count.store(0, Ordering::SeqCst);
            let mut times = std::mem::take(&mut *self.times.lock().unwrap());
            times.sort_by(f64::total_cmp);
            let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
            println!("{} {} {}", at(50), at(99), at(100));
            std::io::stdout().flush().unwrap();
        }
    }
}

#[derive(Clone)]
struct Target {
    address: SocketAddr,
    ticket: String,
    tls: Option<TlsConnector>,
}

/// Plays the agents, and lets those fail whose numbers come in.
pub(crate) async fn play(address: &str, ca: &str, ticket: &str, size: &str) {
    let size: u32 = size.parse().unwrap();
    let tls = (ca != "-").then(|| connector(Path::new(ca)));
    let target = Target { address: address.parse().unwrap(), ticket: ticket.to_owned(), tls };
    let board = Arc::new(Board {
        size,
        begun: Mutex::new(Instant::now()),
        count: AtomicU32::new(0),
        times: Mutex::new(Vec::new()),
    });
    let mut agents = Vec::new();
    for slot in 0..size {
        let (tell, news) = mpsc::unbounded_channel();
        tokio::spawn(connect(target.clone(), slot, tell.clone()));
        tokio::spawn(agent(slot, news, Arc::clone(&board)));
        agents.push(tell);
        if slot % 50 == 49 {
            // As many at once as a machine of two cores can take without them giving up.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let commands = tokio::task::spawn_blocking(move || {
        for line in std::io::stdin().lock().lines() {
            *board.begun.lock().unwrap() = Instant::now();
            for slot in line.unwrap().split(' ') {
                let _ = agents[slot.parse::<usize>().unwrap()].send(News::Fail);
            }
        }
    });
    commands.await.unwrap();
}

async fn agent(slot: u32, mut news: mpsc::UnboundedReceiver<News>, board: Arc<Board>) {
    let start = Instant::now();
    let identity = Identity { slot, pod: 0, session: u64::from(slot) + 1, generation: 0 };
    let mut machine = Agent::new(identity, Duration::from_secs(2), Moment::default());
    let mut link: Option<mpsc::UnboundedSender<Up>> = None;
    loop {
        let now = Moment::after(start.elapsed());
        let wait = machine.deadline().since(now);
        let next = tokio::time::timeout(wait, news.recv()).await;
        let now = Moment::after(start.elapsed());
        match next {
            Err(_) => machine.tick(now),
            Ok(None) => return,
            Ok(Some(News::Connected(up))) => {
                link = Some(up);
                machine.connected(now);
            }
            Ok(Some(News::Order(order))) => machine.ordered(&order, now),
            Ok(Some(News::Fail)) => machine.exited(Some(Cause::Exited(1)), now),
        }
        loop {
            let effects: Vec<AgentEffect> = machine.effects().collect();
            if effects.is_empty() {
                break;
            }
            for effect in effects {
                match effect {
                    AgentEffect::Spawn { .. } => {
                        board.started();
                        machine.spawned(now);
                    }
                    AgentEffect::Terminate | AgentEffect::Kill => machine.gone(now),
                    AgentEffect::Send(report) => {
                        if let Some(link) = &link {
                            let _ = link.send(Up::Status(report.into()));
                        }
                    }
                    AgentEffect::Exit(_) => return,
                }
            }
        }
    }
}

/// Keeps one agent connected.
async fn connect(target: Target, slot: u32, tell: mpsc::UnboundedSender<News>) {
    let mut longest = Duration::from_millis(100);
    loop {
        let begun = Instant::now();
        let _ = once(&target, slot, &tell).await;
        if tell.is_closed() {
            return;
        }
        let was_there = begun.elapsed() > Duration::from_secs(1);
        longest = if was_there { Duration::from_millis(100) } else { longest * 2 };
        longest = longest.min(Duration::from_secs(5));
        tokio::time::sleep(longest.mul_f64(f64::from(uuid::Uuid::new_v4().as_bytes()[0]) / 256.0))
            .await;
    }
}

async fn once(
    target: &Target,
    slot: u32,
    tell: &mpsc::UnboundedSender<News>,
) -> std::io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    let own = u8::try_from(2 + slot / PER_ADDRESS).unwrap();
    socket.bind((Ipv4Addr::new(127, 0, 0, own), 0).into())?;
    let stream = socket.connect(target.address).await?;
    stream.set_nodelay(true)?;
    match &target.tls {
        None => talk(stream, target, slot, tell).await,
        Some(tls) => {
            let name = ServerName::try_from("127.0.0.1").unwrap();
            talk(tls.connect(name, stream).await?, target, slot, tell).await
        }
    }
}

async fn talk<S>(
    stream: S,
    target: &Target,
    slot: u32,
    tell: &mpsc::UnboundedSender<News>,
) -> std::io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = BufReader::with_capacity(256, reader);
    let (ticket, pod) = (target.ticket.clone(), slot.to_string());
    writer.write_all(&frame(&Up::Hello(Hello { protocol: PROTOCOL, ticket, pod }))).await?;
    writer.flush().await?;
    let (up, mut ups) = mpsc::unbounded_channel();
    let _ = tell.send(News::Connected(up));
    let writing = async {
        while let Some(up) = ups.recv().await {
            writer.write_all(&frame(&up)).await?;
            writer.flush().await?;
        }
        Ok(())
    };
    let reading = async {
        let mut buffer = Vec::new();
        while let Some(Down::Order(order)) = read(&mut reader, &mut buffer).await? {
            let _ = tell.send(News::Order(order));
        }
        Ok(())
    };
    tokio::select! {
        ended = reading => ended,
        ended = writing => ended,
    }
}

fn connector(ca: &Path) -> TlsConnector {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}
