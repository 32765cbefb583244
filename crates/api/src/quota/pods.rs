//! What pods use, and what a quota wants them to say.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{
    amounts::{self, Amounts},
    json::{at, integer, list, text},
    pod::validation::{is_extended, is_huge, is_native},
    quantity::Quantity,
    strategy::Json,
};

const NAMES: [&str; 10] = [
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "pods",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// What every container must say something about where a quota counts it.
const REQUIRED: [&str; 6] =
    ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

const DEVICES: &str = "deviceclass.resource.kubernetes.io/";

/// Whether `name` says how much there may be of pods or of what they ask for.
pub(super) fn is_counted(name: &str) -> bool {
    let Some(asked) = name.strip_prefix("requests.") else {
        return NAMES.contains(&name) || is_huge(name);
    };
    NAMES.contains(&name) || is_huge(asked) || !is_native(name) || asked.starts_with(DEVICES)
}

/// Whether the pod ends by itself after a while, which quotas call terminating.
pub(super) fn has_deadline(pod: &Json) -> bool {
    integer(pod, &["spec", "activeDeadlineSeconds"]).is_some_and(|seconds| seconds >= 0)
}

/// What a pod uses beside its place among all pods. One that has ended uses nothing.
pub(super) fn usage(pod: &Json, now: Timestamp) -> Amounts {
    let Some(Value::Object(spec)) = pod.get("spec") else { return Amounts::new() };
    if has_ended(pod, now) {
        return Amounts::new();
    }
    let mut requests = of_pod(spec, "requests");
    let mut limits = of_pod(spec, "limits");
    let overhead = amounts::read(spec.get("overhead"));
    for (name, amount) in &overhead {
        limits.entry(name.clone()).and_modify(|limit| {
            if !limit.is_zero() {
                *limit = limit.plus(amount);
            }
        });
    }
    amounts::add(&mut requests, &overhead);
    compute(&requests, &limits)
}

/// What is missing in the containers of a pod that a quota counts: `must specify cpu for: a,b`.
pub(super) fn unsaid(pod: &Json, required: &BTreeSet<&str>) -> Option<String> {
    let Some(Value::Object(spec)) = pod.get("spec") else { return None };
    // What the pod says itself counts for all its containers.
    let says = |field| {
        let own = amounts::read(at(spec, &["resources", field]));
        own.keys().any(|name| is_pods_own(name))
    };
    if says("requests") || says("limits") {
        return None;
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in ["containers", "initContainers"].iter().flat_map(|key| list(spec, &[key])) {
        let of = |field| amounts::of_container(container, field);
        let said = compute(&of("requests"), &of("limits"));
        for name in REQUIRED.iter().filter(|name| required.contains(*name)) {
            if !said.contains_key(*name) {
                let container = container["name"].as_str().unwrap_or_default();
                missing.entry(name).or_default().insert(container);
            }
        }
    }
    let listed: Vec<String> = missing
        .into_iter()
        .map(|(name, containers)| {
            let containers: Vec<&str> = containers.into_iter().collect();
            format!("{name} for: {}", containers.join(","))
        })
        .collect();
    (!listed.is_empty()).then(|| format!("must specify {}", listed.join("; ")))
}

/// A pod that is stuck in its end beyond its grace counts as ended: nobody can do anything about
/// it.
fn has_ended(pod: &Json, now: Timestamp) -> bool {
    if matches!(text(pod, &["status", "phase"]), "Failed" | "Succeeded") {
        return true;
    }
    let deletion = text(pod, &["metadata", "deletionTimestamp"]).parse::<Timestamp>().ok();
    let grace = integer(pod, &["metadata", "deletionGracePeriodSeconds"]);
    deletion.zip(grace).is_some_and(|(at, grace)| {
        at.checked_add(SignedDuration::from_secs(grace)).is_ok_and(|until| now > until)
    })
}

fn is_pods_own(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge(name)
}

fn of_pod(spec: &Json, field: &str) -> Amounts {
    let mut total = amounts::of_containers(spec, field);
    let own = amounts::read(at(spec, &["resources", field]));
    total.extend(own.into_iter().filter(|(name, _)| is_pods_own(name)));
    total
}

/// Requests and limits by the names that quotas have for them.
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut used = Amounts::from([("pods".to_owned(), Quantity::whole(1))]);
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(amount) = requests.get(name) {
            used.insert(name.to_owned(), *amount);
            used.insert(format!("requests.{name}"), *amount);
        }
        if let Some(amount) = limits.get(name) {
            used.insert(format!("limits.{name}"), *amount);
        }
    }
    for (name, amount) in requests {
        if is_huge(name) {
            used.insert(name.clone(), *amount);
        }
        if is_huge(name) || is_extended(name) || name.starts_with(DEVICES) {
            used.insert(format!("requests.{name}"), *amount);
        }
    }
    used
}
