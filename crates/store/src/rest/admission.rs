//! What a new version needs to know of other objects: the priority of a pod's class, addresses and
//! ports no other service has.

use std::{collections::BTreeSet, net::Ipv4Addr, sync::Arc};

use lockstep_api::{
    Status,
    field::ErrorList,
    jobset, json,
    kinds::service::{self, ClusterIp, NodePortError},
    pod,
    strategy::Json,
};

use super::{Scene, metadata::hash};
use crate::{change::Check, object};

/// Addresses at the start of the range that are only given to those who ask for them.
const STATIC_ADDRESSES: u32 = 256;

/// Gives a new pod the priority of the class it names, or of the default class.
pub(super) fn set_priority(scene: &Scene<'_>, object: &mut Json, name: &str) -> Result<(), Status> {
    let is_pod = scene.resource.group.is_empty() && scene.resource.plural == "pods";
    let classes = scene.catalog.registry().get("scheduling.k8s.io", "v1", "priorityclasses");
    let Some(classes) = classes.filter(|_| is_pod) else {
        return Ok(());
    };
    let wanted = json::text(object, &["spec", "priorityClassName"]).to_owned();
    let class = if wanted.is_empty() {
        let defaults = scene.view.range(&classes.table, None, None).map(|(_, class)| class.json());
        defaults
            .filter(|class| json::flag(class, &["globalDefault"]))
            .min_by_key(|class| json::integer(class, &["value"]))
    } else {
        scene.view.get(&classes.table, &wanted).map(|class| class.json())
    };
    let Some(class) = class else {
        // The classes of the system need no object.
        if wanted.is_empty() || wanted.starts_with("system-") {
            return Ok(());
        }
        let why = format!("no PriorityClass with name {wanted} was found");
        return Err(Status::forbidden(scene.resource, name, &why));
    };
    if wanted.is_empty() {
        let class_name = json::text(&class, &["metadata", "name"]);
        json::object_mut(object, "spec").insert("priorityClassName".to_owned(), class_name.into());
    }
    let value = json::integer(&class, &["value"]).unwrap_or_default();
    let policy = match json::text(&class, &["preemptionPolicy"]) {
        "" => "PreemptLowerPriority",
        policy => policy,
    };
    pod::set_priority(object, value, policy)
        .map_err(|why| Status::forbidden(scene.resource, name, &why))
}

/// Says what is wrong with a new JobSet whose volume claims exist already.
pub(super) fn claim_faults(scene: &Scene<'_>, object: &Json) -> ErrorList {
    let is_set = scene.resource.group == jobset::GROUP && scene.resource.plural == jobset::PLURAL;
    let claims = scene.catalog.registry().get("", "v1", "persistentvolumeclaims");
    let Some(claims) = claims.filter(|_| is_set) else { return ErrorList::new() };
    let namespace = json::text(object, &["metadata", "namespace"]);
    jobset::validate_existing_claims(object, |name| {
        scene.view.get(&claims.table, &object::key(namespace, name)).map(|claim| claim.json())
    })
}

/// Gives a service the address and the ports of nodes it wants. Nothing may happen to other
/// services meanwhile.
pub(super) fn allocate(
    scene: &Scene<'_>,
    object: &mut Json,
    old: Option<&Json>,
    name: &str,
) -> Result<Option<Check>, Status> {
    if !(scene.resource.group.is_empty() && scene.resource.plural == "services") {
        return Ok(None);
    }
    let has_address = allocate_address(scene, object, old, name)?;
    let has_ports = allocate_ports(scene, object, old, name)?;
    Ok((has_address || has_ports).then(|| Check::Table {
        table: Arc::clone(&scene.resource.table),
        revision: scene.view.table_revision(&scene.resource.table),
    }))
}

fn allocate_address(
    scene: &Scene<'_>,
    object: &mut Json,
    old: Option<&Json>,
    name: &str,
) -> Result<bool, Status> {
    let invalid = |errors| Status::invalid(scene.resource, name, &errors);
    let wanted = service::cluster_ip_wanted(object, old).map_err(invalid)?;
    if wanted == ClusterIp::Unneeded {
        return Ok(false);
    }
    let taken = taken(scene);
    let address = match wanted {
        ClusterIp::Exactly(address) if taken.contains(&address) => {
            return Err(invalid(vec![service::already_allocated(address)]));
        }
        ClusterIp::Exactly(address) => address,
        ClusterIp::Any | ClusterIp::Unneeded => free(&taken, &scene.context.uid)
            .ok_or_else(|| Status::internal("failed to allocate a serviceIP: range is full"))?,
    };
    service::set_cluster_ip(object, address);
    Ok(true)
}

fn allocate_ports(
    scene: &Scene<'_>,
    object: &mut Json,
    old: Option<&Json>,
    name: &str,
) -> Result<bool, Status> {
    let has_ports = |kind: &str| matches!(kind, "NodePort" | "LoadBalancer");
    if !has_ports(json::text(object, &["spec", "type"])) {
        return Ok(false);
    }
    let own = scene.key(name);
    let taken = scene
        .view
        .range(&scene.resource.table, None, None)
        .filter(|(key, other)| {
            ***key != *own && other.field(scene.resource, "spec.type").is_some_and(has_ports)
        })
        .flat_map(|(_, other)| service::node_ports(&other.json()).collect::<Vec<_>>())
        .collect();
    service::allocate_node_ports(object, old, taken, hash(&scene.context.uid)).map_err(|error| {
        match error {
            NodePortError::Refused(error) => Status::invalid(scene.resource, name, &vec![error]),
            NodePortError::Failed(why) => Status::internal(why),
        }
    })
}

fn taken(scene: &Scene<'_>) -> BTreeSet<Ipv4Addr> {
    let services = scene.view.range(&scene.resource.table, None, None);
    services
        .filter_map(|(_, object)| object.field(scene.resource, "spec.clusterIP")?.parse().ok())
        .collect()
}

/// A free address. The search begins somewhere else each time, so that an address is not given away
/// again right after it was freed.
fn free(taken: &BTreeSet<Ipv4Addr>, seed: &str) -> Option<Ipv4Addr> {
    let (first, length) = service::SERVICE_RANGE;
    // Without the first and the last one, which stand for the network and for everybody.
    let last = (1_u32 << (32 - length)) - 2;
    let dynamic = last - STATIC_ADDRESSES;
    let start = u32::try_from(hash(seed) % u64::from(dynamic)).unwrap_or_default();
    let begin = STATIC_ADDRESSES + 1;
    let offsets = (begin + start..=last).chain(begin..begin + start).chain(1..begin);
    offsets
        .map(|offset| Ipv4Addr::from_bits(first.to_bits() + offset))
        .find(|address| !taken.contains(address))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lockstep_api::kinds::service::service_addresses;

    use super::free;

    #[test]
    fn every_address_is_given_out_once() {
        let all: BTreeSet<_> = service_addresses().collect();
        let mut taken = all.clone();
        for spare in [1, 255, 256, 257, 40_000, all.len() - 1] {
            let address = *all.iter().nth(spare).unwrap();
            taken.remove(&address);
            for seed in ["a", "b", "c"] {
                assert_eq!(free(&taken, seed), Some(address));
            }
            taken.insert(address);
        }
        assert_eq!(free(&taken, "a"), None);
    }
}
