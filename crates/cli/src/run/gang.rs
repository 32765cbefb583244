//! `run -- CMD`: a gang from a command line, as the Job one would have written.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};
use lockstep_api::{names, quantity::Quantity};
use serde_json::{Value, json};

use super::launcher::{self, Gang};
use crate::{
    exit::{Ending, Exit},
    manifest::{self, Manifest, yaml},
};

/// What pods ask for who want the folder and environment `lockstep` was called with.
const INHERIT: &str = "lockstep.dev/inherit-environment";

/// What stands for the file of manifests that come from a command line.
pub(super) const FILE: &str = "(command line)";

/// What the container is called.
const CONTAINER: &str = "worker";

/// The ports that PyTorch and JAX use where every worker has a network of its own.
const CLUSTER_PORTS: [u16; 2] = [29_500, 29_501];

/// Options of a gang.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Gang (with -- COMMAND)")]
pub(crate) struct GangOptions {
    /// How many workers run at once [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..),
          requires = "command")]
    workers: Option<u32>,
    /// How many indexes must succeed [default: as many as there are workers]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..),
          requires = "command")]
    completions: Option<u32>,
    /// What the job is called [default: after the command]
    #[arg(long, value_name = "NAME", requires = "command")]
    name: Option<String>,
    /// How many CPUs each worker needs: 2, 500m
    #[arg(long, visible_alias = "cpu", value_name = "AMOUNT", value_parser = amount, requires = "command")]
    cpu_per_worker: Option<String>,
    /// How much memory each worker needs: 4Gi
    #[arg(long, visible_alias = "memory", value_name = "AMOUNT", value_parser = amount, requires = "command")]
    memory_per_worker: Option<String>,
    /// How many GPUs each worker has to itself
    #[arg(long, visible_alias = "gpus", value_name = "COUNT", requires = "command")]
    gpus_per_worker: Option<u32>,
    /// Set a variable for the workers; NAME alone passes the caller's on
    #[arg(long, value_name = "NAME=VALUE", requires = "command")]
    env: Vec<String>,
    /// The image, for a cluster that has images
    #[arg(long, value_name = "NAME", requires = "command")]
    image: Option<String>,
    /// What each worker runs, in the folder and with the environment of the caller; with --cluster
    /// in those of the image
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

impl GangOptions {
    /// The manifests of the gang: what makes its names known, and the Job.
    ///
    /// # Errors
    /// When the name or a variable makes no sense, or no port is free.
    pub(super) fn manifests(&self, is_private: bool) -> Result<Vec<Manifest>> {
        let name = self.job_name()?;
        let ports = if is_private { free_ports()? } else { CLUSTER_PORTS };
        let env = self.environment(&name, ports, is_private)?;
        let objects = [service(&name), self.job(&name, &env, is_private)];
        let text = objects.map(|object| yaml::render(&object)).join("---\n");
        manifest::parse(FILE, &text)
    }

    /// Refuses options of a gang where there is none.
    ///
    /// # Errors
    /// When one is given.
    pub(super) fn must_be_absent(&self) -> Result<()> {
        let given = [
            ("--workers", self.workers.is_some(), "spec.parallelism and spec.completions"),
            ("--completions", self.completions.is_some(), "spec.completions"),
            ("--name", self.name.is_some(), "metadata.name"),
            ("--cpu-per-worker", self.cpu_per_worker.is_some(), "resources of its containers"),
            (
                "--memory-per-worker",
                self.memory_per_worker.is_some(),
                "resources of its containers",
            ),
            ("--gpus-per-worker", self.gpus_per_worker.is_some(), "resources of its containers"),
            ("--env", !self.env.is_empty(), "env of its containers"),
            ("--image", self.image.is_some(), "image of its containers"),
        ];
        let Some((option, _, instead)) = given.into_iter().find(|(_, is_given, _)| *is_given)
        else {
            return Ok(());
        };
        let message = format!(
            "error: {option} is for a gang from a command line, as in `lockstep run --workers 4 -- \
             COMMAND`; a manifest says it itself: {instead}"
        );
        Err(Ending::error(Exit::Usage, message))
    }

    fn job(&self, name: &str, env: &[Value], is_private: bool) -> Value {
        let size = self.size();
        let mut container = json!({
            "name": CONTAINER,
            "image": self.image.as_deref().unwrap_or("host"),
            "command": self.command.iter().map(|word| literal(word)).collect::<Vec<_>>(),
            "env": env,
        });
        let resources = self.resources();
        if resources != json!({}) {
            container["resources"] = resources;
        }
        let mut template = json!({
            "metadata": {},
            "spec": {"subdomain": name, "restartPolicy": "Never", "containers": [container]},
        });
        if is_private {
            template["metadata"]["annotations"] = json!({INHERIT: "true"});
        }
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {
                "completionMode": "Indexed",
                "completions": size,
                "parallelism": self.workers.unwrap_or(1),
                // A gang that lost a worker has failed: the others wait for it in vain.
                "backoffLimit": 0,
                "template": template,
            },
        })
    }

    fn size(&self) -> u32 {
        self.completions.or(self.workers).unwrap_or(1)
    }

    /// Requests and limits: what is asked for is what one gets.
    fn resources(&self) -> Value {
        let mut wanted = serde_json::Map::new();
        wanted.extend(self.cpu_per_worker.as_ref().map(|cpu| ("cpu".to_owned(), json!(cpu))));
        let memory = self.memory_per_worker.as_ref();
        wanted.extend(memory.map(|memory| ("memory".to_owned(), json!(memory))));
        let gpus = self.gpus_per_worker.filter(|&count| count > 0);
        wanted.extend(gpus.map(|count| ("nvidia.com/gpu".to_owned(), json!(count.to_string()))));
        if wanted.is_empty() { json!({}) } else { json!({"requests": wanted, "limits": wanted}) }
    }

    fn environment(&self, name: &str, ports: [u16; 2], is_private: bool) -> Result<Vec<Value>> {
        let has_devices = self.gpus_per_worker.is_some_and(|count| count > 0);
        let master = format!("{name}-0.{name}");
        let mut env = launcher::variables(&Gang {
            size: self.size(),
            master: &master,
            port: ports[0],
            jax_port: ports[1],
            is_together: is_private && !has_devices,
        });
        for given in &self.env {
            let (key, value) = match given.split_once('=') {
                Some((key, value)) => (key, value.to_owned()),
                None => (given.as_str(), passed_on(given)?),
            };
            if key.is_empty() {
                let message = format!("error: --env {given:?} must look like NAME=VALUE");
                return Err(Ending::error(Exit::Usage, message));
            }
            // What is given by hand wins.
            env.retain(|variable| variable["name"] != key);
            env.push(json!({"name": key, "value": literal(&value)}));
        }
        Ok(env)
    }

    /// The name given, or one made of the command's. The names of its pods must be names too.
    fn job_name(&self) -> Result<String> {
        if let Some(name) = &self.name {
            let longest = format!("{name}-{}", self.size() - 1);
            let faults = names::dns1035_label(name);
            if faults.is_empty() && longest.len() <= 63 {
                return Ok(name.clone());
            }
            let message = format!(
                "error: --name {name:?} cannot be used: it must have lower case letters, digits \
                 and dashes, begin with a letter, end with a letter or digit, and leave room for \
                 -{} within 63 characters",
                self.size() - 1
            );
            return Err(Ending::error(Exit::Usage, message));
        }
        let program = self.command.first().map(String::as_str).unwrap_or_default();
        let file = program.rsplit('/').next().unwrap_or_default();
        let stem = file.split('.').next().unwrap_or_default().to_ascii_lowercase();
        let clean: String =
            stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let clean = clean.trim_start_matches(|c: char| !c.is_ascii_lowercase());
        let clean: String = clean.chars().take(40).collect();
        let clean = clean.trim_end_matches('-');
        Ok(if clean.is_empty() { "run".to_owned() } else { clean.to_owned() })
    }
}

/// What makes `<job>-0.<job>` a name: a Service without an address of its own. Pods are in it
/// before they are ready, since they get ready by finding each other.
fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": {"batch.kubernetes.io/job-name": name},
        },
    })
}

/// Text that means itself: in a manifest `$(NAME)` means a variable and `$$` one dollar.
fn literal(text: &str) -> String {
    let has_meaning = text.contains("$(") || text.contains("$$");
    if has_meaning { text.replace('$', "$$") } else { text.to_owned() }
}

fn passed_on(name: &str) -> Result<String> {
    std::env::var(name).map_err(|_| {
        let message = format!("error: --env {name}: there is no such variable; give {name}=VALUE");
        Ending::error(Exit::Usage, message)
    })
}

/// Two ports on which nobody listens now.
fn free_ports() -> Result<[u16; 2]> {
    let listen = || TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0));
    // Both at once, so that they differ.
    let open = [listen(), listen()].map(|it| it.and_then(|it| it.local_addr()).map(|it| it.port()));
    let [first, second] = open.map(|port| port.context("no port is free"));
    Ok([first?, second?])
}

fn amount(text: &str) -> Result<String, String> {
    match Quantity::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(format!("{text:?} is no amount; one looks like 8, 500m or 32Gi")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::golden;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        gang: GangOptions,
    }

    fn gang(words: &str) -> GangOptions {
        Line::parse_from(std::iter::once("run").chain(words.split(' '))).gang
    }

    #[test]
    fn a_gang_is_the_job_one_would_have_written() {
        let mut text = String::new();
        for (words, is_private) in [
            ("--workers 4 -- python train.py --epochs 3", true),
            (
                "--workers 2 --completions 8 --name sweep --cpu-per-worker 2 --memory-per-worker \
                 4Gi --gpus-per-worker 1 --image torch:2 --env A=b --env RANK=7 -- ./sweep.sh",
                false,
            ),
        ] {
            let options = gang(words);
            let name = options.job_name().expect("a name");
            let env = options.environment(&name, CLUSTER_PORTS, is_private).expect("variables");
            text.push_str(&["# run ", words, "\n"].concat());
            text.push_str(&yaml::render(&options.job(&name, &env, is_private)));
        }
        golden::check("run-gang.txt", &text);
    }

    #[test]
    fn what_a_gang_is_made_of_is_valid() {
        let manifests = gang("--workers 3 -- sh -c :").manifests(true).expect("manifests");
        let kinds: Vec<&str> = manifests.iter().map(Manifest::kind).collect();
        assert_eq!(kinds, ["Service", "Job"]);
        let registry = lockstep_api::builtin::registry();
        for manifest in &manifests {
            let problems = crate::validate::judge(&registry, manifest).problems;
            assert!(problems.is_empty(), "{problems:?}");
        }
    }

    #[test]
    fn a_job_is_called_after_its_command() {
        for (words, want) in [
            ("-- python train.py", Some("python")),
            ("-- ./bin/Train_It.sh", Some("train-it")),
            ("-- /usr/bin/python3.12", Some("python3")),
            ("-- ./7z", Some("z")),
            ("-- ./123", Some("run")),
            ("--name mine -- x", Some("mine")),
            ("--name Mine -- x", None),
            ("--name 1a -- x", None),
            ("--name a- -- x", None),
        ] {
            assert_eq!(gang(words).job_name().ok().as_deref(), want, "{words}");
        }
        let long = format!("--workers 1001 --name {} -- x", "a".repeat(59));
        assert!(gang(&long).job_name().is_err(), "no room for -1000");
    }

    #[test]
    fn words_of_the_command_mean_themselves() {
        for (text, want) in
            [("$HOME", "$HOME"), ("$(date)", "$$(date)"), ("$$", "$$$$"), ("a", "a")]
        {
            assert_eq!(literal(text), want);
        }
    }

    #[test]
    fn variables_without_a_value_are_passed_on_or_refused() {
        let options = gang("--env PATH -- x");
        let env = options.environment("x", CLUSTER_PORTS, true).expect("there is a PATH");
        assert_eq!(env.last().map(|it| &it["name"]), Some(&json!("PATH")));
        for wrong in ["--env LOCKSTEP_NO_SUCH_VARIABLE -- x", "--env =x -- x"] {
            let error = gang(wrong).environment("x", CLUSTER_PORTS, true).expect_err(wrong);
            assert_eq!(crate::exit::of(&error), Exit::Usage);
        }
    }
}
