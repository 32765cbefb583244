//! A shape as it would go if an API took no time: what the planner itself needs for it, and the
//! best that its decisions allow, whatever machine they are made on.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use jiff::Timestamp;

use super::objects;
use super::shape::{NOMINAL, Queue, Shape, count};
use super::world::World;
use crate::report::{Budget, Report};

/// Something that happens at a time.
enum Event {
    /// A workload of a queue and a class comes.
    Arrival(usize, usize),
    /// One has run, if it still is what was admitted then: it is the so many-th admission.
    End(String, usize),
}

/// Plays a shape, and tells what came of it.
pub(super) fn measure(report: &mut Report, shape: &Shape) {
    let queues = shape.all_queues();
    let mut course = Course::new(shape, &queues);
    while let Some(((at, _), event)) = course.due.pop_first() {
        course.go_to(at);
        course.happen(event);
        // What happens at the same time is decided about together.
        if course.due.first_key_value().is_none_or(|((next, _), _)| *next > at) {
            course.decide();
        }
    }
    let Course { admissions, evictions, finished, visited, cycles, .. } = course;
    assert_eq!(finished, shape.workloads(), "nothing happens any more");
    let wall = Duration::try_from(course.world.now.duration_since(course.started)).unwrap();
    let wall = wall.as_secs_f64();
    let name = format!("planner alone, {}, {} workloads", shape.name, shape.workloads());
    if wall > 0.0 {
        let cores = count(queues.len()) * count(usize::try_from(NOMINAL).unwrap());
        let usage = 100.0 * course.core_seconds / (cores * wall);
        report.add(&format!("{name}: until all have finished"), wall, "s", Budget::None);
        report.add(&format!("{name}: quota in use"), usage, "%", Budget::None);
    }
    report.add(&format!("{name}: evictions"), count(evictions), "", Budget::None);
    let each = 1.0 / count(admissions);
    report.add(&format!("{name}: CPU of cycles per admission"), cycles * each, "µs", Budget::None);
    let heard = course.world.heard * each;
    report.add(&format!("{name}: CPU beside cycles per admission"), heard, "µs", Budget::None);
    let longest = course.longest / 1000.0;
    report.add(&format!("{name}: longest cycle"), longest, "ms", Budget::None);
    let visited = count(visited) * each;
    report.add(&format!("{name}: visited per admission"), visited, "", Budget::None);
}

struct Course<'a> {
    shape: &'a Shape,
    queues: &'a [Queue],
    world: World,
    started: Timestamp,
    /// By time, and in the order in which they came up.
    due: BTreeMap<(Timestamp, usize), Event>,
    events: usize,
    /// The last admission of those that run.
    running: HashMap<String, usize>,
    used: i64,
    core_seconds: f64,
    admissions: usize,
    evictions: usize,
    finished: usize,
    visited: usize,
    /// Microseconds of all cycles, and of the longest.
    cycles: f64,
    longest: f64,
}

impl<'a> Course<'a> {
    fn new(shape: &'a Shape, queues: &'a [Queue]) -> Self {
        let world = World::new(queues);
        let mut course = Self {
            shape,
            queues,
            started: world.now,
            world,
            due: BTreeMap::new(),
            events: 0,
            running: HashMap::new(),
            used: 0,
            core_seconds: 0.0,
            admissions: 0,
            evictions: 0,
            finished: 0,
            visited: 0,
            cycles: 0.0,
            longest: 0.0,
        };
        for queue in 0..queues.len() {
            for (set, class) in shape.classes.iter().enumerate() {
                for nth in 1..=u32::try_from(class.count).unwrap() {
                    course.later(class.every * nth, Event::Arrival(queue, set));
                }
            }
        }
        course
    }

    fn later(&mut self, delay: Duration, event: Event) {
        self.events += 1;
        self.due.insert((self.world.now + delay, self.events), event);
    }

    fn go_to(&mut self, at: Timestamp) {
        let passed = Duration::try_from(at.duration_since(self.world.now)).unwrap_or_default();
        let used = count(usize::try_from(self.used).unwrap());
        self.core_seconds += used * passed.as_secs_f64();
        self.world.now = at;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrival(queue, set) => {
                self.world.add(&self.queues[queue], &self.shape.classes[set], set);
            }
            Event::End(key, admission) if self.running.get(&key) == Some(&admission) => {
                self.running.remove(&key);
                self.used -= objects::held(self.world.get(&key));
                self.finished += 1;
                self.world.finish(&key);
            }
            Event::End(..) => {}
        }
    }

    /// Decides until there is nothing more to decide now.
    fn decide(&mut self) {
        loop {
            let decided = self.world.cycle();
            self.visited += decided.visited;
            self.cycles += decided.micros;
            self.longest = self.longest.max(decided.micros);
            for key in decided.admitted {
                self.admissions += 1;
                self.used += objects::held(self.world.get(&key));
                self.running.insert(key.clone(), self.admissions);
                let runs = objects::runs_for(self.world.get(&key));
                self.later(runs, Event::End(key, self.admissions));
            }
            for key in decided.evicted {
                self.evictions += 1;
                self.used -= objects::held(self.world.get(&key));
                self.running.remove(&key);
                self.world.release(&key);
            }
            if !decided.is_anything {
                return;
            }
        }
    }
}
