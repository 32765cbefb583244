//! Queues: the shapes of Kueue's own performance tests, on the embedded cluster with its queue
//! controller, in-process and over HTTP; and what the planner costs on its own.

mod books;
mod course;
mod cycle;
mod execute;
mod generate;
mod objects;
mod place;
mod run;
mod shape;
mod world;

use tokio::runtime::Runtime;

use crate::Wanted;
use crate::report::Report;
use place::Way;
use shape::Shape;

/// Measures the parts that are wanted: at-once, baseline, large, cycle, and limited, which takes
/// six minutes and is wanted by name only. `in-process` or `http` leaves the other way out, and a
/// number divides the load, to try things out.
pub(crate) fn measure(report: &mut Report, wanted: &Wanted, runtime: &Runtime) {
    let divisor = wanted.0.iter().find_map(|word| word.parse().ok()).unwrap_or(1);
    let is_way = |word: &str| word == "in-process" || word == "http";
    let words = || wanted.0.iter().filter(|word| word.parse::<usize>().is_err());
    let ways = Wanted(words().filter(|word| is_way(word)).cloned().collect());
    let parts = Wanted(words().filter(|word| !is_way(word)).cloned().collect());
    if parts.has("cycle") {
        cycle::measure(report, divisor);
        for shape in [Shape::at_once(), Shape::baseline(), Shape::large()] {
            course::measure(report, &shape.divided(divisor));
        }
    }
    for (part, shape) in
        [("at-once", Shape::at_once()), ("baseline", Shape::baseline()), ("large", Shape::large())]
    {
        if !parts.has(part) {
            continue;
        }
        for (word, way) in [("in-process", Way::InProcess), ("http", Way::Http)] {
            if ways.has(word) {
                run::measure(report, runtime, &shape.divided(divisor), way);
            }
        }
    }
    if parts.0.iter().any(|part| part == "limited") {
        run::measure(report, runtime, &Shape::baseline().divided(divisor), Way::Limited);
    }
}
