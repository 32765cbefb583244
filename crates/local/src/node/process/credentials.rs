//! Who a container runs as, as far as this process may decide that.

use k8s_openapi::api::core::v1::{Container, Pod, PodSecurityContext, SecurityContext};
use lockstep_control::plan::pod::full_name;

use crate::node::runtime::Credentials;

/// The names of capabilities, in the order of their numbers.
const CAPABILITIES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// Whom this process may become.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rights {
    pub(super) user: u32,
    pub(super) groups: Vec<u32>,
}

impl Rights {
    /// Those of this process.
    pub(crate) fn own() -> Self {
        let groups = rustix::process::getgroups().unwrap_or_default();
        let own = rustix::process::getegid();
        let groups = groups.iter().chain([&own]).map(|group| group.as_raw()).collect();
        Self { user: rustix::process::geteuid().as_raw(), groups }
    }

    pub(super) fn may_be_user(&self, user: u32) -> bool {
        self.user == 0 || self.user == user
    }

    /// Whether processes and files can belong to a group.
    pub(crate) fn may_have_group(&self, group: u32) -> bool {
        self.user == 0 || self.groups.contains(&group)
    }
}

/// What a pod asks for, the container before the pod.
pub(super) struct Wanted {
    pub(super) user: Option<u32>,
    pub(super) group: Option<u32>,
    /// `supplementalGroups`.
    pub(super) groups: Vec<u32>,
    pub(super) fs_group: Option<u32>,
}

impl Wanted {
    pub(super) fn of(pod: &Pod, container: &Container) -> Self {
        let of_pod = pod_context(pod);
        let own = container.security_context.as_ref();
        let id = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
        let groups = of_pod.and_then(|it| it.supplemental_groups.as_deref()).unwrap_or_default();
        Self {
            user: id(own
                .and_then(|it| it.run_as_user)
                .or_else(|| of_pod.and_then(|it| it.run_as_user))),
            group: id(own
                .and_then(|it| it.run_as_group)
                .or_else(|| of_pod.and_then(|it| it.run_as_group))),
            groups: groups.iter().filter_map(|group| id(Some(*group))).collect(),
            fs_group: fs_group(pod),
        }
    }
}

/// The group that the volumes of a pod belong to.
pub(crate) fn fs_group(pod: &Pod) -> Option<u32> {
    pod_context(pod)?.fs_group.and_then(|group| u32::try_from(group).ok())
}

/// What can be done of what a container asks for; an error, in the words of a kubelet, when it
/// would be root and says that it must not be.
pub(super) fn of(pod: &Pod, container: &Container, rights: &Rights) -> Result<Credentials, String> {
    let wanted = Wanted::of(pod, container);
    let own = container.security_context.as_ref();
    let must_not_be_root = own
        .and_then(|it| it.run_as_non_root)
        .or_else(|| pod_context(pod).and_then(|it| it.run_as_non_root));
    if must_not_be_root == Some(true) {
        let place = format!("(pod: {:?}, container: {})", full_name(pod), container.name);
        match wanted.user {
            Some(0) => return Err(format!("container's runAsUser breaks non-root policy {place}")),
            None if rights.user == 0 => {
                let what = "container has runAsNonRoot and image will run as root";
                return Err(format!("{what} {place}"));
            }
            Some(_) | None => {}
        }
    }
    let is_root = rights.user == 0;
    let groups = wanted.fs_group.iter().chain(&wanted.groups).copied();
    Ok(Credentials {
        user: wanted.user.filter(|_| is_root),
        group: wanted.group.filter(|_| is_root),
        groups: groups.filter(|_| is_root).collect(),
        no_new_privileges: own.and_then(|it| it.allow_privilege_escalation) == Some(false),
        dropped_capabilities: dropped(own),
    })
}

fn dropped(context: Option<&SecurityContext>) -> Vec<u32> {
    let names = context.and_then(|it| it.capabilities.as_ref()).and_then(|it| it.drop.as_deref());
    let mut numbers = Vec::new();
    for name in names.unwrap_or_default() {
        let name = name.strip_prefix("CAP_").unwrap_or(name);
        let matching =
            (0_u32..).zip(CAPABILITIES).filter(|(_, known)| name == "ALL" || name == *known);
        numbers.extend(matching.map(|(number, _)| number));
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn pod_context(pod: &Pod) -> Option<&PodSecurityContext> {
    pod.spec.as_ref()?.security_context.as_ref()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(of_pod: Value, own: Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
            "spec": {
                "securityContext": of_pod,
                "containers": [{"name": "c", "securityContext": own}],
            },
        }))
        .unwrap()
    }

    fn given(of_pod: Value, own: Value, rights: &Rights) -> Result<Credentials, String> {
        let pod = pod(of_pod, own);
        of(&pod, &pod.spec.as_ref().unwrap().containers[0], rights)
    }

    #[test]
    fn root_gives_what_is_asked_for_and_others_what_they_can() {
        let of_pod = json!({"runAsUser": 7, "runAsGroup": 8, "fsGroup": 9,
            "supplementalGroups": [10, 11]});
        let own = json!({"runAsUser": 6, "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["NET_RAW", "CAP_CHOWN"]}});
        let root = given(of_pod.clone(), own.clone(), &Rights::default()).unwrap();
        let want = Credentials {
            user: Some(6),
            group: Some(8),
            groups: vec![9, 10, 11],
            no_new_privileges: true,
            dropped_capabilities: vec![0, 13],
        };
        assert_eq!(root, want);
        let rights = Rights { user: 1000, groups: vec![1000] };
        let other = given(of_pod, own, &rights).unwrap();
        let want = Credentials { user: None, group: None, groups: Vec::new(), ..want };
        assert_eq!(other, want);
        let all = given(json!({}), json!({"capabilities": {"drop": ["ALL"]}}), &rights).unwrap();
        assert_eq!(all.dropped_capabilities.len(), 41);
    }

    #[test]
    fn what_must_not_be_root_is_not() {
        let refused = "container has runAsNonRoot and image will run as root (pod: \"p_ns(u)\", \
                       container: c)";
        let breaks = "container's runAsUser breaks non-root policy (pod: \"p_ns(u)\", \
                      container: c)";
        let cases = [
            (json!({"runAsNonRoot": true}), json!({}), 0, Err(refused)),
            (json!({"runAsNonRoot": true}), json!({}), 1000, Ok(None)),
            (json!({"runAsNonRoot": true, "runAsUser": 0}), json!({}), 1000, Err(breaks)),
            (json!({"runAsNonRoot": true}), json!({"runAsUser": 5}), 0, Ok(Some(5))),
            (json!({"runAsNonRoot": true}), json!({"runAsNonRoot": false}), 0, Ok(None)),
        ];
        for (of_pod, own, user, want) in cases {
            let rights = Rights { user, groups: Vec::new() };
            let got = given(of_pod.clone(), own, &rights).map(|it| it.user);
            assert_eq!(got, want.map_err(str::to_owned), "{of_pod}");
        }
    }
}
