//! The orchestrator of the prototype, of one job.

use tokio::sync::watch;

use super::super::clock::now;
use super::super::valkey::{Client, Reply};
use super::{CHANNEL, STATE, TICK, TOTALS};

const RENEW: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then \
    return redis.call('expire', KEYS[1], 30) else return 0 end";
const RESTART: &str = "redis.call('hset', KEYS[1], 'name', 'restarting', 'start-time', ARGV[2], \
    'desired-total-restart-count', ARGV[1]) \
    return redis.call('publish', KEYS[2], '{\"desiredTotalRestartCount\":' .. ARGV[1] .. '}')";

/// What the job is doing, and since when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    pub(super) is_running: bool,
    pub(super) desired: i64,
    pub(super) since: u64,
}

pub(super) struct Orchestrator {
    client: Client,
    size: usize,
    told: watch::Sender<State>,
}

impl Orchestrator {
    /// Leads a job of this size, for as long as somebody is interested.
    pub(super) fn start(client: Client, size: u32) -> watch::Receiver<State> {
        let (told, state) = watch::channel(State::default());
        let orchestrator = Self { client, size: size as usize, told };
        tokio::spawn(orchestrator.run());
        state
    }

    async fn run(mut self) {
        self.client.ask(&["SET", "lock", "orchestrator", "EX", "30"]).await.unwrap();
        self.client.ask(&["HSET", STATE, "name", "creating"]).await.unwrap();
        let mut ticks = tokio::time::interval(TICK);
        loop {
            ticks.tick().await;
            // What is there may be another one's by now.
            if self.told.receiver_count() == 0 {
                return;
            }
            self.tick().await.unwrap();
        }
    }

    async fn tick(&mut self) -> std::io::Result<()> {
        self.client.ask(&["EVAL", RENEW, "1", "lock", "orchestrator"]).await?;
        self.client.ask(&["KEYS", "jobset-uid:*:state"]).await?;
        self.client.ask(&["HGETALL", STATE]).await?;
        let totals = self.client.ask(&["HGETALL", TOTALS]).await?.pairs();
        let time = match self.client.ask(&["TIME"]).await? {
            Reply::List(parts) => parts.into_iter().next(),
            Reply::Text(_) | Reply::Number(_) | Reply::Nothing | Reply::Push(_) => None,
        };
        let time = if let Some(Reply::Text(time)) = time { time } else { String::new() };
        let totals: Vec<i64> = totals.iter().filter_map(|(_, count)| count.parse().ok()).collect();
        let State { is_running, desired, .. } = *self.told.borrow();
        let at = |wanted: i64| totals.iter().filter(|count| **count == wanted).count();
        let allowed = if is_running { [desired, desired + 1] } else { [desired - 1, desired] };
        if totals.iter().any(|count| !allowed.contains(count)) {
            panic!("the prototype would have made everything anew: {allowed:?}");
        }
        if is_running && at(desired + 1) > 0 {
            let next = (desired + 1).to_string();
            self.client.ask(&["EVAL", RESTART, "2", STATE, CHANNEL, &next, &time]).await?;
            self.told.send_replace(State { is_running: false, desired: desired + 1, since: now() });
        } else if !is_running && at(desired) == self.size {
            self.client.ask(&["HSET", STATE, "name", "running"]).await?;
            self.told.send_replace(State { is_running: true, desired, since: now() });
        }
        Ok(())
    }
}
