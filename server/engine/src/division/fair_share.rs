//! FAIR_SHARE: max-min fairness weighted by subclients, exactly.
//!
//! Each holder gets min(q, w*·s) at the water level w*: no holder can gain unless another one loses that
//! has no more per subclient (Bertsekas & Gallager, *Data Networks*, §6.5). A child server gets
//! what its demand curve says at that level; sharing that out among its own holders, it finds the
//! same level again.

use crate::amount::Amount;
use crate::claims::{Bands, Level};
use crate::division::Rule;

/// The level at which all claims together get `capacity`.
pub fn solve(bands: &Bands, capacity: Amount) -> Rule {
    match bands.level_for(capacity) {
        Level::AboveAll => Rule::EnoughForAll,
        Level::At(level) => Rule::Level(level),
    }
}
