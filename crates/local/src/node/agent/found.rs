//! What is left of earlier times, until the pods it belongs to are known.

use std::collections::HashMap;

use lockstep_control::plan::pod::{Known, KnownState};

use super::backend::Ended;

/// Containers of pods the agent has not heard of yet, by pod uid. Closed once all pods are known:
/// what is left then belongs to nobody.
pub(super) struct Found {
    pods: Option<HashMap<String, Vec<Known>>>,
}

impl Found {
    pub(super) fn new(recovered: Vec<(String, Vec<Known>)>) -> Self {
        Self { pods: Some(recovered.into_iter().collect()) }
    }

    /// Notes an end that was told before the pod was: else it would run for ever.
    pub(super) fn ended(&mut self, ended: Ended) {
        let Some(pods) = &mut self.pods else { return };
        let Ended { pod_uid, container, attempt, exit } = ended;
        let known = pods.entry(pod_uid).or_default();
        known.retain(|it| it.container != container || it.attempt != attempt);
        known.push(Known { container, attempt, state: KnownState::Exited(exit) });
    }

    /// Whether all pods are known.
    pub(super) fn is_closed(&self) -> bool {
        self.pods.is_none()
    }

    /// What is known of the containers of a pod.
    pub(super) fn take(&mut self, uid: &str) -> Vec<Known> {
        self.pods.as_mut().and_then(|pods| pods.remove(uid)).unwrap_or_default()
    }

    /// The pods that nobody came for; none the second time.
    pub(super) fn close(&mut self) -> Vec<String> {
        self.pods.take().unwrap_or_default().into_keys().collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use lockstep_control::plan::pod::Exit;

    use super::*;

    fn known(state: KnownState) -> Known {
        Known { container: "c".to_owned(), attempt: 0, state }
    }

    #[test]
    fn an_end_told_before_its_pod_is_not_lost() {
        let since = Timestamp::UNIX_EPOCH;
        let running = known(KnownState::Running { since });
        let mut found =
            Found::new(vec![("u".to_owned(), vec![running]), ("v".to_owned(), Vec::new())]);
        let exit = Exit { code: 3, ..Exit::default() };
        let ended = |uid: &str| Ended {
            pod_uid: uid.to_owned(),
            container: "c".to_owned(),
            attempt: 0,
            exit: exit.clone(),
        };
        found.ended(ended("u"));
        assert_eq!(found.take("u"), [known(KnownState::Exited(exit.clone()))]);
        assert_eq!(found.take("u"), []);
        assert_eq!(found.close(), ["v"]);
        assert!(found.close().is_empty());
        found.ended(ended("w"));
        assert_eq!(found.take("w"), [], "it belongs to nobody");
    }
}
