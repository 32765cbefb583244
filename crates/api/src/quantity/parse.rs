//! Reading quantities.

use super::{Format, Quantity, shifted, trimmed};

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It does not look like one.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The number has more digits than can be kept.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The suffix is none of those known.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

pub(super) struct Parsed {
    pub(super) quantity: Quantity,
    /// Whether the text may stand as it is.
    pub(super) is_canonical: bool,
}

struct Parts<'a> {
    is_negative: bool,
    /// Digits before the point, without leading zeros, at least one.
    whole: &'a str,
    /// Digits after the point.
    fraction: &'a str,
    suffix: &'a str,
}

pub(super) fn parse(text: &str) -> Result<Parsed, QuantityError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(QuantityError::Format);
    }
    let parts = split(text)?;
    let (binary, exponent, format) = suffix(parts.suffix)?;
    let written = format!("{}{}", parts.whole, parts.fraction);
    let fraction = i32::try_from(parts.fraction.len()).map_err(|_| QuantityError::Number)?;
    let mut scale = exponent.saturating_sub(fraction);
    let significant = written.trim_end_matches('0');
    let dropped = i32::try_from(written.len() - significant.len()).unwrap_or(i32::MAX);
    let magnitude: i128 = if significant.is_empty() {
        0
    } else {
        significant.parse().map_err(|_| QuantityError::Number)?
    };
    scale = scale.saturating_add(dropped);
    let mut digits = magnitude.checked_mul(1 << binary).ok_or(QuantityError::Number)?;
    // Nothing finer than nano is kept; asking for some never gives none.
    if scale < -9 {
        digits = shifted(digits, scale.saturating_add(9));
        scale = -9;
    }
    if format == Format::BinarySi && shifted(digits, scale) > i128::from(i64::MAX) {
        (digits, scale) = (i128::from(i64::MAX), 0);
    }
    let is_below_one = format == Format::BinarySi
        && digits > 0
        && shifted(digits, scale) == 1
        && trimmed(digits, scale).1 < 0;
    let quantity = Quantity {
        digits: if parts.is_negative { -digits } else { digits },
        exponent: scale,
        format: if is_below_one { Format::DecimalSi } else { format },
    };
    Ok(Parsed { is_canonical: stands(&parts, &written, exponent, format), quantity })
}

/// Whether upstream keeps the text instead of writing the number anew. It does when a quick look
/// shows no shorter form, also for some that have one, such as `1.500`.
fn stands(parts: &Parts<'_>, written: &str, exponent: i32, format: Format) -> bool {
    let length = i32::try_from(written.len()).unwrap_or(i32::MAX);
    match format {
        Format::BinarySi => {
            let power = binary_power(parts.suffix);
            let spare = 14 - length - power * 3 / 10;
            let value: i64 = written.parse().unwrap_or_default();
            parts.fraction.is_empty()
                && spare >= 0
                && value.checked_mul(1 << power).is_some()
                && value & 7 != 0
        }
        Format::DecimalExponent | Format::DecimalSi => {
            let fraction = i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
            let scale = exponent.saturating_sub(fraction);
            length <= 18
                && scale >= -9
                && scale % 3 == 0
                && !written.ends_with("000")
                && !written.starts_with('0')
        }
    }
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let (is_negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let rest = rest.trim_start_matches('0');
    let (whole, rest) = digits(rest);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    let unlettered = rest.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let unsigned = unlettered.strip_prefix(['-', '+']).unwrap_or(unlettered);
    if !digits(unsigned).1.is_empty() {
        return Err(QuantityError::Format);
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    Ok(Parts { is_negative, whole, fraction, suffix: rest })
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// The power of two, the power of ten, and the format a suffix stands for.
fn suffix(text: &str) -> Result<(u32, i32, Format), QuantityError> {
    let decimal = |exponent| Ok((0, exponent, Format::DecimalSi));
    match text {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei" => {
            Ok((binary_power(text).unsigned_abs(), 0, Format::BinarySi))
        }
        _ => {
            let exponent = text.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
            let exponent = exponent.parse().map_err(|_| QuantityError::Suffix)?;
            Ok((0, exponent, Format::DecimalExponent))
        }
    }
}

fn binary_power(text: &str) -> i32 {
    match text {
        "Ki" => 10,
        "Mi" => 20,
        "Gi" => 30,
        "Ti" => 40,
        "Pi" => 50,
        "Ei" => 60,
        _ => 0,
    }
}
