//! From text to schedule.

use jiff::{SignedDuration, tz::TimeZone};

use super::{Fields, Kind, STAR, zone};
use crate::{duration::parse_go, quote::quoted};

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Why a text is no schedule, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// There is nothing.
    #[error("empty spec string")]
    Empty,
    /// A time zone and nothing else.
    #[error("invalid schedule format: runtime error: slice bounds out of range [:-1]")]
    OnlyZone,
    /// A time zone that nobody knows.
    #[error("provided bad location {0}: unknown time zone {0}")]
    Zone(String),
    /// Too many fields, or too few.
    #[error("expected exactly 5 fields, found {}: [{}]", .0.len(), .0.join(" "))]
    Count(Vec<String>),
    /// `@something`.
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    /// `@every` what?
    #[error("failed to parse duration {descriptor}: time: invalid duration {duration}")]
    Duration {
        /// All of it.
        descriptor: String,
        /// The time, in quotes.
        duration: String,
    },
    /// No number.
    #[error("failed to parse int from {0}: strconv.Atoi: parsing {quoted}: invalid syntax", quoted = quoted(.0))]
    Number(String),
    /// A number below zero.
    #[error("negative number ({0}) not allowed: {0}")]
    Negative(String),
    /// `1-2-3`.
    #[error("too many hyphens: {0}")]
    Hyphens(String),
    /// `1/2/3`.
    #[error("too many slashes: {0}")]
    Slashes(String),
    /// A range that begins too early.
    #[error("beginning of range ({start}) below minimum ({min}): {range}")]
    TooLow {
        /// Its beginning.
        start: u64,
        /// What it may be.
        min: u64,
        /// All of it.
        range: String,
    },
    /// A range that ends too late.
    #[error("end of range ({end}) above maximum ({max}): {range}")]
    TooHigh {
        /// Its end.
        end: u64,
        /// What it may be.
        max: u64,
        /// All of it.
        range: String,
    },
    /// A range that ends before it begins.
    #[error("beginning of range ({start}) beyond end of range ({end}): {range}")]
    Backwards {
        /// Its beginning.
        start: u64,
        /// Its end.
        end: u64,
        /// All of it.
        range: String,
    },
    /// A range that does not move on.
    #[error("step of range should be a positive number: {0}")]
    Step(String),
}

/// What the values of a field may be.
struct Bounds {
    min: u64,
    max: u64,
    /// Other words for the values, from `min` on.
    names: &'static [&'static str],
}

const MINUTE: Bounds = Bounds { min: 0, max: 59, names: &[] };
const HOUR: Bounds = Bounds { min: 0, max: 23, names: &[] };
const DAY: Bounds = Bounds { min: 1, max: 31, names: &[] };
const MONTH: Bounds = Bounds { min: 1, max: 12, names: &MONTHS };
const WEEKDAY: Bounds = Bounds { min: 0, max: 6, names: &WEEKDAYS };

pub(super) fn schedule(text: &str, given: Option<&str>) -> Result<Kind, ScheduleError> {
    if text.is_empty() {
        return Err(ScheduleError::Empty);
    }
    let known = |name: &str| zone(name).ok_or_else(|| ScheduleError::Zone(name.to_owned()));
    let mut place = known(given.unwrap_or_default())?;
    let mut rest = text;
    let named = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="));
    if let Some(named) = named {
        let (name, after) = named.split_once(' ').ok_or(ScheduleError::OnlyZone)?;
        place = known(name)?;
        rest = after.trim();
    }
    if rest.starts_with('@') {
        return descriptor(rest, place);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields[..] else {
        return Err(ScheduleError::Count(fields.into_iter().map(str::to_owned).collect()));
    };
    Ok(Kind::Fields(Fields {
        minute: field(minute, &MINUTE)?,
        hour: field(hour, &HOUR)?,
        day: field(day, &DAY)?,
        month: field(month, &MONTH)?,
        weekday: field(weekday, &WEEKDAY)?,
        zone: place,
    }))
}

fn descriptor(text: &str, zone: TimeZone) -> Result<Kind, ScheduleError> {
    let same = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => {
            let unknown = || ScheduleError::Descriptor(text.to_owned());
            let duration = text.strip_prefix("@every ").ok_or_else(unknown)?;
            let wrong = || ScheduleError::Duration {
                descriptor: text.to_owned(),
                duration: quoted(duration),
            };
            let duration = parse_go(duration).ok_or_else(wrong)?;
            return Ok(Kind::Every(SignedDuration::from_secs(duration.as_secs().max(1))));
        }
    };
    match schedule(same, None)? {
        Kind::Fields(fields) => Ok(Kind::Fields(Fields { zone, ..fields })),
        every @ Kind::Every(_) => Ok(every),
    }
}

/// `1,3-5,*/10`
fn field(text: &str, bounds: &Bounds) -> Result<u64, ScheduleError> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    parts.map(|part| range(part, bounds)).try_fold(0, |bits, part| Ok(bits | part?))
}

fn range(text: &str, bounds: &Bounds) -> Result<u64, ScheduleError> {
    let mut halves = text.split('/');
    let (values, step) = (halves.next().unwrap_or_default(), halves.next());
    if halves.next().is_some() {
        return Err(ScheduleError::Slashes(text.to_owned()));
    }
    let ends: Vec<&str> = values.split('-').collect();
    let is_star = matches!(ends[0], "*" | "?");
    let (start, mut end) = match ends[..] {
        _ if is_star => (bounds.min, bounds.max),
        [one] => (value(one, bounds)?, value(one, bounds)?),
        [start, end] => (value(start, bounds)?, value(end, bounds)?),
        _ => return Err(ScheduleError::Hyphens(text.to_owned())),
    };
    let step = match step {
        None => 1,
        Some(step) => {
            // `N/step` goes on to the end.
            if ends.len() == 1 {
                end = bounds.max;
            }
            number(step)?
        }
    };
    let range = || text.to_owned();
    if start < bounds.min {
        return Err(ScheduleError::TooLow { start, min: bounds.min, range: range() });
    }
    if end > bounds.max {
        return Err(ScheduleError::TooHigh { end, max: bounds.max, range: range() });
    }
    if start > end {
        return Err(ScheduleError::Backwards { start, end, range: range() });
    }
    if step == 0 {
        return Err(ScheduleError::Step(range()));
    }
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    let bits = (start..=end).step_by(step).fold(0, |bits, value| bits | 1 << value);
    Ok(if is_star && step == 1 { bits | STAR } else { bits })
}

fn value(text: &str, bounds: &Bounds) -> Result<u64, ScheduleError> {
    let named = bounds.names.iter().position(|name| name.eq_ignore_ascii_case(text));
    match named.and_then(|at| u64::try_from(at).ok()) {
        Some(at) => Ok(bounds.min + at),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, ScheduleError> {
    let number: i64 = text.parse().map_err(|_| ScheduleError::Number(text.to_owned()))?;
    u64::try_from(number).map_err(|_| ScheduleError::Negative(text.to_owned()))
}
