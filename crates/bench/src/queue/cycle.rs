//! What one admission cycle costs by how many wait, without an API.

use std::time::Duration;

use super::shape::{Shape, count};
use super::world::World;
use crate::report::{Budget, Report, median};

/// How many cycles are measured at each size.
const CYCLES: usize = 600;

/// With fewer, not everybody has somebody like it that waits as well.
const PENDING_MIN: usize = 600;

/// Measures the sizes: one workload finishes and one is admitted in each cycle.
pub(super) fn measure(report: &mut Report, divisor: usize) {
    let mut costs = Vec::new();
    for size in [1_000, 10_000, 50_000] {
        let pending = (size / divisor).max(PENDING_MIN);
        let Cost { cycle, around, visited } = cost(pending);
        let name = format!("cycle, {pending} pending");
        report.add(&format!("{name}: CPU, median"), cycle, "µs", Budget::None);
        let what = format!("{name}: CPU to hear of what leads to it and follows, median");
        report.add(&what, around, "µs", Budget::None);
        report.add(&format!("{name}: workloads visited"), visited, "", Budget::None);
        costs.push(cycle);
    }
    let ratio = costs[2] / costs[0];
    let budget = if divisor == 1 { Budget::AtMost(1.5) } else { Budget::None };
    report.add("cycle: CPU at the most pending over that at the fewest", ratio, "x", budget);
}

/// What a cycle costs, in microseconds, and how many it looks at on average.
struct Cost {
    cycle: f64,
    around: f64,
    visited: f64,
}

fn cost(pending: usize) -> Cost {
    let shape = Shape::baseline();
    let large = shape.classes[2];
    let queues = shape.all_queues();
    let mut world = World::new(&queues);
    // Each queue runs what it has quota for. Everybody else waits, seven small ones and two medium
    // ones for each large one, as in the baseline.
    for queue in &queues {
        world.add(queue, &large, 2);
    }
    world.settle();
    let mut running: Vec<String> = queues.iter().map(|queue| world.holder(queue)).collect();
    let sets = [0, 0, 0, 0, 0, 0, 0, 1, 1, 2];
    for nth in 0..pending {
        let (set, queue) = (sets[nth % 10], &queues[nth / 10 % queues.len()]);
        world.add(queue, &shape.classes[set], set);
    }
    world.settle();
    world.heard = 0.0;
    let (mut cycles, mut rest, mut visited) = (Vec::new(), Vec::new(), 0);
    for nth in 0..CYCLES {
        let at = nth % queues.len();
        world.now += Duration::from_millis(10);
        world.finish(&running[at]);
        world.add(&queues[at], &large, 2);
        let decided = world.cycle();
        cycles.push(decided.micros);
        visited += decided.visited;
        let admitted = decided.admitted;
        let [admitted] = admitted.as_slice() else { panic!("not one was admitted: {admitted:?}") };
        running[at].clone_from(admitted);
        rest.push(std::mem::take(&mut world.heard));
    }
    let visited = count(visited) / count(CYCLES);
    Cost { cycle: median(cycles), around: median(rest), visited }
}
