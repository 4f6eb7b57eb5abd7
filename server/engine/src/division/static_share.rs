//! STATIC: every client gets its wants, up to the capacity, which is per client. The total has no
//! bound: a thousand clients may get a thousand times the capacity.
//!
//! Below the root, the capacity per client that the parent sends is the bound, not the server's
//! grant for all its clients together. A Doorman parent does not send it. Then the level at which
//! the claims together take that grant is the same number.

use crate::claims::{Bands, Level};
use crate::division::{Rule, Supply};

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
