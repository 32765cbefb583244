use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lockstep_api::kueue::{Requeuing, RequeuingTimestamp, WaitForPodsReady};

use crate::config::{
    ClientConnection, Configuration, Queueing,
    kueue::{Integrations, Transformation},
};

fn v1beta2(text: &str) -> Configuration {
    let head = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n";
    Configuration::parse(&format!("{head}{text}")).unwrap()
}

fn v1beta1(text: &str) -> Configuration {
    let head = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\n";
    Configuration::parse(&format!("{head}{text}")).unwrap()
}

fn refused(version: &str, text: &str) -> String {
    let text = format!("apiVersion: config.kueue.x-k8s.io/{version}\n{text}");
    Configuration::parse(&text).unwrap_err().to_string()
}

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

// rule: queueing 2.1.1, queueing 1.9.1
#[test]
fn without_a_word_pods_are_waited_for_as_v1beta2_does() {
    let usual = WaitForPodsReady {
        timeout: minutes(30),
        recovery_timeout: Some(minutes(30)),
        block_admission: false,
        requeuing: Requeuing {
            timestamp: RequeuingTimestamp::Eviction,
            limit: None,
            base: Duration::from_secs(60),
            max: Duration::from_secs(3600),
        },
    };
    for configuration in [Configuration::default(), v1beta2(""), v1beta2("waitForPodsReady: {}")] {
        assert_eq!(configuration.queueing.wait_for_pods_ready, Some(usual.clone()));
        assert_eq!(*configuration.queueing, Queueing::default());
    }
    let off = v1beta2("featureGates: {DisableWaitForPodsReady: true}");
    assert_eq!(off.queueing.wait_for_pods_ready, None);
    assert_eq!(off.unheeded, Vec::<String>::new());
}

// rule: queueing 2.1.2
#[test]
fn v1beta1_waits_only_when_told_to() {
    for text in ["", "waitForPodsReady: {}", "waitForPodsReady: {enable: false, timeout: 1m}"] {
        assert_eq!(v1beta1(text).queueing.wait_for_pods_ready, None, "{text}");
    }
    let on = v1beta1("waitForPodsReady: {enable: true}").queueing.wait_for_pods_ready.unwrap();
    assert_eq!((on.timeout, on.block_admission), (minutes(5), true));
    assert_eq!(on.recovery_timeout, Some(minutes(5)));
    assert_eq!(on.requeuing, Requeuing::default());
    let free = v1beta1("waitForPodsReady: {enable: true, blockAdmission: false, timeout: 0s}");
    let free = free.queueing.wait_for_pods_ready.unwrap();
    assert_eq!((free.timeout, free.block_admission), (minutes(5), false));
    let off = "waitForPodsReady: {enable: true}\nfeatureGates: {DisableWaitForPodsReady: true}";
    assert_eq!(v1beta1(off).queueing.wait_for_pods_ready, None);
}

// rule: queueing 2.1.1, queueing 2.1.4
#[test]
fn what_is_said_of_waiting_holds() {
    let text = "
waitForPodsReady:
  timeout: 10m
  blockAdmission: true
  requeuingStrategy:
    timestamp: Creation
    backoffLimitCount: 0
    backoffBaseSeconds: 5
    backoffMaxSeconds: 0
";
    let wait = v1beta2(text).queueing.wait_for_pods_ready.unwrap();
    assert_eq!(wait.timeout, minutes(10));
    assert_eq!(wait.recovery_timeout, Some(minutes(10)), "that of the start when not given");
    assert!(wait.block_admission);
    let requeuing = Requeuing {
        timestamp: RequeuingTimestamp::Creation,
        limit: Some(0),
        base: Duration::from_secs(5),
        max: Duration::ZERO,
    };
    assert_eq!(wait.requeuing, requeuing);
    let recovery = |text: &str| {
        let text = format!("waitForPodsReady: {{recoveryTimeout: {text}}}");
        v1beta2(&text).queueing.wait_for_pods_ready.unwrap().recovery_timeout
    };
    assert_eq!(recovery("0s"), None, "nothing is none");
    assert_eq!(recovery("3m"), Some(minutes(3)));
    let zero = v1beta2("waitForPodsReady: {timeout: 0s}").queueing.wait_for_pods_ready.unwrap();
    assert_eq!(zero.timeout, minutes(30));
}

// rule: queueing 2.1.3
#[test]
fn what_cannot_be_meant_is_refused_with_its_place() {
    let cases = [
        (
            "waitForPodsReady: {timeout: -5m}",
            "waitForPodsReady.timeout: Invalid value: \"-5m\": must be greater than or equal to 0",
        ),
        (
            "waitForPodsReady: {recoveryTimeout: -1s}",
            "waitForPodsReady.recoveryTimeout: Invalid value: \"-1s\": must be greater than or \
             equal to 0",
        ),
        ("waitForPodsReady: {timeout: soon}", "\"soon\" is no duration; one looks like 5m"),
        ("waitForPodsReady: {timeout: 5}", "\"5\" is no duration; one looks like 5m"),
        // Others than Go read these.
        ("waitForPodsReady: {timeout: 5 minutes}", "\"5 minutes\" is no duration; one looks like"),
        (
            "waitForPodsReady: {timeout: PT5M}",
            "\"PT5M\" is no duration; one looks like 5m or 1h30m",
        ),
        ("waitForPodsReady: {timeout: 1d}", "with the units h, m, s, ms, us and ns"),
        ("waitForPodsReady: {timeout: 1h 30m}", "\"1h 30m\" is no duration"),
        (
            "waitForPodsReady: {requeuingStrategy: {timestamp: Now}}",
            "waitForPodsReady.requeuingStrategy.timestamp: Unsupported value: \"Now\": supported \
             values: \"Creation\", \"Eviction\"",
        ),
        (
            "waitForPodsReady: {requeuingStrategy: {backoffLimitCount: -1}}",
            "waitForPodsReady.requeuingStrategy.backoffLimitCount: Invalid value: -1: must be \
             greater than or equal to 0",
        ),
        (
            "waitForPodsReady: {requeuingStrategy: {backoffBaseSeconds: -1}}",
            "waitForPodsReady.requeuingStrategy.backoffBaseSeconds: Invalid value: -1: must be \
             greater than or equal to 0",
        ),
        (
            "waitForPodsReady: {requeuingStrategy: {backoffMaxSeconds: -1}}",
            "waitForPodsReady.requeuingStrategy.backoffMaxSeconds: Invalid value: -1: must be \
             greater than or equal to 0",
        ),
        ("waitForPodsReady: {enable: true}", "waitForPodsReady.enable: Forbidden: v1beta2 has no"),
    ];
    check(&cases);
    let on = refused("v1beta1", "waitForPodsReady: {enable: true, timeout: -5m}");
    assert!(on.contains("waitForPodsReady.timeout"), "{on}");
}

/// Says of texts that they are refused with these words.
fn check(cases: &[(&str, &str)]) {
    for (text, want) in cases {
        let error = refused("v1beta2", text);
        assert!(error.contains(want), "{text}: {error}");
    }
}

// rule: queueing 1.9.1
#[test]
fn jobs_and_resources_that_cannot_be_meant_are_refused_with_their_place() {
    check(&[
        (
            "objectRetentionPolicies: {workloads: {afterFinished: -1s}}",
            "objectRetentionPolicies.workloads.afterFinished: Invalid value: \"-1s\": must be \
             greater than or equal to 0",
        ),
        (
            "integrations: {frameworks: [batch/jobs]}",
            "integrations.frameworks[0]: Unsupported value: \"batch/jobs\": supported values: \
             \"batch/job\", \"jobset.x-k8s.io/jobset\"",
        ),
        (
            "integrations: {frameworks: [batch/job, batch/job]}",
            "integrations.frameworks[1]: Duplicate value: \"batch/job\"",
        ),
        (
            "resources: {quotaCheckStrategy: Sometimes}",
            "resources.quotaCheckStrategy: Unsupported value: \"Sometimes\": supported values: \
             \"IgnoreUndeclared\", \"BlockUndeclared\"",
        ),
        (
            "resources: {quotaCheckStrategy: IgnoreUndeclared, excludeResourcePrefixes: [a]}",
            "excludeResourcePrefixes is not allowed when quotaCheckStrategy is IgnoreUndeclared",
        ),
        (
            "resources: {transformations: [{input: a, outputs: {b: much}}]}",
            "resources.transformations[0].outputs[b]: Invalid value: \"much\": must be a quantity \
             of 0 or more, such as 500m or 4Gi",
        ),
        (
            "resources: {transformations: [{input: a}, {input: a}]}",
            "resources.transformations[1].input: Duplicate value: \"a\"",
        ),
        ("managedJobsNamespaceSelector: {}", "should not match the \"kube-system\" namespace"),
        (
            "managedJobsNamespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, \
             operator: NotIn, values: [kube-system]}]}",
            "should not match the \"kueue-system\" namespace",
        ),
        (
            "managedJobsNamespaceSelector: {matchExpressions: [{key: a, operator: In}]}",
            "managedJobsNamespaceSelector.matchExpressions[0].values: Required value",
        ),
        (
            "fairSharing: {preemptionStrategies: [Whatever]}",
            "fairSharing.preemptionStrategies: Unsupported value: [\"Whatever\"]: supported values: \
             \"LessThanOrEqualToFinalShare\", \"LessThanInitialShare\", \
             \"LessThanOrEqualToFinalShare,LessThanInitialShare\"",
        ),
        ("featureGates: {Unheard: true}", "featureGates: Kueue has no gate \"Unheard\""),
        ("kind: Deployment", "kind: \"Deployment\" must be \"Configuration\""),
        ("leaderElection: {leaseDuration: 5s}", "renewDeadline"),
    ]);
}

// rule: queueing 1.9.1
#[test]
fn a_field_that_is_unknown_is_refused_by_name_and_line() {
    let cases = [
        ("waitForPodsReadyy: {}", "waitForPodsReadyy", 2),
        ("waitForPodsReady:\n  timout: 5m", "timout", 3),
        ("integrations:\n  frameworks: []\n  framework: []", "framework", 4),
        ("multiKueue:\n  gcIntervall: 1m", "gcIntervall", 3),
        ("managedJobsNamespaceSelector:\n  matchLabel: {}", "matchLabel", 3),
        ("resources:\n  transformations:\n  - {inputs: a}", "inputs", 4),
    ];
    for (text, named, line) in cases {
        for version in ["v1beta1", "v1beta2"] {
            let error = refused(version, text);
            assert!(error.contains(named), "{text}: {error}");
            assert!(error.contains(&format!("line {line}")), "{text}: {error}");
        }
    }
}

// rule: queueing 1.9.1
#[test]
fn what_is_said_of_jobs_and_resources_holds() {
    let text = "
namespace: queues
manageJobsWithoutQueueName: true
clientConnection: {qps: 50, burst: 100}
integrations:
  frameworks: [jobset.x-k8s.io/jobset]
  labelKeysToCopy: [team]
resources:
  excludeResourcePrefixes: [example.com/]
  transformations:
  - {input: nvidia.com/mig-1g.5gb, strategy: Replace, outputs: {example.com/memory: 5Gi, a: 2}}
  - {input: cpu, multiplyBy: gpus}
objectRetentionPolicies:
  workloads: {afterFinished: 0s, afterDeactivatedByKueue: 1h}
featureGates: {WorkloadPriorityClassDefaulting: false}
";
    let read = v1beta2(text);
    assert_eq!(read.unheeded, Vec::<String>::new());
    let connection = ClientConnection { qps: Some(50.0), burst: Some(100) };
    assert_eq!(read.process.client_connection, connection);
    let queueing = read.queueing;
    assert!(queueing.manage_jobs_without_queue_name && !queueing.defaults_priority_class);
    assert_eq!(queueing.integrations, Integrations { job: false, jobset: true });
    assert_eq!(queueing.label_keys_to_copy, ["team"]);
    assert_eq!(queueing.resources.exclude_prefixes, ["example.com/"]);
    let replaced = &queueing.resources.transformations["nvidia.com/mig-1g.5gb"];
    assert!(!replaced.retains_input);
    assert_eq!(replaced.outputs["example.com/memory"], "5Gi");
    assert_eq!(replaced.outputs["a"], "2");
    let multiplied = Transformation {
        retains_input: true,
        multiply_by: Some("gpus".to_owned()),
        ..Transformation::default()
    };
    assert_eq!(queueing.resources.transformations["cpu"], multiplied);
    assert_eq!(queueing.retention.after_finished, Some(Duration::ZERO));
    assert_eq!(queueing.retention.after_deactivated, Some(minutes(60)));
    let spared = |selector: &LabelSelector| {
        selector.match_expressions.as_ref().unwrap()[0].values.clone().unwrap()
    };
    assert_eq!(spared(&queueing.managed_namespaces), ["kube-system", "queues"]);
    let usual = Queueing::default();
    assert_eq!(spared(&usual.managed_namespaces), ["kube-system", "kueue-system"]);
    assert_eq!(usual.integrations, Integrations { job: true, jobset: true });
    let ignoring = v1beta2("resources: {quotaCheckStrategy: IgnoreUndeclared}");
    assert!(ignoring.queueing.resources.ignore_undeclared);
    let chosen = v1beta2("managedJobsNamespaceSelector: {matchLabels: {queued: 'yes'}}");
    let labels = chosen.queueing.managed_namespaces.match_labels.unwrap();
    assert_eq!(labels["queued"], "yes");
}

// rule: queueing 1.9.1
#[test]
fn what_is_known_and_not_done_is_named() {
    let text = "
internalCertManagement: {enable: true, webhookServiceName: s, webhookSecretName: s}
webhook: {port: 9443, host: h, certDir: d}
pprofBindAddress: ':8083'
controller: {groupKindConcurrency: {Workload.kueue.x-k8s.io: 5}, cacheSyncTimeout: 2m}
metrics: {bindAddress: ':8443', enableClusterQueueResources: true, customLabels: [{name: team}]}
health: {healthProbeBindAddress: ':8081'}
leaderElection: {leaderElect: true, resourceName: c1f6bfd2.kueue.x-k8s.io}
tls: {minVersion: VersionTLS12, cipherSuites: []}
visibilityServer: {bindAddress: 0.0.0.0, bindPort: 8082}
fairSharing: {preemptionStrategies: [LessThanInitialShare]}
admissionFairSharing: {usageHalfLifeTime: 10m, usageSamplingInterval: 5m, resourceWeights: {cpu: 2.0}}
multiKueue: {gcInterval: 1m, origin: o, workerLostTimeout: 15m, dispatcherName: d}
integrations: {frameworks: [batch/job, pod], externalFrameworks: [Foo.v1.example.com]}
resources: {deviceClassMappings: [{name: a, deviceClassNames: [b]}]}
featureGates: {TopologyAwareScheduling: true, MultiKueue: false, ReclaimablePods: false}
";
    let read = v1beta2(text);
    assert_eq!(
        read.unheeded,
        [
            "admissionFairSharing",
            "controller",
            "fairSharing",
            "integrations.externalFrameworks",
            "internalCertManagement",
            "metrics.customLabels",
            "multiKueue",
            "pprofBindAddress",
            "resources.deviceClassMappings",
            "tls",
            "visibilityServer",
            "webhook",
            "featureGates.ReclaimablePods",
            "featureGates.TopologyAwareScheduling",
            "integrations.frameworks: pod",
        ]
    );
    assert_eq!(read.process.metrics.bind_address.as_deref(), Some(":8443"));
    assert!(read.queueing.has_resource_metrics && !Queueing::default().has_resource_metrics);
    assert!(read.queueing.fair_sharing && read.queueing.admission_fair_sharing);
    let old = v1beta1(
        "queueVisibility: {updateIntervalSeconds: 5, clusterQueues: {maxCount: 10}}\n\
         fairSharing: {enable: false}\n\
         integrations: {podOptions: {podSelector: {}}}\n",
    );
    assert_eq!(old.unheeded, ["integrations.podOptions", "queueVisibility"]);
    assert!(!old.queueing.fair_sharing && !old.queueing.admission_fair_sharing);
}

// rule: queueing 1.9.1
#[test]
fn a_file_may_have_a_document_for_each() {
    let text = "---
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
featureGates: {RestartJob: false}
clientConnection: {qps: 20}
---
# queues
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
waitForPodsReady: {timeout: 1m}
";
    let read = Configuration::parse(text).unwrap();
    assert!(!read.feature_gates.restart_job);
    assert_eq!(read.queueing.wait_for_pods_ready.unwrap().timeout, minutes(1));
    let jobs = Configuration::parse("featureGates: {RestartJob: false}").unwrap();
    assert_eq!(*jobs.queueing, Queueing::default(), "one for JobSets says nothing of queues");
    let twice = format!("{text}---\napiVersion: config.kueue.x-k8s.io/v1beta1\n");
    let error = Configuration::parse(&twice).unwrap_err().to_string();
    assert_eq!(
        error,
        "the configuration says config.kueue.x-k8s.io in two documents: say it in one"
    );
    let error = Configuration::parse(&format!("{text}clientConnection: {{qps: 5}}\n"));
    assert!(error.unwrap_err().to_string().contains("clientConnection in two documents"));
    let unknown = format!("{text}wait: {{}}\n");
    let error = Configuration::parse(&unknown).unwrap_err().to_string();
    assert!(error.contains("line 11"), "lines are those of the file: {error}");
}
