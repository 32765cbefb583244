//! Pods that run.

use super::pod;
use crate::e2e::check::{self, Check, Suite};

/// Checks 19, 45 to 52 and 56 to 59. Also run as an unprivileged user.
pub(crate) fn checks(suite: &mut Suite) {
    running(suite);
    logs(suite);
    stopping(suite);
    restarting(suite);
    environment(suite);
    volumes(suite);
    claims(suite);
    placing(suite);
}

fn apply(text: &str) -> Check {
    Check::new("apply -f -").stdin(text)
}

fn phase(name: &str, want: &str, seconds: u64) -> Check {
    Check::new(&format!("get pod {name} -o jsonpath={{.status.phase}}"))
        .out_is(want)
        .within(seconds)
}

fn running(suite: &mut Suite) {
    let run = "run r --image=busybox --restart=Never --command -- sh -c 'echo from r'";
    suite.check("19 run", Check::new(run).out("pod/r created"));
    suite.check("19 it succeeds", phase("r", "Succeeded", 20));
    suite.check("19 its row", Check::new("get pod r").out("0/1     Completed"));
    suite.check("19 its words", Check::new("logs r").out_is("from r"));
    let fails = pod("fails", "echo bad >&2; exit 3");
    suite.check("a pod that fails", apply(&fails).out("created"));
    suite.check("has failed", phase("fails", "Failed", 20));
    suite.check("its row", Check::new("get pod fails").out("0/1     Error"));
    let code = "get pod fails -o jsonpath={.status.containerStatuses[0].state.terminated.exitCode}";
    suite.check("its exit code", Check::new(code).out_is("3"));
    suite.check("a long one", apply(&pod("long", "echo started; exec sleep 600")).out("created"));
    let wait = Check::new("wait --for=condition=Ready pod/long --timeout=20s");
    suite.check("50 wait for it to be ready", wait.out("condition met"));
    let wait = Check::new("wait --for=jsonpath={.status.phase}=Running pod/long --timeout=20s");
    suite.check("50 wait for its phase", wait.out("condition met"));
    let describe = Check::new("describe pod long").out("Node:").out("Scheduled").out("Started");
    suite.check("45 describe it", describe.out("Conditions:").within(5));
    suite
        .check("45 describe the node", Check::new("describe node").out("Allocatable:").out("long"));
    suite.check(
        "46 its events",
        Check::new("events --for pod/long").out("Scheduled").out("Started"),
    );
    suite.check("46 all events", Check::new("get events").out("pod/long").out("LAST SEEN"));
    let address = suite.ask("get pod long -o jsonpath={.status.podIP}").out;
    suite.prove("its address is its own", |_| {
        let is_own = address.starts_with("127.") && address != "127.0.0.1";
        is_own.then_some(()).ok_or_else(|| format!("{address:?}"))
    });
    let by_node = "get pods --field-selector=status.phase=Running,metadata.name=long -o name";
    suite.check("38 by phase", Check::new(by_node).out_is("pod/long"));
    let bare = "apiVersion: v1\nkind: Pod\nmetadata: {name: bare}\nspec: {containers: [{name: c, image: nginx}]}\n";
    suite.check("a pod without a command", apply(bare).out("created"));
    let waits = Check::new("get pod bare").out("CreateContainerConfigError").within(10);
    suite.check("waits and says so", waits);
    suite.check(
        "and how to go on",
        Check::new("describe pod bare").out("--image-command").within(5),
    );
    suite.check("is deleted", Check::new("delete pod bare --now").out("deleted"));
}

fn logs(suite: &mut Suite) {
    let two = "apiVersion: v1
kind: Pod
metadata: {name: two}
spec:
  restartPolicy: Never
  containers:
  - {name: a, image: x, command: [sh, -c, 'for i in 1 2 3; do echo a$i; done']}
  - {name: b, image: x, command: [sh, -c, 'echo b1; sleep 2; echo b2']}
";
    suite.check("47 two containers", apply(two).out("created"));
    let done = Check::new("wait --for=jsonpath={.status.phase}=Succeeded pod/two --timeout=20s");
    let follow = suite.start("logs -f two -c b --pod-running-timeout=20s");
    suite.check("48 both end", done.out("condition met"));
    suite.prove("48 a followed log ends with its container", |_| {
        let seen = check::finish(follow.map_err(|error| error.to_string())?, "");
        let is_right = seen.code == 0 && seen.out == "b1\nb2\n";
        // A log asked for before the container exists is refused, as everywhere.
        let is_early =
            seen.err.contains("waiting to start") || seen.err.contains("ContainerCreating");
        (is_right || is_early).then_some(()).ok_or_else(|| format!("{seen:?}"))
    });
    suite.check(
        "48 a followed log of the past ends too",
        Check::new("logs -f two -c b").out_is("b1\nb2"),
    );
    suite.check("47 one of them", Check::new("logs two -c a").out_is("a1\na2\na3"));
    suite.check(
        "47 the first by default",
        Check::new("logs two").out_is("a1\na2\na3").err("Defaulted container"),
    );
    let all = Check::new("logs two --all-containers --prefix")
        .out("[pod/two/a] a1")
        .out("[pod/two/b] b2");
    suite.check("47 all of them", all);
    suite.check("47 the tail", Check::new("logs two -c a --tail=1").out_is("a3"));
    suite.check("47 the recent past", Check::new("logs two -c a --since=1h").out_is("a1\na2\na3"));
    suite.check("47 so many bytes", Check::new("logs two -c a --limit-bytes=4").out_is("a1\na"));
    suite.prove("47 timestamps", |suite| {
        let seen = suite.ask("logs two -c a --timestamps").out;
        let first = seen.lines().next().unwrap_or_default();
        let is_right = first.ends_with(" a1") && first.contains('T') && first.contains("Z ");
        is_right.then_some(()).ok_or(seen)
    });
    let missing =
        Check::new("logs two -c nope").code(1).err("container nope is not valid for pod two");
    suite.check("47 a missing container", missing);
    let missing =
        Check::new("logs two -c a --previous").code(1).err("previous terminated container");
    suite.check("47 a missing earlier run", missing);
    suite.check("47 by label", Check::new("logs -l app=r").out_is("").err("No resources found"));
}

fn stopping(suite: &mut Suite) {
    let polite =
        pod("polite", "trap 'echo stopping; exit 0' TERM; echo up; while :; do sleep 0.1; done");
    suite.check("51 a pod that stops when asked", apply(&polite).out("created"));
    suite.check("51 runs", Check::new("logs polite").out_is("up").within(20));
    let follow = suite.start_past("logs -f polite", "up");
    suite.check(
        "51 is deleted",
        Check::new("delete pod polite --timeout=20s").out("\"polite\" deleted"),
    );
    suite.prove("51 and was asked to stop", |_| {
        let seen = check::finish(follow.map_err(|error| error.to_string())?, "").out;
        seen.contains("stopping").then_some(()).ok_or(seen)
    });
    let deaf = pod("deaf", "trap '' TERM; echo up; while :; do sleep 0.1; done")
        .replace("restartPolicy", "terminationGracePeriodSeconds: 2\n  restartPolicy");
    suite.check("52 a pod that does not listen", apply(&deaf).out("created"));
    suite.check("52 runs", Check::new("logs deaf").out_is("up").within(20));
    let codes = "get pod deaf -w --output-watch-events -o jsonpath={.object.status.containerStatuses[0].state.terminated.exitCode}{\"\\n\"}";
    let watch = suite.start(codes);
    suite.check(
        "52 is deleted after its grace",
        Check::new("delete pod deaf --timeout=15s").out("deleted"),
    );
    suite.prove("52 by SIGKILL", |_| {
        let watch = watch.map_err(|error| error.to_string())?;
        let seen = check::interrupt_after(watch, "137").out;
        seen.lines().any(|line| line == "137").then_some(()).ok_or(seen)
    });
    let force = Check::new("delete pod long --force --grace-period=0").out("force deleted");
    suite.check("51 a pod is removed by force", force.err("Immediate deletion"));
    suite.check("51 at once", Check::new("get pod long").code(1).err("NotFound"));
}

fn restarting(suite: &mut Suite) {
    let loops = pod("loops", "echo run; exit 1").replace("Never", "Always");
    suite.check("56 a pod that keeps failing", apply(&loops).out("created"));
    suite.check("56 backs off", Check::new("get pod loops").out("CrashLoopBackOff").within(40));
    suite.check("56 counts its restarts", Check::new("get pod loops").out(" ago)").within(5));
    suite.check(
        "56 keeps the run before",
        Check::new("logs loops --previous").out_is("run").within(10),
    );
    suite.check("56 says so", Check::new("get events").out("BackOff").within(10));
    let once = pod("once", "exit 0").replace("Never", "OnFailure");
    suite.check("56 a pod that ends well", apply(&once).out("created"));
    suite.check("56 is not restarted", phase("once", "Succeeded", 20));
    let init = "apiVersion: v1
kind: Pod
metadata: {name: init}
spec:
  restartPolicy: Never
  volumes: [{name: v, emptyDir: {}}]
  initContainers:
  - {name: one, image: x, command: [sh, -c, 'echo 1 >> $V/order'], env: [{name: V, value: /v}], volumeMounts: [{name: v, mountPath: /v}]}
  - {name: side, image: x, restartPolicy: Always, command: [sh, -c, 'echo side >> /v/order; exec sleep 600'], volumeMounts: [{name: v, mountPath: /v}]}
  containers:
  - {name: main, image: x, command: [sh, -c, 'sleep 1; cat /v/order'], volumeMounts: [{name: v, mountPath: /v}]}
";
    suite.check("57 init containers and a sidecar", apply(init).out("created"));
    suite.check("57 the pod ends without the sidecar", phase("init", "Succeeded", 30));
    suite.check("57 in order", Check::new("logs init -c main").out_is("1\nside"));
    let failing =
        init.replace("name: init", "name: init-fails").replace("echo 1 >> $V/order", "exit 4");
    suite.check("57 a failing init container", apply(&failing).out("created"));
    suite.check("57 fails the pod", Check::new("get pod init-fails").out("Init:Error").within(20));
}

fn environment(suite: &mut Suite) {
    let env = "apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue, 'file.txt': content}
---
apiVersion: v1
kind: Secret
metadata: {name: hidden}
stringData: {word: sesame}
---
apiVersion: v1
kind: Pod
metadata: {name: env, labels: {tier: test}}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: x
    workingDir: /
    command: [sh, -c, 'echo $(COLOR)-$NAME-$WORD-$TIER-$CPU-$P_color-\"$$(echo x)\"; pwd']
    resources: {limits: {cpu: 500m}}
    envFrom: [{prefix: P_, configMapRef: {name: settings}}]
    env:
    - {name: COLOR, valueFrom: {configMapKeyRef: {name: settings, key: color}}}
    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: WORD, valueFrom: {secretKeyRef: {name: hidden, key: word}}}
    - {name: TIER, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['tier']\"}}}
    - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
";
    suite.check("58 an environment from everywhere", apply(env).out("pod/env created"));
    suite.check("58 the pod ends", phase("env", "Succeeded", 20));
    suite
        .check("58 and saw it", Check::new("logs env").out("blue-env-sesame-test-500-blue-x\n/\n"));
    let later = pod("later", "echo $LATE").replace(
        "    command",
        "    env: [{name: LATE, valueFrom: {configMapKeyRef: {name: late, key: k}}}]\n    command",
    );
    suite.check("58 a missing key", apply(&later).out("created"));
    suite.check(
        "58 is waited for",
        Check::new("get pod later").out("CreateContainerConfigError").within(15),
    );
    let late = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: late}\ndata: {k: at last}\n";
    suite.check("58 until it is there", apply(late).out("created"));
    suite.check("58 then the pod runs", phase("later", "Succeeded", 60));
    suite.check("58 with it", Check::new("logs later").out_is("at last"));
}

fn volumes(suite: &mut Suite) {
    let volumes = "apiVersion: v1
kind: Pod
metadata: {name: volumes, labels: {a: b}}
spec:
  restartPolicy: Never
  volumes:
  - {name: settings, configMap: {name: settings}}
  - {name: hidden, secret: {secretName: hidden, defaultMode: 0400}}
  - {name: about, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
  - {name: scratch, emptyDir: {}}
  - {name: host, hostPath: {path: /etc, type: Directory}}
  containers:
  - name: main
    image: x
    command: [sh, -c, 'cat /m/settings/file.txt; echo; cat /m/hidden/word; echo; cat /m/about/labels; echo; echo s > /m/scratch/f; cat /m/scratch/f; test -e /m/host/passwd && echo host']
    volumeMounts:
    - {name: settings, mountPath: /m/settings}
    - {name: hidden, mountPath: /m/hidden}
    - {name: about, mountPath: /m/about}
    - {name: scratch, mountPath: /m/scratch}
    - {name: host, mountPath: /m/host, readOnly: true}
";
    suite.check("59 volumes of five kinds", apply(volumes).out("created"));
    suite.check("59 the pod ends", phase("volumes", "Succeeded", 20));
    suite.check(
        "59 and read them",
        Check::new("logs volumes").out_is("content\nsesame\na=\"b\"\ns\nhost"),
    );
    let watch = pod("refreshed", "while ! grep -q red /m/color; do sleep 0.2; done; echo seen")
        .replace(
            "  containers",
            "  volumes: [{name: v, configMap: {name: settings}}]\n  containers",
        );
    let watch =
        watch.replace("    command", "    volumeMounts: [{name: v, mountPath: /m}]\n    command");
    suite.check("59 a pod that waits for a change", apply(&watch).out("created"));
    suite.check("59 runs", phase("refreshed", "Running", 20));
    let change = r#"patch cm settings --type=merge -p '{"data":{"color":"red"}}'"#;
    suite.check("59 a changed config map", Check::new(change).out("patched"));
    suite.check("59 reaches it", phase("refreshed", "Succeeded", 90));
}

/// A volume that outlives its pods.
fn claims(suite: &mut Suite) {
    let claim = "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: lasting}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
";
    suite.check("a claim", apply(claim).out("persistentvolumeclaim/lasting created"));
    let bound = "wait --for=jsonpath={.status.phase}=Bound pvc/lasting --timeout=20s";
    suite.check("is bound", Check::new(bound).out("condition met"));
    let row = Check::new("get pvc lasting").out("Bound").out("1Mi").out("RWO");
    suite.check("its row", row);
    let with = |name: &str, script: &str| {
        pod(name, script)
            .replace(
                "  containers",
                "  volumes: [{name: v, persistentVolumeClaim: {claimName: lasting}}]\n  containers",
            )
            .replace("    command", "    volumeMounts: [{name: v, mountPath: /v}]\n    command")
    };
    suite.check("a pod that writes", apply(&with("writes", "echo kept > /v/f")).out("created"));
    suite.check("it ends", phase("writes", "Succeeded", 20));
    suite.check("the pod goes", Check::new("delete pod writes --now").out("deleted"));
    let reads = with("reads", "cat /v/f; exec sleep 600");
    suite.check("a pod that reads", apply(&reads).out("created"));
    suite.check("what was kept", Check::new("logs reads").out_is("kept").within(20));
    suite.check("describe it", Check::new("describe pvc lasting").out("Used By:       reads"));
    suite.check("delete it", Check::new("delete pvc lasting --wait=false").out("deleted"));
    suite.check("it stays in use", Check::new("get pvc lasting").out("Terminating"));
    suite.check("its pod goes", Check::new("delete pod reads --now").out("deleted"));
    suite.check("then it goes", Check::new("get pvc -o name").out_is("").within(20));
}

fn placing(suite: &mut Suite) {
    let picky =
        pod("picky", "true").replace("  containers", "  nodeSelector: {no: where}\n  containers");
    suite.check("a pod no node fits", apply(&picky).out("created"));
    let why =
        Check::new("describe pod picky").out("FailedScheduling").out("0/1 nodes are available");
    suite.check("is told why", why.within(10));
    let huge = pod("huge", "true")
        .replace("    command", "    resources: {requests: {cpu: 5000}}\n    command");
    suite.check("a pod too big", apply(&huge).out("created"));
    suite.check("is told so", Check::new("describe pod huge").out("Insufficient cpu").within(10));
    let node = suite.ask("get nodes -o jsonpath={.items[0].metadata.name}").out;
    suite.check("cordon", Check::new(&format!("cordon {node}")).out("cordoned"));
    suite.check("the node says so", Check::new("get nodes").out("Ready,SchedulingDisabled"));
    suite.check("a pod must wait", apply(&pod("waits", "true")).out("created"));
    let why = Check::new("get pod waits -o jsonpath={.status.conditions[0].reason}");
    suite.check("and is unschedulable", why.out_is("Unschedulable").within(10));
    suite.check("uncordon", Check::new(&format!("uncordon {node}")).out("uncordoned"));
    suite.check("then it runs", phase("waits", "Succeeded", 30));
    let drain =
        format!("drain {node} --force --ignore-daemonsets --delete-emptydir-data --timeout=60s");
    suite.check("drain", Check::new(&drain).out("drained"));
    suite.check("uncordon again", Check::new(&format!("uncordon {node}")).out("uncordoned"));
    suite.check("51 delete all pods", Check::new("delete pods --all --now --timeout=30s"));
    suite.check("51 none is left", Check::new("get pods -o name").out_is(""));
}
