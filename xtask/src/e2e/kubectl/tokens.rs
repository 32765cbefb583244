//! Service accounts: tokens by hand, and those that pods have.

use super::pod;
use crate::e2e::check::{Check, Suite};

/// Check 62, with a second user who comes with a token of its own.
pub(super) fn checks(suite: &mut Suite) {
    let space = Check::new("create namespace accounts").out_is("namespace/accounts created");
    suite.check("62 a namespace", space);
    let account = Check::new("create serviceaccount bot -n accounts").out("bot created");
    suite.check("62 an account", account);
    let certificate = "get cm kube-root-ca.crt -n accounts -o jsonpath={.data}";
    suite.check("62 a certificate", Check::new(certificate).out("BEGIN CERTIFICATE").within(10));
    by_hand(suite);
    in_pods(suite);
    let gone = Check::new("delete ns accounts").out("\"accounts\" deleted");
    suite.check("62 clean up", gone);
}

fn by_hand(suite: &mut Suite) {
    let short = "create token bot -n accounts --duration=1m";
    let short = Check::new(short).code(1).err("may not specify a duration less than 10 minutes");
    suite.check("62 a token for a minute", short);
    let nobody = Check::new("create token nope -n accounts").code(1);
    suite.check("62 a token for nobody", nobody.err("serviceaccounts \"nope\" not found"));
    let made = suite.ask("create token bot -n accounts --duration=20m");
    let token = made.out.trim().to_owned();
    suite.prove("62 create token", |_| match token.split('.').count() {
        3 => Ok(()),
        _ => Err(format!("{made:?}")),
    });
    // The kubeconfig has the administrator's token; one that is given counts instead.
    let with = format!("--token={token} -n accounts");
    let name = "system:serviceaccount:accounts:bot";
    let who = Check::new(&format!("auth whoami {with}")).out(name);
    let who = who.out("system:serviceaccounts:accounts").out("system:authenticated");
    suite.check("62 who is that", who);
    let may = Check::new(&format!("auth can-i list pods {with}")).code(1).out_is("no");
    suite.check("62 it may not", may);
    let pods = Check::new(&format!("get pods {with}")).code(1);
    suite.check("62 and is refused", pods.err(&format!("User \"{name}\" cannot list resource")));
    let role = "create rolebinding bot --clusterrole=view --serviceaccount=accounts:bot";
    let role = Check::new(&format!("{role} -n accounts"));
    suite.check("62 a role", role.out("bot created"));
    suite.check("62 it may", Check::new(&format!("auth can-i list pods {with}")).out_is("yes"));
    let list = Check::new(&format!("auth can-i --list {with}")).out("pods").out("jobs.batch");
    suite.check("62 what it may", list);
    let pods = Check::new(&format!("get pods {with}")).err("No resources found");
    suite.check("62 and does", pods);
    let bound = "create token bot -n accounts --bound-object-kind=Pod --bound-object-name=nope";
    suite.check("62 bound to nothing", Check::new(bound).code(1).err("pods \"nope\" not found"));
    let other = format!("auth whoami --token={token}x");
    let other = Check::new(&other).code(1).err("Unauthorized");
    suite.check("62 a token that was tampered with", other);
}

/// Asks the API server from inside of a pod, as any program there would.
const ASK: &str = "D=/var/run/secrets/kubernetes.io/serviceaccount; \
    curl -sS --cacert $D/ca.crt -H \"Authorization: Bearer $(cat $D/token)\" \
    https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT/api/v1/namespaces/$(cat \
    $D/namespace)/pods | tr -d '\\n ' | grep -o -e '\"kind\":\"PodList\"' -e \
    '\"reason\":\"Forbidden\"'";

fn in_pods(suite: &mut Suite) {
    let run = |suite: &mut Suite, name: &str, account: &str, want: &str| {
        let manifest = pod(name, ASK).replace(
            "  restartPolicy: Never\n",
            &format!("  restartPolicy: Never\n  serviceAccountName: {account}\n"),
        );
        let made = Check::new("create -n accounts -f -").stdin(&manifest).out("created");
        suite.check(&format!("62 a pod of {account}"), made);
        let logs = Check::new(&format!("logs {name} -n accounts")).out(want).within(30);
        suite.check(&format!("62 what {account} hears from inside"), logs);
    };
    run(suite, "stranger", "default", "\"reason\":\"Forbidden\"");
    run(suite, "friend", "bot", "\"kind\":\"PodList\"");
    let nobody = pod("nobody", "true").replace("spec:\n", "spec:\n  serviceAccountName: nope\n");
    let nobody = Check::new("create -n accounts -f -").stdin(&nobody).code(1).err(
        "pods \"nobody\" is forbidden: error looking up service account accounts/nope: \
         serviceaccount \"nope\" not found",
    );
    suite.check("62 a pod of nobody", nobody);
}
