//! POST: a new object.

use lockstep_api::{Status, decode, json, meta, strategy::Json};

use super::{
    Answer, Plan, Scene, admission, definition, limits,
    metadata::{self, Found},
    namespace,
    owners::Owners,
    quotas, size,
};
use crate::change::{Change, Check, Expect, Write};

/// How often a generated name is tried.
const ATTEMPTS_MAX: u64 = 8;

/// Plans the creation of `object`, which was checked against its schema.
pub fn create(scene: &Scene<'_>, mut object: Json) -> Result<Plan, Status> {
    let owners = Owners::stated(&mut object);
    let warning = metadata::unite_owners(&mut object, Found::Sent);
    let mut plan = create_owned(scene, object, owners)?;
    plan.warnings.splice(0..0, warning);
    Ok(plan)
}

/// Plans the creation of `object`, whose managed fields were taken out of it.
pub(super) fn create_owned(
    scene: &Scene<'_>,
    mut object: Json,
    owners: Owners,
) -> Result<Plan, Status> {
    let given = json::text(&object, &["metadata", "name"]).to_owned();
    let mut checks: Vec<Check> = namespace::admit_create(scene, &given)?.into_iter().collect();
    checks.extend(definition::admit_create(scene, &given)?);
    metadata::settle_namespace(&mut object, scene)?;
    if !json::text(&object, &["metadata", "resourceVersion"]).is_empty() {
        return Err(Status::bad_request(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    metadata::fill_system_fields(&mut object, scene.context);
    let name = settle_name(scene, &mut object);
    scene.strategy().fill_defaults(&mut object);
    decode::complete(scene.resource, &mut object);
    let is_applied = matches!(owners, Owners::Applied(_));
    let managed = owners.of_new(scene, &object);
    let mut warnings = Vec::from_iter(metadata::unite_owners(&mut object, Found::Made));
    warnings.extend(accept(scene, &mut object, &name, &mut checks)?);
    let managed = definition::owners(scene, &object, None, managed.into());
    let charges = quotas::charges(scene, None, &object, None, &name)?;
    if let Some(existing) = scene.find(&name) {
        let mut status = already_exists(scene, &object, &name);
        if existing.meta.is_deleting() {
            status.message = format!("object is being deleted: {}", status.message);
        }
        return Err(status);
    }
    let draft = size::draft(scene, object, &managed, is_applied, None)?;
    let op = scene.op(&name, Expect::Absent, Write::Put(draft));
    let ops = [vec![op], charges].concat();
    let change = Change { checks, ops };
    Ok(Plan { change, answer: Answer::Op(0), is_created: true, warnings })
}

/// What is said of a name that is taken. Who gave a prefix too is taken to have let the server
/// choose.
fn already_exists(scene: &Scene<'_>, object: &Json, name: &str) -> Status {
    let mut status = Status::already_exists(scene.resource, name);
    if !json::text(object, &["metadata", "generateName"]).is_empty() {
        status.message += ", the server was not able to generate a unique name for the object";
        if let Some(details) = &mut status.details {
            details.retry_after_seconds = 1;
        }
    }
    status
}

/// Checks a new object whose name, system fields and defaults are set.
fn accept(
    scene: &Scene<'_>,
    object: &mut Json,
    name: &str,
    checks: &mut Vec<Check>,
) -> Result<Vec<String>, Status> {
    let strategy = scene.strategy();
    admission::set_priority(scene, object, name)?;
    limits::fill(scene, object);
    strategy.prepare_create(object, scene.context);
    decode::complete(scene.resource, object);
    if let Some(admission) = &scene.catalog.admission {
        admission.admit(scene, object)?;
    }
    checks.extend(admission::allocate(scene, object, None, name)?);
    checks.extend(definition::settle(scene, object, name));
    if strategy.has_generation() {
        metadata::metadata(object).insert("generation".to_owned(), 1.into());
    }
    metadata::normalize(object);
    let mut errors =
        meta::validate_create(object, scene.resource.is_namespaced(), |name, prefix| {
            strategy.validate_name(name, prefix)
        });
    errors.extend(metadata::finalizer_faults(scene, object));
    errors.extend(strategy.validate_create(object));
    errors.extend(admission::claim_faults(scene, object));
    if let Some(admission) = scene.catalog.admission.as_ref().filter(|_| errors.is_empty()) {
        errors.extend(admission.validate(scene, object, None));
    }
    if !errors.is_empty() {
        return Err(Status::invalid(scene.resource, name, &errors));
    }
    limits::check(scene, object, None, name)?;
    let mut warnings = strategy.warnings(object, None);
    warnings.extend(definition::warning(scene, object));
    Ok(warnings)
}

/// The name of the object, generated when only a prefix is given. After the last attempt the name
/// is one that is taken, and the answer is the same as for a name the user chose.
fn settle_name(scene: &Scene<'_>, object: &mut Json) -> String {
    let meta = metadata::metadata(object);
    let name = json::text(meta, &["name"]).to_owned();
    let prefix = json::text(meta, &["generateName"]).to_owned();
    if name.is_empty() && prefix.is_empty() && scene.strategy().is_named_by_the_server() {
        meta.insert("name".to_owned(), scene.context.uid.clone().into());
        return scene.context.uid.clone();
    }
    if !name.is_empty() || prefix.is_empty() {
        return name;
    }
    let names = (0..ATTEMPTS_MAX)
        .map(|attempt| metadata::generated_name(&prefix, &scene.context.uid, attempt));
    let mut last = String::new();
    for name in names {
        let is_free = scene.find(&name).is_none();
        last = name;
        if is_free {
            break;
        }
    }
    meta.insert("name".to_owned(), last.clone().into());
    last
}
