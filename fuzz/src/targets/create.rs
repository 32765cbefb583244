//! Objects of all kinds on their way through a server: made, shown, changed, deleted.

use lockstep_api::{
    decode::{self, FieldValidation},
    json,
};
use lockstep_store::rest::{self, DeleteOptions};

use crate::{
    bound::bounded,
    kinds::{encoded, resource_of},
    parts::parts,
    world::World,
};

/// The first part is made, and those after it are what it is changed into, in turn through the
/// object itself and through its status.
pub fn feed(bytes: &[u8]) {
    let mut inputs = parts(bytes).take(4);
    let first = inputs.next().unwrap_or_default();
    let resource = resource_of(first);
    let Ok(decoded) = decode::object(resource, first, FieldValidation::Ignore) else { return };
    let mut world = World::new();
    let place = (&**resource, World::home(resource));
    let made = bounded(|| {
        world.write(place, "maker", |scene| rest::create(scene, decoded.object.clone()))
    });
    let Ok(made) = made else { return };
    let name = made.meta.name.to_string();
    is_shown(&world, resource, &name);
    is_left_alone(&mut world, resource, &name);
    for (at, input) in inputs.enumerate() {
        let Ok(decoded) = decode::object(resource, input, FieldValidation::Ignore) else {
            continue;
        };
        let sub = (at % 2 == 1 && resource.strategy.has_status()).then_some("status");
        let changed = bounded(|| {
            world.write(place, "changer", |scene| {
                rest::update(scene, sub, &name, decoded.object.clone())
            })
        });
        if changed.is_ok() && world.get(resource, &name).is_some() {
            is_shown(&world, resource, &name);
            is_left_alone(&mut world, resource, &name);
        }
    }
    let options = DeleteOptions::default();
    let _ = bounded(|| world.write(place, "maker", |scene| rest::delete(scene, &name, &options)));
}

/// A row has a cell for each column, and what is said beside it can be said.
fn is_shown(world: &World, resource: &lockstep_api::Resource, name: &str) {
    let object = world.get(resource, name).expect("it was just written");
    let strategy = &resource.strategy;
    assert_eq!(strategy.row(&object, world.now).len(), strategy.columns().len());
    strategy.row_conditions(&object);
    strategy.lint(&object);
    for field in strategy.selectable_fields() {
        strategy.field_value(&object, field);
    }
}

/// Whoever writes what is there changes nothing: not the object, not its revision.
fn is_left_alone(world: &mut World, resource: &lockstep_api::Resource, name: &str) {
    let place = (resource, World::home(resource));
    for sub in [None, Some("status")] {
        if sub.is_some() && !resource.strategy.has_status() {
            continue;
        }
        let before = (world.revision(), world.get(resource, name).expect("it is there"));
        let text = encoded(resource, &before.1);
        let read = decode::object(resource, &text, FieldValidation::Strict);
        let read = read.unwrap_or_else(|status| panic!("{status:?}")).object;
        let version = json::text(&read, &["metadata", "resourceVersion"]);
        assert_eq!(version, before.0.to_string());
        let written = world.write(place, "maker", |scene| rest::update(scene, sub, name, read));
        if let Err(status) = written {
            panic!("what is there is refused: {status:?}");
        }
        assert_eq!(world.get(resource, name).as_ref(), Some(&before.1));
        assert_eq!(world.revision(), before.0, "nothing was changed");
    }
}
