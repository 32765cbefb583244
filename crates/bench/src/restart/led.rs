//! The side that leads, in this process.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use lockstep_control::plan::restart::{Moment, Terms, Waterfall};
use lockstep_restart::hub::{Gang, Happening, Hub, Memory};
use lockstep_restart::ticket::{Key, Ticket};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::clock::now;
use super::patience::{PATIENCE, Stalled, within};

const JOB: &str = "job";

/// What lets an agent in.
pub(super) fn ticket() -> String {
    key().sign(&Ticket { job: JOB.to_owned(), generation: 1, until: u64::MAX })
}

fn key() -> Key {
    Key::new(&[7; 32])
}

/// A gang that is led here, and the hub it is reached through.
pub(super) struct Led {
    pub(super) gang: Gang,
    pub(super) address: SocketAddr,
    size: u32,
    fence: u64,
    tls: Option<TlsAcceptor>,
    store: Arc<Memory>,
    /// When the clock of the gang began.
    begun: u64,
    serving: JoinHandle<()>,
    happenings: mpsc::UnboundedReceiver<Happening>,
    /// Restarts that nobody has asked for yet.
    restarted: VecDeque<Waterfall>,
}

impl Led {
    /// Leads a gang whose pods are there: their uids are their numbers.
    pub(super) async fn new(size: u32, tls: Option<TlsAcceptor>) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::with(size, address, 1, tls, Arc::new(Memory::default())).await
    }

    async fn with(
        size: u32,
        address: SocketAddr,
        fence: u64,
        tls: Option<TlsAcceptor>,
        store: Arc<Memory>,
    ) -> Self {
        let mut terms = Terms::new(size, u32::MAX - 1, Duration::from_secs(60));
        terms.stalled_max = u32::MAX;
        let (tell, happenings) = mpsc::unbounded_channel();
        let led = (fence, store.read(JOB));
        let gang = Gang::lead((JOB, &key()), terms, led, store.clone(), tell);
        let begun = now();
        for slot in 0..size {
            gang.pod_seen(&slot.to_string(), slot, 1).await;
        }
        gang.pods_known().await;
        let hub = Hub::new(key());
        hub.add(JOB, gang.clone());
        let listener = Hub::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(hub.serve(listener, tls.clone()));
        let restarted = VecDeque::new();
        Self { gang, address, size, fence, tls, store, begun, serving, happenings, restarted }
    }

    /// Ends at once, with all connections; what is stored is left, and not written any more.
    pub(super) async fn die(self) -> Result<Dead, Stalled> {
        let Self { address, size, fence, tls, store, .. } = self;
        self.serving.abort();
        let _ = self.serving.await;
        self.gang.stop();
        // A decision that it is just making would be neither its own nor that of the next one.
        let ended = async { while self.gang.describe().await.is_some() {} };
        within(PATIENCE, "a leader to end", ended).await?;
        Ok(Dead { address, size, fence, tls, store })
    }

    /// How many restarts there were.
    pub(super) fn restarts(&self) -> u32 {
        self.store.read(JOB).map_or(0, |record| record.restarts.total)
    }

    /// Restarts up to now are of no interest.
    pub(super) fn forget(&mut self) -> Result<(), Stalled> {
        self.restarted.clear();
        while let Ok(happening) = self.happenings.try_recv() {
            if !matches!(happening, Happening::Restarted(_)) {
                return Err(not_in_place(Some(&happening)));
            }
        }
        Ok(())
    }

    /// Waits for the end of the next restart.
    pub(super) async fn restarted(&mut self) -> Result<Waterfall, Stalled> {
        if let Some(waterfall) = self.restarted.pop_front() {
            return Ok(waterfall);
        }
        let next = within(PATIENCE, "the leader to see the end of a restart", async {
            self.happenings.recv().await
        });
        match next.await {
            Ok(Some(Happening::Restarted(waterfall))) => Ok(waterfall),
            Ok(other) => Err(self.stalled(not_in_place(other.as_ref())).await),
            Err(stalled) => Err(self.stalled(stalled).await),
        }
    }

    /// Waits for something that agents do; not when the leader asks for what is no restart in
    /// place, for then they never will.
    pub(super) async fn wait<T>(
        &mut self,
        waited: impl Future<Output = Result<T, Stalled>>,
    ) -> Result<T, Stalled> {
        let mut waited = pin!(waited);
        let stalled = loop {
            tokio::select! {
                done = &mut waited => match done {
                    Ok(done) => return Ok(done),
                    Err(stalled) => break stalled,
                },
                happening = self.happenings.recv() => match happening {
                    Some(Happening::Restarted(waterfall)) => self.restarted.push_back(waterfall),
                    other => break not_in_place(other.as_ref()),
                },
            }
        };
        Err(self.stalled(stalled).await)
    }

    /// What the gang does, beside why it does not come to an end.
    async fn stalled(&self, why: Stalled) -> Stalled {
        let Ok(Some(description)) = within(PATIENCE, "a gang", self.gang.describe()).await else {
            return why.beside("nobody leads");
        };
        let workers: Vec<String> = description
            .workers
            .iter()
            .map(|it| format!("{} {}", it.places.count(), it.state))
            .collect();
        let waiting = description.waiting.map(|waiting| waiting.to_string());
        let waiting = waiting.unwrap_or_else(|| "it waits for nothing".to_owned());
        why.beside(&format!("{waiting}; workers: {}", workers.join(", ")))
    }

    /// A moment of the gang, on the clock of the machine.
    pub(super) fn time(&self, moment: Moment) -> u64 {
        self.begun + u64::try_from(moment.since(Moment::default()).as_nanos()).unwrap()
    }
}

fn not_in_place(happening: Option<&Happening>) -> Stalled {
    Stalled::new(match happening {
        None => "nobody leads any more".to_owned(),
        Some(Happening::Replace(pods)) => {
            format!("the leader wants {} pods to be replaced that do not answer", pods.len())
        }
        Some(other) => format!("not in place: {other:?}"),
    })
}

/// What is left of a leader.
pub(super) struct Dead {
    address: SocketAddr,
    size: u32,
    fence: u64,
    tls: Option<TlsAcceptor>,
    store: Arc<Memory>,
}

impl Dead {
    /// Somebody else leads, where the one before was.
    pub(super) async fn succeeded(self) -> Led {
        Led::with(self.size, self.address, self.fence + 1, self.tls, self.store).await
    }
}

/// A certificate for this machine, and the file that agents verify it with.
pub(super) fn certificate(folder: &Path) -> (TlsAcceptor, PathBuf) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let ca = folder.join("ca.pem");
    std::fs::write(&ca, made.cert.pem()).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), ca)
}
