mod queueing;

use super::*;

#[test]
fn what_a_file_does_not_say_stays_as_it_is() {
    for text in ["", "# nothing\n", "featureGates:\n", "featureGates: {}\n", "{}"] {
        assert_eq!(Configuration::parse(text).unwrap(), Configuration::default(), "{text:?}");
    }
    let off = Configuration::parse("featureGates: {JobSuccessPolicy: false}").unwrap();
    assert!(!off.feature_gates.job_success_policy);
    let on = Configuration::parse("featureGates:\n  JobSuccessPolicy: true\n").unwrap();
    assert_eq!(on, Configuration::default());
}

// rule: jobset 8.1
#[test]
fn a_file_of_the_jobset_controller_is_understood() {
    let text = "
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: true, leaseDuration: 1m0s, resourceNamespace: here}
metrics: {bindAddress: ':9090'}
health: {healthProbeBindAddress: ':9091', readinessEndpointName: ready}
clientConnection: {qps: 20.5, burst: 30}
webhook: {port: 9443}
internalCertManagement: {enable: true}
featureGates: {RestartJob: false}
";
    let read = Configuration::parse(text).unwrap();
    assert!(!read.feature_gates.restart_job);
    let Process { leader_election, metrics, health, client_connection } = read.process;
    assert_eq!(leader_election.leader_elect, Some(true));
    assert_eq!(leader_election.lease_duration, Some(std::time::Duration::from_secs(60)));
    assert_eq!(leader_election.resource_namespace.as_deref(), Some("here"));
    assert_eq!(metrics.bind_address.as_deref(), Some(":9090"));
    assert_eq!(health.health_probe_bind_address.as_deref(), Some(":9091"));
    assert_eq!(health.readiness_endpoint_name.as_deref(), Some("ready"));
    assert_eq!(client_connection, ClientConnection { qps: Some(20.5), burst: Some(30) });
    assert_eq!(read.unheeded, ["internalCertManagement", "webhook"]);
}

// rule: jobset 8.1
#[test]
fn what_nobody_understands_is_refused_by_name() {
    let cases = [
        ("featureGate: {}", "featureGate"),
        ("featureGates: {JobSuccesPolicy: true}", "JobSuccesPolicy"),
        ("featureGates: {JobSuccessPolicy: perhaps}", "featureGates"),
        ("featureGates: {TLSOptions: false}", "always on"),
        ("featureGates: [JobSuccessPolicy]", "featureGates"),
        ("featureGates: {a: true", ""),
        ("- 1", ""),
        ("kind: Deployment", "kind"),
        ("apiVersion: v1", "config.jobset.x-k8s.io/v1alpha1"),
        ("apiVersion: v1", "config.kueue.x-k8s.io/v1beta2"),
        ("leaderElection: {leaseDuration: 5s}", "renewDeadline"),
        ("leaderElection: {leaseDuration: soon}", "one looks like 15s"),
        ("leaderElection: {renewDeadline: 3s}", "retryPeriod"),
        ("leaderElection: {leaseDuration: 15500ms}", "whole seconds"),
        ("leaderElection: {resourceLock: endpoints}", "resourceLock"),
        ("leaderElection: {resourceNames: a}", "resourceNames"),
        ("clientConnection: {qps: many}", "clientConnection"),
    ];
    for (text, named) in cases {
        let error = Configuration::parse(text).unwrap_err().to_string();
        assert!(error.contains(named), "{text}: {error}");
    }
}
