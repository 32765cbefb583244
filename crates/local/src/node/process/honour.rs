//! What pods ask for that a process of this machine cannot give them.

use k8s_openapi::api::core::v1::{Container, Pod, SeccompProfile};

use super::credentials::{Rights, Wanted};

/// The fields of `container` and its pod that have no effect here.
pub(super) fn ignored(pod: &Pod, container: &Container, rights: &Rights) -> Vec<String> {
    let security = container.security_context.clone().unwrap_or_default();
    let spec = pod.spec.clone().unwrap_or_default();
    let of_pod = spec.security_context.clone().unwrap_or_default();
    let adds = security.capabilities.as_ref().and_then(|it| it.add.as_ref());
    let seccomp = security.seccomp_profile.as_ref().or(of_pod.seccomp_profile.as_ref());
    let is_confined = |profile: &SeccompProfile| profile.type_ != "Unconfined";
    let plain = [
        (security.privileged == Some(true), "securityContext.privileged"),
        (adds.is_some_and(|list| !list.is_empty()), "securityContext.capabilities.add"),
        (
            security.read_only_root_filesystem == Some(true),
            "securityContext.readOnlyRootFilesystem",
        ),
        (seccomp.is_some_and(is_confined), "securityContext.seccompProfile"),
        (
            security.app_armor_profile.is_some() || of_pod.app_armor_profile.is_some(),
            "securityContext.appArmorProfile",
        ),
        (
            security.se_linux_options.is_some() || of_pod.se_linux_options.is_some(),
            "securityContext.seLinuxOptions",
        ),
        (of_pod.sysctls.is_some_and(|list| !list.is_empty()), "securityContext.sysctls"),
        (spec.host_users == Some(false), "hostUsers"),
        (container.volume_devices.as_ref().is_some_and(|it| !it.is_empty()), "volumeDevices"),
        (spec.runtime_class_name.is_some(), "runtimeClassName"),
        (spec.dns_config.is_some(), "dnsConfig"),
    ];
    let plain = plain.into_iter().filter_map(|(is_asked, field)| is_asked.then_some(field));
    plain.map(str::to_owned).chain(beyond(&Wanted::of(pod, container), rights)).collect()
}

/// What only a process with more rights could give.
fn beyond(wanted: &Wanted, rights: &Rights) -> Vec<String> {
    let mut fields = Vec::new();
    if wanted.user.is_some_and(|user| !rights.may_be_user(user)) {
        fields.push("securityContext.runAsUser (only root can run as another user)".to_owned());
    }
    let other = |group: &u32| !rights.may_have_group(*group);
    if wanted.group.as_ref().is_some_and(other) {
        fields.push("securityContext.runAsGroup (only root can run as another group)".to_owned());
    }
    for (field, groups) in
        [("fsGroup", wanted.fs_group.as_slice()), ("supplementalGroups", wanted.groups.as_slice())]
    {
        for group in groups.iter().filter(|group| other(group)) {
            fields.push(format!("securityContext.{field} (this user is not in group {group})"));
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_asked_for_and_not_given_is_named() {
        let others = json!({"securityContext": {"runAsUser": 5, "fsGroup": 7,
            "supplementalGroups": [1000, 8]}});
        let cases = [
            (json!({}), json!({}), 0, vec![]),
            (json!({"securityContext": {"privileged": false}}), json!({}), 0, vec![]),
            (
                json!({"securityContext": {"privileged": true, "capabilities": {"add": ["X"]}}}),
                json!({}),
                0,
                vec!["securityContext.privileged", "securityContext.capabilities.add"],
            ),
            (
                json!({"tty": true, "securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
                json!({"runtimeClassName": "x"}),
                0,
                vec!["runtimeClassName"],
            ),
            (json!({}), others.clone(), 0, vec![]),
            (
                json!({}),
                others,
                1000,
                vec![
                    "securityContext.runAsUser (only root can run as another user)",
                    "securityContext.fsGroup (this user is not in group 7)",
                    "securityContext.supplementalGroups (this user is not in group 8)",
                ],
            ),
        ];
        for (container, spec, user, want) in cases {
            let mut container = container;
            container["name"] = json!("c");
            let mut spec = spec;
            spec["containers"] = json!([container]);
            let pod: Pod = serde_json::from_value(json!({"spec": spec})).unwrap();
            let container = &pod.spec.as_ref().unwrap().containers[0];
            let rights = Rights { user, groups: vec![user] };
            assert_eq!(ignored(&pod, container, &rights), want, "{container:?}");
        }
    }
}
