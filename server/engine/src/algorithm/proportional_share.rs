//! PROPORTIONAL_SHARE: an equal share e per subclient to start with; what those leave who want less
//! is divided among the others in proportion to what they want beyond it.
//!
//! Who wants much gets more than max-min fairness would give, but never at the cost of anyone's
//! equal share.
//!
//! Two numbers describe the outcome, e and the part of what is wanted beyond it. Below the root, e
//! is what the parent sends (it depends on the clients of the whole tree), and the part follows
//! from the capacity. So what is handed out is the capacity, whatever e is.

use crate::algorithm::{Rule, fair_share};
use crate::bands::Bands;
use crate::supply::Supply;

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
