//! Restarts in place: a leader for the gang of each JobSet that asks for them, as long as this
//! process leads.
//!
//! The controller of JobSets tells it what it sees, before it acts on it: a gang knows that its
//! pods are about to be deleted before the first of them is.

mod leader;
mod order;
mod record;
mod ticket;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{Client, ResourceExt};
use lockstep_api::jobset::{JobSet, in_place};
use lockstep_api::labels::jobset as labels;
use lockstep_control::plan::jobset::in_place::Wiring;
use lockstep_restart::place::Place;
use lockstep_restart::valkey::Bus;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::debug;

use super::Message;
use crate::metrics::Metrics;
use crate::observe::{Change, Feed, Teller};
use leader::{Leader, News};
use order::in_order;

pub use ticket::Keys;
pub(super) use ticket::put as put_ticket;

/// How often, and after which time, a bus is asked again to forget a job.
const FORGET_TRIES: usize = 10;
const FORGET_WAIT: Duration = Duration::from_secs(3);

/// What restarts in place need.
#[derive(Clone)]
pub struct InPlace {
    /// Where agents connect to.
    pub place: Place,
    /// What lets them in.
    pub keys: Keys,
    /// How they are told to get there.
    pub wiring: Wiring,
    /// All pods.
    pub pods: Feed<Pod>,
}

impl fmt::Debug for InPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InPlace").field("wiring", &self.wiring).finish_non_exhaustive()
    }
}

/// Whether a pod may be the worker of a gang.
pub(super) fn is_worker(pod: &Pod) -> bool {
    pod.labels().contains_key(labels::JOBSET_UID)
}

/// The gangs of all sets that restart in place.
pub(super) struct Gangs {
    tools: leader::Tools,
    /// Whether this process may act.
    is_leading: bool,
    /// What a listing of all pods has told so far, while there is one. Gangs are told of it when it
    /// is whole: it has another order than the one in which pods were made.
    listing: Option<Vec<Arc<Pod>>>,
    /// Sets that restart in place, by uid.
    sets: HashMap<String, Set>,
    /// Pods by the uid of their set, which may not have been seen yet.
    pods: HashMap<String, HashMap<String, Arc<Pod>>>,
    /// The uid of the set of each of them.
    sets_of_pods: HashMap<String, String>,
}

struct Set {
    jobset: Arc<JobSet>,
    led: Option<Led>,
}

/// A leader at work; it ends with this.
struct Led {
    news: mpsc::UnboundedSender<News>,
    task: JoinHandle<()>,
}

impl Drop for Led {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Gangs {
    pub(super) fn new(
        client: &Client,
        wanted: &InPlace,
        teller: Teller<Message>,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let (client, metrics) = (client.clone(), Arc::clone(metrics));
        Self {
            tools: leader::Tools { client, metrics, teller, place: wanted.place.clone() },
            is_leading: false,
            listing: Some(Vec::new()),
            sets: HashMap::new(),
            pods: HashMap::new(),
            sets_of_pods: HashMap::new(),
        }
    }

    /// Whether this process may act has changed, perhaps. Says whether it leads from now on: what
    /// was known of gangs before is then what somebody else has left behind.
    pub(super) fn leads(&mut self, is_leading: bool) -> bool {
        if self.is_leading == is_leading {
            return false;
        }
        self.is_leading = is_leading;
        let uids: Vec<String> = self.sets.keys().cloned().collect();
        for uid in uids {
            if is_leading {
                self.lead(&uid);
            } else if let Some(set) = self.sets.get_mut(&uid) {
                set.led = None;
            }
        }
        is_leading
    }

    /// A version of a set. To be told before anything is done about it.
    pub(super) fn jobset_seen(&mut self, jobset: &JobSet) {
        let uid = jobset.uid().unwrap_or_default();
        if is_over(jobset) {
            self.jobset_gone(&uid);
        } else if let Some(set) = self.sets.get_mut(&uid) {
            // Whatever it says by now: once led, its agents need somebody who leads.
            set.jobset = Arc::new(jobset.clone());
            set.tell(News::Set(Arc::clone(&set.jobset)));
        } else if in_place::has_begun(jobset) {
            self.sets.insert(uid.clone(), Set { jobset: Arc::new(jobset.clone()), led: None });
            self.lead(&uid);
        }
    }

    /// A set is over. Its leader goes before anything else happens, and with it all that it may
    /// still have had in mind; late agents find nobody.
    pub(super) fn jobset_gone(&mut self, uid: &str) {
        // Also by those who do not lead: the one who does may go before it comes to that.
        if self.sets.remove(uid).is_some()
            && let Place::Bus(bus) = &self.tools.place
        {
            tokio::spawn(forget(Arc::clone(bus), uid.to_owned()));
        }
    }

    pub(super) fn pod_changed(&mut self, change: Change<Pod>) {
        match change {
            Change::Listing => self.listing = Some(Vec::new()),
            Change::Put(pod) => {
                let Some(set) = pod.labels().get(labels::JOBSET_UID).cloned() else { return };
                let uid = pod.uid().unwrap_or_default();
                self.sets_of_pods.insert(uid.clone(), set.clone());
                self.pods.entry(set.clone()).or_default().insert(uid, Arc::clone(&pod));
                match &mut self.listing {
                    Some(listed) => listed.push(pod),
                    None => self.tell(&set, News::Pod(pod)),
                }
            }
            Change::Gone(key) => {
                let Some(set) = self.sets_of_pods.remove(&key.uid) else { return };
                if let Some(pods) = self.pods.get_mut(&set) {
                    pods.remove(&key.uid);
                    if pods.is_empty() {
                        self.pods.remove(&set);
                    }
                }
                self.tell(&set, News::PodGone(key.uid));
            }
            Change::Synced => {
                let mut listed = self.listing.take().unwrap_or_default();
                in_order(&mut listed);
                for pod in listed {
                    if let Some(set) = pod.labels().get(labels::JOBSET_UID).cloned() {
                        self.tell(&set, News::Pod(pod));
                    }
                }
                self.sets.values().for_each(|set| set.tell(News::PodsKnown));
            }
        }
    }

    /// Begins to lead a set, if this process may.
    fn lead(&mut self, uid: &str) {
        let Some(set) = self.sets.get_mut(uid).filter(|_| self.is_leading) else { return };
        let (news, receiver) = mpsc::unbounded_channel();
        let leader = Leader::new(&set.jobset, self.tools.clone(), receiver);
        set.led = Some(Led { news, task: tokio::spawn(leader.run()) });
        self.introduce(uid);
    }

    /// Tells a leader that has just begun of all pods, unless they are being listed: then it hears
    /// of them as everybody does.
    fn introduce(&self, uid: &str) {
        if self.listing.is_some() {
            return;
        }
        let pods = self.pods.get(uid).into_iter().flat_map(HashMap::values);
        let mut pods: Vec<_> = pods.cloned().collect();
        in_order(&mut pods);
        pods.into_iter().for_each(|pod| self.tell(uid, News::Pod(pod)));
        self.tell(uid, News::PodsKnown);
    }

    fn tell(&self, uid: &str, news: News) {
        if let Some(set) = self.sets.get(uid) {
            set.tell(news);
        }
    }
}

/// Has a bus forget a job. What it does not come to it does by itself, later.
async fn forget(bus: Arc<Bus>, uid: String) {
    for _ in 0..FORGET_TRIES {
        match bus.store().forget(&uid).await {
            Ok(()) => return,
            Err(error) => debug!(uid, %error, "a job is not forgotten, trying again"),
        }
        tokio::time::sleep(FORGET_WAIT).await;
    }
}

impl Set {
    fn tell(&self, news: News) {
        if let Some(led) = &self.led {
            // Whoever has ended by itself has panicked, which is told elsewhere.
            let _ended = led.news.send(news);
        }
    }
}

/// Whether nothing of a set is to be led any more.
fn is_over(jobset: &JobSet) -> bool {
    let has_ended = jobset.status.as_ref().is_some_and(|status| !status.terminal_state.is_empty());
    has_ended || jobset.metadata.deletion_timestamp.is_some()
}

#[cfg(test)]
mod tests;
