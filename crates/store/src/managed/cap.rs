//! How many may own fields through updates: the oldest are taken together when there are more.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Entry, Managers, Operation};

const UPDATERS_MAX: usize = 10;
/// Who owns what has been taken together.
const ANCIENT: &str = "ancient-changes";

/// Takes the oldest entries of updates together, those of one version each, until there are few
/// enough.
pub(super) fn cap(managers: &mut Managers) {
    let is_update = |entry: &&Entry| entry.operation == Operation::Update;
    let mut count = managers.0.iter().filter(is_update).count();
    if count <= UPDATERS_MAX {
        return;
    }
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
                let fields = first.fields.clone();
                managers.drop(&first.clone());
                fields
            }
        };
        bucket.fields = entry.fields.union(&before);
        managers.drop(&entry);
        managers.put(bucket);
        count -= 1;
    }
}
