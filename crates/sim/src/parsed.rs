//! Objects as their kinds, each version parsed once: the checker and every controller look at the
//! same ones.

use std::{collections::BTreeMap, sync::Arc};

use lockstep_store::Object;
use serde::de::DeserializeOwned;

/// Of each object this many versions are kept. Who is further behind has them parsed again.
const VERSIONS_MAX: usize = 32;

/// What has been parsed, by uid.
#[derive(Debug)]
pub struct Parsed<T>(BTreeMap<Box<str>, Vec<Version<T>>>);

/// One version, as it is stored and as its kind.
type Version<T> = (Arc<Object>, Arc<T>);

impl<T> Default for Parsed<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: DeserializeOwned> Parsed<T> {
    /// The object as its kind.
    ///
    /// # Panics
    /// When it is not of that kind.
    pub fn get(&mut self, object: &Arc<Object>) -> Arc<T> {
        if !self.0.contains_key(&object.meta.uid) {
            self.0.insert(object.meta.uid.clone(), Vec::new());
        }
        let versions = self.0.get_mut(&object.meta.uid).expect("it was put there");
        // The answer to a request that removes an object has the revision of the version before:
        // what is the same is told by identity.
        let known = versions.iter().rev().find(|(known, _)| Arc::ptr_eq(known, object));
        if let Some((_, parsed)) = known {
            return Arc::clone(parsed);
        }
        let parsed = serde_json::from_slice(&object.body);
        let parsed = Arc::new(parsed.expect("the API has accepted it as its kind"));
        if versions.len() == VERSIONS_MAX {
            versions.remove(0);
        }
        versions.push((Arc::clone(object), Arc::clone(&parsed)));
        parsed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use k8s_openapi::api::batch::v1::Job;
    use lockstep_api::{json, strategy::Json};
    use serde_json::json;

    use super::Parsed;
    use crate::{
        api::{Api, Kind},
        chance::Chance,
        manifest,
    };

    #[test]
    fn a_version_is_parsed_once_and_versions_are_told_apart() {
        let mut api = Api::new(Timestamp::UNIX_EPOCH);
        let job = manifest::job(&mut Chance::new(1, "job"), "a");
        let first = api.create(Kind::Job, job).unwrap();
        let change = |job: &mut Json| {
            json::object_mut(job, "spec").insert("suspend".to_owned(), json!(true));
        };
        let second = api.edit(Kind::Job, None, "a", change).unwrap();
        let mut parsed = Parsed::<Job>::default();
        let before = parsed.get(&first);
        let after = parsed.get(&second);
        assert!(Arc::ptr_eq(&before, &parsed.get(&first)));
        assert_eq!(after.spec.as_ref().unwrap().suspend, Some(true));
        assert_ne!(before.metadata.resource_version, after.metadata.resource_version);
    }
}
