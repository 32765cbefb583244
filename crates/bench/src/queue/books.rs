//! What was seen of the workloads of a run: who was admitted when, what is used, and whether it is
//! as it must be.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockstep_api::kueue::Workload;
use lockstep_api::reasons::kueue::workload as kinds;

use super::generate::Births;
use super::objects::{self, held, is_true};
use super::shape::{BORROWING, NOMINAL, Shape, count};

/// Everything that was seen. Changes come in the order in which they were made, so that the sums
/// are those of the API at each moment.
pub(super) struct Books {
    started: Instant,
    births: Births,
    workloads: usize,
    known: HashMap<String, Record>,
    queues: HashMap<String, Use>,
    cohorts: Vec<i64>,
    cohort_quota: i64,
    /// While everything is told again, the order is not that of the changes.
    is_listing: bool,
    area: Area,
    pub(super) finished: usize,
    pub(super) evictions: usize,
    pub(super) admissions: usize,
    pub(super) last_admission: Instant,
    pub(super) last_finish: Instant,
}

/// What one queue uses.
struct Use {
    cohort: usize,
    used: i64,
}

/// What is used in all, and for how long it was.
struct Area {
    used: i64,
    since: Instant,
    core_seconds: f64,
}

/// One workload.
pub(super) struct Record {
    pub(super) object: Arc<Workload>,
    admitted: Option<Instant>,
    /// How long it waited for the last admission.
    waited: Option<Duration>,
    held: i64,
    is_finished: bool,
}

/// What is to be done about a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Todo {
    Nothing,
    /// It runs until then.
    Finish(Instant),
    /// It has to stop and to give back what it holds.
    Release,
}

impl Books {
    pub(super) fn new(shape: &Shape, births: &Births, started: Instant) -> Self {
        let queues = shape.all_queues().into_iter();
        Self {
            started,
            births: Arc::clone(births),
            workloads: shape.workloads(),
            known: HashMap::new(),
            queues: queues.map(|it| (it.name, Use { cohort: it.cohort, used: 0 })).collect(),
            cohorts: vec![0; shape.cohorts],
            cohort_quota: shape.cohort_quota(),
            is_listing: true,
            area: Area { used: 0, since: started, core_seconds: 0.0 },
            finished: 0,
            evictions: 0,
            admissions: 0,
            last_admission: started,
            last_finish: started,
        }
    }

    /// Everything is told, or told again.
    pub(super) fn listing(&mut self) {
        self.is_listing = true;
    }

    /// Everything was told.
    pub(super) fn listed(&mut self) {
        self.is_listing = false;
        for queue in self.queues.keys() {
            self.check(queue);
        }
    }

    /// Whether all workloads have finished.
    pub(super) fn is_over(&self) -> bool {
        self.finished == self.workloads
    }

    pub(super) fn get(&self, key: &str) -> &Record {
        &self.known[key]
    }

    /// Notes a version of a workload.
    pub(super) fn seen(&mut self, workload: Arc<Workload>, at: Instant) {
        let key = objects::key(&workload);
        let queue = workload.metadata.namespace.clone().unwrap();
        let held = held(&workload);
        let record = self.known.entry(key.clone()).or_insert_with(|| Record {
            object: Arc::clone(&workload),
            admitted: None,
            waited: None,
            held: 0,
            is_finished: false,
        });
        let was_evicted = is_true(&record.object, kinds::EVICTED);
        let is_evicted = is_true(&workload, kinds::EVICTED);
        let is_finished = is_true(&workload, kinds::FINISHED);
        assert!(is_finished || !record.is_finished, "{key} had finished: {workload:#?}");
        assert!(!record.is_finished || was_evicted || !is_evicted, "{key} was evicted at its end");
        let more = held - std::mem::replace(&mut record.held, held);
        record.object = Arc::clone(&workload);
        if is_finished && !std::mem::replace(&mut record.is_finished, true) {
            self.finished += 1;
            self.last_finish = at;
        }
        self.evictions += usize::from(is_evicted && !was_evicted);
        let is_admitted = is_true(&workload, kinds::ADMITTED);
        if !is_admitted {
            record.admitted = None;
        } else if record.admitted.is_none() {
            record.admitted = Some(at);
            let born = self.births.lock().unwrap()[&key];
            record.waited = Some(at.saturating_duration_since(born.max(self.started)));
            self.admissions += 1;
            self.last_admission = at;
        }
        if more != 0 {
            self.use_more(&queue, more, at);
        }
    }

    fn use_more(&mut self, queue: &str, more: i64, at: Instant) {
        self.area.change(more, at);
        let own = self.queues.get_mut(queue).unwrap();
        own.used += more;
        self.cohorts[own.cohort] += more;
        if !self.is_listing {
            self.check(queue);
        }
    }

    /// Nothing is admitted beyond what there is.
    fn check(&self, queue: &str) {
        let &Use { cohort, used } = &self.queues[queue];
        assert!(used <= NOMINAL + BORROWING, "{queue} uses {used}");
        let (shared, quota) = (self.cohorts[cohort], self.cohort_quota);
        assert!(shared <= quota, "cohort {cohort} uses {shared} of {quota}");
    }

    /// What is to be done about a workload.
    pub(super) fn todo(&self, key: &str) -> Todo {
        let record = &self.known[key];
        let workload = &record.object;
        match record.admitted {
            _ if record.is_finished => Todo::Nothing,
            None => Todo::Nothing,
            Some(_) if is_true(workload, kinds::EVICTED) => Todo::Release,
            Some(at) => Todo::Finish(at + objects::runs_for(workload)),
        }
    }

    /// What the end must be like.
    pub(super) fn assert_over(&self) {
        assert_eq!(self.known.len(), self.workloads);
        assert!(self.is_over() && self.known.values().all(|it| it.is_finished && it.held == 0));
        assert_eq!(self.area.used, 0, "all have finished, and yet this much is used");
    }

    /// How much of what there is was used, in percent.
    pub(super) fn usage(&self) -> f64 {
        let cores = count(self.queues.len()) * count(usize::try_from(NOMINAL).unwrap());
        let seconds = self.last_finish.duration_since(self.started).as_secs_f64();
        100.0 * self.area.core_seconds / (cores * seconds)
    }

    /// How long the workloads of each class waited to be admitted, in milliseconds.
    pub(super) fn waits(&self) -> BTreeMap<String, Vec<f64>> {
        let mut waits = BTreeMap::<String, Vec<f64>>::new();
        for record in self.known.values() {
            let waited = record.waited.unwrap().as_secs_f64() * 1000.0;
            let class = objects::class_of(&record.object).to_owned();
            waits.entry(class).or_default().push(waited);
        }
        waits
    }

    /// Some of those that have not finished.
    pub(super) fn unfinished(&self) -> Vec<&Workload> {
        let left = self.known.values().filter(|record| !record.is_finished);
        left.take(3).map(|record| &*record.object).collect()
    }
}

impl Area {
    fn change(&mut self, more: i64, at: Instant) {
        let used = count(usize::try_from(self.used.max(0)).unwrap());
        self.core_seconds += used * at.saturating_duration_since(self.since).as_secs_f64();
        (self.used, self.since) = (self.used + more, at);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The books of a run of one queue of 20 cores, and a workload of 20 that is admitted, or not,
    /// with these conditions.
    fn books() -> Books {
        let shape = Shape { cohorts: 1, queues: 1, ..Shape::baseline() };
        let mut books = Books::new(&shape, &Births::default(), Instant::now());
        books.listed();
        books
    }

    fn workload(books: &Books, nth: usize, conditions: &[&str]) -> Arc<Workload> {
        let shape = Shape::baseline();
        let mut workload = objects::workload("cq-0-0-cohort-0", &shape.classes[2], 2, nth);
        books.births.lock().unwrap().insert(objects::key(&workload), books.started);
        let conditions = conditions.iter().map(|kind| {
            json!({"type": kind, "status": "True", "reason": "R", "message": "",
                   "lastTransitionTime": "2026-01-01T00:00:00Z"})
        });
        let assignment = json!({"name": "main", "resourceUsage": {"cpu": "20"}});
        let status = json!({
            "conditions": conditions.collect::<Vec<_>>(),
            "admission": {"clusterQueue": "cq", "podSetAssignments": [assignment]},
        });
        workload.status = Some(serde_json::from_value(status).unwrap());
        Arc::new(workload)
    }

    #[test]
    fn a_workload_runs_stops_when_it_is_evicted_and_ends_once() {
        let mut books = books();
        let at = books.started + Duration::from_secs(1);
        let key = objects::key(&workload(&books, 0, &[]));
        let mut look = |conditions: &[&str]| {
            books.seen(workload(&books, 0, conditions), at);
            (books.todo(&key), books.area.used, books.finished, books.evictions)
        };
        let (reserved, admitted) = ("QuotaReserved", "Admitted");
        assert_eq!(look(&[]), (Todo::Nothing, 0, 0, 0));
        let end = Todo::Finish(at + Duration::from_secs(1));
        assert_eq!(look(&[reserved, admitted]), (end, 20, 0, 0));
        assert_eq!(look(&[reserved, admitted, "Evicted"]), (Todo::Release, 20, 0, 1));
        assert_eq!(look(&["Evicted"]), (Todo::Nothing, 0, 0, 1));
        assert_eq!(look(&[reserved, admitted]), (end, 20, 0, 1));
        assert_eq!(look(&[reserved, admitted, "Finished"]), (Todo::Nothing, 0, 1, 1));
        assert_eq!((books.admissions, books.waits()["large"].len()), (2, 1));
    }

    #[test]
    #[should_panic(expected = "cohort 0 uses 40 of 20")]
    fn more_than_there_is_does_not_go_unnoticed() {
        let mut books = books();
        for nth in 0..2 {
            books.seen(workload(&books, nth, &["QuotaReserved"]), books.started);
        }
    }

    #[test]
    #[should_panic(expected = "had finished")]
    fn a_second_life_does_not_go_unnoticed() {
        let mut books = books();
        books.seen(workload(&books, 0, &["Finished"]), books.started);
        books.seen(workload(&books, 0, &["QuotaReserved"]), books.started);
    }
}
