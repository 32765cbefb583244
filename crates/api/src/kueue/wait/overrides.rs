//! What one flavor, queue or job says of `waitForPodsReady`, in annotations of our own.

use std::time::Duration;

use serde_json::Value;

use super::{RequeuingTimestamp, WaitForPodsReady};
use crate::{
    duration::parse_go,
    field::{ErrorList, FieldError, Path},
    json::at,
    labels::kueue::{
        BLOCK_ADMISSION, PODS_READY_RECOVERY_TIMEOUT, PODS_READY_TIMEOUT, REQUEUING_BASE,
        REQUEUING_LIMIT, REQUEUING_MAX, REQUEUING_TIMESTAMP, WAIT_FOR_PODS_READY,
    },
    strategy::Json,
};

/// What one level says; what is absent is left to the levels before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Whether pods are waited for.
    pub is_on: Option<bool>,
    /// How long pods may take to be ready.
    pub timeout: Option<Duration>,
    /// How long pods that were ready may not be; zero for ever.
    pub recovery_timeout: Option<Duration>,
    /// Whether nobody else is admitted meanwhile.
    pub block_admission: Option<bool>,
    /// By which time one stands in its queue that comes back.
    pub timestamp: Option<RequeuingTimestamp>,
    /// How often one comes back.
    pub limit: Option<i32>,
    /// How long one waits the first time.
    pub base: Option<Duration>,
    /// How long one waits at the most; zero is no limit.
    pub max: Option<Duration>,
}

impl Overrides {
    /// What annotations say. What cannot be read counts as not said: it was refused where it could
    /// be, and a controller goes on with what is left.
    pub fn of<'a>(annotations: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let pairs = annotations.into_iter().map(|(key, value)| (key.as_str(), value.as_str()));
        parse(pairs).0
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Says what is wrong with the annotations of an object.
pub fn validate(object: &Json) -> ErrorList {
    let annotations = at(object, &["metadata", "annotations"]).and_then(Value::as_object);
    let pairs = annotations.into_iter().flatten();
    parse(pairs.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))).1
}

/// What holds for a workload: what is said for all, then what its flavor, its ClusterQueue, its
/// LocalQueue and itself say, in that order; the later wins.
///
/// Who turns waiting on where it is off gets the defaults of v1beta2 for what nobody says.
pub fn effective(
    global: Option<&WaitForPodsReady>,
    levels: &[&Overrides],
) -> Option<WaitForPodsReady> {
    let is_on = levels.iter().filter_map(|level| level.is_on).next_back();
    let is_on = is_on.unwrap_or_else(|| global.is_some());
    is_on.then(|| combined(global, levels))
}

/// By which time a workload that was evicted comes back into its queue. That is said of queues too
/// where only some flavor has its pods waited for: one that has come back has no flavor.
pub fn requeued_by(global: Option<&WaitForPodsReady>, levels: &[&Overrides]) -> RequeuingTimestamp {
    combined(global, levels).requeuing.timestamp
}

/// What is said, whether it is turned on or not.
fn combined(global: Option<&WaitForPodsReady>, levels: &[&Overrides]) -> WaitForPodsReady {
    let mut wait = global.cloned().unwrap_or_default();
    for level in levels {
        level.apply(&mut wait);
    }
    wait
}

impl Overrides {
    fn apply(&self, wait: &mut WaitForPodsReady) {
        if let Some(timeout) = self.timeout {
            // A time for recovery that nobody has set follows that of the start.
            if wait.recovery_timeout == Some(wait.timeout) {
                wait.recovery_timeout = Some(timeout);
            }
            wait.timeout = timeout;
        }
        if let Some(time) = self.recovery_timeout {
            wait.recovery_timeout = (!time.is_zero()).then_some(time);
        }
        wait.block_admission = self.block_admission.unwrap_or(wait.block_admission);
        let requeuing = &mut wait.requeuing;
        requeuing.timestamp = self.timestamp.unwrap_or(requeuing.timestamp);
        requeuing.limit = self.limit.or(requeuing.limit);
        requeuing.base = self.base.unwrap_or(requeuing.base);
        requeuing.max = self.max.unwrap_or(requeuing.max);
    }
}

const FLAG: &str = "must be \"true\" or \"false\"";
const TIME: &str = "must be a duration above zero, such as 5m or 1h30m";
const TIME_OR_NONE: &str = "must be a duration, such as 5m or 1h30m; 0s is for ever";
const COUNT: &str = "must be a whole number of 0 or more, such as 3";
const SECONDS: &str = "must be a whole number of seconds, 0 or more, such as 60";

/// What annotations say, and what is wrong with them.
fn parse<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> (Overrides, ErrorList) {
    let path = Path::new("metadata").child("annotations");
    let mut said = Overrides::default();
    let mut errors = ErrorList::new();
    for (key, value) in pairs {
        let rule = match key {
            WAIT_FOR_PODS_READY => set(&mut said.is_on, flag(value), FLAG),
            PODS_READY_TIMEOUT => {
                set(&mut said.timeout, time(value).filter(|time| !time.is_zero()), TIME)
            }
            PODS_READY_RECOVERY_TIMEOUT => {
                set(&mut said.recovery_timeout, time(value), TIME_OR_NONE)
            }
            BLOCK_ADMISSION => set(&mut said.block_admission, flag(value), FLAG),
            REQUEUING_TIMESTAMP => {
                said.timestamp = TIMESTAMPS.iter().find(|(name, _)| *name == value).map(|it| it.1);
                if said.timestamp.is_none() {
                    let names = TIMESTAMPS.map(|(name, _)| name);
                    errors.push(FieldError::not_supported(&path.key(key), value, &names));
                }
                None
            }
            REQUEUING_LIMIT => set(&mut said.limit, count(value), COUNT),
            REQUEUING_BASE => set(&mut said.base, seconds(value), SECONDS),
            REQUEUING_MAX => set(&mut said.max, seconds(value), SECONDS),
            _ => None,
        };
        errors.extend(rule.map(|why| FieldError::invalid(&path.key(key), value, why)));
    }
    (said, errors)
}

const TIMESTAMPS: [(&str, RequeuingTimestamp); 2] =
    [("Creation", RequeuingTimestamp::Creation), ("Eviction", RequeuingTimestamp::Eviction)];

/// Sets what could be read; says what would be right otherwise.
fn set<T>(slot: &mut Option<T>, read: Option<T>, rule: &'static str) -> Option<&'static str> {
    *slot = read;
    slot.is_none().then_some(rule)
}

fn flag(text: &str) -> Option<bool> {
    text.parse().ok()
}

fn time(text: &str) -> Option<Duration> {
    Duration::try_from(parse_go(text)?).ok()
}

fn count(text: &str) -> Option<i32> {
    text.parse().ok().filter(|count| *count >= 0)
}

fn seconds(text: &str) -> Option<Duration> {
    Some(Duration::from_secs(u64::try_from(count(text)?).ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn overrides(pairs: &[(&str, &str)]) -> Overrides {
        parse(pairs.iter().copied()).0
    }

    const fn minutes(minutes: u64) -> Duration {
        Duration::from_secs(60 * minutes)
    }

    // rule: queueing 2.1.4
    #[test]
    fn later_levels_win_and_say_only_what_they_say() {
        let nothing = Overrides::default();
        let flavor = overrides(&[(PODS_READY_TIMEOUT, "10m"), (REQUEUING_LIMIT, "3")]);
        let queue = overrides(&[(PODS_READY_TIMEOUT, "20m"), (BLOCK_ADMISSION, "true")]);
        let off = overrides(&[(WAIT_FOR_PODS_READY, "false")]);
        let on = overrides(&[(WAIT_FOR_PODS_READY, "true")]);
        let forever = overrides(&[(PODS_READY_RECOVERY_TIMEOUT, "0s")]);
        let usual = WaitForPodsReady::default();
        assert_eq!(effective(None, &[]), None);
        assert_eq!(effective(None, &[&flavor, &queue]), None, "nobody has turned it on");
        assert_eq!(effective(Some(&usual), &[&nothing]), Some(usual.clone()));
        assert_eq!(effective(Some(&usual), &[&off]), None);
        assert_eq!(effective(Some(&usual), &[&off, &on]), Some(usual.clone()));
        assert_eq!(effective(None, &[&on]), Some(usual.clone()), "with the usual values");
        let both = effective(Some(&usual), &[&flavor, &queue]).unwrap();
        assert_eq!(both.timeout, minutes(20));
        assert_eq!(both.recovery_timeout, Some(minutes(20)), "follows as long as nobody sets it");
        assert_eq!((both.block_admission, both.requeuing.limit), (true, Some(3)));
        let late = effective(None, &[&flavor, &on]).unwrap();
        assert_eq!(late.timeout, minutes(10), "said before it was turned on");
        let own = effective(Some(&usual), &[&forever, &queue]).unwrap();
        assert_eq!((own.timeout, own.recovery_timeout), (minutes(20), None));
    }

    // rule: queueing 2.8.2
    #[test]
    fn how_one_comes_back_is_said_of_queues_that_do_not_wait_themselves() {
        let creation = overrides(&[(REQUEUING_TIMESTAMP, "Creation")]);
        assert_eq!(effective(None, &[&creation]), None);
        assert_eq!(requeued_by(None, &[&creation]), RequeuingTimestamp::Creation);
        assert_eq!(requeued_by(None, &[]), RequeuingTimestamp::Eviction);
    }

    // rule: queueing 2.1.3
    #[test]
    fn what_cannot_be_read_is_refused_with_what_would_be_right() {
        let cases = [
            (WAIT_FOR_PODS_READY, "yes", "Invalid value: \"yes\": must be \"true\" or \"false\""),
            (
                PODS_READY_TIMEOUT,
                "soon",
                "Invalid value: \"soon\": must be a duration above zero, such as 5m or 1h30m",
            ),
            (
                PODS_READY_TIMEOUT,
                "-5m",
                "Invalid value: \"-5m\": must be a duration above zero, such as 5m or 1h30m",
            ),
            (
                PODS_READY_TIMEOUT,
                "0s",
                "Invalid value: \"0s\": must be a duration above zero, such as 5m or 1h30m",
            ),
            (
                PODS_READY_RECOVERY_TIMEOUT,
                "-1s",
                "Invalid value: \"-1s\": must be a duration, such as 5m or 1h30m; 0s is for ever",
            ),
            (BLOCK_ADMISSION, "", "Invalid value: \"\": must be \"true\" or \"false\""),
            (
                REQUEUING_TIMESTAMP,
                "Now",
                "Unsupported value: \"Now\": supported values: \"Creation\", \"Eviction\"",
            ),
            (
                REQUEUING_LIMIT,
                "-1",
                "Invalid value: \"-1\": must be a whole number of 0 or more, such as 3",
            ),
            (
                REQUEUING_BASE,
                "1m",
                "Invalid value: \"1m\": must be a whole number of seconds, 0 or more, such as 60",
            ),
            (
                REQUEUING_MAX,
                "99999999999",
                "Invalid value: \"99999999999\": must be a whole number of seconds, 0 or more, such as \
              60",
            ),
        ];
        for (key, value, want) in cases {
            let object = json!({"metadata": {"annotations": {key: value}}});
            let errors = validate(object.as_object().unwrap());
            let said: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(said, [format!("metadata.annotations[{key}]: {want}")]);
            assert!(overrides(&[(key, value)]).is_empty(), "it counts as not said");
        }
        let fine = json!({"metadata": {"annotations": {
            WAIT_FOR_PODS_READY: "true", PODS_READY_TIMEOUT: "1h30m",
            PODS_READY_RECOVERY_TIMEOUT: "0s", BLOCK_ADMISSION: "false",
            REQUEUING_TIMESTAMP: "Creation", REQUEUING_LIMIT: "0", REQUEUING_BASE: "5",
            REQUEUING_MAX: "0", "lockstep.dev/other": "?",
        }}});
        assert_eq!(validate(fine.as_object().unwrap()), []);
    }
}
