//! The operator itself, as a Deployment, and the Services in front of it.

use serde_json::{Value, json};

use super::{HUB, METRICS, NAME, Options, labels, metadata};

/// Where each of them listens.
const HUB_PORT: u16 = 7411;
const METRICS_PORT: u16 = 8080;
const HEALTH_PORT: u16 = 8081;

/// Nobody in particular, as images without users have it.
const USER: i64 = 65532;

/// All of it.
pub(super) fn documents(options: &Options) -> Vec<Value> {
    let mut documents = Vec::new();
    if options.has_in_place {
        documents.push(service((HUB, "agents", HUB_PORT), options));
    }
    documents.push(service((METRICS, "metrics", METRICS_PORT), options));
    documents.push(deployment(options));
    documents
}

/// A Service in front of all operators. Agents that come to one that does not lead are sent away,
/// and try again until they come to the one that does.
fn service((name, port_name, port): (&str, &str, u16), options: &Options) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name, options),
        "spec": {
            "selector": labels(),
            "ports": [{"name": port_name, "port": port, "targetPort": port_name}],
        },
    })
}

fn deployment(options: &Options) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(NAME, options),
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": labels()},
            "template": {"metadata": {"labels": labels()}, "spec": pod(options)},
        },
    })
}

fn pod(options: &Options) -> Value {
    json!({
        "serviceAccountName": NAME,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        // Of several on one node none is left when it goes.
        "topologySpreadConstraints": [{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels()},
        }],
        // A signal ends it at once, but for the Lease that it gives back.
        "terminationGracePeriodSeconds": 10,
        "containers": [container(options)],
    })
}

fn container(options: &Options) -> Value {
    let mut ports = vec![
        json!({"name": "metrics", "containerPort": METRICS_PORT}),
        json!({"name": "health", "containerPort": HEALTH_PORT}),
    ];
    if options.has_in_place {
        ports.push(json!({"name": "agents", "containerPort": HUB_PORT}));
    }
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "health"}});
    json!({
        "name": "operator",
        "image": options.image,
        "args": arguments(options),
        "ports": ports,
        "livenessProbe": probe("/healthz"),
        "readinessProbe": probe("/readyz"),
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        },
    })
}

/// The words after `lockstep`, which is the entry point of the image.
pub(super) fn arguments(options: &Options) -> Vec<String> {
    let mut words = vec![
        "operator".to_owned(),
        // Also for one alone: the next is there before it has gone.
        "--leader-elect".to_owned(),
        format!("--metrics-bind-address=:{METRICS_PORT}"),
        format!("--health-probe-bind-address=:{HEALTH_PORT}"),
    ];
    if options.has_in_place {
        let namespace = &options.namespace;
        words.push(format!("--restart-address={HUB}.{namespace}.svc:{HUB_PORT}"));
        words.push(format!("--agent-image={}", options.image));
    }
    words
}
