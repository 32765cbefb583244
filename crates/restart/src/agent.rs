//! The process around a worker: starts it, watches it, stops it and starts it again, as the gang
//! does.
//!
//! It must run on a runtime of one thread: it takes every child that ends, also those that it did
//! not start, and nothing else in the process may wait for children of its own.

mod bus;
mod heartbeat;
mod link;
mod log;
mod process;

use std::ffi::OsString;
use std::io;
use std::time::{Duration, Instant};

use lockstep_control::plan::restart::{
    Agent, AgentEffect, Identity, Moment, Order, Worker as State,
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};

pub use heartbeat::Heartbeat;
pub use link::Via;
use link::{Link, News};
use process::Worker;

pub use crate::dial::{Address, Trust};
use crate::seal::Told;
use crate::wire::Status;

/// What an agent has to know.
pub struct Options {
    /// How it reaches its orchestrator.
    pub via: Via,
    /// What lets it speak for its job.
    pub ticket: String,
    /// Its pod, by uid.
    pub pod: String,
    /// How long a worker that is asked to stop may take.
    pub grace: Duration,
    /// How a worker shows that it lives, if it has to.
    pub heartbeat: Option<Heartbeat>,
    /// Why no worker can be started, if what was asked for makes no sense. Each is a failure then,
    /// which the gang hears of, counts and ends with.
    pub fault: Option<String>,
    /// The program of the worker, with its arguments.
    pub command: Vec<OsString>,
}

/// Signals that are the worker's own business.
const FORWARDED: [fn() -> SignalKind; 4] =
    [SignalKind::hangup, SignalKind::user_defined1, SignalKind::user_defined2, SignalKind::quit];

/// Runs a worker as its gang does; the answer is the code to end with.
pub async fn run(options: Options) -> io::Result<i32> {
    let mut shell = Shell::new(options)?;
    loop {
        if let Some(code) = shell.carry_out() {
            shell.farewell().await;
            shell.worker.finish();
            return Ok(code);
        }
        shell.next().await;
    }
}

struct Shell {
    machine: Agent,
    start: Instant,
    worker: Worker,
    heartbeat: Option<Heartbeat>,
    fault: Option<String>,
    /// When the last worker ended, or has shown no sign of life for too long.
    failed_at: Option<Instant>,
    /// What it was told, to show it to those who do not know of it.
    told: Told,
    status: watch::Sender<Option<Status>>,
    news: mpsc::Receiver<News>,
    ended: Signal,
    terminate: Signal,
    interrupt: Signal,
    forwarded: Vec<(i32, Signal)>,
}

impl Shell {
    fn new(options: Options) -> io::Result<Self> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let ended = signal(SignalKind::child())?;
        let forwarded = FORWARDED
            .iter()
            .map(|kind| Ok((kind().as_raw_value(), signal(kind())?)))
            .collect::<io::Result<_>>()?;
        let (status, latest) = watch::channel(None);
        let (tell, news) = mpsc::channel(16);
        let Options { via, ticket, pod, grace, heartbeat, fault, command } = options;
        // Who it is in the gang, the other end knows: only the session is its own.
        let session = fastrand::u64(1..);
        tokio::spawn(Link { via, ticket, pod, session, latest, tell }.run());
        let identity = Identity { slot: 0, pod: 0, session, generation: 0 };
        Ok(Self {
            machine: Agent::new(identity, grace, Moment::default()),
            start: Instant::now(),
            worker: Worker::new(command, heartbeat.as_ref().and_then(Heartbeat::ear)),
            heartbeat,
            fault,
            failed_at: None,
            told: Told::default(),
            status,
            news,
            ended,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            forwarded,
        })
    }

    fn now(&self) -> Moment {
        Moment::after(self.start.elapsed())
    }

    /// Waits until something happens, and tells the machine.
    async fn next(&mut self) {
        let wait = self.machine.deadline().since(self.now());
        let heartbeat = &mut self.heartbeat;
        let missed = async {
            match heartbeat {
                Some(heartbeat) => heartbeat.missed().await,
                None => std::future::pending().await,
            }
        };
        let forwarded = any_of(&mut self.forwarded);
        tokio::select! {
            news = self.news.recv() => match news {
                Some(news) => self.hear(&news),
                // The link never ends.
                None => std::future::pending().await,
            },
            () = self.worker.ended() => self.reap(),
            // Orphans have nobody else who watches them; nor has a worker where there is no pidfd.
            _ = self.ended.recv() => self.reap(),
            _ = self.terminate.recv() => self.leave(),
            _ = self.interrupt.recv() => self.leave(),
            signal = forwarded => self.worker.signal(signal),
            () = missed => {
                tracing::warn!("the worker shows no sign of life: it has failed");
                self.failed_at = Some(Instant::now());
                let now = self.now();
                self.machine.hung(now);
            }
            () = tokio::time::sleep(wait) => {
                let now = self.now();
                self.machine.tick(now);
            }
        }
    }

    fn leave(&mut self) {
        let now = self.now();
        self.machine.terminated(now);
    }

    fn hear(&mut self, news: &News) {
        let now = self.now();
        match news {
            News::Connected => self.machine.connected(now),
            News::Order(sealed) => {
                self.told.take(sealed);
                let order = &sealed.order;
                let Order { rank, fence, .. } = order;
                tracing::debug!(?rank, fence, "told");
                self.machine.ordered(order, now);
            }
        }
    }

    /// Takes all children that have ended.
    fn reap(&mut self) {
        while let Some(taken) = self.worker.reap() {
            let now = self.now();
            match taken {
                process::Taken::Main(failure) => {
                    // One that hung has failed before.
                    self.failed_at.get_or_insert_with(Instant::now);
                    if let Some(heartbeat) = &mut self.heartbeat {
                        heartbeat.stop();
                    }
                    self.machine.exited(failure, now);
                }
                process::Taken::Last => {
                    self.machine.gone(now);
                    break;
                }
                process::Taken::Other => {}
            }
        }
    }

    /// Does what the machine asks for; the code, if that is to end.
    fn carry_out(&mut self) -> Option<i32> {
        loop {
            let effects: Vec<AgentEffect> = self.machine.effects().collect();
            if effects.is_empty() {
                return None;
            }
            for effect in effects {
                match effect {
                    AgentEffect::Spawn { epoch, restarts } => {
                        self.failed_at = None;
                        let spawned = match &self.fault {
                            None => self.worker.spawn(epoch, restarts.total),
                            Some(why) => Err(io::Error::other(why.clone())),
                        };
                        let now = self.now();
                        match spawned {
                            Ok(()) => {
                                if let Some(heartbeat) = &mut self.heartbeat {
                                    heartbeat.begin();
                                }
                                self.machine.spawned(now);
                            }
                            Err(error) => {
                                tracing::error!("{error}");
                                self.failed_at = Some(Instant::now());
                                self.machine.not_spawned(error.to_string(), now);
                            }
                        }
                    }
                    AgentEffect::Terminate => self.worker.terminate(),
                    AgentEffect::Kill => {
                        self.worker.kill();
                        self.reap();
                    }
                    AgentEffect::Send(report) => {
                        if let State::Failed(epoch, cause) = &report.worker {
                            tracing::debug!(epoch, %cause, "the worker has failed");
                        }
                        let ago = self.failed_at.map(|at| at.elapsed().as_micros());
                        let ago = ago.and_then(|ago| u32::try_from(ago).ok()).unwrap_or_default();
                        let told = self.told.shown();
                        self.status.send_replace(Some(Status { ago, told, ..report.into() }));
                    }
                    AgentEffect::Exit(code) => return Some(code),
                }
            }
        }
    }

    /// Lets what was said last be sent.
    async fn farewell(&self) {
        // The link takes it, and the task that has its connection sends it.
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
    }
}

/// Waits for any of these signals.
async fn any_of(signals: &mut [(i32, Signal)]) -> i32 {
    std::future::poll_fn(|context| {
        for (number, signal) in signals.iter_mut() {
            if signal.poll_recv(context).is_ready() {
                return std::task::Poll::Ready(*number);
            }
        }
        std::task::Poll::Pending
    })
    .await
}
