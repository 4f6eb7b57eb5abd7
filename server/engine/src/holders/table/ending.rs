//! The end of every lease by a time, a few holders at a time.
//!
//! A new master below the root learns from its parent how long leases of its predecessors may last. A million holders
//! may have reported their leases by then, and shortening all of them takes a good part of a second. So the table does
//! it in steps ([`Ending`]), which are due at once like the ends of leases. Before any other change to a holder's
//! leases, the table shortens those first. Until then they seem to last longer, which is the safe side.

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
}

impl LeaseTable {
    /// Ends every lease by then, at the latest: those of few holders now, and those of all others in
    /// [`LeaseTable::expire_one`]. Once in the life of a table.
    pub(crate) fn end_all_by(&mut self, by: Time, now: Time) {
        self.in_use_until = self.in_use_until.min(by);
        self.ending = Some(Box::new(Ending {
            by,
            since: now,
            next: Slot::FIRST,
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
            let slot = ending.next;
            if slot >= Slot::of(self.places.len()) {
                self.ending = None;
                break;
            }
            ending.next = slot.next();
            self.end_leases_of(slot);
        }
        Some(Expired::Nobody)
    }

    /// Before anything else happens to the leases of a holder: they end by then.
    pub(super) fn end_leases_of(&mut self, slot: Slot) {
        let Some(by) = self.ending.as_ref().map(|ending| ending.by) else {
            return;
        };
        let holding = self.get_mut(slot);
        if holding.is_some_and(|it| !std::mem::replace(&mut it.is_ended, true)) {
            self.change_leases(slot, |leases| leases.end_by(by));
        }
    }
}
