//! What has happened to a ledger that the node is still to be told of: each of it is taken once.

use crate::admission::HolderChange;
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

    /// Whether other clients may be served since this was last asked.
    pub(in crate::resource) fn take_new_clients(&mut self) -> bool {
        std::mem::take(&mut self.has_new_clients)
    }

    /// Whether any `take_…` of this file would return something. For assertions.
    pub(in crate::resource) fn has_untaken(&self) -> bool {
        let has_waste = !self.waste.is_empty();
        self.is_unsettled || self.has_new_clients || has_waste || self.arrivals.has_changes()
    }

    /// Who came and went since that was last asked.
    pub(in crate::resource) fn take_changes(&mut self) -> Vec<HolderChange> {
        self.arrivals.take_changes()
    }
}
