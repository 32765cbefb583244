//! Where records are kept.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use lockstep_control::plan::restart::{Expected, Record};

/// How a write went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The record is there.
    Yes,
    /// It is not known whether it is.
    Unsure,
    /// Another record is there than was expected, of a leader with this fence.
    Refused(u64),
}

/// Somewhere to keep the record of each job.
pub trait RecordStore: Send + Sync {
    /// Writes a record, in one step with the look whether what is there allows it. It is given up
    /// when it takes too long, wherever it is by then, and tried again with a later version.
    fn write<'a>(
        &'a self,
        job: &'a str,
        record: Record,
        expected: Expected,
    ) -> Pin<Box<dyn Future<Output = Written> + Send + 'a>>;
}

/// Keeps records for as long as the process lives. After that the agents are what is left of them,
/// and they are enough: see [`lockstep_control::plan::restart`].
#[derive(Debug, Default)]
pub struct Memory(Mutex<HashMap<String, Record>>);

impl Memory {
    /// The record of a job.
    pub fn read(&self, job: &str) -> Option<Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(job).copied()
    }
}

impl RecordStore for Memory {
    fn write<'a>(
        &'a self,
        job: &'a str,
        record: Record,
        expected: Expected,
    ) -> Pin<Box<dyn Future<Output = Written> + Send + 'a>> {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let there = records.get(job);
        let written = if expected.allows(there, &record) {
            records.insert(job.to_owned(), record);
            Written::Yes
        } else {
            Written::Refused(there.map_or(0, |there| there.fence))
        };
        Box::pin(std::future::ready(written))
    }
}
