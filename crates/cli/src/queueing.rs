//! What the API says of queues and of the jobs in them, read once for all commands that show it.

mod advice;
pub(crate) mod queue;
pub(crate) mod workload;

use std::collections::BTreeMap;

use jiff::Timestamp;
use lockstep_api::{duration::human, kueue::wait::Overrides, quantity::Quantity};
use serde_json::Value;

use crate::describe::text::scalar;

/// Amounts by flavor and resource.
pub(crate) type Amounts = BTreeMap<(String, String), Quantity>;

/// What one condition says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// Whether it is so.
    pub(crate) is_true: bool,
    /// Why, in a word.
    pub(crate) reason: String,
    /// Why, for people.
    pub(crate) message: String,
    /// Since when.
    pub(crate) since: Option<Timestamp>,
}

impl Said {
    /// `Reason: message`.
    pub(crate) fn words(&self) -> String {
        words(&self.reason, &self.message)
    }
}

/// `Reason: message`, or the one that there is.
pub(crate) fn words(reason: &str, message: &str) -> String {
    match (reason, message) {
        ("", message) => message.to_owned(),
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

/// The conditions of an object by their types.
pub(crate) fn conditions(status: &Value) -> BTreeMap<String, Said> {
    let all = status["conditions"].as_array().into_iter().flatten();
    let said = |condition: &Value| Said {
        is_true: condition["status"] == "True",
        reason: scalar(&condition["reason"]),
        message: scalar(&condition["message"]),
        since: moment(&condition["lastTransitionTime"]),
    };
    all.map(|condition| (scalar(&condition["type"]), said(condition))).collect()
}

/// What an object says of how long pods may take.
pub(crate) fn overrides(object: &Value) -> Overrides {
    let all = object["metadata"]["annotations"].as_object().into_iter().flatten();
    let all: BTreeMap<String, String> =
        all.map(|(key, value)| (key.clone(), scalar(value))).collect();
    Overrides::of(&all)
}

/// A moment, if that is one.
pub(crate) fn moment(value: &Value) -> Option<Timestamp> {
    value.as_str().and_then(|text| text.parse().ok())
}

/// An amount; nothing where there is none.
pub(crate) fn amount(value: &Value) -> Quantity {
    Quantity::parse(&scalar(value)).unwrap_or(Quantity::ZERO)
}

/// `at`, and how far off that is: `at 2026-01-01T00:05:00Z (in 40s)`.
pub(crate) fn at(at: Timestamp, now: Timestamp) -> String {
    let left = at.duration_since(now).as_secs();
    if left >= 0 {
        format!("at {at} (in {})", human(left))
    } else {
        format!("at {at} ({} ago)", human(-left))
    }
}

/// `amount` so many times.
pub(crate) fn times(amount: &Quantity, count: i64) -> Quantity {
    let (mut left, mut power, mut total) = (count.max(0), *amount, Quantity::ZERO);
    while left > 0 {
        if left % 2 == 1 {
            total = total.plus(&power);
        }
        power = power.plus(&power);
        left /= 2;
    }
    total
}

/// What part of `whole` that is; all of it where there is nothing.
#[expect(clippy::cast_precision_loss, reason = "it is shown with a few digits, or compared")]
pub(crate) fn fraction(part: &Quantity, whole: &Quantity) -> f64 {
    let (part, whole) = (part.milli_value() as f64, whole.milli_value() as f64);
    if whole <= 0.0 { f64::from(u8::from(part > 0.0)) } else { part / whole }
}

/// `4 cpu, 8Gi memory`.
pub(crate) fn list<'a>(amounts: impl IntoIterator<Item = (&'a String, &'a Quantity)>) -> String {
    let all = amounts.into_iter().map(|(resource, amount)| format!("{amount} {resource}"));
    all.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_multiplied_exactly() {
        for (text, count, want) in
            [("500m", 3, "1500m"), ("1Gi", 10, "10Gi"), ("2", 0, "0"), ("1", 1000, "1k")]
        {
            let amount = Quantity::parse(text).expect("an amount");
            assert_eq!(times(&amount, count).to_string(), want, "{count} times {text}");
        }
    }

    #[test]
    fn moments_say_how_far_off_they_are() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a moment");
        let later = "2026-01-01T00:01:30Z".parse().expect("a moment");
        assert_eq!(at(later, now), "at 2026-01-01T00:01:30Z (in 90s)");
        assert_eq!(at(now, later), "at 2026-01-01T00:00:00Z (90s ago)");
    }
}
