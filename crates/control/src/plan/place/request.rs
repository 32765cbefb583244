//! What pods ask for and nodes have.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Amounts of resources; CPU in thousandths, all else in whole units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Thousandths of a CPU.
    pub cpu: i64,
    /// Bytes.
    pub memory: i64,
    /// Bytes.
    pub storage: i64,
    /// All others by name: GPUs and the like.
    pub others: BTreeMap<String, i64>,
}

impl Resources {
    /// Reads a resource list of the API. What cannot be read counts as nothing: the API checks it.
    pub fn from_list(list: Option<&BTreeMap<String, Quantity>>) -> Self {
        let mut all = Self::default();
        for (name, quantity) in list.into_iter().flatten() {
            let Ok(quantity) = lockstep_api::quantity::Quantity::parse(&quantity.0) else {
                continue;
            };
            match name.as_str() {
                "cpu" => all.cpu = quantity.milli_value(),
                "memory" => all.memory = quantity.value(),
                "ephemeral-storage" => all.storage = quantity.value(),
                // The number of pods is counted apart.
                "pods" => {}
                _ => drop(all.others.insert(name.clone(), quantity.value())),
            }
        }
        all
    }

    /// What a pod asks for: its main containers and sidecars together, or the init container that
    /// asks for most beside the sidecars started before it, whichever is more.
    pub fn of_pod(spec: &PodSpec) -> Self {
        let request = |container: &Container| requested(container.resources.as_ref());
        let mut running = Self::default();
        for container in &spec.containers {
            running.add(&request(container));
        }
        let mut sidecars = Self::default();
        let mut peak = Self::default();
        for container in spec.init_containers.iter().flatten() {
            let own = request(container);
            if container.restart_policy.as_deref() == Some("Always") {
                sidecars.add(&own);
                peak.raise(&sidecars);
            } else {
                let mut beside = sidecars.clone();
                beside.add(&own);
                peak.raise(&beside);
            }
        }
        running.add(&sidecars);
        running.raise(&peak);
        if let Some(of_pod) = &spec.resources {
            let whole = requested(Some(of_pod));
            let is_set = |name| of_pod.requests.as_ref().is_some_and(|it| it.contains_key(name));
            if is_set("cpu") {
                running.cpu = whole.cpu;
            }
            if is_set("memory") {
                running.memory = whole.memory;
            }
        }
        running.add(&Self::from_list(spec.overhead.as_ref()));
        running
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.memory = self.memory.saturating_add(other.memory);
        self.storage = self.storage.saturating_add(other.storage);
        for (name, amount) in &other.others {
            let own = self.others.entry(name.clone()).or_insert(0);
            *own = own.saturating_add(*amount);
        }
    }

    /// Takes `other` away.
    pub fn subtract(&mut self, other: &Self) {
        self.cpu -= other.cpu;
        self.memory -= other.memory;
        self.storage -= other.storage;
        for (name, amount) in &other.others {
            *self.others.entry(name.clone()).or_insert(0) -= amount;
        }
    }

    fn raise(&mut self, other: &Self) {
        self.cpu = self.cpu.max(other.cpu);
        self.memory = self.memory.max(other.memory);
        self.storage = self.storage.max(other.storage);
        for (name, amount) in &other.others {
            let own = self.others.entry(name.clone()).or_insert(0);
            *own = (*own).max(*amount);
        }
    }
}

fn requested(resources: Option<&ResourceRequirements>) -> Resources {
    Resources::from_list(resources.and_then(|resources| resources.requests.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(cpu: &str, policy: Option<&str>) -> Container {
        let requests = BTreeMap::from([("cpu".to_owned(), Quantity(cpu.to_owned()))]);
        Container {
            restart_policy: policy.map(str::to_owned),
            resources: Some(ResourceRequirements {
                requests: Some(requests),
                ..ResourceRequirements::default()
            }),
            ..Container::default()
        }
    }

    #[test]
    fn the_greater_of_running_and_initializing_counts() {
        // (mains, init with "s" for sidecar, expected thousandths)
        type Case = (&'static [&'static str], &'static [(&'static str, bool)], i64);
        let cases: [Case; 5] = [
            (&["100m", "200m"], &[], 300),
            (&["100m"], &[("500m", false)], 500),
            (&["100m"], &[("50m", false), ("50m", false)], 100),
            (&["100m"], &[("500m", true)], 600),
            (&["100m"], &[("200m", true), ("1", false)], 1200),
        ];
        for (mains, inits, want) in cases {
            let spec = PodSpec {
                containers: mains.iter().map(|cpu| container(cpu, None)).collect(),
                init_containers: Some(
                    inits
                        .iter()
                        .map(|(cpu, sidecar)| container(cpu, sidecar.then_some("Always")))
                        .collect(),
                ),
                ..PodSpec::default()
            };
            assert_eq!(Resources::of_pod(&spec).cpu, want, "{mains:?} {inits:?}");
        }
    }
}
