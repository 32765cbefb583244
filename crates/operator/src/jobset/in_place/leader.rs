//! The leader of one gang: tells it of pods and of the set, and does what it asks for.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Client, ResourceExt};
use lockstep_api::jobset::{InPlaceRestart, InPlaceWorkers, JobSet};
use lockstep_control::plan::Key;
use lockstep_control::plan::jobset::in_place::{Excuses, Gang as Seen, Seats, terms};
use lockstep_control::plan::restart::{Moment, Phase, Record, Terms, Waterfall, Workers};
use lockstep_restart::hub::{Gang, Happening, RecordStore};
use lockstep_restart::place::Place;
use lockstep_restart::valkey::Store;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, info, warn};

use super::super::Message;
use super::order::in_order;
use super::record::ConfigMaps;
use crate::metrics::Metrics;
use crate::observe::Teller;
use crate::write;

/// What a leader hears.
pub(super) enum News {
    Set(Arc<JobSet>),
    Pod(Arc<Pod>),
    PodGone(String),
    PodsKnown,
}

/// What all leaders work with.
#[derive(Clone)]
pub(super) struct Tools {
    pub(super) client: Client,
    pub(super) metrics: Arc<Metrics>,
    pub(super) teller: Teller<Message>,
    pub(super) place: Place,
}

/// How long the record may be unreadable before it is tried again, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// How long it may take to be read.
const READ_WITHIN: Duration = Duration::from_secs(10);
/// How long nothing has to change before people are told what the workers do. What changes faster
/// is told of as a restart.
const SETTLED: Duration = Duration::from_secs(1);
/// How many restarts are told of at most.
const RESTARTS_MAX: usize = 16;

/// What a gang was told of a pod.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Told {
    Seen,
    Ending,
    Gone,
}

/// Why a gang is led no more.
enum Ended {
    /// Nobody tells anything any more.
    Dismissed,
    /// It has to be led anew, by somebody later than this.
    After(u64),
}

pub(super) struct Leader {
    tools: Tools,
    key: Key,
    uid: String,
    news: mpsc::UnboundedReceiver<News>,
    terms: Terms,
    excuses: Excuses,
    seats: Seats,
    /// The places before those: a pod of one that is no more may still run.
    former: Seats,
    pods: HashMap<String, Arc<Pod>>,
    told: HashMap<String, Told>,
    /// Those whose Jobs would not count their end, as the gang was told.
    excused: HashSet<String>,
    are_pods_known: bool,
    /// The latest leader that was heard of.
    fence: u64,
    seen: Option<Seen>,
}

impl Leader {
    pub(super) fn new(jobset: &JobSet, tools: Tools, news: mpsc::UnboundedReceiver<News>) -> Self {
        Self {
            tools,
            key: Key::of(&jobset.metadata),
            uid: jobset.uid().unwrap_or_default(),
            news,
            terms: terms(jobset),
            excuses: Excuses::of(jobset),
            seats: Seats::of(jobset),
            former: Seats::default(),
            pods: HashMap::new(),
            told: HashMap::new(),
            excused: HashSet::new(),
            are_pods_known: false,
            fence: 0,
            seen: None,
        }
    }

    /// Leads, and again when somebody else has led in between, until nobody tells anything more.
    pub(super) async fn run(mut self) {
        let records = Records::of(&self);
        loop {
            let stored = self.read(&records).await;
            let fence = next_fence(self.fence.max(stored.map_or(0, |stored| stored.fence)));
            info!(jobset = %self.key, fence, "leading restarts in place");
            let (tell, mut happenings) = mpsc::unbounded_channel();
            let (job, led) = ((self.uid.as_str(), self.tools.place.key()), (fence, stored));
            let gang = Gang::lead(job, self.terms.clone(), led, records.store(), tell);
            let leading = Leading { gang, place: self.tools.place.clone(), uid: self.uid.clone() };
            let gang = &leading.gang;
            self.introduce(gang).await;
            leading.place.add(&self.uid, gang.clone());
            let ended = self.follow(gang, &mut happenings).await;
            drop(leading);
            match ended {
                Ended::Dismissed => return,
                Ended::After(fence) => {
                    self.fence = self.fence.max(fence);
                    debug!(jobset = %self.key, fence, "leading restarts in place anew");
                }
            }
            sleep(RETRY.0).await;
        }
    }

    async fn read(&self, records: &Records) -> Option<Record> {
        let mut wait = RETRY.0;
        loop {
            match timeout(READ_WITHIN, records.read(&self.uid)).await {
                Ok(Ok(stored)) => return stored,
                Ok(Err(error)) => {
                    warn!(jobset = %self.key, error, "restart record not read, trying again");
                }
                Err(_) => {
                    warn!(jobset = %self.key, "restart record not read in time, trying again");
                }
            }
            sleep(wait).await;
            wait = (wait * 2).min(RETRY.1);
        }
    }

    /// Tells a new gang of all pods, in the order in which they were made.
    async fn introduce(&mut self, gang: &Gang) {
        self.told.clear();
        self.excused.clear();
        let mut pods: Vec<_> = self.pods.values().cloned().collect();
        in_order(&mut pods);
        for pod in pods {
            self.tell_of(gang, &pod).await;
        }
        if self.are_pods_known {
            gang.pods_known().await;
        }
    }

    async fn follow(
        &mut self,
        gang: &Gang,
        happenings: &mut mpsc::UnboundedReceiver<Happening>,
    ) -> Ended {
        let mut record = gang.record();
        let first = *record.borrow_and_update();
        self.record_changed(first).await;
        let mut settles = Some(Instant::now() + SETTLED);
        loop {
            let settled = async {
                match settles {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                news = self.news.recv() => match news {
                    None => return Ended::Dismissed,
                    Some(news) => if let Some(ended) = self.hear(gang, news).await {
                        return ended;
                    },
                },
                happening = happenings.recv() => {
                    let Some(happening) = happening else { return self.over(gang) };
                    settles = Some(Instant::now() + SETTLED);
                    if let Some(ended) = self.happened(gang, happening).await {
                        return ended;
                    }
                }
                changed = record.changed() => {
                    if changed.is_err() {
                        return self.over(gang);
                    }
                    settles = Some(Instant::now() + SETTLED);
                    let record = *record.borrow_and_update();
                    if matches!(record.phase, Phase::Failed(_) | Phase::Recreating) {
                        // What led to it is told with it.
                        self.note_failure(gang).await;
                    }
                    self.record_changed(record).await;
                }
                () = settled => {
                    let is_steady = self.describe(gang).await;
                    settles = (!is_steady).then(|| Instant::now() + SETTLED);
                }
            }
        }
    }

    /// The task that leads the gang has ended without being asked to.
    fn over(&self, gang: &Gang) -> Ended {
        let fence = gang.record().borrow().fence;
        warn!(jobset = %self.key, fence, "nobody leads restarts in place, leading anew");
        Ended::After(fence)
    }

    /// Takes news in; says so if the gang has to be led anew because of them.
    async fn hear(&mut self, gang: &Gang, news: News) -> Option<Ended> {
        match news {
            News::Set(jobset) => return self.set_seen(gang, &jobset).await,
            News::Pod(pod) => {
                self.pods.insert(pod.uid().unwrap_or_default(), Arc::clone(&pod));
                self.tell_of(gang, &pod).await;
            }
            News::PodGone(uid) => {
                self.pods.remove(&uid);
                self.excused.remove(&uid);
                let told = self.told.remove(&uid);
                if told.is_some_and(|told| told < Told::Gone) {
                    gang.pod_gone(&uid, false).await;
                }
            }
            News::PodsKnown => {
                self.are_pods_known = true;
                gang.pods_known().await;
            }
        }
        None
    }

    async fn set_seen(&mut self, gang: &Gang, jobset: &JobSet) -> Option<Ended> {
        let wanted = terms(jobset);
        self.excuses = Excuses::of(jobset);
        let seats = Seats::of(jobset);
        let is_moved = seats != self.seats;
        if is_moved {
            self.former = std::mem::replace(&mut self.seats, seats);
        }
        if wanted.generation > self.terms.generation {
            // The set has counted it itself, if it counts.
            gang.regenerated(wanted.generation, false).await;
        }
        // Its copy of the count is of interest only to whoever leads anew.
        let is_same = Terms { restarts: self.terms.restarts, ..wanted.clone() } == self.terms;
        self.terms = wanted;
        if is_moved {
            return Some(Ended::After(gang.record().borrow().fence));
        }
        if !is_same {
            gang.amended(self.terms.clone()).await;
        }
        None
    }

    /// Tells the gang what it does not know yet of a pod.
    async fn tell_of(&mut self, gang: &Gang, pod: &Pod) {
        let removed = || self.former.seat(pod).map(|(_, generation)| (u32::MAX, generation));
        let Some((slot, generation)) = self.seats.seat(pod).or_else(removed) else { return };
        let uid = pod.uid().unwrap_or_default();
        let (told, now) = (self.told.get(&uid).copied(), state(pod));
        if told.is_none() {
            gang.pod_seen(&uid, slot, generation).await;
        }
        // Its agent may tell of the end before anybody else does.
        let is_excused = self.excuses.cover(pod);
        if is_excused != self.excused.contains(&uid) {
            gang.pod_excused(&uid, is_excused).await;
            match is_excused {
                true => drop(self.excused.insert(uid.clone())),
                false => drop(self.excused.remove(&uid)),
            }
        }
        if told < Some(now) {
            match now {
                Told::Seen => {}
                Told::Ending => gang.pod_ending(&uid).await,
                Told::Gone => {
                    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                    gang.pod_gone(&uid, phase == Some("Succeeded")).await;
                }
            }
            self.told.insert(uid, now);
        }
    }

    /// Does what the gang asks for; says so if it has to be led anew.
    async fn happened(&mut self, gang: &Gang, happening: Happening) -> Option<Ended> {
        match happening {
            Happening::Replace(uids) => self.replace(&uids),
            Happening::SteppedDown(fence) => return Some(Ended::After(fence)),
            Happening::Failed(_) => {
                self.note_failure(gang).await;
                self.tell().await;
            }
            Happening::Recreate { generation } => {
                info!(jobset = %self.key, generation, "all pods are to be made anew");
                self.note_failure(gang).await;
                self.tell().await;
            }
            Happening::Restarted(waterfall) => self.restarted(&waterfall).await,
        }
        None
    }

    /// Has pods deleted, so that their Jobs replace them.
    fn replace(&self, uids: &[String]) {
        for pod in uids.iter().filter_map(|uid| self.pods.get(uid)) {
            let (client, pod, set) = (self.tools.client.clone(), Arc::clone(pod), self.key.clone());
            tokio::spawn(async move {
                let (name, uid) = (pod.name_any(), pod.uid().unwrap_or_default());
                info!(jobset = %set, pod = name, "replacing a pod that does not restart");
                let object = (set.namespace.as_str(), name.as_str(), uid.as_str());
                // What is not deleted now is deleted with all others, a rung higher.
                if let Err(error) = write::delete_pod(&client, object).await {
                    warn!(jobset = %set, pod = name, %error, "a pod could not be replaced");
                }
            });
        }
    }

    async fn restarted(&mut self, waterfall: &Waterfall) {
        let restart = restart(waterfall, &self.seats);
        info!(
            jobset = %self.key,
            epoch = restart.epoch,
            worker = restart.worker,
            cause = restart.cause,
            millis = restart.total_micros() / 1000,
            "restarted in place"
        );
        self.tools.metrics.restarts.restarted(&restart);
        if let Some(seen) = &mut self.seen {
            seen.restarts.push(restart);
            let old = seen.restarts.len().saturating_sub(RESTARTS_MAX);
            seen.restarts.drain(..old);
        }
        self.tell().await;
    }

    async fn record_changed(&mut self, record: Record) {
        let seen = self.seen.get_or_insert_with(|| Seen {
            record,
            waiting: String::new(),
            workers: Vec::new(),
            restarts: Vec::new(),
            last_failure: None,
        });
        seen.record = record;
        self.tell().await;
    }

    /// Says what the workers do, and whether that will stay so.
    async fn describe(&mut self, gang: &Gang) -> bool {
        let Some(description) = gang.describe().await else { return true };
        let is_steady = description.waiting.is_none() && description.workers.len() <= 1;
        let Some(seen) = &mut self.seen else { return is_steady };
        let waiting = description.waiting.map(|waiting| waiting.to_string()).unwrap_or_default();
        let workers: Vec<_> = description.workers.into_iter().map(workers).collect();
        if (&waiting, &workers) != (&seen.waiting, &seen.workers) {
            (seen.waiting, seen.workers) = (waiting, workers);
            self.tell().await;
        }
        is_steady
    }

    async fn note_failure(&mut self, gang: &Gang) {
        let failure = gang.describe().await.and_then(|description| description.last_failure);
        let Some((slot, cause)) = failure else { return };
        if let (Some(seen), Some((job, worker))) = (&mut self.seen, self.seats.worker(slot)) {
            seen.last_failure = Some((job, worker, cause.to_string()));
        }
    }

    /// Tells the controller of the set.
    async fn tell(&self) {
        if let Some(seen) = &self.seen {
            let seen = Arc::new(seen.clone());
            let message = Message::Gang { key: self.key.clone(), uid: self.uid.clone(), seen };
            self.tools.teller.tell(message).await;
        }
    }
}

/// A gang that is led. However that ends, also in the middle of something, its agents are let go
/// and nothing of it goes on.
struct Leading {
    gang: Gang,
    place: Place,
    uid: String,
}

impl Drop for Leading {
    fn drop(&mut self) {
        self.gang.stop();
        self.place.remove(&self.uid, &self.gang);
    }
}

/// Where the record of a set is kept.
enum Records {
    /// In the cluster.
    Cluster(Arc<ConfigMaps>),
    /// On the bus, so that a restart needs nothing of the cluster.
    Bus(Arc<Store>),
}

impl Records {
    fn of(leader: &Leader) -> Self {
        match &leader.tools.place {
            Place::Bus(bus) => Self::Bus(bus.store()),
            Place::Hub(_) => {
                let (client, key) = (leader.tools.client.clone(), leader.key.clone());
                Self::Cluster(Arc::new(ConfigMaps::new(client, key, &leader.uid)))
            }
        }
    }

    fn store(&self) -> Arc<dyn RecordStore> {
        match self {
            Self::Cluster(store) => Arc::<ConfigMaps>::clone(store),
            Self::Bus(store) => Arc::<Store>::clone(store),
        }
    }

    async fn read(&self, uid: &str) -> Result<Option<Record>, String> {
        match self {
            Self::Cluster(store) => store.read().await.map_err(|error| error.to_string()),
            Self::Bus(store) => store.read(uid).await.map_err(|error| error.to_string()),
        }
    }
}

/// A later fence than any that was heard of. Two that read the same at the same time do not choose
/// the same: half of it is drawn.
fn next_fence(last: u64) -> u64 {
    ((last >> 32) + 1) << 32 | u64::from(fastrand::u32(..))
}

pub(super) fn state(pod: &Pod) -> Told {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    match phase {
        Some("Succeeded" | "Failed") => Told::Gone,
        _ if pod.metadata.deletion_timestamp.is_some() => Told::Ending,
        _ => Told::Seen,
    }
}

fn restart(waterfall: &Waterfall, seats: &Seats) -> InPlaceRestart {
    let worker = seats.worker(waterfall.slot).map(|(_, worker)| worker).unwrap_or_default();
    let mut before = waterfall.heard;
    let mut part = |end: Option<Moment>| {
        let end = end.unwrap_or(before);
        let span = end.since(before);
        before = before.max(end);
        micros(span)
    };
    InPlaceRestart {
        epoch: i32::try_from(waterfall.epoch).unwrap_or(i32::MAX),
        time: Some(Time(Timestamp::now())),
        worker,
        cause: waterfall.cause.to_string(),
        detected_micros: micros(waterfall.detected),
        decided_micros: part(waterfall.decided),
        stopped_micros: part(waterfall.stopped),
        gathered_micros: part(waterfall.gathered),
        released_micros: part(waterfall.released),
        running_micros: part(waterfall.running),
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

fn workers(workers: Workers) -> InPlaceWorkers {
    InPlaceWorkers {
        state: workers.state.to_owned(),
        epoch: workers.epoch.map(|epoch| i32::try_from(epoch).unwrap_or(i32::MAX)),
        count: i32::try_from(workers.places.count()).unwrap_or(i32::MAX),
        places: workers.places.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use lockstep_restart::hub::{Hub, Memory};
    use lockstep_restart::ticket::Key as TicketKey;

    use super::super::tests::{client, client_after, jobset};
    use super::*;
    use crate::observe::Inbox;

    #[tokio::test(start_paused = true)]
    async fn a_record_that_cannot_be_read_in_time_is_read_again() {
        let inbox = Inbox::new();
        let tools = Tools {
            client: client_after(2),
            metrics: Arc::default(),
            teller: inbox.teller(),
            place: Place::Hub(Hub::new(TicketKey::new(b"key"))),
        };
        let (_news, receiver) = mpsc::unbounded_channel();
        let leader = Leader::new(&jobset(), tools, receiver);
        let records = Records::of(&leader);
        let read = timeout(READ_WITHIN * 4, leader.read(&records)).await;
        assert_eq!(read, Ok(None), "an answer that never comes is waited for for ever");
    }

    #[tokio::test]
    async fn a_gang_that_nobody_leads_any_more_is_led_anew() {
        let inbox = Inbox::new();
        let tools = Tools {
            client: client(),
            metrics: Arc::default(),
            teller: inbox.teller(),
            place: Place::Hub(Hub::new(TicketKey::new(b"key"))),
        };
        let (_news, receiver) = mpsc::unbounded_channel();
        let mut leader = Leader::new(&jobset(), tools, receiver);
        let (tell, mut happenings) = mpsc::unbounded_channel();
        let store = Arc::new(Memory::default());
        let key = TicketKey::new(b"key");
        let gang = Gang::lead(("set", &key), leader.terms.clone(), (7, None), store, tell);
        gang.stop();
        let followed = leader.follow(&gang, &mut happenings);
        let ended = timeout(Duration::from_secs(10), followed).await;
        assert!(matches!(ended, Ok(Ended::After(7))), "its agents would wait for ever");
    }
}
