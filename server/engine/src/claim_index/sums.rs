//! Keys, sums and lengths, which both kinds of nodes use.

use crate::claim::Claim;

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

/// A length or a position as a node stores it: leaves and inner nodes have few places.
pub(super) fn narrow(len: usize) -> u8 {
    debug_assert!(len <= usize::from(u8::MAX));
    u8::try_from(len).unwrap_or(u8::MAX)
}
