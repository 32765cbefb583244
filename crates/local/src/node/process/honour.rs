//! What pods ask for that a process of this machine cannot give them.

use k8s_openapi::api::core::v1::{Container, Pod};

/// The fields of `container` and its pod that have no effect here.
pub(super) fn ignored(pod: &Pod, container: &Container) -> Vec<&'static str> {
    let security = container.security_context.clone().unwrap_or_default();
    let spec = pod.spec.clone().unwrap_or_default();
    let of_pod = spec.security_context.clone().unwrap_or_default();
    let adds = security.capabilities.as_ref().and_then(|it| it.add.as_ref());
    [
        (security.privileged == Some(true), "securityContext.privileged"),
        (adds.is_some_and(|list| !list.is_empty()), "securityContext.capabilities.add"),
        (
            security.read_only_root_filesystem == Some(true),
            "securityContext.readOnlyRootFilesystem",
        ),
        (
            security.seccomp_profile.is_some() || of_pod.seccomp_profile.is_some(),
            "securityContext.seccompProfile",
        ),
        (
            security.app_armor_profile.is_some() || of_pod.app_armor_profile.is_some(),
            "securityContext.appArmorProfile",
        ),
        (
            security.se_linux_options.is_some() || of_pod.se_linux_options.is_some(),
            "securityContext.seLinuxOptions",
        ),
        (of_pod.sysctls.is_some_and(|list| !list.is_empty()), "securityContext.sysctls"),
        (container.volume_devices.as_ref().is_some_and(|it| !it.is_empty()), "volumeDevices"),
        (container.tty == Some(true), "tty"),
        (spec.runtime_class_name.is_some(), "runtimeClassName"),
        (spec.dns_config.is_some(), "dnsConfig"),
        (spec.host_aliases.is_some_and(|list| !list.is_empty()), "hostAliases"),
    ]
    .into_iter()
    .filter_map(|(is_asked, field)| is_asked.then_some(field))
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_asked_for_is_named() {
        let cases = [
            (json!({}), json!({}), vec![]),
            (json!({"securityContext": {"privileged": false}}), json!({}), vec![]),
            (
                json!({"securityContext": {"privileged": true, "capabilities": {"add": ["X"]}}}),
                json!({}),
                vec!["securityContext.privileged", "securityContext.capabilities.add"],
            ),
            (
                json!({"tty": true}),
                json!({"runtimeClassName": "x"}),
                vec!["tty", "runtimeClassName"],
            ),
        ];
        for (container, spec, want) in cases {
            let mut container = container;
            container["name"] = json!("c");
            let mut spec = spec;
            spec["containers"] = json!([container]);
            let pod: Pod = serde_json::from_value(json!({"spec": spec})).unwrap();
            let container = &pod.spec.as_ref().unwrap().containers[0];
            assert_eq!(ignored(&pod, container), want, "{container:?}");
        }
    }
}
