//! Whatever is created, deleted and held back: when the collectors rest, nothing is left to collect
//! and nothing was collected that somebody keeps.

use std::collections::BTreeMap;

use lockstep_api::{
    meta::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN},
    strategy::Propagation,
};
use proptest::prelude::*;
use serde_json::json;

use crate::{object::Object, rest::DeleteOptions, testing::World};

#[derive(Clone, Debug)]
enum Step {
    Create { name: u8, owners: Vec<(u8, bool)>, is_held: bool },
    Delete(u8, u8),
    Release(u8),
    Collect,
}

fn step() -> impl Strategy<Value = Step> {
    let owners = prop::collection::vec((0..8_u8, any::<bool>()), 0..3);
    prop_oneof![
        4 => (0..8_u8, owners, prop::bool::weighted(0.3))
            .prop_map(|(name, owners, is_held)| Step::Create { name, owners, is_held }),
        3 => (0..8_u8, 0..4_u8).prop_map(|(name, how)| Step::Delete(name, how)),
        2 => (0..8_u8).prop_map(Step::Release),
        1 => Just(Step::Collect),
    ]
}

struct Garden {
    world: World,
    /// Objects that nobody asked to delete and that have no owners: name to uid.
    kept: BTreeMap<String, String>,
}

impl Garden {
    fn run(&mut self, step: &Step) {
        match step {
            Step::Create { name, owners, is_held } => self.create(*name, owners, *is_held),
            Step::Delete(name, how) => {
                let propagation = match how {
                    0 => Some(Propagation::Foreground),
                    1 => Some(Propagation::Orphan),
                    2 => Some(Propagation::Background),
                    _ => None,
                };
                let name = format!("o{name}");
                let options = DeleteOptions { propagation, ..DeleteOptions::default() };
                let _may_be_absent = self.world.delete("configmaps", ("n", &name), &options);
                self.kept.remove(&name);
            }
            Step::Release(name) => {
                let name = format!("o{name}");
                let Some(mut object) = self.world.get("configmaps", &format!("n/{name}")) else {
                    return;
                };
                let meta = object["metadata"].as_object_mut().unwrap();
                if let Some(finalizers) = meta.get_mut("finalizers").and_then(|f| f.as_array_mut())
                {
                    finalizers.retain(|finalizer| finalizer != "example.com/hold");
                }
                self.world.update("configmaps", None, ("n", &name), object).unwrap();
            }
            Step::Collect => {
                self.world.collect();
                self.check();
            }
        }
    }

    fn create(&mut self, name: u8, owners: &[(u8, bool)], is_held: bool) {
        let mut references = BTreeMap::new();
        for (owner, is_blocking) in owners {
            let name = format!("o{owner}");
            let found = self.world.get("configmaps", &format!("n/{name}"));
            let uid =
                found.map_or_else(|| json!("never-was"), |found| found["metadata"]["uid"].clone());
            let reference = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid,
                "blockOwnerDeletion": is_blocking,
            });
            references.insert(uid.to_string(), reference);
        }
        let name = format!("o{name}");
        let finalizers = if is_held { vec!["example.com/hold"] } else { Vec::new() };
        let owners: Vec<_> = references.into_values().collect();
        let has_owners = !owners.is_empty();
        let object = json!({"metadata":
            {"name": name, "ownerReferences": owners, "finalizers": finalizers}});
        if let Ok(created) = self.world.create("configmaps", "n", object)
            && !has_owners
        {
            self.kept.insert(name, created.meta.uid.to_string());
        }
    }

    fn objects(&self) -> BTreeMap<String, &Object> {
        let objects = self.world.store.published().range("configmaps", None, None);
        objects.map(|(_, object)| (object.meta.uid.to_string(), &**object)).collect()
    }

    fn check(&self) {
        let objects = self.objects();
        let has = |object: &Object, name: &str| object.meta.finalizers.iter().any(|f| &**f == name);
        for (name, uid) in &self.kept {
            assert!(objects.contains_key(uid), "{name} was collected although nobody asked");
        }
        for (uid, object) in &objects {
            let name = &object.meta.name;
            let mut owners = object.meta.owners.iter().map(|owner| objects.get(&*owner.uid));
            if object.meta.is_deleting() {
                assert!(!object.meta.finalizers.is_empty(), "{name} waits for nothing");
                assert!(!has(object, FINALIZER_ORPHAN), "{name} still has to let go");
            } else if owners.len() > 0 {
                let is_solid = |owner: Option<&&Object>| {
                    owner.is_some_and(|owner| {
                        !(owner.meta.is_deleting() && has(owner, FINALIZER_FOREGROUND))
                    })
                };
                assert!(owners.all(is_solid), "{name} is kept by nobody or names the dead");
            }
            if has(object, FINALIZER_FOREGROUND) && object.meta.is_deleting() {
                let is_blocked = objects.values().any(|other| {
                    other
                        .meta
                        .owners
                        .iter()
                        .any(|owner| *owner.uid == **uid && owner.block_owner_deletion)
                });
                assert!(is_blocked, "{name} waits for nobody");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn collectors_take_all_that_is_due_and_nothing_else(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut garden = Garden { world: World::new(), kept: BTreeMap::new() };
        for step in &steps {
            garden.run(step);
        }
        garden.run(&Step::Collect);
    }
}
