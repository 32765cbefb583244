//! What becomes of a note: an event of its own, one more of an event that was told before, or one
//! of a series that differ only in their message.
//!
//! Two limits keep an object that has much to tell from filling the cluster with events. Notes of
//! one kind about one object become one event once there were [`MESSAGES_MAX`] different messages.
//! And an event that goes on repeating is written less and less often, up to every
//! [`PACE_MAX`]; what happens in between is counted and written then, so that no count is lost.
//!
//! Events have an older form, with a count, and a newer one, with a series (see [`Reporter`]).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSeries, EventSource};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use serde_json::{Value, json};

use super::{Note, Reporter};

/// From this many different messages on, notes of one kind about one object become one event.
pub(super) const MESSAGES_MAX: usize = 10;

/// Messages count as a series when none of them is this much older than the next.
const SERIES_GAP: Duration = Duration::from_secs(600);

/// How often an event is written before it is written less often.
const WRITES_FREE: u32 = 5;

/// The first and the longest time between two writes of an event that goes on repeating.
const PACE_BASE: Duration = Duration::from_secs(1);
const PACE_MAX: Duration = Duration::from_secs(300);

/// How many events are remembered at least.
const REMEMBERED_MAX: usize = 4_096;

/// The longest message the API accepts.
pub(super) const MESSAGE_MAX: usize = 1024;

/// The longest name of an object, and how much of it a moment takes.
const NAME_MAX: usize = 253;
const MOMENT_LENGTH: usize = 17;

const COMBINED: &str = "(combined from similar events): ";

/// What makes two notes of one kind: the object, the part of it, the type and the reason.
type Kind = (String, String, bool, String);

/// What makes two notes the same event: their kind and, unless they are combined, the message.
pub(super) type Sameness = (Kind, Option<String>);

/// An event to write.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) same: Sameness,
    pub(super) event: Box<Event>,
    /// Whether it was written before.
    pub(super) is_repeated: bool,
}

impl Write {
    /// What has changed of an event that was written before.
    pub(super) fn patch(&self) -> Value {
        match &self.event.series {
            Some(series) => json!({"series": series}),
            None => json!({
                "count": self.event.count,
                "lastTimestamp": self.event.last_timestamp,
                "message": self.event.message,
            }),
        }
    }
}

/// Turns notes into writes. Of one event only one write is on its way at any time.
#[derive(Debug)]
pub(super) struct Correlator {
    reporter: Reporter,
    series: Recent<Kind, Series>,
    events: Recent<Sameness, Told>,
    due: BTreeSet<(Timestamp, Sameness)>,
}

#[derive(Clone, Debug)]
struct Series {
    messages: BTreeSet<String>,
    last_at: Timestamp,
}

#[derive(Clone, Debug)]
struct Told {
    event: Event,
    /// How often it happened, and when last.
    times: i32,
    last_at: Timestamp,
    writes: u32,
    /// When it may be written next.
    free_at: Timestamp,
    is_on_its_way: bool,
    is_behind: bool,
}

impl Correlator {
    pub(super) fn new(reporter: Reporter) -> Self {
        let (series, events) = (Recent::new(REMEMBERED_MAX), Recent::new(REMEMBERED_MAX));
        Self { reporter, series, events, due: BTreeSet::new() }
    }

    /// Takes a note; says what to write at once, if anything.
    pub(super) fn note(&mut self, note: Note, at: Timestamp) -> Option<Write> {
        let (same, message) = match self.reporter.action {
            None => self.same_message(&note, at),
            // What is said of another version of the object is another event.
            Some(_) => {
                let version = note.regarding.resource_version.as_deref().unwrap_or_default();
                let mut kind = kind_of(&note);
                kind.0 = format!("{}@{version}", kind.0);
                ((kind, None), note.message.clone())
            }
        };
        let reporter = &self.reporter;
        let told = self.events.entry(same.clone(), || Told {
            event: new_event(reporter, &note, at),
            times: 0,
            last_at: at,
            writes: 0,
            free_at: at,
            is_on_its_way: false,
            is_behind: false,
        });
        // What has been silent for long is told as if it had never repeated.
        if told.writes > 0 && at.duration_since(told.last_at).unsigned_abs() > SERIES_GAP {
            told.writes = 1;
        }
        told.happened(message, reporter.action.is_some(), at);
        if told.is_on_its_way || at < told.free_at {
            told.is_behind = true;
            if !told.is_on_its_way {
                self.due.insert((told.free_at, same));
            }
            return None;
        }
        self.due.remove(&(told.free_at, same.clone()));
        Some(told.write(same, at))
    }

    /// Says that a write has ended; whatever was noted meanwhile becomes due.
    pub(super) fn written(&mut self, same: &Sameness) {
        let Some(told) = self.events.get_mut(same) else { return };
        told.is_on_its_way = false;
        if told.is_behind {
            self.due.insert((told.free_at, same.clone()));
        }
    }

    /// When [`Correlator::take_due`] has something to give.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// What is to be written by now.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<Write> {
        let mut writes = Vec::new();
        while self.next_due().is_some_and(|at| at <= now) {
            let Some((_, same)) = self.due.pop_first() else { break };
            // One that was forgotten meanwhile had its last word.
            if let Some(told) = self.events.get_mut(&same)
                && !told.is_on_its_way
                && told.is_behind
            {
                writes.push(told.write(same, now));
            }
        }
        writes
    }

    /// What a note is the same event as when the message matters, and the message to tell.
    fn same_message(&mut self, note: &Note, at: Timestamp) -> (Sameness, String) {
        let kind = kind_of(note);
        let is_combined = self.joins_series(&kind, &note.message, at);
        let mut message = note.message.clone();
        if is_combined {
            message.insert_str(0, COMBINED);
        }
        cut(&mut message);
        ((kind, (!is_combined).then(|| message.clone())), message)
    }

    /// Whether a message is one too many of its kind to have an event of its own.
    fn joins_series(&mut self, kind: &Kind, message: &str, at: Timestamp) -> bool {
        let fresh = || Series { messages: BTreeSet::new(), last_at: at };
        let series = self.series.entry(kind.clone(), fresh);
        if at.duration_since(series.last_at).unsigned_abs() > SERIES_GAP {
            *series = fresh();
        }
        series.last_at = at;
        if series.messages.contains(message) {
            return false;
        }
        if series.messages.len() + 1 >= MESSAGES_MAX {
            return true;
        }
        series.messages.insert(message.to_owned());
        false
    }
}

impl Told {
    fn happened(&mut self, mut message: String, is_series: bool, at: Timestamp) {
        self.times = self.times.saturating_add(1);
        self.last_at = at;
        if !is_series {
            self.event.count = Some(self.times);
            self.event.last_timestamp = Some(Time(at));
            self.event.message = Some(message);
        } else if self.times == 1 {
            cut(&mut message);
            self.event.message = Some(message);
        } else {
            self.event.series = Some(EventSeries {
                count: Some(self.times),
                last_observed_time: Some(MicroTime(at)),
            });
        }
    }

    fn write(&mut self, same: Sameness, at: Timestamp) -> Write {
        let is_repeated = self.writes > 0;
        self.writes = self.writes.saturating_add(1);
        let doublings = self.writes.saturating_sub(WRITES_FREE);
        let pace = match doublings {
            0 => Duration::ZERO,
            1..=10 => (PACE_BASE * (1 << (doublings - 1))).min(PACE_MAX),
            _ => PACE_MAX,
        };
        self.free_at = at.saturating_add(pace).unwrap_or(at);
        self.is_on_its_way = true;
        self.is_behind = false;
        Write { same, event: Box::new(self.event.clone()), is_repeated }
    }
}

fn kind_of(note: &Note) -> Kind {
    let about = &note.regarding;
    let uid = about.uid.as_ref().or(about.name.as_ref()).cloned().unwrap_or_default();
    let part = about.field_path.clone().unwrap_or_default();
    (uid, part, note.is_warning, note.reason.clone())
}

fn new_event(reporter: &Reporter, note: &Note, at: Timestamp) -> Event {
    let about = &note.regarding;
    let namespace =
        about.namespace.clone().filter(|it| !it.is_empty()).unwrap_or_else(|| "default".to_owned());
    let mut name = about.name.clone().unwrap_or_default();
    name.truncate(NAME_MAX - MOMENT_LENGTH);
    let stem = name.trim_end_matches(['-', '.']);
    let event = Event {
        metadata: ObjectMeta {
            name: Some(format!("{stem}.{:x}", at.as_nanosecond())),
            namespace: Some(namespace),
            ..ObjectMeta::default()
        },
        type_: Some(if note.is_warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(note.reason.clone()),
        reporting_component: Some(reporter.component.clone()),
        reporting_instance: Some(reporter.instance.clone()),
        involved_object: note.regarding.clone(),
        ..Event::default()
    };
    match reporter.action {
        Some(action) => {
            Event { action: Some(action.to_owned()), event_time: Some(MicroTime(at)), ..event }
        }
        None => Event {
            first_timestamp: Some(Time(at)),
            last_timestamp: Some(Time(at)),
            source: Some(EventSource {
                component: Some(reporter.component.clone()),
                host: Some(reporter.instance.clone()),
            }),
            ..event
        },
    }
}

fn cut(message: &mut String) {
    if message.len() > MESSAGE_MAX {
        let mut end = MESSAGE_MAX - 4;
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push_str(" ...");
    }
}

/// A map that forgets what was not asked for lately: it holds between one and two times as much as
/// it was made for.
#[derive(Debug)]
struct Recent<K, V> {
    young: BTreeMap<K, V>,
    old: BTreeMap<K, V>,
    max: usize,
}

impl<K: Ord + Clone, V> Recent<K, V> {
    fn new(max: usize) -> Self {
        Self { young: BTreeMap::new(), old: BTreeMap::new(), max }
    }

    fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        if let Some(value) = self.old.remove(key) {
            self.put(key.clone(), value);
        }
        self.young.get_mut(key)
    }

    fn entry(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        if self.get_mut(&key).is_none() {
            self.put(key.clone(), make());
        }
        self.young.get_mut(&key).expect("it was put just now")
    }

    fn put(&mut self, key: K, value: V) {
        if self.young.len() >= self.max {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ObjectReference;

    use super::*;

    fn note(reason: &str, message: &str) -> Note {
        Note {
            regarding: ObjectReference { name: Some("p".to_owned()), ..ObjectReference::default() },
            is_warning: true,
            reason: reason.to_owned(),
            message: message.to_owned(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn correlator() -> Correlator {
        Correlator::new(Reporter::default())
    }

    fn count(write: &Write) -> i32 {
        write.event.count.unwrap()
    }

    #[test]
    fn repetitions_are_counted_instead_of_written_again() {
        let mut all = correlator();
        let mut tell = |message: &str, second| {
            let write = all.note(note("BackOff", message), at(second)).unwrap();
            all.written(&write.same);
            (write.is_repeated, count(&write), write.event.metadata.name.clone().unwrap())
        };
        let (is_repeated, _, name) = tell("a", 1);
        assert!(!is_repeated);
        assert_eq!(tell("a", 2), (true, 2, name.clone()));
        assert_ne!(tell("b", 3).2, name);
        assert_eq!(tell("a", 4), (true, 3, name));
    }

    #[test]
    fn many_messages_of_one_kind_become_one_event_and_other_kinds_do_not() {
        let mut all = correlator();
        let mut names = BTreeSet::new();
        let mut last = None;
        for number in 0..10_000 {
            let write = all.note(note("SuccessfulCreate", &format!("Created {number}")), at(1));
            if let Some(write) = write {
                all.written(&write.same);
                names.insert(write.same.clone());
                last = write.event.message.clone();
            }
        }
        assert_eq!(names.len(), MESSAGES_MAX);
        assert!(last.unwrap().starts_with("(combined from similar events): Created "));
        let rest = all.take_due(at(2));
        assert_eq!(rest.len(), 1, "what was held back is written a little later");
        assert_eq!(count(&rest[0]), 10_000 - 9, "and nothing is lost");
        assert!(all.note(note("Completed", "Job completed"), at(2)).is_some());
    }

    #[test]
    fn what_goes_on_repeating_is_written_less_and_less_often_and_counted_all_the_same() {
        let mut all = correlator();
        let mut written = Vec::new();
        for second in 0..3_600 {
            let mut writes: Vec<Write> =
                all.note(note("BackOff", "a"), at(second)).into_iter().collect();
            writes.extend(all.take_due(at(second)));
            for write in writes {
                written.push(count(&write));
                all.written(&write.same);
            }
        }
        assert!(written.len() < 30, "{} writes in an hour", written.len());
        assert!(*written.last().unwrap() > 3_000, "{written:?}");
        // After a long silence it is news again.
        let later = all.note(note("BackOff", "a"), at(10_000)).unwrap();
        all.written(&later.same);
        assert!(all.note(note("BackOff", "a"), at(10_001)).is_some());
    }

    #[test]
    fn of_one_event_only_one_write_is_on_its_way() {
        let mut all = correlator();
        let first = all.note(note("BackOff", "a"), at(1)).unwrap();
        assert!(all.note(note("BackOff", "a"), at(1)).is_none());
        assert!(all.take_due(at(9)).is_empty());
        all.written(&first.same);
        let due = all.take_due(at(9));
        assert_eq!(due.iter().map(count).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn long_messages_are_cut_at_a_character() {
        let mut message = "é".repeat(1000);
        cut(&mut message);
        assert!(message.len() <= MESSAGE_MAX && message.ends_with(" ..."));
    }

    #[test]
    fn the_name_of_an_event_is_valid_whatever_it_is_about() {
        let mut long = note("BackOff", "a");
        long.regarding.name = Some(format!("{}.{}", "a".repeat(235), "b".repeat(17)));
        let write = correlator().note(long, at(1)).unwrap();
        let name = write.event.metadata.name.unwrap();
        assert!(name.len() <= NAME_MAX && !name.contains(".."), "{name}");
    }

    #[test]
    fn what_was_not_asked_for_lately_is_forgotten() {
        let mut recent = Recent::new(2);
        for key in 0..5 {
            recent.entry(key, || key);
            recent.entry(0, || 100);
        }
        assert_eq!(recent.get_mut(&0), Some(&mut 0), "asked for all the time");
        assert_eq!(recent.get_mut(&1), None);
    }

    // rule: jobset 3.13
    #[test]
    fn the_newer_form_counts_in_a_series_and_keeps_versions_of_the_object_apart() {
        let action = Some("Reconciling");
        let mut correlator = Correlator::new(Reporter { action, ..Reporter::default() });
        let told = |version: &str, message: &str| {
            let mut note = note("JobCreationFailed", message);
            note.regarding.resource_version = Some(version.to_owned());
            note
        };
        let first = correlator.note(told("1", "a"), at(0)).unwrap();
        assert_eq!((first.event.series.clone(), first.event.count), (None, None));
        assert_eq!(first.event.action.as_deref(), action);
        assert!(first.event.event_time.is_some() && first.event.first_timestamp.is_none());
        correlator.written(&first.same);
        let second = correlator.note(told("1", "b"), at(1)).unwrap();
        assert!(second.is_repeated);
        assert_eq!(second.event.message.as_deref(), Some("a"), "what was said first stays");
        assert_eq!(second.patch()["series"]["count"], 2);
        let other = correlator.note(told("2", "b"), at(2)).unwrap();
        assert!(!other.is_repeated);
    }
}
