//! A pretend node for the tests of this room: it carries plans out at once and keeps a log.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::*;

/// A pod under construction.
pub(super) struct Built {
    pub pod: Pod,
}

/// A pod with main containers of these names.
pub(super) fn pod(policy: &str, mains: &[&str]) -> Built {
    let pod = Pod {
        metadata: ObjectMeta {
            name: Some("p".to_owned()),
            namespace: Some("ns".to_owned()),
            uid: Some("u".to_owned()),
            generation: Some(1),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            restart_policy: Some(policy.to_owned()),
            containers: mains.iter().map(|name| container(name)).collect(),
            termination_grace_period_seconds: Some(30),
            ..PodSpec::default()
        }),
        status: Some(PodStatus { phase: Some("Pending".to_owned()), ..PodStatus::default() }),
    };
    Built { pod }
}

fn container(name: &str) -> Container {
    Container {
        name: name.to_owned(),
        image: Some("img".to_owned()),
        command: Some(vec!["true".to_owned()]),
        ..Container::default()
    }
}

impl Built {
    pub(super) fn init(mut self, names: &[&str]) -> Self {
        let list = self.pod.spec.as_mut().unwrap().init_containers.get_or_insert_default();
        list.extend(names.iter().map(|name| container(name)));
        self
    }

    pub(super) fn sidecars(mut self, names: &[&str]) -> Self {
        let list = self.pod.spec.as_mut().unwrap().init_containers.get_or_insert_default();
        list.extend(names.iter().map(|name| Container {
            restart_policy: Some("Always".to_owned()),
            ..container(name)
        }));
        self
    }

    pub(super) fn with(mut self, name: &str, change: impl FnOnce(&mut Container)) -> Self {
        let spec = self.pod.spec.as_mut().unwrap();
        let all = spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten());
        change(all.into_iter().find(|container| container.name == name).unwrap());
        self
    }
}

/// A node with one pod on it.
pub(super) struct World {
    pub pod: Pod,
    pub memory: Memory,
    pub now: Timestamp,
    pub options: Options,
    /// `container/attempt` of every start.
    pub starts: Vec<String>,
    /// `container:what` of every signal, kill, hook and probe.
    pub log: Vec<String>,
    /// `reason: message` of every event.
    pub events: Vec<String>,
    pub status_writes: usize,
    /// What starts answer.
    pub start_failure: Option<StartFailure>,
    /// What probes answer.
    pub probe: ProbeOutcome,
    /// Whether containers end when asked to.
    pub is_obedient: bool,
    pub tear_downs: usize,
    pub is_shutting_down: bool,
    pub is_deleted: bool,
    pub is_forgotten: bool,
}

impl World {
    pub(super) fn new(built: Built) -> Self {
        Self {
            pod: built.pod,
            memory: Memory::default(),
            now: Timestamp::from_second(1_000_000).unwrap(),
            options: Options::default(),
            starts: Vec::new(),
            log: Vec::new(),
            events: Vec::new(),
            status_writes: 0,
            start_failure: None,
            probe: ProbeOutcome::Success,
            is_obedient: true,
            tear_downs: 0,
            is_shutting_down: false,
            is_deleted: false,
            is_forgotten: false,
        }
    }

    /// Plans and carries out until nothing is left to do now.
    pub(super) fn run(&mut self) {
        drop(self.rest());
    }

    /// As [`World::run`]; gives back the last plan, which has no steps.
    pub(super) fn rest(&mut self) -> Plan {
        for _ in 0..100 {
            let plan = self.plan();
            if plan.steps.is_empty() {
                let again = self.plan();
                assert_eq!(again, plan, "planning again asks for nothing new");
                let waits = plan.waiting.is_some() || self.is_forgotten;
                assert!(waits || plan.next.is_some(), "a pod that does not move says why");
                return plan;
            }
            for step in plan.steps {
                self.carry_out(step);
            }
        }
        panic!("the pod does not come to rest: {:?}", self.log);
    }

    pub(super) fn plan(&mut self) -> Plan {
        let node =
            NodeFacts { host_ip: "10.0.0.1".to_owned(), is_shutting_down: self.is_shutting_down };
        plan(&self.pod, &mut self.memory, &node, &self.options, self.now)
    }

    pub(super) fn ending(&mut self) -> Option<Ending> {
        let node = NodeFacts::default();
        let pass = Pass {
            pod: &self.pod,
            memory: &mut self.memory,
            node: &node,
            options: &self.options,
            now: self.now,
            plan: Plan::default(),
        };
        ending::decide(&pass)
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, seconds: u64) {
        self.now = self.now.checked_add(Duration::from_secs(seconds)).unwrap();
    }

    /// The newest instance of a container ends.
    pub(super) fn exit(&mut self, name: &str, code: i32) {
        let known = &self.memory.containers[name];
        let attempt = known.attempt;
        let exit = Exit {
            code,
            reason: Exit::ordinary_reason(code, false).to_owned(),
            started_at: known.running_since(),
            finished_at: Some(self.now),
            ..Exit::default()
        };
        self.memory.exited(name, attempt, exit);
    }

    pub(super) fn delete(&mut self, grace: i64) {
        let at = self.now.checked_add(Duration::from_secs(grace.unsigned_abs())).unwrap();
        self.pod.metadata.deletion_timestamp = Some(Time(at));
        self.pod.metadata.deletion_grace_period_seconds = Some(grace);
    }

    /// The node is restarted and finds these instances.
    pub(super) fn restart(&mut self, known: &[Known]) {
        self.memory = Memory::recover(&self.pod, known);
    }

    pub(super) fn phase(&self) -> &str {
        self.pod.status.as_ref().unwrap().phase.as_deref().unwrap()
    }

    pub(super) fn status(&self, name: &str) -> ContainerStatus {
        let status = self.pod.status.as_ref().unwrap();
        let mut all =
            status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
        all.find(|status| status.name == name).unwrap().clone()
    }

    /// `waiting/Reason`, `running` or `terminated/code/Reason`.
    pub(super) fn state(&self, name: &str) -> String {
        let state = self.status(name).state.unwrap();
        match (state.waiting, state.running, state.terminated) {
            (Some(waiting), ..) => format!("waiting/{}", waiting.reason.unwrap_or_default()),
            (_, Some(_), _) => "running".to_owned(),
            (.., Some(ended)) => {
                format!("terminated/{}/{}", ended.exit_code, ended.reason.unwrap_or_default())
            }
            _ => "none".to_owned(),
        }
    }

    pub(super) fn carry_out(&mut self, step: Step) {
        match step {
            Step::SetUp => self.memory.set_up("127.1.0.1".to_owned()),
            Step::Start { container, attempt } => {
                self.starts.push(format!("{container}/{attempt}"));
                match self.start_failure.clone() {
                    None => self.memory.started(&container, attempt, self.now),
                    Some(failure) => {
                        let options = self.options.clone();
                        self.memory.start_failed(&container, attempt, failure, &options, self.now);
                    }
                }
            }
            Step::RunHook { container, kind, .. } => self.log.push(format!("{container}:{kind:?}")),
            Step::Probe { container, attempt, kind } => {
                self.log.push(format!("{container}:{kind}"));
                let outcome = self.probe.clone();
                self.memory.probed(&container, attempt, kind, &outcome, (3, 1));
            }
            Step::Terminate { container, signal, .. } => {
                self.log.push(format!("{container}:signal {signal}"));
                if self.is_obedient {
                    self.exit(&container, 0);
                }
            }
            Step::Kill { container, .. } => {
                self.log.push(format!("{container}:kill"));
                self.exit(&container, 137);
            }
            Step::Emit(event) => self.events.push(format!("{}: {}", event.reason, event.message)),
            Step::WriteStatus(status) => {
                self.status_writes += 1;
                // The API speaks JSON: what does not survive it would be written for ever.
                let json = serde_json::to_value(&status).unwrap();
                self.pod.status = Some(serde_json::from_value(json).unwrap());
                self.memory.status_written();
            }
            Step::ConfirmDelete => {
                assert!(matches!(self.phase(), "Failed" | "Succeeded"), "{}", self.phase());
                self.is_deleted = true;
                self.memory.gone();
            }
            Step::TearDown => {
                assert!(matches!(self.phase(), "Failed" | "Succeeded"), "{}", self.phase());
                self.tear_downs += 1;
            }
            Step::Forget => self.is_forgotten = true,
        }
    }
}
