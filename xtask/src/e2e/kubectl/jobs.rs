//! Jobs: those that end by a success policy (the two stories of KEP-3998, from the examples), by
//! index, in failure, with a sidecar, and by deletion.

use crate::{
    e2e::check::{Check, Suite, interrupt_after},
    shell,
};

/// A story: the example that tells it and how it must end.
struct Story {
    number: usize,
    example: &'static str,
    job: &'static str,
    /// Which rule of the success policy decides.
    rule: usize,
    completed_indexes: &'static str,
    succeeded: usize,
}

const STORIES: [Story; 2] = [
    Story {
        number: 1,
        example: "leader-decides.yaml",
        job: "leader-decides",
        rule: 0,
        completed_indexes: "0",
        succeeded: 1,
    },
    Story {
        number: 2,
        example: "leader-or-enough-workers.yaml",
        job: "leader-or-workers",
        rule: 1,
        completed_indexes: "1-5",
        succeeded: 5,
    },
];

/// Both stories, to the letter; then checks 49, 53, 57 and 60.
pub(super) fn checks(suite: &mut Suite) {
    for story in &STORIES {
        tell(suite, story);
    }
    indexed(suite);
    failing(suite);
    with_a_sidecar(suite);
    deleted(suite);
}

fn tell(suite: &mut Suite, story: &Story) {
    let job = story.job;
    let title = |what: &str| format!("KEP-3998 story {}: {what}", story.number);
    let file = shell::root().join("examples").join(story.example);
    let applied = Check::new(&format!("apply -f '{}'", file.display()));
    suite.check(&title("apply"), applied.out_is(&format!("job.batch/{job} created")));
    let wait = format!("wait --for=condition=Complete job/{job} --timeout=90s");
    suite
        .check(&title("wait"), Check::new(&wait).out_is(&format!("job.batch/{job} condition met")));
    let lines =
        "{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{\"\\n\"}{end}";
    let why = format!("SuccessPolicy: Matched rules at index {}", story.rule);
    suite.check(
        &title("conditions"),
        Check::new(&format!("get job {job} -o 'jsonpath={lines}'"))
            .out_is(&format!("SuccessCriteriaMet=True {why}\nComplete=True {why}")),
    );
    let counts = "{.status.completedIndexes} of {.spec.completions}, {.status.succeeded} succeeded, \
                  {.status.failed} failed, {.status.active} active, {.status.ready} ready, \
                  {.status.terminating} terminating";
    // Counts of nothing are left out of a status, but for those that a pointer tells from unknown.
    suite.check(
        &title("counts"),
        Check::new(&format!("get job {job} -o 'jsonpath={counts}'")).out_is(&format!(
            "{} of 10, {} succeeded,  failed,  active, 0 ready, 0 terminating",
            story.completed_indexes, story.succeeded
        )),
    );
    let row = Check::new(&format!("get job {job} --no-headers"));
    suite.check(&title("its row"), row.out("Complete").out(&format!("{}/10", story.succeeded)));
    let phases = format!("get pods -l job-name={job} -o 'jsonpath={{.items[*].status.phase}}'");
    suite.check(
        &title("lingering pods are gone"),
        Check::new(&phases).out_is(&vec!["Succeeded"; story.succeeded].join(" ")),
    );
    let events = Check::new(&format!("events --for job/{job}")).out("SuccessfulCreate");
    suite.check(&title("events"), events.out("Completed").out("Job completed").within(5));
    let indexes = format!("Completed Indexes:  {}\n", story.completed_indexes);
    suite.check(&title("describe"), Check::new(&format!("describe job {job}")).out(&indexes));
    let gone = Check::new(&format!("delete job {job} --timeout=30s"));
    suite.check(&title("delete"), gone.out(&format!("\"{job}\" deleted")));
    let left = Check::new(&format!("get pods -l job-name={job} -o name")).out_is("");
    suite.check(&title("its pods go with it"), left.within(20));
}

/// A Job of one container with a folder `/d`, with more of a spec of its own and one of its pods.
fn job(name: &str, spec: &str, pod: &str, script: &str) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  backoffLimit: 0
{spec}  template:
    spec:
      restartPolicy: Never
      volumes: [{{name: d, emptyDir: {{}}}}]
{pod}      containers:
      - name: main
        image: busybox
        command: [sh, -c, {script:?}]
        volumeMounts: [{{name: d, mountPath: /d}}]
"
    )
}

fn create(text: &str) -> Check {
    Check::new("create -f -").stdin(text).out("created")
}

fn wait(what: &str) -> Check {
    Check::new(&format!("wait --timeout=60s --for={what}")).out("condition met")
}

fn indexed(suite: &mut Suite) {
    let spec = "  completions: 3\n  parallelism: 3\n  completionMode: Indexed\n";
    let three = job("three", spec, "", "echo index $JOB_COMPLETION_INDEX on $(hostname)");
    suite.check("60 a Job of three indexes", create(&three));
    suite.check("60 completes", wait("condition=Complete job/three"));
    for index in 0..3 {
        let label = format!("job-name=three,batch.kubernetes.io/job-completion-index={index}");
        let logs = Check::new(&format!("logs -l {label}"));
        let said = logs.out_is(&format!("index {index} on three-{index}"));
        suite.check(&format!("60 index {index} and its host name"), said);
        let host = format!("get pods -l {label} -o jsonpath={{.items[*].spec.hostname}}");
        let host = Check::new(&host).out_is(&format!("three-{index}"));
        suite.check(&format!("60 index {index} says so in its spec"), host);
    }
    let indexes = Check::new("get job three -o jsonpath={.status.completedIndexes}").out_is("0-2");
    suite.check("60 all are completed", indexes);
    suite.check("60 clean up", Check::new("delete job three").out("deleted"));
}

fn failing(suite: &mut Suite) {
    suite.check("49 a Job that fails", create(&job("fails", "", "", "exit 3")));
    suite.check("49 wait for that", wait("condition=Failed job/fails"));
    let reason = "get job fails -o 'jsonpath={.status.conditions[?(@.type==\"Failed\")].reason}'";
    suite.check("49 its reason", Check::new(reason).out_is("BackoffLimitExceeded"));
    let never = Check::new("wait --for=condition=Complete job/fails --timeout=1s").code(1);
    suite.check("49 it never completes", never.err("timed out waiting for the condition"));
    suite.check("49 its row", Check::new("get job fails").out("Failed").out("0/1"));
    suite.check("49 clean up", Check::new("delete job fails").out("deleted"));
}

fn with_a_sidecar(suite: &mut Suite) {
    let side = "      initContainers:\n      - name: side\n        image: busybox\n        \
                restartPolicy: Always\n        command: [sh, -c, \"trap 'exit 0' TERM; while :; do \
                sleep 0.1; done\"]\n";
    suite.check("57 a Job with a sidecar", create(&job("assisted", "", side, "echo done")));
    suite.check("57 completes", wait("condition=Complete job/assisted"));
    let phase = "get pods -l job-name=assisted -o jsonpath={.items[*].status.phase}";
    suite.check("57 with its pod", Check::new(phase).out_is("Succeeded"));
    suite.check("57 clean up", Check::new("delete job assisted").out("deleted"));
}

/// What becomes of the pods of a Job that is deleted.
fn deleted(suite: &mut Suite) {
    // It ends when it is asked to and told that it may.
    let slow = "trap 'until test -e /d/go; do sleep 0.1; done; exit 0' TERM; while :; do sleep 0.1; \
                done";
    suite.check("53 a Job with a slow pod", create(&job("slow", "", "", slow)));
    suite.check("53 runs", wait("jsonpath={.status.ready}=1 job/slow"));
    let line = "jsonpath={.type} {.object.metadata.finalizers}{\"\\n\"}";
    let watch =
        suite.start_past(&format!("get job slow -w --output-watch-events -o '{line}'"), "ADDED ");
    let delete = Check::new("delete job slow --cascade=foreground --wait=false").out("deleted");
    suite.check("53 delete it in the foreground", delete);
    let pod = Check::new("get pods -l job-name=slow").out("Terminating").within(10);
    suite.check("53 its pod goes first", pod);
    let stays = Check::new("get job slow -o jsonpath={.metadata.finalizers}");
    suite.check("53 it stays until then", stays.out_is(r#"["foregroundDeletion"]"#));
    let pod = suite.ask("get pods -l job-name=slow -o name").out;
    let go = Check::new(&format!("exec {} -- touch /d/go", pod.trim()));
    suite.check("53 its pod may go", go);
    suite.prove("53 and goes then", |_| {
        let watch = watch.map_err(|error| error.to_string())?;
        let seen = interrupt_after(watch, "DELETED").out;
        let is_right =
            seen.contains("MODIFIED [\"foregroundDeletion\"]\n") && seen.contains("DELETED");
        is_right.then_some(()).ok_or(seen)
    });
    let gone = Check::new("get job slow").code(1).err("jobs.batch \"slow\" not found");
    suite.check("53 it is gone", gone);
    suite.check("53 with its pod", Check::new("get pods -l job-name=slow -o name").out_is(""));
    suite.check("53 another", create(&job("leaves", "", "", slow)));
    suite.check("53 runs too", wait("jsonpath={.status.ready}=1 job/leaves"));
    let delete = Check::new("delete job leaves --cascade=orphan").out("deleted");
    suite.check("53 delete it and leave its pod", delete);
    let left = "{.items[*].status.phase}:{.items[*].metadata.ownerReferences}";
    let left = Check::new(&format!("get pods -l job-name=leaves -o jsonpath={left}"));
    suite.check("53 which belongs to nobody", left.out_is("Running:"));
    let clean = Check::new("delete pods -l job-name=leaves --now").out("deleted");
    suite.check("53 clean up", clean);
}
