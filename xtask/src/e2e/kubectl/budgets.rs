//! PodDisruptionBudgets: a drain waits for what they guard.

use super::pod;
use crate::e2e::check::{Check, Suite};

/// The checks.
pub(super) fn checks(suite: &mut Suite) {
    let create = Check::new("create pdb guard --selector=app=guarded --min-available=1");
    suite.check("a budget", create.out_is("poddisruptionbudget.policy/guard created"));
    let guarded = Check::new("apply -f -").stdin(&pod("guarded", "exec sleep 1000"));
    suite.check("a pod that it is over", guarded.out("created"));
    let ready = Check::new("wait pod/guarded --for=condition=Ready --timeout=30s");
    suite.check("it is ready", ready.out("condition met"));
    let healthy = Check::new("get pdb guard -o jsonpath={.status.currentHealthy}").out_is("1");
    suite.check("it is counted", healthy.within(10));
    let table = Check::new("get pdb guard")
        .out("NAME    MIN AVAILABLE   MAX UNAVAILABLE   ALLOWED DISRUPTIONS   AGE")
        .out("guard   1               N/A               0                     ");
    suite.check("a table of budgets", table);
    let described = Check::new("describe pdb guard")
        .out("Allowed disruptions:  0")
        .out("Current:              1")
        .out("Desired:              1");
    suite.check("describe a budget", described);
    let node = suite.ask("get nodes -o jsonpath={.items[0].metadata.name}").out;
    let drain = |seconds: u32| {
        Check::new(&format!("drain {node} --force --pod-selector=app=guarded --timeout={seconds}s"))
    };
    let why = "Cannot evict pod as it would violate the pod's disruption budget.";
    suite.check("a drain waits for it", drain(3).code(1).err(why));
    let stays = Check::new("get pod guarded -o jsonpath={.metadata.deletionTimestamp}").out_is("");
    suite.check("the pod stays", stays);
    let fewer = Check::new(r#"patch pdb guard --type=merge -p '{"spec":{"minAvailable":0}}'"#);
    suite.check("it may go", fewer.out("patched"));
    suite.check("then it is driven off", drain(60).out("drained"));
    suite.check("it has gone", Check::new("get pod guarded").code(1).err("not found"));
    suite.check("uncordon", Check::new(&format!("uncordon {node}")).out("uncordoned"));
    let gone = Check::new("delete pdb guard").out("\"guard\" deleted");
    suite.check("the budget goes", gone);
}
