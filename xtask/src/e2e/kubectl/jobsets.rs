//! JobSets: the stories of KEP-262 and KEP-104, from the examples, to the letter.

use crate::{
    e2e::check::{Check, Suite},
    shell,
};

/// A story: the example that tells it and how it must end.
struct Story {
    name: &'static str,
    example: &'static str,
    set: &'static str,
    /// The condition it ends with.
    end: &'static str,
    /// All its conditions, by type: `type=status reason: message`.
    conditions: &'static [&'static str],
    /// Restarts, and those that count; those are left out of a status when there are none.
    restarts: &'static str,
    /// Which Jobs there were, by their events or by themselves.
    jobs: &'static [&'static str],
}

const COMPLETED: &str = "Completed=True AllJobsCompleted: jobset completed successfully";
const RESTARTED: &str = "RestartingJobSet=False JobSetCompleted: jobset completed successfully";
const IN_ORDER: &[&str] = &[
    COMPLETED,
    "JobSetStartupPolicyCompleted=True StartupPolicyInOrder: startup policy successful",
    "StartupPolicyCompleted=True InOrderStartupPolicyCompleted: in order startup policy has \
     completed",
    "StartupPolicyInProgress=False InOrderStartupPolicyInProgress: in order startup policy is in \
     progress",
];

const STORIES: [Story; 6] = [
    Story {
        name: "KEP-262 story 1",
        example: "jobset-fail-fast.yaml",
        set: "fail-jobset-example",
        end: "Failed",
        conditions: &[
            "Failed=True FailJobSetFailurePolicyAction: applying FailJobSet failure policy action \
             (first failed job: fail-jobset-example-buggy-job-0)",
            "RestartingJobSet=False JobSetFailed: jobset failed",
        ],
        restarts: "1/1",
        jobs: &["fail-jobset-example-buggy-job-0"],
    },
    Story {
        name: "KEP-262 story 2",
        example: "jobset-restart.yaml",
        set: "restart-jobset-example",
        end: "Completed",
        conditions: &[COMPLETED, RESTARTED],
        restarts: "1/1",
        jobs: &["restart-jobset-example-buggy-job-0"],
    },
    Story {
        name: "KEP-262 story 3",
        example: "jobset-ignore-max-restarts.yaml",
        set: "ignore-max-restarts-example",
        end: "Completed",
        conditions: &[COMPLETED, RESTARTED],
        restarts: "3/1",
        jobs: &["ignore-max-restarts-example-workers-0"],
    },
    Story {
        name: "KEP-262 story 4",
        example: "jobset-different-policies.yaml",
        set: "different-policies",
        end: "Completed",
        conditions: &[COMPLETED, RESTARTED],
        restarts: "3/1",
        jobs: &["different-policies-workers-0", "different-policies-workers-1"],
    },
    Story {
        name: "KEP-104 story 1",
        example: "jobset-driver-first.yaml",
        set: "driver-ready-worker-start",
        end: "Completed",
        conditions: IN_ORDER,
        restarts: "0/",
        jobs: &["driver-ready-worker-start-workers-0"],
    },
    Story {
        name: "KEP-104 story 2",
        example: "jobset-in-order.yaml",
        set: "messagequeue-driver-worker",
        end: "Completed",
        conditions: IN_ORDER,
        restarts: "0/",
        jobs: &[
            "messagequeue-driver-worker-driver-0",
            "messagequeue-driver-worker-driver-1",
            "messagequeue-driver-worker-worker-0",
            "messagequeue-driver-worker-worker-1",
        ],
    },
];

/// The stories, and what kubectl knows of the kind.
pub(super) fn checks(suite: &mut Suite) {
    let explain = Check::new("explain jobset.spec.failurePolicy.rules");
    suite.check("JobSet: explain", explain.out("onJobFailureReasons").out("-required-"));
    for story in &STORIES {
        tell(suite, story);
    }
    suspending(suite);
    again(suite);
    connected(suite);
    refused(suite);
}

fn tell(suite: &mut Suite, story: &Story) {
    let set = story.set;
    let title = |what: &str| format!("{}: {what}", story.name);
    let file = shell::root().join("examples").join(story.example);
    let applied = Check::new(&format!("apply -f '{}'", file.display()));
    suite.check(&title("apply"), applied.out_is(&format!("jobset.jobset.x-k8s.io/{set} created")));
    let wait =
        Check::new(&format!("wait --for=condition={} jobset/{set} --timeout=90s", story.end));
    suite
        .check(&title("wait"), wait.out_is(&format!("jobset.jobset.x-k8s.io/{set} condition met")));
    suite.prove(&title("conditions"), |suite| {
        let lines =
            "{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{\"\\n\"}{end}";
        let said = suite.ask(&format!("get jobset {set} -o 'jsonpath={lines}'")).out;
        let mut found: Vec<&str> = said.lines().collect();
        found.sort_unstable();
        (found == story.conditions).then_some(()).ok_or_else(|| format!("{found:#?}"))
    });
    let counts = "{.status.restarts}/{.status.restartsCountTowardsMax} {.status.terminalState}";
    suite.check(
        &title("counters"),
        Check::new(&format!("get jobset {set} -o 'jsonpath={counts}'"))
            .out_is(&format!("{} {}", story.restarts, story.end)),
    );
    let row = Check::new(&format!("get jobset {set}"));
    suite.check(&title("its row"), row.out("TERMINALSTATE").out(story.end));
    let label = "jobset.sigs.k8s.io/jobset-name";
    let jobs = Check::new(&format!("get jobs -l {label}={set} -o name"));
    let jobs = story.jobs.iter().fold(jobs, |check, job| check.out(&format!("job.batch/{job}\n")));
    suite.check(&title("its Jobs"), jobs);
    let services = Check::new(&format!("get service {set} -o jsonpath={{.spec.clusterIP}}"));
    suite.check(&title("its Service"), services.out_is("None"));
    // What does not decide is ended, and goes.
    let left = "get pods --field-selector=status.phase=Running -o name";
    let left = Check::new(&format!("{left} -l {label}={set}")).out_is("");
    suite.check(&title("nothing runs on"), left.within(20));
    let described = Check::new(&format!("describe jobset {set}")).out("Terminal State:");
    suite.check(&title("describe"), described.out(story.end));
    let gone = Check::new(&format!("delete jobset {set} --timeout=30s")).out("deleted");
    suite.check(&title("delete"), gone);
    let left = Check::new(&format!("get jobs,pods,services -l {label}={set} -o name")).out_is("");
    suite.check(&title("all of it goes"), left.within(20));
}

/// KEP-104: suspended from the start, then resumed in order.
fn suspending(suite: &mut Suite) {
    let file = shell::root().join("examples/jobset-driver-first.yaml");
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let suspended =
        text.replace("spec:\n  startupPolicy", "spec:\n  suspend: true\n  startupPolicy");
    let set = "driver-ready-worker-start";
    let title = |what: &str| format!("KEP-104 suspended from the start: {what}");
    let applied = Check::new("apply -f -").stdin(&suspended).out("created");
    suite.check(&title("apply"), applied);
    let wait = Check::new(&format!("wait --for=condition=Suspended jobset/{set} --timeout=30s"));
    suite.check(&title("is suspended"), wait.out("condition met"));
    // kubectl sends what has changed in the way that the published document allows.
    let labelled = suspended.replacen("metadata:\n", "metadata:\n  labels: {applied: again}\n", 1);
    let again = Check::new("apply -f -")
        .stdin(&labelled)
        .out_is(&format!("jobset.jobset.x-k8s.io/{set} configured"));
    suite.check(&title("apply with a change"), again);
    let label = format!("get jobset {set} -o 'jsonpath={{.metadata.labels.applied}}'");
    suite.check(&title("has it"), Check::new(&label).out_is("again"));
    let jobs =
        "get jobs -o 'jsonpath={range .items[*]}{.metadata.name} {.spec.suspend}{\"\\n\"}{end}'";
    let label = "jobset.sigs.k8s.io/jobset-name";
    suite.check(
        &title("its Jobs are there, and wait"),
        Check::new(&format!("{jobs} -l {label}={set}"))
            .out_is(&format!("{set}-driver-0 true\n{set}-workers-0 true"))
            .within(10),
    );
    let patch = format!("patch jobset {set} --type=merge -p '{{\"spec\":{{\"suspend\":false}}}}'");
    suite.check(&title("resume"), Check::new(&patch).out("patched"));
    let wait = Check::new(&format!("wait --for=condition=Completed jobset/{set} --timeout=60s"));
    suite.check(&title("ends"), wait.out("condition met"));
    let resumed = format!(
        "get jobset {set} -o 'jsonpath={{.status.conditions[?(@.type==\"Suspended\")].reason}}'"
    );
    suite.check(&title("says it was resumed"), Check::new(&resumed).out_is("ResumeJobs"));
    suite.check(&title("delete"), Check::new(&format!("delete jobset {set}")).out("deleted"));
}

/// A set with all that would be filled in: applied again, nothing changes.
fn again(suite: &mut Suite) {
    let set = "apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: same}
spec:
  suspend: true
  replicatedJobs:
  - name: w
    groupName: default
    replicas: 1
    template:
      spec:
        completionMode: Indexed
        template:
          spec:
            restartPolicy: Never
            containers: [{name: main, image: busybox, command: [\"true\"], resources: {}}]
";
    let apply = |text: &str| Check::new("apply -f -").stdin(text);
    let named = "jobset.jobset.x-k8s.io/same";
    suite.check("28 a JobSet", apply(set).out_is(&format!("{named} created")));
    let wait = "wait --for=condition=Suspended jobset/same --timeout=30s";
    suite.check("28 it is suspended", Check::new(wait).out("condition met"));
    suite.check("28 applied again", apply(set).out_is(&format!("{named} unchanged")));
    let changed = set.replace("name: same}", "name: same, labels: {a: b}}");
    suite.check("28 and changed", apply(&changed).out_is(&format!("{named} configured")));
    let typo = set.replace("    replicas: 1", "    replica: 1").replace("name: same", "name: typo");
    let unknown = "unknown field \"spec.replicatedJobs[0].replica\"";
    suite.check("29 a typo", apply(&typo).code(1).err(unknown));
    let created = Check::new("create -f -").stdin(&typo).code(1).err(unknown);
    suite.check("29 a typo, created", created);
    suite.check("29 it is not there", Check::new("get jobset typo").code(1).err("not found"));
    suite.check("28 clean up", Check::new("delete jobset same").out("deleted"));
}

/// Every pod listens on one same port, and hears from all of them by their names.
const TALK: &str = "
import os, socket, time
peers = [f'js-w-{job}-{pod}.js' for job in range(2) for pod in range(2)]
server = socket.create_server((os.environ['IP'], 7755))
for peer in peers:
    for _ in range(600):
        try:
            socket.create_connection((peer, 7755), 5).close()
            break
        except OSError:
            time.sleep(0.1)
    else:
        raise SystemExit(f'nobody at {peer}')
print('reached', *peers, flush=True)
for _ in peers:
    server.accept()
";

/// Check 61.
fn connected(suite: &mut Suite) {
    let set = format!(
        "apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: js}}
spec:
  replicatedJobs:
  - name: w
    replicas: 2
    template:
      spec:
        completions: 2
        parallelism: 2
        backoffLimit: 0
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: main
              image: busybox
              env:
              - {{name: IP, valueFrom: {{fieldRef: {{fieldPath: status.podIP}}}}}}
              - {{name: TALK, value: {TALK:?}}}
              command: [sh, -c, 'exec python3 -c \"$TALK\"']
"
    );
    let apply = Check::new("apply -f -").stdin(&set).out("created");
    suite.check("61 two Jobs of two pods", apply);
    let wait = Check::new("wait --for=condition=Completed jobset/js --timeout=90s");
    suite.check("61 they complete", wait.out("condition met"));
    let label = "jobset.sigs.k8s.io/jobset-name=js";
    let phases = format!("get pods -l {label} -o jsonpath={{.items[*].status.phase}}");
    suite.check("61 all of them", Check::new(&phases).out_is(&["Succeeded"; 4].join(" ")));
    suite.prove("61 each reached each by its name, on one port", |suite| {
        let said = suite.ask(&format!("logs -l {label}")).out;
        let whole = "reached js-w-0-0.js js-w-0-1.js js-w-1-0.js js-w-1-1.js";
        let count = said.lines().filter(|line| *line == whole).count();
        (count == 4).then_some(()).ok_or(said)
    });
    suite.check("61 clean up", Check::new("delete jobset js").out("deleted"));
}

/// Stories as published, and other mistakes.
fn refused(suite: &mut Suite) {
    let story = |name: &str| {
        let file = shell::root().join("crates/cli/tests/data").join(name);
        Check::new(&format!("apply -f '{}'", file.display())).code(1)
    };
    suite.check(
        "KEP-262 story 4 as published",
        story("kep-262-story-4.yaml").err(
            "invalid replicatedJob name 'parameter-server' in failure policy does not appear in \
             .spec.ReplicatedJobs",
        ),
    );
    for name in ["kep-104-story-1.yaml", "kep-104-story-2.yaml"] {
        let no_kind = "no matches for kind \"JobSet\" in version \"jobset.x-k8s.io/v1\"";
        suite.check(&format!("{name} as published"), story(name).err(no_kind));
    }
}
