//! Exact fractions of any size, without regard to speed.

use std::cmp::Ordering;
use std::ops::{Add, Mul, Sub};

use num_bigint::BigInt;

/// A fraction. It is reduced at times, so that it stays small.
#[derive(Clone, Debug)]
pub(crate) struct Ratio {
    above: BigInt,
    below: BigInt,
}

impl Ratio {
    pub(crate) fn new(above: impl Into<BigInt>, below: impl Into<BigInt>) -> Self {
        let (above, below) = (above.into(), below.into());
        assert!(below > BigInt::ZERO);
        Self { above, below }.small()
    }

    pub(crate) fn zero() -> Self {
        Self::new(0, 1)
    }

    fn small(self) -> Self {
        if self.below.bits() < 100 {
            return self;
        }
        let (mut a, mut b) = (
            self.above.magnitude().clone(),
            self.below.magnitude().clone(),
        );
        while b != num_bigint::BigUint::ZERO {
            (a, b) = (b.clone(), a % b);
        }
        let common = BigInt::from(a);
        Self {
            above: self.above / &common,
            below: self.below / common,
        }
    }

    pub(crate) fn over(&self, other: &Self) -> Self {
        assert!(other.above > BigInt::ZERO);
        Self::new(&self.above * &other.below, &self.below * &other.above)
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.above < BigInt::ZERO
    }

    pub(crate) fn max(self, other: Self) -> Self {
        if self < other { other } else { self }
    }

    pub(crate) fn min(self, other: Self) -> Self {
        if other < self { other } else { self }
    }

    /// Returns it rounded down to a number of parts of one.
    pub(crate) fn down_to(&self, parts: u64) -> Self {
        let (above, below) = (&self.above * BigInt::from(parts), &self.below);
        let down = BigInt::from(self.is_negative() && &above % below != BigInt::ZERO);
        Self::new(above / below - down, parts)
    }

    /// Returns it rounded up to whole numbers.
    pub(crate) fn up(&self) -> Self {
        &Self::zero() - &(&Self::zero() - self).down_to(1)
    }

    /// Returns it rounded down; it must not be negative.
    pub(crate) fn floor(&self) -> u128 {
        assert!(!self.is_negative());
        u128::try_from(&self.above / &self.below).unwrap()
    }

    /// Returns it rounded up; it must not be negative.
    pub(crate) fn ceil(&self) -> u128 {
        let floor = self.floor();
        floor + u128::from(*self > Self::new(floor, 1))
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ratio {}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.above * &other.below).cmp(&(&other.above * &self.below))
    }
}

impl Add for &Ratio {
    type Output = Ratio;

    fn add(self, other: Self) -> Ratio {
        if self.below == other.below {
            return Ratio::new(&self.above + &other.above, self.below.clone());
        }
        Ratio::new(
            &self.above * &other.below + &other.above * &self.below,
            &self.below * &other.below,
        )
    }
}

impl Sub for &Ratio {
    type Output = Ratio;

    fn sub(self, other: Self) -> Ratio {
        let minus = Ratio {
            above: -other.above.clone(),
            below: other.below.clone(),
        };
        self + &minus
    }
}

impl Mul for &Ratio {
    type Output = Ratio;

    fn mul(self, other: Self) -> Ratio {
        Ratio::new(&self.above * &other.above, &self.below * &other.below)
    }
}
