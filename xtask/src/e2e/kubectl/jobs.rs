//! Jobs that end by a success policy: the two stories of KEP-3998, from the examples.

use crate::{
    e2e::check::{Check, Suite},
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

/// Both stories, to the letter.
pub(super) fn checks(suite: &mut Suite) {
    for story in &STORIES {
        tell(suite, story);
    }
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
