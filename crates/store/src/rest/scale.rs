//! PUT and PATCH of `scale`: how many replicas an object wants, whatever its kind is.

use lockstep_api::{
    Status,
    decode::{self, FieldValidation},
    definition::scale::{self, UNSAID},
    json::{self, object_mut},
    strategy::Json,
};

use super::{Configuration, Plan, Scene, apply, not_found, owners::Owners, update};
use crate::{
    fields::Set,
    managed::{Managers, Replicas},
    patch::Patch,
};

const SUB: &str = "scale";

/// What is to become of a `Scale`.
#[derive(Clone, Copy, Debug)]
pub enum Scaling<'a> {
    /// This, which was checked against its schema.
    Replaced(&'a Json),
    /// What a patch makes of it.
    Patched(&'a Patch),
    /// What a configuration makes of it.
    Applied(&'a Configuration),
}

/// Plans a change of the replicas that the object `name` wants.
pub fn scale(
    scene: &Scene<'_>,
    name: &str,
    scaling: Scaling<'_>,
    validation: FieldValidation,
) -> Result<Plan, Status> {
    let places = scene.strategy().scale().ok_or_else(Status::no_such_resource)?;
    let old = scene.find(name).ok_or_else(|| not_found(scene, name))?;
    let current = scene.shown(old);
    let (mut was, is_said) = places.of(&current).map_err(Status::bad_request)?;
    if !is_said {
        object_mut(&mut was, "spec").insert("replicas".to_owned(), UNSAID.into());
    }
    let replicas = replicas(scene);
    let managers = Managers::decode(old.managed());
    let known = managers.of_scale(&replicas).encode();
    let resource = scale::resource();
    let of_scale = Scene { resource: &resource, ..*scene };
    let (wanted, known, warnings) = changed(&of_scale, &was, &known, scaling, validation)?;
    update::check_address(&of_scale, name, &wanted)?;
    let version = |scale: &Json| json::text(scale, &["metadata", "resourceVersion"]).to_owned();
    if !version(&wanted).is_empty() && version(&wanted) != version(&was) {
        return Err(Status::modified(scene.resource, name));
    }
    if json::integer(&wanted, &["spec", "replicas"]) == Some(UNSAID) {
        let path = places.spec_path();
        let why = format!("the spec replicas field {path:?} cannot be empty");
        return Err(Status::bad_request(why));
    }
    let mut object = current.clone();
    places.apply(&mut object, &wanted);
    let api_version = scene.resource.api_version();
    let managers = managers.with_scale(Managers::decode(&known), &api_version, &replicas);
    let owners = match scaling {
        Scaling::Applied(_) => Owners::Applied(managers.encode()),
        Scaling::Replaced(_) | Scaling::Patched(_) => Owners::Found(managers.encode()),
    };
    let mut plan = update::replace(scene, None, (old, &current), object, owners)?;
    plan.warnings.splice(0..0, warnings);
    Ok(plan)
}

/// A `Scale` that was `was`, with the owners in `known`, as it is to be: the new one, its owners,
/// and what the user should know.
fn changed(
    scene: &Scene<'_>,
    was: &Json,
    known: &[u8],
    scaling: Scaling<'_>,
    validation: FieldValidation,
) -> Result<(Json, Vec<u8>, Vec<String>), Status> {
    let (mut wanted, warnings) = match scaling {
        Scaling::Applied(config) => {
            return apply::applied(scene, Some(SUB), config, (was, known), validation);
        }
        Scaling::Replaced(scale) => (scale.clone(), Vec::new()),
        Scaling::Patched(patch) => {
            let patched = patch.apply(scene.resource, was, validation)?;
            (patched.object, patched.warnings)
        }
    };
    decode::complete(scene.resource, &mut wanted);
    let mut was = was.clone();
    decode::complete(scene.resource, &mut was);
    let owners = Owners::stated(&mut wanted);
    let known = owners.of_changed(scene, Some(SUB), (&was, &wanted), known).into_owned();
    Ok((wanted, known, warnings))
}

/// Where the versions in which objects of the scene are served have their replicas.
fn replicas(scene: &Scene<'_>) -> Replicas {
    let served = scene.catalog.registry().iter();
    let versions = served.filter(|resource| resource.table == scene.resource.table);
    let place = |resource: &lockstep_api::Resource| {
        let path = resource.strategy.scale()?.spec_keys();
        Some(Set::of(&[&path[..]]))
    };
    versions.map(|resource| (resource.api_version(), place(resource))).collect()
}
