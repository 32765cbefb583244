//! Records in Valkey.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use lockstep_control::plan::restart::{Expected, Record};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline};
use tokio::sync::Mutex;

use super::keys::{Keys, LAST_VERSION, fence, version};
use super::script::{COMMIT, KEPT};
use super::server::{Connection, Error, Server};
use crate::hub::{RecordStore, Written};

/// How long it is remembered that a job is over, in seconds: longer than its pods take to end.
const OVER_KEPT: u32 = 3600;

/// Keeps the record of each job in Valkey. What is written there is never overwritten by an earlier
/// leader; what Valkey loses, [`Bus`](super::Bus) writes again.
pub struct Store {
    server: Arc<Server>,
    connection: Mutex<(u64, Option<Connection>)>,
}

impl Store {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self { server, connection: Mutex::default() }
    }

    /// The record of a job, for [`Gang::lead`](crate::hub::Gang::lead). A leader that cannot read
    /// it may begin without: it will not get to overwrite what it has not read.
    pub async fn read(&self, job: &str) -> Result<Option<Record>, Error> {
        let (number, mut commands) = self.commands().await?;
        let mut get = Cmd::new();
        get.arg("HGET").arg(Keys::new(job).record).arg("record");
        let stored: Result<Option<Vec<u8>>, _> = get.query_async(&mut commands).await;
        let stored = self.or_forget(number, stored.map_err(Error::from)).await?;
        stored.map(|bytes| decode(&bytes).ok_or(Error::Garbled)).transpose()
    }

    /// Removes all that is stored of a job, which is over. For as long as an agent of it may still
    /// be there, something is left that neither a leader nor an agent writes over: what they say
    /// late brings nothing back.
    pub async fn forget(&self, job: &str) -> Result<(), Error> {
        let keys = Keys::new(job);
        let (number, mut commands) = self.commands().await?;
        let mut remove = Pipeline::new();
        remove.atomic();
        remove.cmd("DEL").arg(&[&keys.record, &keys.order, &keys.reports]).ignore();
        for key in [&keys.record, &keys.order] {
            remove.cmd("HSET").arg(key).arg("version").arg(LAST_VERSION).ignore();
            remove.cmd("EXPIRE").arg(key).arg(OVER_KEPT).ignore();
        }
        // Reports are fields of a hash, which this is not.
        remove.cmd("SET").arg(&keys.reports).arg("over").arg("EX").arg(OVER_KEPT).ignore();
        let removed = remove.exec_async(&mut commands).await;
        self.or_forget(number, removed.map_err(Error::from)).await
    }

    async fn put(&self, job: &str, record: Record, expected: Expected) -> Result<Written, Error> {
        let (number, mut commands) = self.commands().await?;
        let written = commit(&mut commands, &Keys::new(job), &record, expected).await;
        let in_the_way = self.or_forget(number, written).await?;
        Ok(in_the_way.map_or(Written::Yes, Written::Refused))
    }

    /// A connection, the one that is there if there is one, and its number.
    async fn commands(&self) -> Result<(u64, MultiplexedConnection), Error> {
        let mut guard = self.connection.lock().await;
        let (number, kept) = &mut *guard;
        if kept.as_ref().is_none_or(Connection::is_over) {
            *kept = Some(self.server.connect(&[], 1).await?);
            *number += 1;
        }
        let connection = kept.as_ref().ok_or(Error::Lost)?;
        Ok((*number, connection.commands.clone()))
    }

    /// A connection on which something went wrong is not used again.
    async fn or_forget<T>(&self, number: u64, outcome: Result<T, Error>) -> Result<T, Error> {
        if outcome.is_err() {
            let mut guard = self.connection.lock().await;
            if guard.0 == number {
                guard.1 = None;
            }
        }
        outcome
    }
}

impl RecordStore for Store {
    fn write<'a>(
        &'a self,
        job: &'a str,
        record: Record,
        expected: Expected,
    ) -> Pin<Box<dyn Future<Output = Written> + Send + 'a>> {
        Box::pin(async move {
            self.put(job, record, expected).await.unwrap_or_else(|error| {
                super::complain(&error, "the record could not be written");
                Written::Unsure
            })
        })
    }
}

/// Writes a record; the fence of the one that is in the way, if so.
pub(super) async fn commit(
    commands: &mut MultiplexedConnection,
    keys: &Keys,
    record: &Record,
    expected: Expected,
) -> Result<Option<u64>, Error> {
    let expected = match expected {
        Expected::Older => "*".to_owned(),
        Expected::Found(found) => found.map(version).unwrap_or_default(),
    };
    let (version, bytes, kept) = (version(record.version()), encode(record), KEPT.to_string());
    let arguments = vec![version.as_bytes(), &bytes, expected.as_bytes(), kept.as_bytes()];
    let answers = COMMIT.call(commands, &[(&keys.record, arguments)]).await?;
    let in_the_way = answers.into_iter().next().flatten();
    Ok(in_the_way.map(|version| fence(&version).unwrap_or_default()))
}

fn encode(record: &Record) -> Vec<u8> {
    postcard::to_allocvec(record).expect("a record is plain data")
}

fn decode(bytes: &[u8]) -> Option<Record> {
    postcard::from_bytes(bytes).ok()
}
