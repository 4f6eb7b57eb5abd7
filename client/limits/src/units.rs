//! Amounts: a cost, a burst, a limit.
//!
//! Limits count units, usually requests. A unit has 10⁹ parts, so that half a request and 0.1 of one are exact. An
//! amount is never negative, infinite or NaN. Creating one from such a number gives an error with the reason
//! ([`InvalidUnits`]), so no limit meets it.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// An amount, from 0 to 2⁶⁴ − 1 with nine decimal places.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Units(u128);

/// Error: an invalid amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidUnits {
    /// It is not a number.
    #[error("is not a number")]
    NotANumber,
    /// It is below 0.
    #[error("is negative")]
    Negative,
    /// It is infinite, or more than 2⁶⁴ − 1.
    #[error("is larger than 18446744073709551615")]
    TooLarge,
    /// It has more than nine decimal places.
    #[error("has more than nine decimal places")]
    TooFine,
}

/// Parts per unit.
const PARTS: u128 = 1_000_000_000;
const PARTS_SHORT: u64 = 1_000_000_000;

impl Units {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// One unit.
    pub const ONE: Self = Self(PARTS);

    /// The largest amount.
    pub const MAX: Self = Self(u64::MAX as u128 * PARTS);

    /// Returns a number of whole units.
    #[inline]
    pub const fn whole(units: u64) -> Self {
        Self(units as u128 * PARTS)
    }

    /// Returns a number of parts, at most [`Units::MAX`].
    #[inline]
    pub const fn from_parts(parts: u128) -> Self {
        if parts < Self::MAX.0 {
            Self(parts)
        } else {
            Self::MAX
        }
    }

    /// Returns the amount in parts: 10⁹ for one unit.
    #[inline]
    pub const fn parts(self) -> u128 {
        self.0
    }

    /// Returns the whole units, rounded down.
    #[inline]
    pub const fn floor(self) -> u64 {
        // No amount is above u64::MAX units.
        (self.0 / PARTS) as u64
    }

    /// Returns the nearest floating-point number; large ones do not have nine decimal places.
    #[inline]
    pub fn as_f64(self) -> f64 {
        // Converting 64 bits is one instruction, and 128 bits a call.
        let parts = u64::try_from(self.0).map_or(self.0 as f64, |parts| parts as f64);
        parts / PARTS as f64
    }

    /// Creates an amount from a measured cost, rounded up to nine decimal places, so that the sum of many never falls
    /// below the measured sum. The noise of floating point (0.1 is a little more than a tenth) does not round up.
    ///
    /// # Errors
    ///
    /// If the number is not a number, negative, or too large.
    #[inline]
    pub fn at_least(units: f64) -> Result<Self, InvalidUnits> {
        match whole_parts(units) {
            Some(parts) => Ok(Self(parts.into())),
            None => Self::rounded_up(units),
        }
    }

    #[inline(never)]
    fn rounded_up(units: f64) -> Result<Self, InvalidUnits> {
        /// In parts.
        const NOISE: f64 = 1e-6;
        let (whole, parts) = split(units)?;
        let nearest = nearest(parts);
        let is_short = nearest < PARTS_SHORT && parts - NOISE > nearest as f64;
        let parts = u128::from(nearest) + u128::from(is_short);
        Ok(Self::from_parts(u128::from(whole) * PARTS + parts))
    }

    /// Returns the sum, at most [`Units::MAX`].
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self::from_parts(self.0 + other.0)
    }

    /// Returns the difference, at least 0.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// The only integer type, so that the 1 of `take(1, now)` is unambiguous.
impl From<u64> for Units {
    #[inline]
    fn from(units: u64) -> Self {
        Self::whole(units)
    }
}

/// 2⁶⁴: the smallest number that is too large.
const TOO_LARGE: f64 = (1_u128 << 64) as f64;

/// Rounds to the nearest of nine decimal places.
impl TryFrom<f64> for Units {
    type Error = InvalidUnits;

    #[inline]
    fn try_from(units: f64) -> Result<Self, InvalidUnits> {
        let (whole, parts) = split(units)?;
        let parts = u128::from(whole) * PARTS + u128::from(nearest(parts));
        Ok(Self::from_parts(parts))
    }
}

/// Returns the number of parts for a small number of units or of parts, as most costs are. The result equals that of
/// [`Units::at_least`] and takes a third of its time.
#[inline]
fn whole_parts(units: f64) -> Option<u64> {
    const SMALL: f64 = (1_u64 << 32) as f64;
    /// Bound below which the noise of floating point is smaller than the tolerance for a whole number of parts.
    const EXACT: f64 = (1_u64 << 33) as f64;
    match whole(units, SMALL) {
        Some(units) => Some(units * PARTS_SHORT),
        None => whole(units * PARTS as f64, EXACT),
    }
}

/// Returns the number if it is whole, and from 0 to below a bound of at most 2⁵². An addition is faster than a
/// conversion.
#[inline]
fn whole(number: f64, below: f64) -> Option<u64> {
    /// From here to 2⁵³, all numbers are whole, and their bits count them.
    const BASE: f64 = (1_u64 << 52) as f64;
    let moved = number + BASE;
    // The bits of numbers from 0 up have the order of the numbers.
    let is_whole = number.to_bits() < below.to_bits() && moved - BASE == number;
    is_whole.then(|| moved.to_bits() - BASE.to_bits())
}

/// Returns the whole units, and the parts of the rest.
#[inline]
fn split(units: f64) -> Result<(u64, f64), InvalidUnits> {
    if units.is_nan() {
        return Err(InvalidUnits::NotANumber);
    }
    if units < 0.0 {
        return Err(InvalidUnits::Negative);
    }
    if units >= TOO_LARGE {
        return Err(InvalidUnits::TooLarge);
    }
    // It is within 0 and 2⁶⁴.
    let whole = units as u64;
    Ok((whole, (units - whole as f64) * 1e9))
}

/// Returns the nearest whole number of parts. Half a part is rounded up.
#[inline]
fn nearest(parts: f64) -> u64 {
    // It is within 0 and 10⁹.
    (parts + 0.5) as u64
}

/// Parses a decimal number without an exponent, as in `1.5`.
impl FromStr for Units {
    type Err = InvalidUnits;

    fn from_str(text: &str) -> Result<Self, InvalidUnits> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (whole, places) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_number = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(places) {
            return Err(InvalidUnits::NotANumber);
        }
        let whole: u64 = whole.parse().map_err(|_| InvalidUnits::TooLarge)?;
        let places = places.trim_end_matches('0');
        if places.len() > 9 {
            return Err(InvalidUnits::TooFine);
        }
        let parts = format!("{places:0<9}").parse();
        let parts: u128 = parts.map_err(|_| InvalidUnits::NotANumber)?;
        let units = u128::from(whole) * PARTS + parts;
        match (text.starts_with('-'), units) {
            (true, 1..) => Err(InvalidUnits::Negative),
            (_, units) if units > Self::MAX.0 => Err(InvalidUnits::TooLarge),
            (_, units) => Ok(Self(units)),
        }
    }
}

impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, parts) = (self.0 / PARTS, self.0 % PARTS);
        let text = match parts {
            0 => whole.to_string(),
            parts => format!("{whole}.{}", format!("{parts:09}").trim_end_matches('0')),
        };
        f.pad(&text)
    }
}

impl fmt::Debug for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares the short and the long computation, for few and many decimal places, up to the bound between them.
        #[test]
        fn a_small_cost_is_reckoned_alike_both_ways(
            parts in 0..20_000_000_000_u64, places in 0..10_u32, more in -3..=3_i64,
        ) {
            let parts = parts - parts % 10_u64.pow(places);
            let decimal = parts as f64 / 1e9;
            let near = f64::from_bits(decimal.to_bits().saturating_add_signed(more));
            for units in [decimal, near, parts as f64] {
                prop_assert_eq!(Units::at_least(units), Units::rounded_up(units), "{}", units);
            }
        }
    }

    #[test]
    fn a_measured_cost_is_rounded_up_and_a_decimal_number_is_what_it_says() {
        #[track_caller]
        fn check(units: f64, parts: u128) {
            assert_eq!(Units::at_least(units).unwrap().parts(), parts, "{units}");
        }
        check(0.0, 0);
        check(0.1, 100_000_000);
        check(0.3, 300_000_000);
        check(1.1, 1_100_000_000);
        check(7.0, 7_000_000_000);
        check(1.0 / 3.0, 333_333_334);
        check(2.0 / 3.0, 666_666_667);
        check(1e-12, 1);
        check(0.999_999_999_9, 1_000_000_000);
        assert_eq!(Units::at_least(-1.0), Err(InvalidUnits::Negative));
    }
}
