//! Scalars that are strings in JSON and something narrower in Go.

use std::fmt::Write;

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

/// What Go says of a quantity it cannot read.
pub(super) const QUANTITY_FORMAT: &str = "quantities must match the regular expression \
     '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Go's layout of RFC 3339.
const RFC3339: &str = "2006-01-02T15:04:05Z07:00";
const RFC3339_MICRO: &str = "2006-01-02T15:04:05.000000Z07:00";

const BASE64_STRICT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical)
        .with_decode_allow_trailing_bits(true),
);

/// Canonical form of a quantity.
pub(super) fn quantity(text: &str) -> Result<String, String> {
    crate::quantity::canonical(text).map_err(|error| error.to_string())
}

/// Bytes as they are written in JSON.
pub(super) fn base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Base64 in canonical form. Go allows line breaks in it, and stray bits at its end.
pub(super) fn bytes(text: String) -> Result<String, String> {
    if BASE64_STRICT.decode(&text).is_ok() {
        return Ok(text);
    }
    let joined: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    match BASE64.decode(&joined) {
        Ok(bytes) => Ok(BASE64.encode(bytes)),
        Err(_) => Err(format!("illegal base64 data at input byte {}", corrupt_at(text.as_bytes()))),
    }
}

/// Where Go finds base64 to be corrupt: at the first byte that cannot be there, or at the beginning
/// of the last group of four when that is too short.
fn corrupt_at(text: &[u8]) -> usize {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut in_group = 0;
    let mut bytes = text.iter().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    while let Some((at, &byte)) = bytes.next() {
        match (byte, in_group) {
            (b'=', 2) => {
                return match bytes.next() {
                    None => text.len(),
                    Some((_, b'=')) => bytes.next().map_or(text.len(), |(at, _)| at),
                    Some((at, _)) => at.saturating_sub(1),
                };
            }
            (b'=', 3) => return bytes.next().map_or(text.len(), |(at, _)| at),
            _ if !is_digit(byte) => return at,
            _ => in_group = (in_group + 1) % 4,
        }
    }
    text.len() - in_group
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
    let mut reader = Reader { text, layout, rest: text };
    let year = reader.number("2006", 4, "")?;
    reader.skip("-")?;
    let month = reader.number("01", 2, "month")?;
    reader.skip("-")?;
    let day = reader.number("02", 2, "")?;
    reader.skip("T")?;
    // Of all parts only the hour may have one digit.
    let is_short = reader.rest.as_bytes().get(1).is_some_and(|byte| !byte.is_ascii_digit());
    let hour = reader.number("15", if is_short { 1 } else { 2 }, "hour")?;
    reader.skip(":")?;
    let minute = reader.number("04", 2, "minute")?;
    reader.skip(":")?;
    let second = reader.number("05", 2, "second")?;
    let nanos = match fraction(reader.rest) {
        Some((nanos, digits)) if !needs_micros || digits == 6 => {
            reader.rest = &reader.rest[1 + digits..];
            nanos
        }
        _ if needs_micros => return Err(reader.misfit(".000000")),
        _ => 0,
    };
    let Some(offset) = zone(&mut reader.rest) else { return Err(reader.misfit("Z07:00")) };
    if !reader.rest.is_empty() {
        return Err(reader.wrong(&format!("extra text: {}", quoted(reader.rest))));
    }
    let small = |n: i16| i8::try_from(n).unwrap_or(i8::MAX);
    let date = Date::new(year, small(month), small(day));
    let date = date.map_err(|_| reader.wrong("day out of range"))?;
    let time = Time::new(small(hour), small(minute), small(second), nanos);
    let time = time.map_err(|_| reader.wrong("second out of range"))?;
    let moment = offset.to_timestamp(DateTime::from_parts(date, time));
    moment.map_err(|_| reader.wrong("year out of range"))
}

struct Reader<'a> {
    text: &'a str,
    layout: &'a str,
    rest: &'a str,
}

impl Reader<'_> {
    /// Takes the digits of the part that the layout writes as `part`. Parts with a `name` have a
    /// range.
    fn number(&mut self, part: &str, digits: usize, name: &str) -> Result<i16, String> {
        let value = self.rest.get(..digits).filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
        let Some(value) = value.and_then(|value| value.parse().ok()) else {
            return Err(self.misfit(part));
        };
        self.rest = &self.rest[digits..];
        let range = match name {
            "month" => 1..=12,
            "hour" => 0..=23,
            "minute" | "second" => 0..=59,
            _ => 0..=i16::MAX,
        };
        if range.contains(&value) {
            Ok(value)
        } else {
            Err(self.wrong(&format!("{name} out of range")))
        }
    }

    fn skip(&mut self, separator: &str) -> Result<(), String> {
        match self.rest.strip_prefix(separator) {
            Some(rest) => self.rest = rest,
            None => return Err(self.misfit(separator)),
        }
        Ok(())
    }

    fn misfit(&self, part: &str) -> String {
        let [text, layout, rest, part] = [self.text, self.layout, self.rest, part].map(quoted);
        format!("parsing time {text} as {layout}: cannot parse {rest} as {part}")
    }

    fn wrong(&self, what: &str) -> String {
        format!("parsing time {}: {what}", quoted(self.text))
    }
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

/// A string as `time.ParseError` quotes it: everything beyond ASCII byte by byte.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..0x80 => quoted.push(char::from(byte)),
            _ => drop(write!(quoted, "\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}
