//! What is asked of the queues.

use std::time::Duration;

/// What each ClusterQueue has, and how much it may borrow.
pub(super) const NOMINAL: i64 = 20;
pub(super) const BORROWING: i64 = 100;

/// Queues in cohorts, and what each of them gets to do.
#[derive(Clone)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) cohorts: usize,
    /// ClusterQueues in each cohort.
    pub(super) queues: usize,
    pub(super) classes: [Class; 3],
    /// Whether it is all of what was promised something for.
    pub(super) is_whole: bool,
}

/// Workloads that are alike.
#[derive(Clone, Copy)]
pub(super) struct Class {
    pub(super) name: &'static str,
    /// How many each queue gets, and how far apart they are.
    pub(super) count: usize,
    pub(super) every: Duration,
    pub(super) runs: Duration,
    pub(super) priority: i32,
    pub(super) cpus: i64,
}

/// A ClusterQueue. Its namespace and its LocalQueue have the same name.
pub(super) struct Queue {
    pub(super) name: String,
    pub(super) cohort: usize,
}

impl Shape {
    /// 15,000 workloads over 30 queues within a minute.
    pub(super) fn baseline() -> Self {
        let small = class("small", 350, (100, 200), (50, 1));
        let medium = class("medium", 100, (500, 500), (100, 5));
        let large = class("large", 50, (1_200, 1_000), (200, 20));
        let classes = [small, medium, large];
        Self { name: "baseline", cohorts: 5, queues: 6, classes, is_whole: true }
    }

    /// 50,000 workloads over 1,000 queues within seconds.
    pub(super) fn large() -> Self {
        let small = class("small", 35, (60, 150), (50, 1));
        let medium = class("medium", 11, (300, 350), (100, 5));
        let large = class("large", 4, (700, 700), (200, 20));
        let classes = [small, medium, large];
        Self { name: "large scale", cohorts: 10, queues: 100, classes, is_whole: true }
    }

    /// The baseline, all there from the start, and over as soon as it is admitted.
    pub(super) fn at_once() -> Self {
        let mut shape = Self { name: "at once", ..Self::baseline() };
        for class in &mut shape.classes {
            (class.every, class.runs) = (Duration::ZERO, Duration::ZERO);
        }
        shape
    }

    /// About so many times less of it: first of each class, then fewer queues.
    pub(super) fn divided(&self, by: usize) -> Self {
        let smallest = self.classes.iter().map(|class| class.count).min().unwrap_or(1);
        let by_count = by.clamp(1, smallest);
        let mut shape = Self { is_whole: by == 1, ..self.clone() };
        for class in &mut shape.classes {
            class.count /= by_count;
        }
        shape.queues = (self.queues * by_count / by.max(1)).max(1);
        shape
    }

    pub(super) fn is_at_once(&self) -> bool {
        self.classes.iter().all(|class| class.every.is_zero())
    }

    pub(super) fn all_queues(&self) -> Vec<Queue> {
        let cohorts = 0..self.cohorts;
        let queue = |cohort, nth| Queue { name: format!("cq-0-{nth}-cohort-{cohort}"), cohort };
        cohorts.flat_map(|cohort| (0..self.queues).map(move |nth| queue(cohort, nth))).collect()
    }

    /// How many workloads there are.
    pub(super) fn workloads(&self) -> usize {
        let of_queue: usize = self.classes.iter().map(|class| class.count).sum();
        self.cohorts * self.queues * of_queue
    }

    /// What the queues of one cohort have together.
    pub(super) fn cohort_quota(&self) -> i64 {
        NOMINAL * i64::try_from(self.queues).unwrap()
    }

    /// The seconds that all of it takes if no quota is ever idle.
    pub(super) fn floor(&self) -> f64 {
        let of_queue: f64 = self.classes.iter().map(Class::cpu_seconds).sum();
        of_queue / count(usize::try_from(NOMINAL).unwrap())
    }
}

impl Class {
    fn cpu_seconds(&self) -> f64 {
        let cpus = count(usize::try_from(self.cpus).unwrap());
        count(self.count) * cpus * self.runs.as_secs_f64()
    }
}

/// A class whose members come and run for so many milliseconds.
fn class(
    name: &'static str,
    count: usize,
    (every, runs): (u64, u64),
    (priority, cpus): (i32, i64),
) -> Class {
    let (every, runs) = (Duration::from_millis(every), Duration::from_millis(runs));
    Class { name, count, every, runs, priority, cpus }
}

/// A number of things as a figure.
pub(super) fn count(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_those_of_the_specification() {
        let shapes = [Shape::baseline(), Shape::large(), Shape::at_once()];
        let sizes = shapes.each_ref().map(|it| (it.all_queues().len(), it.workloads()));
        assert_eq!(sizes, [(30, 15_000), (1_000, 50_000), (30, 15_000)]);
        assert!((Shape::baseline().floor() - 66.0).abs() < 1e-6);
        assert_eq!(Shape::baseline().cohort_quota(), 120);
    }

    #[test]
    fn a_part_of_a_shape_has_about_that_part_of_its_workloads() {
        for shape in [Shape::baseline(), Shape::large()] {
            let part = shape.divided(50);
            let ratio = count(shape.workloads()) / count(part.workloads());
            assert!((40.0..60.0).contains(&ratio), "{}: {ratio}", shape.name);
            assert!(!part.is_whole && shape.divided(1).is_whole);
        }
    }
}
