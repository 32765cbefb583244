//! How much it costs to try those again that did not fit.

use jiff::SignedDuration;

use super::*;

/// A queue `q` in whose cohort so many of different priorities wait for three gpus each, and where
/// `hog` and `one` to `four`, one gpu each, hold all there is. So many strict queues share with it,
/// each with one that waits for what it has lent.
fn crowd(shapes: i32, strict: usize) -> World {
    let cohort = json!({"cohortName": "c"});
    let is_strict = json!({"cohortName": "c", "queueingStrategy": "StrictFIFO"});
    let names: Vec<String> = (0..strict).map(|at| format!("s{at:02}")).collect();
    let mut queues = vec![("q", gpus(9, cohort))];
    queues.extend(names.iter().map(|name| (name.as_str(), gpus(4, is_strict.clone()))));
    let mut world = World::new(&queues);
    let all = 9 + 4 * i64::try_from(strict).unwrap();
    world.add("hog", "q", all - 4, shapes, 0);
    for name in ["one", "two", "three", "four"] {
        world.add(name, "q", 1, shapes, 1);
    }
    world.run();
    for at in 0..shapes {
        world.add(&format!("w{at:04}"), "q", 3, at, 2);
    }
    for name in &names {
        world.add(&format!("in-{name}"), name, 4, 0, 3);
    }
    world
}

/// Runs cycles until there is nothing to do now; how many were looked at.
fn visits(world: &mut World) -> usize {
    let mut visited = 0;
    for _ in 0..1_000 {
        let due = world.queues.next_due_after_statuses(world.now);
        if due.is_none_or(|due| due > world.now) {
            return visited;
        }
        let cycle = world.cycle();
        visited += cycle.visited;
        for decision in &cycle.decisions {
            world.carry_out(decision.write());
        }
    }
    panic!("no rest");
}

fn later(world: &mut World, millis: i64) {
    world.now = world.now.checked_add(SignedDuration::from_millis(millis)).unwrap();
}

#[test]
fn shapes_and_blocked_queues_add_up_and_do_not_multiply() {
    let mut world = crowd(50, 20);
    visits(&mut world);
    world.finish("one");
    let visited = visits(&mut world);
    assert!((70..=100).contains(&visited), "{visited}");
}

#[test]
fn a_cycle_looks_at_a_bounded_number() {
    let mut world = crowd(2_500, 0);
    let first = world.cycle();
    assert!(first.visited <= 1_001, "{}", first.visited);
    assert_eq!(world.queues.next_due(), Some(Timestamp::MIN), "there is more to do");
    for decision in &first.decisions {
        world.carry_out(decision.write());
    }
    assert_eq!(first.visited + visits(&mut world), 2_500);
}

#[test]
fn who_comes_last_is_tried_however_often_others_end() {
    let mut world = crowd(2_500, 0);
    visits(&mut world);
    world.add("last", "q", 2, -1, 4);
    visits(&mut world);
    later(&mut world, 5_000);
    // Two are free, which is enough for the last alone.
    world.finish("one");
    world.finish("two");
    for _ in 0..4 {
        // Everybody is to be tried again, before everybody has been.
        world.change("hog", |workload| {
            workload.spec.priority = workload.spec.priority.map(|it| it + 1);
        });
        for decision in world.cycle().decisions {
            world.carry_out(decision.write());
        }
        later(&mut world, 10);
    }
    assert!(world.holding().contains("last"), "{:?}", world.holding());
}

// rule: queueing 4.1.2
#[test]
fn many_shapes_are_tried_again_after_a_pause_and_few_at_once() {
    // So many shapes; for how many milliseconds they are left alone after they were tried.
    for (shapes, pause) in [(50, 0), (200, 200), (1_500, 1_000)] {
        let count = usize::try_from(shapes).unwrap();
        let mut world = crowd(shapes, 1);
        visits(&mut world);
        later(&mut world, 5_000);
        let start = world.now;
        world.finish("one");
        let visited = visits(&mut world);
        assert!((count..=count + 10).contains(&visited), "{shapes}: at once after a rest");
        later(&mut world, 1);
        world.finish("two");
        let visited = visits(&mut world);
        if pause == 0 {
            assert!(visited >= count, "{shapes}: {visited}");
            continue;
        }
        assert!((1..=10).contains(&visited), "the strict queue is tried at once: {visited}");
        later(&mut world, pause - 2);
        assert!(visits(&mut world) <= 10, "{shapes}: not yet");
        let due = world.queues.next_due_after_statuses(world.now).unwrap();
        assert!(due.duration_since(start).as_millis() <= i128::from(pause), "{shapes}");
        later(&mut world, 1);
        assert!(visits(&mut world) >= count, "{shapes}");
    }
}
