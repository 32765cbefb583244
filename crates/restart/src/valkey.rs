//! Valkey as the bus between agents and those who lead, for leaders that come and go: agents keep
//! their connections when the leader changes, and the next one finds everything there.
//!
//! For a leader it is what [`Hub`](crate::hub::Hub) is, and is used as that is:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use lockstep_control::plan::restart::Terms;
//! # use lockstep_restart::{hub::Gang, ticket::Key, valkey::{Bus, Server}};
//! # async fn lead(fence: u64, terms: Terms) -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::new("valkey://lockstep-orchestrator:secret@valkey:6379", None)?;
//! let bus = Bus::new(server, Key::new(&[0; 32]));
//! let store = bus.store();
//! let stored = store.read("job").await?;
//! let (tell, happenings) = tokio::sync::mpsc::unbounded_channel();
//! let gang = Gang::lead(("job", bus.key()), terms, (fence, stored), store, tell);
//! // Pods are told of as always: `gang.pod_seen(..)`, then `gang.pods_known()`.
//! bus.add("job", gang.clone());
//! // It is led no more, but not over:
//! gang.stop();
//! bus.remove("job", &gang);
//! // It is over:
//! bus.store().forget("job").await?;
//! # Ok(())
//! # }
//! ```
//!
//! What must hold, and how it does:
//!
//! - **Nothing is missed.** Whoever connects listens first and reads what is stored then. Messages
//!   are only the fast way to the same thing.
//! - **Leaders are fenced.** Records and orders have versions that begin with the fence, and are
//!   written by scripts that compare them: neither an earlier leader nor a late retry of the same
//!   one overwrites anything later. Agents do not listen to an earlier leader either.
//! - **Data may be lost.** The leader looks from time to time whether its record and last order are
//!   there, and after each connect; agents repeat their reports. What was lost is written again,
//!   and nothing happens because of it. What was lost together with the leader comes back from the
//!   agents: see [`lockstep_control::plan::restart`].
//! - **Valkey may be away.** Then nothing is decided and nobody is disturbed: healthy workers run
//!   on, failed ones stay down.
//! - **Who is there.** There are no connections of agents here: an agent that is not heard for as
//!   long as a connection may be silent counts as lost, but only while anybody can be heard.
//! - **Who may speak.** Each report carries the ticket and is looked at as a hello is by the hub.
//!   Who may give orders is a matter of Valkey's users: see the documentation of `--bus`.
//!
//! Everything a job has there vanishes by itself some days after nobody asked for it any more.

mod desk;
mod hearing;
mod keys;
mod leader;
mod letter;
mod members;
mod outbox;
mod script;
mod server;
mod store;

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::hub::Gang;
use crate::ticket::Key;
pub(crate) use desk::{Inlet, Outlet, connect};
use leader::Leader;
use outbox::Outbox;
pub use server::{BadServer, Error, Server};
pub use store::Store;

/// The bus of one process that leads.
pub struct Bus {
    server: Arc<Server>,
    key: Key,
    store: Arc<Store>,
    led: Mutex<HashMap<String, Led>>,
}

/// A job that is led here.
struct Led {
    gang: Gang,
    task: AbortHandle,
    outbox: Arc<Outbox>,
}

impl Led {
    /// Ends it, when what it has to say is said, if that does not take too long.
    fn end(self) {
        self.outbox.close();
        // Where nothing runs any more there is nothing to wait for.
        let Ok(runtime) = Handle::try_current() else { return self.task.abort() };
        runtime.spawn(async move {
            tokio::time::sleep(LAST_WORDS_WITHIN).await;
            self.task.abort();
        });
    }
}

/// How long it may take to say what was to be said when a job was removed.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(10);

impl Bus {
    /// A bus that takes tickets of this key. Nothing is connected yet, and what is connected later
    /// is connected again whenever that is needed.
    pub fn new(server: Server, key: Key) -> Arc<Self> {
        let server = Arc::new(server);
        let store = Arc::new(Store::new(Arc::clone(&server)));
        Arc::new(Self { server, key, store, led: Mutex::default() })
    }

    /// Where records are kept.
    pub fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    /// The key that it takes tickets of.
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// From now on agents of this job are heard and told what to do.
    pub fn add(&self, job: &str, gang: Gang) {
        let leader = Leader::new(Arc::clone(&self.server), job, gang.clone(), self.key.clone());
        let outbox = leader.outbox();
        let task = tokio::spawn(leader.run()).abort_handle();
        if let Some(before) = self.led().insert(job.to_owned(), Led { gang, task, outbox }) {
            before.end();
        }
    }

    /// From now on they are not, but for what has been decided already; unless somebody else leads
    /// the job by now.
    pub fn remove(&self, job: &str, gang: &Gang) {
        let mut led = self.led();
        if led.get(job).is_some_and(|led| led.gang.is(gang))
            && let Some(led) = led.remove(job)
        {
            led.end();
        }
    }

    fn led(&self) -> MutexGuard<'_, HashMap<String, Led>> {
        self.led.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.led().values().for_each(|led| led.task.abort());
    }
}

/// Says what is wrong with the bus: what waiting does not mend, louder.
fn complain(error: &Error, what: &str) {
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    match error {
        Error::Denied(_) | Error::Garbled => tracing::error!(%error, cause, "{what}"),
        Error::Connect(_) | Error::Answer(_) | Error::Silent | Error::Lost | Error::Behind => {
            tracing::warn!(%error, cause, "{what}");
        }
    }
}
