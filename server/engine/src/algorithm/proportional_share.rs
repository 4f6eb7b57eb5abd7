//! PROPORTIONAL_SHARE: an equal share e per subclient first. Claims below their equal share leave a
//! rest, which is divided among the other claims in proportion to their wants beyond it.
//!
//! A claim with large wants gets more than under max-min fairness, but never at the cost of another
//! claim's equal share.
//!
//! Two numbers describe the outcome: e, and the part of the wants beyond it. Below the root, the
//! parent sends e (it depends on the clients of the whole tree), and the part follows from the
//! capacity. So the shares add up to the capacity, whatever e is.

use crate::algorithm::{Rule, fair_share};
use crate::claim_index::ClaimIndex;
use crate::supply::Supply;

/// Returns min(q, e·s) + max(0, q − e·s) · (C − D(e)) / (Q − D(e)), or q if there is enough for
/// all.
pub fn solve(index: &ClaimIndex, supply: &Supply) -> Rule {
    let capacity = supply.capacity.get();
    if index.is_satisfied_by(capacity) {
        return Rule::EnoughForAll;
    }
    let of_all = capacity / index.total_subclients();
    let of_parent = supply.per_client();
    let equal_share = of_parent.unwrap_or(of_all);
    let demand = index.demand_at(equal_share);
    if demand > capacity {
        // This happens only below the root, when e is older than a smaller capacity or than new
        // claims. No claim gets more than e, and small claims are served first, as always.
        return fair_share::solve(index, supply.capacity);
    }
    // Q > C ≥ D(e), so the denominator is above zero but for rounding.
    let wanted_beyond = index.total_wants() - demand;
    let top_up = if wanted_beyond > 0.0 {
        ((capacity - demand) / wanted_beyond).min(1.0)
    } else {
        0.0
    };
    Rule::Proportional {
        equal_share,
        top_up,
    }
}
