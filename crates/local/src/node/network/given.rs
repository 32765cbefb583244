//! Which address the node gave to which pod, for whoever connects to pods.
//!
//! A pod says in its status where it is; but whoever may write that status could say anything, and
//! have the API server connect to whatever this machine reaches.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, PoisonError, RwLock},
};

/// The addresses of pods by their uid. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct PodAddresses(Arc<RwLock<HashMap<String, IpAddr>>>);

impl PodAddresses {
    /// Notes the address of a pod.
    pub fn note(&self, uid: &str, address: IpAddr) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(uid.to_owned(), address);
    }

    /// Forgets the address of a pod.
    pub fn forget(&self, uid: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    /// The address of a pod, if the node gave it one.
    pub fn of(&self, uid: &str) -> Option<IpAddr> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(uid).copied()
    }
}
