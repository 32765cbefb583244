//! What the configuration file says about the process of an operator, as it is written there.

use std::time::Duration;

use lockstep_api::duration::parse_go;
use serde::{Deserialize, Deserializer, de};

use super::ConfigError;

/// The parts of the file that are about the process. What is absent is for flags and defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// Who of several operators works.
    pub leader_election: LeaderElection,
    /// Where counters are served.
    pub metrics: MetricsAddress,
    /// Where health is served.
    pub health: Health,
    /// How fast requests may be sent.
    pub client_connection: ClientConnection,
}

impl Process {
    /// Adds what another document says.
    pub(super) fn add(&mut self, other: Self) -> Result<(), ConfigError> {
        let Self { leader_election, metrics, health, client_connection } = other;
        add(&mut self.leader_election, leader_election, "leaderElection")?;
        add(&mut self.metrics, metrics, "metrics")?;
        add(&mut self.health, health, "health")?;
        add(&mut self.client_connection, client_connection, "clientConnection")
    }
}

/// Puts what is said in place of nothing. The process is one: of two documents only one may say how
/// a part of it works.
fn add<T: Default + PartialEq>(slot: &mut T, said: T, part: &str) -> Result<(), ConfigError> {
    let nothing = T::default();
    if said == nothing {
        return Ok(());
    }
    if *slot != nothing && *slot != said {
        return Err(ConfigError::SaidTwice { part: part.to_owned() });
    }
    *slot = said;
    Ok(())
}

/// Who of several operators works.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct LeaderElection {
    /// Whether there may be several.
    pub leader_elect: Option<bool>,
    /// How long a Lease that is not renewed keeps others away.
    #[serde(deserialize_with = "duration")]
    pub lease_duration: Option<Duration>,
    /// How long a leader goes on without having renewed.
    #[serde(deserialize_with = "duration")]
    pub renew_deadline: Option<Duration>,
    /// How long to wait between two attempts.
    #[serde(deserialize_with = "duration")]
    pub retry_period: Option<Duration>,
    /// By what they agree; only `leases` is known.
    pub resource_lock: Option<String>,
    /// The name of the Lease.
    pub resource_name: Option<String>,
    /// Its namespace.
    pub resource_namespace: Option<String>,
}

/// Where counters are served.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MetricsAddress {
    /// `:8443`, or `0` for nowhere.
    pub bind_address: Option<String>,
    /// Where certificates are to be found.
    pub(super) cert_dir: Option<de::IgnoredAny>,
}

/// Where health is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Health {
    /// `:8081`, or `0` for nowhere.
    pub health_probe_bind_address: Option<String>,
    /// What `/readyz` is to be called.
    pub readiness_endpoint_name: Option<String>,
    /// What `/healthz` is to be called.
    pub liveness_endpoint_name: Option<String>,
}

/// How fast requests may be sent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ClientConnection {
    /// So many a second.
    pub qps: Option<f64>,
    /// So many at once after a rest.
    pub burst: Option<u32>,
}

/// A duration as Go writes it, `1m30s`.
fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let parsed = parse_go(&text).and_then(|it| Duration::try_from(it).ok());
    let parsed = parsed.filter(|duration| !duration.is_zero());
    parsed.map(Some).ok_or_else(|| {
        de::Error::custom(format!("{text:?} is no duration above zero; one looks like 15s"))
    })
}

impl LeaderElection {
    /// What is wrong with it, if anything is. Times that are not said are the usual ones.
    pub(super) fn fault(&self) -> Option<String> {
        if let Some(lock) = self.resource_lock.as_deref().filter(|lock| *lock != "leases") {
            return Some(format!("leaderElection.resourceLock: {lock:?} must be \"leases\""));
        }
        let usual = crate::lease::LeaseOptions::new("", "");
        let duration = self.lease_duration.unwrap_or(usual.duration);
        let renew = self.renew_deadline.unwrap_or(usual.renew_within);
        let retry = self.retry_period.unwrap_or(usual.retry);
        if renew >= duration {
            let rule = "leaderElection.renewDeadline: must be less than leaseDuration";
            return Some(format!("{rule}, {renew:?} is not less than {duration:?}"));
        }
        // A leader that has only one attempt loses everything with one lost answer.
        if retry.saturating_mul(2) > renew {
            let rule = "leaderElection.retryPeriod: must be at most half of renewDeadline";
            return Some(format!("{rule}, {retry:?} is more than half of {renew:?}"));
        }
        (duration.subsec_nanos() != 0)
            .then(|| "leaderElection.leaseDuration: must be whole seconds".to_owned())
    }
}
