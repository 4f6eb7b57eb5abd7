//! STATIC: everyone gets what it wants, up to the capacity, which is per client. It promises no
//! total: a thousand clients may get a thousand times the capacity.
//!
//! Below the root, what counts is the capacity per client that the parent sends, not what the
//! server was granted for all its clients together. A Doorman parent does not send it; then
//! the level at which the claims together take what was given is the same number.

use crate::algorithm::Rule;
use crate::bands::Bands;
use crate::claim_index::Level;
use crate::supply::Supply;

/// min(q, C·s).
pub fn solve(bands: &Bands, supply: &Supply) -> Rule {
    let of_parent = supply.per_client();
    let given = supply.terms.is_some();
    match of_parent {
        Some(capacity) => Rule::PerClient(capacity),
        None if given => match bands.level_for(supply.capacity) {
            Level::AboveAll => Rule::EnoughForAll,
            Level::At(level) => Rule::PerClient(level),
        },
        None => Rule::PerClient(supply.capacity.get()),
    }
}
