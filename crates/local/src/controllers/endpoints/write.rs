//! Writing slices, and the older Endpoints object beside them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Service,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::slices::{Slice, Slices, slice_port};

/// How many addresses an Endpoints object lists at most.
const ENDPOINTS_MAX: usize = 1000;

/// Labels of a slice: its service, and whose business it is.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";

/// Writes what has changed.
pub(super) async fn write(
    client: &Client,
    service: &Service,
    slices: &mut Slices,
) -> kube::Result<()> {
    let namespace = service.namespace().unwrap_or_default();
    let api: Api<EndpointSlice> = Api::namespaced(client.clone(), &namespace);
    let touched = slices.touched();
    if touched.is_empty() {
        return Ok(());
    }
    for (index, slice) in touched {
        let name = slice_name(service, index);
        if index > 0 && slice.endpoints.is_empty() {
            delete(&api, &name).await?;
        } else {
            put(&api, &name, slice_object(service, &name, &slice)).await?;
        }
        slices.written(index);
    }
    let api: Api<Endpoints> = Api::namespaced(client.clone(), &namespace);
    put(&api, &service.name_any(), endpoints_object(service, slices)).await
}

/// Deletes slices of the service that were written in earlier times and list nobody now.
pub(super) async fn sweep(client: &Client, service: &Service, slices: &Slices) -> kube::Result<()> {
    let namespace = service.namespace().unwrap_or_default();
    let api: Api<EndpointSlice> = Api::namespaced(client.clone(), &namespace);
    let name = service.name_any();
    let ours = format!("{SERVICE_NAME}={name},{MANAGED_BY}={MANAGER}");
    for slice in api.list_metadata(&ListParams::default().labels(&ours)).await?.items {
        let own = slice.name_any();
        let number = own.strip_prefix(&name).and_then(|rest| rest.strip_prefix('-'));
        let index = number.and_then(|number| number.parse().ok());
        if !index.is_some_and(|index| slices.contains(index)) {
            delete(&api, &own).await?;
        }
    }
    Ok(())
}

async fn delete(api: &Api<EndpointSlice>, name: &str) -> kube::Result<()> {
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error),
    }
}

/// Creates the object, or replaces it if it is there.
async fn put<K>(api: &Api<K>, name: &str, mut wanted: K) -> kube::Result<()>
where
    K: Resource + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let Some(old) = api.get_opt(name).await? else {
        return api.create(&PostParams::default(), &wanted).await.map(drop);
    };
    wanted.meta_mut().resource_version = old.resource_version();
    api.replace(name, &PostParams::default(), &wanted).await.map(drop)
}

/// Deterministic, so that writing again after a failure does not make a second one.
fn slice_name(service: &Service, index: usize) -> String {
    format!("{}-{index}", service.name_any())
}

fn owner(service: &Service) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Service".to_owned(),
        name: service.name_any(),
        uid: service.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

fn slice_object(service: &Service, name: &str, slice: &Slice) -> EndpointSlice {
    let mut labels = service.labels().clone();
    let mut put = |key: &str, value: &str| drop(labels.insert(key.to_owned(), value.to_owned()));
    put(SERVICE_NAME, &service.name_any());
    put(MANAGED_BY, MANAGER);
    let spec = service.spec.as_ref();
    if spec.and_then(|spec| spec.cluster_ip.as_deref()) == Some("None") {
        put("service.kubernetes.io/headless", "");
    }
    EndpointSlice {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: service.namespace(),
            labels: Some(labels),
            owner_references: Some(vec![owner(service)]),
            ..ObjectMeta::default()
        },
        address_type: "IPv4".to_owned(),
        endpoints: Some(slice.endpoints.values().cloned().collect()),
        ports: Some(slice.ports.iter().map(slice_port).collect()),
    }
}

fn endpoints_object(service: &Service, slices: &Slices) -> Endpoints {
    let mut subsets: BTreeMap<_, EndpointSubset> = BTreeMap::new();
    let mut count = 0;
    for slice in slices.all() {
        let subset = subsets.entry(&slice.ports).or_default();
        for endpoint in slice.endpoints.values() {
            count += 1;
            if count > ENDPOINTS_MAX {
                break;
            }
            let conditions = endpoint.conditions.as_ref();
            if conditions.and_then(|it| it.terminating) == Some(true) {
                continue;
            }
            let address = EndpointAddress {
                ip: endpoint.addresses.first().cloned().unwrap_or_default(),
                hostname: endpoint.hostname.clone(),
                node_name: endpoint.node_name.clone(),
                target_ref: endpoint.target_ref.clone(),
            };
            let is_ready = conditions.and_then(|it| it.ready) == Some(true);
            let list =
                if is_ready { &mut subset.addresses } else { &mut subset.not_ready_addresses };
            list.get_or_insert_default().push(address);
        }
        let ports = slice.ports.iter().map(|(name, protocol, number, app)| EndpointPort {
            name: Some(name.clone()).filter(|name| !name.is_empty()),
            protocol: Some(protocol.clone()),
            port: *number,
            app_protocol: app.clone(),
        });
        subset.ports = Some(ports.collect()).filter(|ports: &Vec<EndpointPort>| !ports.is_empty());
    }
    let mut labels = service.labels().clone();
    labels
        .insert("endpoints.kubernetes.io/managed-by".to_owned(), "endpoint-controller".to_owned());
    let is_over = count > ENDPOINTS_MAX;
    let annotations = is_over.then(|| {
        let key = "endpoints.kubernetes.io/over-capacity".to_owned();
        BTreeMap::from([(key, "truncated".to_owned())])
    });
    let has_addresses = |subset: &EndpointSubset| {
        subset.addresses.is_some() || subset.not_ready_addresses.is_some()
    };
    Endpoints {
        metadata: ObjectMeta {
            name: Some(service.name_any()),
            namespace: service.namespace(),
            labels: Some(labels),
            annotations,
            owner_references: Some(vec![owner(service)]),
            ..ObjectMeta::default()
        },
        subsets: Some(subsets.into_values().filter(has_addresses).collect()),
    }
}
