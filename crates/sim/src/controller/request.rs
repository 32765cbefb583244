//! The way of a request to the API and back, what may happen to it there, and the requests that
//! all controllers make.

use lockstep_api::{
    Status, json,
    strategy::{Json, Propagation},
};
use lockstep_control::plan::{Key, Refusal, RefusalKind};
use lockstep_store::rest::DeleteOptions;
use serde::Serialize;
use serde_json::json;

use super::{Answer, Call};
use crate::{
    api::{Api, Kind, map},
    check::Violation,
    cluster::Cluster,
    faults::{Faults, Trouble},
};

/// Sends a request about `key`, whatever becomes of it, for the controller of this name and number.
/// Fails when to ask again would change nothing: nobody should have asked.
pub(crate) fn send(
    (call, key): (&impl Call, &Key),
    (actor, number): (&'static str, usize),
    cluster: &mut Cluster,
    faults: &mut Faults,
) -> Result<Answer, Violation> {
    let (trouble, api) = (faults.request(), &mut cluster.api);
    let answer = match trouble {
        Trouble::None => call.send(api, key),
        Trouble::Conflict => {
            if let Some((kind, name)) = call.target(api, key) {
                disturb(api, kind, name);
            }
            call.send(api, key)
        }
        Trouble::Refused => Err(Status::internal("connection refused")),
        Trouble::Unanswered => {
            let _ = call.send(api, key);
            Err(Status::internal("connection lost"))
        }
        Trouble::Twice => {
            let _ = call.send(api, key);
            call.send(api, key)
        }
    };
    cluster.say(actor, || {
        let said = match &answer {
            Ok(Some(object)) => format!("ok, @{}", object.revision()),
            Ok(None) => "ok".to_owned(),
            Err(status) => format!("{} {}", status.code, status.message),
        };
        let is_fine = trouble == Trouble::None;
        let how = if is_fine { String::new() } else { format!(" [{trouble:?}]") };
        format!("{number}{how} {said}: {}", call.told(key))
    });
    match &answer {
        Err(status) if is_pointless(status) && (status.code == 400 || !call.may_wait()) => {
            Err(Violation(format!("the API refuses to {}: {status}", call.told(key))))
        }
        Ok(_) | Err(_) => Ok(answer),
    }
}

/// Whether no change of anything else would make the API take such a request.
fn is_pointless(status: &Status) -> bool {
    matches!(status.code, 400 | 422) && refusal(status).kind == RefusalKind::Refused
}

/// Writes a status over the version of the object it was decided on.
pub(crate) fn write_status(
    api: &mut Api,
    (kind, name): (Kind, &str),
    (uid, version): (&str, &str),
    status: &impl Serialize,
) -> Answer {
    let status = serde_json::to_value(status).expect("a status can be written");
    let written = api.edit(kind, Some("status"), name, |object| {
        let meta = json::object_mut(object, "metadata");
        meta.insert("uid".to_owned(), json!(uid));
        meta.insert("resourceVersion".to_owned(), json!(version));
        object.insert("status".to_owned(), status);
    });
    written.map(Some)
}

/// Makes an object.
pub(crate) fn create(api: &mut Api, kind: Kind, object: &impl Serialize) -> Answer {
    let mut object = map(serde_json::to_value(object).expect("an object can be written"));
    object.remove("apiVersion");
    object.remove("kind");
    api.create(kind, object).map(Some)
}

/// Deletes the object that has this uid, no other of its name.
pub(crate) fn delete(
    api: &mut Api,
    (kind, name): (Kind, &str),
    uid: &str,
    propagation: Option<Propagation>,
) -> Answer {
    let uid = Some(uid.to_owned());
    let options = DeleteOptions { uid, propagation, ..DeleteOptions::default() };
    api.delete(kind, name, &options).map(Some)
}

/// Somebody else writes to an object what matters to nobody.
fn disturb(api: &mut Api, kind: Kind, name: &str) {
    let note = |object: &mut Json| {
        let meta = json::object_mut(object, "metadata");
        let notes = json::object_mut(meta, "annotations");
        let count = json::text(notes, &["sim/disturbed"]).len();
        notes.insert("sim/disturbed".to_owned(), json!("x".repeat(count + 1)));
    };
    // What is not there cannot be disturbed.
    let _ = api.edit(kind, None, name, note);
}

/// A no, as drivers want to hear it.
pub(crate) fn refusal(status: &Status) -> Refusal {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes = causes.map(|cause| cause.reason.as_str());
    let kind = RefusalKind::of(status.code, &status.reason, &status.message, causes);
    Refusal { kind, message: status.message.clone() }
}
