//! What pods and the node use: `kubectl top`.

use super::pod;
use crate::e2e::check::{Check, Suite};

/// Check 64.
pub(super) fn checks(suite: &mut Suite) {
    let busy = pod("busy", "while :; do :; done");
    suite.check("64 a pod that works", Check::new("apply -f -").stdin(&busy).out("created"));
    let ready = Check::new("wait --for=condition=Ready pod/busy --timeout=30s");
    suite.check("64 it runs", ready.out("condition met"));
    suite.prove("64 top pod has its work", |suite| {
        let said = suite.ask("top pod busy --no-headers");
        // busy   998m   1Mi
        let cores = said.out.split_whitespace().nth(1).and_then(|cores| cores.strip_suffix('m'));
        let cores: Option<u32> = cores.and_then(|cores| cores.parse().ok());
        // On a busy machine it gets a part of one core; it has never more.
        match cores {
            Some(20..=1100) => Ok(()),
            _ => Err(format!("{said:?}")),
        }
    });
    let containers = Check::new("top pod --containers").out("main").out("busy");
    suite.check("64 top pod --containers", containers);
    let none = Check::new("top pod -l app=nobody").err("No resources found");
    suite.check("64 top pod by label", none);
    let node = Check::new("top node").out("CPU(cores)").out("%");
    suite.check("64 top node", node);
    let nobody = Check::new("top pod nobody").code(1).err("not found");
    suite.check("64 top of nobody", nobody);
    let gone = Check::new("delete pod busy --grace-period=0 --force").out("deleted");
    suite.check("64 clean up", gone);
}
