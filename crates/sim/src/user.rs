//! Users of a simulated cluster: they make Jobs, change their minds, and lay hands on pods.

use jiff::SignedDuration;
use lockstep_api::{
    json,
    labels::JOB_TRACKING_FINALIZER,
    strategy::{Json, Propagation},
};
use lockstep_store::{Object, rest::DeleteOptions};
use serde_json::{Value, json};

use crate::{
    api::Kind,
    chance::Chance,
    cluster::{Cluster, Happening},
    manifest::{self, MANUAL_LABEL},
    world::Sort,
};

const ACTOR: &str = "user";

/// What a user can do. Which object it is done to is drawn when it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Makes a Job of the first or the second name.
    CreateJob(bool),
    /// Suspends a Job or resumes it.
    ToggleSuspend,
    /// Changes how many pods may run at once.
    Scale,
    /// Changes completions and parallelism of an Indexed Job together.
    Stretch,
    /// Changes the limits of a Job.
    Limit,
    /// Deletes a Job.
    DeleteJob,
    /// Deletes a pod, with the grace it asks for.
    DeletePod,
    /// Deletes a pod without grace.
    KillPod,
    /// Changes a label, so that the selector of the Job does not match any more, or puts it back.
    Relabel,
    /// Takes a pod away from its Job, which may take it back.
    Orphan,
    /// Takes the finalizer off a pod by hand: the Job may not count it then.
    Unpin,
    /// Annotates a Job, for no reason.
    Annotate,
    /// Makes a JobSet of the first or the second name.
    CreateSet(bool),
    /// Suspends a JobSet or resumes it.
    ToggleSet,
    /// Gives the Jobs of a replicated job another size.
    StretchSet,
    /// Has a JobSet deleted a while after it has ended.
    ExpireSet,
    /// Deletes a JobSet.
    DeleteSet,
    /// Deletes the Service of a JobSet.
    DeleteService,
    /// Makes a Job of this number that waits in a queue.
    CreateQueued(u8),
    /// Deletes a Workload, though its Job is there.
    DeleteWorkload,
    /// Deactivates a Workload or lets it go on.
    ToggleActive,
    /// Stops a ClusterQueue, or lets it go on.
    StopClusterQueue,
    /// Stops a LocalQueue, or lets it go on.
    StopLocalQueue,
    /// Gives a ClusterQueue more of everything.
    GrowQuota,
}

const ACTS: [(u32, Act); 11] = [
    (6, Act::ToggleSuspend),
    (5, Act::Scale),
    (4, Act::Stretch),
    (2, Act::Limit),
    (3, Act::DeleteJob),
    (5, Act::DeletePod),
    (3, Act::KillPod),
    (2, Act::Relabel),
    (2, Act::Orphan),
    (1, Act::Unpin),
    (2, Act::Annotate),
];

/// What is done in worlds of JobSets.
const SET_ACTS: [(u32, Act); 9] = [
    (6, Act::ToggleSet),
    (3, Act::StretchSet),
    (1, Act::ExpireSet),
    (3, Act::DeleteSet),
    (4, Act::DeleteJob),
    (4, Act::DeletePod),
    (2, Act::KillPod),
    (1, Act::DeleteService),
    (2, Act::Annotate),
];

/// What is done in worlds of queues.
const QUEUE_ACTS: [(u32, Act); 12] = [
    (2, Act::ToggleSet),
    (1, Act::DeleteSet),
    (3, Act::ToggleSuspend),
    (3, Act::DeleteJob),
    (2, Act::DeletePod),
    (2, Act::KillPod),
    (1, Act::Annotate),
    (1, Act::DeleteWorkload),
    (5, Act::ToggleActive),
    (4, Act::StopClusterQueue),
    (4, Act::StopLocalQueue),
    (2, Act::GrowQuota),
];

/// How many Jobs there may be in worlds of queues.
const QUEUED_MAX: u8 = 7;

/// All users.
#[derive(Debug)]
pub struct User {
    chance: Chance,
    jobs: Chance,
}

impl User {
    /// Users of Jobs or of JobSets who have a number of things on their minds, all within `span`.
    pub fn new(
        (seed, sort): (u64, Sort),
        acts_max: i32,
        span: SignedDuration,
        cluster: &mut Cluster,
    ) -> Self {
        let mut chance = Chance::new(seed, "user");
        let (acts, delete): (&[(u32, Act)], Act) = match sort {
            Sort::Jobs => (&ACTS, Act::DeleteJob),
            Sort::JobSets => (&SET_ACTS, Act::DeleteSet),
            Sort::Queues => (&QUEUE_ACTS, Act::DeleteJob),
        };
        let create = |is_first| match sort {
            Sort::Jobs => Act::CreateJob(is_first),
            Sort::JobSets => Act::CreateSet(is_first),
            Sort::Queues => Act::CreateQueued(u8::from(!is_first)),
        };
        cluster.after(SignedDuration::ZERO, Happening::User(create(true)));
        let latest = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        if sort == Sort::Queues {
            for number in 1..chance.pick(&[2, 4, QUEUED_MAX]) {
                let delay = chance.millis(0, latest / 2);
                cluster.after(delay, Happening::User(Act::CreateQueued(number)));
            }
        } else if chance.percent(20) {
            let delay = chance.millis(0, latest / 2);
            cluster.after(delay, Happening::User(create(false)));
        }
        for _ in 0..chance.between(0, acts_max) {
            let act = chance.weighted(acts);
            let delay = chance.millis(0, latest);
            cluster.after(delay, Happening::User(act));
            if act == delete && chance.percent(60) {
                let again = delay + chance.millis(0, 5_000);
                cluster.after(again, Happening::User(create(true)));
            }
            if matches!(act, Act::Relabel | Act::Orphan) {
                let again = delay + chance.millis(0, 5_000);
                cluster.after(again, Happening::User(Act::Relabel));
            }
        }
        Self { chance, jobs: Chance::new(seed, "job") }
    }

    /// Does one thing.
    pub fn act(&mut self, cluster: &mut Cluster, act: Act) {
        match act {
            Act::CreateJob(is_first) => {
                let name = if is_first { "a" } else { "b" };
                self.create(cluster, Kind::Job, name, manifest::job);
            }
            Act::CreateSet(is_first) => {
                let name = if is_first { "a" } else { "b" };
                self.create(cluster, Kind::JobSet, name, manifest::jobset::jobset);
            }
            Act::CreateQueued(number) => {
                if self.jobs.percent(30) {
                    let name = format!("s{number}");
                    self.create(cluster, Kind::JobSet, &name, manifest::queue::jobset);
                } else {
                    let name = format!("j{number}");
                    self.create(cluster, Kind::Job, &name, manifest::queue::job);
                }
            }
            Act::DeleteWorkload => self.delete(cluster, Kind::Workload),
            Act::ToggleActive => self.edit(cluster, Kind::Workload, "toggles", |_, workload| {
                let spec = json::object_mut(workload, "spec");
                let is_active = spec.get("active") != Some(&json!(false));
                spec.insert("active".to_owned(), json!(!is_active));
            }),
            Act::StopClusterQueue => self.edit(cluster, Kind::ClusterQueue, "stops", stop),
            Act::StopLocalQueue => self.edit(cluster, Kind::LocalQueue, "stops", stop),
            Act::GrowQuota => self.edit(cluster, Kind::ClusterQueue, "grows", |_, it| grow(it)),
            Act::DeleteJob => self.delete(cluster, Kind::Job),
            Act::DeleteSet => self.delete(cluster, Kind::JobSet),
            Act::DeleteService => self.delete(cluster, Kind::Service),
            Act::ToggleSet => self.edit(cluster, Kind::JobSet, "toggles suspend of", |_, set| {
                let is_suspended = json::flag(set, &["spec", "suspend"]);
                json::object_mut(set, "spec").insert("suspend".to_owned(), json!(!is_suspended));
            }),
            Act::StretchSet => self.edit(cluster, Kind::JobSet, "stretches", stretch_set),
            Act::ExpireSet => self.edit(cluster, Kind::JobSet, "limits", |chance, set| {
                let ttl = json!(chance.pick(&[0, 10]));
                json::object_mut(set, "spec").insert("ttlSecondsAfterFinished".to_owned(), ttl);
            }),
            Act::DeletePod => self.delete_pod(cluster, None),
            Act::KillPod => self.delete_pod(cluster, Some(0)),
            Act::ToggleSuspend => self.edit(cluster, Kind::Job, "toggles suspend of", |_, job| {
                // The Jobs of a JobSet are its own.
                if json::at(job, &["metadata", "ownerReferences"]).is_some() {
                    return;
                }
                let is_suspended = json::flag(job, &["spec", "suspend"]);
                json::object_mut(job, "spec").insert("suspend".to_owned(), json!(!is_suspended));
            }),
            Act::Scale => self.edit(cluster, Kind::Job, "scales", |chance, job| {
                let parallelism = chance.between(0, 5);
                json::object_mut(job, "spec").insert("parallelism".to_owned(), json!(parallelism));
            }),
            Act::Stretch => self.edit(cluster, Kind::Job, "stretches", |chance, job| {
                let size = json!(chance.between(1, 6));
                let spec = json::object_mut(job, "spec");
                spec.insert("parallelism".to_owned(), size.clone());
                spec.insert("completions".to_owned(), size);
            }),
            Act::Limit => self.edit(cluster, Kind::Job, "changes the limits of", limit),
            Act::Relabel => self.edit(cluster, Kind::Pod, "relabels", |_, pod| relabel(pod)),
            Act::Orphan => self.edit(cluster, Kind::Pod, "orphans", |_, pod| {
                json::object_mut(pod, "metadata").remove("ownerReferences");
            }),
            Act::Unpin => self.edit(cluster, Kind::Pod, "unpins", |_, pod| unpin(pod)),
            Act::Annotate => self.edit(cluster, Kind::Job, "annotates", |chance, job| {
                let note = chance.below(1_000).to_string();
                let meta = json::object_mut(job, "metadata");
                json::object_mut(meta, "annotations").insert("sim/note".to_owned(), json!(note));
            }),
        }
    }

    /// Lets every queue and every Workload go on.
    pub fn heal_queues(&mut self, cluster: &mut Cluster) {
        for kind in [Kind::ClusterQueue, Kind::LocalQueue, Kind::Workload] {
            let names: Vec<Box<str>> =
                cluster.api.list(kind).map(|object| object.meta.name.clone()).collect();
            for name in names {
                let done = cluster.api.edit(kind, None, &name, |object| {
                    let spec = json::object_mut(object, "spec");
                    match kind == Kind::Workload {
                        true => spec.insert("active".to_owned(), json!(true)),
                        false => spec.insert("stopPolicy".to_owned(), json!("None")),
                    };
                });
                let said = done.map_or_else(|status| status.message, |_| "done".to_owned());
                cluster.say(ACTOR, || format!("lets {kind:?} {name} go on: {said}"));
            }
        }
    }

    /// Lets every Job run: what the users stopped goes on.
    pub fn heal(&mut self, cluster: &mut Cluster) {
        // The Jobs of a JobSet are let run by it.
        let jobs = cluster.api.list(Kind::Job).filter(|job| job.meta.owners.is_empty());
        let jobs = jobs.map(|job| (Kind::Job, job.meta.name.clone()));
        let sets = cluster.api.list(Kind::JobSet);
        let sets = sets.map(|set| (Kind::JobSet, set.meta.name.clone()));
        let objects: Vec<(Kind, Box<str>)> = jobs.chain(sets).collect();
        for (kind, name) in objects {
            let done = cluster.api.edit(kind, None, &name, |job| {
                let spec = json::object_mut(job, "spec");
                spec.insert("suspend".to_owned(), json!(false));
                if json::integer(spec, &["parallelism"]) == Some(0) {
                    spec.insert("parallelism".to_owned(), json!(1));
                }
            });
            let said = done.map_or_else(|status| status.message, |_| "done".to_owned());
            cluster.say(ACTOR, || format!("lets {name} run: {said}"));
        }
    }

    fn create(
        &mut self,
        cluster: &mut Cluster,
        kind: Kind,
        name: &str,
        draw: fn(&mut Chance, &str) -> Json,
    ) {
        let job = draw(&mut self.jobs, name);
        let shown = cluster.trace.is_full().then(|| Value::from(job.clone())["spec"].to_string());
        let done = cluster.api.create(kind, job);
        let said = done.map_or_else(|status| status.message, |job| job.meta.uid.to_string());
        cluster.say(ACTOR, || format!("creates {name}: {said} {}", shown.unwrap_or_default()));
    }

    fn delete(&mut self, cluster: &mut Cluster, kind: Kind) {
        let Some(name) = self.choose(cluster, kind) else { return };
        let choices = [
            None,
            Some(Propagation::Background),
            Some(Propagation::Foreground),
            Some(Propagation::Orphan),
        ];
        // The Jobs of a set that are kept are in the way of the next set of its name, for ever.
        let choices = if kind == Kind::JobSet { &choices[..3] } else { &choices };
        let propagation = self.chance.pick(choices);
        let options = DeleteOptions { propagation, ..DeleteOptions::default() };
        let done = cluster.api.delete(kind, &name, &options);
        let said = done.map_or_else(|status| status.message, |_| "done".to_owned());
        cluster.say(ACTOR, || format!("deletes {name} ({propagation:?}): {said}"));
    }

    fn delete_pod(&mut self, cluster: &mut Cluster, grace: Option<i64>) {
        let Some(name) = self.choose(cluster, Kind::Pod) else { return };
        let options = DeleteOptions { grace_period_seconds: grace, ..DeleteOptions::default() };
        let done = cluster.api.delete(Kind::Pod, &name, &options);
        let said = done.map_or_else(|status| status.message, |_| "done".to_owned());
        cluster.say(ACTOR, || format!("deletes {name} (grace {grace:?}): {said}"));
    }

    fn edit(
        &mut self,
        cluster: &mut Cluster,
        kind: Kind,
        verb: &str,
        change: impl FnOnce(&mut Chance, &mut Json),
    ) {
        let Some(name) = self.choose(cluster, kind) else { return };
        let done = cluster.api.edit(kind, None, &name, |object| change(&mut self.chance, object));
        cluster.say(ACTOR, || match done {
            Ok(object) => {
                let body = Value::from(object.json());
                let spec = &body["spec"];
                let (parallelism, completions) = (&spec["parallelism"], &spec["completions"]);
                match kind {
                    Kind::Pod | Kind::Service => format!("{verb} {name}"),
                    Kind::Workload | Kind::ClusterQueue | Kind::LocalQueue | Kind::Flavor => {
                        format!("{verb} {name}: {spec}")
                    }
                    Kind::Job | Kind::JobSet => format!(
                        "{verb} {name}: parallelism {parallelism}, completions {completions}, \
                         suspend {}",
                        spec["suspend"]
                    ),
                }
            }
            Err(status) => format!("{verb} {name}: {}", status.message),
        });
    }

    fn choose(&mut self, cluster: &Cluster, kind: Kind) -> Option<Box<str>> {
        let names: Vec<&Object> = cluster.api.list(kind).map(|object| &**object).collect();
        if names.is_empty() {
            return None;
        }
        Some(self.chance.pick(&names).meta.name.clone())
    }
}

fn limit(chance: &mut Chance, job: &mut Json) {
    let spec = json::object_mut(job, "spec");
    match chance.below(3) {
        0 => spec.insert("backoffLimit".to_owned(), json!(chance.between(0, 6))),
        1 => spec.insert("activeDeadlineSeconds".to_owned(), json!(chance.pick(&[1, 30, 300]))),
        _ => spec.insert("ttlSecondsAfterFinished".to_owned(), json!(chance.pick(&[0, 10]))),
    };
}

/// Stops a queue in one of the ways there are, or lets it go on.
fn stop(chance: &mut Chance, queue: &mut Json) {
    let policy = chance.pick(&["None", "Hold", "HoldAndDrain"]);
    json::object_mut(queue, "spec").insert("stopPolicy".to_owned(), json!(policy));
}

/// Gives a ClusterQueue one more of all it has.
fn grow(queue: &mut Json) {
    let flavors = queue.get_mut("spec").and_then(|it| it.pointer_mut("/resourceGroups/0/flavors"));
    for flavor in flavors.and_then(Value::as_array_mut).into_iter().flatten() {
        let quota = &mut flavor["resources"][0]["nominalQuota"];
        let nominal = quota.as_str().and_then(|text| text.parse::<i64>().ok());
        *quota = json!((nominal.unwrap_or_default() + 1).to_string());
    }
}

/// Changes the size of the Jobs of the first replicated job, if they may have another.
fn stretch_set(chance: &mut Chance, set: &mut Json) {
    let size = json!(chance.between(1, 3));
    let job = set.get_mut("spec").and_then(|spec| spec.pointer_mut("/replicatedJobs/0"));
    let Some(spec) = job.and_then(|job| job.pointer_mut("/template/spec")) else { return };
    spec["parallelism"] = size.clone();
    spec["completions"] = size;
}

/// Moves the labels a Job may select by out of the way, or back.
fn relabel(pod: &mut Json) {
    const AWAY: &str = "away.";
    let meta = json::object_mut(pod, "metadata");
    let labels = json::object_mut(meta, "labels");
    let keys = ["batch.kubernetes.io/controller-uid", MANUAL_LABEL];
    for key in keys {
        let away = format!("{AWAY}{key}");
        let (from, to) =
            if labels.contains_key(key) { (key, away.as_str()) } else { (away.as_str(), key) };
        if let Some(value) = labels.remove(from) {
            labels.insert(to.to_owned(), value);
        }
    }
}

fn unpin(pod: &mut Json) {
    let meta = json::object_mut(pod, "metadata");
    if let Some(list) = meta.get_mut("finalizers").and_then(Value::as_array_mut) {
        list.retain(|name| name != JOB_TRACKING_FINALIZER);
    }
}
