//! What has happened to a ledger that the node is still to be told of: each of it is taken once.

use crate::admission::HolderChange;
use crate::resource::ledger::Ledger;

impl Ledger {
    /// How many claims were put in or taken out since that was last asked, but for those that
    /// [`Ledger::settle`] told of.
    pub(in crate::resource) fn take_moved(&mut self) -> usize {
        std::mem::take(&mut self.moved) as usize
    }

    /// Something changed that may change what child servers should have.
    pub(in crate::resource) fn note_unsettled(&mut self) {
        self.is_unsettled = true;
    }

    /// Whether that is so since this was last asked.
    pub(in crate::resource) fn take_unsettled(&mut self) -> bool {
        std::mem::take(&mut self.is_unsettled)
    }

    /// Whether any `take_…` of this file would return something. For assertions.
    pub(in crate::resource) fn has_untaken(&self) -> bool {
        let has_waste = !self.waste.is_empty();
        self.moved > 0 || self.is_unsettled || has_waste || self.arrivals.has_changes()
    }

    /// Who came and went since that was last asked.
    pub(in crate::resource) fn take_changes(&mut self) -> Vec<HolderChange> {
        self.arrivals.take_changes()
    }
}
