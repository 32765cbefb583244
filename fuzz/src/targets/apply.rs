//! Several managers who apply, update and patch one object in turn.

use std::sync::Arc;

use lockstep_api::{
    Resource, Status,
    decode::{self, FieldValidation},
    json,
    strategy::Json,
};
use lockstep_local::server::body;
use lockstep_store::{
    Object,
    managed::Managers,
    patch::Patch,
    rest::{self, Configuration},
};

use crate::{
    bound::bounded,
    kinds::resource_of,
    parts::{line, parts},
    world::World,
};

/// How many writes there are at most.
const STEPS_MAX: usize = 12;

/// Each part is a write: a line with the name of the manager and what it does (`apply`, `force`,
/// `status`, `update`, `merge`, `strategic`), and a body. All are about one object, which the first
/// names.
pub fn feed(bytes: &[u8]) {
    let resource = resource_of(bytes);
    let first = parts(bytes).find_map(|part| body::configuration(line(part).1, false).ok());
    let Some(first) = first else { return };
    let name = json::text(&first.object, &["metadata", "name"]).to_owned();
    let mut history = History { world: World::new(), resource, name };
    for part in parts(bytes).take(STEPS_MAX) {
        let (head, body) = line(part);
        let (manager, verb) = head.split_once(' ').unwrap_or((head, "apply"));
        // Without a name nobody applies.
        let manager = if manager.is_empty() { "nobody" } else { manager };
        if manager.len() <= 128 {
            history.step(manager, verb, body);
        }
    }
}

struct History {
    world: World,
    resource: &'static Arc<Resource>,
    name: String,
}

impl History {
    fn step(&mut self, manager: &str, verb: &str, body: &[u8]) {
        let sub = (verb == "status" && self.resource.strategy.has_status()).then_some("status");
        match verb {
            "update" => drop(self.update(manager, body)),
            "merge" => drop(Patch::merge(body).map(|patch| self.patch(manager, &patch))),
            "strategic" => drop(Patch::strategic(body).map(|patch| self.patch(manager, &patch))),
            _ => {
                if let Ok(config) = body::configuration(body, verb == "force") {
                    self.apply_twice(manager, sub, &config);
                }
            }
        }
    }

    /// Who applies the same again changes nothing, whatever the first time came to.
    fn apply_twice(&mut self, manager: &str, sub: Option<&str>, config: &Configuration) {
        let mut first = self.apply(manager, sub, config);
        // Who applies something where nobody owns anything makes what is there
        // `before-first-apply`'s.
        if first.as_ref().is_ok_and(|object| owners(object).entries().is_empty()) {
            first = self.apply(manager, sub, config);
        }
        let (revision, object) = (self.world.revision(), self.object());
        let again = self.apply(manager, sub, config);
        match (first, again) {
            (Ok(first), Ok(again)) => {
                assert_eq!(self.object(), object);
                assert_eq!(owners(&again), owners(&first), "owners change");
                assert_eq!(self.world.revision(), revision, "applied twice");
                is_owner(&again, manager);
            }
            (Err(first), Err(again)) => assert_eq!(first.code, again.code),
            // Who names the version that was there before cannot mean what is there now, and the
            // time of a deletion is left out of what is new only.
            (Ok(_), Err(again)) if again.code == 409 && names(config, "resourceVersion") => {}
            (Ok(_), Err(again)) if again.code == 422 && names_deletion(config) => {}
            // A pod that was made may not be changed in ways in which it was made.
            (Ok(_), Err(again)) => panic!("it was applied, and now is refused: {again:?}"),
            (Err(first), Ok(_)) => panic!("it was refused, and now is applied: {first:?}"),
        }
    }

    fn apply(
        &mut self,
        manager: &str,
        sub: Option<&str>,
        config: &Configuration,
    ) -> Result<Arc<Object>, Status> {
        let place = (&**self.resource, World::home(self.resource));
        bounded(|| {
            self.world.write(place, manager, |scene| {
                rest::apply(scene, sub, &self.name, config, FieldValidation::Warn)
            })
        })
    }

    fn update(&mut self, manager: &str, body: &[u8]) -> Result<Arc<Object>, Status> {
        let place = (&**self.resource, World::home(self.resource));
        let decoded = decode::object(self.resource, body, FieldValidation::Ignore)?;
        bounded(|| {
            self.world.write(place, manager, |scene| {
                rest::update(scene, None, &self.name, decoded.object)
            })
        })
    }

    fn patch(&mut self, manager: &str, patch: &Patch) -> Result<Arc<Object>, Status> {
        let place = (&**self.resource, World::home(self.resource));
        bounded(|| {
            self.world.write(place, manager, |scene| {
                rest::patch(scene, None, &self.name, patch, FieldValidation::Ignore)
            })
        })
    }

    fn object(&self) -> Option<Json> {
        self.world.get(self.resource, &self.name)
    }
}

/// Whether something is said of a field of the metadata.
fn names(config: &Configuration, field: &str) -> bool {
    json::at(&config.object, &["metadata", field]).is_some_and(|value| !value.is_null())
}

fn names_deletion(config: &Configuration) -> bool {
    names(config, "deletionTimestamp") || names(config, "deletionGracePeriodSeconds")
}

/// Who owns what, but for when; it is encoded and decoded to itself.
fn owners(object: &Object) -> Managers {
    let managers = Managers::decode(object.managed());
    assert_eq!(Managers::decode(&managers.clone().encode()), managers);
    managers
}

/// Who has applied something owns something, unless nobody can own what was applied.
fn is_owner(object: &Object, manager: &str) {
    for entry in owners(object).entries() {
        assert!(entry.manager != manager || !entry.fields.is_empty(), "{entry:?}");
    }
}
