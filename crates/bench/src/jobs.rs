//! Jobs on the embedded cluster.

mod limited;
mod policy;
mod scale;

use tokio::runtime::Runtime;

use crate::Wanted;
use crate::report::Report;

/// Measures the parts that are wanted: policy, scale or one of its sizes, limited.
pub(crate) fn measure(report: &mut Report, wanted: &Wanted, runtime: &Runtime) {
    if wanted.has("policy") {
        policy::measure(report);
    }
    for size in [1_000, 10_000, 50_000] {
        if wanted.has("scale") || wanted.has(&size.to_string()) {
            runtime.block_on(scale::measure(report, size));
        }
    }
    scale::compare(report);
    if wanted.has("limited") {
        runtime.block_on(limited::measure(report));
    }
}
