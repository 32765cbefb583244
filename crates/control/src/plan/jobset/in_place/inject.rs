//! The agent around a worker. It is put into the templates of the Jobs that a set makes, never into
//! the set itself: what a user wrote stays as it is.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        batch::v1::JobSpec,
        core::v1::{
            Capabilities, Container, EmptyDirVolumeSource, EnvVar, EnvVarSource,
            ObjectFieldSelector, PodSpec, ResourceRequirements, SecretKeySelector, SecurityContext,
            Volume, VolumeMount,
        },
    },
    apimachinery::pkg::api::resource::Quantity,
};
use lockstep_api::jobset::in_place::{worker, worker_at};

use super::{AgentSource, BUS_PASSWORD_KEY, Way, Wiring, secret, ticket_key};

/// The folder in which a copied agent lies.
const FOLDER: &str = "/lockstep-agent";
const VOLUME: &str = "lockstep-agent";
const ORCHESTRATOR: &str = "LOCKSTEP_ORCHESTRATOR";
const BUS: &str = "LOCKSTEP_BUS";
/// How long a worker that is asked to stop may take; users may set it too.
pub(super) const GRACE: &str = "LOCKSTEP_GRACE";

/// Puts an agent around the worker of a Job's pods. A failed worker must not fail its Job, and a
/// pod is replaced only when nothing of it is left.
pub fn inject(job: &mut JobSpec, set_name: &str, generation: u32, wiring: &Wiring) {
    job.backoff_limit = Some(i32::MAX);
    job.pod_replacement_policy = Some("Failed".to_owned());
    let pod = job.template.spec.get_or_insert_default();
    let grace = pod.termination_grace_period_seconds;
    let Some(worker) = worker_at(pod).and_then(|at| pod.containers.get_mut(at)) else { return };
    if is_wrapped(worker) {
        return;
    }
    let grace = grace.filter(|_| !has_env(worker, GRACE));
    let program = match &wiring.agent {
        AgentSource::Path(path) => path.clone(),
        AgentSource::Image(_) => format!("{FOLDER}/lockstep"),
    };
    wrap(worker, program, (set_name, generation), wiring);
    if let Some(seconds) = grace {
        worker.env.get_or_insert_default().push(value(GRACE, &format!("{seconds}s")));
    }
    if let AgentSource::Image(image) = &wiring.agent {
        let mount = VolumeMount {
            name: VOLUME.to_owned(),
            mount_path: FOLDER.to_owned(),
            ..VolumeMount::default()
        };
        worker.volume_mounts.get_or_insert_default().push(mount.clone());
        let manners = (resources(worker), security(worker));
        bring(pod, image, mount, manners);
    }
}

/// What a container asks for, and what it may do.
type Manners = (Option<ResourceRequirements>, SecurityContext);

/// The processors and the memory of a worker. Other resources, such as devices, are not for
/// sharing.
fn resources(worker: &Container) -> Option<ResourceRequirements> {
    let own = worker.resources.as_ref()?;
    let shared = |all: &Option<BTreeMap<String, Quantity>>| {
        let mut all = all.clone()?;
        all.retain(|name, _| matches!(name.as_str(), "cpu" | "memory"));
        (!all.is_empty()).then_some(all)
    };
    let (requests, limits) = (shared(&own.requests), shared(&own.limits));
    let is_any = requests.is_some() || limits.is_some();
    is_any.then(|| ResourceRequirements { requests, limits, ..ResourceRequirements::default() })
}

/// As who a worker runs, and nothing that copying a file does not need.
fn security(worker: &Container) -> SecurityContext {
    let own = worker.security_context.clone().unwrap_or_default();
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
        run_as_group: own.run_as_group,
        run_as_non_root: own.run_as_non_root,
        run_as_user: own.run_as_user,
        seccomp_profile: own.seccomp_profile,
        ..SecurityContext::default()
    }
}

/// Whether there is an agent around the worker of a Job's pods.
pub(in crate::plan) fn has_agent(job: &JobSpec) -> bool {
    worker(job).is_some_and(is_wrapped)
}

fn is_wrapped(worker: &Container) -> bool {
    has_env(worker, ORCHESTRATOR) || has_env(worker, BUS)
}

fn has_env(worker: &Container, name: &str) -> bool {
    worker.env.iter().flatten().any(|env| env.name == name)
}

fn wrap(
    worker: &mut Container,
    program: String,
    (set_name, generation): (&str, u32),
    wiring: &Wiring,
) {
    let own = worker.command.take().unwrap_or_default();
    let mut command = vec![program, "agent".to_owned(), "--".to_owned()];
    command.extend(own);
    worker.command = Some(command);
    let pod = ObjectFieldSelector { field_path: "metadata.uid".to_owned(), api_version: None };
    let pod = EnvVarSource { field_ref: Some(pod), ..EnvVarSource::default() };
    let env = worker.env.get_or_insert_default();
    env.extend(way(set_name, &wiring.way));
    env.push(from("LOCKSTEP_POD_UID", pod));
    env.push(kept("LOCKSTEP_TICKET", set_name, ticket_key(generation)));
}

/// How an agent gets to whoever leads.
fn way(set_name: &str, way: &Way) -> Vec<EnvVar> {
    match way {
        Way::Orchestrator { address, ca } => {
            vec![value(ORCHESTRATOR, address), value("LOCKSTEP_ORCHESTRATOR_CA_PEM", ca)]
        }
        Way::Bus { url, ca, user, has_password } => {
            let mut env = vec![value(BUS, url)];
            env.extend(ca.as_ref().map(|ca| value("LOCKSTEP_BUS_CA_PEM", ca)));
            env.extend(user.as_ref().map(|user| value("LOCKSTEP_BUS_USER", user)));
            if *has_password {
                let password = BUS_PASSWORD_KEY.to_owned();
                env.push(kept("LOCKSTEP_BUS_PASSWORD", set_name, password));
            }
            env
        }
    }
}

fn from(name: &str, source: EnvVarSource) -> EnvVar {
    EnvVar { name: name.to_owned(), value: None, value_from: Some(source) }
}

/// Something that is in the Secret of the set.
fn kept(name: &str, set_name: &str, key: String) -> EnvVar {
    let there = SecretKeySelector { name: secret(set_name), key, optional: Some(false) };
    from(name, EnvVarSource { secret_key_ref: Some(there), ..EnvVarSource::default() })
}

fn value(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.to_owned()), value_from: None }
}

/// Has the agent copied into the pod before anything else starts there. What does it asks for no
/// more than the worker, and may do less: the quota, the class and the security of the pod stay as
/// they would be without it.
fn bring(pod: &mut PodSpec, image: &str, mount: VolumeMount, (resources, security): Manners) {
    let copies = Container {
        name: VOLUME.to_owned(),
        image: Some(image.to_owned()),
        args: Some(vec!["agent".to_owned(), "--install".to_owned(), FOLDER.to_owned()]),
        volume_mounts: Some(vec![mount]),
        resources,
        security_context: Some(security),
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
        let way = Way::Orchestrator { address: "10.0.0.1:7411".into(), ca: "PEM".into() };
        Wiring { way, agent }
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
        inject(&mut spec, "js", 2, &wiring(AgentSource::Path("/bin/lockstep".into())));
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
        inject(&mut spec, "js", 2, &wiring(AgentSource::Path("/bin/lockstep".into())));
        assert_eq!(spec, once, "an agent around an agent is one too many");
    }

    #[test]
    fn an_agent_may_be_sent_to_a_bus_and_its_password_is_in_no_template() {
        let bus = |ca: Option<&str>, user: Option<&str>| Way::Bus {
            url: "valkeys://bus:6379".into(),
            ca: ca.map(Into::into),
            user: user.map(Into::into),
            has_password: user.is_some(),
        };
        let env = |way: Way| {
            let mut spec = job(&json!([{"name": "worker", "command": ["python"]}]));
            let wiring = Wiring { way, agent: AgentSource::Path("/bin/lockstep".into()) };
            inject(&mut spec, "js", 2, &wiring);
            let once = spec.clone();
            inject(&mut spec, "js", 2, &wiring);
            assert_eq!(spec, once, "an agent around an agent is one too many");
            serde_json::to_value(&spec.template.spec.unwrap().containers[0].env).unwrap()
        };
        let rest = [
            json!({"name": "LOCKSTEP_POD_UID", "valueFrom": {
                "fieldRef": {"fieldPath": "metadata.uid"}}}),
            json!({"name": "LOCKSTEP_TICKET", "valueFrom": {"secretKeyRef": {
                "name": "js-in-place-restart", "key": "ticket-2", "optional": false}}}),
        ];
        let open = env(bus(None, None));
        let at = json!({"name": "LOCKSTEP_BUS", "value": "valkeys://bus:6379"});
        assert_eq!(open, json!([at, rest[0], rest[1]]));
        let guarded = env(bus(Some("PEM"), Some("agent")));
        let password = json!({"name": "LOCKSTEP_BUS_PASSWORD", "valueFrom": {"secretKeyRef": {
            "name": "js-in-place-restart", "key": "bus-password", "optional": false}}});
        let want = json!([
            at,
            {"name": "LOCKSTEP_BUS_CA_PEM", "value": "PEM"},
            {"name": "LOCKSTEP_BUS_USER", "value": "agent"},
            password, rest[0], rest[1],
        ]);
        assert_eq!(guarded, want);
    }

    #[test]
    fn what_brings_the_agent_is_as_modest_as_the_worker() {
        let copied = |worker: &serde_json::Value| {
            let mut worker = worker.clone();
            worker["name"] = json!("main");
            worker["command"] = json!(["python"]);
            let mut spec = job(&json!([worker]));
            inject(&mut spec, "js", 2, &wiring(AgentSource::Image("registry/lockstep:1".into())));
            let brings = &spec.template.spec.unwrap().init_containers.unwrap()[0];
            let brings = serde_json::to_value(brings).unwrap();
            (brings["resources"].clone(), brings["securityContext"].clone())
        };
        let dropped = json!({"drop": ["ALL"]});
        let (resources, security) = copied(&json!({}));
        assert_eq!(resources, serde_json::Value::Null);
        let want = json!({"allowPrivilegeEscalation": false, "capabilities": dropped});
        assert_eq!(security, want, "the rest is as the pod says");
        let (resources, security) = copied(&json!({
            "resources": {"requests": {"cpu": "4", "memory": "1Gi"},
                          "limits": {"cpu": "4", "memory": "1Gi", "example.com/gpu": "8"}},
            "securityContext": {"runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": true,
                                "privileged": true, "capabilities": {"add": ["SYS_PTRACE"]},
                                "seccompProfile": {"type": "RuntimeDefault"}},
        }));
        let both = json!({"cpu": "4", "memory": "1Gi"});
        assert_eq!(resources, json!({"requests": both, "limits": both}));
        let want = json!({
            "allowPrivilegeEscalation": false, "capabilities": dropped,
            "runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": true,
            "seccompProfile": {"type": "RuntimeDefault"},
        });
        assert_eq!(security, want);
    }

    #[test]
    fn on_a_cluster_an_image_brings_the_agent() {
        let mut spec = job(&json!([{"name": "main", "command": ["python"]}]));
        inject(&mut spec, "js", 2, &wiring(AgentSource::Image("registry/lockstep:1".into())));
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
}
