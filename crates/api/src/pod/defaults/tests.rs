//! What a server answers for a pod of few words.

use serde_json::{Value, json};

use super::*;

fn filled(spec: Value) -> Value {
    let mut pod = json!({"spec": spec}).as_object().unwrap().clone();
    fill_pod(&mut pod);
    let once = pod.clone();
    fill_pod(&mut pod);
    assert_eq!(pod, once, "filling in again changed something");
    pod["spec"].clone()
}

#[test]
fn a_pod_of_few_words() {
    assert_eq!(
        filled(json!({"containers": [{"name": "c", "image": "busybox"}]})),
        json!({
            "containers": [{
                "name": "c",
                "image": "busybox",
                "imagePullPolicy": "Always",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": true,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        })
    );
}

#[test]
fn containers_are_filled_in() {
    let spec = filled(json!({"hostNetwork": true, "serviceAccount": "sa", "containers": [{
        "image": "busybox:1.36",
        "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 82, "protocol": "UDP"}],
        "env": [
            {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        ],
        "resources": {"limits": {"cpu": 2, "memory": "1024Mi", "x.io/y": "0.0001"}, "requests": {"cpu": "0.5"}},
        "livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 0},
        "readinessProbe": {"grpc": {"port": 1}, "timeoutSeconds": 7},
        "lifecycle": {"preStop": {"httpGet": {"port": 1, "path": "/x"}}},
    }]}));
    assert_eq!(spec["serviceAccountName"], "sa");
    let c = &spec["containers"][0];
    assert_eq!(c["imagePullPolicy"], "IfNotPresent");
    assert_eq!(
        c["ports"],
        json!([
            {"containerPort": 80, "hostPort": 80, "protocol": "TCP"},
            {"containerPort": 81, "hostPort": 82, "protocol": "UDP"},
        ])
    );
    assert_eq!(c["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1");
    assert_eq!(c["env"][1]["valueFrom"]["resourceFieldRef"]["divisor"], "0");
    assert_eq!(
        c["resources"],
        json!({
            "limits": {"cpu": "2", "memory": "1Gi", "x.io/y": "1m"},
            "requests": {"cpu": "500m", "memory": "1Gi", "x.io/y": "1m"},
        })
    );
    assert_eq!(
        c["livenessProbe"],
        json!({
            "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
            "periodSeconds": 10, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3,
        })
    );
    assert_eq!(c["readinessProbe"]["grpc"], json!({"port": 1, "service": ""}));
    assert_eq!(c["readinessProbe"]["timeoutSeconds"], 7);
    assert_eq!(
        c["lifecycle"]["preStop"]["httpGet"],
        json!({"port": 1, "path": "/x", "scheme": "HTTP"})
    );
}

#[test]
fn volumes_are_filled_in() {
    let spec = filled(json!({"volumes": [
        {"name": "a"},
        {"name": "b", "secret": {"secretName": "s"}},
        {"name": "c", "configMap": {"name": "m", "defaultMode": 0}},
        {"name": "d", "projected": {"sources": [
            {"serviceAccountToken": {"path": "t"}},
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        ]}},
        {"name": "e", "hostPath": {"path": "/x"}},
        {"name": "f", "emptyDir": {"sizeLimit": "1024Mi"}},
        {"name": "g", "image": {"reference": "x:1"}},
        {"name": "h", "iscsi": {}},
    ]}));
    assert_eq!(
        spec["volumes"],
        json!([
            {"name": "a", "emptyDir": {}},
            {"name": "b", "secret": {"secretName": "s", "defaultMode": 420}},
            {"name": "c", "configMap": {"name": "m", "defaultMode": 0}},
            {"name": "d", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
                {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}]}},
            ]}},
            {"name": "e", "hostPath": {"path": "/x", "type": ""}},
            {"name": "f", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "g", "image": {"reference": "x:1", "pullPolicy": "IfNotPresent"}},
            {"name": "h", "iscsi": {"iscsiInterface": "default"}},
        ])
    );
}

#[test]
fn templates_keep_limits_and_requests_apart() {
    let mut spec = json!({"containers": [{"resources": {"limits": {"cpu": "1"}}}]})
        .as_object()
        .unwrap()
        .clone();
    fill_pod_spec(&mut spec);
    assert_eq!(spec["containers"][0]["resources"], json!({"limits": {"cpu": "1"}}));
    assert!(!spec.contains_key("enableServiceLinks"));
}

#[test]
fn a_pods_own_requests_follow_its_containers() {
    let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
    let mut sidecar = container("1");
    sidecar["restartPolicy"] = json!("Always");
    let spec = filled(json!({
        "resources": {"limits": {"cpu": "8", "memory": "1Gi"}},
        "containers": [container("1"), container("500m")],
        "initContainers": [sidecar, container("3")],
    }));
    assert_eq!(
        spec["resources"],
        json!({"limits": {"cpu": "8", "memory": "1Gi"}, "requests": {"cpu": "4", "memory": "1Gi"}})
    );
}
