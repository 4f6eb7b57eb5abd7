//! Sums of amounts without rounding, so that they never drift.
//!
//! The promise "Σ reserved ≤ C at every instant" needs a sum that is updated millions of times. A
//! floating point sum loses a little at each update. This one is a fixed point number with 128 bits
//! before and 128 bits after the point: every [`Amount`], and every sum of up to 10²³ of them, is
//! exact. Adding and subtracting cost a few nanoseconds.

use crate::amount::Amount;

/// The exact sum of a multiset of amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ExactSum {
    whole: u128,
    /// In units of 2⁻¹²⁸.
    fraction: u128,
}

impl ExactSum {
    /// Zero.
    pub const ZERO: Self = Self {
        whole: 0,
        fraction: 0,
    };

    /// Adds `amount`.
    pub fn add(&mut self, amount: Amount) {
        self.add_sum(&Self::from(amount));
    }

    /// Adds another sum.
    pub(crate) fn add_sum(&mut self, other: &Self) {
        let (sum, carry) = self.fraction.overflowing_add(other.fraction);
        self.fraction = sum;
        // An amount is below 2⁵⁰: it would take 2⁷⁸ of them to overflow.
        self.whole += other.whole + u128::from(carry);
    }

    /// Subtracts `amount`, which must have been added.
    pub fn subtract(&mut self, amount: Amount) {
        self.subtract_sum(&Self::from(amount));
    }

    /// Subtracts another sum, which must have been added.
    pub(crate) fn subtract_sum(&mut self, taken: &Self) {
        debug_assert!(taken <= self, "taking {taken:?} out of {self:?}");
        let (rest, borrow) = self.fraction.overflowing_sub(taken.fraction);
        self.fraction = rest;
        self.whole = self
            .whole
            .wrapping_sub(taken.whole)
            .wrapping_sub(u128::from(borrow));
    }

    /// Replaces `before`, which must have been added, by `after`.
    pub fn replace(&mut self, before: Amount, after: Amount) {
        if before == after {
            return;
        }
        // Adding comes first, so that the sum never falls below its other parts between the two
        // steps.
        self.add(after);
        self.subtract(before);
    }

    /// Whether the sum is above `amount`, exactly.
    pub fn exceeds(&self, amount: Amount) -> bool {
        *self > Self::from(amount)
    }

    /// Returns this sum less another one, exactly; zero if the other one is not smaller.
    pub fn without(&self, other: &Self) -> Self {
        if other >= self {
            return Self::ZERO;
        }
        let mut rest = *self;
        rest.subtract_sum(other);
        rest
    }

    /// Whether the sum is zero.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// `capacity` less this sum, rounded down to what an amount can hold; zero if the sum is not
    /// below the capacity. The result plus the sum never exceeds the capacity, exactly.
    pub(crate) fn left_of(&self, capacity: Amount) -> Amount {
        let left = Self::from(capacity).without(self);
        Amount::from_computed(left.rounded_down())
    }

    /// Returns the sum as a number, rounded down.
    pub fn rounded_down(&self) -> f64 {
        self.number().0
    }

    /// Returns the sum as a number, rounded down, and whether it is that number exactly.
    fn number(&self) -> (f64, bool) {
        let zeros = if self.whole == 0 {
            128 + self.fraction.leading_zeros()
        } else {
            self.whole.leading_zeros()
        };
        if zeros >= 256 {
            return (0.0, true);
        }
        // The top 53 bits, from the highest that is set, and the weight of the last of them.
        let zeros = zeros.cast_signed();
        let high = shifted_left(self.whole, zeros) | shifted_left(self.fraction, zeros - 128);
        let top = high >> (128 - 53);
        let exponent = 127 - i64::from(zeros) - 52;
        // 53 bits fit an f64 exactly, and the weight is between 2⁻¹⁸⁰ and 2⁷⁵: a normal number. The
        // processor converts 64 bits itself; 128 bits would need a routine.
        let mantissa = top as u64 as f64;
        let is_exact = high << 53 == 0 && shifted_left(self.fraction, zeros) == 0;
        (mantissa * power_of_two(exponent), is_exact)
    }

    /// Returns the sum as an amount, rounded up.
    pub(crate) fn rounded_up(&self) -> Amount {
        let (down, is_exact) = self.number();
        Amount::from_computed(if is_exact { down } else { down.next_up() })
    }
}

impl From<Amount> for ExactSum {
    fn from(amount: Amount) -> Self {
        let bits = amount.get().to_bits();
        let exponent = (bits >> 52) & 0x7ff;
        if exponent == 0 {
            // Zero: amounts are multiples of 2⁻¹²⁸, so none is subnormal.
            return Self::ZERO;
        }
        let mantissa = u128::from(bits & ((1 << 52) - 1) | (1 << 52));
        // The amount is mantissa · 2^shift. No bit falls out at the end: it is a multiple of 2⁻¹²⁸.
        let shift = exponent as i32 - 1023 - 52;
        Self {
            whole: shifted_left(mantissa, shift),
            fraction: shifted_left(mantissa, shift + 128),
        }
    }
}

/// Returns the bits after a shift to the left, or to the right if `by` is negative.
fn shifted_left(bits: u128, by: i32) -> u128 {
    let shifted = match by {
        0.. => bits.checked_shl(by.unsigned_abs()),
        _ => bits.checked_shr(by.unsigned_abs()),
    };
    shifted.unwrap_or(0)
}

/// 2 to the power of `exponent`, which must give a normal number.
fn power_of_two(exponent: i64) -> f64 {
    debug_assert!((-1022..=1023).contains(&exponent));
    f64::from_bits(u64::try_from(exponent + 1023).unwrap_or(0) << 52)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn amounts() -> impl Strategy<Value = Amount> {
        prop_oneof![
            Just(0.0),
            0.0..1e15,
            0.0..1.0,
            (-127i32..49).prop_map(|e| 2f64.powi(e)),
            (-40f64..15.0).prop_map(|e| 10f64.powf(e)),
        ]
        .prop_map(Amount::from_computed)
    }

    #[test]
    fn an_amount_alone_is_its_own_sum() {
        for value in [
            0.0,
            1.0,
            0.1,
            1e15,
            1e-9,
            2f64.powi(-128),
            3.0 * 2f64.powi(-128),
            0.3,
        ] {
            assert_eq!(
                ExactSum::from(Amount::from_computed(value)).rounded_down(),
                value
            );
        }
    }

    proptest! {
        #[test]
        fn added_and_subtracted_parts_leave_zero(
            parts in prop::collection::vec(amounts(), 0..60),
        ) {
            let mut sum = ExactSum::ZERO;
            parts.iter().for_each(|part| sum.add(*part));
            parts.iter().rev().for_each(|part| sum.subtract(*part));
            prop_assert_eq!(sum, ExactSum::ZERO);
        }

        #[test]
        fn the_order_of_additions_does_not_matter(
            parts in prop::collection::vec(amounts(), 0..60),
        ) {
            let (mut forth, mut back) = (ExactSum::ZERO, ExactSum::ZERO);
            parts.iter().for_each(|part| forth.add(*part));
            parts.iter().rev().for_each(|part| back.add(*part));
            prop_assert_eq!(forth, back);
        }

        #[test]
        fn rounding_is_down_and_by_less_than_one_ulp(
            parts in prop::collection::vec(amounts(), 1..20),
        ) {
            let mut sum = ExactSum::ZERO;
            parts.iter().for_each(|part| sum.add(*part));
            let rounded = sum.rounded_down();
            let below = Amount::from_computed(rounded);
            if rounded <= Amount::MAX.get() {
                prop_assert!(ExactSum::from(below) <= sum);
                prop_assert!(!sum.exceeds(sum.rounded_up()));
                prop_assert!(sum.rounded_up().get() <= rounded.next_up());
                prop_assert!(sum != ExactSum::from(below) || sum.rounded_up() == below);
                prop_assert!(ExactSum::from(Amount::from_computed(rounded.next_up())) > sum
                    || rounded < 2f64.powi(-75));
            }
        }

        #[test]
        fn the_rest_never_takes_the_sum_above_the_capacity(
            capacity in amounts(),
            parts in prop::collection::vec(amounts(), 0..10),
        ) {
            let mut sum = ExactSum::ZERO;
            parts.iter().for_each(|part| sum.add(*part));
            let left = sum.left_of(capacity);
            let was_within = !sum.exceeds(capacity);
            sum.add(left);
            prop_assert!(left == Amount::ZERO || was_within);
            prop_assert!(!was_within || !sum.exceeds(capacity));
        }
    }
}
