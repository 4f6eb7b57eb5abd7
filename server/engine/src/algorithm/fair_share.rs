//! FAIR_SHARE: max-min fairness weighted by subclients, exactly.
//!
//! Every claim gets min(q, w*·s) at the water level w*: no claim can gain unless another one loses
//! that has no more per subclient (Bertsekas & Gallager, *Data Networks*, §6.5). A child server
//! gets the demand of its curve at that level. When it divides that among its own holders, it finds
//! the same level again.

use crate::algorithm::Rule;
use crate::amount::Amount;
use crate::claim_index::{ClaimIndex, Level};

/// Finds the level at which all claims in `index` together get `capacity`.
pub fn solve(index: &ClaimIndex, capacity: Amount) -> Rule {
    match index.level_for(capacity.get()) {
        Level::AboveAll => Rule::EnoughForAll,
        Level::At(level) => Rule::Level(level),
    }
}
