//! Bundles of definitions and roles, ours and those of strangers, as they are published: kubectl
//! applies them on either side without an error.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::on_a_cluster;
use crate::{
    e2e::check::{Check, Suite, Summary},
    kubectl, shell,
};

/// Modules that have manifests in their folder `config/components`.
const STRANGERS: [(&str, &str, &str); 2] =
    [("JobSet", "sigs.k8s.io/jobset", "v0.10.1"), ("Kueue", "sigs.k8s.io/kueue", "v0.14.0")];

/// Applies all of them to one cluster.
pub(super) fn run(binary: &Path) -> Result<Summary> {
    let kubectl = kubectl::binary(kubectl::VERSIONS[0])?;
    let mut strangers = Vec::new();
    for (name, module, version) in STRANGERS {
        strangers.push((name, module_folder(module, version)?.join("config/components")));
    }
    on_a_cluster("bundles", &kubectl, binary, |suite, _| {
        suite.check("a namespace", Check::new("create namespace system").out("created"));
        for (name, folder) in &strangers {
            both_ways(suite, &format!("roles of {name}"), &format!("-k {}/rbac", folder.display()));
        }
        let ours = shell::root().join("deploy/crds");
        server_then_client(suite, "definitions of ours", &format!("-f {}", ours.display()));
        operator(suite, binary);
        for (name, folder) in &strangers {
            // On the server's side only: their descriptions do not fit into the annotation in which
            // kubectl keeps what was applied last.
            let apply =
                format!("apply --server-side --force-conflicts -k {}/crd", folder.display());
            let check = Check::new(&apply).out("serverside-applied");
            suite.check(&format!("definitions of {name}"), check);
            // Those that are built in as well: each says that it is served.
            let wait = Check::new("wait --for=condition=Established --timeout=60s crd --all");
            suite.check(&format!("definitions of {name} are served"), wait.out("condition met"));
        }
        topology(suite);
    })
}

/// An object of a kind that only Kueue's bundle defines.
fn topology(suite: &mut Suite) {
    let levels = |label: &str| {
        format!(
            "apiVersion: kueue.x-k8s.io/v1beta1
kind: Topology
metadata: {{name: racks}}
spec:
  levels: [{{nodeLabel: {label:?}}}, {{nodeLabel: kubernetes.io/hostname}}]
"
        )
    };
    let apply = |text: &str| Check::new("apply -f -").stdin(text);
    let named = "topology.kueue.x-k8s.io/racks";
    let rack = levels("example.com/rack");
    suite.check("a Topology", apply(&rack).out_is(&format!("{named} created")));
    suite.check("a Topology again", apply(&rack).out_is(&format!("{named} unchanged")));
    let get = "get topology racks -o jsonpath={.spec.levels[*].nodeLabel}";
    let get = Check::new(get).out_is("example.com/rack kubernetes.io/hostname");
    suite.check("it is there", get);
    let wrong = apply(&levels("kubernetes.io/hostname")).code(1);
    let wrong = wrong.err("spec.levels: Invalid value: must be unique");
    suite.check("a Topology that breaks a rule", wrong);
    suite.check("it goes", Check::new("delete topology racks").out("deleted"));
}

/// What `lockstep manifests` prints. A Deployment is the one thing of it that an embedded cluster,
/// which runs the controllers itself, has no use for.
fn operator(suite: &mut Suite, binary: &Path) {
    let print = |only: &str| {
        let mut command = Command::new(binary);
        shell::output(command.args(["manifests", "--only", only]))
    };
    let (bundle, deployment) = match (print("crds,rbac"), print("operator")) {
        (Ok(bundle), Ok(deployment)) => (bundle, deployment),
        (Err(error), _) | (_, Err(error)) => {
            return suite.prove("manifests are printed", |_| Err(format!("{error:#}")));
        }
    };
    let created = "clusterrole.rbac.authorization.k8s.io/lockstep-operator";
    for way in ["apply -f -", "apply --server-side --force-conflicts -f -"] {
        let check = Check::new(way).stdin(&bundle).out(created);
        suite.check(&format!("`lockstep manifests`: {way}"), check);
    }
    let may = "auth can-i --as system:serviceaccount:lockstep-system:lockstep-operator";
    for (what, answer) in
        [("patch workloads.kueue.x-k8s.io --subresource=status", "yes"), ("get nodes", "no")]
    {
        let check = Check::new(&format!("{may} {what} -A")).out_is(answer);
        let code = i32::from(answer == "no");
        suite.check(&format!("its account may {what}: {answer}"), check.code(code));
    }
    let check = Check::new("apply -f -").stdin(&deployment).code(1);
    let check = check.out("service/lockstep-metrics created").err("keeps no set of replicas alive");
    suite.check("`lockstep manifests`: all but its Deployment", check);
}

/// Applies a bundle on the server's side, twice, then on the client's.
fn server_then_client(suite: &mut Suite, name: &str, what: &str) {
    let server = Check::new(&format!("apply --server-side {what}")).out("serverside-applied");
    suite.check(&format!("{name}: on the server's side"), server.clone());
    suite.check(&format!("{name}: again"), server);
    let after = Check::new(&format!("apply {what}"));
    suite.check(&format!("{name}: then on the client's side"), after);
}

/// The same, and afresh on the client's side, twice.
fn both_ways(suite: &mut Suite, name: &str, what: &str) {
    server_then_client(suite, name, what);
    let delete = Check::new(&format!("delete {what}")).out("deleted");
    suite.check(&format!("{name}: deleted"), delete);
    let client = Check::new(&format!("apply {what}"));
    suite.check(&format!("{name}: on the client's side"), client.clone().out("created"));
    suite.check(&format!("{name}: again, nothing changes"), client.out_lacks("configured"));
}

/// Where the files of a published module are.
fn module_folder(module: &str, version: &str) -> Result<PathBuf> {
    let mut download = Command::new("go");
    download.args(["mod", "download", "-json", &format!("{module}@{version}")]);
    let said = shell::output(download.current_dir(std::env::temp_dir()))?;
    let said: serde_json::Value = serde_json::from_str(&said).context("what go said is no JSON")?;
    let folder = said["Dir"].as_str().with_context(|| format!("{module} has no folder"))?;
    Ok(PathBuf::from(folder))
}
