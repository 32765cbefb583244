//! Kubernetes quantities: `500m`, `1Gi`, `12e6`. Exact: no floating point anywhere.

use std::{cmp::Ordering, fmt};

mod parse;

pub use parse::QuantityError;

/// How a quantity was written, and so how it is written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `12e6`.
    DecimalExponent,
    /// `12Mi`.
    BinarySi,
    /// `12M`.
    DecimalSi,
}

/// The largest whole amount whose thousandths still fit into 64 bits.
pub const MILLI_VALUE_MAX: i64 = i64::MAX / 1000;

/// An amount of something: `digits × 10^exponent`, never finer than nano.
///
/// Two quantities are equal when their amounts are, however they are written.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    digits: i128,
    exponent: i32,
    format: Format,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self::whole(0);

    /// A whole number.
    pub const fn whole(value: i64) -> Self {
        Self { digits: value as i128, exponent: 0, format: Format::DecimalSi }
    }

    /// A number of bytes, written with binary suffixes.
    pub const fn bytes(value: i64) -> Self {
        Self { digits: value as i128, exponent: 0, format: Format::BinarySi }
    }

    /// A number of thousandths.
    pub const fn milli(value: i64) -> Self {
        Self { digits: value as i128, exponent: -3, format: Format::DecimalSi }
    }

    /// The amount `text` names.
    ///
    /// # Errors
    /// When `text` is no quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        parse::parse(text).map(|parsed| parsed.quantity)
    }

    /// The amount in whole units, fractions rounded away from zero, limited to what an `i64` holds.
    pub fn value(&self) -> i64 {
        self.scaled(0)
    }

    /// The amount in thousandths, finer fractions rounded away from zero, limited likewise.
    pub fn milli_value(&self) -> i64 {
        self.scaled(-3)
    }

    /// The amount in units of `10^exponent`, finer fractions rounded away from zero.
    pub fn scaled(&self, exponent: i32) -> i64 {
        let rounded = shifted(self.digits, self.exponent.saturating_sub(exponent));
        i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX })
    }

    /// The amount in whole multiples of `10^exponent`, rounded away from zero.
    #[must_use]
    pub fn rounded(&self, exponent: i32) -> Self {
        if self.exponent >= exponent {
            return *self;
        }
        let digits = shifted(self.digits, self.exponent.saturating_sub(exponent));
        Self { digits, exponent, format: self.format }
    }

    /// Whether it is a whole number.
    pub fn is_whole(&self) -> bool {
        let (_, exponent) = trimmed(self.digits, self.exponent);
        self.digits == 0 || exponent >= 0
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i32 {
        match self.digits.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// Whether it is nothing.
    pub fn is_zero(&self) -> bool {
        self.digits == 0
    }

    /// How it is written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The sum, written as `self` is unless that is zero. Sums beyond all bounds stay at the bound.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.combined(other, i128::saturating_add)
    }

    /// The difference, written as `self` is unless that is zero.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.combined(other, i128::saturating_sub)
    }

    fn combined(&self, other: &Self, how: impl Fn(i128, i128) -> i128) -> Self {
        let exponent = match (self.is_zero(), other.is_zero()) {
            (true, _) => other.exponent,
            (_, true) => self.exponent,
            _ => self.exponent.min(other.exponent),
        };
        let align = |q: &Self| shifted(q.digits, q.exponent.saturating_sub(exponent));
        let format = if self.is_zero() { other.format } else { self.format };
        Self { digits: how(align(self), align(other)), exponent, format }
    }
}

/// What a server answers for the quantity `text`: the canonical form, `0.5` as `500m`, `1024Mi` as
/// `1Gi`.
///
/// # Errors
/// When `text` is no quantity.
pub fn canonical(text: &str) -> Result<String, QuantityError> {
    let parsed = parse::parse(text)?;
    if parsed.is_canonical {
        return Ok(text.trim().to_owned());
    }
    let shown = parsed.quantity.to_string();
    // What is no multiple of 1024 has no suffix left, and is read as a decimal number from then on.
    let again = parse::parse(&shown)?;
    Ok(if again.is_canonical { shown } else { again.quantity.to_string() })
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.is_zero() && other.is_zero() {
            return Ordering::Equal;
        }
        self.sign().cmp(&other.sign()).then_with(|| {
            let (mine, my_exponent) = trimmed(self.digits, self.exponent);
            let (theirs, their_exponent) = trimmed(other.digits, other.exponent);
            let magnitude = |digits: i128, exponent: i32| {
                i64::from(exponent) + i64::from(digits.unsigned_abs().checked_ilog10().unwrap_or(0))
            };
            let by_size = magnitude(mine, my_exponent)
                .cmp(&magnitude(theirs, their_exponent))
                .then_with(|| {
                    // Of one magnitude: the exponents differ by at most the 38 digits there are.
                    let low = my_exponent.min(their_exponent);
                    let align = |digits: i128, exponent: i32| {
                        shifted(digits, exponent - low).unsigned_abs()
                    };
                    align(mine, my_exponent).cmp(&align(theirs, their_exponent))
                });
            if self.sign() < 0 { by_size.reverse() } else { by_size }
        })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        let is_small = *self > Self::whole(-1024) && *self < Self::whole(1024);
        if self.format == Format::BinarySi && !is_small && self.is_whole() {
            return self.fmt_binary(f);
        }
        let (mut digits, mut exponent) = trimmed(self.digits, self.exponent);
        while exponent % 3 != 0 && digits.checked_mul(10).is_some() {
            digits *= 10;
            exponent -= 1;
        }
        match (self.format, decimal_suffix(exponent)) {
            (Format::DecimalSi | Format::BinarySi, Some(suffix)) => write!(f, "{digits}{suffix}"),
            (_, Some("")) => write!(f, "{digits}"),
            _ => write!(f, "{digits}e{exponent}"),
        }
    }
}

impl Quantity {
    fn fmt_binary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = shifted(self.digits, self.exponent);
        let mut suffix = "";
        for larger in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
            if digits % 1024 != 0 {
                break;
            }
            digits /= 1024;
            suffix = larger;
        }
        write!(f, "{digits}{suffix}")
    }
}

fn decimal_suffix(exponent: i32) -> Option<&'static str> {
    Some(match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        0 => "",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => return None,
    })
}

/// `digits × 10^by`, rounded away from zero, held at the bounds of an `i128`.
fn shifted(digits: i128, by: i32) -> i128 {
    if digits == 0 {
        return 0;
    }
    let power = 10_i128.checked_pow(by.unsigned_abs());
    match power {
        Some(power) if by >= 0 => digits.saturating_mul(power),
        Some(power) => digits / power + if digits % power == 0 { 0 } else { digits.signum() },
        None if by >= 0 && digits < 0 => i128::MIN,
        None if by >= 0 => i128::MAX,
        None => digits.signum(),
    }
}

/// The same amount without trailing zeros.
fn trimmed(mut digits: i128, mut exponent: i32) -> (i128, i32) {
    while digits != 0 && digits % 10 == 0 {
        digits /= 10;
        exponent = exponent.saturating_add(1);
    }
    (digits, exponent)
}

#[cfg(test)]
mod tests;
