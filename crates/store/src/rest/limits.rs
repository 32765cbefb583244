//! What the LimitRanges of a namespace make of new pods and of claims.

use lockstep_api::{
    Status, json,
    kinds::limit_range::{claim_faults, fill_pod, pod_faults},
    strategy::Json,
};

use super::Scene;

/// Gives a new pod what it does not mention and a range has something for.
pub(super) fn fill(scene: &Scene<'_>, object: &mut Json) {
    if is(scene, "pods") {
        for range in ranges(scene) {
            fill_pod(&range, object);
        }
    }
}

/// Refuses a pod or a claim that asks for less or more than it may. Pods are looked at when they
/// are new: what they ask for cannot change.
pub(super) fn check(
    scene: &Scene<'_>,
    object: &Json,
    old: Option<&Json>,
    name: &str,
) -> Result<(), Status> {
    let is_ending = |old: &Json| {
        json::at(old, &["metadata", "deletionTimestamp"]).is_some_and(|at| !at.is_null())
    };
    let faults: fn(&Json, &Json) -> Vec<String> = match old {
        None if is(scene, "pods") => pod_faults,
        old if is(scene, "persistentvolumeclaims") && !old.is_some_and(is_ending) => claim_faults,
        _ => return Ok(()),
    };
    for range in ranges(scene) {
        if let Some(why) = listed(faults(&range, object)) {
            return Err(Status::forbidden(scene.resource, name, &why));
        }
    }
    Ok(())
}

fn is(scene: &Scene<'_>, plural: &str) -> bool {
    scene.resource.group.is_empty() && scene.resource.plural == plural
}

/// The ranges of the namespace, in the order of their names.
fn ranges(scene: &Scene<'_>) -> impl Iterator<Item = Json> {
    let kind = scene.catalog.registry().get("", "v1", "limitranges");
    kind.into_iter().flat_map(|kind| {
        let found = scene.view.range(&kind.table, Some(scene.namespace), None);
        found.map(|(_, range)| range.json())
    })
}

/// Faults as upstream joins errors: each is said once.
fn listed(faults: Vec<String>) -> Option<String> {
    let mut said: Vec<String> = Vec::with_capacity(faults.len());
    for fault in faults {
        if !said.contains(&fault) {
            said.push(fault);
        }
    }
    match said.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::World;

    fn pod(resources: &Value) -> Value {
        json!({
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "i:1", "resources": resources}]},
        })
    }

    fn world(item: &Value) -> World {
        let mut world = World::new();
        let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [item]}});
        world.create("limitranges", "n", range).unwrap();
        world
    }

    #[test]
    fn a_pod_gets_what_its_namespace_has_for_it() {
        let mut world = world(&json!({"type": "Container", "max": {"cpu": "2", "memory": "1Gi"}}));
        let created = world.create("pods", "n", pod(&json!({}))).unwrap().json();
        let resources = json!({"limits": {"cpu": "2", "memory": "1Gi"},
            "requests": {"cpu": "2", "memory": "1Gi"}});
        assert_eq!(created["spec"]["containers"][0]["resources"], resources);
        assert_eq!(created["status"]["qosClass"], "Guaranteed", "the class is that of the result");
        assert_eq!(
            created["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
            "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for \
             container c"
        );
    }

    #[test]
    fn a_pod_that_asks_for_too_much_is_refused_with_all_reasons() {
        let mut world = world(&json!({"type": "Container", "min": {"cpu": "1"},
            "max": {"cpu": "2", "memory": "1Gi"}}));
        let cases = [
            (
                json!({"limits": {"cpu": "3", "memory": "2Gi"}}),
                "pods \"p\" is forbidden: [maximum cpu usage per Container is 2, but limit is 3, \
                 maximum memory usage per Container is 1Gi, but limit is 2Gi]",
            ),
            (
                json!({"limits": {"cpu": "500m"}}),
                "pods \"p\" is forbidden: minimum cpu usage per Container is 1, but request is \
                 500m",
            ),
        ];
        for (resources, want) in cases {
            let status = world.create("pods", "n", pod(&resources)).unwrap_err();
            assert_eq!((status.code, status.message.as_str()), (403, want));
        }
        assert!(world.get("pods", "n/p").is_none());
    }

    #[test]
    fn claims_are_held_to_their_bounds_also_when_they_grow() {
        let mut world = world(&json!({"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}}));
        let claim = |size: &str| {
            json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size}}}})
        };
        let too_large = world.create("persistentvolumeclaims", "n", claim("3Gi")).unwrap_err();
        assert_eq!(
            too_large.message,
            "persistentvolumeclaims \"c\" is forbidden: maximum storage usage per \
             PersistentVolumeClaim is 2Gi, but request is 3Gi"
        );
        let mut made = world.create("persistentvolumeclaims", "n", claim("1Gi")).unwrap().json();
        made.insert("status".to_owned(), json!({"phase": "Bound"}));
        let path = Some("status");
        world.update("persistentvolumeclaims", path, ("n", "c"), made).unwrap();
        let mut grown = world.get("persistentvolumeclaims", "n/c").unwrap();
        grown["spec"]["resources"]["requests"]["storage"] = json!("4Gi");
        let status = world.update("persistentvolumeclaims", None, ("n", "c"), grown).unwrap_err();
        assert_eq!(status.code, 403, "{}", status.message);
    }

    #[test]
    fn other_namespaces_are_left_alone() {
        let mut world = world(&json!({"type": "Container", "max": {"cpu": "2"}}));
        world.create("namespaces", "", json!({"metadata": {"name": "m"}})).unwrap();
        let created = world.create("pods", "m", pod(&json!({}))).unwrap().json();
        assert_eq!(created["spec"]["containers"][0]["resources"], json!({}));
    }

    #[test]
    fn a_range_without_a_name_gets_one() {
        let mut world = World::new();
        let made = world.create("limitranges", "n", json!({"spec": {"limits": []}})).unwrap();
        assert_eq!(made.meta.name.len(), 36);
    }
}
