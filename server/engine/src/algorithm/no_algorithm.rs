//! NO_ALGORITHM: everyone gets what it wants. For watching a resource before limiting it.

use crate::algorithm::{Reason, Share};
use crate::claim::Claim;

/// What it wants.
pub fn share(claim: Claim) -> Share {
    Share::all(claim, Reason::NoAlgorithm)
}
