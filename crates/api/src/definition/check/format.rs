//! The formats of texts that an API server knows and checks. Others mean nothing.

use std::{net::Ipv6Addr, sync::LazyLock};

use jiff::civil::Date;
use regex::Regex;

use super::email::is_address;
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
        "ipv4" => text.contains('.') && (is_ipv4(text) || is_ipv6(text)),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => MAC.is_match(text),
        "uuid" => UUID.is_match(text),
        "uuid3" => UUID.is_match(text) && version(text) == Some('3'),
        "uuid4" | "uuid5" => {
            let wanted = if format.ends_with('4') { '4' } else { '5' };
            UUID.is_match(text) && version(text) == Some(wanted) && has_variant(text)
        }
        "date" => is_date(text),
        "datetime" => is_moment(text),
        "duration" => parse_go(text).is_some() || is_wordy_duration(text),
        "byte" => BASE64.is_match(text),
        "hostname" => is_hostname(text),
        "email" => is_address(text),
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
/// The time of day in a moment, with any character before its fraction.
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    regex("^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$")
});
/// What a part of the name of a host is made of, but for dashes.
static LABEL: LazyLock<Regex> = LazyLock::new(|| regex("^[a-zA-Z0-9\\p{S}\\p{L}]*$"));
static TOP_LABEL: LazyLock<Regex> = LazyLock::new(|| regex("^\\p{L}*$"));
/// Bits that are left over may be anything, and there are some.
static BASE64: LazyLock<Regex> = LazyLock::new(|| {
    regex("^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$")
});
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
static WORDY_DURATION: LazyLock<Regex> =
    LazyLock::new(|| regex("([0-9]+)[\\t\\n\\f\\r ]*([A-Za-z\u{b5}]+)"));

fn regex(text: &str) -> Regex {
    Regex::new(text).expect("it was written with care")
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<Date>().is_ok()
}

fn is_moment(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (date, time) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    is_date(date) && TIME.is_match(time)
}

/// Whether there is a number with a unit of time anywhere in a text, as in `22 ns` or `about 2
/// days`; the last of those that mean the same may go on in any way.
fn is_wordy_duration(text: &str) -> bool {
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "\u{b5}s", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    let is_unit = |unit: &str| {
        let unit = unit.to_lowercase();
        UNITS.iter().any(|names| {
            names.contains(&&*unit) || names.last().is_some_and(|name| unit.starts_with(name))
        })
    };
    let mut has_unit = false;
    for found in WORDY_DURATION.captures_iter(text) {
        if found[1].parse::<i64>().is_err() {
            return false;
        }
        has_unit |= is_unit(&found[2]);
    }
    has_unit
}

/// Whether a text is the name of a host: one part with a dash after its first character at most,
/// or several, of which the last one is made of letters.
fn is_hostname(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    if text.len() > 255 || parts.iter().any(|part| part.len() > 63 || part.is_empty()) {
        return false;
    }
    let [parts @ .., last] = &parts[..] else { return false };
    if parts.is_empty() {
        let mut plain = last.to_string();
        if plain.find('-').is_some_and(|at| at > 0 && plain[..at].chars().count() == 1) {
            plain = plain.replacen('-', "", 1);
        }
        return LABEL.is_match(&plain);
    }
    let is_part = |part: &&str| {
        !part.starts_with('-') && !part.ends_with('-') && LABEL.is_match(&part.replace('-', ""))
    };
    last.chars().count() > 1 && TOP_LABEL.is_match(last) && parts.iter().all(is_part)
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
    match is_ipv4(address) {
        true => length <= 32,
        false => is_ipv6(address) && length <= 128,
    }
}

/// Whether a text is an address as Kubernetes always took them: with leading zeros.
fn is_ipv4(text: &str) -> bool {
    let is_octet = |part: &str| {
        let digits = part.trim_start_matches('0');
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number && (digits.is_empty() || digits.parse::<u8>().is_ok())
    };
    text.split('.').count() == 4 && text.split('.').all(is_octet)
}

/// The same for those of six, which may have one of four at their end.
fn is_ipv6(text: &str) -> bool {
    let parts = text.split(':').map(|part| match part {
        "" => "",
        part if is_ipv4(part) => "0.0.0.0",
        part => Some(part.trim_start_matches('0')).filter(|it| !it.is_empty()).unwrap_or("0"),
    });
    parts.collect::<Vec<_>>().join(":").parse::<Ipv6Addr>().is_ok()
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
            ("ipv4", "010.000.0.01", true),
            ("ipv4", "10.0.0.256", false),
            ("ipv4", "::ffff:1.2.3.4", true),
            ("ipv4", "::1", false),
            ("ipv6", "::1", true),
            ("cidr", "10.0.0.0/8", true),
            ("cidr", "10.0.0.0/33", false),
            ("cidr", "010.0.0.0/08", true),
            ("cidr", "fd00::/64", true),
            ("cidr", "fd00::/129", false),
            ("cidr", "fd00::", false),
            ("mac", "01:23:45:67:89:ab", true),
            ("mac", "01:23", false),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", true),
            ("uuid4", "123e4567-e89b-12d3-a456-426614174000", false),
            ("date", "2026-11-15", true),
            ("date", "2026-13-15", false),
            ("date-time", "2026-11-15T12:00:00Z", true),
            ("date-time", "2026-11-15", false),
            ("date-time", "2026-11-15t12:00:00.5z", true),
            ("date-time", "2026-11-15T12:00:00+01:00", true),
            ("date-time", "2026-11-15T12:00:00+01", false),
            ("date-time", "2026-11-15T12:00:00", false),
            ("date-time", "2026-11-15T12:00:60Z", false),
            ("date-time", "2026-11-15 12:00:00Z", false),
            ("duration", "1h30m", true),
            ("duration", "22 ns", true),
            ("duration", "soon", false),
            ("duration", "about 2 days, or 3 weeks", true),
            ("duration", "1 MICROSECOND", true),
            ("duration", "1 seconds", true),
            ("duration", "2 months", false),
            ("duration", "5", false),
            ("byte", "YQ==", true),
            ("byte", "!", false),
            ("byte", "", false),
            ("byte", "YR==", true),
            ("hostname", "a.example.com", true),
            ("hostname", "-a", false),
            ("hostname", "10.0.0.1", false),
            ("hostname", "example.com.", false),
            ("hostname", "a-b.example.com", true),
            ("hostname", "host-1", false),
            ("hostname", "h-1", true),
            ("hostname", "localhost", true),
            ("hostname", "a.b", false),
            ("hostname", "", false),
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
