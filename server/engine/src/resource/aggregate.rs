//! The demand of all holders together, as it goes up: band by band.

use crate::amount::Amount;
use crate::demand::{BandDemand, ServerDemand};
use crate::demand_curve::{DemandCurve, POINTS_MAX};
use crate::resource::Resource;

impl Resource {
    /// Returns the demand of all holders. Their claims must be there.
    pub(super) fn aggregate(&self) -> ServerDemand {
        let bands = self.ledger.bands();
        let band = bands.iter().map(|(priority, index)| BandDemand {
            priority,
            clients: index.total_subclients(),
            wants: if bands.len() == 1 {
                // To the bit, so that a capacity that is enough for all is seen to be.
                self.ledger.table().wants().rounded_up()
            } else {
                Amount::from_computed(index.total_wants())
            },
            curve: DemandCurve::of(index, POINTS_MAX),
        });
        ServerDemand::new(band.collect())
    }
}
