//! The demand of all holders together, as it goes up: band by band.
//!
//! Making a curve takes some microseconds, and a resource may have as many as it has priorities. So an aggregate is made
//! outside of the resource, which others may ask in between. What changes meanwhile goes up with the next request: this one
//! counts as made when it was begun.

use crate::amount::Amount;
use crate::demand::{BandDemand, ServerDemand};
use crate::demand_curve::{DemandCurve, POINTS_MAX};
use crate::resource::Resource;
use crate::template::AlgorithmKind;

/// What of the demand of all holders is there so far.
#[derive(Debug)]
pub(crate) struct Aggregate {
    /// See [`Ledger::demand_version`](super::ledger::Ledger::demand_version): when it was begun.
    demand_version: u64,
    /// By this, claims were in bands.
    kind: AlgorithmKind,
    /// What all holders wanted then.
    wants: f64,
    /// Whether all claims were there, each time that a band was added.
    is_complete: bool,
    /// By rising priority.
    bands: Vec<BandDemand>,
}

impl Aggregate {
    /// The version of the demand that it is of.
    pub(super) fn demand_version(&self) -> u64 {
        self.demand_version
    }

    /// The demand, and what of all wants is in it.
    pub(super) fn finish(self) -> (ServerDemand, f64) {
        let demand = ServerDemand::new(self.bands);
        let wants = if self.is_complete {
            self.wants
        } else {
            // The rest is a reason to ask again.
            demand.wants().get()
        };
        (demand, wants)
    }
}

impl Resource {
    /// Nothing is in it yet.
    pub(crate) fn begin_aggregate(&self) -> Aggregate {
        Aggregate {
            demand_version: self.ledger.demand_version(),
            kind: self.ledger.kind(),
            wants: self.ledger.table().wants().rounded_down(),
            is_complete: true,
            bands: Vec::new(),
        }
    }

    /// Adds the next band. Returns how many points its curve has. None: all are there.
    pub(crate) fn aggregate_next(&self, aggregate: &mut Aggregate) -> Option<usize> {
        if aggregate.kind.has_bands() != self.ledger.kind().has_bands() {
            // The claims of those that are there are in other bands now.
            *aggregate = self.begin_aggregate();
        }
        let bands = self.ledger.bands();
        let last = aggregate.bands.last().map(|band| band.priority);
        let (priority, index) = bands.next_after(last)?;
        let is_settled = self.ledger.is_settled();
        aggregate.is_complete &= is_settled;
        let curve = DemandCurve::of(index, POINTS_MAX);
        let points = curve.points().len();
        let wants = if is_settled && bands.len() == 1 {
            // To the bit, so that a capacity that is enough for all is seen to be.
            self.ledger.table().wants().rounded_up()
        } else {
            Amount::from_computed(index.total_wants())
        };
        aggregate.bands.push(BandDemand {
            priority,
            clients: index.total_subclients(),
            wants,
            curve,
        });
        Some(points)
    }
}
