//! The phase of a pod, from the statuses of its containers.

use k8s_openapi::api::core::v1::{Container, ContainerState, ContainerStatus, Pod};

use super::restart::restarts;
use super::{Role, containers};

/// What is known beside the statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// Whether no container will be started any more, whatever its policy.
    pub is_over: bool,
    /// Whether a main container has ever started.
    pub has_main_started: bool,
}

/// The phase of `pod` whose containers have these statuses (init containers among them).
pub(super) fn phase(pod: &Pod, statuses: &[&ContainerStatus], facts: Facts) -> &'static str {
    let mut count = Count::default();
    for (role, container) in containers(pod) {
        let status = statuses.iter().find(|status| status.name == container.name);
        let Some(state) = status.and_then(|status| status.state.as_ref()) else {
            match role {
                Role::Init => count.init_pending += 1,
                Role::Sidecar | Role::Main => count.unknown += 1,
            }
            continue;
        };
        let status = status.expect("it has a state");
        match role {
            Role::Init => count.init(pod, container, status, state),
            Role::Sidecar => count.sidecar(status, state),
            Role::Main => count.main(pod, container, status, state),
        }
    }
    count.phase(facts)
}

#[derive(Default)]
struct Count {
    init_failed: u32,
    init_pending: u32,
    sidecars_pending: u32,
    unknown: u32,
    running: u32,
    waiting: u32,
    stopped: u32,
    stopped_for_good: u32,
    succeeded: u32,
}

impl Count {
    fn init(
        &mut self,
        pod: &Pod,
        container: &Container,
        status: &ContainerStatus,
        state: &ContainerState,
    ) {
        match ended(status, state) {
            Some(0) => {}
            Some(code) if !restarts(pod, Role::Init, container, code) => self.init_failed += 1,
            Some(_) => {}
            None => self.init_pending += 1,
        }
    }

    fn sidecar(&mut self, status: &ContainerStatus, state: &ContainerState) {
        if state.running.is_some() {
            self.running += 1;
            if status.started != Some(true) {
                self.sidecars_pending += 1;
            }
        } else if ended(status, state).is_none() {
            self.sidecars_pending += 1;
            self.waiting += 1;
        }
    }

    fn main(
        &mut self,
        pod: &Pod,
        container: &Container,
        status: &ContainerStatus,
        state: &ContainerState,
    ) {
        if state.running.is_some() {
            self.running += 1;
            return;
        }
        let Some(code) = ended(status, state) else {
            self.waiting += 1;
            return;
        };
        self.stopped += 1;
        if !restarts(pod, Role::Main, container, code) {
            self.stopped_for_good += 1;
        }
        if state.terminated.is_some() && code == 0 {
            self.succeeded += 1;
        }
    }

    fn phase(&self, facts: Facts) -> &'static str {
        if self.init_failed > 0 {
            return "Failed";
        }
        let is_initializing =
            self.init_pending > 0 || (self.sidecars_pending > 0 && !facts.has_main_started);
        if is_initializing || self.waiting > 0 || self.unknown > 0 {
            return "Pending";
        }
        if self.running > 0 {
            return "Running";
        }
        match self.stopped {
            0 => "Pending",
            _ if !facts.is_over && self.stopped > self.stopped_for_good => "Running",
            stopped if stopped == self.succeeded => "Succeeded",
            _ => "Failed",
        }
    }
}

/// The exit code of a container that has ended, or waits after having ended.
fn ended(status: &ContainerStatus, state: &ContainerState) -> Option<i32> {
    let last = status.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    match (&state.running, &state.terminated, &state.waiting) {
        (Some(_), _, _) => None,
        (None, Some(terminated), _) => Some(terminated.exit_code),
        (None, None, _) => last.map(|terminated| terminated.exit_code),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{
        ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    };

    use super::super::world::pod;
    use super::*;

    /// `r` running, `R` running and started, `w` waiting, a digit: exited; `c` crash loop after 1.
    fn status(name: &str, letter: char) -> ContainerStatus {
        let terminated = |code| ContainerState {
            terminated: Some(ContainerStateTerminated { exit_code: code, ..Default::default() }),
            ..Default::default()
        };
        let waiting = ContainerState {
            waiting: Some(ContainerStateWaiting::default()),
            ..Default::default()
        };
        let mut status = ContainerStatus { name: name.to_owned(), ..Default::default() };
        status.state = Some(match letter {
            'r' | 'R' => {
                status.started = Some(letter == 'R');
                let running = Some(ContainerStateRunning::default());
                ContainerState { running, ..Default::default() }
            }
            'w' => waiting,
            'c' => {
                status.last_state = Some(terminated(1));
                waiting
            }
            digit => terminated(digit.to_digit(10).unwrap().try_into().unwrap()),
        });
        status
    }

    #[test]
    fn phases_follow_from_the_states_of_containers() {
        // (policy, init, sidecars, mains, over, phase)
        let cases = [
            ("Always", "", "", "ww", false, "Pending"),
            ("Always", "", "", "wR", false, "Pending"),
            ("Always", "", "", "RR", false, "Running"),
            ("Always", "", "", "0R", false, "Running"),
            ("Always", "", "", "c", false, "Running"),
            ("Always", "", "", "1", false, "Running"),
            ("Always", "", "", "0", true, "Succeeded"),
            ("Always", "", "", "1", true, "Failed"),
            ("OnFailure", "", "", "0", false, "Succeeded"),
            ("OnFailure", "", "", "10", false, "Running"),
            ("Never", "", "", "00", false, "Succeeded"),
            ("Never", "", "", "01", false, "Failed"),
            ("Never", "", "", "0R", false, "Running"),
            ("Never", "r", "", "w", false, "Pending"),
            ("Never", "1", "", "w", false, "Failed"),
            ("Always", "c", "", "w", false, "Pending"),
            ("Never", "0", "", "0", false, "Succeeded"),
            ("Never", "", "r", "w", false, "Pending"),
            ("Never", "", "R", "R", false, "Running"),
            ("Never", "", "R", "0", false, "Running"),
            ("Never", "", "0", "0", false, "Succeeded"),
            ("Never", "", "1", "0", false, "Succeeded"),
            ("Always", "", "c", "R", false, "Running"),
        ];
        for (policy, init, sidecars, mains, is_over, want) in cases {
            let names = |prefix: &str, text: &str| -> Vec<String> {
                (0..text.len()).map(|index| format!("{prefix}{index}")).collect()
            };
            let (i, s, m) = (names("i", init), names("s", sidecars), names("m", mains));
            fn refs(names: &[String]) -> Vec<&str> {
                names.iter().map(String::as_str).collect()
            }
            let pod = pod(policy, &refs(&m)).init(&refs(&i)).sidecars(&refs(&s)).pod;
            let letters = init.chars().chain(sidecars.chars()).chain(mains.chars());
            let statuses: Vec<ContainerStatus> = i
                .iter()
                .chain(&s)
                .chain(&m)
                .zip(letters)
                .map(|(name, letter)| status(name, letter))
                .collect();
            let statuses: Vec<&ContainerStatus> = statuses.iter().collect();
            let facts = Facts { is_over, has_main_started: mains.contains(['R', '0', '1', 'c']) };
            assert_eq!(
                phase(&pod, &statuses, facts),
                want,
                "{policy} init={init} sidecars={sidecars} mains={mains}"
            );
        }
    }
}
