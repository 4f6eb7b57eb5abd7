//! What a ledger does not need any more, and takes too long to drop where it is: the node hands it out.

use crate::garbage::{FEW, Garbage, Heap};
use crate::resource::ledger::Ledger;

/// What a ledger does not need any more. Mostly nothing: then it takes one word.
#[derive(Debug, Default)]
pub(super) struct Waste(Option<Box<Garbage>>);

impl Waste {
    pub(super) fn push(&mut self, heap: impl Heap + 'static) {
        self.0.get_or_insert_default().push(heap);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl Ledger {
    /// Learning is over: what holders say is no news any more.
    pub(in crate::resource) fn forget_reports(&mut self) {
        if let Some(learned) = self.learned.take().filter(|it| it.len() > FEW) {
            self.discard(*learned);
        }
        self.forget_reported();
    }

    /// What holders say that they have is no news any more.
    pub(in crate::resource) fn forget_reported(&mut self) {
        if let Some(reported) = self.reported.take().filter(|it| it.len() > FEW) {
            self.discard(*reported);
        }
    }

    /// What is not needed any more, and takes too long to drop here.
    pub(in crate::resource) fn take_waste(&mut self) -> Option<Box<Garbage>> {
        self.waste.0.take()
    }

    pub(super) fn discard(&mut self, heap: impl Heap + 'static) {
        self.waste.push(heap);
    }

    /// Whether there were so many holders that dropping it takes long.
    pub(in crate::resource) fn has_had_many(&self) -> bool {
        self.table.has_had_many()
    }

    /// Drops about so many holders, which are not needed any more. Returns whether none is left.
    pub(in crate::resource) fn drop_some(&mut self, holders: usize) -> bool {
        self.table.drop_some(holders)
    }
}
