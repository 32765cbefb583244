//! One agent: the real machine and a real connection around a worker that only pretends.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lockstep_control::plan::restart::{Agent, AgentEffect, Cause, Duty, Identity, Moment, Order};
use lockstep_restart::seal::Told;
use lockstep_restart::wire::{Down, Hello, PROTOCOL, Status, Up, frame, read};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep_until, timeout, timeout_at};

use super::super::board::{Board, say};
use super::target::{Target, from_address};

/// What is done to an agent from outside.
pub(super) enum Command {
    /// Its worker fails.
    Fail,
    /// Its worker takes so long to stop, the next time.
    Linger(Duration),
    /// It dies when it waits for the next release, and is started again.
    DieWaiting,
    /// Its connection is lost. One that is hasty does not wait before it makes another.
    Cut { is_hasty: bool },
    /// Its pod is deleted.
    Leave,
    /// There is another pod in its place.
    Join(String),
}

/// How an agent waits before it connects again: as the real one does.
const WAIT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
const URGENT_WAIT: Duration = Duration::from_millis(500);
const LASTING: Duration = Duration::from_secs(10);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const GRACE: Duration = Duration::from_secs(2);

pub(super) struct Player {
    target: Arc<Target>,
    board: Arc<Board>,
    commands: mpsc::UnboundedReceiver<Command>,
    slot: u32,
    uid: String,
    start: Instant,
    session: u64,
    machine: Agent,
    /// Set only for what is due earlier: what is due later is seen when it fires.
    timer: Pin<Box<Sleep>>,
    /// The latest leader it has heard, in whichever of its lives.
    fence: u64,
    has_heard: bool,
    status: Option<Status>,
    told: Told,
    runs: bool,
    linger: Option<Duration>,
    gone_at: Option<Instant>,
    dies_waiting: bool,
    /// Whether its connection is lost, and whether it is in a hurry then.
    cut: Option<bool>,
    has_left: bool,
}

impl Player {
    pub(super) fn new(
        target: Arc<Target>,
        board: Arc<Board>,
        slot: u32,
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Self {
        let start = Instant::now();
        Self {
            target,
            board,
            commands,
            slot,
            uid: slot.to_string(),
            start,
            session: 1,
            machine: machine(slot, 1, Moment::default()),
            timer: Box::pin(sleep_until(start)),
            fence: 0,
            has_heard: false,
            status: None,
            told: Told::default(),
            runs: false,
            linger: None,
            gone_at: None,
            dies_waiting: false,
            cut: None,
            has_left: false,
        }
    }

    /// Connects, and again, for ever.
    pub(super) async fn run(mut self) {
        let mut longest = WAIT.0;
        loop {
            let session = self.session;
            self.has_heard = false;
            let _ = self.once().await;
            let is_hasty = self.cut.take() == Some(true);
            if std::mem::take(&mut self.has_left) {
                self.successor().await;
                continue;
            }
            if self.session != session {
                // Another life, which knows nothing of the one before.
                continue;
            }
            longest = if self.has_heard { WAIT.0 } else { (longest * 2).min(WAIT.1) };
            let limit = if self.runs { longest } else { longest.min(URGENT_WAIT) };
            let wait = if is_hasty { Duration::ZERO } else { limit.mul_f64(fastrand::f64()) };
            let end = Instant::now() + wait;
            // What comes after it has left is for its successor.
            while !self.has_left && timeout_at(end, self.happens()).await.is_ok() {
                self.carry_out();
            }
        }
    }

    /// Waits for the pod that takes the place of this one.
    async fn successor(&mut self) {
        loop {
            match self.commands.recv().await {
                Some(Command::Join(uid)) => {
                    self.uid = uid;
                    self.born();
                    return;
                }
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }

    fn born(&mut self) {
        self.session += 1;
        self.machine = machine(self.slot, self.session, self.now());
        (self.status, self.runs, self.gone_at) = (None, false, None);
    }

    async fn once(&mut self) -> io::Result<()> {
        let connecting = from_address(self.slot, self.target.address);
        let stream = timeout(CONNECT_WITHIN, connecting).await??;
        let target = Arc::clone(&self.target);
        let mut begun = Instant::now();
        let ended = match &target.tls {
            None => self.talk(stream).await,
            Some(tls) => {
                let name = ServerName::try_from("127.0.0.1").unwrap();
                let stream = timeout(CONNECT_WITHIN, tls.connect(name, stream)).await??;
                begun = Instant::now();
                self.talk(stream).await
            }
        };
        self.has_heard |= begun.elapsed() >= LASTING;
        ended
    }

    async fn talk<S>(&mut self, mut stream: S) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (ticket, pod) = (self.target.ticket.clone(), self.uid.clone());
        let hello = Up::Hello(Hello { protocol: PROTOCOL, ticket, pod });
        stream.write_all(&frame(&hello)).await?;
        self.machine.connected(self.now());
        let (mut got, mut scratch) = (Vec::with_capacity(64), Vec::new());
        loop {
            self.carry_out();
            if let Some(status) = self.status.take() {
                stream.write_all(&frame(&Up::Status(status))).await?;
                stream.flush().await?;
            }
            if self.dies_waiting && !self.runs && self.gone_at.is_none() {
                self.dies_waiting = false;
                self.born();
                return Ok(());
            }
            if self.has_left {
                return stream.shutdown().await;
            }
            if self.cut.is_some() {
                return Ok(());
            }
            tokio::select! {
                count = stream.read_buf(&mut got) => if count? == 0 {
                    return Ok(());
                },
                () = self.happens() => continue,
            }
            while let Some(length) = got.first_chunk().map(|it| u32::from_be_bytes(*it) as usize) {
                let Some(mut message) = got.get(..4 + length) else { break };
                if let Some(Down::Order(sealed)) = read(&mut message, &mut scratch).await? {
                    self.told.take(&sealed);
                    self.ordered(&sealed.order);
                }
                got.drain(..4 + length);
            }
        }
    }

    /// Waits for a command or a deadline, and tells the machine.
    async fn happens(&mut self) {
        let deadline = self.start + self.machine.deadline().since(Moment::default());
        let due = self.gone_at.map_or(deadline, |at| at.min(deadline));
        if due < self.timer.deadline() || self.timer.is_elapsed() {
            self.timer.as_mut().reset(due);
        }
        let now = Moment::after(self.start.elapsed());
        tokio::select! {
            command = self.commands.recv() => match command {
                Some(Command::Fail) => {
                    self.runs = false;
                    self.machine.exited(Some(Cause::Exited(1)), now);
                }
                Some(Command::Linger(span)) => self.linger = Some(span),
                Some(Command::DieWaiting) => self.dies_waiting = true,
                Some(Command::Cut { is_hasty }) => self.cut = Some(is_hasty),
                Some(Command::Leave) => {
                    self.board.failed();
                    self.machine.terminated(now);
                }
                Some(Command::Join(_)) => {}
                None => std::future::pending().await,
            },
            () = self.timer.as_mut() => {
                let now = self.now();
                if self.gone_at.take_if(|at| *at <= Instant::now()).is_some() {
                    self.board.stopped();
                    self.machine.gone(now);
                }
                self.machine.tick(now);
            }
        }
    }

    fn ordered(&mut self, order: &Order) {
        self.has_heard = true;
        if order.fence > self.fence {
            self.fence = order.fence;
            self.board.led();
        }
        if order.rank.duty == Duty::Hold {
            self.board.told();
        }
        self.machine.ordered(order, self.now());
        self.carry_out();
    }

    fn carry_out(&mut self) {
        loop {
            let effects: Vec<AgentEffect> = self.machine.effects().collect();
            if effects.is_empty() {
                return;
            }
            let now = self.now();
            for effect in effects {
                match effect {
                    AgentEffect::Spawn { epoch, .. } => {
                        self.runs = true;
                        self.board.started(epoch);
                        self.machine.spawned(now);
                    }
                    AgentEffect::Terminate | AgentEffect::Kill => {
                        self.runs = false;
                        match self.linger.take() {
                            Some(span) => self.gone_at = Some(Instant::now() + span),
                            None => {
                                self.board.stopped();
                                self.machine.gone(now);
                            }
                        }
                    }
                    AgentEffect::Send(report) => {
                        let told = self.told.shown();
                        self.status = Some(Status { told, ..report.into() });
                    }
                    AgentEffect::Exit(_) => {
                        self.has_left = true;
                        say(&format!("left {}", self.slot));
                    }
                }
            }
        }
    }

    fn now(&self) -> Moment {
        Moment::after(self.start.elapsed())
    }
}

fn machine(slot: u32, session: u64, now: Moment) -> Agent {
    let identity = Identity { slot, pod: 0, session, generation: 0 };
    Agent::new(identity, GRACE, now)
}
