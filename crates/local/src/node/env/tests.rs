use serde_json::{Value, json};

use super::*;

fn sources() -> Sources {
    let object = |value: Value| serde_json::from_value(value).unwrap();
    let mut sources = Sources { pod_ip: "127.64.0.2".into(), ..Sources::default() };
    sources.node.host_ip = "127.0.0.1".into();
    sources.node.allocatable =
        serde_json::from_value(json!({"cpu": "2", "memory": "1Gi"})).unwrap();
    sources.config_maps.insert("cm".into(), object(json!({"data": {"a": "1", "b c": "2"}})));
    let secret = serde_json::from_value(json!({"data": {"key": "c2VjcmV0"}})).unwrap();
    sources.secrets.insert("s".into(), secret);
    let service = json!({"metadata": {"name": "my-db", "namespace": "ns"},
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}, {"name": "dns-x", "port": 53, "protocol": "UDP"}]}});
    let headless = json!({"metadata": {"name": "gang", "namespace": "ns"},
        "spec": {"clusterIP": "None", "ports": [{"port": 80}]}});
    let api = json!({"metadata": {"name": "kubernetes", "namespace": "default"},
        "spec": {"clusterIP": "127.0.0.1", "ports": [{"name": "https", "port": 6443}]}});
    sources.services = serde_json::from_value(json!([service, headless, api])).unwrap();
    sources
}

fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "u-1",
            "labels": {"app": "x", "z": "say \"hi\"\n"}, "annotations": {"a/b": "c"}},
        "spec": spec,
    }))
    .unwrap()
}

fn built(container: Value) -> Result<Environment, ConfigError> {
    let mut with_name = container;
    with_name["name"] = json!("main");
    let pod = pod(json!({"nodeName": "n", "serviceAccountName": "sa", "containers": [with_name,
        {"name": "other", "resources": {"limits": {"memory": "1500Ki"}}}]}));
    build(&pod, &pod.spec.as_ref().unwrap().containers[0], &sources(), &[])
}

fn value(environment: &Environment, name: &str) -> Option<String> {
    environment.variables.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone())
}

#[test]
fn every_source_of_a_value_is_honoured() {
    let field = |path: &str| json!({"fieldRef": {"fieldPath": path}});
    let resource = |resource: &str, divisor: &str| json!({"resourceFieldRef": {"resource": resource, "divisor": divisor}});
    let cases = [
        (field("metadata.name"), Some("p")),
        (field("metadata.namespace"), Some("ns")),
        (field("metadata.uid"), Some("u-1")),
        (field("metadata.labels['app']"), Some("x")),
        (field("metadata.labels['none']"), Some("")),
        (field("metadata.annotations['a/b']"), Some("c")),
        (field("metadata.labels"), Some("app=\"x\"\nz=\"say \\\"hi\\\"\\n\"")),
        (field("spec.nodeName"), Some("n")),
        (field("spec.serviceAccountName"), Some("sa")),
        (field("status.hostIP"), Some("127.0.0.1")),
        (field("status.podIPs"), Some("127.64.0.2")),
        (resource("limits.cpu", "1m"), Some("300")),
        (resource("limits.cpu", "0"), Some("1")),
        (resource("requests.cpu", "100m"), Some("2")),
        (resource("limits.memory", "1Mi"), Some("1024")),
        (resource("requests.memory", "1"), Some("0")),
        (
            json!({"resourceFieldRef": {"containerName": "other", "resource": "limits.memory",
            "divisor": "1Mi"}}),
            Some("2"),
        ),
        (json!({"configMapKeyRef": {"name": "cm", "key": "a"}}), Some("1")),
        (json!({"configMapKeyRef": {"name": "cm", "key": "no", "optional": true}}), None),
        (json!({"configMapKeyRef": {"name": "no", "key": "a", "optional": true}}), None),
        (json!({"secretKeyRef": {"name": "s", "key": "key"}}), Some("secret")),
    ];
    for (from, want) in cases {
        let environment = built(json!({
            "env": [{"name": "V", "valueFrom": from}],
            "resources": {"limits": {"cpu": "300m"}, "requests": {"cpu": "110m"}},
        }));
        assert_eq!(value(&environment.unwrap(), "V").as_deref(), want, "{from}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let cases = [
        (
            json!({"env": [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "no", "key": "a"}}}]}),
            "configmap \"no\" not found",
        ),
        (
            json!({"env": [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "x"}}}]}),
            "couldn't find key x in ConfigMap ns/cm",
        ),
        (
            json!({"env": [{"name": "V", "valueFrom": {"secretKeyRef": {"name": "s", "key": "x"}}}]}),
            "couldn't find key x in Secret ns/s",
        ),
        (json!({"envFrom": [{"secretRef": {"name": "no"}}]}), "secret \"no\" not found"),
        (
            json!({"env": [{"name": "V", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]}),
            "unsupported fieldPath: spec.x",
        ),
    ];
    for (container, want) in cases {
        assert_eq!(built(container).unwrap_err().to_string(), want);
    }
}

#[test]
fn later_entries_override_and_refer_to_earlier_ones() {
    let environment = built(json!({
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "cm"}},
            {"configMapRef": {"name": "none", "optional": true}}],
        "env": [
            {"name": "A", "value": "1"},
            {"name": "A", "value": "$(A)2"},
            {"name": "P_a", "value": "[$(P_a)]"},
            {"name": "HOST", "value": "$(MY_DB_SERVICE_HOST) $$(A) $(LATER)"},
            {"name": "LATER", "value": "x"},
            {"name": "EMPTY"},
        ],
    }))
    .unwrap();
    let cases = [
        ("A", "12"),
        ("P_a", "[1]"),
        ("P_b c", "2"),
        ("HOST", "10.0.0.1 $(A) $(LATER)"),
        ("EMPTY", ""),
        ("MY_DB_SERVICE_PORT", "80"),
        ("MY_DB_SERVICE_PORT_DNS_X", "53"),
        ("MY_DB_PORT", "tcp://10.0.0.1:80"),
        ("MY_DB_PORT_53_UDP", "udp://10.0.0.1:53"),
        ("MY_DB_PORT_53_UDP_PROTO", "udp"),
        ("KUBERNETES_SERVICE_HOST", "127.0.0.1"),
    ];
    for (name, want) in cases {
        assert_eq!(value(&environment, name).as_deref(), Some(want), "{name}");
    }
    assert_eq!(value(&environment, "GANG_SERVICE_HOST"), None);
    assert_eq!(environment.expand("$(A) $(LATER) $(NO)"), "12 x $(NO)");
}

#[test]
fn base_comes_first_and_impossible_names_are_left_out() {
    let looked = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
    let base = base(looked, "p-0");
    let container: Container = serde_json::from_value(json!({"name": "main",
        "envFrom": [{"prefix": "=", "configMapRef": {"name": "cm"}}],
        "env": [{"name": "LANG", "value": "de"}]}))
    .unwrap();
    let pod = pod(json!({"containers": [], "enableServiceLinks": false}));
    let environment = build(&pod, &container, &sources(), &base).unwrap();
    let cases = [("HOME", "/home/me"), ("LANG", "de"), ("TMPDIR", "/tmp"), ("HOSTNAME", "p-0")];
    for (name, want) in cases {
        assert_eq!(value(&environment, name).as_deref(), Some(want), "{name}");
    }
    assert_eq!(environment.warnings.len(), 2);
    assert_eq!(value(&environment, "MY_DB_SERVICE_HOST"), None);
    assert!(value(&environment, "KUBERNETES_SERVICE_HOST").is_some());
}

#[test]
fn commands_expand_and_must_be_there() {
    let container: Container = serde_json::from_value(json!({"name": "main", "image": "busybox",
        "command": ["echo", "$(A)"], "args": ["$$(A)", "$(B)"],
        "env": [{"name": "A", "value": "x"}]}))
    .unwrap();
    let pod = pod(json!({"containers": []}));
    let environment = build(&pod, &container, &Sources::default(), &[]).unwrap();
    assert_eq!(command(&container, &environment).unwrap(), ["echo", "x", "$(A)", "$(B)"]);
    let args_only = Container { command: None, ..container };
    assert_eq!(command(&args_only, &environment).unwrap(), ["$(A)", "$(B)"]);
    let bare = Container { args: None, ..args_only };
    let error = command(&bare, &environment).unwrap_err().to_string();
    assert!(error.contains("--image-command busybox=CMD"), "{error}");
}

#[test]
fn the_api_server_is_where_its_service_says() {
    let api = |annotations: Value| {
        let mut sources = sources();
        let service = json!({"metadata": {"name": "kubernetes", "namespace": "default",
                "annotations": annotations},
            "spec": {"clusterIP": "127.32.0.1", "ports": [{"name": "https", "port": 443}]}});
        sources.services = vec![serde_json::from_value(service).unwrap()];
        let pod = pod(json!({"containers": [{"name": "main"}]}));
        let container = &pod.spec.as_ref().unwrap().containers[0];
        let built = build(&pod, container, &sources, &[]).unwrap();
        ["HOST", "PORT", "PORT_HTTPS"]
            .map(|name| value(&built, &format!("KUBERNETES_SERVICE_{name}")))
    };
    let some = |host: &str, port: &str| [host, port, port].map(|text| Some(text.to_owned()));
    assert_eq!(api(json!({})), some("127.32.0.1", "443"));
    let elsewhere = json!({"lockstep.dev/api-address": "127.0.0.1:6443"});
    assert_eq!(api(elsewhere), some("127.0.0.1", "6443"));
    assert_eq!(api(json!({"lockstep.dev/api-address": ""})), [const { None }; 3]);
}
