//! Restarts of JobSets: on the embedded cluster; and on a real one, where `LOCKSTEP_OPERATOR_PID`
//! names the operator, for `cargo xtask bench jobset-kubernetes`.

mod restart;

use tokio::runtime::Runtime;

use crate::Wanted;
use crate::report::Report;

/// Measures the sizes that are wanted.
pub(crate) fn measure(report: &mut Report, wanted: &Wanted, runtime: &Runtime) {
    let operator = std::env::var("LOCKSTEP_OPERATOR_PID").ok().map(|pid| pid.parse().unwrap());
    for size in [1_000, 5_000, 15_000, 50_000] {
        if !wanted.has(&size.to_string()) {
            continue;
        }
        match operator {
            None => runtime.block_on(restart::embedded(report, size)),
            Some(pid) => runtime.block_on(restart::operator(report, size, pid)),
        }
    }
}
