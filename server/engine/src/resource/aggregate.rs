//! The demand of all holders together, as it goes up: band by band, in as many points as a parent takes.

use crate::amount::Amount;
use crate::claims::demand::bounded::points_per_band;
use crate::claims::{BandDemand, DemandCurve, POINTS_MAX, ServerDemand};
use crate::resource::Resource;

impl Resource {
    /// The demand of all holders together. O(points · log n).
    pub(super) fn aggregate(&self) -> ServerDemand {
        let bands = self.ledger.bands();
        let points_max = points_per_band(bands.len()).min(POINTS_MAX);
        let demands = bands.iter().map(|(priority, index)| {
            let wants = if bands.len() == 1 {
                // To the bit, so that a capacity that is enough for all is seen to be.
                self.ledger.table().wants().rounded_up()
            } else {
                Amount::from_computed(index.total_wants())
            };
            BandDemand {
                priority,
                clients: index.total_subclients(),
                wants,
                curve: DemandCurve::of(index, points_max),
            }
        });
        ServerDemand::new(demands.collect())
    }
}
