//! The end of every lease by a time, a few holders at a time.
//!
//! A new master below the root learns from its parent how long leases of its predecessors may last. A million holders
//! may have reported their leases by then, and shortening all of them takes a good part of a second. So the table does
//! it in steps ([`Ending`]), which are due at once like the ends of leases. Before any other change to a holder's
//! leases, the table shortens those first. Until then they seem to last longer, which is the safe side.

use std::collections::BTreeSet;

use crate::holders::{Expired, LeaseTable, Slot};
use crate::time::Time;

/// Number of holders whose leases end in the first call.
const AT_ONCE: usize = 32;

/// Holders that are looked at in one step.
const PER_STEP: usize = 2;

/// Leases on their way. See the [module](self).
#[derive(Debug)]
pub(super) struct Ending {
    /// Latest end of each lease.
    by: Time,
    /// The time at which that became known.
    since: Time,
    /// The next holder.
    next: Slot,
    /// First place behind those that were in use when the ending began.
    end: Slot,
    /// Slots between `next` and `end` that need no step: their leases are shortened already, or the holder came later.
    done: BTreeSet<Slot>,
}

impl Ending {
    fn concerns(&self, slot: Slot) -> bool {
        self.next <= slot && slot < self.end && !self.done.contains(&slot)
    }
}

impl LeaseTable {
    /// Ends every lease by then, at the latest: those of few holders now, and those of all others in
    /// [`LeaseTable::expire_one`].
    pub(crate) fn end_all_by(&mut self, by: Time, now: Time) {
        self.finish_ending();
        self.in_use_until = self.in_use_until.min(by);
        self.ending = Some(Box::new(Ending {
            by,
            since: now,
            next: Slot::FIRST,
            end: Slot::of(self.places.len()),
            done: BTreeSet::new(),
        }));
        for _ in 0..AT_ONCE / PER_STEP {
            self.end_some();
        }
    }

    /// When the next leases are to be ended. None: none are.
    pub(super) fn ending_due(&self) -> Option<Time> {
        self.ending.as_ref().map(|ending| ending.since)
    }

    /// Ends the leases of the next holders. None: there is nothing to end.
    pub(super) fn end_some(&mut self) -> Option<Expired> {
        for _ in 0..PER_STEP {
            let ending = self.ending.as_mut()?;
            let (slot, by) = (ending.next, ending.by);
            if slot >= ending.end {
                self.ending = None;
                break;
            }
            ending.next = slot.next();
            if !ending.done.remove(&slot) {
                self.change_leases(slot, |leases| leases.end_by(by));
            }
        }
        Some(Expired::Nobody)
    }

    /// Before anything else happens to the leases of a holder: they end by then.
    pub(super) fn end_leases_of(&mut self, slot: Slot) {
        let Some(ending) = self.ending.as_mut().filter(|it| it.concerns(slot)) else {
            return;
        };
        ending.done.insert(slot);
        let by = ending.by;
        self.change_leases(slot, |leases| leases.end_by(by));
    }

    /// Notes that a slot has a new holder, whose leases need no end.
    pub(super) fn note_other(&mut self, slot: Slot) {
        if let Some(ending) = self.ending.as_mut().filter(|it| it.concerns(slot)) {
            ending.done.insert(slot);
        }
    }

    fn finish_ending(&mut self) {
        while self.end_some().is_some() {}
    }
}
