//! Kinds that are known by name only, and numbers that are stored nowhere.

use serde_json::json;

use super::support::{Api, PODS, pod};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

#[tokio::test]
async fn kinds_that_are_not_run_are_refused_with_what_to_use_instead() {
    let api = Api::start().await;
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
    let refused = api.post(DEPLOYMENTS, &web).await;
    assert_eq!(refused.code, 405, "{}", refused.text);
    assert_eq!(refused.json()["reason"], "MethodNotAllowed");
    let words = "create is not supported on resources of kind \"deployments.apps\": this cluster \
                 runs jobs and keeps no set of replicas alive: use a Job or a JobSet for workers";
    assert!(refused.message().starts_with(words), "{}", refused.message());
    let path = format!("{DEPLOYMENTS}/web?fieldManager=me");
    let applied = api.patch(&path, "application/apply-patch+yaml", &web.to_string()).await;
    assert_eq!((applied.code, applied.message()), (405, refused.message()));
    // A body in protobuf, of a kind that nobody can read here, is refused with the same words.
    let protobuf = [("content-type", "application/vnd.kubernetes.protobuf")];
    let refused = api.with("POST", DEPLOYMENTS, &protobuf, "k8s\0").await;
    assert_eq!((refused.code, refused.message()), (405, applied.message()));
}

/// Whatever a cluster elsewhere has from the start is known here, if only by name.
#[tokio::test]
async fn all_kinds_of_kubernetes_are_found() {
    let api = Api::start().await;
    for (group_version, plural, kind) in [
        ("v1", "podtemplates", "PodTemplate"),
        ("admissionregistration.k8s.io/v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
        ("apiregistration.k8s.io/v1", "apiservices", "APIService"),
        ("apps/v1", "controllerrevisions", "ControllerRevision"),
        ("certificates.k8s.io/v1", "certificatesigningrequests", "CertificateSigningRequest"),
        ("flowcontrol.apiserver.k8s.io/v1", "flowschemas", "FlowSchema"),
        ("networking.k8s.io/v1", "servicecidrs", "ServiceCIDR"),
        ("node.k8s.io/v1", "runtimeclasses", "RuntimeClass"),
        ("resource.k8s.io/v1", "resourceclaims", "ResourceClaim"),
        ("storage.k8s.io/v1", "csidrivers", "CSIDriver"),
    ] {
        let root = if group_version == "v1" { "/api" } else { "/apis" };
        let listed = api.get(&format!("{root}/{group_version}")).await.json();
        let resources = listed["resources"].as_array().unwrap();
        let found = resources.iter().find(|resource| resource["name"] == plural).unwrap();
        assert_eq!(found["kind"], kind);
        let place = if found["namespaced"] == true { "/namespaces/default" } else { "" };
        let path = format!("{root}/{group_version}{place}/{plural}");
        assert_eq!(api.get(&path).await.names(), [""; 0], "{path}");
        let body = json!({"apiVersion": group_version, "kind": kind, "metadata": {"name": "a"}});
        let refused = api.post(&path, &body).await;
        assert_eq!(refused.code, 405, "{path}: {}", refused.text);
    }
}

#[tokio::test]
async fn there_are_no_objects_of_kinds_that_are_refused() {
    let api = Api::start().await;
    assert_eq!(api.get(DEPLOYMENTS).await.names(), [""; 0]);
    let missing = api.get(&format!("{DEPLOYMENTS}/web")).await;
    assert_eq!(
        (missing.code, missing.message()),
        (404, "deployments.apps \"web\" not found".into())
    );
    let patched = api.patch(&format!("{DEPLOYMENTS}/web"), "merge", "{}").await;
    assert_eq!(patched.code, 404);
    assert_eq!(api.delete(&format!("{DEPLOYMENTS}/web"), "").await.code, 404);
    assert_eq!(api.delete(DEPLOYMENTS, "").await.code, 200);
    let watch = format!("{DEPLOYMENTS}?watch=true&timeoutSeconds=1");
    assert_eq!(api.watch(&watch, &[]).await.next().await, None);
    // Nor are they asked for by those who ask for everything.
    let apps = api.get("/apis/apps/v1").await.json();
    let resources = apps["resources"].as_array().unwrap();
    assert_eq!(resources.len(), 5);
    assert!(resources.iter().all(|resource| resource.get("categories").is_none()), "{apps}");
}

#[tokio::test]
async fn what_does_not_run_uses_nothing() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await;
    let usage = "/apis/metrics.k8s.io/v1beta1";
    let pods = api.get(&format!("{usage}/namespaces/default/pods")).await;
    assert_eq!((pods.json()["kind"].as_str(), pods.names().len()), (Some("PodMetricsList"), 0));
    let missing = api.get(&format!("{usage}/namespaces/default/pods/p")).await;
    let words = "pods.metrics.k8s.io \"p\" not found";
    assert_eq!((missing.code, missing.message()), (404, words.to_owned()));
    assert_eq!(api.post(&format!("{usage}/namespaces/default/pods"), &pod("p")).await.code, 405);
}
