//! STATIC: everyone gets what it wants, up to the capacity, which is per client. It promises no
//! total: a thousand clients may get a thousand times the capacity.

use crate::algorithm::{Reason, Share};
use crate::amount::Amount;
use crate::claim::Claim;

/// min(q, C·s).
pub fn share(capacity: Amount, claim: Claim) -> Share {
    let capacity = capacity.get();
    Share::of(
        claim,
        capacity * claim.subclients.get(),
        Reason::PerClient { capacity },
    )
}
