//! The agents of the prototype.

use std::io::BufRead;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::board::Board;
use super::super::valkey::{Client, Ear, Mouth, Reply};
use super::{CHANNEL, RESTARTS, TICK, TOTALS};

/// Writes both counts if neither is there, or if both are.
const INIT: &str = "if redis.call('hexists', KEYS[1], ARGV[1]) == 1 or \
    redis.call('hexists', KEYS[2], ARGV[1]) == 1 then return 0 end \
    redis.call('hset', KEYS[1], ARGV[1], ARGV[2]) \
    redis.call('hset', KEYS[2], ARGV[1], ARGV[3]) return 1";
const UPDATE: &str = "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 or \
    redis.call('hexists', KEYS[2], ARGV[1]) == 0 then return 0 end \
    redis.call('hset', KEYS[1], ARGV[1], ARGV[2]) \
    redis.call('hset', KEYS[2], ARGV[1], ARGV[3]) return 1";
/// Nothing is wanted.
const NONE: i64 = -1;
/// What an agent writes that asks for everything to be made anew.
const POISON: i64 = -999;

/// Plays the agents, and lets those fail whose numbers come in.
pub(in super::super) async fn play(address: &str, size: &str) {
    let size: u32 = size.parse().unwrap();
    let address: SocketAddr = address.parse().unwrap();
    let board = Arc::new(Board::new(size));
    let mut first = Client::new(0, address).await.unwrap();
    let init = script(&mut first, INIT).await;
    let update: Arc<str> = script(&mut first, UPDATE).await.into();
    let mut agents = Vec::new();
    for number in 0..size {
        let mut client = Client::new(number, address).await.unwrap();
        // With this, messages come between answers: one connection does for both.
        client.ask(&["HELLO", "3"]).await.unwrap();
        client.ask(&["SUBSCRIBE", CHANNEL]).await.unwrap();
        let (mouth, ear) = client.split();
        let wanted = Arc::new(AtomicI64::new(NONE));
        let (answer, answers) = mpsc::unbounded_channel();
        tokio::spawn(listen(ear, Arc::clone(&wanted), answer));
        let (fail, failures) = mpsc::unbounded_channel();
        let mut agent = Agent {
            mouth,
            answers,
            update: Arc::clone(&update),
            id: format!("train-workers-0-{number}"),
            counter: 0,
            seen: 0,
            total: 0,
            wanted,
            board: Arc::clone(&board),
        };
        agent.write(&init, 0, 0).await;
        tokio::spawn(agent.run(failures));
        agents.push(fail);
        board.led();
    }
    let commands = tokio::task::spawn_blocking(move || {
        for line in std::io::stdin().lock().lines() {
            board.failed();
            for slot in line.unwrap().split(' ').skip(1) {
                let _ = agents[slot.parse::<usize>().unwrap()].send(());
            }
        }
    });
    commands.await.unwrap();
}

async fn script(client: &mut Client, text: &str) -> String {
    match client.ask(&["SCRIPT", "LOAD", text]).await.unwrap() {
        Reply::Text(digest) => digest,
        other => panic!("{other:?} is no digest"),
    }
}

/// The newest message is what is wanted; all else is an answer.
async fn listen(mut ear: Ear, wanted: Arc<AtomicI64>, answer: mpsc::UnboundedSender<Reply>) {
    while let Ok(reply) = ear.answer().await {
        let parts = match reply {
            Reply::Push(parts) => parts,
            other => {
                let _ = answer.send(other);
                continue;
            }
        };
        let Some(Reply::Text(message)) = parts.last() else { continue };
        let number = message.trim_start_matches("{\"desiredTotalRestartCount\":");
        if let Ok(number) = number.trim_end_matches('}').parse() {
            wanted.store(number, Ordering::SeqCst);
        }
    }
}

struct Agent {
    mouth: Mouth,
    answers: mpsc::UnboundedReceiver<Reply>,
    update: Arc<str>,
    id: String,
    /// How often the container was restarted.
    counter: i64,
    seen: i64,
    total: i64,
    wanted: Arc<AtomicI64>,
    board: Arc<Board>,
}

impl Agent {
    async fn run(mut self, mut failures: mpsc::UnboundedReceiver<()>) {
        let first = Instant::now() + TICK.mul_f64(fastrand::f64());
        let mut ticks = tokio::time::interval_at(first, TICK);
        loop {
            tokio::select! {
                failure = failures.recv() => match failure {
                    Some(()) => self.restarted(),
                    None => return,
                },
                _ = ticks.tick() => self.tick().await,
            }
        }
    }

    /// The container is restarted, which takes no time.
    fn restarted(&mut self) {
        self.counter += 1;
        self.board.started(u32::try_from(self.counter).unwrap());
    }

    async fn tick(&mut self) {
        if self.counter == self.seen + 1 {
            let update = Arc::clone(&self.update);
            if self.write(&update, self.seen + 1, self.total + 1).await {
                self.seen += 1;
                self.total += 1;
            }
        } else if self.counter != self.seen {
            self.poison().await;
        }
        let wanted = self.wanted.load(Ordering::SeqCst);
        if wanted == NONE {
            return;
        }
        self.wanted.store(NONE, Ordering::SeqCst);
        if wanted == self.total + 1 {
            self.restarted();
        } else if wanted != self.total {
            self.poison().await;
        }
    }

    async fn poison(&mut self) {
        let update = Arc::clone(&self.update);
        self.write(&update, POISON, POISON).await;
    }

    async fn write(&mut self, script: &str, seen: i64, total: i64) -> bool {
        let (seen, total) = (seen.to_string(), total.to_string());
        let words = ["EVALSHA", script, "2", RESTARTS, TOTALS, &self.id, &seen, &total];
        // An agent whose server is gone is waited for in vain, by somebody who says so.
        self.mouth.say(&words).await.is_ok() && self.answers.recv().await == Some(Reply::Number(1))
    }
}
