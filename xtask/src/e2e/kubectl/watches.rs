//! Watching and waiting, without running processes.

use std::{
    io::{BufRead, BufReader},
    process::Child,
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use crate::e2e::check::{self, Check, Suite};

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: watched}\n";

/// How long a watch may be without a bookmark.
const BOOKMARK: Duration = Duration::from_secs(70);

/// A watch in which nothing happens but a bookmark, which takes a minute to come: other checks are
/// run meanwhile.
#[derive(Debug)]
pub(super) struct Quiet {
    child: Child,
    began: Instant,
    first: Receiver<(String, Instant)>,
}

impl Quiet {
    /// Starts to watch.
    pub(super) fn start(suite: &Suite) -> anyhow::Result<Self> {
        let path = "/api/v1/namespaces/kube-public/configmaps?watch=true&allowWatchBookmarks=true";
        let only = "resourceVersion=0&labelSelector=nobody";
        let began = Instant::now();
        let mut child = suite.start(&format!("get --raw '{path}&{only}'"))?;
        let (sender, first) = mpsc::channel();
        let stdout = child.stdout.take();
        thread::spawn(move || {
            let mut line = String::new();
            let read = stdout.map(|stdout| BufReader::new(stdout).read_line(&mut line));
            read.map(|_| sender.send((line, Instant::now())))
        });
        Ok(Self { child, began, first })
    }

    /// Check 42, as far as it takes long.
    pub(super) fn checks(mut self, suite: &mut Suite) {
        let left = BOOKMARK.saturating_sub(self.began.elapsed());
        let first = self.first.recv_timeout(left);
        drop(self.child.kill());
        drop(self.child.wait());
        suite.prove("42 a quiet watch has a bookmark within 70 seconds", |_| {
            let (line, at) = first.map_err(|_| "there was none".to_owned())?;
            let took = at.duration_since(self.began);
            let is_right = line.contains("\"BOOKMARK\"") && line.contains("\"resourceVersion\"");
            (is_right && took <= BOOKMARK)
                .then_some(())
                .ok_or_else(|| format!("{line:?} after {took:?}"))
        });
    }
}

/// Checks 41 to 44 and 50.
pub(super) fn checks(suite: &mut Suite) {
    tables(suite);
    raw(suite);
    waiting(suite);
}

fn tables(suite: &mut Suite) {
    // The header comes with the first row.
    let root = Check::new("get cm kube-root-ca.crt").out("kube-root-ca.crt").within(10);
    suite.check("41 something is there", root);
    let watch = suite.start_past("get cm -w", "NAME               DATA   AGE");
    suite.check("41 make something", Check::new("create -f -").stdin(CONFIG).out("created"));
    let change = r#"patch cm watched --type=merge -p '{"data":{"a":"b"}}'"#;
    suite.check("41 change it", Check::new(change).out("patched"));
    suite.check("41 delete it", Check::new("delete cm watched").out("deleted"));
    suite.check("41 make another", Check::new("create cm ended").out("created"));
    suite.prove("41 a watch shows all three", |_| {
        let watch = watch.map_err(|error| error.to_string())?;
        let seen = check::interrupt_after(watch, "ended ").out;
        let rows: Vec<&str> = seen.lines().filter(|line| line.starts_with("watched")).collect();
        let headers = seen.lines().filter(|line| line.starts_with("NAME")).count();
        match rows.as_slice() {
            [made, changed, gone] if headers == 0 => {
                let data = |row: &str| row.split_whitespace().nth(1).map(ToOwned::to_owned);
                let counts = [data(made), data(changed), data(gone)].map(Option::unwrap_or_default);
                (counts == ["0", "1", "1"]).then_some(()).ok_or(seen)
            }
            _ => Err(seen),
        }
    });
    suite.check("41 clean up", Check::new("delete cm ended").out("deleted"));
}

fn raw(suite: &mut Suite) {
    let list = "get --raw /api/v1/namespaces/default/configmaps?limit=1";
    let version = |suite: &Suite| -> String {
        let text = suite.ask(list).out;
        let found =
            text.split("\"resourceVersion\":\"").nth(1).and_then(|rest| rest.split('"').next());
        found.unwrap_or_default().to_owned()
    };
    let before = version(suite);
    suite.check("42 make something", Check::new("create -f -").stdin(CONFIG).out("created"));
    let path = "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=2";
    let since = Check::new(&format!("get --raw '{path}&resourceVersion={before}'"));
    suite.check("42 a watch goes on where a list ended", since.out("\"ADDED\"").out("watched"));
    let now = version(suite);
    let nothing = Check::new(&format!("get --raw '{path}&resourceVersion={now}'"));
    suite.check("42 and is silent when nothing happens", nothing.out_is(""));
    suite.check(
        "44 it ends when asked to",
        Check::new(&format!("get --raw '{path}'")).out("watched"),
    );
    let future = "get --raw '/api/v1/configmaps?resourceVersion=999999999&timeoutSeconds=1'";
    let future = Check::new(future).code(1);
    suite.check("42 a version of the future", future.err("Too large resource version"));
    let initial = format!(
        "get --raw '{path}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'"
    );
    let initial =
        Check::new(&initial).out("\"ADDED\"").out("\"k8s.io/initial-events-end\":\"true\"");
    suite.check("43 a streaming list ends with its bookmark", initial);
    let bad = Check::new(&format!("get --raw '{path}&sendInitialEvents=true'")).code(1);
    suite.check("43 and needs a match", bad.err("resourceVersionMatch"));
    let token = Check::new("get --raw '/api/v1/configmaps?continue=nonsense'").code(1);
    suite.check("a bad continue token", token.err("continue"));
    let verb = Check::new("get --raw /api/v1/nonsense").code(1);
    suite.check("an unknown path", verb.err("could not find the requested resource"));
}

fn waiting(suite: &mut Suite) {
    let gone = Check::new("wait --for=delete cm/nope --timeout=5s");
    suite.check("50 wait for something that is gone", gone);
    let never = Check::new("wait --for=jsonpath={.data.x}=y cm/watched --timeout=1s").code(1);
    suite.check("50 a wait that times out", never.err("timed out waiting"));
    let wait = suite.start("wait --for=jsonpath={.data.x}=y cm/watched --timeout=20s");
    thread::sleep(Duration::from_millis(500));
    let change = r#"patch cm watched --type=merge -p '{"data":{"x":"y"}}'"#;
    suite.check("50 change it", Check::new(change).out("patched"));
    suite.prove("50 a wait sees the change", |_| {
        let done = check::finish(wait.map_err(|error| error.to_string())?, "");
        (done.code == 0).then_some(()).ok_or(done.err)
    });
    for (name, feature) in [("43 a wait that streams", "true"), ("43 a wait that lists", "false")] {
        let wait = Check::new("wait --for=jsonpath={.data.x}=y cm/watched --timeout=10s");
        suite.check(name, wait.var("KUBE_FEATURE_WatchListClient", feature).out("condition met"));
    }
    let gone = suite.start("wait --for=delete cm/watched --timeout=20s");
    let come = suite.start("wait --for=create cm/coming --timeout=20s");
    thread::sleep(Duration::from_millis(500));
    suite.check("50 delete it", Check::new("delete cm watched").out("deleted"));
    suite.check("50 make another", Check::new("create cm coming").out("created"));
    for (what, wait) in [("goes meanwhile", gone), ("comes meanwhile", come)] {
        suite.prove(&format!("50 a wait for what {what}"), |_| {
            let done = check::finish(wait.map_err(|error| error.to_string())?, "");
            let is_met = done.code == 0 && done.out.contains("condition met");
            is_met.then_some(()).ok_or_else(|| format!("{done:?}"))
        });
    }
    let there = Check::new("wait --for=create cm/coming --timeout=5s").out("condition met");
    suite.check("50 a wait for what is there", there);
    let never = Check::new("wait --for=create cm/nope --timeout=1s").code(1);
    suite.check("50 a wait for what never comes", never.err("timed out waiting"));
    suite.check("50 clean up", Check::new("delete cm coming").out("deleted"));
}
