//! Releases: a holder's own release frees its lease at once, another program's release only later.
//!
//! A message of another program under the same name must not free what the holder still uses. The process that holds
//! the name has drawn a random incarnation, which no other program knows; a process without one is identified by the
//! address of its requests. A release from anywhere else frees the lease only when the holder should have asked again.
//! Until then the lease counts; and if the holder asks before, the release has no effect.

use crate::admission::CallerSlot;
use crate::amount::Amount;
use crate::holders::{Holding, Identity, Precedence, Slot};
use crate::id::{HolderId, Incarnation};
use crate::messages::Released;
use crate::resource::{EXPIRIES_PER_REQUEST, Resource};
use crate::time::Time;

impl Resource {
    /// A release of what a holder has. `caller` is where it comes from; none if that does not matter,
    /// and none, if nothing came from there before.
    pub(crate) fn handle_release(
        &mut self,
        holder: &HolderId,
        process: Option<Incarnation>,
        sequence: Option<u64>,
        caller: Option<CallerSlot>,
        now: Time,
    ) -> Released {
        self.expire(EXPIRIES_PER_REQUEST, now);
        let slot = self.ledger.find(holder);
        let Some((slot, holding)) = slot.and_then(|slot| Some((slot, self.ledger.get(slot)?)))
        else {
            return Released::NotThere;
        };
        let asks = Identity {
            epoch: None,
            process,
            sequence,
        };
        match holding.precedence(asks, now) {
            Precedence::Next if is_its_own(holding, caller) => self.free(slot, holder),
            Precedence::Next | Precedence::Started => {
                let expected_by = holding.overdue_at();
                if expected_by <= now {
                    return self.free(slot, holder);
                }
                self.ledger
                    .change_leases(slot, |leases| leases.end_own_by(expected_by));
                Released::UnlessHeard(expected_by.since(now))
            }
            Precedence::Returned | Precedence::Refused => {
                // The process has lost the name, but reports that it uses nothing. A request without an incarnation
                // may come from any process.
                if process.is_some() {
                    self.ledger.change_leases(slot, |leases| {
                        leases.lower_apart(process, Amount::ZERO);
                    });
                    self.ledger.note_unsettled();
                }
                Released::OutOfOrder
            }
            Precedence::OutOfOrder | Precedence::Late | Precedence::Unnumbered => {
                Released::OutOfOrder
            }
        }
    }

    fn free(&mut self, slot: Slot, holder: &HolderId) -> Released {
        if self
            .ledger
            .get(slot)
            .is_some_and(|holding| holding.leases().has_apart())
        {
            // A process cannot release the leases of another process.
            self.release_own(slot);
            self.ledger.forget_report(holder);
        } else {
            self.ledger.remove(slot);
        }
        Released::Freed
    }
}

/// Whether the release comes from the process that holds the name, as far as that is known.
fn is_its_own(holding: &Holding, caller: Option<CallerSlot>) -> bool {
    let anybody = CallerSlot::NOBODY;
    holding.incarnation.is_some()
        || holding.caller == anybody
        || caller.is_some_and(|caller| caller == anybody || caller == holding.caller)
}
