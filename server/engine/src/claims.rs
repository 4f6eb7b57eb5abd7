//! Claims of clients, demand of child servers, and the index over all claims together.

mod bands;
mod curve;
pub mod demand;
mod index;

pub use bands::*;
pub use curve::*;
pub use demand::*;
pub use index::*;

use thiserror::Error;

use crate::amount::Amount;

/// Number of clients behind a claim: finite, above 0. A client counts as 1; a child server counts
/// the clients below it; the pieces of a child's demand curve may have fractions.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Subclients(f64);

/// Reason why a number is no count of subclients.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("is {0}; give a number above 0, at most {max}", max = Subclients::MAX.0)]
pub struct SubclientsError(f64);

impl Subclients {
    /// One client.
    pub const ONE: Self = Self(1.0);

    /// Largest count: more clients than there are on earth.
    pub const MAX: Self = Self(1e12);

    /// Smallest part of a client: with a smaller one the ratio of wants to subclients would
    /// overflow.
    pub const MIN: Self = Self(1e-12);

    /// Parses a number from outside.
    ///
    /// # Errors
    ///
    /// If it is not between [`Subclients::MIN`] and [`Subclients::MAX`].
    pub fn new(value: f64) -> Result<Self, SubclientsError> {
        if (Self::MIN.0..=Self::MAX.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(SubclientsError(value))
        }
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// Wants on behalf of a number of subclients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Amount that the holder could use.
    pub wants: Amount,
    /// Number of clients behind the claim.
    pub subclients: Subclients,
}

impl Claim {
    /// The claim of a plain client.
    pub const fn of_client(wants: Amount) -> Self {
        Self {
            wants,
            subclients: Subclients::ONE,
        }
    }

    /// Returns the wants per subclient, the order of the claim index.
    pub fn ratio(self) -> f64 {
        self.wants.get() / self.subclients.get()
    }
}
