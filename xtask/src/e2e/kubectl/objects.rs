//! Writing and reading objects that nothing runs.

use crate::e2e::check::{self, Check, Suite};

/// A pod no node takes, so that only the API is at work.
fn idle(name: &str, labels: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {labels}}}
spec:
  schedulingGates: [{{name: example.com/never}}]
  containers: [{{name: c, image: busybox, command: [\"true\"]}}]
"
    )
}

fn job(parallelism: u32, label: &str) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata: {{name: j, labels: {{a: {label:?}}}}}
spec:
  parallelism: {parallelism}
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: c, image: busybox, command: [\"true\"]}}]
"
    )
}

/// Checks 12 to 40 and 53 to 55, as far as they need no running process.
pub(super) fn checks(suite: &mut Suite) {
    creating(suite);
    applying(suite);
    lists(suite);
    patching(suite);
    selecting(suite);
    printing(suite);
    owning(suite);
    namespaces(suite);
    many(suite);
}

fn creating(suite: &mut Suite) {
    let create = || Check::new("create -f -");
    suite.check("12 create", create().stdin(&idle("p1", "{a: x}")).out_is("pod/p1 created"));
    let again = create().stdin(&idle("p1", "{a: x}")).code(1);
    suite.check("12 create again", again.err("(AlreadyExists)").err("pods \"p1\" already exists"));
    let typo = idle("p2", "{a: x}").replace("schedulingGates", "foo: 1\n  schedulingGates");
    let typo =
        create().stdin(&typo).code(1).err("strict decoding error: unknown field \"spec.foo\"");
    suite.check("13 an unknown field", typo);
    let loose = idle("p2", "{a: q, b: z}").replace("schedulingGates", "foo: 1\n  schedulingGates");
    let loose = Check::new("create --validate=warn -f -").stdin(&loose);
    suite.check(
        "13 an unknown field, only warned of",
        loose.out("pod/p2 created").err("unknown field \"spec.foo\""),
    );
    let always = job(1, "x").replace("Never", "Always");
    let always = create().stdin(&always).code(1).err("spec.template.spec.restartPolicy");
    suite.check(
        "14 a job that restarts always",
        always.err("valid values: \"OnFailure\", \"Never\""),
    );
    let nameless = "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: made-}\n";
    suite.check("20 a generated name", create().stdin(nameless).out("configmap/made-"));
    suite.prove("20 its suffix has five letters of the alphabet", |suite| {
        let name = suite.ask("get cm -o name").out;
        let suffix = name.lines().find_map(|line| line.strip_prefix("configmap/made-"));
        let is_right =
            |s: &str| s.len() == 5 && s.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c));
        suffix.is_some_and(is_right).then_some(()).ok_or_else(|| format!("{name:?}"))
    });
    let wrong = "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {containers: 5}\n";
    suite.check("a wrong type", create().stdin(wrong).code(1).err("cannot be handled as a Pod"));
    let name = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_Valid}\n";
    suite.check("a bad name", create().stdin(name).code(1).err("metadata.name: Invalid value"));
    let lost = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: nowhere}\n";
    suite.check(
        "a missing namespace",
        create().stdin(lost).code(1).err("namespaces \"nowhere\" not found"),
    );
}

fn applying(suite: &mut Suite) {
    let apply = |text: String| Check::new("apply -f -").stdin(&text);
    suite.check("21 apply", apply(job(1, "x")).out_is("job.batch/j created"));
    let version = "get job j -o jsonpath={.metadata.resourceVersion}/{.metadata.generation}";
    let first = suite.ask(version).out;
    suite.check("21 apply again", apply(job(1, "x")).out_is("job.batch/j unchanged"));
    suite.prove("21 nothing was written", |suite| {
        let now = suite.ask(version).out;
        (now == first).then_some(()).ok_or_else(|| format!("{first} became {now}"))
    });
    suite.check("22 apply a label", apply(job(1, "y")).out_is("job.batch/j configured"));
    suite.prove("22 the version grows, the generation stays", |suite| {
        let now = suite.ask(version).out;
        match (numbers(&first), numbers(&now)) {
            (Some(old), Some(new)) if new.0 > old.0 && new.1 == old.1 => Ok(()),
            _ => Err(format!("{first} became {now}")),
        }
    });
    suite.check(
        "23 apply a change of the spec",
        apply(job(3, "y")).out_is("job.batch/j configured"),
    );
    suite.check(
        "23 the generation grows",
        Check::new("get job j -o jsonpath={.metadata.generation}").out_is("2"),
    );
    let dry = Check::new("apply --dry-run=server -f -").stdin(&idle("dry", "{a: b}"));
    suite.check("27 a dry run on the server", dry.out_is("pod/dry created (server dry run)"));
    suite.check("27 leaves nothing", Check::new("get pod dry").code(1).err("NotFound"));
    suite.check(
        "27 a diff",
        Check::new("diff -f -").stdin(&job(4, "y")).code(1).out("+  parallelism: 4"),
    );
    let stale = suite.ask("get job j -o yaml").out;
    suite.check("31 replace", Check::new("replace -f -").stdin(&stale).out("job.batch/j replaced"));
    drop(suite.ask("label job j stale=now"));
    let conflict = Check::new("replace -f -").stdin(&stale).code(1).err("Conflict");
    suite.check("31 replace a stale object", conflict.err("the object has been modified"));
    let edit = Check::new("edit job j").var("EDITOR", "sed -i s/parallelism:.3/parallelism:\\ 5/");
    suite.check("32 edit", edit.out("job.batch/j edited"));
    suite.check(
        "32 the edit is there",
        Check::new("get job j -o jsonpath={.spec.parallelism}").out_is("5"),
    );
}

/// kubectl checks what is in a list itself, by the OpenAPI document of version 2.
fn lists(suite: &mut Suite) {
    let list = |port: &str| {
        format!(
            "apiVersion: v1
kind: List
items:
- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: listed}}, data: {{a: b}}}}
- apiVersion: v1
  kind: Service
  metadata: {{name: listed}}
  spec: {{ports: [{port}]}}
"
        )
    };
    let whole = list("{port: 80, targetPort: http}");
    let created = Check::new("apply -f -").stdin(&whole);
    suite.check("a list", created.out("configmap/listed created").out("service/listed created"));
    let strict = Check::new("apply --validate=strict -f -").stdin(&whole);
    suite.check("a list, strictly", strict.out("service/listed unchanged"));
    let typo = Check::new("apply --validate=strict -f -").stdin(&list("{port: 80, prot: 1}"));
    suite.check("a mistake in a list", typo.code(1).err("unknown field \"prot\""));
    suite.check("a list goes", Check::new("delete -f -").stdin(&whole).out("listed"));
}

fn patching(suite: &mut Suite) {
    let patch =
        |kind: &str, body: &str| Check::new(&format!("patch pod p1 --type={kind} -p '{body}'"));
    let merge = patch("merge", r#"{"metadata":{"labels":{"m":"1"}}}"#);
    suite.check("33 a merge patch", merge.out("pod/p1 patched"));
    let json = patch("json", r#"[{"op":"add","path":"/metadata/labels/j","value":"1"}]"#);
    suite.check("33 a JSON patch", json.out("pod/p1 patched"));
    let strategic = patch("strategic", r#"{"spec":{"containers":[{"name":"c","image":"other"}]}}"#);
    suite.check("33 a strategic patch", strategic.out("pod/p1 patched"));
    let get = "get pod p1 -o jsonpath={.metadata.labels.m}{.metadata.labels.j}{.spec.containers[0].image}";
    suite.check("33 all three took", Check::new(get).out_is("11other"));
    let test = patch("json", r#"[{"op":"test","path":"/metadata/name","value":"x"}]"#).code(1);
    suite.check("33 a failing test", test);
    let nonsense = patch("merge", r#"{"spec":{"containers":7}}"#).code(1);
    suite.check("33 a patch of the wrong type", nonsense);
    // A condition of somebody else's: what the controller counts it would set right at once.
    let status = r#"patch job j --subresource=status --type=json -p '[{"op":"add","path":"/status/conditions","value":[{"type":"Audited","status":"True"}]},{"op":"replace","path":"/spec/parallelism","value":9}]'"#;
    suite.check("34 patch the status", Check::new(status).out("patched"));
    let both = r#"get job j -o 'jsonpath={.status.conditions[?(@.type=="Audited")].status}/{.spec.parallelism}'"#;
    suite.check("34 only the status changed", Check::new(both).out_is("True/5"));
    let main = r#"patch job j --type=merge -p '{"status":{"conditions":[]}}'"#;
    suite.check("34 status through the main resource", Check::new(main).out("patched (no change)"));
    suite.check("34 is left alone", Check::new(both).out_is("True/5"));
    suite.check("35 label", Check::new("label pod p1 x=y").out("pod/p1 labeled"));
    suite.check(
        "35 another value",
        Check::new("label pod p1 x=z").code(1).err("--overwrite is false"),
    );
    suite.check("35 overwrite", Check::new("label pod p1 x=z --overwrite").out("labeled"));
    suite.check("35 take it off", Check::new("label pod p1 x-").out("pod/p1 unlabeled"));
    suite.check("35 annotate", Check::new("annotate pod p1 note='some words'").out("annotated"));
    let fixed = patch("strategic", r#"{"spec":{"restartPolicy":"Never"}}"#).code(1);
    suite.check("36 a fixed field", fixed.err("pod updates may not change fields other than"));
}

fn selecting(suite: &mut Suite) {
    for (name, labels) in [("s1", "{s: x}"), ("s2", "{s: w, z: '1'}"), ("s3", "{s: w}")] {
        let made = Check::new("create -f -").stdin(&idle(name, labels));
        suite.check(&format!("37 create {name}"), made.out("created"));
    }
    let get = |query: &str| Check::new(&format!("get pods -o name {query}"));
    suite.check("37 in and not", get("-l 's in (x,w),!z'").out_is("pod/s1\npod/s3"));
    suite.check("37 unequal", get("-l s,s!=x").out_is("pod/s2\npod/s3"));
    suite.check("37 a bad selector", get("-l 's in x'").code(1));
    suite.check(
        "38 by phase",
        get("-l s --field-selector=status.phase=Pending,metadata.name!=s1")
            .out_is("pod/s2\npod/s3"),
    );
    let unknown = get("--field-selector=foo=bar").code(1).err("field label not supported: foo");
    suite.check("38 an unknown field", unknown);
}

fn printing(suite: &mut Suite) {
    let get = |format: &str| Check::new(&format!("get pod s1 -o {format}"));
    suite.check("39 wide", get("wide").out("NOMINATED NODE").out("READINESS GATES"));
    suite.check("39 json", get("json").out("\"kind\": \"Pod\""));
    suite.check("39 yaml", get("yaml").out("kind: Pod\n"));
    suite.check("39 name", get("name").out_is("pod/s1"));
    suite.check("39 jsonpath", get("jsonpath={.spec.containers[*].name}").out_is("c"));
    suite.check(
        "39 custom columns",
        get("custom-columns=N:.metadata.name,P:.status.phase").out("s1    Pending"),
    );
    suite.check("39 go-template", get("go-template={{.metadata.name}}").out_is("s1"));
    suite.check("39 the status of a gated pod", Check::new("get pod s1").out("SchedulingGated"));
    suite.check(
        "39 in chunks",
        Check::new("get pods -l s --chunk-size=1 -o name").out_is("pod/s1\npod/s2\npod/s3"),
    );
    let sorted = Check::new("get pods -l s --sort-by=.metadata.name --no-headers");
    suite.check("40 sorted", sorted.out("s1").out("s3"));
    let labels = Check::new("get pods -l s --show-labels -L z").out("LABELS").out("s=w,z=1");
    suite.check("40 labels as columns", labels);
    suite.check("describe a job", Check::new("describe job j").out("Parallelism:").out("Events:"));
}

/// Checks 53: what belongs to what, with kinds that need no controller.
fn owning(suite: &mut Suite) {
    for (cascade, stays) in [("background", false), ("foreground", false), ("orphan", true)] {
        let owner = format!("owner-{cascade}");
        let config = |name: &str, rest: &str| {
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{rest}")
        };
        let made = Check::new("create -f -").stdin(&config(&owner, ""));
        suite.check(&format!("53 an owner ({cascade})"), made.out("created"));
        let uid = suite.ask(&format!("get cm {owner} -o jsonpath={{.metadata.uid}}")).out;
        let reference = format!(
            "  ownerReferences:\n  - {{apiVersion: v1, kind: ConfigMap, name: {owner}, uid: {uid}, blockOwnerDeletion: true}}\n"
        );
        let child = format!("child-{cascade}");
        let made = Check::new("create -f -").stdin(&config(&child, &reference));
        suite.check(&format!("53 its dependent ({cascade})"), made.out("created"));
        let delete = Check::new(&format!("delete cm {owner} --cascade={cascade}"));
        suite.check(&format!("53 delete the owner ({cascade})"), delete.out("deleted"));
        let get = Check::new(&format!("get cm {child} -o jsonpath={{.metadata.ownerReferences}}"));
        let get = if stays { get.out_is("") } else { get.code(1).err("NotFound") };
        suite.check(&format!("53 the dependent afterwards ({cascade})"), get.within(10));
    }
}

fn namespaces(suite: &mut Suite) {
    let space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: n2}\n";
    suite
        .check("16 a namespace", Check::new("apply -f -").stdin(space).out("namespace/n2 created"));
    let account = Check::new("get serviceaccount default -n n2").out("default");
    suite.check("16 has a service account", account.within(10));
    suite.check(
        "54 something in it",
        Check::new("create -n n2 -f -").stdin(&idle("inside", "{}")).out("created"),
    );
    suite.check(
        "54 delete it",
        Check::new("delete ns n2 --timeout=30s").out("namespace \"n2\" deleted"),
    );
    suite.check("54 it is gone", Check::new("get ns n2").code(1).err("NotFound"));
    suite.check("54 and all that was in it", Check::new("get pods -A").out_lacks("inside"));
    suite.check("54 some cannot go", Check::new("delete ns default").code(1).err("Forbidden"));
    held(suite);
    let finalized =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, finalizers: [example.com/wait]}\n";
    suite.check("a finalizer", Check::new("create -f -").stdin(finalized).out("created"));
    suite.check("keeps an object", Check::new("delete cm kept --wait=false").out("deleted"));
    suite.check(
        "that is going",
        Check::new("get cm kept -o jsonpath={.metadata.deletionTimestamp}").out("T"),
    );
    let free = r#"patch cm kept --type=merge -p '{"metadata":{"finalizers":null}}'"#;
    suite.check("until it is taken off", Check::new(free).out("patched"));
    suite.check("then it is gone", Check::new("get cm kept").code(1).err("NotFound"));
}

/// A namespace that cannot go yet: nothing new comes into it.
fn held(suite: &mut Suite) {
    let held = |name: &str, rest: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: n3{rest}}}\n"
        )
    };
    suite.check("54 another namespace", Check::new("create ns n3").out("created"));
    let stays = held("stays", ", finalizers: [example.com/wait]");
    suite.check("54 what stays", Check::new("create -f -").stdin(&stays).out("created"));
    suite.check("54 delete it", Check::new("delete ns n3 --wait=false").out("deleted"));
    suite.check("54 it is held up", Check::new("get ns n3").out("Terminating"));
    let new = Check::new("create -f -").stdin(&held("new", "")).code(1).err("(Forbidden)");
    let why = "because it is being terminated";
    suite.check("54 nothing new comes", new.err(why));
    let wait = suite.start("wait --for=delete ns/n3 --timeout=30s");
    let free = r#"patch cm stays -n n3 --type=merge -p '{"metadata":{"finalizers":null}}'"#;
    suite.check("54 let go", Check::new(free).out("patched").within(5));
    suite.prove("54 it goes", |_| {
        let done = check::finish(wait.map_err(|error| error.to_string())?, "");
        (done.code == 0).then_some(()).ok_or(done.err)
    });
}

fn many(suite: &mut Suite) {
    suite.check(
        "55 delete by label",
        Check::new("delete pods -l s=w").out("\"s2\" deleted").out("\"s3\" deleted"),
    );
    suite.check("55 delete all", Check::new("delete pods --all").out("\"s1\" deleted"));
    suite.check("55 none is left", Check::new("get pods -o name").out_is(""));
    let list: String = (0..200)
        .map(|number| {
            format!(
                "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: many-{number}}}\n\
                 data: {{n: \"{number}\"}}\n"
            )
        })
        .collect();
    suite.check(
        "67 two hundred objects in one go",
        Check::new("create -f -").stdin(&list).out("many-199 created"),
    );
    suite.prove("67 all of them are there", |suite| {
        let found = suite.ask("get cm -o name").out.matches("configmap/many-").count();
        (found == 200).then_some(()).ok_or_else(|| format!("{found} of 200"))
    });
    suite.check(
        "67 and go again",
        Check::new("delete --wait=false -f -").stdin(&list).out("\"many-199\" deleted"),
    );
}

fn numbers(text: &str) -> Option<(u64, u64)> {
    let (version, generation) = text.split_once('/')?;
    Some((version.parse().ok()?, generation.parse().ok()?))
}
