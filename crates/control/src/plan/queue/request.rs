//! What a workload asks for.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{PodSpec, ResourceRequirements};
use lockstep_api::kueue::{PodSet, Workload};

use super::{Settings, additions::Additions, amount};
use crate::plan::place::Resources;

/// What a workload asks for, pod set by pod set, and what is wrong with that, if something is.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub needs: Vec<Need>,
    pub fault: Option<String>,
}

/// What a pod set asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Need {
    /// The pod set.
    pub name: Arc<str>,
    /// How many pods are left to run.
    pub count: i64,
    /// What they ask for together.
    pub resources: BTreeMap<Arc<str>, i64>,
}

/// What a workload asks for, with what the cluster adds to its pods.
pub(super) fn of(workload: &Workload, settings: &Settings, additions: &Additions) -> Request {
    let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
    let (mut needs, mut beyond, mut outside) = (Vec::new(), Vec::new(), Vec::new());
    for (at, set) in workload.spec.pod_sets.iter().enumerate() {
        let Some(spec) = &set.template.spec else {
            needs.push(need(workload, set, BTreeMap::new()));
            continue;
        };
        let spec = additions.complete(namespace, limits_asked(spec));
        let asked = asked(&spec);
        beyond.extend(beyond_limits(at, &spec));
        outside.extend(additions.faults(namespace, (at, &spec), || asked.clone()));
        needs.push(need(workload, set, counted(&asked, settings)));
    }
    let fault = fault("resources validation failed", beyond)
        .or_else(|| fault("resources didn't satisfy LimitRange constraints", outside));
    Request { needs, fault }
}

/// Faults as upstream tells of them.
fn fault(what: &str, mut faults: Vec<String>) -> Option<String> {
    match faults.len() {
        0 => None,
        1 => Some(format!("{what}: {}", faults.remove(0))),
        _ => Some(format!("{what}: [{}]", faults.join(", "))),
    }
}

fn need(workload: &Workload, set: &PodSet, of_one: BTreeMap<Arc<str>, i64>) -> Need {
    let count = i64::from(set.count).saturating_sub(reclaimable(workload, &set.name)).max(0);
    let total = |amount: i64| amount.max(0).saturating_mul(count);
    let resources = of_one.into_iter().map(|(name, amount)| (name, total(amount))).collect();
    Need { name: Arc::from(set.name.as_str()), count, resources }
}

/// How many pods of a set are not needed any more.
pub(super) fn reclaimable(workload: &Workload, set: &str) -> i64 {
    let status = workload.status.as_ref();
    let mut pods = status.iter().flat_map(|status| &status.reclaimable_pods);
    pods.find(|it| it.name == set).map_or(0, |it| i64::from(it.count).max(0))
}

/// What one pod asks for.
fn asked(spec: &PodSpec) -> BTreeMap<String, i64> {
    let Resources { cpu, memory, storage, others } = Resources::of_pod(spec);
    let named = [("cpu", cpu), ("memory", memory), ("ephemeral-storage", storage)];
    let named = named.into_iter().map(|(name, amount)| (name.to_owned(), amount));
    named.chain(others).filter(|(_, amount)| *amount != 0).collect()
}

/// What one pod asks for, as the settings count it.
fn counted(asked: &BTreeMap<String, i64>, settings: &Settings) -> BTreeMap<Arc<str>, i64> {
    let counts = |name: &str| !settings.exclude_prefixes.iter().any(|it| name.starts_with(it));
    let asked = asked.iter().map(|(name, amount)| (name.as_str(), *amount));
    let asked: BTreeMap<&str, i64> = asked.filter(|(name, _)| counts(name)).collect();
    let mut all = BTreeMap::new();
    let mut add = |name: &str, amount: i64| {
        let sum: &mut i64 = all.entry(Arc::from(name)).or_insert(0);
        *sum = sum.saturating_add(amount);
    };
    for (name, amount) in &asked {
        let Some(rule) = settings.transformations.iter().find(|rule| rule.input == *name) else {
            add(name, *amount);
            continue;
        };
        let by = rule.multiply_by.as_deref().and_then(|by| asked.get(by).map(|it| units(by, *it)));
        let times = units(name, *amount).saturating_mul(by.unwrap_or(1));
        for (output, factor) in &rule.outputs {
            let factor = k8s_openapi::apimachinery::pkg::api::resource::Quantity(factor.clone());
            let factor = amount::read(output, &factor).unwrap_or(0);
            add(output, factor.saturating_mul(times));
        }
        if rule.retains_input {
            add(name, *amount);
        }
    }
    all
}

/// An amount in whole units, a fraction counting as one.
fn units(resource: &str, amount: i64) -> i64 {
    if resource == "cpu" { amount.saturating_add(999).div_euclid(1000) } else { amount }
}

/// The pod with its limits asked for where it asks for nothing else.
fn limits_asked(spec: &PodSpec) -> Cow<'_, PodSpec> {
    let lacks = |resources: &ResourceRequirements| {
        let asked = resources.requests.as_ref();
        let mut limits = resources.limits.iter().flatten();
        limits.any(|(name, _)| asked.is_none_or(|asked| !asked.contains_key(name)))
    };
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let mut all = containers.filter_map(|it| it.resources.as_ref()).chain(spec.resources.as_ref());
    if !all.any(lacks) {
        return Cow::Borrowed(spec);
    }
    let fill = |resources: &mut ResourceRequirements| {
        let asked = resources.requests.get_or_insert_default();
        for (name, limit) in resources.limits.iter().flatten() {
            asked.entry(name.clone()).or_insert_with(|| limit.clone());
        }
    };
    let mut spec = spec.clone();
    spec.resources.as_mut().map(fill);
    let inits = spec.init_containers.iter_mut().flatten();
    for container in spec.containers.iter_mut().chain(inits) {
        container.resources.as_mut().map(fill);
    }
    Cow::Owned(spec)
}

/// What of the pods of a set is asked for beyond their limits.
fn beyond_limits(set: usize, spec: &PodSpec) -> Vec<String> {
    let path = pods_path(set);
    let mut faults = Vec::new();
    let mut judge = |place: &dyn Fn() -> String, resources: Option<&ResourceRequirements>| {
        let names = resources.map(exceeding).unwrap_or_default();
        if !names.is_empty() {
            let place = place();
            faults.push(format!(
                "{path}.{place}: Invalid value: {names:?}: requests must not exceed its limits"
            ));
        }
    };
    for (at, container) in spec.init_containers.iter().flatten().enumerate() {
        judge(&|| format!("initContainers[{at}]"), container.resources.as_ref());
    }
    for (at, container) in spec.containers.iter().enumerate() {
        judge(&|| format!("containers[{at}]"), container.resources.as_ref());
    }
    judge(&|| "resources".to_owned(), spec.resources.as_ref());
    faults
}

/// Where the spec of the pods of a set is in a workload.
pub(super) fn pods_path(set: usize) -> String {
    format!("spec.podSets[{set}].template.spec")
}

fn exceeding(resources: &ResourceRequirements) -> Vec<&str> {
    let limit = |name: &str| amount::read(name, resources.limits.as_ref()?.get(name)?);
    let asked = resources.requests.iter().flatten();
    let beyond = asked.filter(|(name, asked)| {
        let limit = limit(name);
        limit.is_some_and(|limit| amount::read(name, asked).is_some_and(|it| it > limit))
    });
    beyond.map(|(name, _)| name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Transformation;
    use super::*;

    fn asked(spec: Value, settings: &Settings, reclaimable: i32) -> Vec<(String, i64)> {
        let workload: Workload = serde_json::from_value(json!({
            "spec": {"podSets": [{"name": "main", "count": 3, "template": {"spec": spec}}]},
            "status": {"reclaimablePods": [{"name": "main", "count": reclaimable}]}
        }))
        .unwrap();
        let need = of(&workload, settings, &Additions::default()).needs.remove(0);
        need.resources.iter().map(|(name, amount)| (name.to_string(), *amount)).collect()
    }

    // rule: queueing 3.2.6
    #[test]
    fn requests_are_those_of_whole_pods_times_their_number() {
        let container = |requests: Value| json!({"resources": {"requests": requests}});
        let cpu = |text: &str| container(json!({"cpu": text}));
        let cases = [
            (json!({"containers": [cpu("1"), cpu("500m")]}), 4500),
            (json!({"containers": [cpu("1")], "initContainers": [cpu("2")]}), 6000),
            (
                json!({"containers": [cpu("1")], "initContainers": [
                    {"restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}]}),
                9000,
            ),
            (json!({"containers": [cpu("1")], "overhead": {"cpu": "250m"}}), 3750),
            (json!({"containers": [{"resources": {"limits": {"cpu": "2"}}}]}), 6000),
            (json!({"containers": [cpu("1")], "resources": {"requests": {"cpu": "4"}}}), 12_000),
            (json!({"containers": [cpu("1")], "resources": {"limits": {"cpu": "5"}}}), 15_000),
        ];
        for (spec, want) in cases {
            let got = asked(spec.clone(), &Settings::default(), 0);
            assert_eq!(got, [("cpu".to_owned(), want)], "{spec}");
        }
        let spec = json!({"containers": [cpu("1")]});
        assert_eq!(asked(spec.clone(), &Settings::default(), 1), [("cpu".to_owned(), 2000)]);
        assert_eq!(asked(spec, &Settings::default(), 7), [("cpu".to_owned(), 0)], "all are done");
        for odd in ["many", "-1"] {
            let odd = json!({"containers": [cpu(odd)]});
            assert_eq!(asked(odd, &Settings::default(), 0), []);
        }
    }

    // rule: queueing 3.2.6
    #[test]
    fn resources_are_left_out_and_counted_as_others() {
        let settings = Settings {
            exclude_prefixes: vec!["networking.example.com/".to_owned()],
            transformations: vec![Transformation {
                input: "nvidia.com/mig-2g".to_owned(),
                retains_input: false,
                multiply_by: None,
                outputs: vec![("example.com/memory".to_owned(), "10Gi".to_owned())],
            }],
            ..Settings::default()
        };
        let requests = json!({"networking.example.com/vpc": "1", "nvidia.com/mig-2g": "2",
                              "cpu": "1"});
        let spec = json!({"containers": [{"resources": {"requests": requests}}]});
        let want = [("cpu".to_owned(), 3000), ("example.com/memory".to_owned(), 60 << 30)];
        assert_eq!(asked(spec.clone(), &settings, 0), want);
        let mut retained = settings;
        retained.transformations[0].retains_input = true;
        assert_eq!(asked(spec, &retained, 0).len(), 3);
    }

    // rule: queueing 4.2.1
    #[test]
    fn requests_beyond_limits_are_invalid() {
        let workload: Workload = serde_json::from_value(json!({"spec": {"podSets": [
            {"name": "main", "count": 1, "template": {"spec": {"containers": [{"resources": {
                "requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]}}}]}}))
        .unwrap();
        let want = "resources validation failed: spec.podSets[0].template.spec.containers[0]: \
                    Invalid value: [\"cpu\"]: requests must not exceed its limits";
        let fault = |workload| of(workload, &Settings::default(), &Additions::default()).fault;
        assert_eq!(fault(&workload).as_deref(), Some(want));
        assert_eq!(fault(&Workload::default()), None);
    }
}
