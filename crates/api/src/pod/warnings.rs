//! What a user should know about an accepted pod.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::core::v1::{Affinity, Container, NodeSelectorTerm, PodSpec},
    apimachinery::pkg::api::resource::Quantity as Written,
};
use serde::Deserialize;
use serde_json::Value;

use super::validation::{for_each_container, list, text};
use crate::{field::Path, json, names, quantity::Quantity, strategy::Json};

mod overlap;
mod ports;
mod volume;

const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
const SYSCTLS: &str = "non-functional in v1.11+; use the \"sysctls\" field instead";
const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// What a user should know about a new Pod.
pub(super) fn warnings_for_pod(pod: &Json) -> Vec<String> {
    let mut warnings = Vec::new();
    let faults = names::dns1123_label(json::text(pod, &["metadata", "name"]));
    if !faults.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising \
             behavior; a DNS label is recommended: [{}]",
            faults.join(" ")
        ));
    }
    warnings.extend(warnings_for_template(pod, ""));
    warnings
}

/// What a user should know about an accepted pod template at `path`.
pub fn warnings_for_template(template: &Json, path: &str) -> Vec<String> {
    let path = Path::new(path);
    let spec = template.get("spec").unwrap_or(&Value::Null);
    // What cannot be read was refused before.
    let Ok(spec) = PodSpec::deserialize(spec) else { return Vec::new() };
    let empty = Json::new();
    let annotations = json::at(template, &["metadata", "annotations"]).and_then(Value::as_object);
    let annotations = annotations.unwrap_or(&empty);
    let (spec_path, notes_path) = (path.child("spec"), path.child("metadata").child("annotations"));
    let mut warnings = placement(&spec, &spec_path);
    let obsolete = [
        (
            "scheduler.alpha.kubernetes.io/critical-pod",
            "non-functional in v1.16+; use the \"priorityClassName\" field instead",
        ),
        ("security.alpha.kubernetes.io/sysctls", SYSCTLS),
        ("security.alpha.kubernetes.io/unsafe-sysctls", SYSCTLS),
    ];
    for (key, why) in obsolete {
        if annotations.contains_key(key) {
            warnings.push(format!("{}: {why}", notes_path.key(key)));
        }
    }
    warnings.extend(volume::warnings(list(&spec.volumes), &spec_path.child("volumes")));
    warnings.extend(overlap::warnings(list(&spec.volumes)));
    warnings.extend(repeated_names(&spec, &spec_path));
    if let Some(overhead) = &spec.overhead {
        warnings.extend(fractions(overhead, &spec_path.child("overhead")));
    }
    let has_profile = spec.security_context.as_ref().is_some_and(|it| it.seccomp_profile.is_some());
    if !has_profile && annotations.contains_key(SECCOMP_POD) {
        warnings.push(format!("{}: {SECCOMP}", notes_path.key(SECCOMP_POD)));
    }
    for_each_container(&spec, &spec_path, |container, path| {
        let key = format!("{SECCOMP_CONTAINER}{}", container.name);
        let context = container.security_context.as_ref();
        let has_profile = context.is_some_and(|it| it.seccomp_profile.is_some());
        if !has_profile && annotations.contains_key(&key) {
            warnings.push(format!("{}: {SECCOMP}", notes_path.key(&key)));
        }
        warnings.extend(of_container(container, path));
    });
    warnings.extend(ports::warnings(&spec, &spec_path));
    if spec.termination_grace_period_seconds.is_some_and(|seconds| seconds < 0) {
        warnings.push(format!(
            "{}: must be >= 0; negative values are invalid and will be treated as 1",
            spec_path.child("terminationGracePeriodSeconds")
        ));
    }
    if let Some(affinity) = &spec.affinity {
        warnings.extend(selectors(affinity, &spec_path.child("affinity")));
    }
    warnings.extend(addresses(&spec, &spec_path));
    warnings
}

fn placement(spec: &PodSpec, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for key in spec.node_selector.iter().flatten().map(|(key, _)| key) {
        if let Some(why) = obsolete_label(key) {
            warnings.push(format!("{}: {why}", path.child("nodeSelector").key(key)));
        }
    }
    let affinity = spec.affinity.as_ref().and_then(|it| it.node_affinity.as_ref());
    if let Some(affinity) = affinity {
        let path = path.child("affinity").child("nodeAffinity");
        let required = affinity.required_during_scheduling_ignored_during_execution.as_ref();
        let terms = required.map(|it| it.node_selector_terms.as_slice()).unwrap_or_default();
        let terms_path = path.child("requiredDuringSchedulingIgnoredDuringExecution");
        let terms_path = terms_path.child("nodeSelectorTerms");
        for (at, term) in terms.iter().enumerate() {
            warnings.extend(of_term(term, false, &terms_path.index(at)));
        }
        let terms = list(&affinity.preferred_during_scheduling_ignored_during_execution);
        let terms_path = path.child("preferredDuringSchedulingIgnoredDuringExecution");
        for (at, term) in terms.iter().enumerate() {
            let path = terms_path.index(at).child("preference");
            warnings.extend(of_term(&term.preference, true, &path));
        }
    }
    for (at, spread) in list(&spec.topology_spread_constraints).iter().enumerate() {
        let path = path.child("topologySpreadConstraints").index(at);
        let key = &spread.topology_key;
        if let Some(why) = obsolete_label(key) {
            warnings.push(format!("{}: {key} is {why}", path.child("topologyKey")));
        }
        if spread.label_selector.is_none() {
            warnings.push(format!("{}: {NO_SELECTOR}", path.child("labelSelector")));
        }
    }
    warnings
}

fn of_term(term: &NodeSelectorTerm, are_values_checked: bool, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for (at, wanted) in list(&term.match_expressions).iter().enumerate() {
        let path = path.child("matchExpressions").index(at);
        if let Some(why) = obsolete_label(&wanted.key) {
            warnings.push(format!("{}: {} is {why}", path.child("key"), wanted.key));
        }
        let values = list(&wanted.values).iter().enumerate().filter(|_| are_values_checked);
        for (n, value) in values {
            for fault in names::label_value(value) {
                let path = path.child("values").index(n);
                warnings.push(format!("{path}: {value} is invalid, {fault}"));
            }
        }
    }
    warnings
}

fn obsolete_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
        "beta.kubernetes.io/os" => "deprecated since v1.14; use \"kubernetes.io/os\" instead",
        "failure-domain.beta.kubernetes.io/region" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"
        }
        "beta.kubernetes.io/instance-type" => {
            "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => {
            "deprecated since v1.22; use Taints and Tolerations instead"
        }
        "node-role.kubernetes.io/master" => "use \"node-role.kubernetes.io/control-plane\" instead",
        _ => return None,
    })
}

fn repeated_names(spec: &PodSpec, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut seen = BTreeSet::new();
    for (at, alias) in list(&spec.host_aliases).iter().enumerate() {
        if !seen.insert(&alias.ip) {
            let path = path.child("hostAliases").index(at).child("ip");
            warnings.push(format!("{path}: duplicate ip {:?}", alias.ip));
        }
    }
    let secrets = list(&spec.image_pull_secrets);
    let mut seen = BTreeSet::new();
    let name_path = |at: usize| path.child("imagePullSecrets").index(at).child("name");
    for (at, secret) in secrets.iter().enumerate() {
        if !seen.insert(&secret.name) {
            warnings.push(format!("{}: duplicate name {:?}", name_path(at), secret.name));
        }
    }
    for (at, _) in secrets.iter().enumerate().filter(|(_, secret)| secret.name.is_empty()) {
        warnings.push(format!("{}: invalid empty name \"\"", name_path(at)));
    }
    warnings
}

fn of_container(container: &Container, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    let path_of = |field: &str| path.child("resources").child(field);
    if let Some(resources) = &container.resources {
        let lists = [("limits", &resources.limits), ("requests", &resources.requests)];
        for name in ["memory", "ephemeral-storage"] {
            for (field, amounts) in lists {
                let amount = amounts.as_ref().and_then(|amounts| amounts.get(name));
                warnings.extend(amount.and_then(|it| fraction(it, &path_of(field).key(name))));
            }
        }
    }
    let mut seen = BTreeSet::new();
    for (at, variable) in list(&container.env).iter().enumerate() {
        if seen.insert(&variable.name) {
            continue;
        }
        // Building on an earlier value is what a repeated name is for.
        let reference = format!("$({})", variable.name);
        let value = text(&variable.value);
        if variable.value_from.is_some() || value == reference || !value.contains(&reference) {
            warnings.push(format!(
                "{}: hides previous definition of {:?}, which may be dropped when using apply",
                path.child("env").index(at),
                variable.name
            ));
        }
    }
    warnings
}

fn fractions(amounts: &BTreeMap<String, Written>, path: &Path) -> Vec<String> {
    let names = ["memory", "ephemeral-storage"];
    names.iter().filter_map(|name| fraction(amounts.get(*name)?, &path.key(name))).collect()
}

/// Bytes do not come in parts.
fn fraction(amount: &Written, path: &Path) -> Option<String> {
    let parsed = Quantity::parse(&amount.0).ok()?;
    (parsed.milli_value() % 1000 != 0).then(|| {
        format!("{path}: fractional byte value {:?} is invalid, must be an integer", amount.0)
    })
}

fn selectors(affinity: &Affinity, path: &Path) -> Vec<String> {
    let near = affinity.pod_affinity.as_ref().map(|it| {
        (
            list(&it.required_during_scheduling_ignored_during_execution),
            list(&it.preferred_during_scheduling_ignored_during_execution),
        )
    });
    let apart = affinity.pod_anti_affinity.as_ref().map(|it| {
        (
            list(&it.required_during_scheduling_ignored_during_execution),
            list(&it.preferred_during_scheduling_ignored_during_execution),
        )
    });
    let mut warnings = Vec::new();
    for (field, terms) in [("podAffinity", near), ("podAntiAffinity", apart)] {
        let Some((required, preferred)) = terms else { continue };
        let path = path.child(field);
        for (at, _) in required.iter().enumerate().filter(|(_, it)| it.label_selector.is_none()) {
            let path = path.child("requiredDuringSchedulingIgnoredDuringExecution").index(at);
            warnings.push(format!("{}: {NO_SELECTOR}", path.child("labelSelector")));
        }
        for (at, weighted) in preferred.iter().enumerate() {
            if weighted.pod_affinity_term.label_selector.is_none() {
                let path = path.child("preferredDuringSchedulingIgnoredDuringExecution").index(at);
                let path = path.child("podAffinityTerm").child("labelSelector");
                warnings.push(format!("{path}: {NO_SELECTOR}"));
            }
        }
    }
    warnings
}

fn addresses(spec: &PodSpec, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    let servers = spec.dns_config.as_ref().map(|it| list(&it.nameservers)).unwrap_or_default();
    for (at, server) in servers.iter().enumerate() {
        let path = path.child("dnsConfig").child("nameservers").index(at);
        warnings.extend(uncanonical(server, &path));
    }
    for (at, alias) in list(&spec.host_aliases).iter().enumerate() {
        let path = path.child("hostAliases").index(at).child("ip");
        warnings.extend(uncanonical(&alias.ip, &path));
    }
    warnings
}

fn uncanonical(address: &str, path: &Path) -> Option<String> {
    let parsed: std::net::Ipv6Addr = address.parse().ok()?;
    let canonical = parsed.to_string();
    (canonical != address).then(|| {
        format!(
            "{path}: IPv6 address {address:?} should be in RFC 5952 canonical format ({canonical:?})"
        )
    })
}

#[cfg(test)]
mod tests;
