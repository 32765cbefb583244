//! What a node may write into a Pod's status.

use std::net::{Ipv4Addr, Ipv6Addr};

use k8s_openapi::api::core::v1::{Container, ContainerRestartRule, ContainerStatus, PodStatus};
use serde::Deserialize;
use serde_json::Value;

use super::{
    annotations,
    rules::{list, qualified, text},
    view,
};
use crate::{
    field::{ErrorList, FieldError, Path},
    json,
    meta::invalid,
    names,
    strategy::Json,
};

/// Says what is wrong with a change of a Pod's status.
pub fn validate_status_update(pod: &Json, old: &Json) -> ErrorList {
    let path = Path::new("status");
    let (new, before) = match (status_view(pod, &path), status_view(old, &path)) {
        (Ok(new), Ok(before)) => (new, before),
        (Err(errors), _) | (_, Err(errors)) => return errors,
    };
    let annotations_path = Path::new("metadata").child("annotations");
    let mut errors = annotations::validate_update(
        &annotations::of(pod),
        &annotations::of(old),
        &annotations_path,
    );
    errors.extend(conditions(&new, &path.child("conditions")));
    let node = json::text(old, &["spec", "nodeName"]);
    errors.extend(nomination(&new, &before, node, &path.child("nominatedNodeName")));
    let generation = new.observed_generation.unwrap_or_default();
    if generation < 0 {
        let why = "must be a non-negative integer";
        errors.push(FieldError::invalid(&path.child("observedGeneration"), generation, why));
    }
    if text(&new.qos_class) != text(&before.qos_class) {
        let value = text(&new.qos_class);
        errors.push(FieldError::invalid(&path.child("qosClass"), value, "field is immutable"));
    }
    let lists = [
        ("containerStatuses", &new.container_statuses, &before.container_statuses),
        ("initContainerStatuses", &new.init_container_statuses, &before.init_container_statuses),
        (
            "ephemeralContainerStatuses",
            &new.ephemeral_container_statuses,
            &before.ephemeral_container_statuses,
        ),
    ];
    for (field, new, old_statuses) in lists {
        errors.extend(transitions(list(new), list(old_statuses), old, &path.child(field)));
    }
    let ips = |status: &PodStatus| -> Vec<String> {
        list(&status.pod_ips).iter().map(|ip| ip.ip.clone()).collect()
    };
    errors.extend(validate_ips(&ips(&new), &ips(&before), &path.child("podIPs")));
    errors.extend(host_ips(&new, &before, &path.child("hostIPs")));
    errors
}

fn status_view(pod: &Json, path: &Path) -> Result<PodStatus, ErrorList> {
    match pod.get("status") {
        None | Some(Value::Null) => Ok(PodStatus::default()),
        Some(status) => PodStatus::deserialize(status)
            .map_err(|error| vec![FieldError::invalid(path, "", &error.to_string())]),
    }
}

fn conditions(status: &PodStatus, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (at, condition) in list(&status.conditions).iter().enumerate() {
        let path = path.index(at);
        let generation = condition.observed_generation.unwrap_or_default();
        if generation < 0 {
            let why = "must be a non-negative integer";
            errors.push(FieldError::invalid(&path.child("observedGeneration"), generation, why));
        }
        if !matches!(&*condition.type_, "PodScheduled" | "Ready" | "Initialized") {
            errors.extend(qualified(&condition.type_, &path.child("Type")));
        }
    }
    errors
}

fn nomination(new: &PodStatus, old: &PodStatus, node: &str, path: &Path) -> ErrorList {
    let name = text(&new.nominated_node_name);
    if name.is_empty() || name == text(&old.nominated_node_name) {
        return ErrorList::new();
    }
    let mut errors = invalid(path, name, names::dns1123_subdomain(name));
    if !node.is_empty() {
        let why = "may not be set on pods that are already bound to a node";
        errors.push(FieldError::forbidden(path, why));
    }
    errors
}

/// A container that ended for good stays ended.
fn transitions(
    new: &[ContainerStatus],
    old: &[ContainerStatus],
    pod: &Json,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let revived = old.iter().enumerate().filter_map(|(at, before)| {
        let exit = before.state.as_ref()?.terminated.as_ref()?;
        let after = new.iter().find(|status| status.name == before.name)?;
        let has_ended = after.state.as_ref().is_some_and(|state| state.terminated.is_some());
        (!has_ended).then_some((at, before, exit))
    });
    let mut revived = revived.peekable();
    // Reading the spec costs more than all the rest, and is seldom needed.
    if revived.peek().is_none() {
        return errors;
    }
    let spec = match view(pod, &Path::new("spec")) {
        Ok(spec) => spec,
        Err(errors) => return errors,
    };
    let init = list(&spec.init_containers);
    let all = || init.iter().chain(&spec.containers);
    if all().any(|container| {
        list(&container.restart_policy_rules).iter().any(|r| r.action == "RestartAllContainers")
    }) {
        return errors;
    }
    for (at, before, exit) in revived {
        let container = all().find(|container| container.name == before.name);
        let policy = text(&spec.restart_policy);
        if !container.is_some_and(|it| is_restarted(it, policy, exit.exit_code)) {
            let why = "may not be transitioned to non-terminated state";
            errors.push(FieldError::forbidden(&path.index(at).child("state"), why));
        }
    }
    errors
}

/// Whether a container that ended with `exit_code` is started again in a pod with `pod_policy`.
fn is_restarted(container: &Container, pod_policy: &str, exit_code: i32) -> bool {
    let policy = match container.restart_policy.as_deref() {
        Some(own) => {
            if list(&container.restart_policy_rules).iter().any(|rule| matches(rule, exit_code)) {
                return true;
            }
            own
        }
        None => pod_policy,
    };
    match policy {
        "OnFailure" => exit_code != 0,
        "Never" => false,
        _ => true,
    }
}

fn matches(rule: &ContainerRestartRule, exit_code: i32) -> bool {
    let Some(codes) = &rule.exit_codes else { return false };
    let is_listed = list(&codes.values).contains(&exit_code);
    match codes.operator.as_str() {
        "In" => is_listed,
        "NotIn" => !is_listed,
        _ => false,
    }
}

fn validate_ips(new: &[String], old: &[String], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (at, ip) in new.iter().enumerate().filter(|(_, ip)| !old.contains(ip)) {
        errors.extend(names::validate_ip(ip, &path.index(at)));
    }
    if new.len() > 1 {
        let of_six = new.iter().filter(|ip| ip.parse::<Ipv6Addr>().is_ok()).count();
        let of_four = new.iter().filter(|ip| ip.parse::<Ipv4Addr>().is_ok()).count();
        if new.len() > 2 || of_six != 1 || of_four != 1 {
            let shown: Vec<Value> = new.iter().map(|ip| serde_json::json!({"ip": ip})).collect();
            let why = "may specify no more than one IP for each IP family";
            errors.push(FieldError::invalid(path, shown, why));
        }
    }
    errors
}

fn host_ips(new: &PodStatus, old: &PodStatus, path: &Path) -> ErrorList {
    let ips = |status: &PodStatus| -> Vec<String> {
        list(&status.host_ips).iter().map(|ip| ip.ip.clone()).collect()
    };
    let given = ips(new);
    let Some(first) = given.first() else { return ErrorList::new() };
    let mut errors = ErrorList::new();
    if first != text(&new.host_ip) {
        let path = path.index(0).child("ip");
        errors.push(FieldError::invalid(&path, first, "must be equal to `hostIP`"));
    }
    errors.extend(validate_ips(&given, &ips(old), path));
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::tests::shown, Json, validate_status_update};

    fn pod(restart: &str, status: Value) -> Json {
        json!({
            "metadata": {"name": "p"},
            "spec": {
                "nodeName": "n", "restartPolicy": restart,
                "containers": [{"name": "c", "image": "i"}],
                "initContainers": [{"name": "s", "image": "i", "restartPolicy": "Always"}],
            },
            "status": status,
        })
        .as_object()
        .unwrap()
        .clone()
    }

    fn errors(restart: &str, old: Value, new: Value) -> Vec<String> {
        shown(&validate_status_update(&pod(restart, new), &pod(restart, old)))
    }

    #[test]
    fn an_end_is_final_unless_the_policy_says_otherwise() {
        let ended = |name: &str, code: i32| json!([{"name": name, "state": {"terminated": {"exitCode": code}}}]);
        let running = |name: &str| json!([{"name": name, "state": {"running": {}}}]);
        let refused = "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state";
        let cases = [
            ("Always", 0, vec![]),
            ("OnFailure", 1, vec![]),
            ("OnFailure", 0, vec![refused]),
            ("Never", 1, vec![refused]),
        ];
        for (restart, code, want) in cases {
            let got = errors(
                restart,
                json!({"containerStatuses": ended("c", code)}),
                json!({"containerStatuses": running("c")}),
            );
            assert_eq!(got, want, "{restart} {code}");
        }
        let got = errors(
            "Never",
            json!({"initContainerStatuses": ended("s", 1)}),
            json!({"initContainerStatuses": running("s")}),
        );
        assert_eq!(got, Vec::<String>::new(), "sidecars restart");
        let got = errors("Never", json!({"containerStatuses": ended("c", 0)}), json!({}));
        assert_eq!(got, Vec::<String>::new(), "a status may be left out");
    }

    #[test]
    fn status_is_refused_in_upstream_words() {
        let cases = [
            (
                json!({"qosClass": "Guaranteed"}),
                json!({"qosClass": "Burstable"}),
                "status.qosClass: Invalid value: \"Burstable\": field is immutable",
            ),
            (
                json!({}),
                json!({"nominatedNodeName": "m"}),
                "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node",
            ),
            (
                json!({}),
                json!({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}),
                "status.podIPs: Invalid value: [{\"ip\":\"10.0.0.1\"},{\"ip\":\"10.0.0.2\"}]: may specify no more than one IP for each IP family",
            ),
            (
                json!({}),
                json!({"hostIP": "1.1.1.1", "hostIPs": [{"ip": "1.1.1.2"}]}),
                "status.hostIPs[0].ip: Invalid value: \"1.1.1.2\": must be equal to `hostIP`",
            ),
            (
                json!({}),
                json!({"conditions": [{"type": "/x", "status": "True"}]}),
                "status.conditions[0].Type: Invalid value: \"/x\": prefix part must be non-empty",
            ),
        ];
        for (old, new, want) in cases {
            assert_eq!(errors("Never", old, new), [want]);
        }
        assert_eq!(
            errors("Never", json!({}), json!({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "::2"}]})),
            Vec::<String>::new()
        );
    }
}
