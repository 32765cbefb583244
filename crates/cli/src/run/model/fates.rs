//! Whether a run goes on: what may still become of its JobSets, Jobs and pods.

use super::{Model, Name};
use crate::{
    exit::Exit,
    run::{
        job::{self, Job},
        pod::{Hope, Phase, Pod},
    },
};

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Something may still happen.
    Going,
    /// What is left waits for something that nothing here brings about. A node may still come: it
    /// is over only when nothing changes for a while.
    Stalled,
    /// What is left can never be made. Only news that is on its way can change that.
    Doomed,
    /// Nothing can happen any more.
    Over(Exit),
}

/// The fate of one thing that was run, worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Succeeded,
    Going,
    Stalled,
    Doomed,
    Stuck,
    Failed,
}

/// How many pods of a Job may go on, wait for what may come, and wait for what never comes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Going {
    going: usize,
    stalled: usize,
    stuck: usize,
}

impl Going {
    fn of(&mut self, fate: Fate) -> Option<&mut usize> {
        match fate {
            Fate::Going => Some(&mut self.going),
            Fate::Stalled => Some(&mut self.stalled),
            Fate::Stuck => Some(&mut self.stuck),
            Fate::Succeeded | Fate::Doomed | Fate::Failed => None,
        }
    }
}

impl Model {
    /// Whether the run is over, and how. What is stuck ends it only when nothing else goes on that
    /// could free what is waited for.
    pub(crate) fn state(&self) -> State {
        let fates: Vec<Fate> = self.fates().collect();
        let has = |wanted: Fate| fates.contains(&wanted);
        if has(Fate::Going) {
            State::Going
        } else if has(Fate::Stalled) {
            State::Stalled
        } else if has(Fate::Doomed) {
            State::Doomed
        } else if has(Fate::Failed) || has(Fate::Stuck) {
            State::Over(Exit::Failed)
        } else {
            State::Over(Exit::Success)
        }
    }

    fn fates(&self) -> impl Iterator<Item = Fate> {
        let sets = self.sets.values().map(|set| self.fate_of_set(set));
        let jobs = self.lone_jobs().map(|job| self.fate_of_job(job));
        sets.chain(jobs).chain(self.bare_pods().map(|pod| self.fate_of_pod(pod)))
    }

    fn fate_of_job(&self, job: &Job) -> Fate {
        match job.phase {
            job::Phase::Complete => return Fate::Succeeded,
            job::Phase::Failed | job::Phase::Gone => return Fate::Failed,
            _ => {}
        }
        if let Some(fate) = self.fate_of_queued_job(job) {
            return fate;
        }
        if !self.is_private {
            return Fate::Going;
        }
        if self.hindrance_of_job(job).is_some() {
            // What was running when it was suspended is still being ended.
            return if self.has_stopped() { Fate::Stuck } else { Fate::Going };
        }
        match self.fate_of_pods(job) {
            Fate::Stalled if Self::is_timed(self.workload_of_job(job)) => Fate::Going,
            fate => fate,
        }
    }

    /// How a Job stands by its pods.
    pub(super) fn fate_of_pods(&self, job: &Job) -> Fate {
        let name = (job.namespace.clone(), job.name.clone());
        let is_refused = self.refusals.get(&name).is_some_and(|words| is_lasting(words));
        match self.going.get(&name).copied().unwrap_or_default() {
            Going { going: 0, stalled: 0, stuck: 0 } if is_refused => Fate::Stalled,
            Going { going: 0, stalled: 0, stuck: 1.. } => Fate::Stuck,
            Going { going: 0, stalled: 1.., .. } => Fate::Stalled,
            _ => Fate::Going,
        }
    }

    /// Whether pods of a Job wait for what may never come.
    pub(super) fn has_hindered_pods(&self, job: &Job) -> bool {
        let name = (job.namespace.clone(), job.name.clone());
        self.going.get(&name).is_some_and(|going| going.stalled + going.stuck > 0)
    }

    fn fate_of_pod(&self, pod: &Pod) -> Fate {
        match (pod.phase, &pod.waits) {
            (Phase::Succeeded, _) => Fate::Succeeded,
            (Phase::Failed | Phase::Gone, _) => Fate::Failed,
            (_, Some(waits)) if self.is_private => match waits.hope {
                Hope::Never => Fate::Stuck,
                Hope::Maybe => Fate::Stalled,
                Hope::Soon => Fate::Going,
            },
            _ => Fate::Going,
        }
    }

    /// Takes a pod in, and counts it for its Job: how a Job stands is asked with every change.
    pub(super) fn put_pod(&mut self, name: Name, pod: Pod) {
        let fate = self.fate_of_pod(&pod);
        let job = pod.job.as_ref().map(|(job, _)| (pod.namespace.clone(), job.clone()));
        if let Some(before) = self.pods.insert(name, pod) {
            let fate = self.fate_of_pod(&before);
            let job = before.job.map(|(job, _)| (before.namespace, job));
            let going = job.and_then(|job| self.going.get_mut(&job));
            if let Some(count) = going.and_then(|going| going.of(fate)) {
                *count -= 1;
            }
        }
        if let Some(job) = job
            && let Some(count) = self.going.entry(job).or_default().of(fate)
        {
            *count += 1;
        }
    }
}

/// Whether pods that were refused with these words will be as long as nobody changes anything: they
/// are invalid, or name something that is not there.
pub(super) fn is_lasting(words: &str) -> bool {
    words.contains(" is forbidden: ") || is_invalid(words)
}

/// Whether these words say that what was to be made is not what it must be.
pub(super) fn is_invalid(words: &str) -> bool {
    words.contains(" is invalid: ")
}
