//! Scalars that are strings in JSON and something narrower in Go.

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
    tz::Offset,
};
use serde_json::Number;

/// What Go says of a quantity it cannot read.
pub(super) const QUANTITY_FORMAT: &str = "quantities must match the regular expression \
     '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Go's layout of RFC 3339.
const RFC3339: &str = "2006-01-02T15:04:05Z07:00";
const RFC3339_MICRO: &str = "2006-01-02T15:04:05.000000Z07:00";

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// `-0` is an integer to Go.
pub(super) fn negative_zero(number: &Number) -> Option<i64> {
    (number.as_f64() == Some(0.0) && number.is_f64() && number.as_f64()?.is_sign_negative())
        .then_some(0)
}

/// Canonical form of a quantity.
pub(super) fn quantity(text: &str) -> Result<String, String> {
    crate::quantity::canonical(text).map_err(|error| error.to_string())
}

/// Checks base64; line breaks in it are dropped.
pub(super) fn bytes(mut text: String) -> Result<String, String> {
    if text.contains(['\n', '\r']) {
        text.retain(|c| c != '\n' && c != '\r');
    }
    match BASE64.decode(&text) {
        Ok(_) => Ok(text),
        Err(error) => {
            use base64::DecodeError::{
                InvalidByte, InvalidLastSymbol, InvalidLength, InvalidPadding,
            };
            let at = match error {
                InvalidByte(at, _) | InvalidLastSymbol(at, _) => at,
                InvalidLength(at) => at,
                InvalidPadding => text.len(),
            };
            Err(format!("illegal base64 data at input byte {at}"))
        }
    }
}

/// A moment to the second, in UTC.
pub(super) fn time(text: &str) -> Result<String, String> {
    let moment = parse(text, RFC3339, false)?;
    Ok(moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// A moment to the microsecond, in UTC.
pub(super) fn micro_time(text: &str) -> Result<String, String> {
    let moment = parse(text, RFC3339_MICRO, true)?;
    Ok(moment.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())
}

/// A Go duration, kept as written.
pub(super) fn duration(text: String) -> Result<String, String> {
    Ok(text)
}

/// Reads a moment as `time.Parse` does, complaining about the first part that does not fit.
fn parse(text: &str, layout: &str, needs_micros: bool) -> Result<Timestamp, String> {
    let mut rest = text;
    let complain = |rest: &str, part: &str| {
        let quoted = super::quoted;
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quoted(text),
            quoted(layout),
            quoted(rest),
            quoted(part)
        )
    };
    let mut number = |part: &'static str, digits: usize, after: &'static str| {
        let value = rest.get(..digits).filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
        let Some(value) = value.and_then(|value| value.parse::<i16>().ok()) else {
            return Err(complain(rest, part));
        };
        rest = &rest[digits..];
        let Some(left) = rest.strip_prefix(after) else { return Err(complain(rest, after)) };
        rest = left;
        Ok(value)
    };
    let (year, month, day) =
        (number("2006", 4, "-")?, number("01", 2, "-")?, number("02", 2, "T")?);
    let (hour, minute, second) =
        (number("15", 2, ":")?, number("04", 2, ":")?, number("05", 2, "")?);
    let nanos = match fraction(rest) {
        Some((nanos, digits)) if !needs_micros || digits == 6 => {
            rest = &rest[1 + digits..];
            nanos
        }
        _ if needs_micros => return Err(complain(rest, ".000000")),
        _ => 0,
    };
    let offset = if rest.starts_with(['Z', '+', '-']) {
        zone(&mut rest).ok_or_else(|| complain(rest, "Z07:00"))?
    } else {
        return Err(complain(rest, "Z07:00"));
    };
    let out = |what: &str| format!("parsing time {}: {what}", super::quoted(text));
    if !rest.is_empty() {
        return Err(out(&format!("extra text: {}", super::quoted(rest))));
    }
    let small = |n: i16| i8::try_from(n).unwrap_or(i8::MAX);
    if !(1..=12).contains(&month) {
        return Err(out("month out of range"));
    }
    let date = Date::new(year, small(month), small(day)).map_err(|_| out("day out of range"))?;
    for (value, below, what) in [(hour, 24, "hour"), (minute, 60, "minute"), (second, 60, "second")]
    {
        if value >= below {
            return Err(out(&format!("{what} out of range")));
        }
    }
    let time = Time::new(small(hour), small(minute), small(second), nanos)
        .map_err(|_| out("second out of range"))?;
    let moment = offset.to_timestamp(DateTime::from_parts(date, time));
    moment.map_err(|_| out("year out of range"))
}

/// `.123` as nanoseconds, and how many digits it has. Go takes a comma too.
fn fraction(text: &str) -> Option<(i32, usize)> {
    let digits = text.strip_prefix(['.', ','])?;
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let kept = &digits[..count.min(9)];
    let value: i32 = kept.parse().ok()?;
    Some((value * 10_i32.pow(u32::try_from(9 - kept.len()).ok()?), count))
}

/// `Z` or `+07:00`, taken off the front of `rest`.
fn zone(rest: &mut &str) -> Option<Offset> {
    if let Some(left) = rest.strip_prefix('Z') {
        *rest = left;
        return Some(Offset::UTC);
    }
    let sign = if rest.starts_with('-') { -1 } else { 1 };
    let two = |at: usize| -> Option<i32> {
        let digits = rest.get(at..at + 2)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let (hours, minutes) = (two(1)?, two(4)?);
    if rest.as_bytes()[3] != b':' || hours > 24 || minutes > 60 {
        return None;
    }
    *rest = &rest[6..];
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}
