//! Client libraries, unchanged: kube in-process and over TLS.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Endpoints, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{
    Api as Kube, Client, Config, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::{WatchStreamExt, watcher},
};
use lockstep_local::embedded::{Embedded, Options};
use serde_json::json;

fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.data = Some(BTreeMap::from([("k".to_owned(), "v".to_owned())]));
    map
}

async fn both_ways() -> (Embedded, [Client; 2]) {
    let options = Options { listen: Some("127.0.0.1:0".parse().unwrap()), ..Options::default() };
    let embedded = Embedded::start(options).await.unwrap();
    let kubeconfig = Kubeconfig::from_yaml(embedded.kubeconfig().unwrap()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let over_tls = Client::try_from(config).unwrap();
    let clients = [embedded.client(), over_tls];
    (embedded, clients)
}

/// Where the Endpoints and the EndpointSlice of the service `kubernetes` lead.
async fn endpoints_of_the_service(embedded: &Embedded) -> [(String, i32); 2] {
    let endpoints: Kube<Endpoints> = Kube::default_namespaced(embedded.client());
    let endpoints = endpoints.get("kubernetes").await.unwrap();
    let skipped = endpoints.labels()["endpointslice.kubernetes.io/skip-mirror"].as_str();
    assert_eq!(skipped, "true");
    let subsets = endpoints.subsets.unwrap();
    let (addresses, ports) = (&subsets[0].addresses, &subsets[0].ports);
    let address = addresses.as_ref().unwrap()[0].ip.clone();
    let port = ports.as_ref().unwrap()[0].clone();
    assert_eq!((subsets.len(), port.name.as_deref()), (1, Some("https")));
    let slices: Kube<EndpointSlice> = Kube::default_namespaced(embedded.client());
    let of_service = ListParams::default().labels("kubernetes.io/service-name=kubernetes");
    let slices = slices.list(&of_service).await.unwrap().items;
    assert_eq!((slices.len(), slices[0].name_any().as_str()), (1, "kubernetes"));
    assert_eq!(slices[0].labels().len(), 1);
    let slice = slices.into_iter().next().unwrap();
    let of_slice = slice.endpoints.unwrap()[0].addresses[0].clone();
    [(address, port.port), (of_slice, slice.ports.unwrap()[0].port.unwrap())]
}

/// Pods are told the address of the service `kubernetes`: the server is there.
#[tokio::test]
async fn the_api_is_reached_at_the_address_of_its_service() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let options = Options {
            listen: Some("127.0.0.1:0".parse().unwrap()),
            data_dir: Some(folder.path().to_owned()),
            ..Options::default()
        };
        let embedded = Embedded::start(options).await.unwrap();
        let services: Kube<Service> = Kube::default_namespaced(embedded.client());
        let service = services.get("kubernetes").await.unwrap();
        let spec = service.spec.unwrap();
        let port = spec.ports.unwrap()[0].port;
        assert_eq!(port, i32::from(embedded.address().unwrap().port()));
        assert_eq!(service.metadata.annotations, None);
        assert_eq!(
            endpoints_of_the_service(&embedded).await,
            [("127.0.0.1".into(), port), ("127.0.0.1".into(), port)]
        );
        let address = spec.cluster_ip.unwrap();
        let mut kubeconfig = Kubeconfig::from_yaml(embedded.kubeconfig().unwrap()).unwrap();
        let cluster = kubeconfig.clusters[0].cluster.as_mut().unwrap();
        cluster.server = Some(format!("https://{address}:{port}"));
        let config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.unwrap()).unwrap();
        assert_eq!(client.apiserver_version().await.unwrap().minor, "36");
        embedded.shutdown().await;
    }
    // Without a socket there is nothing to be told.
    let embedded = Embedded::start(Options::default()).await.unwrap();
    let services: Kube<Service> = Kube::default_namespaced(embedded.client());
    let service = services.get("kubernetes").await.unwrap();
    assert_eq!(service.annotations()["lockstep.dev/api-address"], "");
}

#[tokio::test]
async fn typed_clients_do_everything() {
    let (embedded, clients) = both_ways().await;
    for client in clients {
        let maps: Kube<ConfigMap> = Kube::default_namespaced(client.clone());
        let created = maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
        assert!(created.uid().is_some());
        assert_eq!(maps.get("a").await.unwrap(), created);
        assert!(maps.get_opt("b").await.unwrap().is_none());
        let patch = json!({"data": {"k": "w"}});
        let merged = maps.patch("a", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
        assert_eq!(merged.data.unwrap()["k"], "w");
        let conflict = maps.replace("a", &PostParams::default(), &created).await.unwrap_err();
        let kube::Error::Api(status) = conflict else { panic!("{conflict}") };
        assert_eq!(status.reason, "Conflict");
        let listed = maps.list(&ListParams::default().limit(500)).await.unwrap();
        assert_eq!(listed.items.len(), 1);
        let metadata = maps.list_metadata(&ListParams::default()).await.unwrap();
        assert_eq!(metadata.items[0].name_any(), "a");
        maps.delete("a", &DeleteParams::background()).await.unwrap();
        let version = client.apiserver_version().await.unwrap();
        assert_eq!(version.minor, "36");
        let all = client.list_core_api_versions().await.unwrap();
        assert_eq!(all.versions, ["v1"]);
    }
    embedded.shutdown().await;
}

#[tokio::test]
async fn dynamic_clients_and_discovery_work() {
    let (embedded, clients) = both_ways().await;
    for client in clients {
        let discovered = kube::Discovery::new(client.clone()).run().await.unwrap();
        let gvk = GroupVersionKind::gvk("batch", "v1", "Job");
        let (resource, capabilities) = discovered.resolve_gvk(&gvk).unwrap();
        assert_eq!(resource.plural, "jobs");
        assert!(capabilities.supports_operation("watch"));
        let resource = ApiResource::erase::<Pod>(&());
        let pods: Kube<DynamicObject> = Kube::namespaced_with(client.clone(), "default", &resource);
        let body = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
        let pod = DynamicObject::new("p", &resource).data(body);
        pods.create(&PostParams::default(), &pod).await.unwrap();
        let status = json!({"status": {"phase": "Running"}});
        let patched =
            pods.patch_status("p", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
        assert_eq!(patched.data["status"]["phase"], "Running");
        pods.delete("p", &DeleteParams::default().grace_period(0)).await.unwrap();
    }
    embedded.shutdown().await;
}

#[tokio::test]
async fn watchers_follow_with_and_without_streaming_lists() {
    let (embedded, clients) = both_ways().await;
    let names = ["list", "stream"];
    for (round, client) in clients.into_iter().enumerate() {
        for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
            let maps: Kube<ConfigMap> = Kube::default_namespaced(client.clone());
            for name in names {
                maps.create(&PostParams::default(), &config_map(name)).await.unwrap();
            }
            let stream = watcher(maps.clone(), config).applied_objects();
            futures::pin_mut!(stream);
            for want in names {
                assert_eq!(stream.try_next().await.unwrap().unwrap().name_any(), want, "{round}");
            }
            maps.create(&PostParams::default(), &config_map("later")).await.unwrap();
            assert_eq!(stream.next().await.unwrap().unwrap().name_any(), "later");
            for name in names.into_iter().chain(["later"]) {
                maps.delete(name, &DeleteParams::default()).await.unwrap();
            }
        }
    }
    embedded.shutdown().await;
}

#[tokio::test]
async fn addresses_of_other_machines_must_be_asked_for() {
    let options = Options { listen: Some("0.0.0.0:0".parse().unwrap()), ..Options::default() };
    let error = Embedded::start(options.clone()).await.err().unwrap();
    assert!(error.to_string().contains("other machines"), "{error}");
    let allowed = Embedded::start(Options { allows_remote: true, ..options }).await.unwrap();
    allowed.shutdown().await;
}
