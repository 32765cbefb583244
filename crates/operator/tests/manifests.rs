//! What a cluster is given to run an operator: an API server takes it, and it is documented.

use std::path::Path;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use lockstep_api::decode::{self, FieldValidation};
use lockstep_api::strategy::WriteContext;
use lockstep_api::{builtin, meta};
use lockstep_operator::manifests::{Options, Part};
use serde_json::{Value, json};

fn everything() -> [Options; 2] {
    let bare = Options { replicas: 1, has_in_place: false, ..Options::default() };
    [Options::default(), bare]
}

/// What an API server would say of it; nothing, if it takes it.
fn judged(document: &Value) -> Vec<String> {
    let registry = builtin::registry();
    let (api_version, kind) = (&document["apiVersion"], &document["kind"]);
    let api_version = api_version.as_str().expect("it says of which version it is");
    let kind = kind.as_str().expect("it says what it is");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = registry.by_kind(group, version, kind).expect(kind);
    let body = serde_json::to_vec(document).expect("it can be written");
    let mut object = match decode::object(resource, &body, FieldValidation::Strict) {
        Ok(decoded) => decoded.object,
        Err(status) => return vec![status.message],
    };
    let strategy = &resource.strategy;
    let uid = "00000000-0000-4000-8000-000000000000".to_owned();
    object["metadata"]["uid"] = uid.clone().into();
    strategy.fill_defaults(&mut object);
    let context = WriteContext { now: Timestamp::UNIX_EPOCH, uid, user: String::new() };
    strategy.prepare_create(&mut object, &context);
    let names = |name: &str, is_prefix: bool| strategy.validate_name(name, is_prefix);
    let mut faults = meta::validate_create(&object, resource.is_namespaced(), names);
    faults.extend(strategy.validate_create(&object));
    faults.extend(strategy.lint(&object));
    let faults = faults.iter().map(ToString::to_string);
    faults.chain(strategy.warnings(&object, None)).collect()
}

#[test]
fn an_api_server_takes_every_document() {
    for options in everything() {
        for document in Part::ALL.iter().flat_map(|part| part.documents(&options)) {
            if document["kind"] == "Deployment" {
                continue;
            }
            let faults = judged(&document);
            assert!(faults.is_empty(), "{} {}: {faults:?}", document["kind"], document["metadata"]);
        }
    }
}

/// Embedded clusters have no Deployments; they have pods.
#[test]
fn the_deployment_is_one_and_its_pod_is_restricted() {
    for options in everything() {
        let documents = Part::Operator.documents(&options);
        let deployment =
            documents.iter().find(|document| document["kind"] == "Deployment").unwrap();
        let typed: Deployment = serde_json::from_value(deployment.clone()).unwrap();
        assert_eq!(&serde_json::to_value(&typed).unwrap(), deployment, "a field nobody knows");
        let template = &deployment["spec"]["template"];
        assert_eq!(deployment["spec"]["selector"]["matchLabels"], template["metadata"]["labels"]);
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a", "namespace": "b", "labels": template["metadata"]["labels"]},
            "spec": template["spec"],
        });
        assert_eq!(judged(&pod), Vec::<String>::new());
        // What the profile `restricted` of Pod Security asks for.
        let (of_pod, container) = (&pod["spec"]["securityContext"], &pod["spec"]["containers"][0]);
        assert_eq!(of_pod["runAsNonRoot"], true);
        assert_eq!(of_pod["seccompProfile"]["type"], "RuntimeDefault");
        assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
        assert_eq!(container["securityContext"]["capabilities"], json!({"drop": ["ALL"]}));
    }
}

#[test]
fn services_lead_to_ports_that_there_are() {
    let documents = Part::Operator.documents(&Options::default());
    let deployment = documents.last().unwrap();
    let ports = &deployment["spec"]["template"]["spec"]["containers"][0]["ports"];
    let has = |name: &Value| ports.as_array().unwrap().iter().any(|port| port["name"] == *name);
    let services: Vec<_> = documents.iter().filter(|one| one["kind"] == "Service").collect();
    assert_eq!(services.len(), 2);
    for service in services {
        assert!(has(&service["spec"]["ports"][0]["targetPort"]), "{service}");
        let selected = &deployment["spec"]["selector"]["matchLabels"];
        assert_eq!(&service["spec"]["selector"], selected);
    }
}

/// The table of the documentation has a row for each rule, in this order.
#[test]
fn rights_are_documented() {
    let list = |rule: &Value, name: &str| -> Vec<String> {
        let items = rule[name].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let row = |rule: &Value| {
        let code =
            |word: &String| if word.is_empty() { String::new() } else { format!("`{word}`") };
        let (group, resources) = (list(rule, "apiGroups"), list(rule, "resources"));
        let resources: Vec<String> = resources.iter().map(code).collect();
        [code(&group[0]), resources.join(", "), list(rule, "verbs").join(", ")]
    };
    let documents = Part::Rights.documents(&Options::default());
    let rules = documents.iter().flat_map(|document| document["rules"].as_array());
    let want: Vec<[String; 3]> = rules.flatten().map(row).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    let documented = std::fs::read_to_string(path).unwrap();
    let (_, section) = documented.split_once("\n## Rights of the operator\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let found: Vec<[String; 3]> = rows
        .map(|row| {
            let mut cells = row.split('|').skip(1).map(|cell| cell.trim().to_owned());
            std::array::from_fn(|_| cells.next().unwrap_or_default())
        })
        .collect();
    assert_eq!(found, want);
}
