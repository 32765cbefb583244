//! Names of pods: they look drawn by lot, and are not.
//!
//! The suffix is a hash of the Job's uid, the index and a number, and the number is the smallest
//! whose name is free as far as is known. A create that is sent again, or sent on a view that
//! misses a pod, therefore meets the pod that is there and is refused, instead of making another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use lockstep_api::names;

/// Which names the pods of one Job have and will have.
#[derive(Clone, Debug)]
pub(crate) struct NameBook {
    job_name: String,
    job_uid: String,
    is_indexed: bool,
    /// Numbers below this have been given out at some time (for Jobs without indexes).
    next: u32,
    /// The numbers below `next` by name, and those of them that are free again.
    numbers: BTreeMap<Arc<str>, u32>,
    free: BTreeSet<u32>,
}

impl NameBook {
    pub(crate) fn new(job: &Job) -> Self {
        let mode = job.spec.as_ref().and_then(|spec| spec.completion_mode.as_deref());
        Self {
            job_name: job.metadata.name.clone().unwrap_or_default(),
            job_uid: job.metadata.uid.clone().unwrap_or_default(),
            is_indexed: mode == Some("Indexed"),
            next: 0,
            numbers: BTreeMap::new(),
            free: BTreeSet::new(),
        }
    }

    /// What goes before the suffix.
    pub(crate) fn prefix(&self, index: Option<i32>) -> String {
        prefix(&self.job_name, index)
    }

    /// The name of the `number`-th pod, of an index if the Job has indexes.
    pub(crate) fn name(&self, index: Option<i32>, number: u32) -> String {
        names::generated(&self.prefix(index), hash(&self.job_uid, index, number))
    }

    /// The first name of an index that nobody has.
    pub(crate) fn of_index(&self, index: i32, is_taken: impl Fn(&str) -> bool) -> String {
        let names = (0..=u32::MAX).map(|number| self.name(Some(index), number));
        names.into_iter().find(|name| !is_taken(name)).expect("some name is free")
    }

    /// The first `count` names that nobody has, for a Job without indexes.
    pub(crate) fn without_index(
        &self,
        count: usize,
        is_taken: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let mut chosen = BTreeSet::new();
        let mut names = Vec::with_capacity(count);
        for number in self.free.iter().copied().chain(self.next..) {
            if names.len() == count {
                break;
            }
            let name = self.name(None, number);
            if !is_taken(&name) && chosen.insert(name.clone()) {
                names.push(name);
            }
        }
        names
    }

    /// Notes that a pod of this name is there.
    pub(crate) fn known(&mut self, name: &Arc<str>, is_known: impl Fn(&str) -> bool) {
        if self.is_indexed {
            return;
        }
        if let Some(number) = self.numbers.get(name) {
            self.free.remove(number);
        }
        loop {
            let next = self.name(None, self.next);
            if next != **name && !is_known(&next) {
                break;
            }
            self.numbers.entry(next.into()).or_insert(self.next);
            self.next += 1;
        }
    }

    /// Notes that no pod of this name is there any more.
    pub(crate) fn free(&mut self, name: &str) {
        if let Some(number) = self.numbers.get(name) {
            self.free.insert(*number);
        }
    }
}

/// `<job>-` or `<job>-<index>-`; with an index the Job's name is cut so that it fits.
fn prefix(job: &str, index: Option<i32>) -> String {
    let Some(index) = index else {
        let prefix = format!("{job}-");
        let is_fine = names::name_is_dns_subdomain(&prefix, true).is_empty();
        return if is_fine { prefix } else { job.to_owned() };
    };
    let tail = format!("-{index}-");
    let mut end = job.len().min(names::GENERATED_PREFIX_MAX.saturating_sub(tail.len()));
    while !job.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{tail}", &job[..end])
}

/// FNV-1a over the parts, stirred so that each bit of the result depends on all of them.
fn hash(uid: &str, index: Option<i32>, number: u32) -> u64 {
    let index = index.map_or(-1, i64::from);
    let parts = uid.bytes().chain(index.to_le_bytes()).chain(number.to_le_bytes());
    let mut hash = parts.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
