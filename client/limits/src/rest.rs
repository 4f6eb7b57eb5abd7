//! Rest of a ratio that is not whole.
//!
//! It is a part of a drop, as a fraction. While a limit stays, only whole drops come and go, so the part changes no
//! answer. The next change of limit counts it, so that a change and its reverse restore the state. If the fraction no
//! longer fits 128 bits, it is dropped: less than a drop is lost, and nothing is gained.

use crate::wide::{gcd, times_over};

/// Available part of a drop that counts as missing. Usually there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest(Option<Box<Fraction>>);

/// A reduced fraction, above 0 and below 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fraction {
    above: u128,
    below: u128,
}

impl Rest {
    /// No part of a drop.
    pub(crate) const NONE: Self = Self(None);

    /// Removes the part, because everything is available.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if self.0.is_some() {
            self.0 = None;
        }
    }

    /// Returns the drops and the rest, times `by`/`of`, rounded down, and keeps the new rest. Returns 0 if `of` is 0.
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
        // The rest of the drops is left/of; the old rest becomes above·by / (below·of).
        let sum = rest.and_then(|rest| {
            let below = rest.below.checked_mul(of)?;
            let above = rest.above.checked_mul(by)?;
            Some((above.checked_add(left.checked_mul(rest.below)?)?, below))
        });
        let (above, below) = sum.unwrap_or((left, of));
        self.set(above % below, below);
        whole.saturating_add(above / below)
    }

    /// Returns a debt of drops, less the rest, times `by`/`of`, rounded up, and keeps the new rest.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
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
