//! What people see: every screen, against golden files.

#[path = "common/up.rs"]
mod common;
#[path = "../src/golden.rs"]
mod golden;

use std::process::Output;

use common::{Up, lockstep};

/// One command as a transcript: what was typed, what came out, how it ended.
fn transcript(words: &str, output: &Output) -> String {
    let mut text = format!("$ lockstep {words}\n");
    text.push_str(&String::from_utf8_lossy(&output.stdout));
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        text.push_str("(stderr) ");
        text.push_str(line);
        text.push('\n');
    }
    match output.status.code() {
        Some(0) => text + "\n",
        code => format!("{text}(ends with {})\n\n", code.unwrap_or(-1)),
    }
}

fn screens(lines: &[&str]) -> String {
    let run = |words: &&str| {
        let output = lockstep().args(words.split(' ')).output().expect("lockstep runs");
        transcript(words, &output)
    };
    lines.iter().map(run).collect()
}

#[test]
fn help_teaches() {
    let mut text = String::new();
    for command in [
        "--help",
        "run --help",
        "up --help",
        "down --help",
        "apply --help",
        "create --help",
        "get --help",
        "describe --help",
        "logs --help",
        "events --help",
        "why --help",
        "queues --help",
        "delete --help",
        "wait --help",
        "operator --help",
        "manifests --help",
        "validate --help",
        "completions --help",
        "version --help",
    ] {
        text.push_str(&screens(&[command]));
    }
    golden::check("help.txt", &text);
}

#[test]
fn mistakes_are_explained() {
    let text = screens(&[
        "get",
        "get pods",
        "get pods --kubeconfig missing.yaml",
        "get pods --data-dir /nonexistent/cluster",
        "apply -f missing.yaml",
        "apply",
        "logs",
        "logs p --since soon",
        "delete pod p --now --force",
        "wait pod/p",
        "wait pod/p --for=Ready",
        "wait pod/p --for=jsonpath={.a --timeout=soon",
        "create job j --image=x",
        "create",
        "get pods -o go-template={{.x}}",
        "get pods -o jsn",
        "get pods --sort-by=[",
        "up --listen 0.0.0.0",
        "up --capacity cpu=many",
        "up --image-command nginx",
        "run missing.yaml",
        "run no-pod.yaml",
        "run broken.yaml",
        "run broken-job.yaml",
        "run kep-3998-story-1.yaml",
        "run kep-3998-story-2.yaml",
        "run kep-3998-continue.yaml",
        "run kep-3998-reasons.yaml",
        "run a-job.yaml a-job.yaml",
        "run a-job.yaml -n there",
        "run a-job.yaml -- true",
        "run --workers 2",
        "run --workers 0 -- true",
        "run --name Train -- true",
        "run --cluster a-job.yaml",
        "run --queue Team a-job.yaml",
        "run --queue team no-pod.yaml",
        "why",
        "why train -o yaml",
        "down --data-dir /nonexistent/cluster",
        "manifests --namespace Here",
        "manifests --only webhooks",
        "nonsense",
    ]);
    golden::check("mistakes.txt", &text);
}

#[test]
fn validation_names_file_line_and_field() {
    let text = screens(&[
        "validate described-pod.yaml no-pod.yaml",
        "validate invalid.yaml",
        "validate broken.yaml no-pod.yaml mistakes.yaml",
        "validate mistakes.yaml -o json",
        "validate missing.yaml no-pod.yaml",
        "validate --quiet no-pod.yaml",
    ]);
    golden::check("validate.txt", &text);
}

/// The stories of KEP-262 and KEP-104 as they were published, and what is left to say when the
/// first mistake is repaired. `examples/jobset-*.yaml` are what they were meant to be.
#[test]
fn stories_as_published_are_refused_with_the_reason() {
    let stories = [
        ("kep-262", 1),
        ("kep-262", 2),
        ("kep-262", 3),
        ("kep-262", 4),
        ("kep-104", 1),
        ("kep-104", 2),
    ];
    let up = Up::start();
    let mut text = String::new();
    for (proposal, number) in stories {
        let file = format!("{proposal}-story-{number}.yaml");
        text.push_str(&screens(&[&format!("validate {file}"), &format!("run {file}")]));
        let applied = format!("apply -f {file}");
        text.push_str(&transcript(&applied, &up.output(&applied, "")));
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(&file);
        let story = std::fs::read_to_string(path).expect("the story");
        let kept = story.lines().filter(|line| line.trim() != "image: bash:latest");
        let mut repaired: String = kept.map(|line| format!("{line}\n")).collect();
        if proposal == "kep-104" {
            repaired = story.replace("jobset.x-k8s.io/v1\n", "jobset.x-k8s.io/v1alpha2\n");
        }
        let words = "apply -f - --dry-run=server";
        text.push_str(&["# ", &file, ", its first mistake repaired\n"].concat());
        text.push_str(&transcript(words, &up.output(words, &repaired)));
    }
    golden::check("stories.txt", &text);
}

#[test]
fn versions_and_completions_need_no_cluster() {
    let output = lockstep().args(["version", "--client"]).output().expect("lockstep runs");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("lockstep "), "{output:?}");
    for shell in ["bash", "zsh", "fish"] {
        let output = lockstep().args(["completions", shell]).output().expect("lockstep runs");
        assert!(String::from_utf8_lossy(&output.stdout).contains("lockstep"), "{shell}");
    }
}

#[test]
fn objects_come_and_go_in_kubectls_words() {
    let config =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {a: x}}\ndata: {k: v}\n";
    let changed = config.replace("k: v", "k: w");
    let typo = config.replace("name: c", "name: d").replace("data: {k", "dada: {k");
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {word: sesame}\n";
    let up = Up::start();
    let steps = [
        ("get secrets", ""),
        ("apply -f - --dry-run=server", config),
        ("apply -f -", config),
        ("apply -f -", config),
        ("apply -f -", changed.as_str()),
        ("apply -f -", typo.as_str()),
        ("apply -f -", secret),
        ("get cm c -o name", ""),
        ("get cm,secret -l a=x -o name", ""),
        ("get cm --field-selector metadata.name=c --show-labels --no-headers -o name", ""),
        ("get cm nope", ""),
        ("get cm nope --ignore-not-found", ""),
        ("get nonsense", ""),
        ("get cm -l a=(", ""),
        ("describe cm c", ""),
        ("logs nope", ""),
        ("events --for cm/c", ""),
        ("delete cm", ""),
        ("delete cm c", ""),
        ("delete cm c", ""),
        ("delete cm c --ignore-not-found", ""),
        ("delete -f -", secret),
        ("delete pod p --grace-period=0", ""),
    ];
    let run = |(words, stdin): &(&str, &str)| transcript(words, &up.output(words, stdin));
    let text: String = steps.iter().map(run).collect();
    golden::check("objects.txt", &text);
}

#[test]
fn what_kubectl_users_type_works() {
    let configs = "\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {app: x}}, data: {size: 2Gi}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: z, x.io/tier: t}}, data: {size: 500Mi}}
";
    let pod = "\
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: x}}
spec:
  restartPolicy: Never
  containers:
  - {name: one, image: x, command: [echo, first]}
  - {name: two, image: x, command: [echo, second]}
";
    let generated = "\
apiVersion: v1
kind: Secret
metadata: {generateName: s-}
";
    let wrong = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: wrong}
data:
  port: 80
";
    let up = Up::start();
    let steps = [
        ("create -f - -o name", configs),
        ("create -f -", configs),
        ("apply -f -", generated),
        ("apply -f -", wrong),
        ("get cm,secret -l app -o name", ""),
        ("-n default get cm -l app=x -o jsonpath={.items[0].data.size}{\"\\n\"}", ""),
        ("get cm a -o jsonpath={.metadata.labels.x\\.io/tier}{\"\\n\"}", ""),
        ("get cm -l app --sort-by=.data.size -o name", ""),
        (
            "get cm -l app --sort-by=.metadata.name -o custom-columns=NAME:.metadata.name,APP:.metadata.labels.app",
            "",
        ),
        ("get cm a b -o custom-columns=N:metadata.name --no-headers", ""),
        ("get cm a -A", ""),
        ("get cm a -l app=z", ""),
        ("get -f - -o name", configs),
        ("get --raw /readyz", ""),
        ("apply -f -", pod),
        ("wait pod/p --for=jsonpath={.status.phase}=Succeeded --timeout=60s", ""),
        ("logs p two", ""),
        ("logs p --all-containers=true --prefix", ""),
        ("logs p three", ""),
        ("logs -l app=x -c one", ""),
        ("wait cm --all --for=condition=Ready --timeout=0", ""),
        ("wait cm/none --for=delete", ""),
        ("delete cm -l app --dry-run=server", ""),
        ("delete cm -l app --dry-run=client -o name", ""),
        ("delete cm -l app -A --wait=true --timeout=30s", ""),
        ("delete cm a --ignore-not-found=true", ""),
        ("delete svc kubernetes", ""),
        ("wait svc/kubernetes --for=create --timeout=60s", ""),
        ("get svc kubernetes -o name", ""),
    ];
    let run = |(words, stdin): &(&str, &str)| transcript(words, &up.output(words, stdin));
    let text: String = steps.iter().map(run).collect();
    golden::check("habits.txt", &text);
}
