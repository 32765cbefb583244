//! Restarts in place: what a JobSet asks for, where its workers stand, and the agent around them.
//!
//! The agent is put into the templates of the Jobs that a set makes, never into the set itself:
//! what a user wrote stays as it is, and [`inject`] does nothing to what has an agent already.

use std::{ops::Range, time::Duration};

use k8s_openapi::api::{
    batch::v1::JobSpec,
    core::v1::{
        Container, EmptyDirVolumeSource, EnvVar, EnvVarSource, ObjectFieldSelector, PodSpec,
        SecretKeySelector, Volume, VolumeMount,
    },
};
use lockstep_api::{
    jobset::{JobSet, JobSetSpec},
    labels::jobset as keys,
};

/// How the workers of a set reach whoever leads their restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wiring {
    /// Where the orchestrator listens: host and port.
    pub orchestrator: String,
    /// The certificates it can be trusted by, as PEM.
    pub ca: String,
    /// Where the agent comes from.
    pub agent: AgentSource,
}

/// Where the agent comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentSource {
    /// A program that every node has at this path.
    Path(String),
    /// An image that has it as its entry point, and copies it where the workers find it.
    Image(String),
}

/// The folder in which a copied agent lies.
const FOLDER: &str = "/lockstep-agent";
const VOLUME: &str = "lockstep-agent";
/// The worker of a pod that has several containers, if none is called so its first one.
const WORKER: &str = "worker";

/// How long each rung of a restart in place may take, if a set asks for restarts in place at all.
/// Whatever validation has let through is read; zero is no time at all and asks for nothing.
pub fn timeout(jobset: &JobSet) -> Option<Duration> {
    let annotations = jobset.metadata.annotations.as_ref()?;
    let span: jiff::SignedDuration = annotations.get(keys::IN_PLACE_TIMEOUT)?.parse().ok()?;
    Duration::try_from(span).ok().filter(|span| !span.is_zero())
}

/// The name of the Secret with the ticket of a set's agents.
pub fn secret(set_name: &str) -> String {
    format!("{set_name}-in-place-restart")
}

/// The places of a set's workers: those of each Job, in the order of its Jobs. Empty where a Job
/// does not say how many it has.
pub fn places(spec: &JobSetSpec) -> Vec<(String, i32, Range<u32>)> {
    let mut first = 0;
    let mut places = Vec::new();
    for group in &spec.replicated_jobs {
        let job = group.template.spec.as_ref();
        let pods = job.and_then(|job| job.parallelism).unwrap_or(1);
        let pods = u32::try_from(pods).unwrap_or_default();
        for index in 0..group.replicas {
            places.push((group.name.clone(), index, first..first + pods));
            first += pods;
        }
    }
    places
}

/// Puts an agent around the worker of a Job's pods. A failed worker must not fail its Job, and a
/// pod is replaced only when nothing of it is left.
pub fn inject(job: &mut JobSpec, set_name: &str, wiring: &Wiring) {
    job.backoff_limit = Some(i32::MAX);
    job.pod_replacement_policy = Some("Failed".to_owned());
    let pod = job.template.spec.get_or_insert_default();
    let at = pod.containers.iter().position(|container| container.name == WORKER).unwrap_or(0);
    let Some(worker) = pod.containers.get_mut(at) else { return };
    let has_agent = worker.env.iter().flatten().any(|env| env.name == "LOCKSTEP_ORCHESTRATOR");
    if has_agent {
        return;
    }
    let program = match &wiring.agent {
        AgentSource::Path(path) => path.clone(),
        AgentSource::Image(_) => format!("{FOLDER}/lockstep"),
    };
    wrap(worker, program, set_name, wiring);
    if let AgentSource::Image(image) = &wiring.agent {
        let mount = VolumeMount {
            name: VOLUME.to_owned(),
            mount_path: FOLDER.to_owned(),
            ..VolumeMount::default()
        };
        worker.volume_mounts.get_or_insert_default().push(mount.clone());
        bring(pod, image, mount);
    }
}

fn wrap(worker: &mut Container, program: String, set_name: &str, wiring: &Wiring) {
    let own = worker.command.take().unwrap_or_default();
    let mut command = vec![program, "agent".to_owned(), "--".to_owned()];
    command.extend(own);
    worker.command = Some(command);
    let value = |name: &str, value: &str| EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        value_from: None,
    };
    let from = |name: &str, source| EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(source),
    };
    let pod = ObjectFieldSelector { field_path: "metadata.uid".to_owned(), api_version: None };
    let ticket = SecretKeySelector {
        name: secret(set_name),
        key: "ticket".to_owned(),
        optional: Some(false),
    };
    worker.env.get_or_insert_default().extend([
        value("LOCKSTEP_ORCHESTRATOR", &wiring.orchestrator),
        value("LOCKSTEP_ORCHESTRATOR_CA_PEM", &wiring.ca),
        from("LOCKSTEP_POD_UID", EnvVarSource { field_ref: Some(pod), ..EnvVarSource::default() }),
        from(
            "LOCKSTEP_TICKET",
            EnvVarSource { secret_key_ref: Some(ticket), ..EnvVarSource::default() },
        ),
    ]);
}

/// Has the agent copied into the pod before anything else starts there.
fn bring(pod: &mut PodSpec, image: &str, mount: VolumeMount) {
    let copies = Container {
        name: VOLUME.to_owned(),
        image: Some(image.to_owned()),
        args: Some(vec!["agent".to_owned(), "--install".to_owned(), FOLDER.to_owned()]),
        volume_mounts: Some(vec![mount]),
        ..Container::default()
    };
    pod.init_containers.get_or_insert_default().insert(0, copies);
    pod.volumes.get_or_insert_default().push(Volume {
        name: VOLUME.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource::default()),
        ..Volume::default()
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wiring(agent: AgentSource) -> Wiring {
        Wiring { orchestrator: "10.0.0.1:7411".into(), ca: "PEM".into(), agent }
    }

    fn job(containers: &serde_json::Value) -> JobSpec {
        serde_json::from_value(json!({
            "backoffLimit": 0,
            "template": {"spec": {"restartPolicy": "Never", "containers": containers}},
        }))
        .unwrap()
    }

    #[test]
    fn the_worker_is_started_by_its_agent() {
        let mut spec = job(&json!([
            {"name": "logs", "command": ["tail"]},
            {"name": "worker", "command": ["python"], "args": ["train.py"],
             "env": [{"name": "A", "value": "b"}]},
        ]));
        inject(&mut spec, "js", &wiring(AgentSource::Path("/bin/lockstep".into())));
        assert_eq!(spec.backoff_limit, Some(i32::MAX));
        assert_eq!(spec.pod_replacement_policy.as_deref(), Some("Failed"));
        let pod = spec.template.spec.clone().unwrap();
        assert_eq!(pod.containers[0].command, Some(vec!["tail".to_owned()]));
        let worker = &pod.containers[1];
        let command = worker.command.clone().unwrap();
        assert_eq!(command, ["/bin/lockstep", "agent", "--", "python"]);
        assert_eq!(worker.args, Some(vec!["train.py".to_owned()]));
        let names: Vec<&str> = worker.env.iter().flatten().map(|env| env.name.as_str()).collect();
        assert_eq!(names[..3], ["A", "LOCKSTEP_ORCHESTRATOR", "LOCKSTEP_ORCHESTRATOR_CA_PEM"]);
        assert_eq!(names[3..], ["LOCKSTEP_POD_UID", "LOCKSTEP_TICKET"]);
        assert_eq!((pod.init_containers, pod.volumes), (None, None));

        let once = spec.clone();
        inject(&mut spec, "js", &wiring(AgentSource::Path("/bin/lockstep".into())));
        assert_eq!(spec, once, "an agent around an agent is one too many");
    }

    #[test]
    fn on_a_cluster_an_image_brings_the_agent() {
        let mut spec = job(&json!([{"name": "main", "command": ["python"]}]));
        inject(&mut spec, "js", &wiring(AgentSource::Image("registry/lockstep:1".into())));
        let pod = spec.template.spec.unwrap();
        let bringing = &pod.init_containers.unwrap()[0];
        assert_eq!(bringing.image.as_deref(), Some("registry/lockstep:1"));
        let mounted = bringing.volume_mounts.as_ref().map(|mounts| mounts[0].name.clone());
        assert_eq!(mounted, Some(pod.volumes.unwrap()[0].name.clone()));
        let command = pod.containers[0].command.clone().unwrap();
        assert_eq!(command[0], "/lockstep-agent/lockstep");
        let mounts = pod.containers[0].volume_mounts.as_ref().unwrap();
        assert_eq!(mounts[0].mount_path, "/lockstep-agent");
    }

    #[test]
    fn places_are_counted_through_all_jobs() {
        let jobset: JobSet = serde_json::from_value(json!({
            "metadata": {"name": "js"},
            "spec": {"replicatedJobs": [
                {"name": "driver", "replicas": 1, "template": {"spec": {"template": {}}}},
                {"name": "none", "replicas": 0, "template": {"spec": {"template": {}}}},
                {"name": "w", "replicas": 2,
                 "template": {"spec": {"parallelism": 3, "template": {}}}},
            ]},
        }))
        .unwrap();
        let places = places(&jobset.spec);
        let want = [("driver", 0, 0..1), ("w", 0, 1..4), ("w", 1, 4..7)];
        let want = want.map(|(name, index, range)| (name.to_owned(), index, range));
        assert_eq!(places, want);
    }

    #[test]
    fn a_set_asks_for_it_with_a_time() {
        let asks = |value: &str| {
            let mut jobset = JobSet::default();
            let annotations = [(keys::IN_PLACE_TIMEOUT.to_owned(), value.to_owned())];
            jobset.metadata.annotations = Some(annotations.into());
            timeout(&jobset)
        };
        assert_eq!(timeout(&JobSet::default()), None);
        assert_eq!(asks("60s"), Some(Duration::from_secs(60)));
        assert_eq!(asks("1m30s"), Some(Duration::from_secs(90)));
        for nothing in ["", "soon", "0s", "-5s"] {
            assert_eq!(asks(nothing), None, "{nothing}");
        }
    }
}
