//! What only Windows pods have, and what they cannot have.

use k8s_openapi::api::core::v1::{
    Container, PodSecurityContext, PodSpec, SecurityContext, WindowsSecurityContextOptions,
};

use super::{for_each_container, rules::list};
use crate::{
    field::{ErrorList, FieldError, Path},
    meta::invalid,
    names,
};

const NOT_ON_WINDOWS: &str = "cannot be set for a windows pod";
const NOT_ON_LINUX: &str = "windows options cannot be set for a linux pod";
const CREDENTIAL_KIB: usize = 64;

/// Says what a Linux pod has that only Windows knows.
pub(super) fn validate_linux(spec: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.security_context.as_ref().is_some_and(|it| it.windows_options.is_some()) {
        let path = path.child("securityContext").child("windowsOptions");
        errors.push(FieldError::forbidden(&path, NOT_ON_LINUX));
    }
    for_each_container(spec, path, |container, path| {
        if container.security_context.as_ref().is_some_and(|it| it.windows_options.is_some()) {
            let path = path.child("securityContext").child("windowsOptions");
            errors.push(FieldError::forbidden(&path, NOT_ON_LINUX));
        }
    });
    errors
}

/// Says what a Windows pod has that Windows does not know.
pub(super) fn validate_windows(spec: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let default = PodSecurityContext::default();
    let context = spec.security_context.as_ref().unwrap_or(&default);
    let inner = path.child("securityContext");
    let set = [
        (inner.child("appArmorProfile"), context.app_armor_profile.is_some()),
        (inner.child("seLinuxOptions"), context.se_linux_options.is_some()),
        (path.child("hostUsers"), spec.host_users.is_some()),
        (path.child("hostPID"), spec.host_pid == Some(true)),
        (path.child("hostIPC"), spec.host_ipc == Some(true)),
        (inner.child("seccompProfile"), context.seccomp_profile.is_some()),
        (inner.child("fsGroup"), context.fs_group.is_some()),
        (inner.child("fsGroupChangePolicy"), context.fs_group_change_policy.is_some()),
        (inner.child("sysctls"), !list(&context.sysctls).is_empty()),
        (path.child("shareProcessNamespace"), spec.share_process_namespace.is_some()),
        (inner.child("runAsUser"), context.run_as_user.is_some()),
        (inner.child("runAsGroup"), context.run_as_group.is_some()),
        (inner.child("supplementalGroups"), context.supplemental_groups.is_some()),
        (inner.child("supplementalGroupsPolicy"), context.supplemental_groups_policy.is_some()),
        (inner.child("seLinuxChangePolicy"), context.se_linux_change_policy.is_some()),
    ];
    let forbidden = set.into_iter().filter(|(_, is_set)| *is_set);
    errors.extend(forbidden.map(|(path, _)| FieldError::forbidden(&path, NOT_ON_WINDOWS)));
    for_each_container(spec, path, |container, path| {
        if let Some(context) = &container.security_context {
            errors.extend(unknown_to_windows(context, &path.child("securityContext")));
        }
    });
    errors
}

fn unknown_to_windows(context: &SecurityContext, path: &Path) -> ErrorList {
    let set = [
        ("appArmorProfile", context.app_armor_profile.is_some()),
        ("seLinuxOptions", context.se_linux_options.is_some()),
        ("seccompProfile", context.seccomp_profile.is_some()),
        ("capabilities", context.capabilities.is_some()),
        ("readOnlyRootFilesystem", context.read_only_root_filesystem.is_some()),
        ("privileged", context.privileged.is_some()),
        ("allowPrivilegeEscalation", context.allow_privilege_escalation.is_some()),
        ("procMount", context.proc_mount.is_some()),
        ("runAsUser", context.run_as_user.is_some()),
        ("runAsGroup", context.run_as_group.is_some()),
    ];
    let forbidden = set.into_iter().filter(|(_, is_set)| *is_set);
    forbidden.map(|(field, _)| FieldError::forbidden(&path.child(field), NOT_ON_WINDOWS)).collect()
}

/// Says what is wrong with a pod some of whose containers are processes of a Windows host.
pub(super) fn validate_host_process(spec: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let of_pod = spec
        .security_context
        .as_ref()
        .and_then(|it| it.windows_options.as_ref())
        .and_then(|options| options.host_process);
    let of = |container: &Container| {
        container
            .security_context
            .as_ref()
            .and_then(|it| it.windows_options.as_ref())
            .and_then(|options| options.host_process)
    };
    let (mut all, mut on_host) = (0, 0);
    for_each_container(spec, path, |container, path| {
        all += 1;
        let own = of(container);
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let path = path.child("securityContext").child("windowsOptions").child("hostProcess");
            let why = format!(
                "pod hostProcess value must be identical if both are specified, was {of_pod}"
            );
            errors.push(FieldError::invalid(&path, own, &why));
        }
        on_host += usize::from(own.or(of_pod).unwrap_or_default());
    });
    if on_host > 0 {
        if on_host != all {
            let why = "If pod contains any hostProcess containers then all containers must be \
                       HostProcess containers";
            errors.push(FieldError::invalid(path, "", why));
        }
        if spec.host_network != Some(true) {
            let why = "hostNetwork must be true if pod contains any hostProcess containers";
            errors.push(FieldError::invalid(&path.child("hostNetwork"), false, why));
        }
    }
    errors
}

/// Says what is wrong with `windowsOptions`.
pub(super) fn validate_options(
    options: Option<&WindowsSecurityContextOptions>,
    path: &Path,
) -> ErrorList {
    let Some(options) = options else { return ErrorList::new() };
    let mut errors = ErrorList::new();
    if let Some(name) = &options.gmsa_credential_spec_name {
        let path = path.child("gmsaCredentialSpecName");
        errors.extend(invalid(&path, name, names::dns1123_subdomain(name)));
    }
    if let Some(text) = &options.gmsa_credential_spec {
        let path = path.child("gmsaCredentialSpec");
        if text.is_empty() {
            let why = "gmsaCredentialSpec cannot be an empty string";
            errors.push(FieldError::invalid(&path, text, why));
        } else if text.len() > CREDENTIAL_KIB << 10 {
            let why = format!("gmsaCredentialSpec size must be under {CREDENTIAL_KIB} KiB");
            errors.push(FieldError::invalid(&path, text, &why));
        }
    }
    if let Some(name) = &options.run_as_user_name {
        let path = path.child("runAsUserName");
        let faults = user_name_faults(name);
        errors.extend(faults.iter().map(|fault| FieldError::invalid_json(&path, name, fault)));
    }
    errors
}

fn user_name_faults(name: &str) -> Vec<&'static str> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string"];
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters"];
    }
    let parts: Vec<&str> = name.split('\\').collect();
    let (domain, user) = match parts[..] {
        [user] => (None, user),
        [domain, user] => (Some(domain), user),
        _ => return vec!["runAsUserName cannot contain more than one backslash"],
    };
    let mut faults = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= 256) {
        faults.push("runAsUserName's Domain length must be under 256 characters");
    }
    if domain.is_some_and(|domain| !is_netbios(domain) && !is_dns_domain(domain)) {
        faults.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
    }
    if user.is_empty() {
        faults.push("runAsUserName's User cannot be empty");
    } else if user.len() > 104 {
        faults.push("runAsUserName's User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|c| c == '.' || c == ' ') {
        faults.push("runAsUserName's User cannot contain only periods or spaces");
    }
    if user
        .contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']'])
    {
        faults.push(
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]",
        );
    }
    faults
}

fn is_netbios(domain: &str) -> bool {
    (1..=15).contains(&domain.chars().count())
        && !domain.starts_with('.')
        && !domain.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|'])
}

fn is_dns_domain(domain: &str) -> bool {
    domain.split('.').all(|label| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::assert_spec;

    #[test]
    fn each_system_has_its_own_fields() {
        let containers = json!([{"name": "c", "image": "i", "securityContext": {"windowsOptions": {"hostProcess": true}}}]);
        assert_spec(
            json!({"os": {"name": "linux"}, "containers": containers.clone()}),
            &[
                "spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers",
                "spec.containers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod",
            ],
        );
        assert_spec(
            json!({"os": {"name": "windows"}, "hostPID": true, "securityContext": {"fsGroup": 1}, "containers": [
                {"name": "c", "image": "i", "securityContext": {"privileged": true, "windowsOptions": {"runAsUserName": "a\\b\\c"}}},
            ]}),
            &[
                "spec.containers[0].securityContext.windowsOptions.runAsUserName: Invalid value: \"a\\\\b\\\\c\": runAsUserName cannot contain more than one backslash",
                "spec.hostPID: Forbidden: cannot be set for a windows pod",
                "spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod",
                "spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a windows pod",
            ],
        );
        assert_spec(
            json!({"os": {"name": "plan9"}, "containers": [{"name": "c", "image": "i"}]}),
            &["spec.os: Unsupported value: \"plan9\": supported values: \"linux\", \"windows\""],
        );
    }
}
