//! Queues and jobs in them, as clients write and read them.

use lockstep_local::embedded::Options;
use serde_json::{Value, json};

use super::support::Api;

const GROUP: &str = "/apis/kueue.x-k8s.io";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const QUEUE: &str = "kueue.x-k8s.io/queue-name";
const DEPRECATED: &str = "299 - \"This version is deprecated. Use v1beta2 instead.\"";

fn cluster_queue(version: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("kueue.x-k8s.io/{version}"), "kind": "ClusterQueue",
        "metadata": {"name": "cq"}, "spec": spec,
    })
}

fn local_queue(name: &str) -> Value {
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
        "metadata": {"name": name}, "spec": {"clusterQueue": "cq"},
    })
}

/// A Job that nobody of ours runs.
fn job(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels},
        "spec": {
            "managedBy": "example.com/nobody",
            "template": {"spec": {"restartPolicy": "Never",
                                  "containers": [{"name": "c", "image": "i"}]}},
        },
    })
}

// rule: queueing 1.1.1
#[tokio::test]
async fn both_versions_show_the_same_queue() {
    let api = Api::start().await;
    let group = json!({"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [
        {"name": "cpu", "nominalQuota": "5", "borrowingLimit": "1"}]}]});
    let spec = json!({"cohort": "c", "namespaceSelector": {}, "resourceGroups": [group]});
    let old = format!("{GROUP}/v1beta1/clusterqueues");
    let created = api.post(&old, &cluster_queue("v1beta1", &spec)).await;
    assert_eq!(created.code, 201, "{}", created.text);
    assert_eq!(created.header("warning"), DEPRECATED);
    assert_eq!(created.json()["spec"]["cohort"], "c");
    let new = format!("{GROUP}/v1beta2/clusterqueues/cq");
    let shown = api.get(&new).await;
    assert_eq!(shown.header("warning"), "");
    let shown = shown.json();
    assert_eq!(
        (&shown["spec"]["cohortName"], &shown["spec"]["cohort"]),
        (&json!("c"), &Value::Null)
    );
    let patch = json!({"spec": {"cohortName": "d"}}).to_string();
    assert_eq!(api.patch(&new, "merge", &patch).await.code, 200);
    let listed = api.get(&old).await;
    assert_eq!(listed.header("warning"), DEPRECATED);
    let listed = listed.json();
    assert_eq!(listed["items"][0]["spec"]["cohort"], "d");
    assert_eq!(listed["kind"], "ClusterQueueList");
    let kind = (&json!("kueue.x-k8s.io/v1beta1"), &json!("ClusterQueue"));
    assert_eq!((&listed["items"][0]["apiVersion"], &listed["items"][0]["kind"]), kind);
    let refused = api.get(&format!("{old}?fieldSelector=spec.cohort%3Dd")).await;
    let words = "field label not supported: spec.cohort".to_owned();
    assert_eq!((refused.code, refused.message()), (400, words));
    let mut again = cluster_queue("v1beta1", &spec);
    let refused = api.put(&format!("{old}/cq"), &again).await;
    assert_eq!(refused.code, 422, "{}", refused.text);
    let words = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert!(refused.message().ends_with(words), "{}", refused.text);
    again["metadata"]["resourceVersion"] =
        listed["items"][0]["metadata"]["resourceVersion"].clone();
    let again = api.put(&format!("{old}/cq"), &again).await;
    assert_eq!(again.code, 200, "{}", again.text);
    assert_eq!(api.get(&new).await.json()["spec"]["cohortName"], "c");
    let bad = json!({"spec": {"cohort": null}}).to_string();
    let refused = api.patch(&format!("{old}/cq"), "merge", &bad).await;
    assert_eq!(refused.code, 422);
    assert_eq!(
        refused.message(),
        "ClusterQueue.kueue.x-k8s.io \"cq\" is invalid: spec: Invalid value: borrowingLimit must \
         be nil when cohort is empty"
    );
    let groups = api.get("/apis/kueue.x-k8s.io").await.json();
    assert_eq!(groups["preferredVersion"]["version"], "v1beta2");
}

#[tokio::test]
async fn workloads_are_selected_by_the_queue_that_admitted_them() {
    let api = Api::start().await;
    let path = format!("{GROUP}/v1beta2/namespaces/default/workloads");
    let pods = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
    for name in ["a", "b"] {
        let workload = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            "metadata": {"name": name}, "spec": {"podSets": [{"template": pods}]},
        });
        let created = api.post(&path, &workload).await;
        assert_eq!(created.code, 201, "{}", created.text);
    }
    let status = json!({"status": {"admission": {"clusterQueue": "cq", "podSetAssignments": [
        {"name": "main", "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "1"}, "count": 1}]}}});
    let patched = api.patch(&format!("{path}/b/status"), "merge", &status.to_string()).await;
    assert_eq!(patched.code, 200, "{}", patched.text);
    for version in ["v1beta1", "v1beta2"] {
        let selected = format!(
            "{GROUP}/{version}/namespaces/default/workloads?\
             fieldSelector=status.admission.clusterQueue%3Dcq"
        );
        assert_eq!(api.get(&selected).await.names(), ["b"], "{version}");
    }
}

// rule: queueing 3.1.3
#[tokio::test]
async fn jobs_that_name_a_queue_wait() {
    let api = Api::start().await;
    let plain = api.post(JOBS, &job("plain", &json!({}))).await.json();
    assert_eq!(plain["spec"]["suspend"], false, "stock Kubernetes");
    let queued = api.post(JOBS, &job("queued", &json!({QUEUE: "q"}))).await.json();
    assert_eq!(queued["spec"]["suspend"], true);
    let queues = format!("{GROUP}/v1beta2/namespaces/default/localqueues");
    assert_eq!(api.post(&queues, &local_queue("default")).await.code, 201);
    let class = json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
                       "metadata": {"name": "default"}, "value": 5});
    let classes = format!("{GROUP}/v1beta2/workloadpriorityclasses");
    assert_eq!(api.post(&classes, &class).await.code, 201);
    let given = api.post(JOBS, &job("given", &json!({}))).await.json();
    let labels = &given["metadata"]["labels"];
    assert_eq!(labels[QUEUE], "default");
    assert_eq!(labels["kueue.x-k8s.io/priority-class"], "default");
    assert_eq!(given["spec"]["suspend"], true);
    let set = json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "js"},
        "spec": {"managedBy": "example.com/nobody", "replicatedJobs": []},
    });
    let sets = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets";
    let set = api.post(sets, &set).await.json();
    assert_eq!(set["spec"]["suspend"], true);
    let mut child = job("child", &json!({}));
    child["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "js",
        "uid": set["metadata"]["uid"], "controller": true,
    }]);
    let child = api.post(JOBS, &child).await.json();
    assert_eq!(child["spec"]["suspend"], false, "it waits for its set");
    assert_eq!(child["metadata"]["labels"][QUEUE], Value::Null);
    let mine = job("s", &json!({QUEUE: "q"}));
    let system = api.post("/apis/batch/v1/namespaces/kube-system/jobs", &mine).await.json();
    assert_eq!(system["spec"]["suspend"], false, "nobody queues the system");
}

// rule: queueing 3.1.3
#[tokio::test]
async fn all_jobs_may_be_given_one_queue() {
    let queue_for_all = Some("machine".to_owned());
    let api = Api::with_options(Options { queue_for_all, ..Options::default() }).await;
    let given = api.post(JOBS, &job("j", &json!({}))).await.json();
    assert_eq!(given["metadata"]["labels"][QUEUE], "machine");
    assert_eq!(given["spec"]["suspend"], true);
    let named = api.post(JOBS, &job("k", &json!({QUEUE: "mine"}))).await.json();
    assert_eq!(named["metadata"]["labels"][QUEUE], "mine");
}

// rule: queueing 3.1.4
#[tokio::test]
async fn the_queue_of_a_job_does_not_change_while_it_runs() {
    let api = Api::start().await;
    let refused = api.post(JOBS, &job("j", &json!({QUEUE: "Q"}))).await;
    assert_eq!(refused.code, 422);
    assert!(refused.message().contains("metadata.labels[kueue.x-k8s.io/queue-name]"));
    assert_eq!(api.post(JOBS, &job("j", &json!({}))).await.code, 201);
    let label = json!({"metadata": {"labels": {QUEUE: "q"}}}).to_string();
    let path = format!("{JOBS}/j");
    let refused = api.patch(&path, "merge", &label).await;
    assert_eq!(
        refused.message(),
        "Job.batch \"j\" is invalid: metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value: \
         \"q\": field is immutable"
    );
    let both = json!({"metadata": {"labels": {QUEUE: "q"}}, "spec": {"suspend": true}}).to_string();
    let taken = api.patch(&path, "merge", &both).await;
    assert_eq!(taken.code, 200, "{}", taken.text);
}
