//! Releases: a holder's own release frees its lease at once, another program's release only later.
//!
//! A message of another program under the same name must not free what the holder still uses. A process has drawn a
//! random incarnation, which no other program knows; a process without one is identified by the address of its
//! requests. Any other release concerns the newest process of the name, and frees its lease only when that process
//! should have asked again. Until then the lease counts; and if the holder asks before, the release has no effect.

use crate::admission::CallerSlot;
use crate::holders::{Holding, Identity, Precedence};
use crate::id::HolderId;
use crate::messages::Released;
use crate::resource::{EXPIRIES_PER_REQUEST, Resource};
use crate::time::Time;

impl Resource {
    /// A release of what a client has. `caller` is where it comes from; none if that does not matter,
    /// and none, if nothing came from there before.
    pub(crate) fn handle_release(
        &mut self,
        holder: &HolderId,
        sequence: Option<u64>,
        caller: Option<CallerSlot>,
        now: Time,
    ) -> Released {
        self.expire(EXPIRIES_PER_REQUEST, now);
        let own = self.ledger.find(holder);
        let slot = own.or_else(|| self.ledger.newest_of_name(holder));
        let Some((slot, holding)) = slot.and_then(|slot| Some((slot, self.ledger.get(slot)?)))
        else {
            return Released::NotThere;
        };
        let asks = Identity {
            epoch: None,
            process: holder.process,
            sequence,
        };
        let is_in_order = match own {
            Some(_) => holding.precedence(asks, now) == Precedence::Next,
            None => sequence.is_some() || holding.sequence == 0,
        };
        if !is_in_order {
            return Released::OutOfOrder;
        }
        let expected_by = holding.overdue_at();
        if own.is_some() && is_its_own(holding, caller) || expected_by <= now {
            self.ledger.remove(slot);
            return Released::Freed;
        }
        self.ledger
            .change_leases(slot, |leases| leases.end_by(expected_by));
        Released::UnlessHeard(expected_by.since(now))
    }
}

/// Whether the release comes from the process itself, as far as that is known.
fn is_its_own(holding: &Holding, caller: Option<CallerSlot>) -> bool {
    let anybody = CallerSlot::NOBODY;
    holding.incarnation.is_some()
        || holding.caller == anybody
        || caller.is_some_and(|caller| caller == anybody || caller == holding.caller)
}
