//! The nodes of a simulated cluster, all in one: places pods, runs them, lets them end in every way
//! there is. It sees the API without delay; it is the controllers whose views are stale.

mod report;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use lockstep_api::{json, strategy::Json};
use lockstep_store::{Object, Revision, rest::DeleteOptions};

use crate::{
    api::Kind,
    chance::Chance,
    cluster::{Cluster, Happening},
};
pub use report::Ending;

const ACTOR: &str = "node";

/// What can happen to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It is given a node.
    Bind,
    /// Its container runs.
    Start,
    /// Its readiness changes.
    Flip,
    /// Its container fails and is started again in its place.
    Restart,
    /// It is driven off by the eviction API.
    Evict,
    /// Its node stops answering, and somebody asks for the pod to be deleted.
    Lose,
    /// It ends as it was going to.
    End,
    /// It has been asked to stop and has done so.
    Stop,
    /// Nobody waits for it any longer.
    Remove,
}

/// What a pod is going to do if it is let.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It ends by itself.
    End(Ending),
    /// It runs until somebody stops it.
    Hang,
    /// It never gets a node.
    Unplaced,
    /// It is evicted.
    Evicted,
    /// Its node is lost.
    Lost,
}

/// How likely the ways to end are in one world.
#[derive(Clone, Copy, Debug)]
pub struct Temper {
    /// Of a hundred pods this many end well.
    pub succeed: u32,
    /// Of a hundred of the others this many end by themselves.
    pub exit: u32,
}

#[derive(Clone, Debug)]
struct Life {
    name: Box<str>,
    fate: Fate,
    is_bound: bool,
    is_over: bool,
    is_stopping: bool,
    /// Its node does not answer: what it does is not heard of.
    is_lost: bool,
    is_ready: bool,
    restarts: i32,
    can_restart: bool,
}

/// All nodes.
#[derive(Debug)]
pub struct Node {
    chance: Chance,
    temper: Temper,
    lives: BTreeMap<Box<str>, Life>,
    seen: Revision,
    is_healed: bool,
}

impl Node {
    /// Nodes without pods.
    pub fn new(seed: u64, temper: Temper) -> Self {
        let chance = Chance::new(seed, "node");
        Self { chance, temper, lives: BTreeMap::new(), seen: 0, is_healed: false }
    }

    /// Looks at what happened to pods and plans what they do about it.
    pub fn observe(&mut self, cluster: &mut Cluster) {
        let table = &cluster.api.resource(Kind::Pod).table;
        if cluster.api.snapshot().table_revision(table) <= self.seen {
            return;
        }
        let events = cluster.api.events_after(Kind::Pod, self.seen, usize::MAX);
        for event in events.unwrap_or_default() {
            self.seen = event.revision;
            let uid = &event.object.meta.uid;
            if event.is_deletion {
                self.lives.remove(uid);
                continue;
            }
            if !self.lives.contains_key(uid) {
                self.begin(cluster, &event.object);
            }
            let is_stopping = event.object.meta.is_deleting();
            let Some(life) = self.lives.get_mut(uid) else { continue };
            if is_stopping && !life.is_stopping {
                life.is_stopping = true;
                self.stop(cluster, &event.object);
            }
        }
    }

    /// A pod gets on with its life.
    pub fn act(&mut self, cluster: &mut Cluster, uid: &str, act: Act) {
        let Some(life) = self.lives.get(uid).cloned() else { return };
        // What was going to go wrong does not any more.
        let is_harm = matches!(act, Act::Lose | Act::Evict | Act::Restart);
        let act = if is_harm && self.is_healed { Act::End } else { act };
        match act {
            Act::Bind if !life.is_bound && !life.is_stopping => self.bind(cluster, uid, &life),
            Act::Start if !life.is_over && !life.is_stopping => self.start(cluster, uid, &life),
            Act::Flip if !life.is_over && !life.is_lost => self.flip(cluster, uid, &life),
            Act::Restart if !life.is_over && !life.is_stopping => {
                self.restart(cluster, uid, &life);
            }
            Act::Evict if !life.is_over && !life.is_stopping => {
                cluster.say(ACTOR, || format!("evicts {}", life.name));
                // Somebody may have deleted it a moment ago, which is as good.
                let _ = cluster.api.evict(&life.name);
            }
            Act::Lose if !life.is_over && !life.is_stopping => self.lose(cluster, uid, &life),
            Act::End if !life.is_over && !life.is_stopping && !life.is_lost => {
                let Fate::End(ending) = life.fate else { return };
                self.end(cluster, uid, &life, ending);
            }
            Act::Stop if !life.is_lost => self.stopped(cluster, uid, &life),
            Act::Remove => Self::remove(cluster, &life),
            Act::Bind
            | Act::Start
            | Act::Flip
            | Act::Restart
            | Act::Evict
            | Act::Lose
            | Act::End
            | Act::Stop => {}
        }
    }

    /// From now on everything works: what hangs gets on, nodes answer again, pods succeed.
    pub fn heal(&mut self, cluster: &mut Cluster) {
        self.is_healed = true;
        for (uid, life) in &mut self.lives {
            life.fate = Fate::End(Ending { code: 0, is_disrupted: false });
            life.is_lost = false;
            let act = match life {
                Life { is_stopping: true, .. } => Act::Stop,
                Life { is_over: true, .. } => continue,
                Life { is_bound: false, .. } => Act::Bind,
                Life { is_ready: true, .. } => Act::End,
                _ => Act::Start,
            };
            let delay = self.chance.millis(10, 4_000);
            cluster.after(delay, Happening::Pod { uid: uid.clone(), act });
        }
    }

    fn begin(&mut self, cluster: &mut Cluster, pod: &Object) {
        let spec = pod.json();
        let can_restart = json::text(&spec, &["spec", "restartPolicy"]) == "OnFailure";
        let fate = self.fate(can_restart);
        let life = Life {
            name: pod.meta.name.clone(),
            fate,
            is_bound: !json::text(&spec, &["spec", "nodeName"]).is_empty(),
            is_over: false,
            is_stopping: false,
            is_lost: false,
            is_ready: false,
            restarts: 0,
            can_restart,
        };
        self.lives.insert(pod.meta.uid.clone(), life);
        if fate != Fate::Unplaced {
            let delay = self.chance.millis(1, 2_000);
            self.plan(cluster, &pod.meta.uid, Act::Bind, delay);
        }
    }

    fn fate(&mut self, can_restart: bool) -> Fate {
        if self.is_healed || self.chance.percent(self.temper.succeed) {
            return Fate::End(Ending { code: 0, is_disrupted: false });
        }
        if self.chance.percent(self.temper.exit) {
            // A container that is started again never fails its pod.
            let codes: &[i32] = if can_restart { &[0] } else { &[1, 1, 2, 42, 137] };
            let code = self.chance.pick(codes);
            let is_disrupted = code != 0 && self.chance.percent(20);
            return Fate::End(Ending { code, is_disrupted });
        }
        self.chance.pick(&[Fate::Hang, Fate::Unplaced, Fate::Evicted, Fate::Evicted, Fate::Lost])
    }

    fn plan(&self, cluster: &mut Cluster, uid: &str, act: Act, delay: SignedDuration) {
        cluster.after(delay, Happening::Pod { uid: uid.into(), act });
    }

    fn bind(&mut self, cluster: &mut Cluster, uid: &str, life: &Life) {
        if cluster.api.bind(&life.name, "n1").is_err() {
            return;
        }
        cluster.say(ACTOR, || format!("gives {} a node", life.name));
        self.life(uid).is_bound = true;
        let delay = self.chance.millis(1, 1_000);
        self.plan(cluster, uid, Act::Start, delay);
    }

    fn start(&mut self, cluster: &mut Cluster, uid: &str, life: &Life) {
        let is_ready = self.is_healed || self.chance.percent(60);
        cluster.say(ACTOR, || format!("starts {}", life.name));
        self.report(cluster, life, |pod, now| report::running(pod, now, is_ready, life.restarts));
        self.life(uid).is_ready = is_ready;
        if !self.is_healed && self.chance.percent(30) {
            let delay = self.chance.millis(1, 3_000);
            self.plan(cluster, uid, Act::Flip, delay);
        }
        if life.can_restart && !self.is_healed && self.chance.percent(40) {
            let delay = self.chance.millis(1, 3_000);
            self.plan(cluster, uid, Act::Restart, delay);
        }
        let act = match life.fate {
            Fate::End(_) => Act::End,
            Fate::Evicted => Act::Evict,
            Fate::Lost => Act::Lose,
            Fate::Hang | Fate::Unplaced => return,
        };
        let delay = self.chance.millis(1, 6_000);
        self.plan(cluster, uid, act, delay);
    }

    fn flip(&mut self, cluster: &mut Cluster, uid: &str, life: &Life) {
        let is_ready = !life.is_ready;
        let word = if is_ready { "ready" } else { "unready" };
        cluster.say(ACTOR, || format!("{} is {word}", life.name));
        self.report(cluster, life, |pod, now| report::running(pod, now, is_ready, life.restarts));
        self.life(uid).is_ready = is_ready;
    }

    fn restart(&mut self, cluster: &mut Cluster, uid: &str, life: &Life) {
        let restarts = life.restarts + 1;
        cluster.say(ACTOR, || format!("restarts {} in place, restart {restarts}", life.name));
        self.report(cluster, life, |pod, now| report::running(pod, now, false, restarts));
        self.life(uid).restarts = restarts;
        if !self.is_healed && self.chance.percent(50) {
            let delay = self.chance.millis(500, 5_000);
            self.plan(cluster, uid, Act::Restart, delay);
        }
    }

    fn lose(&mut self, cluster: &mut Cluster, uid: &str, life: &Life) {
        cluster.say(ACTOR, || format!("loses the node of {}", life.name));
        self.life(uid).is_lost = true;
        let _ = cluster.api.evict(&life.name);
        if self.chance.percent(50) {
            let delay = self.chance.millis(20_000, 200_000);
            self.plan(cluster, uid, Act::Remove, delay);
        }
    }

    fn end(&mut self, cluster: &mut Cluster, uid: &str, life: &Life, ending: Ending) {
        cluster.say(ACTOR, || format!("{} ends with exit code {}", life.name, ending.code));
        self.report(cluster, life, |pod, now| report::ended(pod, now, ending, life.restarts));
        self.life(uid).is_over = true;
    }

    /// Plans the end of a pod that was asked to stop.
    fn stop(&mut self, cluster: &mut Cluster, pod: &Object) {
        let grace = pod.meta.deletion_grace_seconds.unwrap_or_default().clamp(0, 30);
        let delay = self.chance.millis(1, grace * 1_000 + 1_000);
        self.plan(cluster, &pod.meta.uid, Act::Stop, delay);
    }

    /// The pod has stopped: it says how, then it is nobody's any more.
    fn stopped(&mut self, cluster: &mut Cluster, uid: &str, life: &Life) {
        if !life.is_over {
            let code = if self.chance.percent(15) { 0 } else { 137 };
            let ending = Ending { code, is_disrupted: false };
            cluster.say(ACTOR, || format!("{} is stopped, exit code {code}", life.name));
            self.report(cluster, life, |pod, now| match life.is_bound {
                true => report::ended(pod, now, ending, life.restarts),
                false => report::lost(pod, now),
            });
            // The last finalizer may have gone with it.
            if let Some(life) = self.lives.get_mut(uid) {
                life.is_over = true;
            }
        }
        Self::remove(cluster, life);
    }

    /// Takes the pod out of the API without asking anybody, as far as finalizers let go.
    fn remove(cluster: &mut Cluster, life: &Life) {
        let now = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        if cluster.api.delete(Kind::Pod, &life.name, &now).is_ok() {
            cluster.say(ACTOR, || format!("removes {}", life.name));
        }
    }

    fn report(
        &self,
        cluster: &mut Cluster,
        life: &Life,
        change: impl FnOnce(&mut Json, Timestamp),
    ) {
        let now = cluster.now();
        let done = cluster.api.edit(Kind::Pod, Some("status"), &life.name, |pod| change(pod, now));
        if let Err(status) = done {
            assert!(status.code == 404, "the report on {} is refused: {status}", life.name);
        }
    }

    fn life(&mut self, uid: &str) -> &mut Life {
        self.lives.get_mut(uid).expect("only deletions end a life, and they are seen later")
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use lockstep_api::json;
    use serde_json::json;

    use super::{Node, Temper};
    use crate::{
        api::{Kind, map},
        cluster::{Cluster, Happening},
        trace::Trace,
    };

    /// Lets six pods live, heals after a minute, and says in which phase each was last seen.
    fn phases(seed: u64, policy: &str) -> Vec<String> {
        let mut cluster = Cluster::new(Timestamp::UNIX_EPOCH, Trace::silent());
        let mut node = Node::new(seed, Temper { succeed: 30, exit: 50 });
        for name in ["a", "b", "c", "d", "e", "f"] {
            let spec = json!({
                "restartPolicy": policy,
                "containers": [{"name": "main", "image": "worker"}],
            });
            let meta = json!({"name": name, "finalizers": ["sim/hold"]});
            cluster.api.create(Kind::Pod, map(json!({"metadata": meta, "spec": spec}))).unwrap();
        }
        node.observe(&mut cluster);
        cluster.after(SignedDuration::from_secs(60), Happening::Heal);
        while let Some(happening) = cluster.advance() {
            if let Happening::Pod { uid, act } = happening {
                node.act(&mut cluster, &uid, act);
            } else {
                node.heal(&mut cluster);
            }
            node.observe(&mut cluster);
        }
        let phase =
            |pod: &lockstep_store::Object| json::text(&pod.json(), &["status", "phase"]).to_owned();
        cluster.api.list(Kind::Pod).map(|pod| phase(pod)).collect()
    }

    #[test]
    fn every_pod_ends_once_everything_works() {
        let mut failed = 0;
        for seed in 0..40 {
            for policy in ["Never", "OnFailure"] {
                let phases = phases(seed, policy);
                assert_eq!(phases.len(), 6, "a finalizer keeps each");
                assert!(phases.iter().all(|it| it == "Succeeded" || it == "Failed"), "{phases:?}");
                failed += phases.iter().filter(|it| *it == "Failed").count();
            }
        }
        assert!(failed > 20, "pods fail, too: {failed}");
    }
}
