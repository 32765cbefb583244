//! The account that operators work as: the one that `lockstep manifests` makes, with the rights it
//! is given there. What it asks for is written down by the API server, and judged at the end.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::check::{Check, Suite};
use crate::shell;

const USER: &str = "system:serviceaccount:lockstep-system:lockstep-operator";
const TOKEN: &str = "create token lockstep-operator -n lockstep-system --duration 12h";
/// What it asked for, a line each.
const AUDIT: &str = "audit.log";
/// What the API server has noted of a request that somebody may not make.
const FORBIDDEN: &str = "forbid";

/// What an API server is told to write down: all that operators ask for.
pub(super) fn watched(folder: &Path) -> Result<Vec<OsString>> {
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [USER]}, {"level": "None"}],
    });
    let (file, log) = (folder.join("audit.yaml"), folder.join(AUDIT));
    fs::write(&file, policy.to_string())?;
    Ok(vec!["--audit-policy-file".into(), file.into(), "--audit-log-path".into(), log.into()])
}

/// Makes the account as users do; this is the kubeconfig of somebody who works as it.
pub(super) fn give(suite: &mut Suite, binary: &Path, admin: &Path) -> Result<PathBuf> {
    let mut print = Command::new(binary);
    let bundle = shell::output(print.args(["manifests", "--only", "crds,rbac"]))?;
    let check = Check::new("apply -f -").stdin(&bundle).out("jobsets.jobset.x-k8s.io created");
    let check = check.out("workloads.kueue.x-k8s.io created");
    let check = check.out("clusterrole.rbac.authorization.k8s.io/lockstep-operator created");
    suite.check("what `lockstep manifests` prints is accepted", check);
    let deployment = shell::output(Command::new(binary).args(["manifests", "--only", "operator"]))?;
    let check = Check::new("apply -f - --dry-run=server").stdin(&deployment);
    let check = check.out("deployment.apps/lockstep-operator created (server dry run)");
    suite.check("so is the Deployment of the operator", check);
    let token = suite.ask(TOKEN);
    let own = with_token(admin, token.out.trim());
    own.with_context(|| format!("no kubeconfig of its own: {}", token.err))
}

/// The kubeconfig of whoever has this token.
fn with_token(admin: &Path, token: &str) -> Result<PathBuf> {
    let mut config: Value = serde_json::from_str(&fs::read_to_string(admin)?)?;
    config["users"][0]["user"] = json!({"token": token});
    let path = admin.with_file_name("operator.kubeconfig");
    fs::write(&path, config.to_string())?;
    Ok(path)
}

/// Operators asked for nothing that they may not do. What they may do and never asked for is told:
/// some rights are for what rarely happens.
pub(super) fn judge(suite: &mut Suite, folder: &Path) {
    let asked = asked(&fs::read_to_string(folder.join(AUDIT)).unwrap_or_default());
    suite.prove("operators have all rights that they need", |_| {
        let refused = asked.iter().filter_map(|one| one.refused.as_deref());
        let refused: BTreeSet<&str> = refused.collect();
        match (asked.is_empty(), refused.is_empty()) {
            (true, _) => Err("nothing was written down".to_owned()),
            (false, true) => Ok(()),
            (false, false) => Err(format!("{refused:#?}")),
        }
    });
    let used: BTreeSet<&str> = asked.iter().map(|one| one.right.as_str()).collect();
    let roles = ["clusterrole lockstep-operator", "role lockstep-operator -n lockstep-system"];
    let given = roles.map(|role| rights(&suite.ask(&format!("get {role} -o json")).out));
    let unused = given.iter().flatten().filter(|right| !used.contains(right.as_str()));
    let unused: Vec<&str> = unused.map(String::as_str).collect();
    if !unused.is_empty() {
        println!("      rights that no case has used: {}", unused.join(", "));
    }
}

/// Something that was asked for.
struct Asked {
    /// `verb group/resource`.
    right: String,
    /// Why it was refused, if that was for a lack of rights.
    refused: Option<String>,
}

fn asked(log: &str) -> Vec<Asked> {
    let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events
        .filter_map(|event| {
            let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
            let resource = text("/objectRef/resource")?;
            let group = text("/objectRef/apiGroup").unwrap_or_default();
            let sub = text("/objectRef/subresource").map(|sub| format!("/{sub}"));
            let right = format!("{} {group}/{resource}{}", text("/verb")?, sub.unwrap_or_default());
            let message = text("/responseStatus/message").unwrap_or_default();
            let decision = text("/annotations/authorization.k8s.io~1decision");
            let is_refused = decision == Some(FORBIDDEN);
            let refused = is_refused.then(|| format!("{right}: {message}"));
            Some(Asked { right, refused })
        })
        .collect()
}

/// What a role gives. Finalizers are never asked for: whoever may change them may say that others
/// wait for them.
fn rights(role: &str) -> Vec<String> {
    let role: Value = serde_json::from_str(role).unwrap_or_default();
    let mut rights = Vec::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        let list = |name: &str| {
            let items = rule[name].as_array().into_iter().flatten();
            items.filter_map(Value::as_str).collect::<Vec<_>>()
        };
        for group in list("apiGroups") {
            for resource in list("resources").iter().filter(|name| !name.ends_with("/finalizers")) {
                rights
                    .extend(list("verbs").iter().map(|verb| format!("{verb} {group}/{resource}")));
            }
        }
    }
    rights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_from_namespaces_that_end() {
        let event = |verb: &str, decision: &str, message: &str| {
            json!({"verb": verb, "objectRef": {"resource": "jobs", "apiGroup": "batch",
                "subresource": "status"}, "responseStatus": {"code": 403, "message": message},
                "annotations": {"authorization.k8s.io/decision": decision}})
        };
        let log = [
            event("patch", "allow", ""),
            event("create", "allow", "it is forbidden: x because it is being terminated"),
            event("delete", "forbid", "cannot delete"),
            json!({"verb": "get", "requestURI": "/version"}),
        ];
        let log = log.map(|event| event.to_string()).join("\n");
        let asked = asked(&log);
        let told: Vec<_> = asked.iter().filter_map(|one| one.refused.clone()).collect();
        assert_eq!(told, ["delete batch/jobs/status: cannot delete"]);
        assert_eq!(asked[0].right, "patch batch/jobs/status");
        assert_eq!(asked.len(), 3);
    }

    #[test]
    fn a_role_gives_each_verb_of_each_resource() {
        let role = json!({"rules": [{"apiGroups": [""], "resources": ["a", "b", "b/finalizers"],
            "verbs": ["get", "list"]}]});
        let want = ["get /a", "list /a", "get /b", "list /b"];
        assert_eq!(rights(&role.to_string()), want);
    }
}
