//! What is left over when a ratio is not whole.
//!
//! A part of a drop, as a fraction. While a limit stays, only whole drops come and go, so the part changes no
//! answer; the next change of limit counts it, so that going there and back again restores. If the fraction no
//! longer fits 128 bits, it is given up: less than a drop is lost, and never is anything gained.

use std::cmp::Ordering;

use crate::flow::gcd;

/// A part of a drop that is there though it counts as missing. Mostly there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest(Option<Box<Fraction>>);

/// Less than 1, more than 0, reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fraction {
    above: u128,
    below: u128,
}

impl Rest {
    /// No part of a drop.
    pub(crate) const NONE: Self = Self(None);

    /// All is there: nothing is left over.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if self.0.is_some() {
            self.0 = None;
        }
    }

    /// So many drops and the rest, times `by`/`of`, rounded down; the rest is what that leaves. Nothing if `of` is 0.
    pub(crate) fn scale(&mut self, drops: u128, by: u128, of: u128) -> u128 {
        if by == of {
            return drops;
        }
        let rest = self.0.take();
        if of == 0 {
            return 0;
        }
        let common = gcd(by, of).max(1);
        let (by, of) = (by / common, of / common);
        let (whole, left) = times_over(drops, by, of);
        // What is left of the drops is left/of; the rest becomes above·by / (below·of).
        let sum = rest.and_then(|rest| {
            let below = rest.below.checked_mul(of)?;
            let above = rest.above.checked_mul(by)?;
            Some((above.checked_add(left.checked_mul(rest.below)?)?, below))
        });
        let (above, below) = sum.unwrap_or((left, of));
        self.set(above % below, below);
        whole.saturating_add(above / below)
    }

    /// A debt of so many drops, less the rest, times `by`/`of`, rounded up; the rest is what that leaves.
    pub(crate) fn scale_debt(&mut self, drops: u128, by: u64, of: u64) -> u128 {
        if by == of {
            return drops;
        }
        // The debt is (drops − 1) and the other part of the drop.
        let other = self.0.as_mut().map(|rest| {
            rest.above = rest.below - rest.above;
        });
        let whole = match other {
            Some(()) => self.scale(drops.saturating_sub(1), u128::from(by), u128::from(of)),
            None => self.scale(drops, u128::from(by), u128::from(of)),
        };
        match self.0.as_mut() {
            Some(rest) => {
                rest.above = rest.below - rest.above;
                whole.saturating_add(1)
            }
            None => whole,
        }
    }

    fn set(&mut self, above: u128, below: u128) {
        let common = gcd(above, below).max(1);
        self.0 = (above > 0).then(|| {
            Box::new(Fraction {
                above: above / common,
                below: below / common,
            })
        });
    }
}

/// `a`·`b`/`c`, rounded up; the largest number if it does not fit. `c` is not 0.
pub(crate) fn scaled_up(a: u128, b: u128, c: u128) -> u128 {
    let (whole, left) = times_over(a, b, c);
    whole.saturating_add(u128::from(left > 0))
}

/// Whether `a`·`b` is below, equal to or above `c`·`d`.
pub(crate) fn compare_products(a: u128, b: u128, c: u128, d: u128) -> Ordering {
    wide_product(a, b).cmp(&wide_product(c, d))
}

/// `a`·`b`/`c` and what the division leaves; the largest number if it does not fit. `c` is not 0.
pub(crate) fn times_over(a: u128, b: u128, c: u128) -> (u128, u128) {
    if let Some(product) = a.checked_mul(b) {
        return (product / c, product % c);
    }
    // The product in 256 bits, then a division bit by bit: changes of limit are rare.
    let (high, low) = wide_product(a, b);
    if high >= c {
        return (u128::MAX, 0);
    }
    let (mut left, mut quotient) = (high, 0_u128);
    for bit in (0..128).rev() {
        let carry = left >> 127 == 1;
        left = (left << 1) | ((low >> bit) & 1);
        quotient <<= 1;
        if carry || left >= c {
            left = left.wrapping_sub(c);
            quotient |= 1;
        }
    }
    (quotient, left)
}

/// The upper and the lower half of a product.
fn wide_product(a: u128, b: u128) -> (u128, u128) {
    const HALF: u128 = u64::MAX as u128;
    let (a_high, a_low, b_high, b_low) = (a >> 64, a & HALF, b >> 64, b & HALF);
    let low = a_low * b_low;
    let one = a_high * b_low + (low >> 64);
    let other = a_low * b_high + (one & HALF);
    let high = a_high * b_high + (one >> 64) + (other >> 64);
    (high, (other << 64) | (low & HALF))
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_product_of_any_size_is_divided_exactly(
            a in any::<u128>(), b in any::<u128>(), c in 1..u128::MAX, small in 0..100_u32,
        ) {
            let a = a >> small;
            let product = BigUint::from(a) * b;
            let (quotient, left) = times_over(a, b, c);
            if &product / c > BigUint::from(u128::MAX) {
                prop_assert_eq!(quotient, u128::MAX);
            } else {
                prop_assert_eq!(BigUint::from(quotient) * c + left, product);
                prop_assert!(left < c);
            }
        }

        #[test]
        fn there_and_back_again_restores(
            drops in 0..1_u128 << 100, sizes in prop::collection::vec(1..1_000_000_u128, 1..4),
        ) {
            let mut rest = Rest::NONE;
            let path: Vec<u128> = sizes.iter().chain(sizes.iter().rev()).copied().collect();
            let steps = || path.windows(2);
            let end = steps().fold(drops, |drops, step| rest.scale(drops, step[1], step[0]));
            prop_assert_eq!((end, rest), (drops, Rest::NONE));
            let mut rest = Rest::NONE;
            let end = steps().fold(drops, |drops, step| {
                rest.scale_debt(drops, step[1] as u64, step[0] as u64)
            });
            prop_assert_eq!((end, rest), (drops, Rest::NONE));
        }
    }

    #[test]
    fn a_debt_is_rounded_up_and_what_is_there_down() {
        let mut rest = Rest::NONE;
        assert_eq!(rest.scale(10, 2, 3), 6);
        let mut rest = Rest::NONE;
        assert_eq!(rest.scale_debt(10, 2, 3), 7);
        assert_eq!(rest.scale_debt(7, 3, 2), 10);
    }
}
