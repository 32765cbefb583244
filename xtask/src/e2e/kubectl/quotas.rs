//! LimitRanges and ResourceQuotas: what pods get, who is refused, and what users see of it.

use crate::e2e::check::{Check, Suite};

const RANGE: &str = "apiVersion: v1
kind: LimitRange
metadata: {name: small}
spec:
  limits:
  - type: Container
    max: {cpu: 500m}
    default: {cpu: 200m}
    defaultRequest: {cpu: 100m}
";

fn pod(name: &str, cpu: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: limited}}
spec:
  schedulingGates: [{{name: example.com/never}}]
  containers: [{{name: c, image: busybox, resources: {{limits: {{cpu: {cpu}}}}}}}]
"
    )
}

/// The checks.
pub(super) fn checks(suite: &mut Suite) {
    suite.check("a namespace", Check::new("create namespace limited").out("created"));
    ranges(suite);
    quotas(suite);
    let gone = Check::new("delete namespace limited").out("deleted").within(60);
    suite.check("the namespace goes", gone);
}

fn ranges(suite: &mut Suite) {
    let create = Check::new("create -n limited -f -").stdin(RANGE);
    suite.check("a range", create.out_is("limitrange/small created"));
    let list = Check::new("get limits -n limited").out("NAME    CREATED AT").out("small   20");
    suite.check("a table of ranges", list);
    let describe = Check::new("describe limits -n limited")
        .out("Type        Resource  Min  Max   Default Request  Default Limit  Max Limit/Request")
        .out("Container   cpu       -    500m  100m             200m           -");
    suite.check("describe a range", describe);
    let filled = pod("filled", "100m").replace(", resources: {limits: {cpu: 100m}}", "");
    suite.check("a pod that says nothing", Check::new("create -f -").stdin(&filled).out("created"));
    let note = Check::new("get pod filled -n limited -o jsonpath={.metadata.annotations}")
        .out("LimitRanger plugin set: cpu request for container c; cpu limit for container c");
    suite.check("it got something", note);
    let refused = Check::new("create -f -").stdin(&pod("large", "1")).code(1);
    let why =
        "pods \"large\" is forbidden: maximum cpu usage per Container is 500m, but limit is 1";
    suite.check("a pod that is too large is refused", refused.err(why));
}

fn quotas(suite: &mut Suite) {
    let create = Check::new("create quota few -n limited --hard=pods=2,limits.cpu=1");
    suite.check("a quota", create.out_is("resourcequota/few created"));
    let list = Check::new("get quota -n limited")
        .out("NAME   REQUEST     LIMIT                AGE")
        .out("few    pods: 1/2   limits.cpu: 200m/1   ");
    suite.check("a table of quotas", list.within(10));
    let second = Check::new("create -f -").stdin(&pod("second", "300m")).out("created");
    suite.check("there is room", second);
    let describe = Check::new("describe quota few -n limited")
        .out("Resource    Used  Hard")
        .out("limits.cpu  500m  1")
        .out("pods        2     2");
    suite.check("describe a quota", describe);
    let namespace =
        Check::new("describe namespace limited").out("Resource Quotas").out("Resource Limits");
    suite.check("describe the namespace", namespace);
    let refused = Check::new("create -f -").stdin(&pod("third", "100m")).code(1);
    let why = "pods \"third\" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2, \
               limited: pods=2";
    suite.check("there is none", refused.err(why));
    suite.check("one goes", Check::new("delete pod second -n limited --now").out("deleted"));
    let third = Check::new("create -f -").stdin(&pod("third", "100m")).out("created").within(10);
    suite.check("what was used is given back", third);
    let scoped = "create quota best -n limited --hard=pods=1 --scopes=BestEffort";
    suite.check("a quota with a scope", Check::new(scoped).out("created"));
}
