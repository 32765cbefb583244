//! The formats of texts that an API server knows and checks. Others mean nothing.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    sync::LazyLock,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{Timestamp, civil::Date};
use regex::Regex;

use crate::{duration::parse_go, names};

/// Every format that upstream knows, without dashes.
const KNOWN: &[&str] = &[
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// Whether upstream knows a format of values of a type.
pub(in crate::definition) fn is_known(kind: &str, format: &str) -> bool {
    match kind {
        "" | "string" => KNOWN.contains(&&*format.replace('-', "")),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// Whether a text has a format; formats that nobody knows fit everything.
pub(super) fn is_valid(format: &str, text: &str) -> bool {
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match &*format.replace('-', "") {
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => MAC.is_match(text),
        "uuid" => UUID.is_match(text),
        "uuid3" => UUID.is_match(text) && version(text) == Some('3'),
        "uuid4" | "uuid5" => {
            let wanted = if format.ends_with('4') { '4' } else { '5' };
            UUID.is_match(text) && version(text) == Some(wanted) && has_variant(text)
        }
        "date" => text.len() == 10 && text.parse::<Date>().is_ok(),
        "datetime" => text.contains(['T', 't']) && text.parse::<Timestamp>().is_ok(),
        "duration" => parse_go(text).is_some() || WORDY_DURATION.is_match(text),
        "byte" => STANDARD.decode(text).is_ok(),
        "hostname" => !text.is_empty() && text.len() <= 255 && HOSTNAME.is_match(text),
        "email" => EMAIL.is_match(text),
        "uri" => URI.is_match(text),
        "bsonobjectid" => text.len() == 24 && hex(text),
        "hexcolor" => HEX_COLOR.is_match(text),
        "rgbcolor" => RGB_COLOR.is_match(text),
        "ssn" => SSN.is_match(text),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "creditcard" => is_credit_card(text),
        "k8sshortname" => names::dns1123_label(text).is_empty(),
        "k8slongname" => names::dns1123_subdomain(text).is_empty(),
        _ => true,
    }
}

static MAC: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        "^(([0-9a-fA-F]{2}([:-])){5}[0-9a-fA-F]{2}|([0-9a-fA-F]{2}[:-]){7}[0-9a-fA-F]{2}|\
           ([0-9a-fA-F]{4}\\.){2}[0-9a-fA-F]{4}|([0-9a-fA-F]{4}\\.){3}[0-9a-fA-F]{4})$",
    )
});
static UUID: LazyLock<Regex> = LazyLock::new(|| {
    regex("^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$")
});
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        "^([a-zA-Z0-9\\p{L}]([a-zA-Z0-9\\p{L}-]{0,61}[a-zA-Z0-9\\p{L}])?)\
           (\\.[a-zA-Z0-9\\p{L}]([a-zA-Z0-9\\p{L}-]{0,61}[a-zA-Z0-9\\p{L}])?)*\\.?$",
    )
});
static EMAIL: LazyLock<Regex> = LazyLock::new(|| regex("^([^<>]*<)?[^@\\s<>,;]+@[^@\\s<>,;]+>?$"));
static URI: LazyLock<Regex> =
    LazyLock::new(|| regex("^([a-zA-Z][a-zA-Z0-9+.-]*:[^\\s]+|/[^\\s]*)$"));
static HEX_COLOR: LazyLock<Regex> = LazyLock::new(|| regex("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        "^rgb\\(\\s*(0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])\\s*,\
           \\s*(0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])\\s*,\
           \\s*(0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])\\s*\\)$",
    )
});
static SSN: LazyLock<Regex> = LazyLock::new(|| regex("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static WORDY_DURATION: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        "^([0-9]+)\\s*(ns|nano|nanos|nanosecond|nanoseconds|us|micro|micros|microsecond|\
           microseconds|ms|milli|millis|millisecond|milliseconds|s|sec|secs|second|seconds|m|min|\
           mins|minute|minutes|h|hr|hour|hours|d|day|days|w|wk|week|weeks)$",
    )
});

fn regex(text: &str) -> Regex {
    Regex::new(text).expect("it was written with care")
}

fn version(uuid: &str) -> Option<char> {
    uuid.chars().filter(|c| *c != '-').nth(12)
}

fn has_variant(uuid: &str) -> bool {
    uuid.chars().filter(|c| *c != '-').nth(16).is_some_and(|c| "89abAB".contains(c))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let is_plain = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let Some(length) = length.parse::<u8>().ok().filter(|_| is_plain) else { return false };
    (address.parse::<Ipv4Addr>().is_ok() && length <= 32)
        || (address.parse::<Ipv6Addr>().is_ok() && length <= 128)
}

fn without_dashes(text: &str) -> Vec<char> {
    text.chars().filter(|c| !matches!(c, '-' | ' ')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = without_dashes(text);
    let value = |(at, c): (usize, &char)| match c {
        'X' if at == 9 => Some(10),
        c => c.to_digit(10),
    };
    let Some(values) = digits.iter().enumerate().map(value).collect::<Option<Vec<u32>>>() else {
        return false;
    };
    let sum: u32 = values.iter().zip(1..).map(|(value, weight)| value * weight).sum();
    values.len() == 10 && sum.is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = without_dashes(text);
    let Some(values) = digits.iter().map(|c| c.to_digit(10)).collect::<Option<Vec<u32>>>() else {
        return false;
    };
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = values.iter().zip(weights).map(|(value, weight)| value * weight).sum();
    values.len() == 13 && sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| if at % 2 == 1 { doubled(*digit) } else { *digit })
        .sum();
    (13..=16).contains(&digits.len()) && sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_take_what_upstream_takes() {
        let cases = [
            ("ipv4", "10.0.0.1", true),
            ("ipv4", "10.0.0", false),
            ("ipv6", "::1", true),
            ("cidr", "10.0.0.0/8", true),
            ("cidr", "10.0.0.0/33", false),
            ("mac", "01:23:45:67:89:ab", true),
            ("mac", "01:23", false),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", true),
            ("uuid4", "123e4567-e89b-12d3-a456-426614174000", false),
            ("date", "2026-11-15", true),
            ("date", "2026-13-15", false),
            ("date-time", "2026-11-15T12:00:00Z", true),
            ("date-time", "2026-11-15", false),
            ("duration", "1h30m", true),
            ("duration", "22 ns", true),
            ("duration", "soon", false),
            ("byte", "YQ==", true),
            ("byte", "!", false),
            ("hostname", "a.example.com", true),
            ("hostname", "-a", false),
            ("email", "a@example.com", true),
            ("email", "a", false),
            ("uri", "https://example.com/x", true),
            ("uri", "example", false),
            ("isbn10", "0321751043", true),
            ("isbn13", "978-0321751041", true),
            ("isbn", "978-0321751042", false),
            ("creditcard", "4111-1111-1111-1111", true),
            ("k8s-short-name", "a.b", false),
            ("k8s-long-name", "a.b", true),
            ("whatever", "x", true),
        ];
        for (format, text, want) in cases {
            assert_eq!(is_valid(format, text), want, "{format} {text}");
        }
    }
}
