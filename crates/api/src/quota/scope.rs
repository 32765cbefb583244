//! Which objects a quota is about.

use serde_json::Value;

use super::{
    counted::{Counted, Sort},
    pods::has_deadline,
};
use crate::{
    json::{at, list, text},
    pod,
    strategy::Json,
};

/// One thing that must be true of an object.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    name: String,
    operator: String,
    values: Vec<String>,
}

/// The scopes of a quota: all of them must be true.
pub(super) fn read(quota: &Json) -> Vec<Scope> {
    let texts = |listed: &[Value]| -> Vec<String> {
        listed.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let exists = |name| Scope { name, operator: "Exists".to_owned(), values: Vec::new() };
    let named = texts(list(quota, &["spec", "scopes"])).into_iter().map(exists);
    let selected = list(quota, &["spec", "scopeSelector", "matchExpressions"]).iter();
    let selected = selected.filter_map(Value::as_object).map(|selected| Scope {
        name: text(selected, &["scopeName"]).to_owned(),
        operator: text(selected, &["operator"]).to_owned(),
        values: texts(list(selected, &["values"])),
    });
    named.chain(selected).collect()
}

impl Scope {
    /// Whether it is true of an object.
    pub(super) fn has(&self, counted: &Counted, object: &Json) -> bool {
        match counted.sort() {
            Sort::Pods => self.has_pod(object),
            Sort::Claims => self.name == "VolumeAttributesClass" && self.selects(&classes(object)),
            Sort::Services | Sort::Objects(_) => false,
        }
    }

    fn has_pod(&self, pod: &Json) -> bool {
        match self.name.as_str() {
            "Terminating" => has_deadline(pod),
            "NotTerminating" => !has_deadline(pod),
            "BestEffort" => is_best_effort(pod),
            "NotBestEffort" => !is_best_effort(pod),
            "PriorityClass" => {
                let class = text(pod, &["spec", "priorityClassName"]);
                self.selects(
                    &Some(class).filter(|name| !name.is_empty()).into_iter().collect::<Vec<_>>(),
                )
            }
            "CrossNamespacePodAffinity" => looks_beyond(pod),
            _ => false,
        }
    }

    /// Whether one of the names is meant, or that there is none.
    fn selects(&self, names: &[&str]) -> bool {
        let is_listed = |name: &&str| self.values.iter().any(|value| value == name);
        match self.operator.as_str() {
            "Exists" => !names.is_empty(),
            "DoesNotExist" => names.is_empty(),
            "In" => names.iter().any(is_listed),
            "NotIn" => names.is_empty() || names.iter().any(|name| !is_listed(name)),
            _ => false,
        }
    }
}

fn is_best_effort(pod: &Json) -> bool {
    match text(pod, &["status", "qosClass"]) {
        "" => {
            let empty = Json::new();
            let spec = pod.get("spec").and_then(Value::as_object).unwrap_or(&empty);
            pod::qos_class(spec) == "BestEffort"
        }
        class => class == "BestEffort",
    }
}

/// Whether the place of a pod depends on pods of other namespaces.
fn looks_beyond(pod: &Json) -> bool {
    let is_beyond = |term: &Value| {
        let has_names = term["namespaces"].as_array().is_some_and(|names| !names.is_empty());
        has_names || term.get("namespaceSelector").is_some_and(|selector| !selector.is_null())
    };
    ["podAffinity", "podAntiAffinity"].into_iter().any(|kind| {
        let terms = |when: &str| list(pod, &["spec", "affinity", kind, when]).iter();
        terms("requiredDuringSchedulingIgnoredDuringExecution").any(is_beyond)
            || terms("preferredDuringSchedulingIgnoredDuringExecution")
                .any(|term| is_beyond(&term["podAffinityTerm"]))
    })
}

/// The classes of attributes that a claim has, has had or will have.
fn classes(claim: &Json) -> Vec<&str> {
    let paths: [&[&str]; 3] = [
        &["spec", "volumeAttributesClassName"],
        &["status", "currentVolumeAttributesClassName"],
        &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
    ];
    let named = paths.into_iter().filter_map(|path| at(claim, path)?.as_str());
    named.filter(|name| !name.is_empty()).collect()
}
