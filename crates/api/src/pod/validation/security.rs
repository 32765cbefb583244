//! Security contexts of containers and pods.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    AppArmorProfile, PodSecurityContext, PodSpec, SeccompProfile, SecurityContext,
};

use super::{
    rules::{descending_path, list, number, option},
    windows,
};
use crate::{
    field::{ErrorList, FieldError, Path},
    names,
};

const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
const APPARMOR_NAME_MAX: usize = 4095;
const SYSCTL_MAX: usize = 253;

/// Says what is wrong with the security context of a container.
pub(super) fn validate(context: &SecurityContext, has_host_users: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(id(context.run_as_user, &path.child("runAsUser")));
    errors.extend(id(context.run_as_group, &path.child("runAsGroup")));
    if let Some(mount) = &context.proc_mount {
        let path = path.child("procMount");
        errors.extend(option(mount, &["Default", "Unmasked"], &path));
        if has_host_users && mount == "Unmasked" {
            let why = "`hostUsers` must be false to use `Unmasked`";
            errors.push(FieldError::invalid(&path, mount, why));
        }
    }
    errors.extend(seccomp(context.seccomp_profile.as_ref(), &path.child("seccompProfile")));
    if context.allow_privilege_escalation == Some(false) {
        if context.privileged == Some(true) {
            let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.push(FieldError::invalid(path, context, why));
        }
        let added = context.capabilities.as_ref().map(|it| list(&it.add)).unwrap_or_default();
        for _ in added.iter().filter(|name| *name == "CAP_SYS_ADMIN") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
                       CAP_SYS_ADMIN";
            errors.push(FieldError::invalid(path, context, why));
        }
    }
    let windows_path = path.child("windowsOptions");
    errors.extend(windows::validate_options(context.windows_options.as_ref(), &windows_path));
    errors.extend(app_armor(context.app_armor_profile.as_ref(), &path.child("appArmorProfile")));
    errors
}

/// Says what is wrong with the security context of a pod.
pub(super) fn validate_pod(spec: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let default = PodSecurityContext::default();
    let context = spec.security_context.as_ref().unwrap_or(&default);
    errors.extend(id(context.fs_group, &path.child("fsGroup")));
    errors.extend(id(context.run_as_user, &path.child("runAsUser")));
    errors.extend(id(context.run_as_group, &path.child("runAsGroup")));
    for (at, group) in list(&context.supplemental_groups).iter().enumerate() {
        errors.extend(id(Some(*group), &path.child("supplementalGroups").index(at)));
    }
    if spec.share_process_namespace == Some(true) && spec.host_pid == Some(true) {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(&path.child("shareProcessNamespace"), true, why));
    }
    errors.extend(sysctls(spec, context, &path.child("sysctls")));
    if let Some(policy) = &context.fs_group_change_policy {
        let path = path.child("fsGroupChangePolicy");
        errors.extend(option(policy, &["Always", "OnRootMismatch"], &path));
    }
    errors.extend(seccomp(context.seccomp_profile.as_ref(), &path.child("seccompProfile")));
    let windows_path = path.child("windowsOptions");
    errors.extend(windows::validate_options(context.windows_options.as_ref(), &windows_path));
    errors.extend(app_armor(context.app_armor_profile.as_ref(), &path.child("appArmorProfile")));
    if let Some(policy) = &context.supplemental_groups_policy {
        let path = path.child("supplementalGroupsPolicy");
        errors.extend(option(policy, &["Merge", "Strict"], &path));
    }
    if let Some(policy) = &context.se_linux_change_policy {
        let path = path.child("seLinuxChangePolicy");
        // `MountOption` needs a feature that is off by default.
        errors.extend(option(policy, &["Recursive"], &path));
    }
    errors
}

fn id(value: Option<i64>, path: &Path) -> ErrorList {
    value.map(|value| number(value, path, names::posix_id)).unwrap_or_default()
}

fn seccomp(profile: Option<&SeccompProfile>, path: &Path) -> ErrorList {
    let Some(profile) = profile else { return ErrorList::new() };
    let mut errors = ErrorList::new();
    if profile.type_.is_empty() {
        let why = "type is required when seccompProfile is set";
        errors.push(FieldError::required(&path.child("type"), why));
    } else {
        errors.extend(option(&profile.type_, &PROFILE_TYPES, &path.child("type")));
    }
    let name_path = path.child("localhostProfile");
    match (&*profile.type_, &profile.localhost_profile) {
        ("Localhost", None) => {
            let why = "must be set when seccomp type is Localhost";
            errors.push(FieldError::required(&name_path, why));
        }
        ("Localhost", Some(name)) => errors.extend(descending_path(name, &name_path)),
        (_, Some(_)) => {
            let why = "can only be set when seccomp type is Localhost";
            errors.push(FieldError::invalid(&name_path, profile, why));
        }
        (_, None) => {}
    }
    errors
}

fn app_armor(profile: Option<&AppArmorProfile>, path: &Path) -> ErrorList {
    let Some(profile) = profile else { return ErrorList::new() };
    let name_path = path.child("localhostProfile");
    let missing = || {
        let why = "must be set when AppArmor type is Localhost";
        FieldError::required(&name_path, why)
    };
    let mut errors = ErrorList::new();
    match (&*profile.type_, &profile.localhost_profile) {
        ("Localhost", None) => errors.push(missing()),
        ("Localhost", Some(name)) => {
            if name.trim() != name {
                let why = "must not be padded with whitespace";
                errors.push(FieldError::invalid(&name_path, name, why));
            } else if name.is_empty() {
                errors.push(missing());
            }
            if name.len() > APPARMOR_NAME_MAX {
                errors.push(FieldError::too_long(&name_path, APPARMOR_NAME_MAX));
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(name)) => {
            let why = "can only be set when AppArmor type is Localhost";
            errors.push(FieldError::invalid(&name_path, name, why));
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("", _) => {
            let why = "type is required when appArmorProfile is set";
            errors.push(FieldError::required(&path.child("type"), why));
        }
        (other, _) => errors.extend(option(other, &PROFILE_TYPES, &path.child("type"))),
    }
    errors
}

fn sysctls(spec: &PodSpec, context: &PodSecurityContext, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (at, setting) in list(&context.sysctls).iter().enumerate() {
        let path = path.index(at).child("name");
        let name = setting.name.as_str();
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if !is_sysctl(name) {
            let why = format!(
                "must have at most {SYSCTL_MAX} characters and match regex \
                 ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
            );
            errors.push(FieldError::invalid(&path, name, &why));
        } else if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
        let dotted = name.replace('/', ".");
        let is_ipc = ["kernel.shm", "kernel.msg", "fs.mqueue."]
            .iter()
            .any(|prefix| dotted.starts_with(prefix))
            || dotted == "kernel.sem";
        if spec.host_network == Some(true) && dotted.starts_with("net.") {
            let why = "may not be specified when 'hostNetwork' is true";
            errors.push(FieldError::invalid(&path, name, why));
        } else if spec.host_ipc == Some(true) && is_ipc {
            let why = "may not be specified when 'hostIPC' is true";
            errors.push(FieldError::invalid(&path, name, why));
        }
    }
    errors
}

fn is_sysctl(name: &str) -> bool {
    let is_edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_segment = |segment: &str| {
        let bytes = segment.as_bytes();
        bytes.first().is_some_and(|b| is_edge(*b))
            && bytes.last().is_some_and(|b| is_edge(*b))
            && bytes.iter().all(|b| is_edge(*b) || matches!(b, b'-' | b'_'))
    };
    name.len() <= SYSCTL_MAX && name.split(['.', '/']).all(is_segment)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{assert_container, assert_spec};

    #[test]
    fn containers_cannot_contradict_themselves() {
        let at = "spec.containers[0].securityContext";
        let cases = [
            (
                json!({"runAsUser": -1}),
                format!(
                    "{at}.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"
                ),
            ),
            (
                json!({"privileged": true, "allowPrivilegeEscalation": false}),
                format!(
                    "{at}: Invalid value: {{\"allowPrivilegeEscalation\":false,\"privileged\":true}}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
                ),
            ),
            (
                json!({"procMount": "Unmasked"}),
                format!(
                    "{at}.procMount: Invalid value: \"Unmasked\": `hostUsers` must be false to use `Unmasked`"
                ),
            ),
            (
                json!({"seccompProfile": {"type": "Localhost"}}),
                format!(
                    "{at}.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost"
                ),
            ),
            (
                json!({"seccompProfile": {"type": "X"}}),
                format!(
                    "{at}.seccompProfile.type: Unsupported value: \"X\": supported values: \"Localhost\", \"RuntimeDefault\", \"Unconfined\""
                ),
            ),
            (
                json!({"appArmorProfile": {"type": "Localhost", "localhostProfile": " x"}}),
                format!(
                    "{at}.appArmorProfile.localhostProfile: Invalid value: \" x\": must not be padded with whitespace"
                ),
            ),
        ];
        for (context, want) in cases {
            assert_container(json!({"securityContext": context}), &[&want]);
        }
    }

    #[test]
    fn pods_are_judged_too() {
        let check = |extra: Value, want: &[&str]| {
            let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
            for (key, value) in extra.as_object().unwrap() {
                spec[key] = value.clone();
            }
            assert_spec(spec, want);
        };
        check(
            json!({"hostPID": true, "shareProcessNamespace": true}),
            &[
                "spec.securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled",
            ],
        );
        check(
            json!({"hostNetwork": true, "securityContext": {"sysctls": [
                {"name": "net.core.somaxconn", "value": "1"}, {"name": "A", "value": "1"}, {"name": "", "value": "1"},
            ]}}),
            &[
                "spec.securityContext.sysctls[0].name: Invalid value: \"net.core.somaxconn\": may not be specified when 'hostNetwork' is true",
                "spec.securityContext.sysctls[1].name: Invalid value: \"A\": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
                "spec.securityContext.sysctls[2].name: Required value",
            ],
        );
        check(
            json!({"securityContext": {"fsGroup": -1, "supplementalGroups": [1, -2], "fsGroupChangePolicy": "Never"}}),
            &[
                "spec.securityContext.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive",
                "spec.securityContext.supplementalGroups[1]: Invalid value: -2: must be between 0 and 2147483647, inclusive",
                "spec.securityContext.fsGroupChangePolicy: Unsupported value: \"Never\": supported values: \"Always\", \"OnRootMismatch\"",
            ],
        );
        check(
            json!({"hostUsers": false, "hostPID": true}),
            &["spec.HostPID: Forbidden: when `hostUsers` is false"],
        );
    }
}
