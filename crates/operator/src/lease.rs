//! Leadership: of all operators of a cluster, one may send.
//!
//! A Lease names the leader, who renews it. Whoever sees it unchanged for its whole duration takes
//! it over. Only clocks of one machine are compared with each other: how long a Lease has been
//! unchanged is measured by whoever watches it, from when it saw the change. The leader counts from
//! before it asked for the renewal, and stops after a shorter time than others wait; so it has
//! stopped before another can begin.

mod claim;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::{info, warn};

use claim::{Claim, Seen, claim, released};

/// The Lease that operators for JobSets agree by, ours and others.
pub const JOBSET_LEASE: &str = "6d4f6a47.jobset.x-k8s.io";
/// The Lease of Kueue. Whoever holds it is the only one to admit Workloads.
pub const KUEUE_LEASE: &str = "c1f6bfd2.kueue.x-k8s.io";
/// Where Kueue has it, unless it was set up otherwise.
pub const KUEUE_NAMESPACE: &str = "kueue-system";

/// Which Lease, who asks for it, and how patiently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseOptions {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who we are; no two processes may say the same.
    pub identity: String,
    /// How long a Lease that is not renewed keeps others away.
    pub duration: Duration,
    /// How long a leader goes on without having renewed; less than `duration`.
    pub renew_within: Duration,
    /// How long to wait between two attempts; less than `renew_within`.
    pub retry: Duration,
}

impl LeaseOptions {
    /// The usual times, for somebody with a name of its own.
    pub fn new(namespace: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: JOBSET_LEASE.to_owned(),
            identity: identity.to_owned(),
            duration: Duration::from_secs(15),
            renew_within: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// Until when we may send.
#[derive(Clone, Copy, Debug)]
struct Term {
    until: Instant,
    /// The same by the calendar: a machine that was suspended finds its other clock where it was.
    until_date: Timestamp,
}

impl Term {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until || Timestamp::now() >= self.until_date
    }
}

/// Whether we lead.
#[derive(Clone, Debug)]
pub struct Leadership {
    term: watch::Receiver<Option<Term>>,
    /// What [`Leadership::changed`] told last.
    told: bool,
}

impl Leadership {
    /// Of somebody who is alone.
    pub fn alone() -> Self {
        let forever = Duration::from_secs(60 * 60 * 24 * 365 * 30);
        let term = Term { until: Instant::now() + forever, until_date: Timestamp::MAX };
        // What was sent last stays when nobody sends any more.
        Self::following(watch::channel(Some(term)).1)
    }

    /// Of somebody who never leads.
    #[cfg(test)]
    pub(crate) fn never() -> Self {
        Self::following(watch::channel(None).1)
    }

    fn following(term: watch::Receiver<Option<Term>>) -> Self {
        Self { term, told: false }
    }

    /// Whether something may be sent at this moment.
    pub fn may_send(&self) -> bool {
        self.term.borrow().is_some_and(|term| !term.is_over())
    }

    /// Whether nobody else could lead.
    pub fn is_alone(&self) -> bool {
        self.term.borrow().is_some_and(|term| term.until_date == Timestamp::MAX)
    }

    /// Waits until whether we lead is something else than it was when this last returned; at first,
    /// until we lead. Nothing is lost when the waiting is given up.
    pub async fn changed(&mut self) {
        loop {
            let leads = self.term.borrow_and_update().is_some();
            if leads != self.told {
                self.told = leads;
                return;
            }
            if self.term.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

/// Tries to lead, for as long as it exists.
pub struct Election {
    task: JoinHandle<()>,
    leadership: Leadership,
    api: Api<Lease>,
    options: LeaseOptions,
}

impl Election {
    /// Begins. `client` must not be one that waits for leadership itself.
    pub fn start(client: &Client, options: LeaseOptions) -> Self {
        Self::begin(client, options, None)
    }

    /// Begins for somebody who tries only while it leads elsewhere, and leads no longer than there.
    pub fn start_within(client: &Client, options: LeaseOptions, elsewhere: Leadership) -> Self {
        Self::begin(client, options, Some(elsewhere))
    }

    fn begin(client: &Client, options: LeaseOptions, within: Option<Leadership>) -> Self {
        let api = Api::namespaced(client.clone(), &options.namespace);
        let (term, terms) = watch::channel(None);
        let candidate = Candidate {
            api: api.clone(),
            options: options.clone(),
            within,
            term,
            seen: None,
            other: None,
        };
        let task = tokio::spawn(candidate.run());
        Self { task, leadership: Leadership::following(terms), api, options }
    }

    /// Whether we lead.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Gives the Lease back, so that another need not wait until it is over. Whatever sends must
    /// have ended.
    pub async fn resign(self) {
        self.task.abort();
        if !self.leadership.may_send() {
            return;
        }
        let give_back = async {
            let mut lease = self.api.get(&self.options.name).await?;
            let spec = lease.spec.take().unwrap_or_default();
            if spec.holder_identity.as_deref() != Some(self.options.identity.as_str()) {
                return Ok(());
            }
            lease.spec = Some(released(spec, Timestamp::now()));
            self.api.replace(&self.options.name, &PostParams::default(), &lease).await.map(drop)
        };
        match tokio::time::timeout(self.options.retry, give_back).await {
            Ok(Ok(())) => info!(lease = %self.options.name, "gave up leadership"),
            Ok(Err(error)) => warn!(%error, "lease not given back"),
            Err(_) => warn!("lease not given back in time"),
        }
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Candidate {
    api: Api<Lease>,
    options: LeaseOptions,
    /// What it has to lead as well, if anything.
    within: Option<Leadership>,
    term: watch::Sender<Option<Term>>,
    /// The Lease as it was when we last saw it change.
    seen: Option<Seen>,
    /// Who else was said to lead.
    other: Option<String>,
}

impl Candidate {
    async fn run(mut self) {
        loop {
            let begun = Instant::now();
            // An answer that comes after the term is over is of no use.
            let left = self.term.borrow().map_or(self.options.renew_within, |term| {
                term.until.saturating_duration_since(begun)
            });
            match tokio::time::timeout(left, self.attempt(begun)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    warn!(lease = %self.options.name, %error, "lease not acquired or renewed");
                }
                Err(_) => warn!(lease = %self.options.name, "lease not acquired in time"),
            }
            let wait = Instant::now() + self.options.retry;
            let until = self.term.borrow().map(|term| term.until);
            let until = until.map_or(wait, |until| wait.min(until));
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                () = changed(&mut self.within) => {}
            }
            if self.term.borrow().is_some_and(|term| term.is_over()) {
                self.step_down("it was not renewed in time");
            }
        }
    }

    /// Looks at the Lease once, and takes or renews it if it may be.
    async fn attempt(&mut self, begun: Instant) -> kube::Result<()> {
        let now = Timestamp::now();
        let elsewhere = self.within.as_ref().map(|within| *within.term.borrow());
        if elsewhere.is_some_and(|term| term.is_none_or(|term| term.is_over())) {
            self.step_down("it does not lead elsewhere");
            return Ok(());
        }
        let found = self.api.get_opt(&self.options.name).await?;
        let seen = Seen::update(self.seen.take(), found.as_ref(), Instant::now());
        let claimed = claim(&self.options, found.as_ref(), &seen, now, Instant::now());
        self.seen = Some(seen);
        let written = match (claimed, found) {
            (Claim::HeldBy(holder), _) => {
                if self.other.as_ref() != Some(&holder) {
                    info!(lease = %self.options.name, %holder, "another leads");
                    self.other = Some(holder.clone());
                }
                self.step_down(&format!("{holder} holds it"));
                return Ok(());
            }
            (Claim::Take(spec), None) => self.create(spec).await,
            (Claim::Take(spec), Some(mut lease)) => {
                // With the version it was read at: of two who try, one succeeds.
                lease.spec = Some(spec);
                self.api.replace(&self.options.name, &PostParams::default(), &lease).await
            }
        };
        match written {
            Ok(lease) => {
                self.seen = Some(Seen::update(None, Some(&lease), Instant::now()));
                self.other = None;
                self.lead(begun, now, elsewhere.flatten());
                Ok(())
            }
            // Somebody was quicker; the next look tells who.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, spec: LeaseSpec) -> kube::Result<Lease> {
        let metadata =
            ObjectMeta { name: Some(self.options.name.clone()), ..ObjectMeta::default() };
        let lease = Lease { metadata, spec: Some(spec) };
        self.api.create(&PostParams::default(), &lease).await
    }

    /// Leads from now on, counted from before the request was sent, and no longer than elsewhere.
    fn lead(&self, begun: Instant, date: Timestamp, elsewhere: Option<Term>) {
        let within = self.options.renew_within;
        let until_date = date.checked_add(within).unwrap_or(Timestamp::MAX);
        let mut term = Term { until: begun + within, until_date };
        if let Some(other) = elsewhere {
            term.until = term.until.min(other.until);
            term.until_date = term.until_date.min(other.until_date);
        }
        let before = self.term.send_replace(Some(term));
        if before.is_none() {
            info!(lease = %self.options.name, identity = %self.options.identity, "leading");
        }
    }

    fn step_down(&self, why: &str) {
        if self.term.send_replace(None).is_some() {
            warn!(lease = %self.options.name, why, "no longer leading");
        }
    }
}

/// Waits until leadership changes that matters, if any does.
async fn changed(leadership: &mut Option<Leadership>) {
    match leadership {
        Some(leadership) => leadership.changed().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
