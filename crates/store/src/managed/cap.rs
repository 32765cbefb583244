//! How many may own fields through updates: the oldest are taken together when there are more.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Entry, Managers, Operation};
use crate::fields::Set;

const UPDATERS_MAX: usize = 10;
/// Who owns what has been taken together.
const ANCIENT: &str = "ancient-changes";

/// Takes the oldest entries of updates together, those of one version each, until there are few
/// enough.
pub(super) fn cap(managers: &mut Managers) {
    let is_update = |entry: &&Entry| entry.operation == Operation::Update;
    let count = managers.0.iter().filter(is_update).count();
    if count <= UPDATERS_MAX {
        return;
    }
    let mut oldest: Vec<Entry> = managers.0.iter().filter(is_update).cloned().collect();
    oldest.sort_by_cached_key(|entry| {
        (entry.time.map_or(0, Timestamp::as_second), entry.identifier())
    });
    let mut buckets = BTreeMap::new();
    take_together(managers, oldest, count, &mut buckets);
    for Bucket { entry, parts } in buckets.into_values() {
        managers.put(entry.with(union_of(parts)));
    }
}

/// What is taken together of one version. The sets become one at the end: one that grows with each
/// would be copied with each.
struct Bucket {
    entry: Entry,
    parts: Vec<Set>,
}

fn take_together(
    managers: &mut Managers,
    oldest: Vec<Entry>,
    mut count: usize,
    buckets: &mut BTreeMap<String, Bucket>,
) {
    let mut firsts: BTreeMap<String, Entry> = BTreeMap::new();
    for entry in oldest {
        if count <= UPDATERS_MAX {
            return;
        }
        let version = entry.api_version.clone();
        let Some(first) = firsts.get(&version) else {
            firsts.insert(version, entry);
            continue;
        };
        let mut bucket = entry.with(Set::default());
        ANCIENT.clone_into(&mut bucket.manager);
        bucket.subresource.clear();
        let mut parts = match (buckets.remove(&version), managers.find(&bucket)) {
            (Some(known), _) => known.parts,
            (None, Some(known)) => vec![known.fields.clone()],
            (None, None) => {
                managers.drop(first);
                vec![first.fields.clone()]
            }
        };
        managers.drop(&entry);
        managers.put(bucket.clone());
        parts.push(entry.fields);
        buckets.insert(version, Bucket { entry: bucket, parts });
        count -= 1;
    }
}

/// All that is in one of the sets; two and two are put together.
fn union_of(mut sets: Vec<Set>) -> Set {
    while sets.len() > 1 {
        let pairs = sets.chunks(2).map(|pair| match pair {
            [one, other] => one.union(other),
            _ => pair[0].clone(),
        });
        sets = pairs.collect();
    }
    sets.pop().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fields::Element;

    /// One after the other, as upstream does it.
    fn one_by_one(managers: &mut Managers) {
        let is_update = |entry: &&Entry| entry.operation == Operation::Update;
        let mut count = managers.0.iter().filter(is_update).count();
        let mut oldest: Vec<Entry> = managers.0.iter().filter(is_update).cloned().collect();
        oldest.sort_by_cached_key(|entry| {
            (entry.time.map_or(0, Timestamp::as_second), entry.identifier())
        });
        let mut firsts: BTreeMap<String, Entry> = BTreeMap::new();
        for entry in oldest {
            if count <= UPDATERS_MAX {
                return;
            }
            let Some(first) = firsts.get(&entry.api_version) else {
                firsts.insert(entry.api_version.clone(), entry);
                continue;
            };
            let mut bucket =
                Entry { manager: ANCIENT.to_owned(), subresource: String::new(), ..entry.clone() };
            let before = match managers.find(&bucket) {
                Some(known) => known.fields.clone(),
                None => {
                    managers.drop(&first.clone());
                    first.fields.clone()
                }
            };
            bucket.fields = entry.fields.union(&before);
            managers.drop(&entry);
            managers.put(bucket);
            count -= 1;
        }
    }

    fn entry() -> impl Strategy<Value = Entry> {
        let manager = prop_oneof![4 => "[a-z]{1,2}", 1 => Just(ANCIENT.to_owned())];
        let operation = prop_oneof![9 => Just(Operation::Update), 1 => Just(Operation::Apply)];
        let (version, sub) = ("v[12]", prop_oneof![3 => Just(""), 1 => Just("status")]);
        let paths = prop::collection::vec(prop::collection::vec("[a-e]", 1..3), 1..4);
        (manager, operation, version, sub, 0_i64..6, paths).prop_map(
            |(manager, operation, api_version, sub, second, paths)| {
                let mut fields = Set::default();
                for path in paths {
                    let path: Vec<Element> = path.iter().map(|name| Element::field(name)).collect();
                    fields.insert(&path);
                }
                let time = Timestamp::from_second(second).ok().filter(|_| second > 0);
                let subresource = sub.to_owned();
                Entry { manager, operation, api_version, subresource, time, fields }
            },
        )
    }

    proptest! {
        #[test]
        fn it_comes_to_what_one_after_the_other_comes_to(
            entries in prop::collection::vec(entry(), 0..40),
        ) {
            let mut managers = Managers::default();
            entries.into_iter().for_each(|entry| managers.put(entry));
            let mut slowly = managers.clone();
            cap(&mut managers);
            one_by_one(&mut slowly);
            prop_assert_eq!(managers.encode(), slowly.encode());
        }
    }
}
