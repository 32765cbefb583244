//! The one-machine cluster.

mod objects;
mod process;
mod watches;
mod writes;

use crate::Wanted;
use crate::report::Report;

/// Measures the parts that are wanted: start, writes, watches, pods, objects.
pub(crate) async fn measure(report: &mut Report, wanted: &Wanted) {
    if wanted.has("start") {
        process::starts(report);
    }
    if wanted.has("writes") {
        writes::measure(report).await;
    }
    if wanted.has("watches") {
        watches::measure(report).await;
    }
    if wanted.has("pods") {
        process::pods(report).await;
    }
    if wanted.has("objects") {
        objects::measure(report).await;
    }
}
