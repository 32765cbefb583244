//! Names of pods: they look drawn by lot, and are not.
//!
//! The suffix is a hash of the Job's uid, the index and a number, and the number is the smallest
//! whose name no pod has or had, as far as is known. A create that is sent again, or sent on a view
//! that misses a pod, therefore meets the pod that is there and is refused, instead of making
//! another.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use lockstep_api::names;

/// Which names the pods of one Job have and will have.
#[derive(Clone, Debug)]
pub(crate) struct NameBook {
    job_name: String,
    job_uid: String,
    is_indexed: bool,
    /// By index, or for all: numbers below this have been given out at some time.
    next: BTreeMap<Option<i32>, u32>,
}

impl NameBook {
    pub(crate) fn new(job: &Job) -> Self {
        let mode = job.spec.as_ref().and_then(|spec| spec.completion_mode.as_deref());
        Self {
            job_name: job.metadata.name.clone().unwrap_or_default(),
            job_uid: job.metadata.uid.clone().unwrap_or_default(),
            is_indexed: mode == Some("Indexed"),
            next: BTreeMap::new(),
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

    /// The first name of an index that nobody has or had.
    pub(crate) fn of_index(&self, index: i32, is_taken: impl Fn(&str) -> bool) -> String {
        let first = self.next(Some(index));
        let names = (first..=u32::MAX).map(|number| self.name(Some(index), number));
        names.into_iter().find(|name| !is_taken(name)).expect("some name is free")
    }

    /// The first `count` names that nobody has or had, for a Job without indexes.
    pub(crate) fn without_index(
        &self,
        count: usize,
        is_taken: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let mut chosen = BTreeSet::new();
        let mut names = Vec::with_capacity(count);
        for number in self.next(None)..=u32::MAX {
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
    pub(crate) fn known(&mut self, name: &str, is_known: impl Fn(&str) -> bool) {
        // Of an index there is a pod or two: to look for a name is no work.
        if !self.is_indexed {
            self.pass_over(None, name, is_known);
        }
    }

    /// Notes that a pod of this name was there and is gone: no other gets its name, so that nobody
    /// takes one for the other.
    pub(crate) fn gone(&mut self, name: &str, index: Option<i32>, is_known: impl Fn(&str) -> bool) {
        self.pass_over(index.filter(|_| self.is_indexed), name, is_known);
    }

    fn pass_over(&mut self, index: Option<i32>, name: &str, is_known: impl Fn(&str) -> bool) {
        let mut next = self.next(index);
        loop {
            let one = self.name(index, next);
            if one != *name && !is_known(&one) {
                break;
            }
            next += 1;
        }
        if next > 0 {
            self.next.insert(index, next);
        }
    }

    fn next(&self, index: Option<i32>) -> u32 {
        self.next.get(&index).copied().unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    fn book(name: &str, mode: &str) -> NameBook {
        let job = json!({"metadata": {"name": name, "uid": "u-1"},
            "spec": {"completionMode": mode, "template": {}}});
        NameBook::new(&Job::deserialize(job).unwrap())
    }

    // rule: job 2.1
    #[test]
    fn prefixes_are_cut_so_that_names_fit() {
        let long = "n".repeat(60);
        let cases = [
            ("work", None, "work-".to_owned()),
            ("work", Some(3), "work-3-".to_owned()),
            ("a_b", None, "a_b".to_owned()),
            (long.as_str(), Some(1), format!("{}-1-", "n".repeat(55))),
            (long.as_str(), Some(12_345), format!("{}-12345-", "n".repeat(51))),
        ];
        for (name, index, want) in cases {
            assert_eq!(prefix(name, index), want);
            let full = book(name, "Indexed").name(index, 0);
            assert!(full.len() <= 63 && full.starts_with(&want[..want.len().min(58)]), "{full}");
        }
    }

    #[test]
    fn the_same_pod_gets_the_same_name_and_another_another() {
        let book = book("j", "Indexed");
        assert_eq!(book.name(Some(1), 0), book.name(Some(1), 0));
        let names: BTreeSet<String> = (0..50)
            .flat_map(|index| (0..20).map(move |number| (index, number)))
            .map(|(index, number)| book.name(Some(index), number))
            .collect();
        assert_eq!(names.len(), 1000);
        let suffix = book.name(Some(1), 0).split_off("j-1-".len());
        assert!(
            suffix.len() == 5
                && suffix.bytes().all(|byte| b"bcdfghjklmnpqrstvwxz2456789".contains(&byte))
        );
        assert_eq!(book.of_index(1, |name| name == book.name(Some(1), 0)), book.name(Some(1), 1));
    }

    #[test]
    fn a_name_is_given_once() {
        let mut book = book("j", "NonIndexed");
        let mut known = BTreeSet::new();
        let first = book.without_index(3, |_| false);
        for name in &first {
            book.known(name, |name| known.contains(name));
            known.insert(name.clone());
        }
        let next = book.without_index(1, |name| known.contains(name));
        assert_eq!(next, [book.name(None, 3)]);
        known.remove(&first[1]);
        book.gone(&first[1], None, |name| known.contains(name));
        assert_eq!(book.without_index(1, |name| known.contains(name)), next, "not the one it had");
        let taken = book.name(None, 3);
        assert_eq!(
            book.without_index(2, |name| known.contains(name) || *name == taken),
            [book.name(None, 4), book.name(None, 5)]
        );
    }

    #[test]
    fn a_pod_that_was_never_seen_keeps_its_name() {
        let mut book = book("j", "Indexed");
        let is_free = |_: &str| false;
        assert_eq!(book.of_index(3, is_free), book.name(Some(3), 0));
        assert_eq!(book.of_index(3, is_free), book.name(Some(3), 0), "asked again, the same");
        let (first, second) = (book.name(Some(3), 0), book.name(Some(3), 1));
        book.gone(&first, Some(3), is_free);
        assert_eq!(book.of_index(3, is_free), second);
        assert_eq!(book.of_index(4, is_free), book.name(Some(4), 0));
        book.gone("of-somebody-else", Some(3), is_free);
        assert_eq!(book.of_index(3, is_free), second);
    }
}
