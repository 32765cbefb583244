//! Where agents and those who lead them meet.

use std::sync::Arc;

use crate::hub::{Gang, Hub};
use crate::ticket::Key;
use crate::valkey::Bus;

/// One of the two ways between agents and whoever leads.
#[derive(Clone)]
pub enum Place {
    /// They connect to this process.
    Hub(Arc<Hub>),
    /// Both connect to a Valkey.
    Bus(Arc<Bus>),
}

impl Place {
    /// The key of the tickets that are taken there.
    pub fn key(&self) -> &Key {
        match self {
            Self::Hub(hub) => hub.key(),
            Self::Bus(bus) => bus.key(),
        }
    }

    /// From now on agents of this job are heard.
    pub fn add(&self, job: &str, gang: Gang) {
        match self {
            Self::Hub(hub) => hub.add(job, gang),
            Self::Bus(bus) => bus.add(job, gang),
        }
    }

    /// From now on they are not, unless somebody else leads the job by now.
    pub fn remove(&self, job: &str, gang: &Gang) {
        match self {
            Self::Hub(hub) => hub.remove(job, gang),
            Self::Bus(bus) => bus.remove(job, gang),
        }
    }
}
