//! The tickets of a set's agents, in a Secret that goes with the set.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use lockstep_control::plan::jobset::Ticket as Wanted;
use lockstep_control::plan::jobset::in_place::{BUS_PASSWORD_KEY, secret, ticket_key};
use lockstep_control::plan::{Key, Refusal, RefusalKind};
use lockstep_restart::ticket::{Key as TicketKey, Ticket};
use serde_json::json;

use super::record::owner;
use crate::jobset::carry_out::create_or_find;
use crate::requests::refusal;

/// For how long a ticket is good: longer than anything runs. What ends it is the end of its set,
/// or of the generation that it is for.
const GOOD_FOR: Duration = Duration::from_hours(10 * 365 * 24);

/// What lets the agents of all sets in.
#[derive(Clone)]
pub struct Keys {
    /// What their tickets are made with.
    pub tickets: TicketKey,
    /// The password that they have at the bus, if they go through one.
    pub bus_password: Option<String>,
}

/// Puts a ticket into the Secret of a set, unless there is one; and the password of the bus.
pub(in crate::jobset) async fn put(
    client: &Client,
    set: &Key,
    keys: &Keys,
    wanted: &Wanted,
) -> Result<(), Refusal> {
    let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + GOOD_FOR;
    let ticket =
        Ticket { job: wanted.uid.clone(), generation: wanted.generation, until: until.as_secs() };
    let name = ticket_key(wanted.generation);
    let mut data =
        BTreeMap::from([(name.clone(), ByteString(keys.tickets.sign(&ticket).into_bytes()))]);
    if let Some(password) = &keys.bus_password {
        data.insert(BUS_PASSWORD_KEY.to_owned(), ByteString(password.clone().into_bytes()));
    }
    let new = Secret {
        metadata: ObjectMeta {
            name: Some(secret(&set.name)),
            namespace: Some(set.namespace.clone()),
            owner_references: Some(vec![owner(&set.name, &wanted.uid)]),
            ..ObjectMeta::default()
        },
        data: Some(data.clone()),
        ..Secret::default()
    };
    let Err((refused, found)) = create_or_find(client, &new).await else { return Ok(()) };
    let Some(found) = found else { return Err(refused) };
    let mut owners = found.metadata.owner_references.iter().flatten();
    if !owners.any(|owner| owner.uid == wanted.uid) {
        let message = format!(
            "the Secret {} is there already, and is none of this JobSet: its agents have no ticket",
            secret(&set.name)
        );
        return Err(Refusal { kind: RefusalKind::Other, message });
    }
    let found_data = found.data.unwrap_or_default();
    if found_data.contains_key(&name) {
        // Each that is made ends at another time; the one that is there is as good.
        data.remove(&name);
    }
    data.retain(|name, value| found_data.get(name) != Some(value));
    if data.is_empty() {
        return Ok(());
    }
    let api: Api<Secret> = Api::namespaced(client.clone(), &set.namespace);
    let patch = json!({"metadata": {"uid": found.metadata.uid}, "data": data});
    let patch = Patch::Merge(patch);
    let patched = api.patch(&secret(&set.name), &PatchParams::default(), &patch).await;
    patched.map(drop).map_err(|error| refusal(&error))
}
