//! Durations as Go writes and reads them.

use jiff::SignedDuration;

/// How long one of each unit is, in nanoseconds. A millionth has two signs that look alike.
const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// How many digits after the point can matter: a billionth of a second is the shortest time.
const DIGITS_MAX: usize = 18;

/// The duration that Go's `time.ParseDuration` reads from a text, such as `1h30m`, `-1.5s` or `0`;
/// none where that refuses it. Other readers take more: words, spaces, days, ISO 8601.
pub fn parse_go(text: &str) -> Option<SignedDuration> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Some(SignedDuration::ZERO);
    }
    let (mut rest, mut total) = (unsigned, 0_i128);
    loop {
        let is_number = |sign: char| sign.is_ascii_digit() || sign == '.';
        let (number, after) = split(rest, is_number);
        let (unit, after) = split(after, |sign| !is_number(sign));
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(part(number, *nanos)?)?;
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    let total = if text.starts_with('-') { -total } else { total };
    Some(SignedDuration::from_nanos(i64::try_from(total).ok()?))
}

/// `number` of a unit that is so many nanoseconds.
fn part(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u64>().ok() };
    let fraction = &fraction[..fraction.len().min(DIGITS_MAX)];
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    let whole = i128::from(digits(whole)?).checked_mul(unit)?;
    whole.checked_add(i128::from(digits(fraction)?) * unit / scale)
}

/// What a text begins with, as far as `is_part` says so, and the rest.
fn split(text: &str, is_part: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|sign| !is_part(sign)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_takes_is_taken() {
        let cases = [
            ("0", 0),
            ("-0", 0),
            ("0s", 0),
            ("5s", 5_000_000_000),
            ("+5s", 5_000_000_000),
            ("-5s", -5_000_000_000),
            ("1478s", 1_478_000_000_000),
            ("5.0s", 5_000_000_000),
            ("5.6s", 5_600_000_000),
            ("5.s", 5_000_000_000),
            (".5s", 500_000_000),
            ("1.004s", 1_004_000_000),
            ("100.00100s", 100_001_000_000),
            ("10ns", 10),
            ("11us", 11_000),
            ("12\u{b5}s", 12_000),
            ("12\u{3bc}s", 12_000),
            ("13ms", 13_000_000),
            ("15m", 900_000_000_000),
            ("16h", 57_600_000_000_000),
            ("3h30m", 12_600_000_000_000),
            ("10.5s4m", 250_500_000_000),
            ("-2m3.4s", -123_400_000_000),
            ("0.3333333333333333333h", 1_200_000_000_000 - 1),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
        ];
        for (text, want) in cases {
            // Go counts broken hours in floating point: less than a nanosecond is no difference.
            let got = parse_go(text).map(|it| it.as_nanos());
            let is_near = got.is_some_and(|got| (got - i128::from(want)).abs() <= 1);
            assert!(is_near, "{text}: {got:?}, not {want}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        let cases = [
            "",
            "3",
            "-",
            "+",
            "s",
            ".",
            "-.",
            ".s",
            "+.s",
            "1d",
            "1w",
            "5 minutes",
            "5m ",
            " 5m",
            "1h 30m",
            "1h, 30m",
            "PT5M",
            "5M",
            "5min",
            "5sec",
            "1.2.3s",
            "1e3s",
            "--5s",
            "1h-30m",
            "5m ago",
            "\u{85}\u{85}",
            "hello \u{ffff} world",
            "9223372036854775808ns",
            "-9223372036854775809ns",
            "3000000h",
            "99999999999999999999s",
        ];
        for text in cases {
            assert_eq!(parse_go(text), None, "{text:?}");
        }
    }
}
