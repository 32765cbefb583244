//! Owners of replicas: as owners of an object, and as owners of its `Scale`.

use std::{collections::BTreeMap, sync::LazyLock};

use super::{Entry, Managers};
use crate::fields::Set;

const SCALE: &str = "autoscaling/v1";
static IN_SCALE: LazyLock<Set> = LazyLock::new(|| Set::of(&[&["spec", "replicas"]]));

/// Where the versions of a kind have their replicas; nothing for one that cannot be scaled.
pub type Replicas = BTreeMap<String, Option<Set>>;

impl Managers {
    /// The owners of the replicas, as owners of a `Scale`.
    #[must_use]
    pub fn of_scale(&self, replicas: &Replicas) -> Self {
        let mut managers = Self::default();
        for entry in &self.0 {
            let path = replicas.get(&entry.api_version).and_then(Option::as_ref);
            if path.is_some_and(|path| entry.fields.contains(path)) {
                let api_version = SCALE.to_owned();
                managers.put(Entry { api_version, ..entry.with(IN_SCALE.clone()) });
            }
        }
        managers
    }

    /// The owners of an object whose replicas were written through its `Scale` in a version, and
    /// now have the owners `scale`. As upstream, those who are new have no time.
    #[must_use]
    pub fn with_scale(self, mut scale: Self, api_version: &str, replicas: &Replicas) -> Self {
        let mut managers = Self::default();
        for mut entry in self.0 {
            // Nobody can own anything in a version that is not served.
            let Some(path) = replicas.get(&entry.api_version) else { continue };
            if let Some(path) = path.as_ref().filter(|path| entry.fields.contains(path)) {
                let is_kept = |it: &Entry| {
                    (&it.manager, it.operation, &it.subresource)
                        == (&entry.manager, entry.operation, &entry.subresource)
                };
                match scale.0.iter().position(is_kept) {
                    Some(at) => drop(scale.0.remove(at)),
                    None => entry.fields = entry.fields.difference(path),
                }
            }
            if !entry.fields.is_empty() {
                managers.0.push(entry);
            }
        }
        let path = replicas.get(api_version).and_then(Option::as_ref);
        for entry in scale.0.into_iter().filter(|entry| entry.fields.contains(&IN_SCALE)) {
            let fields = path.cloned().unwrap_or_default();
            let api_version = api_version.to_owned();
            managers.0.push(Entry { api_version, time: None, ..entry.with(fields) });
        }
        managers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managed::Operation;

    fn entry(manager: &str, api_version: &str, subresource: &str, paths: &[&[&str]]) -> Entry {
        Entry {
            manager: manager.to_owned(),
            operation: Operation::Update,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
            time: None,
            fields: Set::of(paths),
        }
    }

    #[test]
    fn who_scales_takes_the_replicas_and_nothing_else() {
        let path: &[&str] = &["spec", "count"];
        let replicas = Replicas::from([
            ("example.com/v1".to_owned(), Some(Set::of(&[path]))),
            ("example.com/v2".to_owned(), None),
        ]);
        let before = Managers(vec![
            entry("one", "example.com/v1", "", &[path, &["spec", "color"]]),
            entry("two", "example.com/v2", "", &[path]),
            entry("gone", "example.com/v0", "", &[path]),
            entry("three", "example.com/v1", "", &[path]),
        ]);
        let of_scale = before.of_scale(&replicas);
        let in_scale: &[&str] = &["spec", "replicas"];
        let want = ["one", "three"].map(|manager| entry(manager, SCALE, "", &[in_scale])).to_vec();
        assert_eq!(of_scale.entries(), want);
        let taken = Managers(vec![entry("four", SCALE, "scale", &[in_scale, &["status"]])]);
        let after = before.clone().with_scale(taken, "example.com/v1", &replicas);
        assert_eq!(
            after.entries(),
            [
                entry("one", "example.com/v1", "", &[&["spec", "color"]]),
                entry("two", "example.com/v2", "", &[path]),
                entry("four", "example.com/v1", "scale", &[path]),
            ]
        );
        let kept = before.clone().with_scale(of_scale, "example.com/v1", &replicas);
        let known = [&before.0[..2], &before.0[3..]].concat();
        assert_eq!(kept.entries(), known, "nothing was changed");
    }
}
