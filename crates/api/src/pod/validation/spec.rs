//! The spec as a whole, in the order in which upstream looks at it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodResourceClaim, PodSpec, Volume};

use super::{
    PodKind, affinity,
    container::{self, Context},
    for_each_container, names_and_dns, resources,
    rules::{choice, dns_label, list, option, text},
    scheduling, security, volume, windows,
};
use crate::{
    field::{ErrorList, FieldError, Path},
    meta::{invalid, validate_labels},
    names,
};

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const SECONDS_MAX: i64 = i32::MAX as i64;

/// What a spec is judged by beside itself. Templates have none of it.
#[derive(Clone, Copy, Default)]
pub(super) struct Named<'a> {
    /// The pod's name.
    pub(super) name: &'a str,
    /// Whether the pod only mirrors one that a node runs on its own.
    pub(super) is_mirror: bool,
}

/// Says what is wrong with a spec.
pub(super) fn validate(spec: &PodSpec, pod: Named<'_>, path: &Path, kind: PodKind) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.termination_grace_period_seconds.is_none() {
        errors.push(FieldError::required(&path.child("terminationGracePeriodSeconds"), ""));
    }
    let volumes_path = path.child("volumes");
    let (volumes, faults) = volume::validate(list(&spec.volumes), pod.name, kind, &volumes_path);
    errors.extend(faults);
    let claims = list(&spec.resource_claims);
    if pod.is_mirror && !claims.is_empty() {
        // Upstream points at no field here, and writes that so.
        let why = "static pods do not support resource claims";
        errors.push(FieldError::forbidden(&Path::new("[]"), why));
    } else {
        errors.extend(validate_claims(claims, &path.child("resourceClaims")));
    }
    let context = context(spec, volumes);
    errors.extend(containers(spec, &context, path));
    errors.extend(resources::validate_pod(spec, &context, &path.child("resources")));
    errors.extend(host_network(spec, path, kind));
    let restart = text(&spec.restart_policy);
    errors.extend(choice(restart, &RESTART_POLICIES, &path.child("restartPolicy")));
    let dns = text(&spec.dns_policy);
    errors.extend(choice(dns, &DNS_POLICIES, &path.child("dnsPolicy")));
    let selector = spec.node_selector.iter().flatten().map(|(k, v)| (k.as_str(), v.as_str()));
    errors.extend(validate_labels(selector, &path.child("nodeSelector")));
    errors.extend(security::validate_pod(spec, &path.child("securityContext")));
    if let Some(affinity) = &spec.affinity {
        errors.extend(affinity::validate(affinity, &path.child("affinity")));
    }
    let dns_path = path.child("dnsConfig");
    errors.extend(names_and_dns::validate_dns(spec.dns_config.as_ref(), dns, &dns_path));
    let gates = list(&spec.readiness_gates);
    errors.extend(scheduling::validate_readiness_gates(gates, &path.child("readinessGates")));
    let gates = list(&spec.scheduling_gates);
    errors.extend(scheduling::validate_gates(gates, &path.child("schedulingGates")));
    let spread = list(&spec.topology_spread_constraints);
    errors.extend(scheduling::validate_spread(spread, &path.child("topologySpreadConstraints")));
    errors.extend(windows::validate_host_process(spec, path));
    errors.extend(host_users(spec, path));
    errors.extend(names_and_dns::validate_override(spec, path));
    errors.extend(scalars(spec, path));
    errors.extend(operating_system(spec, path));
    errors.extend(file_key_volumes(spec, path));
    errors
}

fn context<'a>(spec: &'a PodSpec, volumes: BTreeMap<&'a str, &'a Volume>) -> Context<'a> {
    let claims = list(&spec.resource_claims).iter().map(|claim| claim.name.as_str());
    Context {
        volumes,
        claims: claims.filter(|name| !name.is_empty()).collect(),
        grace: spec.termination_grace_period_seconds,
        restart_policy: text(&spec.restart_policy),
        os: spec.os.as_ref().map(|os| os.name.as_str()),
        has_host_users: spec.host_users.unwrap_or(true),
    }
}

fn containers(spec: &PodSpec, context: &Context<'_>, path: &Path) -> ErrorList {
    let mut errors = container::validate(&spec.containers, context, &path.child("containers"));
    let init = list(&spec.init_containers);
    let init_path = path.child("initContainers");
    errors.extend(container::validate_init(init, &spec.containers, context, &init_path));
    let others: BTreeSet<&str> =
        spec.containers.iter().chain(init).map(|it| it.name.as_str()).collect();
    errors.extend(container::validate_ephemeral(
        list(&spec.ephemeral_containers),
        &others,
        context,
        &path.child("ephemeralContainers"),
    ));
    errors
}

fn validate_claims(claims: &[PodResourceClaim], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (at, claim) in claims.iter().enumerate() {
        let path = path.index(at);
        let name_path = path.child("name");
        if claim.name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        } else if seen.contains(&claim.name) {
            errors.push(FieldError::duplicate(&name_path, &claim.name));
        } else {
            errors.extend(dns_label(&claim.name, &name_path));
            seen.insert(&claim.name);
        }
        let (own, template) = (&claim.resource_claim_name, &claim.resource_claim_template_name);
        if own.is_some() && template.is_some() {
            let why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be \
                       specified";
            errors.push(FieldError::invalid(&path, claim, why));
        }
        if own.is_none() && template.is_none() {
            let why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
            errors.push(FieldError::invalid(&path, claim, why));
        }
        for (field, name) in [("resourceClaimName", own), ("resourceClaimTemplateName", template)] {
            if let Some(name) = name {
                errors.extend(invalid(&path.child(field), name, names::dns1123_subdomain(name)));
            }
        }
    }
    errors
}

/// On the host's network a port cannot be mapped. Templates may leave the host's port out: it is
/// filled in when the pod is made.
fn host_network(spec: &PodSpec, path: &Path, kind: PodKind) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.host_network != Some(true) {
        return errors;
    }
    for (at, container) in spec.containers.iter().enumerate() {
        for (n, port) in list(&container.ports).iter().enumerate() {
            let host = port.host_port.unwrap_or_default();
            if (kind == PodKind::Pod || host != 0) && host != port.container_port {
                let path = path.child("containers").index(at).child("ports").index(n);
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&path.child("hostPort"), host, why));
            }
        }
    }
    errors
}

fn host_users(spec: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.host_users != Some(false) {
        return errors;
    }
    let why = "when `hostUsers` is false";
    // Two of the names start with a capital, as upstream has it.
    let shared = [
        ("hostNetwork", spec.host_network),
        ("HostPID", spec.host_pid),
        ("HostIPC", spec.host_ipc),
    ];
    for (field, is_shared) in shared {
        if is_shared == Some(true) {
            errors.push(FieldError::forbidden(&path.child(field), why));
        }
    }
    for_each_container(spec, path, |container, path| {
        if !list(&container.volume_devices).is_empty() {
            errors.push(FieldError::forbidden(&path.child("volumeDevices"), why));
        }
    });
    errors
}

fn scalars(spec: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let subdomain = |field: &str, name: &str| {
        if name.is_empty() {
            return ErrorList::new();
        }
        invalid(&path.child(field), name, names::dns1123_subdomain(name))
    };
    errors.extend(subdomain("serviceAccountName", text(&spec.service_account_name)));
    errors.extend(subdomain("nodeName", text(&spec.node_name)));
    if let Some(seconds) = spec.active_deadline_seconds {
        for fault in names::in_range(seconds, 1, SECONDS_MAX) {
            let path = path.child("activeDeadlineSeconds");
            errors.push(FieldError::invalid(&path, seconds, &fault));
        }
    }
    errors.extend(names_and_dns::validate_hostname(spec, path));
    let tolerations = list(&spec.tolerations);
    errors.extend(scheduling::validate_tolerations(tolerations, &path.child("tolerations")));
    let aliases = list(&spec.host_aliases);
    errors.extend(names_and_dns::validate_aliases(aliases, &path.child("hostAliases")));
    errors.extend(subdomain("priorityClassName", text(&spec.priority_class_name)));
    if let Some(name) = &spec.runtime_class_name {
        let faults = names::dns1123_subdomain(name);
        errors.extend(invalid(&path.child("runtimeClassName"), name, faults));
    }
    if let Some(policy) = &spec.preemption_policy {
        let policies = ["PreemptLowerPriority", "Never"];
        errors.extend(choice(policy, &policies, &path.child("preemptionPolicy")));
    }
    if let Some(overhead) = &spec.overhead {
        errors.extend(resources::validate_overhead(overhead, &path.child("overhead")));
    }
    errors
}

fn operating_system(spec: &PodSpec, path: &Path) -> ErrorList {
    let Some(os) = &spec.os else { return ErrorList::new() };
    match os.name.as_str() {
        "linux" => windows::validate_linux(spec, path),
        "windows" => windows::validate_windows(spec, path),
        "" => vec![FieldError::required(&path.child("os").child("name"), "")],
        other => option(other, &["linux", "windows"], &path.child("os")).into_iter().collect(),
    }
}

/// Files with variables are written by the pod itself, so they lie in a directory of its own.
fn file_key_volumes(spec: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for_each_container(spec, path, |container, path| {
        for (at, variable) in list(&container.env).iter().enumerate() {
            let source = variable.value_from.as_ref().and_then(|it| it.file_key_ref.as_ref());
            let Some(source) = source else { continue };
            let name = &source.volume_name;
            let path = path.child("env").index(at).child("valueFrom").child("fileKeyRef");
            let path = path.child("volumeName");
            match list(&spec.volumes).iter().rev().find(|volume| volume.name == *name) {
                None => errors.push(FieldError::not_found(&path, name)),
                Some(volume) if volume.empty_dir.is_none() => {
                    let why = "referenced volume must be of type emptyDir";
                    errors.push(FieldError::invalid(&path, name, why));
                }
                Some(_) => {}
            }
        }
    });
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{assert_spec, assert_template, check};

    #[test]
    fn single_fields_are_refused_in_upstream_words() {
        let cases = [
            (
                json!({"restartPolicy": "Sometimes"}),
                "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
            ),
            (
                json!({"activeDeadlineSeconds": 0}),
                "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
            ),
            (
                json!({"preemptionPolicy": "Maybe"}),
                "spec.preemptionPolicy: Unsupported value: \"Maybe\": supported values: \"PreemptLowerPriority\", \"Never\"",
            ),
            (json!({"os": {"name": ""}}), "spec.os.name: Required value"),
            (
                json!({"nodeSelector": {"/a": "b"}}),
                "spec.nodeSelector: Invalid value: \"/a\": prefix part must be non-empty",
            ),
            (
                json!({"nodeName": "n", "schedulingGates": [{"name": "g"}]}),
                "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
            ),
            (
                json!({"hostUsers": false, "hostNetwork": true}),
                "spec.hostNetwork: Forbidden: when `hostUsers` is false",
            ),
        ];
        for (extra, want) in cases {
            check(extra, &[want]);
        }
        check(
            json!({"runtimeClassName": "a", "priorityClassName": "b", "serviceAccountName": "c"}),
            &[],
        );
    }

    #[test]
    fn files_with_variables_lie_in_an_empty_dir() {
        let variable = |volume: &str| json!([{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": volume, "path": "p", "key": "K"}}}]);
        let spec = |volume: &str| {
            json!({
                "volumes": [{"name": "e", "emptyDir": {}}, {"name": "h", "hostPath": {"path": "/x"}}],
                "containers": [{"name": "c", "image": "i", "env": variable(volume)}],
            })
        };
        assert_spec(spec("e"), &[]);
        assert_spec(
            spec("x"),
            &["spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Not found: \"x\""],
        );
        assert_spec(
            spec("h"),
            &[
                "spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Invalid value: \"h\": referenced volume must be of type emptyDir",
            ],
        );
    }

    #[test]
    fn templates_are_laxer_about_what_is_filled_in_later() {
        assert_template(
            json!({
                "hostNetwork": true,
                "containers": [{"name": "c", "image": " i", "ports": [{"containerPort": 80}]}],
                "volumes": [{"name": "v", "image": {}}],
            }),
            &[],
        );
        assert_template(
            json!({
                "containers": [{"name": "c", "image": "i"}],
                "ephemeralContainers": [{"name": "e", "image": "i"}],
            }),
            &[
                "spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template",
            ],
        );
    }
}
