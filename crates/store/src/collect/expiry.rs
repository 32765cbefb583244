//! Objects that go by themselves after a while: events live an hour after they were last written.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use lockstep_api::json;

use crate::object::Object;

/// How long an event is kept after it was last written.
pub const EVENT_LIFETIME: SignedDuration = SignedDuration::from_hours(1);
/// The table whose objects expire.
pub const EXPIRING_TABLE: &str = "events";

/// When each object is to go.
#[derive(Debug, Default)]
pub struct Deadlines {
    by_key: BTreeMap<Arc<str>, Timestamp>,
    by_time: BTreeSet<(Timestamp, Arc<str>)>,
}

impl Deadlines {
    /// Notes that `key` was written at `written`.
    pub fn touch(&mut self, key: &Arc<str>, written: Timestamp) {
        self.forget(key);
        let at = written.checked_add(EVENT_LIFETIME).unwrap_or(Timestamp::MAX);
        self.by_key.insert(Arc::clone(key), at);
        self.by_time.insert((at, Arc::clone(key)));
    }

    /// Notes that `key` is gone.
    pub fn forget(&mut self, key: &Arc<str>) {
        if let Some(at) = self.by_key.remove(key) {
            self.by_time.remove(&(at, Arc::clone(key)));
        }
    }

    /// Takes up to `max` keys whose time has come.
    pub fn take_due(&mut self, now: Timestamp, max: usize) -> Vec<Arc<str>> {
        let due: Vec<_> =
            self.by_time.iter().take_while(|(at, _)| *at <= now).take(max).cloned().collect();
        due.into_iter()
            .map(|(_, key)| {
                self.forget(&key);
                key
            })
            .collect()
    }

    /// When the next one is to go.
    pub fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

/// When an event was last written, as far as it tells itself: a series goes on long after its first
/// event was made.
pub fn last_written(event: &Object, now: Timestamp) -> Timestamp {
    let body = event.json();
    let told: [&[&str]; 3] = [&["lastTimestamp"], &["series", "lastObservedTime"], &["eventTime"]];
    let told = told.iter().filter_map(|path| json::text(&body, path).parse().ok());
    let last = told.chain(event.meta.created).max().unwrap_or(now);
    // Whoever wrote it may have had another clock.
    last.min(now)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::{SignedDuration, Timestamp};

    use super::{Deadlines, EVENT_LIFETIME, last_written};
    use crate::testing::World;

    #[test]
    fn a_series_lives_as_long_as_it_goes_on() {
        let mut world = World::new();
        let mut written = |times: serde_json::Value| {
            let mut event = times.as_object().unwrap().clone();
            let meta = serde_json::json!({"generateName": "e", "namespace": "n"});
            event.insert("metadata".to_owned(), meta);
            event.insert("reason".to_owned(), "R".into());
            event.insert("involvedObject".to_owned(), serde_json::json!({"namespace": "n"}));
            let event = world.create("events", "n", event.into()).unwrap();
            last_written(&event, world.now + SignedDuration::from_hours(2)).to_string()
        };
        let cases = [
            (serde_json::json!({}), "2026-01-02T03:04:05Z"),
            (serde_json::json!({"lastTimestamp": "2026-01-02T04:00:00Z"}), "2026-01-02T04:00:00Z"),
            (
                serde_json::json!({
                    "firstTimestamp": "2026-01-02T04:30:00Z",
                    "series": {"count": 2, "lastObservedTime": "2026-01-02T04:20:00.000000Z"},
                }),
                "2026-01-02T04:20:00Z",
            ),
            (serde_json::json!({"lastTimestamp": "2099-01-01T00:00:00Z"}), "2026-01-02T05:04:05Z"),
        ];
        for (times, last) in cases {
            assert_eq!(written(times.clone()), last, "{times}");
        }
    }

    #[test]
    fn writing_again_puts_off_the_end() {
        let at = |minutes| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let mut deadlines = Deadlines::default();
        deadlines.touch(&a, at(0));
        deadlines.touch(&b, at(1));
        deadlines.touch(&a, at(30));
        assert_eq!(deadlines.next(), Some(at(1) + EVENT_LIFETIME));
        assert_eq!(deadlines.take_due(at(61), 10), [b]);
        assert!(deadlines.take_due(at(89), 10).is_empty());
        deadlines.forget(&a);
        assert_eq!(deadlines.next(), None);
    }
}
