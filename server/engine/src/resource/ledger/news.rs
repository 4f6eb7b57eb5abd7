//! News of a ledger for the node: each of them is taken once.

use crate::admission::Charge;
use crate::resource::ledger::Ledger;

impl Ledger {
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
        self.is_unsettled || has_waste || self.arrivals.has_charges()
    }

    /// Changes of the bytes of callers since that was last asked.
    pub(in crate::resource) fn take_charges(&mut self) -> Vec<Charge> {
        self.arrivals.take_charges()
    }
}
