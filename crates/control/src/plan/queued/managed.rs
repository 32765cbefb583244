//! Which jobs queues have a say in.

use lockstep_api::labels::kueue as labels;

use super::known::{controller, uid};
use super::{JobKey, Kind, Object, Pass, Plan, Settings, Waiting, condition, ensure};

/// How many ancestors of a job are looked at.
const DEPTH_MAX: usize = 10;

/// Whether a job has to do with queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Managed {
    /// It waits in one itself.
    Yes,
    /// It belongs to one that does.
    Part(JobKey),
    /// It does not.
    No(Waiting),
}

pub(super) fn decide(pass: &Pass<'_>) -> Managed {
    let settings = pass.settings;
    if !is_queued(settings, pass.key.kind) {
        return Managed::No(Waiting::KindNotManaged);
    }
    let namespace = &pass.key.key.namespace;
    let Some(of_namespace) = pass.known.namespaces.get(namespace) else {
        return Managed::No(Waiting::NamespaceUnknown(namespace.clone()));
    };
    if !settings.managed_namespaces.matches_map(of_namespace) {
        return Managed::No(Waiting::NamespaceNotManaged);
    }
    match ancestor(pass) {
        Err(waiting) => return Managed::No(waiting),
        Ok(Some(of)) => return Managed::Part(of),
        Ok(None) => {}
    }
    // Quota that a running job holds is watched over until its end, also when its label is gone.
    let is_running = !pass.job.is_suspended() && ensure::own(pass).next().is_some();
    if wants_queue(settings, pass.job) || is_running {
        Managed::Yes
    } else {
        Managed::No(Waiting::NotQueued)
    }
}

/// A job that has left its queue while it waited needs no Workload: it would hold quota for
/// nothing.
pub(super) fn drop_workloads(pass: &Pass<'_>, waiting: Waiting) -> Plan {
    let has_left = waiting == Waiting::NotQueued && pass.job.is_suspended();
    let mut steps = match has_left {
        true => ensure::deletions(ensure::own(pass)),
        false => Vec::new(),
    };
    if steps.is_empty() {
        return Plan::wait(waiting);
    }
    if ensure::own(pass).any(condition::holds_quota) {
        steps.insert(0, ensure::same(pass));
    }
    Plan::of(steps)
}

fn is_queued(settings: &Settings, kind: Kind) -> bool {
    match kind {
        Kind::Job => settings.jobs,
        Kind::JobSet => settings.jobsets,
        Kind::Orphan => false,
    }
}

fn wants_queue(settings: &Settings, job: &Object) -> bool {
    settings.manage_without_queue_name || job.label(labels::QUEUE_NAME).is_some()
}

/// The ancestor furthest up that waits in a queue.
fn ancestor(pass: &Pass<'_>) -> Result<Option<JobKey>, Waiting> {
    let namespace = &pass.key.key.namespace;
    let mut at = pass.job;
    let mut found = None;
    for _ in 0..=DEPTH_MAX {
        let Some(owner) = controller(at.meta()) else { return Ok(found) };
        let key = JobKey::of_owner(owner, namespace);
        let Some(key) = key.filter(|key| is_queued(pass.settings, key.kind)) else {
            return Ok(found);
        };
        let parent = pass.known.job(&key).filter(|parent| uid(parent.meta()) == owner.uid);
        let Some(parent) = parent else { return Err(Waiting::OwnerUnknown(key)) };
        if wants_queue(pass.settings, parent) {
            found = Some(key);
        }
        at = parent;
    }
    Err(Waiting::NestingTooDeep)
}
