//! Keys, sums and lengths, which both kinds of nodes use.

use crate::claims::Claim;

/// Order of claims: wants per subclient, then wants. Equal keys are equal claims.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub(super) struct Key {
    pub(super) ratio: f64,
    pub(super) wants: f64,
    pub(super) subclients: f64,
}

impl Key {
    /// A key that is not above any other.
    pub(super) const LOWEST: Self = Self {
        ratio: 0.0,
        wants: 0.0,
        subclients: 0.0,
    };

    pub(super) fn of(claim: Claim) -> Self {
        Self {
            ratio: claim.ratio(),
            wants: claim.wants.get(),
            subclients: claim.subclients.get(),
        }
    }

    /// Whether this key comes before `other`. No part is ever NaN.
    pub(super) fn is_before(&self, other: &Self) -> bool {
        (self.ratio, self.wants, self.subclients) < (other.ratio, other.wants, other.subclients)
    }
}

/// Σ wants and Σ subclients of a subtree.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) wants: f64,
    pub(super) subclients: f64,
}

/// A piece of a demand curve, around a level: D(w) = `wants` + w · `subclients`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// Σ wants of all claims that have what they want there.
    pub(crate) wants: f64,
    /// Σ subclients of all others.
    pub(crate) subclients: f64,
}

/// A [`Line`], and the levels at which the demand curve is known to be on it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Piece {
    pub(super) from: f64,
    /// Not included.
    pub(super) to: f64,
    pub(super) line: Line,
}

impl Line {
    /// D(level), on this piece.
    pub(crate) fn demand_at(self, level: f64) -> f64 {
        self.wants + level * self.subclients
    }

    /// The level at which this straight line reaches `capacity`.
    pub(crate) fn level_for(self, capacity: f64) -> f64 {
        ((capacity - self.wants) / self.subclients).max(0.0)
    }

    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            wants: self.wants + other.wants,
            subclients: self.subclients + other.subclients,
        }
    }
}

/// A length or a position as it is stored: of a leaf or an inner node, which have few places.
pub(super) fn narrow(len: usize) -> u8 {
    debug_assert!(len <= usize::from(u8::MAX));
    u8::try_from(len).unwrap_or(u8::MAX)
}
