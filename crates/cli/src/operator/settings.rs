//! How an operator works: what flags say counts more than the file, and the file more than what is
//! usual.

use std::fs;

use lockstep_local::Configuration;
use lockstep_operator::{
    config::{LeaderElection, Process},
    lease::LeaseOptions,
};

use super::Options;

/// Where a pod finds the namespace it runs in.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The namespace of the lease where nothing says otherwise.
const NAMESPACE: &str = "jobset-system";

/// Everything that was decided about the process.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    /// Where counters are served.
    pub(super) metrics: String,
    /// Where health is served.
    pub(super) health: String,
    /// The path that says whether it lives.
    pub(super) liveness_path: String,
    /// The path that says whether it is ready.
    pub(super) readiness_path: String,
    /// The namespace of what operators share.
    pub(super) namespace: String,
    /// The lease to hold, if there may be several.
    pub(super) lease: Option<LeaseOptions>,
    /// So many requests a second.
    pub(super) qps: f64,
    /// So many at once after a rest.
    pub(super) burst: u32,
    /// What it calls itself in requests.
    pub(super) agent: String,
    /// Where it runs, for events.
    pub(super) instance: String,
}

impl Settings {
    /// Puts flags, file and defaults together.
    pub(super) fn of(options: &Options, configuration: &Configuration) -> Self {
        let Process { leader_election, metrics, health, client_connection } =
            &configuration.process;
        let first = |flag: &Option<String>, file: &Option<String>, usual: &str| {
            flag.clone().or_else(|| file.clone()).unwrap_or_else(|| usual.to_owned())
        };
        let path = |name: &Option<String>, usual: &str| {
            format!("/{}", name.as_deref().unwrap_or(usual).trim_start_matches('/'))
        };
        let is_one_of_many = options.leader_elect || leader_election.leader_elect == Some(true);
        let host = lockstep_local::embedded::host_name();
        let qps = options.kube_api_qps.or(client_connection.qps);
        let burst = options.kube_api_burst.or(client_connection.burst);
        Self {
            metrics: first(&options.metrics_bind_address, &metrics.bind_address, "127.0.0.1:8443"),
            health: first(
                &options.health_probe_bind_address,
                &health.health_probe_bind_address,
                ":8081",
            ),
            liveness_path: path(&health.liveness_endpoint_name, "healthz"),
            readiness_path: path(&health.readiness_endpoint_name, "readyz"),
            namespace: namespace(leader_election),
            lease: is_one_of_many.then(|| lease(leader_election, &host)),
            qps: qps.unwrap_or(500.0),
            burst: burst.unwrap_or(500),
            agent: agent(),
            instance: host,
        }
    }
}

/// The namespace of what operators share: the one of the file, else that of the pod.
fn namespace(file: &LeaderElection) -> String {
    let namespace = file.resource_namespace.clone().or_else(|| {
        let own = fs::read_to_string(NAMESPACE_FILE).ok()?;
        Some(own.trim().to_owned()).filter(|name| !name.is_empty())
    });
    namespace.unwrap_or_else(|| NAMESPACE.to_owned())
}

fn lease(file: &LeaderElection, host: &str) -> LeaseOptions {
    // Of two processes on one machine, too, each has its own.
    let identity = format!("{host}_{}", unique());
    let usual = LeaseOptions::new(&namespace(file), &identity);
    LeaseOptions {
        name: file.resource_name.clone().unwrap_or(usual.name),
        duration: file.lease_duration.unwrap_or(usual.duration),
        renew_within: file.renew_deadline.unwrap_or(usual.renew_within),
        retry: file.retry_period.unwrap_or(usual.retry),
        ..usual
    }
}

/// Something no other process has: the system makes it anew at every reading.
fn unique() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/uuid");
    id.map_or_else(|_| std::process::id().to_string(), |id| id.trim().to_owned())
}

fn agent() -> String {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("lockstep/{} ({}/{arch})", env!("CARGO_PKG_VERSION"), std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn settings(line: &str, file: &str) -> Settings {
        let words = std::iter::once("operator").chain(line.split_whitespace());
        let options = Line::parse_from(words).options;
        Settings::of(&options, &Configuration::parse(file).unwrap())
    }

    // rule: jobset 8.1
    #[test]
    fn flags_count_more_than_the_file_and_the_file_more_than_what_is_usual() {
        let usual = settings("", "");
        assert_eq!((usual.metrics.as_str(), usual.health.as_str()), ("127.0.0.1:8443", ":8081"));
        assert_eq!((usual.qps, usual.burst, usual.lease), (500.0, 500, None));
        assert_eq!((&*usual.liveness_path, &*usual.readiness_path), ("/healthz", "/readyz"));
        let file = "{metrics: {bindAddress: ':1'}, clientConnection: {qps: 5, burst: 6},
            health: {healthProbeBindAddress: ':2', readinessEndpointName: /ready}}";
        let said = settings("", file);
        assert_eq!((said.metrics.as_str(), said.health.as_str()), (":1", ":2"));
        assert_eq!((said.qps, said.burst), (5.0, 6));
        assert_eq!(said.readiness_path, "/ready");
        let line = "--metrics-bind-address 0 --health-probe-bind-address :3 --kube-api-qps 7";
        let both = settings(line, file);
        assert_eq!((both.metrics.as_str(), both.health.as_str()), ("0", ":3"));
        assert_eq!((both.qps, both.burst), (7.0, 6));
    }

    // rule: jobset 8.1
    #[test]
    fn a_lease_is_wanted_where_there_may_be_several() {
        let flag = settings("--leader-elect", "").lease.unwrap();
        assert_eq!(flag.name, "6d4f6a47.jobset.x-k8s.io");
        let times = [flag.duration, flag.renew_within, flag.retry];
        assert_eq!(times, [15, 10, 2].map(Duration::from_secs));
        let file = "leaderElection: {leaderElect: true, resourceName: l, resourceNamespace: n,
            leaseDuration: 30s}";
        let file = settings("", file).lease.unwrap();
        assert_eq!((file.name.as_str(), file.namespace.as_str()), ("l", "n"));
        assert_eq!(file.duration, Duration::from_secs(30));
        assert_ne!(file.identity, flag.identity, "no two have the same");
    }
}
