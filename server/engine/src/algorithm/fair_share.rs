//! FAIR_SHARE: max-min fairness weighted by subclients, exactly.
//!
//! Everyone gets min(q, w*·s) at the water level w*: nobody can gain without somebody losing who
//! has no more per subclient (Bertsekas & Gallager, *Data Networks*, §6.5).

use crate::algorithm::{Reason, Share};
use crate::amount::Amount;
use crate::claim::Claim;
use crate::claim_index::{ClaimIndex, Level};

/// min(q, w*·s) where all claims in `index` together get `capacity`.
pub fn share(index: &ClaimIndex, capacity: Amount, claim: Claim) -> Share {
    match index.level_for(capacity.get()) {
        Level::AboveAll => Share::all(claim, Reason::EnoughForAll),
        at @ Level::At(level) => Share::of(claim, at.share_of(claim), Reason::FairLevel { level }),
    }
}
