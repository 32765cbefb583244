//! The variables by which programs of a gang find each other: those that `torchrun`, JAX and MPI
//! launchers set.
//!
//! Left out on purpose: `TORCHELASTIC_RUN_ID` and `TORCHELASTIC_USE_AGENT_STORE`, which promise
//! PyTorch an agent that holds its store, and `OMPI_MCA_*`, which promise JAX a real `mpirun`.

use serde_json::{Value, json};

/// The label of a pod that says which index it works on.
const INDEX: &str = "metadata.labels['batch.kubernetes.io/job-completion-index']";

/// What the workers of a gang must agree on.
#[derive(Clone, Debug)]
pub(super) struct Gang<'a> {
    /// How many there are.
    pub(super) size: u32,
    /// The name by which index 0 is found.
    pub(super) master: &'a str,
    /// A port on which nobody listens there.
    pub(super) port: u16,
    /// Another one: JAX and PyTorch may be used together.
    pub(super) jax_port: u16,
    /// Whether the workers share a machine and its devices, so that each is one of many there. A
    /// worker that has devices to itself is alone, and calls its first device 0.
    pub(super) is_together: bool,
}

/// The variables, as a container's `env`.
pub(super) fn variables(gang: &Gang<'_>) -> Vec<Value> {
    let own = |name: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": INDEX}}});
    let fixed = |name: &str, value: &dyn std::fmt::Display| json!({"name": name, "value": value.to_string()});
    let (size, master) = (gang.size, gang.master);
    let mut env = Vec::new();
    let global = ["RANK", "ROLE_RANK", "JAX_PROCESS_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"];
    env.extend(global.map(own));
    let sizes =
        ["WORLD_SIZE", "ROLE_WORLD_SIZE", "JAX_NUM_PROCESSES", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];
    env.extend(sizes.map(|name| fixed(name, &size)));
    let local = ["LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"];
    let local_sizes = ["LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];
    let machine = ["GROUP_RANK", "NODE_RANK", "OMPI_COMM_WORLD_NODE_RANK"];
    let machines = ["GROUP_WORLD_SIZE", "NNODES"];
    if gang.is_together {
        env.extend(local.map(own));
        env.extend(local_sizes.map(|name| fixed(name, &size)));
        env.extend(machine.map(|name| fixed(name, &0)));
        env.extend(machines.map(|name| fixed(name, &1)));
    } else {
        env.extend(local.map(|name| fixed(name, &0)));
        env.extend(local_sizes.map(|name| fixed(name, &1)));
        env.extend(machine.map(own));
        env.extend(machines.map(|name| fixed(name, &size)));
    }
    env.push(fixed("MASTER_ADDR", &master));
    env.push(fixed("MASTER_PORT", &gang.port));
    env.push(fixed("JAX_COORDINATOR_ADDRESS", &format!("{master}:{}", gang.jax_port)));
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(is_together: bool) -> Vec<String> {
        let gang = Gang { size: 4, master: "m-0.m", port: 1234, jax_port: 1235, is_together };
        let shown = |it: &Value| {
            let value = it["value"].as_str().unwrap_or("index");
            format!("{}={value}", it["name"].as_str().unwrap_or_default())
        };
        variables(&gang).iter().map(shown).collect()
    }

    #[test]
    fn each_launcher_finds_what_it_reads() {
        let together = values(true);
        let apart = values(false);
        for want in [
            "RANK=index",
            "WORLD_SIZE=4",
            "MASTER_ADDR=m-0.m",
            "MASTER_PORT=1234",
            "JAX_COORDINATOR_ADDRESS=m-0.m:1235",
            "JAX_NUM_PROCESSES=4",
            "JAX_PROCESS_ID=index",
            "OMPI_COMM_WORLD_RANK=index",
            "OMPI_COMM_WORLD_SIZE=4",
            "PMI_RANK=index",
            "PMI_SIZE=4",
        ] {
            assert!(together.iter().any(|it| it == want), "{want} in {together:?}");
            assert!(apart.iter().any(|it| it == want), "{want} in {apart:?}");
        }
        for (want_together, want_apart) in [
            ("LOCAL_RANK=index", "LOCAL_RANK=0"),
            ("LOCAL_WORLD_SIZE=4", "LOCAL_WORLD_SIZE=1"),
            ("GROUP_RANK=0", "GROUP_RANK=index"),
            ("NODE_RANK=0", "NODE_RANK=index"),
            ("OMPI_COMM_WORLD_LOCAL_RANK=index", "OMPI_COMM_WORLD_LOCAL_RANK=0"),
        ] {
            assert!(together.iter().any(|it| it == want_together), "{want_together}");
            assert!(apart.iter().any(|it| it == want_apart), "{want_apart}");
        }
    }

    #[test]
    fn no_name_is_given_twice() {
        let names: Vec<String> = values(true)
            .into_iter()
            .map(|it| it.split('=').next().unwrap_or_default().to_owned())
            .collect();
        let unique: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "{names:?}");
    }
}
