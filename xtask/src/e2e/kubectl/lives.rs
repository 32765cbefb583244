//! The lives of pods, as they are watched.

use std::{
    collections::BTreeSet,
    fs, process, thread,
    time::{Duration, Instant},
};

use super::pod;
use crate::e2e::check::{Check, Suite, interrupt_after};

/// The label of all pods here.
const OF: &str = "of=lives";

/// Checks 20, 38, 40, 41, 46, 47, 51 and 52, as far as they need pods that come and go.
pub(super) fn checks(suite: &mut Suite) {
    let early = pod("z-early", "true").replace(
        "  restartPolicy",
        "  schedulingGates: [{name: example.com/never}]\n  restartPolicy",
    );
    suite.check("41 a pod that waits", apply(&early).out("created"));
    watched(suite);
    let talks = "echo old; sleep 4; while :; do echo new; sleep 0.2; done";
    suite.check("47 a pod that goes on talking", apply(&pod("talks", talks)).out("created"));
    terminated(suite);
    forced(suite);
    found(suite);
    recent(suite);
    let clean = Check::new(&format!("delete pods -l {OF} --now")).out("z-early");
    suite.check("41 clean up", clean);
}

fn apply(text: &str) -> Check {
    Check::new("apply -f -").stdin(&text.replace("labels: {", "labels: {of: lives, "))
}

/// One pod from its creation to its end, in a table, with an end by Ctrl-C.
fn watched(suite: &mut Suite) {
    let header = "NAME      READY   STATUS            RESTARTS   AGE";
    let watch = suite.start_past(&format!("get pods -w -l {OF}"), header);
    let polite = "trap 'sleep 1.2; exit 0' TERM; while :; do sleep 0.1; done";
    suite.check("41 a pod comes", apply(&pod("life", polite)).out("created"));
    let ready = Check::new("wait --for=condition=Ready pod/life --timeout=30s");
    suite.check("41 is ready", ready.out("condition met"));
    let gone = Check::new("delete pod life --timeout=30s").out("\"life\" deleted");
    suite.check("41 and goes", gone);
    // More than a second after the first, as the grace takes that long.
    let last = pod("last", "exec sleep 600");
    suite.check("41 another comes", apply(&last).out("created"));
    suite.prove("41 a watch shows all of its life, until Ctrl-C", |_| {
        let watch = watch.map_err(|error| error.to_string())?;
        let done = interrupt_after(watch, "last ");
        let mut states: Vec<&str> = Vec::new();
        for line in done.out.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["life", _, state, _, age] = words.as_slice() {
                if !is_human(age) {
                    return Err(format!("an age of {age:?} in {line:?}"));
                }
                states.push(state);
            }
        }
        states.dedup();
        let is_whole = states.first() == Some(&"Pending")
            && states.iter().position(|state| *state == "Running")
                < states.iter().position(|state| *state == "Terminating");
        match is_whole && states.contains(&"Running") && done.code == 1 {
            true => Ok(()),
            false => Err(format!("{states:?} in {done:?}")),
        }
    });
}

/// Whether an age is written for people, such as `3s` or `2m10s`.
fn is_human(age: &str) -> bool {
    age.starts_with(|c: char| c.is_ascii_digit())
        && age.ends_with(['s', 'm', 'h'])
        && age.chars().all(|c| c.is_ascii_digit() || "smh".contains(c))
}

/// A process that does nothing about SIGTERM ends by it.
fn terminated(suite: &mut Suite) {
    suite.check("52 a pod that ends", apply(&pod("ends", "exec sleep 600")).out("created"));
    let ready = Check::new("wait --for=condition=Ready pod/ends --timeout=30s");
    suite.check("52 is ready", ready.out("condition met"));
    let code = ".object.status.containerStatuses[0].state.terminated.exitCode";
    let codes = format!("jsonpath=code {{{code}}};{{\"\\n\"}}");
    let watch =
        suite.start_past(&format!("get pod ends -w --output-watch-events -o '{codes}'"), "code ;");
    let events = suite.start("events -w --for pod/ends");
    let gone = Check::new("delete pod ends --timeout=40s").out("deleted");
    suite.check("52 is deleted", gone);
    suite.prove("52 by SIGTERM", |_| {
        let seen = interrupt_after(watch.map_err(|error| error.to_string())?, "code 143;").out;
        seen.contains("code 143;").then_some(()).ok_or(seen)
    });
    suite.prove("46 events -w", |_| {
        let events = events.map_err(|error| error.to_string())?;
        let seen = interrupt_after(events, "Killing").out;
        let expected = ["Scheduled", "Created", "Started", "Killing"];
        expected.iter().all(|word| seen.contains(word)).then_some(()).ok_or(seen)
    });
    let killing = "get events --field-selector=reason=Killing,involvedObject.name=ends -o";
    let killing = Check::new(&format!("{killing} jsonpath={{.items[*].message}}"));
    suite.check("52 it was told", killing.out("Stopping container main"));
}

/// A pod that is removed by force leaves no process.
fn forced(suite: &mut Suite) {
    // A number that no other process sleeps for.
    let mark = format!("6{:07}", process::id());
    let stubborn = format!("trap '' TERM; echo up; while :; do sleep {mark}; done");
    suite.check("51 a stubborn pod", apply(&pod("stubborn", &stubborn)).out("created"));
    suite.check("51 runs", Check::new("logs stubborn").out_is("up").within(20));
    suite.prove("51 its processes are there", |_| until(|| processes(&mark) > 0));
    let force = Check::new("delete pod stubborn --force --grace-period=0").out("deleted");
    suite.check("51 is removed by force", force.err("Immediate deletion"));
    suite.check("51 and is gone", Check::new("get pod stubborn").code(1).err("NotFound"));
    suite.prove("51 with its processes", |_| until(|| processes(&mark) == 0));
}

/// How many processes have `mark` in their command line.
fn processes(mark: &str) -> usize {
    let lines = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = lines.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(mark)).count()
}

fn until(is_so: impl Fn() -> bool) -> Result<(), String> {
    let limit = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        if Instant::now() > limit {
            return Err("it was not so within ten seconds".to_owned());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// By the node they are on, and in the order they came.
fn found(suite: &mut Suite) {
    let node = suite.ask("get nodes -o jsonpath={.items[0].metadata.name}").out;
    suite.prove("38 exactly the pods of a node", |suite| {
        let rows = "{range .items[*]}{.spec.nodeName} pod/{.metadata.name}{\"\\n\"}{end}";
        let all = suite.ask(&format!("get pods -A -o 'jsonpath={rows}'")).out;
        let placed: BTreeSet<&str> =
            all.lines().filter_map(|row| row.strip_prefix(&format!("{node} "))).collect();
        let there =
            suite.ask(&format!("get pods -A -o name --field-selector=spec.nodeName={node}")).out;
        let there: BTreeSet<&str> = there.lines().collect();
        let is_right = there == placed && there.contains("pod/last");
        is_right.then_some(()).ok_or_else(|| format!("{there:?} instead of {placed:?}"))
    });
    let get = |query: &str| Check::new(&format!("get pods -l {OF} -o name {query}"));
    let nowhere = get("--field-selector=spec.nodeName=").out_is("pod/z-early");
    suite.check("38 those that are nowhere", nowhere);
    suite.check("38 none elsewhere", get("--field-selector=spec.nodeName=elsewhere").out_is(""));
    let ordered =
        get("--sort-by=.metadata.creationTimestamp --field-selector=metadata.name!=talks");
    suite.check("40 in the order they came", ordered.out_is("pod/z-early\npod/last"));
    let named = get("--sort-by=.metadata.name --field-selector=metadata.name!=talks");
    suite.check("40 or by name", named.out_is("pod/last\npod/z-early"));
}

/// What was said long ago is left out of a log of the last seconds.
fn recent(suite: &mut Suite) {
    let talks = Check::new("logs talks").out("old\n").out("new\n").within(30);
    suite.check("47 it has talked for a while", talks);
    let recent = Check::new("logs talks --since=2s").out("new\n").out_lacks("old");
    suite.check("47 what it said of late", recent);
}
