//! An amount of capacity: wants, a grant, a reservation or a supply.
//!
//! Amounts are parsed where input enters the engine; inside it no amount is NaN, negative, infinite
//! or above the maximum. Amounts are whole multiples of 2⁻¹²⁸ (anything finer is rounded down), so
//! that [`crate::exact_sum::ExactSum`] can keep their sums without any rounding.

use std::cmp::Ordering;
use std::fmt;

use thiserror::Error;

/// A finite number from 0 to [`Amount::MAX`].
#[derive(Clone, Copy, PartialEq, Default)]
pub struct Amount(f64);

/// Reason why a number is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum AmountError {
    /// Not a number.
    #[error("is not a number; give a finite number that is not negative")]
    Nan,
    /// Below zero.
    #[error("is {0}, which is negative; give a finite number that is not negative")]
    Negative(f64),
    /// Infinite, or beyond [`Amount::MAX`].
    #[error("is {0}, which is above the largest amount, {max}", max = Amount::MAX)]
    TooLarge(f64),
}

impl Amount {
    /// Zero.
    pub const ZERO: Self = Self(0.0);

    /// The largest amount, 10¹⁵: large enough for bytes per second of a whole company, small
    /// enough that sums over 10⁹ holders stay far from every limit of the arithmetic.
    pub const MAX: Self = Self(1e15);

    /// Parses a number from outside.
    ///
    /// # Errors
    ///
    /// If it is NaN, negative, infinite or above [`Amount::MAX`].
    pub fn new(value: f64) -> Result<Self, AmountError> {
        if value.is_nan() {
            Err(AmountError::Nan)
        } else if value < 0.0 {
            Err(AmountError::Negative(value))
        } else if value > Self::MAX.0 {
            Err(AmountError::TooLarge(value))
        } else {
            Ok(Self::from_computed(value))
        }
    }

    /// Returns the amount for a result of our own arithmetic. Pulls back a result that rounding
    /// pushed out of range.
    pub(crate) fn from_computed(value: f64) -> Self {
        debug_assert!(!value.is_nan(), "our own arithmetic gave NaN");
        // A NaN becomes 0, the safe side, and so does -0, which is the sum of no numbers.
        let clamped = if value > 0.0 {
            value.min(Self::MAX.0)
        } else {
            0.0
        };
        Self(if clamped < Self::ALWAYS_EXACT {
            round_down_to_grid(clamped)
        } else {
            clamped
        })
    }

    /// From this number upwards every f64 is a multiple of 2⁻¹²⁸ (its last bit is worth at least
    /// that).
    const ALWAYS_EXACT: f64 = f64::from_bits((1023 - 76) << 52);

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Whether the amount is zero.
    pub fn is_zero(self) -> bool {
        self.0 == 0.0
    }
}

/// Rounds a number below 2⁻⁷⁶ down to a multiple of 2⁻¹²⁸.
fn round_down_to_grid(value: f64) -> f64 {
    // Both factors are powers of two, so scaling is exact (a subnormal scales to a number below
    // one and is floored to zero).
    const SCALE: f64 = f64::from_bits((1023 + 128) << 52);
    (value * SCALE).floor() / SCALE
}

impl Eq for Amount {}

/// Total, since an amount is never NaN.
impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_number_is_refused_with_the_reason() {
        assert_eq!(Amount::new(-1.0), Err(AmountError::Negative(-1.0)));
        assert_eq!(Amount::new(1e300), Err(AmountError::TooLarge(1e300)));
        assert_eq!(
            Amount::new(f64::INFINITY),
            Err(AmountError::TooLarge(f64::INFINITY))
        );
        assert_eq!(
            Amount::new(f64::NEG_INFINITY),
            Err(AmountError::Negative(f64::NEG_INFINITY))
        );
        assert!(matches!(Amount::new(f64::NAN), Err(AmountError::Nan)));
    }

    #[test]
    fn the_sum_of_no_amounts_has_no_sign() {
        let nothing: f64 = [0.0; 0].iter().sum();
        assert!(nothing.is_sign_negative());
        assert!(Amount::from_computed(nothing).get().is_sign_positive());
        assert!(Amount::new(-0.0).is_ok_and(|it| it.get().is_sign_positive()));
    }

    #[test]
    fn an_amount_finer_than_the_grid_is_rounded_down() {
        let grid = 2f64.powi(-128);
        for (given, kept) in [
            (f64::MIN_POSITIVE, 0.0),
            (f64::from_bits(1), 0.0),
            (grid * 0.99, 0.0),
            (grid, grid),
            (grid * 2.5, grid * 2.0),
            (1e-9, 1e-9),
            (0.1, 0.1),
        ] {
            assert_eq!(Amount::new(given).map(Amount::get), Ok(kept), "{given:e}");
        }
    }
}
