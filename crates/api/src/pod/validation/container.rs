//! Containers of all three kinds.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, EphemeralContainer, Volume};

use super::{
    env, mounts, ports, probe, resources, restart,
    rules::{choice, list, required, required_label, text},
    security,
};
use crate::field::{ErrorList, FieldError, Path};

const SIDECARS_ONLY: &str = "may not be set for init containers without restartPolicy=Always";
const NOT_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";

/// What a container is judged by beside itself.
pub(super) struct Context<'a> {
    /// The volumes that are sound, by name.
    pub(super) volumes: BTreeMap<&'a str, &'a Volume>,
    /// The names of the pod's resource claims.
    pub(super) claims: BTreeSet<&'a str>,
    /// The pod's grace period.
    pub(super) grace: Option<i64>,
    /// The pod's restart policy.
    pub(super) restart_policy: &'a str,
    /// The operating system, when the pod names one.
    pub(super) os: Option<&'a str>,
    /// Whether users in the pod are those of the host.
    pub(super) has_host_users: bool,
}

/// Says what is wrong with `containers`.
pub(super) fn validate(containers: &[Container], context: &Context<'_>, path: &Path) -> ErrorList {
    if containers.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = ErrorList::new();
    let mut names = BTreeSet::new();
    for (at, container) in containers.iter().enumerate() {
        let path = path.index(at);
        errors.extend(common(container, context, &path));
        if !names.insert(container.name.as_str()) {
            errors.push(FieldError::duplicate(&path.child("name"), &container.name));
        }
        errors.extend(lifecycle_and_probes(container, context, &path));
        errors.extend(restart::validate(container, &path));
    }
    errors.extend(ports::host_conflicts(containers, path));
    errors
}

/// Says what is wrong with `initContainers`.
pub(super) fn validate_init(
    containers: &[Container],
    regular: &[Container],
    context: &Context<'_>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut names: BTreeSet<&str> = regular.iter().map(|c| c.name.as_str()).collect();
    for (at, container) in containers.iter().enumerate() {
        let item = path.index(at);
        errors.extend(common(container, context, &item));
        errors.extend(restart::validate_init(container, &item));
        let name = container.name.as_str();
        if names.contains(name) {
            errors.push(FieldError::duplicate(&item.child("name"), name));
        } else if !name.is_empty() {
            names.insert(name);
        }
        errors.extend(ports::host_conflicts([container], path));
        if container.restart_policy.as_deref() == Some("Always") {
            errors.extend(lifecycle_and_probes(container, context, &item));
            continue;
        }
        let unfit = [
            ("lifecycle", container.lifecycle.is_some()),
            ("livenessProbe", container.liveness_probe.is_some()),
            ("readinessProbe", container.readiness_probe.is_some()),
            ("startupProbe", container.startup_probe.is_some()),
        ];
        for (field, is_set) in unfit {
            if is_set {
                errors.push(FieldError::forbidden(&item.child(field), SIDECARS_ONLY));
            }
        }
        for (n, policy) in list(&container.resize_policy).iter().enumerate() {
            if policy.restart_policy == "RestartContainer" {
                let path = item.child("resizePolicy").index(n).child("restartPolicy");
                let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                errors.push(FieldError::invalid(&path, &policy.restart_policy, why));
            }
        }
    }
    errors
}

/// Says what is wrong with `ephemeralContainers`.
pub(super) fn validate_ephemeral(
    containers: &[EphemeralContainer],
    others: &BTreeSet<&str>,
    context: &Context<'_>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut names = others.clone();
    for (at, ephemeral) in containers.iter().enumerate() {
        let path = path.index(at);
        let container = as_container(ephemeral);
        errors.extend(common(&container, context, &path));
        errors.extend(only_for_pod(&container, &path));
        if !names.insert(&ephemeral.name) {
            errors.push(FieldError::duplicate(&path.child("name"), &ephemeral.name));
        }
        let target = text(&ephemeral.target_container_name);
        if !target.is_empty() && !others.contains(target) {
            errors.push(FieldError::not_found(&path.child("targetContainerName"), target));
        }
        errors.extend(unfit_for_ephemeral(&container, &path));
        for (n, mount) in list(&container.volume_mounts).iter().enumerate() {
            let path = path.child("volumeMounts").index(n);
            for (field, value) in
                [("subPath", &mount.sub_path), ("subPathExpr", &mount.sub_path_expr)]
            {
                if !text(value).is_empty() {
                    errors.push(FieldError::forbidden(&path.child(field), NOT_EPHEMERAL));
                }
            }
        }
    }
    errors
}

/// What only Pods refuse: templates once let it through, and old ones must still be accepted.
pub(super) fn only_for_pod(container: &Container, path: &Path) -> Option<FieldError> {
    let image = text(&container.image);
    (image.trim() != image).then(|| {
        let why = "must not have leading or trailing whitespace";
        FieldError::invalid(&path.child("image"), image, why)
    })
}

/// An ephemeral container seen as any other.
pub(super) fn as_container(ephemeral: &EphemeralContainer) -> Container {
    let it = ephemeral.clone();
    Container {
        args: it.args,
        command: it.command,
        env: it.env,
        env_from: it.env_from,
        image: it.image,
        image_pull_policy: it.image_pull_policy,
        lifecycle: it.lifecycle,
        liveness_probe: it.liveness_probe,
        name: it.name,
        ports: it.ports,
        readiness_probe: it.readiness_probe,
        resize_policy: it.resize_policy,
        resources: it.resources,
        restart_policy: it.restart_policy,
        restart_policy_rules: it.restart_policy_rules,
        security_context: it.security_context,
        startup_probe: it.startup_probe,
        stdin: it.stdin,
        stdin_once: it.stdin_once,
        termination_message_path: it.termination_message_path,
        termination_message_policy: it.termination_message_policy,
        tty: it.tty,
        volume_devices: it.volume_devices,
        volume_mounts: it.volume_mounts,
        working_dir: it.working_dir,
    }
}

fn common(container: &Container, context: &Context<'_>, path: &Path) -> ErrorList {
    const MESSAGES: [&str; 2] = ["File", "FallbackToLogsOnError"];
    const PULLS: [&str; 3] = ["Always", "IfNotPresent", "Never"];
    let mut errors = required_label(&container.name, &path.child("name"));
    errors.extend(required(text(&container.image), &path.child("image")));
    let policy = text(&container.termination_message_policy);
    errors.extend(choice(policy, &MESSAGES, &path.child("terminationMessagePolicy")));
    errors.extend(ports::validate(list(&container.ports), &path.child("ports")));
    errors.extend(env::validate(list(&container.env), &path.child("env")));
    errors.extend(env::validate_from(list(&container.env_from), &path.child("envFrom")));
    errors.extend(mounts::validate(container, context, &path.child("volumeMounts")));
    errors.extend(mounts::validate_devices(
        list(&container.volume_devices),
        list(&container.volume_mounts),
        context,
        &path.child("volumeDevices"),
    ));
    let pull = text(&container.image_pull_policy);
    errors.extend(choice(pull, &PULLS, &path.child("imagePullPolicy")));
    if let Some(wanted) = &container.resources {
        let path = path.child("resources");
        errors.extend(resources::validate(wanted, resources::Owner::Container, context, &path));
    }
    errors.extend(restart::validate_resize(
        list(&container.resize_policy),
        context.restart_policy,
        &path.child("resizePolicy"),
    ));
    if let Some(security) = &container.security_context {
        let path = path.child("securityContext");
        errors.extend(security::validate(security, context.has_host_users, &path));
    }
    errors
}

fn lifecycle_and_probes(container: &Container, context: &Context<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(lifecycle) = &container.lifecycle {
        errors.extend(probe::validate_lifecycle(lifecycle, context, &path.child("lifecycle")));
    }
    let (live, ready, start) =
        (&container.liveness_probe, &container.readiness_probe, &container.startup_probe);
    let grace = context.grace;
    errors.extend(probe::validate_single(live.as_ref(), grace, &path.child("livenessProbe")));
    errors.extend(probe::validate_readiness(ready.as_ref(), grace, &path.child("readinessProbe")));
    errors.extend(probe::validate_single(start.as_ref(), grace, &path.child("startupProbe")));
    errors
}

/// What is started into a running pod cannot ask for anything the pod was not planned with.
fn unfit_for_ephemeral(container: &Container, path: &Path) -> ErrorList {
    let has_resources = container
        .resources
        .as_ref()
        .is_some_and(|it| it.limits.is_some() || it.requests.is_some() || it.claims.is_some());
    let unfit = [
        ("ports", container.ports.is_some()),
        ("resources", has_resources),
        ("resizePolicy", container.resize_policy.is_some()),
        ("restartPolicy", container.restart_policy.is_some()),
        ("restartPolicyRules", container.restart_policy_rules.is_some()),
        ("livenessProbe", container.liveness_probe.is_some()),
        ("readinessProbe", container.readiness_probe.is_some()),
        ("startupProbe", container.startup_probe.is_some()),
        ("lifecycle", container.lifecycle.is_some()),
    ];
    let set = unfit.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(field, _)| FieldError::forbidden(&path.child(field), NOT_EPHEMERAL)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{assert_container, assert_spec};

    #[test]
    fn containers_need_a_name_and_an_image() {
        assert_spec(json!({}), &["spec.containers: Required value"]);
        assert_spec(
            json!({"containers": [{"name": "a", "image": "i"}, {"name": "a", "image": ""}, {"name": "A_", "image": " i"}]}),
            &[
                "spec.containers[1].image: Required value",
                "spec.containers[1].name: Duplicate value: \"a\"",
                "spec.containers[2].name: Invalid value: \"A_\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                "spec.containers[2].image: Invalid value: \" i\": must not have leading or trailing whitespace",
            ],
        );
        assert_container(
            json!({"imagePullPolicy": "Sometimes", "terminationMessagePolicy": "Log"}),
            &[
                "spec.containers[0].terminationMessagePolicy: Unsupported value: \"Log\": supported values: \"File\", \"FallbackToLogsOnError\"",
                "spec.containers[0].imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"IfNotPresent\", \"Never\"",
            ],
        );
    }

    fn with_init(init: Value, want: &[&str]) {
        let mut init = init;
        init["image"] = json!("i");
        assert_spec(
            json!({"initContainers": [init], "containers": [{"name": "c", "image": "i"}]}),
            want,
        );
    }

    #[test]
    fn init_containers_end_unless_they_are_sidecars() {
        with_init(json!({"name": "c"}), &["spec.initContainers[0].name: Duplicate value: \"c\""]);
        with_init(
            json!({"name": "i", "livenessProbe": {"exec": {"command": ["x"]}}, "lifecycle": {}}),
            &[
                "spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always",
                "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
            ],
        );
        with_init(
            json!({"name": "i", "restartPolicy": "Always", "livenessProbe": {"exec": {"command": ["x"]}}}),
            &[],
        );
        with_init(
            json!({"name": "i", "restartPolicy": "Maybe"}),
            &[
                "spec.initContainers[0].restartPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", \"Never\", \"OnFailure\"",
            ],
        );
    }

    #[test]
    fn ephemeral_containers_come_later() {
        assert_spec(
            json!({
                "containers": [{"name": "c", "image": "i"}],
                "ephemeralContainers": [{"name": "e", "image": "i", "targetContainerName": "x", "ports": [{"containerPort": 1}]}],
            }),
            &[
                "spec.ephemeralContainers[0].targetContainerName: Not found: \"x\"",
                "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
                "spec.ephemeralContainers: Forbidden: cannot be set on create",
            ],
        );
    }
}
