//! The pod that a request is about, and which of its containers.

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use kube::ResourceExt;
use lockstep_api::Status;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    node::{dirs::NodeDirs, runtime::ContainerId},
    server::call::{Address, Call},
};

/// The pod at an address.
pub(super) fn read(call: &Call, address: &Address) -> Result<Pod, Status> {
    let (namespace, name) = address.key();
    let object = call.app.cluster.get(&address.resource, namespace, name)?;
    Pod::deserialize(Value::Object(object.json())).map_err(Status::internal)
}

/// Where a pod runs or is to run.
pub(super) fn node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
}

/// The container meant: the one named, or the only one.
pub(super) fn container<'a>(pod: &'a Pod, asked: &str) -> Result<&'a Container, Status> {
    let name = pod.name_any();
    let spec = pod.spec.as_ref();
    let init = spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let main = spec.iter().flat_map(|spec| &spec.containers);
    // Nothing runs them here, so nobody can ask for one.
    let ephemeral = spec.iter().flat_map(|spec| spec.ephemeral_containers.iter().flatten());
    let ephemeral = ephemeral.map(|it| it.name.as_str());
    let all: Vec<&Container> = init.chain(main).collect();
    match (asked, spec.map(|spec| spec.containers.as_slice()).unwrap_or_default()) {
        ("", [only]) => Ok(only),
        ("", []) => {
            Err(Status::bad_request(format!("a container name must be specified for pod {name}")))
        }
        ("", _) => {
            let names: Vec<&str> = all.iter().map(|it| it.name.as_str()).chain(ephemeral).collect();
            Err(Status::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                names.join(" ")
            )))
        }
        (asked, _) => all.into_iter().find(|it| it.name == asked).ok_or_else(|| {
            Status::bad_request(format!("container {asked} is not valid for pod {name}"))
        }),
    }
}

/// The instance of a container that runs, and where its node keeps its files. Whether it still runs
/// is for its shim to say.
///
/// # Errors
/// The pod has no node yet.
pub(super) fn running(
    call: &Call,
    pod: &Pod,
    container: &str,
) -> Result<Option<(NodeDirs, ContainerId)>, Status> {
    if node(pod).is_none() {
        let name = pod.name_any();
        return Err(Status::bad_request(format!("pod {name} does not have a host assigned")));
    }
    let status = status(pod, container);
    let is_running =
        |it: &&ContainerStatus| it.state.as_ref().is_some_and(|state| state.running.is_some());
    let Some((status, dirs)) = status.filter(is_running).zip(call.app.logs.clone()) else {
        return Ok(None);
    };
    let attempt = u32::try_from(status.restart_count).unwrap_or(0);
    let pod_uid = pod.uid().unwrap_or_default();
    Ok(Some((dirs, ContainerId { pod_uid, container: container.to_owned(), attempt })))
}

/// What is known of a container.
pub(super) fn status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let lists = [
        &status.container_statuses,
        &status.init_container_statuses,
        &status.ephemeral_container_statuses,
    ];
    lists.into_iter().flatten().flatten().find(|status| status.name == container)
}
