//! Kinds that are known by name only: what users hear of them, and that nothing else suffers.

use crate::e2e::check::{Check, Suite};

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: nginx}]
";

/// The checks.
pub(super) fn checks(suite: &mut Suite) {
    let why = "create is not supported on resources of kind \"deployments.apps\": this cluster runs \
               jobs and keeps no set of replicas alive: use a Job or a JobSet for workers, and a Pod \
               with restartPolicy Always for a service";
    for words in
        ["apply -f -", "create -f -", "apply --server-side -f -", "apply --dry-run=server -f -"]
    {
        let refused = Check::new(words).stdin(DEPLOYMENT).code(1).err(why);
        suite.check(&format!("a Deployment is refused: {words}"), refused);
    }
    let create = Check::new("create deployment web --image=nginx").code(1).err(why);
    suite.check("a Deployment is refused: create deployment", create);
    let list =
        format!("apiVersion: v1\nkind: List\nitems:\n- {}", DEPLOYMENT.replace('\n', "\n  "));
    let list = Check::new("create -f -").stdin(&list).code(1).err(why);
    suite.check("a Deployment is refused: in a list", list);
    let others = [("create ingress i --rule=a/b=c:80", "use kubectl port-forward")];
    for (words, why) in others {
        suite.check(&format!("refused: {words}"), Check::new(words).code(1).err(why));
    }
    let none = Check::new("get deployments,rs,sts,ds,ing,hpa").err("No resources found in default");
    suite.check("there are none", none);
    let missing = Check::new("get deployment web").code(1);
    suite.check("none is found", missing.err("deployments.apps \"web\" not found"));
    let missing = Check::new("scale deployment web --replicas=3").code(1);
    suite.check("none is scaled", missing.err("deployments.apps \"web\" not found"));
    suite
        .check("none is deleted", Check::new("delete deployments --all").out("No resources found"));
    suite.check("get all asks for what there is", Check::new("get all").out_lacks("deployment"));
    let explain = Check::new("explain deployment").out("Not served: this cluster runs jobs");
    suite.check("explain says why", explain);
}
