//! The server itself: what it serves, and to whom.

use std::{fs, path::Path};

use crate::e2e::check::{Check, Suite};

/// Checks 1 to 11 and 30.
pub(super) fn checks(suite: &mut Suite) {
    suite.check("1 version", Check::new("version").out("Server Version: v1.36.4"));
    let versions = Check::new("api-versions").out("v1\n").out("batch/v1\n").out("events.k8s.io/v1");
    suite.check("2 api-versions", versions.out("jobset.x-k8s.io/v1alpha2\n"));
    let resources = Check::new("api-resources")
        .out("configmaps")
        .out("pods")
        .out("po ")
        .out("jobs")
        .out("true         Job")
        .out("false        Node");
    let resources = resources.out("jobsets").out("true         JobSet");
    suite.check("3 api-resources", resources);
    suite.prove("3 what is served is asked for twice, not more", |suite| {
        let cache = tempfile::tempdir().map_err(|error| error.to_string())?;
        let line = format!("api-resources -v=6 --cache-dir={}", cache.path().display());
        let said = suite.ask(&line).err;
        // Newer versions write `verb="GET"`, older ones `GET https://`.
        let asked: Vec<&str> =
            said.lines().filter(|line| line.contains("GET") && line.contains("/api")).collect();
        (asked.len() == 2).then_some(()).ok_or_else(|| format!("{asked:#?}"))
    });
    suite.check(
        "4 cluster-info",
        Check::new("cluster-info").out("control plane").out("is running at"),
    );
    suite.check("5 readyz", Check::new("get --raw /readyz").out_is("ok"));
    suite.check("5 livez", Check::new("get --raw /livez?verbose").out("ok"));
    suite.check("5 metrics", Check::new("get --raw /metrics").out("# TYPE"));
    let none = Check::new("get pods").out_is("").err("No resources found in default namespace.");
    suite.check("6 no pods yet", none);
    let nodes = Check::new("get nodes -o wide").out(" Ready ").out("v1.36.4").out("KERNEL-VERSION");
    suite.check("7 nodes", nodes.within(10));
    let runtime = "{range .items[*]}{.status.nodeInfo.containerRuntimeVersion}{\"\\n\"}{end}";
    suite.prove("7 one node, with its runtime", |suite| {
        let said = suite.ask(&format!("get nodes -o 'jsonpath={runtime}'")).out;
        let is_right = said.lines().count() == 1 && said.starts_with("proc://");
        is_right.then_some(()).ok_or(said)
    });
    let spaces =
        Check::new("get ns").out("default").out("kube-system").out("kube-public").out("Active");
    suite.check("8 namespaces", spaces);
    suite.check("9 get all", Check::new("get all").out("service/kubernetes"));
    let missing = Check::new("get pod nope").code(1);
    let missing = missing.err("Error from server (NotFound): pods \"nope\" not found");
    suite.check("10 a missing pod", missing);
    let missing = Check::new("get job nope").code(1).err("jobs.batch \"nope\" not found");
    suite.check("11 a missing job", missing);
    let kind = Check::new("get nonsense").code(1);
    let kind = kind.err("the server doesn't have a resource type \"nonsense\"");
    suite.check("11 an unknown type", kind);
    let explain = Check::new("explain job.spec.template.spec.containers");
    suite.check("30 explain a field", explain.out("FIELDS:").out("imagePullPolicy"));
    let explain = Check::new("explain pod --recursive");
    suite.check("30 explain all fields", explain.out("restartPolicy").out("emptyDir"));
}

/// Check 63: those who have no business here.
pub(super) fn strangers(suite: &mut Suite, kubeconfig: &Path, folder: &Path) {
    let text = fs::read_to_string(kubeconfig).unwrap_or_default();
    suite.prove("63 the kubeconfig is for its owner only", |_| {
        use std::os::unix::fs::PermissionsExt;
        match fs::metadata(kubeconfig).map(|meta| meta.permissions().mode() & 0o777) {
            Ok(0o600) => Ok(()),
            Ok(mode) => Err(format!("its mode is {mode:o}")),
            Err(error) => Err(error.to_string()),
        }
    });
    let without = |key: &str, value: &str| -> String {
        let lines = text.lines().map(|line| match line.split_once(key) {
            Some((indent, _)) => format!("{indent}{key} {value}"),
            None => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let wrong_token = folder.join("wrong-token");
    drop(fs::write(&wrong_token, without("token:", "wrong")));
    let line = format!("--kubeconfig {} get pods", wrong_token.display());
    let refused = Check::new(&line).code(1).err("You must be logged in to the server");
    suite.check("63 a wrong token", refused);
    let line = format!("--kubeconfig {} get --raw /version", wrong_token.display());
    suite.check("63 a wrong token on a plain path", Check::new(&line).code(1).err("Unauthorized"));
    let wrong_ca = folder.join("wrong-ca");
    let no_ca =
        text.lines().filter(|line| !line.contains("certificate-authority")).collect::<Vec<_>>();
    drop(fs::write(&wrong_ca, no_ca.join("\n")));
    let line = format!("--kubeconfig {} get pods", wrong_ca.display());
    suite.check("63 an unknown authority", Check::new(&line).code(1).err("x509"));
}
