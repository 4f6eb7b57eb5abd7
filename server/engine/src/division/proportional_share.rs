//! PROPORTIONAL_SHARE: an equal share e per subclient first. Claims below their equal share leave a
//! rest, which is divided among the other claims in proportion to their wants beyond it.
//!
//! A claim with large wants gets more than under max-min fairness, but never at the cost of another
//! claim's equal share.
//!
//! Two numbers describe the outcome: e, and the part of the wants beyond it. Below the root, the
//! parent sends e (it depends on the clients of the whole tree), and the part follows from the
//! capacity. So the shares add up to the capacity, whatever e is.

use crate::claims::Bands;
use crate::division::{Rule, Supply, fair_share};

/// min(q, e·s) + max(0, q − e·s) · (C − D(e)) / (Q − D(e)), or q if there is enough for all.
pub fn solve(bands: &Bands, supply: &Supply) -> Rule {
    let capacity = supply.capacity.get();
    if bands.are_satisfied_by(supply.capacity) {
        return Rule::EnoughForAll;
    }
    let of_all = capacity / bands.total_subclients();
    let of_parent = supply.per_client();
    let equal_share = of_parent.unwrap_or(of_all);
    let demand = bands.demand_at(equal_share);
    if demand > capacity {
        // Only below the root: e is from before the capacity shrank or claims came. No client
        // gets more than e, and those who want less than the others are served first, as ever.
        return fair_share::solve(bands, supply.capacity);
    }
    // Q > C ≥ D(e), so the denominator is above zero but for rounding.
    let wanted_beyond = bands.total_wants() - demand;
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
