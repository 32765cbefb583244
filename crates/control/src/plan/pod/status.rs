//! The status of a pod: what users and controllers read of all this.

use jiff::{Timestamp, TimestampRound, Unit};
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, HostIP, Pod, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::ending::{DEADLINE_MESSAGE, is_terminal};
use super::memory::{ContainerMemory, Exit, Setup, State, after};
use super::restart::{Retry, go_duration, restarts, retry};
use super::start::{Progress, progress};
use super::{
    Ending, Pass, Role, Step, Waiting, conditions, containers, full_name, phase, shutdown,
};

const UNKNOWN_REASON: &str = "ContainerStatusUnknown";
const UNKNOWN_MESSAGE: &str = "The container could not be located when the pod was terminated";

/// Plans the write of the status if it has changed, and the last delete once it says the end.
pub(super) fn plan(pass: &mut Pass<'_>, ending: Option<Ending>) {
    if pass.memory.is_writing {
        return pass.wait(Waiting::StatusWrite);
    }
    if ending == Some(Ending::NodeShutdown) {
        if !shutdown::is_to_be_told(pass) {
            return pass.wait(Waiting::Finished);
        }
    } else if is_about_to_change(pass, ending) {
        return;
    }
    let is_over = ending.is_some() && pass.memory.is_still();
    let is_settled = is_terminal(pass.pod) && pass.memory.is_still() && !shows_running(pass.pod);
    if !is_settled {
        let status = desired(pass, ending, is_over);
        if pass.pod.status.as_ref() != Some(&status) {
            pass.memory.is_writing = true;
            return pass.step(Step::WriteStatus(Box::new(status)));
        }
    }
    if !is_over {
        return;
    }
    if is_terminal(pass.pod) && !pass.memory.is_torn_down {
        pass.memory.is_torn_down = true;
        pass.step(Step::TearDown);
    }
    if pass.pod.metadata.deletion_timestamp.is_some() && !pass.memory.is_delete_asked {
        pass.memory.is_delete_asked = true;
        pass.step(Step::ConfirmDelete);
    }
    pass.wait(Waiting::Finished);
}

/// The name of an instance of a container.
pub(super) fn container_id(pod: &Pod, container: &str, attempt: u32) -> String {
    format!("proc://{}/{container}/{attempt}", pod.metadata.uid.as_deref().unwrap_or_default())
}

/// Whether a start is in progress, or the end of what was just deleted: its outcome will be told in
/// one write with what is known now.
fn is_about_to_change(pass: &mut Pass<'_>, ending: Option<Ending>) -> bool {
    let is_starting =
        pass.memory.containers.values().any(|it| matches!(it.state, State::Starting { .. }));
    let is_stopping = ending == Some(Ending::Deleted) && !pass.memory.is_still();
    if !is_starting && !is_stopping && pass.memory.setup != Setup::Asked {
        pass.memory.settled_at = None;
        return false;
    }
    let at = *pass.memory.settled_at.get_or_insert_with(|| after(pass.now, pass.options.settle));
    let is_early = pass.now < at;
    if is_early {
        pass.wake(Some(at));
    }
    is_early
}

fn shows_running(pod: &Pod) -> bool {
    let Some(status) = &pod.status else { return false };
    let all = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
    let mut states = all.filter_map(|status| status.state.as_ref());
    states.any(|state| state.running.is_some())
}

fn desired(pass: &Pass<'_>, ending: Option<Ending>, is_over: bool) -> PodStatus {
    let pod = pass.pod;
    let old = pod.status.clone().unwrap_or_default();
    let mut init = Vec::new();
    let mut main = Vec::new();
    for (role, container) in containers(pod) {
        let status = container_status(pass, role, container, ending, is_over);
        match role {
            Role::Init | Role::Sidecar => init.push(status),
            Role::Main => main.push(status),
        }
    }
    let all: Vec<&ContainerStatus> = init.iter().chain(&main).collect();
    let has_main_started = containers(pod).any(|(role, container)| {
        let known = pass.memory.containers.get(&container.name);
        role == Role::Main && known.is_some_and(|it| it.state != State::Never)
    });
    let facts = phase::Facts { is_over, has_main_started };
    let (phase, verdict) = final_phase(pass, &old, phase::phase(pod, &all, facts), is_over);
    let facts = conditions::Facts {
        phase: &phase,
        statuses: &all,
        is_set_up: pass.memory.setup == Setup::Ready && !is_over,
        is_shut_down: pass.memory.ending == Some(Ending::NodeShutdown),
        now: whole(pass.now),
    };
    let conditions = Some(conditions::conditions(pod, &facts));
    let is_same_phase = old.phase.as_deref() == Some(phase.as_str());
    let (reason, message) = match verdict {
        Some((reason, message)) => (Some(reason.to_owned()), Some(message.to_owned())),
        None if is_same_phase => (old.reason.clone(), old.message.clone()),
        None => (None, None),
    };
    let pod_ip = pass.memory.pod_ip.clone().or_else(|| old.pod_ip.clone());
    PodStatus {
        phase: Some(phase),
        reason,
        message,
        conditions,
        start_time: pass.memory.started_at.map(|at| Time(whole(at))),
        host_ip: Some(pass.node.host_ip.clone()),
        host_ips: Some(vec![HostIP { ip: pass.node.host_ip.clone() }]),
        pod_ips: pod_ip.clone().map(|ip| vec![PodIP { ip }]),
        pod_ip,
        init_container_statuses: Some(init).filter(|list| !list.is_empty()),
        container_statuses: Some(main).filter(|list| !list.is_empty()),
        observed_generation: pod.metadata.generation,
        ..old
    }
}

/// The phase to report, and the reason when it is one that the containers do not tell.
fn final_phase(
    pass: &Pass<'_>,
    old: &PodStatus,
    computed: &str,
    is_over: bool,
) -> (String, Option<(&'static str, &'static str)>) {
    let is_end = |phase: &str| matches!(phase, "Succeeded" | "Failed");
    let old_phase = old.phase.as_deref().unwrap_or("Pending");
    if is_end(old_phase) {
        return (old_phase.to_owned(), None);
    }
    if !is_over {
        // The end is reported only once nothing runs any more: controllers replace the pod then.
        return (if is_end(computed) { old_phase } else { computed }.to_owned(), None);
    }
    match pass.memory.ending {
        Some(Ending::DeadlineExceeded) => {
            return ("Failed".to_owned(), Some(("DeadlineExceeded", DEADLINE_MESSAGE)));
        }
        Some(Ending::NodeShutdown) => {
            return ("Failed".to_owned(), Some((shutdown::REASON, shutdown::MESSAGE)));
        }
        _ => {}
    }
    (if is_end(computed) { computed } else { "Failed" }.to_owned(), None)
}

fn container_status(
    pass: &Pass<'_>,
    role: Role,
    container: &Container,
    ending: Option<Ending>,
    is_over: bool,
) -> ContainerStatus {
    let fresh = ContainerMemory::default();
    let known = pass.memory.containers.get(&container.name).map_or(&fresh, |known| &**known);
    let (state, last) = states(pass, role, container, known, ending, is_over);
    let is_started = known.is_started(container);
    let is_ready = match role {
        Role::Init => known.exit().is_some_and(|exit| exit.code == 0),
        Role::Sidecar | Role::Main => known.is_ready(container),
    };
    let created = match &known.state {
        State::Never => None,
        State::Starting { before } => before.as_ref().map(|_| known.attempt.saturating_sub(1)),
        State::Running { .. } | State::Exited(_) => Some(known.attempt),
    };
    let count = created.unwrap_or(known.attempt);
    let resources = container.resources.clone();
    ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        image_id: String::new(),
        container_id: created.map(|attempt| container_id(pass.pod, &container.name, attempt)),
        ready: is_ready,
        started: Some(is_started),
        restart_count: i32::try_from(count).unwrap_or(i32::MAX),
        state: Some(state),
        last_state: Some(last),
        allocated_resources: resources.as_ref().and_then(|it| it.requests.clone()),
        resources: resources.filter(|it| it.requests.is_some() || it.limits.is_some()),
        ..ContainerStatus::default()
    }
}

/// What the newest instance does and how the one before ended, as they are shown.
fn states(
    pass: &Pass<'_>,
    role: Role,
    container: &Container,
    known: &ContainerMemory,
    ending: Option<Ending>,
    is_over: bool,
) -> (ContainerState, ContainerState) {
    let id = |attempt| container_id(pass.pod, &container.name, attempt);
    let before = known.attempt.saturating_sub(1);
    let last = known.last.as_ref().map(|exit| terminated(exit, id(before)));
    match &known.state {
        State::Running { since } => {
            let running = ContainerStateRunning { started_at: Some(Time(whole(*since))) };
            let state = ContainerState { running: Some(running), ..ContainerState::default() };
            (state, last.unwrap_or_default())
        }
        State::Starting { before: exit } => {
            let last = exit.as_ref().map(|exit| terminated(exit, id(before))).or(last);
            (waiting(default_reason(pass.pod), String::new()), last.unwrap_or_default())
        }
        State::Exited(exit) => {
            let ended = terminated(exit, id(known.attempt));
            let is_to_restart = ending.is_none() && restarts(pass.pod, role, container, exit.code);
            match why_not_restarted(pass, container, known, exit).filter(|_| is_to_restart) {
                Some(waiting) => (waiting, ended),
                None => (ended, last.unwrap_or_default()),
            }
        }
        State::Never if is_over && was_reached(pass, role, container) => {
            let exit = Exit {
                code: 137,
                reason: UNKNOWN_REASON.to_owned(),
                message: UNKNOWN_MESSAGE.to_owned(),
                ..Exit::default()
            };
            (terminated(&exit, String::new()), last.unwrap_or_default())
        }
        State::Never => {
            let state = match &known.problem {
                Some(problem) => waiting(problem.reason, problem.message.clone()),
                None => waiting(default_reason(pass.pod), String::new()),
            };
            (state, last.unwrap_or_default())
        }
    }
}

/// Whether a container that never started was next: the end of the pod is then its end too.
fn was_reached(pass: &Pass<'_>, role: Role, container: &Container) -> bool {
    match progress(pass.pod, pass.memory) {
        Progress::Initialized => true,
        Progress::At(at) => {
            role != Role::Main
                && containers(pass.pod).take(at + 1).any(|(_, it)| it.name == container.name)
        }
    }
}

fn why_not_restarted(
    pass: &Pass<'_>,
    container: &Container,
    known: &ContainerMemory,
    exit: &Exit,
) -> Option<ContainerState> {
    if let Retry::Later { wait, .. } = retry(exit, known.delay, pass.options, pass.now) {
        let (name, pod) = (&container.name, full_name(pass.pod));
        let wait = go_duration(wait);
        let message = format!("back-off {wait} restarting failed container={name} pod={pod}");
        return Some(waiting("CrashLoopBackOff", message));
    }
    known.problem.as_ref().map(|problem| waiting(problem.reason, problem.message.clone()))
}

fn default_reason(pod: &Pod) -> &'static str {
    let init = pod.spec.as_ref().and_then(|spec| spec.init_containers.as_ref());
    if init.is_some_and(|list| !list.is_empty()) { "PodInitializing" } else { "ContainerCreating" }
}

fn waiting(reason: &str, message: String) -> ContainerState {
    let message = Some(message).filter(|message| !message.is_empty());
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn terminated(exit: &Exit, id: String) -> ContainerState {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let terminated = ContainerStateTerminated {
        exit_code: exit.code,
        signal: exit.signal,
        reason: text(&exit.reason),
        message: text(&exit.message),
        started_at: exit.started_at.map(|at| Time(whole(at))),
        finished_at: exit.finished_at.map(|at| Time(whole(at))),
        container_id: text(&id),
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}

/// The API keeps whole seconds.
fn whole(at: Timestamp) -> Timestamp {
    let round = TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor);
    at.round(round).unwrap_or(at)
}
