//! What containers get that say nothing about a resource.

use serde_json::Value;

use super::{ANNOTATION, items};
use crate::{json::object_mut, strategy::Json};

/// Gives the containers of a pod what the range has for those that say nothing, and writes down
/// what that was.
pub fn fill_pod(range: &Json, pod: &mut Json) {
    let (mut limits, mut requests) = (Json::new(), Json::new());
    for item in items(range, "Container") {
        let listed = |field: &str| item[field].as_object().cloned().into_iter().flatten();
        limits.extend(listed("default"));
        requests.extend(listed("defaultRequest"));
    }
    let mut notes = Vec::new();
    for (list, what) in [("containers", "container"), ("initContainers", "init container")] {
        let containers = pod.get_mut("spec").and_then(|spec| spec.get_mut(list));
        let containers = containers.and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let set_limits = fill(container, "limits", &limits);
            let set_requests = fill(container, "requests", &requests);
            for (set, field) in [(set_requests, "request"), (set_limits, "limit")] {
                if !set.is_empty() {
                    notes.push(format!("{} {field} for {what} {name}", set.join(", ")));
                }
            }
        }
    }
    if notes.is_empty() {
        return;
    }
    let note = format!("LimitRanger plugin set: {}", notes.join("; "));
    let annotations = object_mut(object_mut(pod, "metadata"), "annotations");
    annotations.insert(ANNOTATION.to_owned(), note.into());
}

/// Fills one list of a container and names what was missing, in order.
fn fill(container: &mut Json, field: &str, defaults: &Json) -> Vec<String> {
    let has = |name: &str| {
        let listed = container.get("resources").and_then(|resources| resources.get(field));
        listed.is_some_and(|listed| listed.get(name).is_some())
    };
    let mut missing: Vec<String> =
        defaults.keys().filter(|name| !has(name)).map(ToOwned::to_owned).collect();
    missing.sort();
    if missing.is_empty() {
        return missing;
    }
    let listed = object_mut(object_mut(container, "resources"), field);
    for name in &missing {
        listed.insert(name.clone(), defaults[name].clone());
    }
    missing
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn containers_get_what_they_do_not_mention() {
        let range = json!({"spec": {"limits": [
            {"type": "Pod", "max": {"cpu": "9"}},
            {"type": "Container", "default": {"cpu": "2", "memory": "1Gi"},
                "defaultRequest": {"cpu": "1", "memory": "1Gi"}},
        ]}});
        let range = range.as_object().unwrap();
        let pod = json!({"metadata": {"name": "p"}, "spec": {
            "containers": [
                {"name": "a"},
                {"name": "b", "resources": {"limits": {"cpu": "5"}, "requests": {"cpu": "5",
                    "memory": "1Mi"}}},
            ],
            "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "3"}}}],
        }});
        let mut pod = pod.as_object().unwrap().clone();
        fill_pod(range, &mut pod);
        assert_eq!(
            pod["spec"]["containers"][0]["resources"],
            json!({"limits": {"cpu": "2", "memory": "1Gi"},
                "requests": {"cpu": "1", "memory": "1Gi"}})
        );
        assert_eq!(
            pod["spec"]["containers"][1]["resources"],
            json!({"limits": {"cpu": "5", "memory": "1Gi"},
                "requests": {"cpu": "5", "memory": "1Mi"}})
        );
        assert_eq!(
            pod["metadata"]["annotations"][ANNOTATION],
            "LimitRanger plugin set: cpu, memory request for container a; cpu, memory limit for \
             container a; memory limit for container b; memory request for init container i; \
             cpu, memory limit for init container i"
        );
        let before = pod.clone();
        fill_pod(range, &mut pod);
        assert_eq!(pod, before, "who has everything gets nothing");
    }

    #[test]
    fn a_range_without_defaults_leaves_pods_alone() {
        let range = json!({"spec": {"limits": [{"type": "Pod", "max": {"cpu": "9"}}]}});
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}});
        let mut filled = pod.as_object().unwrap().clone();
        fill_pod(range.as_object().unwrap(), &mut filled);
        assert_eq!(Value::from(filled), pod);
    }
}
