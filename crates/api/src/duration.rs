//! How long ago, in the few characters a table cell has; and durations as Go reads them.

mod go;

use jiff::Timestamp;

use crate::{json::text, strategy::Json};

pub use go::parse_go;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// What a cell says when a moment is not known.
pub const UNKNOWN: &str = "<unknown>";
/// What a cell says of what is no moment, or one that is still to come.
pub const INVALID: &str = "<invalid>";

/// A duration in whole seconds, with two or three significant figures: `119s`, `5m3s`, `47h`,
/// `3d4h`.
///
/// Clocks of two machines may differ a little, so one second in the future still is `0s`; more than
/// that is `<invalid>`.
pub fn human(seconds: i64) -> String {
    let (years, days, hours, minutes) =
        (seconds / YEAR, seconds / DAY, seconds / HOUR, seconds / MINUTE);
    if seconds < -1 {
        INVALID.to_owned()
    } else if seconds < 2 * MINUTE {
        format!("{}s", seconds.max(0))
    } else if seconds < 10 * MINUTE {
        pair(minutes, 'm', seconds % MINUTE, 's')
    } else if seconds < 3 * HOUR {
        format!("{minutes}m")
    } else if seconds < 8 * HOUR {
        pair(hours, 'h', minutes % 60, 'm')
    } else if seconds < 2 * DAY {
        format!("{hours}h")
    } else if seconds < 8 * DAY {
        pair(days, 'd', hours % 24, 'h')
    } else if seconds < 2 * YEAR {
        format!("{days}d")
    } else if seconds < 8 * YEAR {
        pair(years, 'y', days % 365, 'd')
    } else {
        format!("{years}y")
    }
}

/// How long before `now` the moment written in RFC 3339 was; [`UNKNOWN`] when there is none, and
/// [`INVALID`] when something else is written there.
pub fn since(moment: &str, now: Timestamp) -> String {
    match moment.parse::<Timestamp>() {
        Ok(then) => human(now.duration_since(then).as_secs()),
        Err(_) if matches!(moment, "" | "null") => UNKNOWN.to_owned(),
        Err(_) => INVALID.to_owned(),
    }
}

/// How long ago an object was created.
pub fn age(object: &Json, now: Timestamp) -> String {
    since(text(object, &["metadata", "creationTimestamp"]), now)
}

fn pair(large: i64, large_unit: char, small: i64, small_unit: char) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_have_two_or_three_figures() {
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (303, "5m3s"),
            (599, "9m59s"),
            (600, "10m"),
            (45 * MINUTE + 59, "45m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (5 * HOUR + 10 * MINUTE, "5h10m"),
            (8 * HOUR, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (3 * DAY + 4 * HOUR, "3d4h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 35 * DAY, "2y35d"),
            (8 * YEAR, "8y"),
            (i64::MAX, "292471208677y"),
        ];
        for (seconds, want) in cases {
            assert_eq!(human(seconds), want, "{seconds}");
        }
    }

    #[test]
    fn an_age_is_counted_from_the_creation_timestamp() {
        let now = "2026-11-15T12:00:00.9Z".parse().unwrap();
        let cases = [
            (json!({"metadata": {"creationTimestamp": "2026-11-15T11:59:30Z"}}), "30s"),
            (json!({"metadata": {"creationTimestamp": "2026-11-15T12:00:02Z"}}), "0s"),
            (json!({"metadata": {"creationTimestamp": "2026-11-15T12:00:09Z"}}), "<invalid>"),
            (json!({"metadata": {"creationTimestamp": null}}), "<unknown>"),
            (json!({"metadata": {"creationTimestamp": "tomorrow"}}), "<invalid>"),
            (json!({}), "<unknown>"),
        ];
        for (object, want) in cases {
            assert_eq!(age(object.as_object().unwrap(), now), want, "{object}");
        }
    }
}
