//! The conditions a node keeps on its pods.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Role, containers, shutdown};

/// What the conditions follow from.
pub(super) struct Facts<'a> {
    pub phase: &'a str,
    pub statuses: &'a [&'a ContainerStatus],
    /// Whether volumes and address are there.
    pub is_set_up: bool,
    /// Whether the pod ends because the node shuts down.
    pub is_shut_down: bool,
    pub now: Timestamp,
}

/// The conditions of `pod`: those of others as they are, ours brought up to date.
pub(super) fn conditions(pod: &Pod, facts: &Facts<'_>) -> Vec<PodCondition> {
    let old = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    let mut all = old.unwrap_or_default().to_vec();
    let containers_ready = containers_ready(pod, facts);
    let ready = ready(pod, &containers_ready);
    let set_up = Claim::plain(facts.is_set_up);
    put(&mut all, pod, facts.now, "PodReadyToStartContainers", set_up);
    put(&mut all, pod, facts.now, "Initialized", initialized(pod, facts));
    put(&mut all, pod, facts.now, "Ready", ready);
    put(&mut all, pod, facts.now, "ContainersReady", containers_ready);
    put(&mut all, pod, facts.now, "PodScheduled", Claim::plain(true));
    if let Some(claim) = disrupted(pod, facts) {
        put(&mut all, pod, facts.now, shutdown::CONDITION, claim);
    }
    all
}

/// A condition without its name and time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Claim {
    is_true: bool,
    reason: &'static str,
    message: String,
}

impl Claim {
    fn plain(is_true: bool) -> Self {
        Self { is_true, reason: "", message: String::new() }
    }

    fn denied(reason: &'static str, message: String) -> Self {
        Self { is_true: false, reason, message }
    }
}

fn put(all: &mut Vec<PodCondition>, pod: &Pod, now: Timestamp, name: &str, claim: Claim) {
    let text = |text: String| if text.is_empty() { None } else { Some(text) };
    let status = if claim.is_true { "True" } else { "False" };
    let place = all.iter().position(|condition| condition.type_ == name);
    let old = place.map(|place| &all[place]).filter(|condition| condition.status == status);
    let condition = PodCondition {
        type_: name.to_owned(),
        status: status.to_owned(),
        reason: text(claim.reason.to_owned()),
        message: text(claim.message),
        observed_generation: pod.metadata.generation,
        last_probe_time: None,
        last_transition_time: old
            .and_then(|condition| condition.last_transition_time.clone())
            .or(Some(Time(now))),
    };
    match place {
        Some(place) => all[place] = condition,
        None => all.push(condition),
    }
}

/// What is said of a disruption, if it is ours to say anything.
fn disrupted(pod: &Pod, facts: &Facts<'_>) -> Option<Claim> {
    if facts.is_shut_down {
        let message = shutdown::MESSAGE.to_owned();
        return Some(Claim { is_true: true, reason: shutdown::CONDITION_REASON, message });
    }
    let is_over = matches!(facts.phase, "Succeeded" | "Failed");
    (shutdown::is_announced(pod) && !is_over).then(|| Claim::plain(false))
}

fn initialized(pod: &Pod, facts: &Facts<'_>) -> Claim {
    let status = |name: &str| facts.statuses.iter().find(|status| status.name == name);
    let mut incomplete = Vec::new();
    let mut has_main_started = false;
    for (role, container) in containers(pod) {
        let Some(status) = status(&container.name) else { continue };
        let is_done = match role {
            Role::Init => status.ready,
            Role::Sidecar => status.started == Some(true),
            Role::Main => {
                has_main_started |= status
                    .state
                    .as_ref()
                    .is_some_and(|state| state.running.is_some() || state.terminated.is_some());
                true
            }
        };
        if !is_done {
            incomplete.push(container.name.as_str());
        }
    }
    if facts.phase == "Succeeded" {
        return Claim { is_true: true, reason: "PodCompleted", message: String::new() };
    }
    if has_main_started || incomplete.is_empty() {
        return Claim::plain(true);
    }
    Claim::denied(
        "ContainersNotInitialized",
        format!("containers with incomplete status: [{}]", incomplete.join(" ")),
    )
}

fn containers_ready(pod: &Pod, facts: &Facts<'_>) -> Claim {
    match facts.phase {
        "Succeeded" => return Claim::denied("PodCompleted", String::new()),
        "Failed" => return Claim::denied("PodFailed", String::new()),
        _ => {}
    }
    let unready: Vec<&str> = containers(pod)
        .filter(|(role, _)| *role != Role::Init)
        .map(|(_, container)| container.name.as_str())
        .filter(|name| !facts.statuses.iter().any(|status| status.name == *name && status.ready))
        .collect();
    if unready.is_empty() {
        return Claim::plain(true);
    }
    Claim::denied(
        "ContainersNotReady",
        format!("containers with unready status: [{}]", unready.join(" ")),
    )
}

fn ready(pod: &Pod, containers_ready: &Claim) -> Claim {
    if !containers_ready.is_true {
        return containers_ready.clone();
    }
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_deref());
    let known = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    let mut unmet = Vec::new();
    for gate in gates.unwrap_or_default() {
        let name = &gate.condition_type;
        match known.unwrap_or_default().iter().find(|condition| condition.type_ == *name) {
            None => unmet.push(format!(
                "corresponding condition of pod readiness gate {name:?} does not exist."
            )),
            Some(condition) if condition.status != "True" => unmet.push(format!(
                "the status of pod readiness gate {name:?} is not \"True\", but {}",
                condition.status
            )),
            Some(_) => {}
        }
    }
    if unmet.is_empty() {
        return Claim::plain(true);
    }
    Claim::denied("ReadinessGatesNotReady", unmet.join(", "))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodReadinessGate;

    use super::super::world::{World, pod};

    /// `Type=Status/Reason/Message` of the conditions of a pod.
    fn shown(world: &World) -> Vec<String> {
        let status = world.pod.status.as_ref().unwrap();
        let mut all: Vec<String> = status
            .conditions
            .iter()
            .flatten()
            .map(|condition| {
                let part = |part: &Option<String>| part.clone().unwrap_or_default();
                format!(
                    "{}={}/{}/{}",
                    condition.type_,
                    condition.status,
                    part(&condition.reason),
                    part(&condition.message)
                )
            })
            .collect();
        all.sort();
        all
    }

    #[test]
    fn a_running_pod_is_ready_and_a_completed_one_is_not() {
        let mut world = World::new(pod("Never", &["a"]));
        world.run();
        assert_eq!(
            shown(&world),
            [
                "ContainersReady=True//",
                "Initialized=True//",
                "PodReadyToStartContainers=True//",
                "PodScheduled=True//",
                "Ready=True//",
            ]
        );
        world.exit("a", 0);
        world.run();
        assert_eq!(
            shown(&world),
            [
                "ContainersReady=False/PodCompleted/",
                "Initialized=True/PodCompleted/",
                "PodReadyToStartContainers=False//",
                "PodScheduled=True//",
                "Ready=False/PodCompleted/",
            ]
        );
    }

    #[test]
    fn an_initializing_pod_says_what_it_waits_for() {
        let mut world = World::new(pod("Never", &["a", "b"]).init(&["i", "j"]));
        world.run();
        assert_eq!(
            shown(&world),
            [
                "ContainersReady=False/ContainersNotReady/containers with unready status: [a b]",
                "Initialized=False/ContainersNotInitialized/containers with incomplete status: \
                 [i j]",
                "PodReadyToStartContainers=True//",
                "PodScheduled=True//",
                "Ready=False/ContainersNotReady/containers with unready status: [a b]",
            ]
        );
        world.exit("i", 1);
        world.run();
        assert!(shown(&world).contains(&"Ready=False/PodFailed/".to_owned()));
    }

    #[test]
    fn readiness_gates_hold_a_pod_back() {
        let mut world = World::new(pod("Never", &["a"]));
        let gate = PodReadinessGate { condition_type: "x/y".to_owned() };
        world.pod.spec.as_mut().unwrap().readiness_gates = Some(vec![gate]);
        world.run();
        let want = "Ready=False/ReadinessGatesNotReady/corresponding condition of pod readiness \
                    gate \"x/y\" does not exist.";
        assert!(shown(&world).contains(&want.to_owned()), "{:?}", shown(&world));
    }

    #[test]
    fn the_time_of_a_condition_changes_only_with_its_status() {
        let mut world = World::new(pod("Always", &["a"]));
        world.run();
        let at = |world: &World| {
            let status = world.pod.status.as_ref().unwrap();
            let conditions = status.conditions.as_ref().unwrap();
            let ready = conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
            ready.last_transition_time.clone().unwrap().0
        };
        let first = at(&world);
        world.pass(30);
        world.run();
        assert_eq!(at(&world), first);
        world.exit("a", 1);
        world.exit("a", 1);
        world.run();
        assert!(at(&world) >= first);
    }
}
