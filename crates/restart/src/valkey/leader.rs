//! The end of the bus at which a job is led.

use std::sync::Arc;
use std::time::Duration;

use lockstep_control::plan::restart::Expected;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline};
use tokio::time::{MissedTickBehavior, interval};

use super::hearing::Hearing;
use super::keys::{Keys, fence, order_version, told};
use super::outbox::{Batch, Outbox, Saying, ToAll};
use super::script::{Call, KEPT, SAY};
use super::server::{Connection, Error, Server};
use super::store::commit;
use crate::hub::{Gang, Input, Written};
use crate::ticket::Key;

/// How long the first wait for another try is, and the longest.
const WAIT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// How often it is looked whether what should be stored is there, which is also how a server is
/// noticed that does not answer any more.
const LOOK: Duration = Duration::from_secs(3);
/// How many reports may come in before one is looked at.
const ROOM: usize = 16_384;
/// How many agents are told something in one go.
const AT_ONCE: usize = 512;
/// How long what one agent was told alone is kept, in seconds: until it has come back, or another
/// agent has taken its place.
const TOLD_KEPT: u32 = 3600;

/// Leads one job on the bus.
pub(super) struct Leader {
    server: Arc<Server>,
    keys: Keys,
    gang: Gang,
    outbox: Arc<Outbox>,
    hearing: Hearing,
}

impl Leader {
    pub(super) fn new(server: Arc<Server>, job: &str, gang: Gang, key: Key) -> Self {
        let outbox = Arc::new(Outbox::default());
        let hearing = Hearing::new(job, gang.clone(), key, Arc::clone(&outbox));
        Self { server, keys: Keys::new(job), gang, outbox, hearing }
    }

    /// What it is yet to say.
    pub(super) fn outbox(&self) -> Arc<Outbox> {
        Arc::clone(&self.outbox)
    }

    /// Listens and speaks until the gang is led no more, and all is said.
    pub(super) async fn run(mut self) {
        let air = Arc::new(ToAll(Arc::clone(&self.outbox)));
        self.gang.send(Input::OnAir(air)).await;
        let mut wait = WAIT.0;
        while !self.outbox.is_over() {
            let mut is_there = false;
            let ended = self.once(&mut is_there).await;
            let Err(error) = ended else { return };
            super::complain(&error, "the bus is not there");
            wait = if is_there { WAIT.0 } else { (wait * 2).min(WAIT.1) };
            tokio::time::sleep(wait).await;
        }
    }

    /// One connection. First it listens, then it reads what is stored: nothing falls in between.
    async fn once(&mut self, is_there: &mut bool) -> Result<(), Error> {
        let connection = self.server.connect(&[&self.keys.reports], ROOM).await?;
        let Connection { mut commands, mut listener } = connection;
        let mut get = Cmd::new();
        get.arg("HVALS").arg(&self.keys.reports);
        let reports: Vec<Vec<u8>> = get.query_async(&mut commands).await?;
        *is_there = true;
        self.hearing.catch_up(&reports).await;
        let (keys, gang, outbox) = (&self.keys, &self.gang, &*self.outbox);
        tokio::select! {
            ended = self.hearing.run(&mut listener) => ended,
            ended = speak(keys, gang, outbox, commands.clone()) => ended,
            ended = look_after(keys, gang, commands) => ended,
        }
    }
}

/// Says what there is to say, until there is nothing any more.
async fn speak(
    keys: &Keys,
    gang: &Gang,
    outbox: &Outbox,
    mut commands: MultiplexedConnection,
) -> Result<(), Error> {
    while let Some(batch) = outbox.take().await {
        let mut unsaid = Unsaid { outbox, batch: Some(batch) };
        if let Some(batch) = &unsaid.batch {
            say(keys, gang, batch, &mut commands).await?;
        }
        unsaid.batch = None;
    }
    Ok(())
}

/// What is being said: it goes back if that does not come to its end.
struct Unsaid<'a> {
    outbox: &'a Outbox,
    batch: Option<Batch>,
}

impl Drop for Unsaid<'_> {
    fn drop(&mut self) {
        if let Some(batch) = self.batch.take() {
            self.outbox.put_back(batch);
        }
    }
}

async fn say(
    keys: &Keys,
    gang: &Gang,
    batch: &Batch,
    commands: &mut MultiplexedConnection,
) -> Result<(), Error> {
    let (kept, told_kept) = (KEPT.to_string(), TOLD_KEPT.to_string());
    if let Some(all) = &batch.all {
        let call = call(&keys.order, all, &kept, "always");
        let answers = SAY.call(commands, &[call]).await?;
        step_down_for(gang, answers.into_iter().next().flatten()).await;
    }
    let each: Vec<(String, &Saying)> =
        batch.each.iter().map(|(session, saying)| (keys.told(*session), saying)).collect();
    for some in each.chunks(AT_ONCE) {
        let calls = some.iter().map(|(key, saying)| call(key, saying, &told_kept, "always"));
        SAY.call(commands, &calls.collect::<Vec<_>>()).await?;
    }
    let mut rest = Pipeline::new();
    for (session, frame) in &batch.refused {
        rest.cmd("PUBLISH").arg(keys.told(*session)).arg(&frame[..]).ignore();
    }
    for some in batch.gone.chunks(AT_ONCE) {
        rest.cmd("HDEL").arg(&keys.reports).arg(some).ignore();
    }
    if !rest.is_empty() {
        rest.exec_async(commands).await?;
    }
    Ok(())
}

fn call<'a>(key: &'a str, saying: &'a Saying, kept: &'a str, how: &'a str) -> Call<'a> {
    let Saying { version, frame } = saying;
    (key, vec![version.as_bytes(), frame, kept.as_bytes(), how.as_bytes()])
}

/// Looks from time to time whether the record and the last order are there, and writes them again
/// if they were lost.
async fn look_after(
    keys: &Keys,
    gang: &Gang,
    mut commands: MultiplexedConnection,
) -> Result<(), Error> {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (records, kept) = (gang.record(), KEPT.to_string());
    loop {
        looks.tick().await;
        let record = *records.borrow();
        if record.revision == 0 {
            // Nothing was written yet, so there is nothing to lose; but is somebody there?
            let mut ping = Cmd::new();
            ping.arg("PING").exec_async(&mut commands).await?;
            continue;
        }
        let in_the_way = commit(&mut commands, keys, &record, Expected::Older).await?;
        if let Some(later) = in_the_way.filter(|fence| *fence > record.fence) {
            step_down(gang, later).await;
        }
        if let Some(order) = told(&record) {
            let saying = Saying { version: order_version(&order), frame: gang.frame(order) };
            let answers =
                SAY.call(&mut commands, &[call(&keys.order, &saying, &kept, "once")]).await?;
            // Nobody may have said it yet: a leader that is on air late has not.
            step_down_for(gang, answers.into_iter().next().flatten()).await;
        }
    }
}

/// Something later is in the way of an order. Of the same leader it may be: it has spoken twice.
async fn step_down_for(gang: &Gang, in_the_way: Option<String>) {
    let own = gang.record().borrow().fence;
    if let Some(later) = in_the_way.and_then(|version| fence(&version)).filter(|it| *it > own) {
        step_down(gang, later).await;
    }
}

async fn step_down(gang: &Gang, fence: u64) {
    gang.send(Input::Stored { version: (0, 0), written: Written::Refused(fence) }).await;
}
