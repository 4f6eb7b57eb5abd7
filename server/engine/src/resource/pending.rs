//! Requests that wait for the parent, or for a mark in etcd. Their holders get *not ready*: they keep their leases, and
//! ask again.
//!
//! Below the root, a resource without a lease of its own cannot decide anything. It remembers the reports of its holders
//! and sends them to the parent, which grants them in learning mode. The same happens if the lease is too small for the
//! reports, until the parent has all of them: the resource cuts no lease that the parent may confirm.

use std::time::Duration;

use crate::amount::Amount;
use crate::division::{Bound, DecidedBy, KnownWhy};
use crate::holders::{HolderAsk, Holding, Lease, Leases, Slot};
use crate::resource::Resource;
use crate::resource::holders::Decision;
use crate::time::Time;

/// Time that the claim of a holder counts after it got *not ready*.
const PENDING_LENGTH: Duration = Duration::from_secs(20);

impl Resource {
    /// Whether a holder can only get *not ready*: there is no lease yet, or a lease that does not cover its report
    /// ([`Recovery::must_wait`]).
    pub(super) fn must_wait_for_parent(
        &self,
        slot: Option<Slot>,
        ask: &HolderAsk<'_>,
        now: Time,
    ) -> bool {
        if self.parent.is_none() {
            return false;
        }
        if !self.situation(now).has_lease() {
            return true;
        }
        let holding = slot.and_then(|slot| self.holders.table.get(slot));
        let must_wait = self.in_recovery(now, |recovery, s| {
            let held = holding.map_or(Amount::ZERO, Holding::own);
            let room = self.room_beside_others(held, Some(self.supply.capacity));
            recovery.must_wait(s, holding, ask, room)
        });
        must_wait == Some(true)
    }

    /// Remembers a holder's request and report, as far as it is believed, without a decision.
    pub(super) fn note_pending(&mut self, slot: Option<Slot>, ask: &HolderAsk<'_>, now: Time) {
        let nothing = Lease {
            capacity: Amount::ZERO,
            expires_at: now + PENDING_LENGTH,
        };
        let held = slot
            .and_then(|slot| self.holders.table.get(slot))
            .map(Holding::own);
        let held = held.unwrap_or(Amount::ZERO);
        let reports = self.in_recovery(now, |recovery, s| recovery.believed_leases(s, ask));
        let reports = reports.unwrap_or_default();
        let slot = match slot {
            Some(slot) => {
                self.holders.place(slot, None);
                self.holders.change_demand(slot, &ask.demand);
                self.holders.table.change_leases(slot, |leases| {
                    if ask.acknowledges() {
                        leases.acknowledge(ask.in_use());
                    }
                    let known = leases.own();
                    for lease in reports {
                        if lease.capacity > known {
                            leases.grant(lease);
                        }
                    }
                    leases.grant(nothing);
                });
                slot
            }
            None => {
                let mut leases = Leases::new(nothing);
                reports.into_iter().for_each(|lease| leases.grant(lease));
                leases.grant(nothing);
                self.holders.claim(&ask.demand);
                let (decided_by, bound) = (DecidedBy::WaitsForParent, Bound::Share);
                let decision = Decision {
                    lease: nothing,
                    share: Amount::ZERO,
                    why: KnownWhy { decided_by, bound },
                    waits: false,
                    lowering: self.lowering.number(),
                };
                self.insert(ask, leases, &decision, now)
            }
        };
        let holding = self.holders.table.get(slot);
        let is_news = holding.is_some_and(|holding| holding.own() > held);
        if is_news && self.parent.is_some() {
            self.tell_recovery(now, |recovery, s| recovery.await_answer(s, slot, ask, held));
        }
        // It comes back sooner; if another process of its name comes first, it has asked by then.
        let refresh_at = now + self.policy.algorithm().refresh_interval;
        self.holders.note_request(slot, ask);
        self.holders.table.note(slot, |holding| {
            holding.decided_at = now;
            holding.refresh_at = refresh_at;
            holding.pending = true;
        });
    }
}
