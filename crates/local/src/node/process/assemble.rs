//! From the description of a container to what is started.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use k8s_openapi::api::core::v1::{Container, HostAlias, Pod};
use kube::ResourceExt;
use lockstep_api::quantity::Quantity;
use lockstep_control::plan::pod::{StartFailure, containers};

use super::{Inner, credentials, honour, id};
use crate::node::agent::{Launched, Told};
use crate::node::devices::{self, Devices};
use crate::node::env::{self, ConfigError};
use crate::node::network::PodName;
use crate::node::runtime::{
    Console, ContainerId, Input, Isolation, Launch, LimitedBy, Limits, StartError,
};
use crate::node::sources::references_of_containers;
use crate::node::volumes;

/// A pod with this annotation set to `true` gets the environment and folder of whoever started the
/// node, if the node allows it.
pub(crate) const INHERIT: &str = "lockstep.dev/inherit-environment";

impl Inner {
    /// Starts an instance of a container.
    pub(super) async fn start(
        self: &Arc<Self>,
        pod: &Pod,
        name: &str,
        attempt: u32,
    ) -> Result<Launched, StartFailure> {
        let (launch, warnings) = self.assemble(pod, name, attempt).await?;
        let is_limited = !launch.limits.is_unlimited();
        let id = launch.id.clone();
        let started = self.runtime.start(launch).await.map_err(|error| {
            if !matches!(error, StartError::AlreadyRunning { .. }) {
                self.take_devices_back(&id);
            }
            refused(error)
        })?;
        let mut notes: Vec<Told> = warnings;
        // What is the same for every instance is told with the first.
        if attempt == 0 {
            let told = started.warnings.into_iter();
            notes.extend(told.map(|message| Told::warning("NotHonoured", message)));
            let container = containers(pod).find(|(_, it)| it.name == name).map(|(_, it)| it);
            let rights = &self.rights;
            let ignored = container.map(|it| honour::ignored(pod, it, rights)).unwrap_or_default();
            if !ignored.is_empty() {
                let fields = ignored.join(", ");
                let message = format!(
                    "not honoured, because containers are processes of this machine: {fields}"
                );
                notes.push(Told::warning("NotHonoured", message));
            }
            if is_limited {
                notes.push(limits_note(started.limited_by));
            }
        }
        Ok(Launched { at: started.at, notes, exit: None })
    }

    async fn assemble(
        self: &Arc<Self>,
        pod: &Pod,
        name: &str,
        attempt: u32,
    ) -> Result<(Launch, Vec<Told>), StartFailure> {
        let create = |error: &dyn std::fmt::Display| StartFailure::Create(error.to_string());
        let Some((_, container)) = containers(pod).find(|(_, it)| it.name == name) else {
            return Err(StartFailure::Config(format!("the pod has no container {name:?}")));
        };
        let container = self.with_command(container);
        let pod_ip = self.pod_ip(pod);
        let wanted = references_of_containers(pod);
        let sources = self.gather(pod, wanted, &pod_ip).await.map_err(|error| create(&error))?;
        let identity = pod_name(pod);
        let base = env::base(|name| std::env::var(name).ok(), &identity.hostname);
        let config = |error: ConfigError| StartFailure::Config(error.to_string());
        let environment = env::build(pod, &container, &sources, &base).map_err(config)?;
        let command = env::command(&container, &environment).map_err(config)?;
        let uid = pod.uid().unwrap_or_default();
        let prepared = self.lock().get(&uid).map(|it| it.volumes.clone()).unwrap_or_default();
        let mounts = volumes::mounts(&container, &prepared, &environment, &self.dirs)
            .map_err(|error| create(&error))?;
        let inherits = self.options.allows_inherit
            && pod.annotations().get(INHERIT).is_some_and(|value| value == "true");
        let mut launch = Launch::new(id(pod, name, attempt), command);
        launch.pod_namespace = identity.namespace.clone();
        launch.pod_name = pod.name_any();
        launch.inherit_caller_env = inherits;
        launch.working_dir = working_dir(&container, inherits);
        launch.mounts = mounts;
        launch.hostname.clone_from(&identity.hostname);
        if self.runtime.isolation().0 == Isolation::None {
            // Nothing can be mounted over /etc/hosts: names in the environment become addresses.
            let texts = environment.variables.iter().map(|(_, value)| value.as_str());
            let texts = texts.chain(launch.command.iter().map(String::as_str));
            launch.names = self.network.names(&identity, aliases(pod), texts);
        } else {
            launch.hosts_file = self.hosts_file(pod).map_err(|error| create(&error))?;
        }
        launch.env = environment.variables;
        self.give_devices(&container, &mut launch)?;
        launch.console = console(&container);
        launch.limits = limits(&container);
        launch.credentials =
            credentials::of(pod, &container, &self.rights).map_err(StartFailure::Config)?;
        if let Some(path) = &container.termination_message_path {
            launch.termination_message_path.clone_from(path);
        }
        launch.message_from_logs_on_error =
            container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
        let warnings = environment.warnings.into_iter();
        let told = |it| Told::warning("InvalidEnvironmentVariableNames", it);
        Ok((launch, warnings.map(told).collect()))
    }

    /// What the pod sees as `/etc/hosts`; nothing of its own when it is the machine's.
    pub(super) fn hosts_file(&self, pod: &Pod) -> std::io::Result<Option<PathBuf>> {
        let (uid, namespace) = (pod.uid().unwrap_or_default(), pod.namespace().unwrap_or_default());
        match (is_on_host_network(pod), aliases(pod)) {
            (true, []) => Ok(None),
            (true, aliases) => self.network.machine_hosts_file(&uid, aliases).map(Some),
            (false, []) => self.network.hosts_file(&namespace).map(Some),
            (false, aliases) => self.network.hosts_file_of(&uid, &namespace, aliases).map(Some),
        }
    }

    /// Gives the container the devices it asks for, and tells it which.
    fn give_devices(&self, container: &Container, launch: &mut Launch) -> Result<(), StartFailure> {
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        let resources: Vec<String> = devices.capacity().keys().cloned().collect();
        for resource in resources {
            let wanted = device_count(container, &resource);
            let given = devices
                .allocate(&launch.id.pod_uid, &launch.id.container, &resource, wanted)
                .map_err(|error| StartFailure::Create(error.to_string()))?;
            for (name, value) in devices::variables(&resource, &given) {
                if !launch.env.iter().any(|(known, _)| *known == name) {
                    launch.env.push((name, value));
                }
            }
        }
        Ok(())
    }

    /// Makes the devices of a container that has ended free for others, those of its pod too.
    pub(super) fn take_devices_back(&self, id: &ContainerId) {
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        devices.release_container(&id.pod_uid, &id.container);
    }

    /// Notes which devices a container has that was started by an earlier process.
    pub(super) fn adopt_devices(&self, id: &ContainerId, pid: u32) {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        let resources: Vec<String> = devices.capacity().keys().cloned().collect();
        for resource in resources {
            let Some((name, _)) = devices::variables(&resource, &[]).into_iter().next() else {
                continue;
            };
            let prefix = format!("{name}=");
            let value = environment
                .split(|byte| *byte == 0)
                .filter_map(|entry| std::str::from_utf8(entry).ok())
                .find_map(|entry| entry.strip_prefix(&prefix));
            let indices: Vec<u32> =
                value.into_iter().flat_map(|list| list.split(',')).flat_map(str::parse).collect();
            if !indices.is_empty() {
                devices.adopt(&id.pod_uid, &id.container, &resource, &indices);
            }
        }
    }

    /// The container, with the command its image is known to have if it gives none.
    fn with_command(&self, container: &Container) -> Container {
        let mut container = container.clone();
        if container.command.as_ref().is_none_or(Vec::is_empty) {
            let image = container.image.as_deref().unwrap_or_default();
            let commands = &self.options.image_commands;
            let known = commands.get(image).or_else(|| commands.get(without_version(image)));
            container.command = known.cloned();
        }
        container
    }
}

/// How limits are enforced, in words for a user.
fn limits_note(by: LimitedBy) -> Told {
    match by {
        LimitedBy::Cgroup1 | LimitedBy::Cgroup2 => {
            Told::normal("LimitsEnforced", format!("CPU and memory limits are enforced by {by}"))
        }
        LimitedBy::Rlimit => Told::warning(
            "LimitsEnforced",
            "memory is limited for each process by rlimit and CPU only by priority: \
             this user has no cgroup of its own"
                .to_owned(),
        ),
        LimitedBy::Nothing => {
            Told::warning("LimitsEnforced", "limits cannot be enforced here".to_owned())
        }
    }
}

/// The devices of this machine, or as many as it is said to have.
pub(super) fn devices(
    allocatable: &BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>,
) -> Devices {
    let mut devices = Devices::find();
    for resource in [devices::NVIDIA, devices::AMD] {
        let said = allocatable.get(resource).and_then(|it| Quantity::parse(&it.0).ok());
        if let Some(count) = said.and_then(|it| u32::try_from(it.value()).ok()) {
            devices.pretend(resource, count);
        }
    }
    devices
}

/// How many devices of a kind a container asks for.
fn device_count(container: &Container, resource: &str) -> u32 {
    let resources = container.resources.as_ref();
    let lists = resources.map(|it| [it.limits.as_ref(), it.requests.as_ref()]);
    let quantity = lists.into_iter().flatten().flatten().find_map(|list| list.get(resource));
    let count = quantity.and_then(|it| Quantity::parse(&it.0).ok()).map(|it| it.value());
    count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
}

/// Who the pod is on the network.
pub(super) fn pod_name(pod: &Pod) -> PodName {
    let spec = pod.spec.as_ref();
    let own = spec.and_then(|spec| spec.hostname.clone()).filter(|name| !name.is_empty());
    // Host names have at most 63 characters and do not end in a dash or dot.
    let short = |name: String| {
        let end = name.len().min(63);
        name[..end].trim_end_matches(['-', '.']).to_owned()
    };
    PodName {
        namespace: pod.namespace().unwrap_or_default(),
        hostname: own.unwrap_or_else(|| short(pod.name_any())),
        subdomain: spec.and_then(|spec| spec.subdomain.clone()).filter(|name| !name.is_empty()),
    }
}

fn aliases(pod: &Pod) -> &[HostAlias] {
    let aliases = pod.spec.as_ref().and_then(|spec| spec.host_aliases.as_deref());
    aliases.unwrap_or_default()
}

fn is_on_host_network(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true))
}

fn working_dir(container: &Container, inherits: bool) -> Option<PathBuf> {
    let own = container.working_dir.as_ref().filter(|dir| !dir.is_empty()).map(PathBuf::from);
    own.or_else(|| if inherits { std::env::current_dir().ok() } else { None })
}

fn console(container: &Container) -> Console {
    let input = match (container.stdin, container.stdin_once) {
        (Some(true), Some(true)) => Input::Once,
        (Some(true), _) => Input::Open,
        _ => Input::None,
    };
    Console { input, is_terminal: container.tty == Some(true) }
}

fn limits(container: &Container) -> Limits {
    let resources = container.resources.as_ref();
    let amount = |limits: bool, name: &str, is_milli: bool| -> Option<u64> {
        let list = resources
            .and_then(|it| if limits { it.limits.as_ref() } else { it.requests.as_ref() })?;
        let quantity = Quantity::parse(&list.get(name)?.0).ok()?;
        let value = if is_milli { quantity.milli_value() } else { quantity.value() };
        u64::try_from(value).ok().filter(|value| *value > 0)
    };
    Limits {
        cpu_milli: amount(true, "cpu", true),
        cpu_request_milli: amount(false, "cpu", true),
        memory_bytes: amount(true, "memory", false),
    }
}

/// What a refusal to start means for the container.
fn refused(error: StartError) -> StartFailure {
    let message = error.to_string();
    match error {
        StartError::NoCommand => StartFailure::Config(message),
        StartError::Closed
        | StartError::Mount { .. }
        | StartError::Prepare { .. }
        | StartError::AlreadyRunning { .. } => StartFailure::Create(message),
        StartError::Exec(_) | StartError::Shim { .. } => {
            StartFailure::Run { code: error.exit_code(), message }
        }
    }
}

/// The name of an image without its tag and digest. A colon before the last slash is a port.
fn without_version(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

#[cfg(test)]
mod tests {
    use super::without_version;

    #[test]
    fn an_image_is_known_by_its_name_whatever_its_version() {
        let cases = [
            ("nginx", "nginx"),
            ("nginx:1.27", "nginx"),
            ("host:5000/me/app", "host:5000/me/app"),
            ("host:5000/me/app:v2@sha256:0f", "host:5000/me/app"),
            ("me/app@sha256:0f", "me/app"),
        ];
        for (image, want) in cases {
            assert_eq!(without_version(image), want, "{image}");
        }
    }
}
