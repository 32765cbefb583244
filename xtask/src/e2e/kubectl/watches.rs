//! Watching and waiting, without running processes.

use std::{thread, time::Duration};

use crate::e2e::check::{self, Check, Suite};

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: watched}\n";

/// Checks 41 to 44 and 50.
pub(super) fn checks(suite: &mut Suite) {
    tables(suite);
    raw(suite);
    waiting(suite);
}

fn tables(suite: &mut Suite) {
    let watch = suite.start("get cm -w --request-timeout=6s");
    thread::sleep(Duration::from_secs(1));
    suite.check("41 make something", Check::new("create -f -").stdin(CONFIG).out("created"));
    let change = r#"patch cm watched --type=merge -p '{"data":{"a":"b"}}'"#;
    suite.check("41 change it", Check::new(change).out("patched"));
    suite.check("41 delete it", Check::new("delete cm watched").out("deleted"));
    suite.prove("41 a watch shows all three", |_| {
        let seen = check::finish(watch.map_err(|error| error.to_string())?, "").out;
        let rows: Vec<&str> = seen.lines().filter(|line| line.starts_with("watched")).collect();
        let headers = seen.lines().filter(|line| line.starts_with("NAME")).count();
        match rows.as_slice() {
            [made, changed, gone] if headers == 1 => {
                let data = |row: &str| row.split_whitespace().nth(1).map(ToOwned::to_owned);
                let counts = [data(made), data(changed), data(gone)].map(Option::unwrap_or_default);
                (counts == ["0", "1", "1"]).then_some(()).ok_or(seen)
            }
            _ => Err(seen),
        }
    });
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
    suite.check("50 clean up", Check::new("delete cm watched").out("deleted"));
}
