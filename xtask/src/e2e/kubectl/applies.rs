//! Server-side apply, and what changes nothing: dry runs, differences.

use crate::e2e::check::{Check, Suite};

/// Who owns fields of the object, a line for each, with the fields.
const OWNERS: &str = "--show-managed-fields -o 'jsonpath={range .metadata.managedFields[*]}\
                      {.manager} {.operation} {.fieldsV1}{\"\\n\"}{end}'";

fn map(name: &str, data: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {data}\n")
}

/// Checks 24 to 27, by objects of their own.
pub(super) fn checks(suite: &mut Suite) {
    on_the_server(suite);
    from_the_client(suite);
    dry(suite);
}

fn on_the_server(suite: &mut Suite) {
    let apply = |data: &str, options: &str| {
        let line = format!("apply --server-side -f - {options}");
        Check::new(&line).stdin(&map("shared", data))
    };
    let applied = "configmap/shared serverside-applied";
    suite.check("24 apply on the server", apply("{a: '1', b: '1'}", "").out_is(applied));
    let version = "get cm shared -o jsonpath={.metadata.resourceVersion}";
    let first = suite.ask(version).out;
    suite.check("24 again", apply("{a: '1', b: '1'}", "").out_is(applied));
    suite.check("24 nothing was written", Check::new(version).out_is(&first));
    let hidden = Check::new("get cm shared -o yaml").out("kind: ConfigMap");
    suite.check("24 owners are not shown", hidden.out_lacks("managedFields"));
    let shown = Check::new("get cm shared -o yaml --show-managed-fields");
    let shown = shown.out("    manager: kubectl\n    operation: Apply\n").out("f:a: {}");
    suite.check("24 unless they are asked for", shown);
    let conflict = apply("{a: '2'}", "--field-manager=other").code(1);
    let conflict = conflict.err("Apply failed with 1 conflict: conflict with \"kubectl\": .data.a");
    suite.check("25 another manager changes a field", conflict);
    let data = Check::new("get cm shared -o jsonpath={.data.a}").out_is("1");
    suite.check("25 which stays", data);
    let force = apply("{a: '2'}", "--field-manager=other --force-conflicts").out_is(applied);
    suite.check("25 by force", force);
    let data = "get cm shared -o jsonpath={.data}";
    suite.check("25 it changes", Check::new(data).out_is(r#"{"a":"2","b":"1"}"#));
    let owners = Check::new(&format!("get cm shared {OWNERS}"));
    let moved = "kubectl Apply {\"f:data\":{\"f:b\":{}}}\nother Apply {\"f:data\":{\"f:a\":{}}}";
    suite.check("25 and belongs to the other", owners.out_is(moved));
    suite.check("26 the first drops its field", apply("{}", "").out_is(applied));
    suite.check("26 which goes", Check::new(data).out_is(r#"{"a":"2"}"#));
    let alone = Check::new(&format!("get cm shared {OWNERS}")).out("other Apply");
    suite.check("26 with its owner", alone.out_lacks("f:b"));
    suite.check("26 clean up", Check::new("delete cm shared").out("deleted"));
}

/// An object that was applied on the client's side moves over, without force.
fn from_the_client(suite: &mut Suite) {
    let before = map("moved", "{a: '1', b: '1'}");
    let apply = Check::new("apply -f -").stdin(&before).out_is("configmap/moved created");
    suite.check("24 apply on the client", apply);
    let owners = format!("get cm moved {OWNERS}");
    let owner = Check::new(&owners).out("kubectl-client-side-apply Update").out("f:b");
    suite.check("24 owns what it wrote", owner);
    let after = map("moved", "{a: '2'}");
    let apply = Check::new("apply --server-side -f -").stdin(&after);
    suite.check("24 then on the server", apply.out_is("configmap/moved serverside-applied"));
    let owner = Check::new(&owners).out("kubectl Apply {\"f:data\":{\"f:a\":{}}}");
    suite.check("24 which owns it all", owner.out_lacks("kubectl-client-side-apply"));
    let data = Check::new("get cm moved -o jsonpath={.data}");
    suite.check("26 and drops what is left out", data.out_is(r#"{"a":"2"}"#));
    suite.check("24 clean up", Check::new("delete cm moved").out("deleted"));
}

/// What only asks what would come of it.
fn dry(suite: &mut Suite) {
    let (now, then) = (map("dried", "{a: '1'}"), map("dried", "{a: '2'}"));
    let apply = Check::new("apply --server-side -f -").stdin(&now).out("serverside-applied");
    suite.check("27 an object", apply);
    let whole = "get cm dried -o yaml --show-managed-fields";
    let first = suite.ask(whole).out;
    for way in ["apply", "apply --server-side --force-conflicts"] {
        let dry = Check::new(&format!("{way} --dry-run=server -f -")).stdin(&then);
        suite.check(&format!("27 {way} on it, dry"), dry.out("(server dry run)"));
    }
    let line = "diff --server-side --force-conflicts -f -";
    let diff = Check::new(line).stdin(&then).code(1).out("-  a: \"1\"\n+  a: \"2\"\n");
    suite.check("27 diff --server-side", diff);
    let same = Check::new(line).stdin(&now).out_is("");
    suite.check("27 diff --server-side of the same", same);
    let absent = Check::new("diff --server-side -f -").stdin(&map("absent", "{a: '1'}")).code(1);
    suite.check("27 diff --server-side of what is not there", absent.out("+  name: absent"));
    suite.check("27 nothing was written", Check::new(whole).out_is(&first));
    suite.check("27 clean up", Check::new("delete cm dried").out("deleted"));
}
