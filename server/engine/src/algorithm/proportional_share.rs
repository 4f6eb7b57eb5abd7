//! PROPORTIONAL_SHARE: an equal share e per subclient to start with; what those leave who want less
//! is divided among the others in proportion to what they want beyond it.
//!
//! Who wants much gets more than max-min fairness would give, but never at the cost of anyone's
//! equal share.

use crate::algorithm::{Reason, Share};
use crate::amount::Amount;
use crate::claim::Claim;
use crate::claim_index::{ClaimIndex, Level};

/// min(q, e·s) + max(0, q − e·s) · (C − D(e)) / (Q − D(e)), or q if there is enough for all.
pub fn share(index: &ClaimIndex, capacity: Amount, claim: Claim) -> Share {
    // What is enough for all is decided in one place.
    if index.level_for(capacity.get()) == Level::AboveAll {
        return Share::all(claim, Reason::EnoughForAll);
    }
    let equal_share = capacity.get() / index.total_subclients();
    let demand = index.demand_at(equal_share);
    // Q > C ≥ D(e), so the denominator is above zero but for rounding.
    let wanted_beyond = index.total_wants() - demand;
    let left = (capacity.get() - demand).max(0.0);
    let top_up = if wanted_beyond > 0.0 {
        (left / wanted_beyond).min(1.0)
    } else {
        0.0
    };
    let own_equal_share = (equal_share * claim.subclients.get()).min(claim.wants.get());
    let beyond = claim.wants.get() - own_equal_share;
    let reason = Reason::Proportional {
        equal_share,
        top_up,
    };
    Share::of(claim, own_equal_share + beyond * top_up, reason)
}
