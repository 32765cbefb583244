//! What is known of JobSets: their Jobs come and go, attempt after attempt.

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::{
    Model, Name, Seen,
    fates::{Fate, is_invalid, is_lasting},
    is_same, phase_words,
};
use crate::run::{
    ends::one_line,
    job::{self, Job},
    jobset::{self, JobSet, Restart},
    member::Member,
};

impl Model {
    /// Takes note of a JobSet as it is now.
    pub(crate) fn see_set(&mut self, object: &Value) -> Seen {
        let mut seen = Seen::default();
        let mut set = JobSet::read(object);
        let name = (set.namespace.clone(), set.name.clone());
        let Some(known) = self.sets.get(&name).filter(|known| is_same(&known.uid, &set.uid)) else {
            return seen;
        };
        let restarts = set.go_on_from(known);
        let waits = |set: &JobSet| set.in_place().map(|told| told.waiting.clone());
        let is_new_wait = waits(&set) != waits(known);
        for restart in &restarts {
            seen.tell(false, restart_note(&set, restart));
        }
        for restart in set.restarted_in_place_since(known) {
            let [what, parts] = set.in_place_note(restart);
            seen.tell(false, format!("jobset/{} {what}", set.name));
            seen.tell(false, format!("  {parts}"));
        }
        let words = set_words(&set);
        let has_formed = known.is_forming() && !set.is_forming();
        if (known.phase != set.phase || has_formed) && !words.is_empty() {
            seen.tell(false, format!("jobset/{} {words}", set.name));
        }
        let hindrance = self.hindrance_of_set(&set).filter(|_| !self.is_stopping);
        if let Some(hindrance) = hindrance
            && self.told.get(&name) != Some(&hindrance)
        {
            seen.tell(true, format!("jobset/{} {hindrance}", set.name));
            self.told.insert(name.clone(), hindrance);
        }
        // What was said of an epoch before stands there until more is known.
        let why = set.why_workers_wait().filter(|_| is_new_wait && !self.is_stopping);
        if let Some(why) = why {
            let kind = set.kind_of_wait();
            if set.history.wait_told != kind {
                seen.tell(false, format!("jobset/{}: {why}", set.name));
                set.history.wait_told = kind;
            }
        }
        let is_active = set.status.replicated_jobs_status.iter().any(|it| it.active > 0);
        // That others run does not make right what can never be made.
        if set.has_ended() || (is_active && !self.is_refused_for_good(&set)) {
            self.refusals_of_sets.remove(&name);
        }
        if !restarts.is_empty() {
            self.forget_before(&name, set.status.restarts - 1);
        }
        self.sets.insert(name, set);
        seen
    }

    /// Takes note of a JobSet that no longer exists.
    pub(crate) fn set_gone(&mut self, namespace: &str, name: &str, uid: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        let set = self.sets.get_mut(&key).filter(|set| is_same(&set.uid, uid));
        if let Some(set) = set.filter(|set| !set.has_ended()) {
            set.phase = jobset::Phase::Gone;
        }
    }

    /// Takes note of a Job of a JobSet. Its successor in the next attempt has the same name.
    pub(super) fn see_child(&mut self, name: Name, job: Job) -> Seen {
        let mut seen = Seen::default();
        let known = self.jobs.get(&name).filter(|known| is_same(&known.uid, &job.uid));
        let before = known.map(|known| known.phase);
        if before.is_none() || job.active > 0 || job.has_ended() {
            self.refusals.remove(&name);
        }
        // A Job whose pods are ended because it is to go has failed of nothing.
        let has_failed = job.phase == job::Phase::Failed && !job.is_deleting;
        // What goes well is told of the set; one that has many Jobs would tell little else.
        if has_failed && before != Some(job::Phase::Failed) {
            seen.tell(false, format!("job/{} {}", job.name, phase_words(&job)));
        }
        if let Some(member) = job.member.as_ref().filter(|_| has_failed)
            && let Some(set) = self.sets.get_mut(&(name.0.clone(), member.set.clone()))
        {
            set.history.failed(&job.name, member, &job.why);
            if before != Some(job::Phase::Failed) {
                let note = answer_note(set, &job.name, member);
                note.into_iter().for_each(|note| seen.tell(false, note));
            }
        }
        self.jobs.insert(name, job);
        seen
    }

    /// Takes note that something of a JobSet cannot be made.
    pub(super) fn see_refusal_of_set(
        &mut self,
        name: Name,
        uid: &str,
        words: &str,
        seen: &mut Seen,
    ) {
        let set = self.sets.get(&name).filter(|set| set.uid == uid && !set.has_ended());
        if set.is_some() && self.refusals_of_sets.get(&name).map(String::as_str) != Some(words) {
            seen.tell(true, format!("jobset/{} {words}", name.1));
            self.refusals_of_sets.insert(name, words.to_owned());
        }
    }

    /// Whether a place in a JobSet is one in a JobSet of this run.
    pub(super) fn has_member(&self, namespace: &str, member: &Member) -> bool {
        let set = self.sets.get(&(namespace.to_owned(), member.set.clone()));
        set.is_some_and(|set| member.uid.is_empty() || is_same(&set.uid, &member.uid))
    }

    /// Whether the JobSet of a member may start it again.
    pub(super) fn may_restart(&self, namespace: &str, member: &Member) -> bool {
        let set = self.sets.get(&(namespace.to_owned(), member.set.clone()));
        set.is_some_and(JobSet::may_restart)
    }

    /// The Jobs that are of no JobSet of this run.
    pub(crate) fn lone_jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter(|job| {
            let member = job.member.as_ref();
            !member.is_some_and(|member| self.has_member(&job.namespace, member))
        })
    }

    /// The Jobs of a JobSet, of all attempts that are still there.
    pub(crate) fn jobs_of(&self, set: &JobSet) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter(|job| {
            let member = job.member.as_ref().filter(|_| job.namespace == set.namespace);
            member.is_some_and(|it| it.set == set.name && is_same(&set.uid, &it.uid))
        })
    }

    /// What a JobSet waits for.
    pub(crate) fn why_set_waits(&self, set: &JobSet) -> Option<String> {
        let name = (set.namespace.clone(), set.name.clone());
        let hindrance = self.hindrance_of_set(set).filter(|_| !self.is_stopping);
        hindrance
            .or_else(|| self.why_set_queued(set))
            .or_else(|| self.refusals_of_sets.get(&name).cloned())
            .or_else(|| self.why_ending_before(set))
            .or_else(|| self.why_jobs_wait(set))
            .or_else(|| set.why_workers_wait())
            .or_else(|| set.why_holds_back())
    }

    /// How many Jobs of an earlier attempt have to go first.
    fn why_ending_before(&self, set: &JobSet) -> Option<String> {
        match self.left_over(set).count() {
            0 => None,
            1 => Some("waits for 1 Job of the attempt before to end".to_owned()),
            count => Some(format!("waits for {count} Jobs of the attempt before to end")),
        }
    }

    /// The Jobs of earlier attempts that are still there.
    fn left_over(&self, set: &JobSet) -> impl Iterator<Item = &Job> {
        let attempt = set.status.restarts;
        let is_old =
            move |job: &&Job| job.member.as_ref().is_some_and(|member| member.attempt < attempt);
        self.jobs_of(set).filter(is_old).filter(|job| !job.is_gone)
    }

    /// What the first of its Jobs waits for that waits, beside being suspended with the set.
    fn why_jobs_wait(&self, set: &JobSet) -> Option<String> {
        let mut going = self.jobs_of(set).filter(|job| !job.has_ended() && !job.is_suspended);
        going.find_map(|job| {
            let why = self.why_waits(job)?;
            Some(if why.starts_with("pod/") { why } else { format!("job/{} {why}", job.name) })
        })
    }

    pub(super) fn unfinished_sets(&self) -> Vec<String> {
        let sets = self.sets.values().filter(|set| !set.has_ended());
        let line = |set: &JobSet| {
            let why = self.why_set_waits(set).map(|why| format!("; {why}")).unwrap_or_default();
            format!("jobset/{}: {}{why}", set.name, set.progress())
        };
        sets.map(line).collect()
    }

    pub(super) fn have_sets_stopped(&self) -> bool {
        // A set whose Jobs cannot be made never gets to say that they are suspended.
        let is_quiet = |set: &JobSet| {
            set.has_ended()
                || set.manager().is_some()
                || set.phase == jobset::Phase::Suspended
                || (set.is_suspended() && self.is_refused_for_good(set))
        };
        self.sets.values().all(is_quiet)
    }

    pub(super) fn fate_of_set(&self, set: &JobSet) -> Fate {
        match set.phase {
            jobset::Phase::Completed => return Fate::Succeeded,
            // What is explained in the end needs the Job; it is told of on another watch.
            jobset::Phase::Failed if self.awaits_cause(set) => return Fate::Stalled,
            jobset::Phase::Failed | jobset::Phase::Gone => return Fate::Failed,
            _ => {}
        }
        if let Some(fate) = self.fate_of_queued_set(set) {
            return fate;
        }
        if !self.is_private {
            return Fate::Going;
        }
        if self.hindrance_of_set(set).is_some() {
            // What was running when it was suspended is still being ended.
            return if self.has_stopped() { Fate::Stuck } else { Fate::Going };
        }
        let name = (set.namespace.clone(), set.name.clone());
        let refusal = self.refusals_of_sets.get(&name);
        let is_refused = refusal.is_some_and(|words| is_lasting(words) && !is_invalid(words));
        if self.left_over(set).next().is_some() {
            return Fate::Going;
        }
        let is_timed = Self::is_timed(self.workload_of_set(set));
        let mut going = self.jobs_of(set).filter(|job| !job.has_ended());
        // Those that have started wait for all others: alone they get nowhere.
        if set.is_forming() && !is_timed && going.any(|job| self.has_hindered_pods(job)) {
            return Fate::Stalled;
        }
        let going = self.jobs_of(set).filter(|job| !job.has_ended());
        let fates: Vec<Fate> = going.map(|job| self.fate_of_pods(job)).collect();
        if fates.contains(&Fate::Going) || (is_timed && fates.contains(&Fate::Stalled)) {
            Fate::Going
        } else if fates.contains(&Fate::Stalled) || is_refused {
            Fate::Stalled
        } else if self.is_refused_for_good(set) {
            Fate::Doomed
        } else if fates.contains(&Fate::Stuck) {
            Fate::Stuck
        } else if set.phase != jobset::Phase::Pending && set.blocked().next().is_some() {
            // Nothing runs that what is held back could wait for. It may be about to be told.
            Fate::Stalled
        } else {
            Fate::Going
        }
    }

    /// Whether something of a set is not what the API takes: what sets are made of stays as it is.
    fn is_refused_for_good(&self, set: &JobSet) -> bool {
        let name = (set.namespace.clone(), set.name.clone());
        self.refusals_of_sets.get(&name).is_some_and(|words| is_invalid(words))
    }

    /// Whether a Job that a set failed of is not known to have failed yet. Workers that restart in
    /// place fail no Job: what they wrote last is known when their pods have ended.
    fn awaits_cause(&self, set: &JobSet) -> bool {
        if set.in_place().is_some_and(|told| told.phase == "Failed") {
            let is_its = |member: &Member| member.set == set.name;
            let mut going = self.running().filter(|pod| pod.namespace == set.namespace);
            return going.any(|pod| pod.member.as_ref().is_some_and(is_its));
        }
        let job = JobSet::first_failed(&set.why.message);
        let job = job.and_then(|job| self.jobs.get(&(set.namespace.clone(), job.to_owned())));
        job.is_some_and(|job| !job.has_ended() && !job.is_deleting)
    }

    /// Forgets what ended in attempts before this one: a JobSet may restart for ever.
    fn forget_before(&mut self, name: &Name, attempt: i32) {
        let is_old = |namespace: &str, member: Option<&Member>| {
            namespace == name.0
                && member.is_some_and(|member| member.set == name.1 && member.attempt < attempt)
        };
        let old = |pod: &crate::run::pod::Pod| {
            pod.has_ended() && is_old(&pod.namespace, pod.member.as_ref())
        };
        let gone: Vec<Name> =
            self.pods.iter().filter(|(_, pod)| old(pod)).map(|(name, _)| name.clone()).collect();
        for name in gone {
            self.pods.remove(&name);
            self.told.remove(&name);
            self.troubles.remove(&name);
        }
    }
}

/// Of all that could not be made, each on its line, what counts most: what can never be made.
pub(super) fn refusal(message: &str) -> String {
    let mut lines = message.lines();
    lines.find(|line| is_invalid(line)).map_or_else(|| one_line(message), ToOwned::to_owned)
}

/// What a new phase of a JobSet is called; nothing for what is no news.
fn set_words(set: &JobSet) -> String {
    let job::Why { reason, message } = &set.why;
    match set.phase {
        jobset::Phase::Pending
        | jobset::Phase::Suspended
        | jobset::Phase::Restarting
        | jobset::Phase::Gone => String::new(),
        jobset::Phase::Running if set.is_forming() => {
            "has started; its workers run when all of them are there".to_owned()
        }
        jobset::Phase::Running if set.status.restarts > 0 => {
            format!("is running again, attempt {}", set.status.restarts)
        }
        jobset::Phase::Running => "is running".to_owned(),
        jobset::Phase::Completed => format!("succeeded ({reason}: {message})"),
        jobset::Phase::Failed => {
            let answer = JobSet::first_failed(message).and_then(|job| set.answer_words(job));
            let answer = answer.map(|words| format!(": {words}")).unwrap_or_default();
            format!("failed ({reason}: {message}){answer}")
        }
    }
}

/// What answers a Job that failed, as news: that it is left so, or what the set had failed of
/// before this Job was told of. Restarts are news of the set.
fn answer_note(set: &JobSet, job: &str, member: &Member) -> Option<String> {
    let words = set.answer_words(job)?;
    let is_cause = set.phase == jobset::Phase::Failed
        && set.is_current(member)
        && JobSet::first_failed(&set.why.message) == Some(job);
    if set.leaves(job, member) {
        Some(format!("jobset/{} leaves job/{job}: {words}", set.name))
    } else {
        is_cause.then(|| format!("jobset/{} failed of job/{job}: {words}", set.name))
    }
}

/// A restart as news: what starts again, why, and what is left.
fn restart_note(set: &JobSet, restart: &Restart) -> String {
    let what = match restart.jobs.as_slice() {
        [] => format!("jobset/{} restarts, attempt {}", set.name, restart.attempt + 1),
        [job] => format!("jobset/{} restarts job/{job}", set.name),
        [job, rest @ ..] => {
            format!("jobset/{} restarts job/{job} and {} more", set.name, rest.len())
        }
    };
    let budget = set.budget().map(|budget| format!("; {budget}")).unwrap_or_default();
    format!("{what}: {}{budget}", set.restart_words(restart))
}
