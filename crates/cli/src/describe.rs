//! `lockstep describe`: everything about an object, for a person.

mod agent;
mod generic;
mod job;
mod jobset;
mod node;
mod pod;
mod queueing;
mod service;
mod small;
mod template;
pub(crate) mod text;

use anyhow::Result;
use jiff::Timestamp;
use lockstep_api::{jobset as jobset_api, kueue, labels::jobset::JOBSET_NAME};
use serde_json::Value;

pub(crate) use self::node::of_pod;
use self::text::{Text, scalar};
use crate::{
    args::{Connection, Selectors},
    catalog::{Catalog, escape, query},
    cluster::Cluster,
    events::{self, Event},
    output, targets,
};

/// Options of `lockstep describe`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lockstep describe pod hello             one pod, with its events
  lockstep describe pods -l app=train     all pods of a label
  lockstep describe node                  all nodes")]
pub(crate) struct Options {
    /// TYPE, TYPE NAME..., or TYPE/NAME...
    #[arg(required = true, value_name = "TYPE[/NAME]")]
    targets: Vec<String>,
    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    #[command(flatten)]
    selectors: Selectors,
    #[command(flatten)]
    connection: Connection,
}

/// Describes each object, two blank lines between them.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let cluster = Cluster::find(&options.connection).await?;
    let catalog = Catalog::read(&cluster).await?;
    let mut has_shown = false;
    for target in targets::parse(&catalog, &options.targets)? {
        let resource = target.resource;
        let objects = match &target.name {
            Some(name) => vec![cluster.get(&resource.object(&cluster.namespace, name)).await?],
            None => {
                let place = (!options.all_namespaces).then_some(cluster.namespace.as_str());
                let pairs = [
                    ("labelSelector", options.selectors.selector.clone()),
                    ("fieldSelector", options.selectors.field_selector.clone()),
                ];
                let list = cluster.get(&(resource.collection(place) + &query(&pairs))).await?;
                list["items"].as_array().cloned().unwrap_or_default()
            }
        };
        for mut object in objects {
            object["apiVersion"] = resource.api_version().into();
            object["kind"] = resource.kind.clone().into();
            let seen = Seen::of(&cluster, &object).await;
            if has_shown {
                output::data("\n\n")?;
            }
            has_shown = true;
            output::data(describe(&object, &seen, Timestamp::now()))?;
        }
    }
    if !has_shown {
        output::note(format!("No resources found in {} namespace.", cluster.namespace));
    }
    Ok(())
}

/// What is known about an object beside itself. A server that does not tell is no reason not to
/// describe the object.
#[derive(Debug, Default)]
struct Seen {
    events: Vec<Event>,
    /// The pods of a node.
    pods: Vec<Value>,
    /// The lease of a node.
    lease: Option<Value>,
    /// The EndpointSlices of a service.
    slices: Vec<Value>,
    /// The Jobs of a JobSet.
    jobs: Vec<Value>,
    /// The LocalQueues that may lead to a ClusterQueue.
    queues: Vec<Value>,
}

impl Seen {
    async fn of(cluster: &Cluster, object: &Value) -> Self {
        let meta = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let (name, uid) = (meta("name"), meta("uid"));
        let is_node = object["kind"] == "Node";
        // Events about a node name the node instead of its uid.
        let uid = if is_node { name } else { uid };
        let fields = format!("involvedObject.name={name},involvedObject.uid={uid}");
        let path = "/api/v1/events".to_owned() + &query(&[("fieldSelector", Some(fields))]);
        let mut seen = Self::default();
        if let Ok(list) = cluster.get(&path).await {
            seen.events = events::sorted(&list);
        }
        if is_node {
            let fields = Some(format!("spec.nodeName={name}"));
            let path = "/api/v1/pods".to_owned() + &query(&[("fieldSelector", fields)]);
            seen.pods = items(cluster, &path).await;
            let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/";
            seen.lease = cluster.get(&(path.to_owned() + &escape(name))).await.ok();
        }
        if object["apiVersion"] == "v1" && object["kind"] == "Service" {
            let labels = Some(format!("kubernetes.io/service-name={name}"));
            let namespace = escape(meta("namespace"));
            let path = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
            seen.slices = items(cluster, &(path + &query(&[("labelSelector", labels)]))).await;
        }
        if object["apiVersion"] == jobset_api::API_VERSION && object["kind"] == jobset_api::KIND {
            let labels = Some(format!("{JOBSET_NAME}={name}"));
            let path = format!("/apis/batch/v1/namespaces/{}/jobs", escape(meta("namespace")));
            seen.jobs = items(cluster, &(path + &query(&[("labelSelector", labels)]))).await;
        }
        if let Some(version) = queueing_version(object)
            && object["kind"] == "ClusterQueue"
        {
            let path = format!("/apis/{}/{version}/localqueues", kueue::GROUP);
            seen.queues = items(cluster, &path).await;
        }
        seen
    }
}

async fn items(cluster: &Cluster, path: &str) -> Vec<Value> {
    let list = cluster.get(path).await.unwrap_or_default();
    list["items"].as_array().cloned().unwrap_or_default()
}

fn describe(object: &Value, seen: &Seen, now: Timestamp) -> String {
    let mut text = Text::default();
    let mut has_events = true;
    match (object["apiVersion"].as_str(), object["kind"].as_str()) {
        (Some("v1"), Some("Pod")) => pod::describe(object, now, &mut text),
        (Some("v1"), Some("Node")) => {
            node::describe(object, &seen.pods, seen.lease.as_ref(), now, &mut text);
        }
        (Some("v1"), Some("Service")) => service::describe(object, &seen.slices, &mut text),
        (Some("v1"), Some("ConfigMap")) => small::config_map(object, &mut text),
        (Some("v1"), Some("ServiceAccount")) => small::service_account(object, &mut text),
        (Some("v1"), Some("Secret")) => {
            small::secret(object, &mut text);
            has_events = false;
        }
        (Some("v1"), Some("Namespace")) => {
            small::namespace(object, &mut text);
            has_events = false;
        }
        (Some("scheduling.k8s.io/v1"), Some("PriorityClass")) => {
            small::priority_class(object, &mut text);
        }
        (Some("batch/v1"), Some("Job")) => job::describe(object, &mut text),
        (Some(jobset_api::API_VERSION), Some(jobset_api::KIND)) => {
            jobset::describe(object, &seen.jobs, &mut text);
        }
        (_, Some(kind)) if queueing_version(object).is_some() => match kind {
            "Workload" => queueing::workload(object, &mut text),
            "ClusterQueue" => queueing::cluster_queue(object, &seen.queues, &mut text),
            "LocalQueue" => queueing::local_queue(object, &mut text),
            "ResourceFlavor" => queueing::resource_flavor(object, &mut text),
            _ => generic::describe(object, &mut text),
        },
        _ => generic::describe(object, &mut text),
    }
    if has_events {
        push_events(&seen.events, now, &mut text);
    }
    text.finish()
}

/// The version of an object that has to do with queues.
fn queueing_version(object: &Value) -> Option<&str> {
    let (group, version) = object["apiVersion"].as_str()?.split_once('/')?;
    (group == kueue::GROUP).then_some(version)
}

fn object_head(object: &Value, text: &mut Text) {
    let meta = &object["metadata"];
    text.field(0, "Name", scalar(&meta["name"]));
    text.known(0, "Namespace", &meta["namespace"]);
    text.map(0, "Labels", &meta["labels"], "=");
    object_annotations(meta, text);
}

/// The annotations without the one that repeats the whole object.
fn object_annotations(meta: &Value, text: &mut Text) {
    let mut shown = meta["annotations"].clone();
    if let Some(annotations) = shown.as_object_mut() {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    text.map(0, "Annotations", &shown, ": ");
}

/// What controls the object, if anything does.
fn owner(meta: &Value, text: &mut Text) {
    let owners = template::list(&meta["ownerReferences"]);
    if let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) {
        let shown = format!("{}/{}", scalar(&owner["kind"]), scalar(&owner["name"]));
        text.field(0, "Controlled By", shown);
    }
}

fn push_events(events: &[Event], now: Timestamp, text: &mut Text) {
    if events.is_empty() {
        return text.field(0, "Events", "<none>");
    }
    // The columns of events stand apart from those above.
    text.end_block();
    text.line(0, "Events:");
    text.line(1, "Type\tReason\tAge\tFrom\tMessage");
    text.line(1, "----\t------\t----\t----\t-------");
    for event in events {
        let age = event.age(now);
        let message = match event.field.as_str() {
            "" => event.message.clone(),
            field => format!("{field}: {}", event.message),
        };
        let cells = [&event.kind, &event.reason, &age, &event.source, &message];
        text.line(1, &cells.map(String::as_str).join("\t"));
    }
}

/// A moment as people write it, in UTC: `Thu, 01 Jan 2026 00:00:00 +0000`.
fn moment(value: &Value) -> String {
    match scalar(value).parse::<Timestamp>() {
        Ok(moment) => moment.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string(),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// That a suspended job is in a queue, and how to learn more.
fn waits_in(queue: &str, job: &str) -> String {
    format!("the job is in LocalQueue {queue}, which starts it; see: lockstep why {job}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::golden;

    fn now() -> Timestamp {
        "2026-01-01T00:05:00Z".parse().expect("a moment")
    }

    #[test]
    fn a_pod_is_described_in_full() {
        let pod =
            crate::manifest::parse("pod.yaml", include_str!("../tests/data/described-pod.yaml"));
        let pod = Value::Object(pod.expect("valid")[0].object.clone());
        let event = json!({"type": "Normal", "reason": "Started", "message": "Started container main",
            "source": {"component": "kubelet"}, "firstTimestamp": "2026-01-01T00:00:02Z",
            "involvedObject": {"kind": "Pod", "name": "hello", "fieldPath": "spec.containers{main}"}});
        let seen = Seen { events: vec![Event::read(&event)], ..Seen::default() };
        golden::check("describe-pod.txt", &describe(&pod, &seen, now()));
    }

    #[test]
    fn other_kinds_are_described_too() {
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "here", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"unschedulable": true, "taints": [
                {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]},
            "status": {"capacity": {"cpu": "2", "memory": "8Gi"}, "allocatable": {"cpu": "2"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                    "message": "ready", "lastTransitionTime": "2026-01-01T00:00:01Z"}],
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1.36.4", "architecture": "amd64"}}});
        let pods = vec![json!({
            "metadata": {"namespace": "default", "name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"containers": [{"resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "2Gi"}}}]},
            "status": {"phase": "Running"}})];
        let node_lease =
            json!({"spec": {"holderIdentity": "here", "renewTime": "2026-01-01T00:04:59.5Z"}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "s", "namespace": "default"}, "data": {"password": "aHVudGVyMg=="}});
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "l", "namespace": "default", "uid": "u"},
            "spec": {"holderIdentity": "me", "leaseDurationSeconds": 40}});
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "c", "namespace": "default"}, "data": {"a.txt": "one\ntwo\n"}});
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": "high"}, "value": 1000, "description": "first",
            "preemptionPolicy": "Never"});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"},
            "status": {"phase": "Active"}});
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"type": "ClusterIP", "clusterIP": "127.255.0.2", "clusterIPs": ["127.255.0.2"],
                "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "selector": {"app": "web"},
                "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
                "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]}});
        let lists = Seen { pods, lease: Some(node_lease), ..Seen::default() };
        let mut screens = describe(&node, &lists, now());
        for object in [secret, config, lease, class, namespace, service] {
            screens.push_str("\n\n");
            screens.push_str(&describe(&object, &Seen::default(), now()));
        }
        assert!(!screens.contains("hunter2") && !screens.contains("aHVu"), "secrets stay secret");
        golden::check("describe-others.txt", &screens);
    }

    #[test]
    fn what_has_to_do_with_queues_is_described() {
        use crate::queueing::{
            queue::tests::{cluster_queue, local_queue},
            workload::tests::{admitted, condition, object},
        };
        let kind = |kind: &str, mut object: Value| {
            object["apiVersion"] = json!("kueue.x-k8s.io/v1beta2");
            object["kind"] = json!(kind);
            object
        };
        let mut waiting = object(
            "train",
            9,
            json!({"conditions": [
            condition("QuotaReserved", false, "WaitingForQuota", "couldn't assign flavors"),
            condition("lockstep.dev/Waiting", true, "NotEnoughQuota", "asks for 4 cpu, 1 free\n\
                raise nominalQuota by 3")]}),
        );
        waiting["spec"]["priorityClassRef"] = json!({"group": "kueue.x-k8s.io",
            "kind": "WorkloadPriorityClass", "name": "urgent"});
        waiting["status"]["requeueState"] =
            json!({"count": 2, "requeueAt": "2026-01-01T00:06:00Z"});
        let mut running = object("train", 9, admitted("4", Some((true, "Started"))));
        running["spec"]["maximumExecutionTimeSeconds"] = json!(3600);
        running["status"]["reclaimablePods"] = json!([{"name": "main", "count": 1}]);
        running["status"]["schedulingStats"] = json!({"evictions": [
            {"reason": "Preempted", "underlyingCause": "", "count": 1}]});
        let mut asleep = object("train", 9, json!({}));
        asleep["spec"]["active"] = json!(false);
        let pool = kind("ClusterQueue", cluster_queue("pool", "10", "2"));
        let doors = vec![local_queue("default", "team", "pool", 2)];
        let mut stopped = kind("ClusterQueue", cluster_queue("stopped", "0", "0"));
        stopped["spec"]["namespaceSelector"] = json!({"matchLabels": {"team": "a"}});
        stopped["spec"]["preemption"] = json!({"withinClusterQueue": "LowerPriority",
            "reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "Never"}});
        stopped["status"]["conditions"] = json!([{"type": "Active", "status": "False",
            "reason": "Stopped", "message": "Can't admit new workloads: is stopped."}]);
        let door = kind("LocalQueue", doors[0].clone());
        let flavor = kind(
            "ResourceFlavor",
            json!({"metadata": {"name": "spot"}, "spec": {
            "nodeLabels": {"pool": "spot"},
            "nodeTaints": [{"key": "spot", "value": "true", "effect": "NoSchedule"}],
            "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}]}}),
        );
        let seen = Seen { queues: doors, ..Seen::default() };
        let screens = [waiting, running, asleep, pool, stopped, door, flavor];
        let screens = screens.map(|object| describe(&object, &seen, now()));
        golden::check("describe-queueing.txt", &screens.join("\n\n"));
    }

    #[test]
    fn who_waits_in_a_queue_is_not_told_to_resume() {
        for (api, kind) in [("batch/v1", "Job"), ("jobset.x-k8s.io/v1alpha2", "JobSet")] {
            let labels = json!({"kueue.x-k8s.io/queue-name": "team"});
            let object = json!({"apiVersion": api, "kind": kind, "spec": {"suspend": true},
                "metadata": {"name": "train", "namespace": "d", "labels": labels}});
            let said = describe(&object, &Seen::default(), now());
            let want = "the job is in LocalQueue team, which starts it; see: lockstep why train";
            assert!(said.contains(want) && !said.contains("set spec.suspend"), "{said}");
        }
    }

    #[test]
    fn a_jobset_is_described_with_its_jobs() {
        use crate::run::jobset::tests::{condition, object, status};
        let mut running = object(status(2, 1, 0, 0));
        running["metadata"]["annotations"] = json!({"lockstep.dev/max-restarts.alone": "3"});
        running["spec"]["coordinator"] = json!({"replicatedJob": "driver"});
        running["status"]["conditions"] = json!([condition(
            "RestartingJobSet",
            true,
            "FailurePolicy_maintenance",
            "applying RestartJobSetAndIgnoreMaxRestarts failure policy action (first failed job: \
             train-driver-0)"
        )]);
        running["status"]["lockstep"] = json!({"ruleRestarts": {"alone": 1}, "lastRestarts": [
            {"attempt": 0, "time": "2026-01-01T00:01:00Z", "rule": "alone",
                "action": "RestartJob", "job": "train-workers-1", "reason": "DeadlineExceeded"},
            {"attempt": 1, "action": "RestartJobSet", "job": "train-driver-0"}]});
        let job = |name: &str, attempt: &str| {
            json!({"metadata": {"name": name, "labels": {JOBSET_NAME: "train",
                "jobset.sigs.k8s.io/restart-attempt": attempt}},
                "spec": {"completions": 2}, "status": {"startTime": "2026-01-01T00:00:00Z",
                "active": 2, "ready": 1}})
        };
        let jobs = vec![job("train-driver-0", "2"), job("train-workers-0", "1")];
        let mut screens = describe(&running, &Seen { jobs, ..Seen::default() }, now());
        let mut fresh = object(json!({}));
        fresh["spec"]["failurePolicy"] = Value::Null;
        fresh["spec"]["suspend"] = json!(true);
        fresh["spec"]["successPolicy"] =
            json!({"operator": "Any", "targetReplicatedJobs": ["driver"]});
        screens.push_str("\n\n");
        screens.push_str(&describe(&fresh, &Seen::default(), now()));
        golden::check("describe-jobset.txt", &screens);
    }

    #[test]
    fn a_jobset_is_described_with_its_restarts_in_place() {
        use crate::run::jobset::in_place::tests::{restart, restarting};
        let mut slow = restart(5);
        slow["stoppedMicros"] = json!(3_009_556);
        slow["cause"] = json!("its pod was lost");
        let restarts: Vec<Value> = (1..5).map(restart).chain([slow]).collect();
        let mut set = restarting(json!({"epoch": 6, "restarts": 6, "phase": "Stopping",
            "waiting": "1 workers are being stopped: 5", "workers": [
                {"state": "Stopping", "epoch": 5, "count": 1, "places": "5"},
                {"state": "Waiting", "count": 5, "places": "0-4"}],
            "lastRestarts": restarts}));
        set["metadata"]["annotations"]["alpha.jobset.sigs.k8s.io/inplace-restarts"] = json!("6");
        set["spec"]["failurePolicy"]["maxRestarts"] = json!(10);
        set["status"]["restarts"] = json!(1);
        set["status"]["lockstep"]["lastRestarts"] = json!([{"attempt": 0, "action": "Recreate",
            "time": "2026-01-01T00:01:00Z", "reason": "InPlaceRestartFailed",
            "job": "train-workers-0", "message": "train-workers-0-1 killed by signal 9"}]);
        let worker = json!({"name": "worker", "command": ["/bin/lockstep", "agent", "--", "sh"],
            "env": [{"name": "LOCKSTEP_ORCHESTRATOR", "value": "127.0.0.1:7411"}]});
        let job = |name: &str, containers: Value| {
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": {
                JOBSET_NAME: "train", "jobset.sigs.k8s.io/restart-attempt": "1"}},
                "spec": {"completions": 2, "template": {"spec": {"containers": containers}}},
                "status": {"startTime": "2026-01-01T00:00:00Z", "active": 2, "ready": 2}})
        };
        let plain = json!([{"name": "main"}]);
        let jobs = vec![job("train-driver-0", json!([worker])), job("train-workers-0", plain)];
        let child = describe(&jobs[0], &Seen::default(), now());
        let mut screens = describe(&set, &Seen { jobs, ..Seen::default() }, now());
        // One that nobody leads, and the Job that has an agent.
        set["metadata"]["annotations"] = json!({"alpha.jobset.sigs.k8s.io/inplace-timeout": "60s"});
        set["status"] = json!({});
        for screen in [describe(&set, &Seen::default(), now()), child] {
            screens.push_str("\n\n");
            screens.push_str(&screen);
        }
        golden::check("describe-in-place.txt", &screens);
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let tasks = std::fs::read_to_string(root.join("docs/tasks.md")).expect("it is there");
        let drawn = screens.lines().skip_while(|line| !line.starts_with("  To epoch 2 "));
        let drawn = drawn.take(7).collect::<Vec<_>>().join("\n");
        assert!(tasks.contains(&drawn), "docs/tasks.md must show:\n{drawn}");
    }

    #[test]
    fn a_jobset_is_described_with_the_rule_for_each_failed_job() {
        use crate::run::jobset::tests::{condition, object, status};
        let mut set = object(status(1, 1, 0, 0));
        set["status"]["replicatedJobsStatus"][0]["jobRestarts"] = json!([0, 1]);
        set["spec"]["failurePolicy"]["rules"] = json!([
            {"name": "leave", "action": "FailJob", "targetReplicatedJobs": ["workers"],
                "onJobFailureReasons": ["BackoffLimitExceeded", "DeadlineExceeded"]},
            {"name": "bug", "action": "FailJobSet", "onJobFailureMessagePatterns": ["segfault"]}]);
        set["status"]["conditions"] = json!([condition(
            "Failed",
            true,
            "FailJobSetFailurePolicyAction",
            "applying FailJobSet failure policy action (first failed job: train-driver-0)"
        )]);
        let job = |name: &str, group: &str, attempts: [&str; 2], why: [&str; 2]| {
            json!({"metadata": {"name": name, "labels": {JOBSET_NAME: "train",
                "jobset.sigs.k8s.io/replicatedjob-name": group,
                "jobset.sigs.k8s.io/job-index": name.rsplit('-').next(),
                "jobset.sigs.k8s.io/restart-attempt": attempts[0],
                "jobset.sigs.k8s.io/job-restart-attempt": attempts[1]}},
                "spec": {"completions": 2}, "status": {"startTime": "2026-01-01T00:00:00Z",
                "conditions": [{"type": "Failed", "status": "True", "reason": why[0],
                    "message": why[1]}]}})
        };
        let jobs = vec![
            job("train-driver-0", "driver", ["1", "0"], ["PodFailurePolicy", "a segfault"]),
            job("train-workers-0", "workers", ["1", "0"], ["DeadlineExceeded", "too long"]),
            job("train-workers-1", "workers", ["1", "1"], ["FailedIndexes", "1"]),
            // Of before: the rule for it has been applied.
            job("train-workers-2", "workers", ["0", "0"], ["BackoffLimitExceeded", "m"]),
            job("train-workers-1", "workers", ["1", "0"], ["BackoffLimitExceeded", "m"]),
        ];
        let screen = describe(&set, &Seen { jobs, ..Seen::default() }, now());
        let found = screen.lines().skip_while(|line| !line.starts_with("Failed Jobs:"));
        let table: Vec<String> = found
            .take_while(|line| !line.starts_with("Jobs:"))
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let want = [
            "Failed Jobs:",
            "Job Reason Rule Action Why",
            "--- ------ ---- ------ ---",
            "train-driver-0 PodFailurePolicy bug FailJobSet for a message like \"segfault\"",
            "train-workers-0 DeadlineExceeded leave FailJob for the reason DeadlineExceeded and \
             for replicated job workers",
            "train-workers-1 FailedIndexes <none> RestartJobSet no rule matches",
        ];
        assert_eq!(table, want);
    }

    #[test]
    fn a_job_is_described_with_its_policies() {
        let job = include_str!("../tests/data/described-job.yaml");
        let job = crate::manifest::parse("job.yaml", job).expect("valid");
        let job = Value::Object(job[0].object.clone());
        golden::check("describe-job.txt", &describe(&job, &Seen::default(), now()));
    }
}
