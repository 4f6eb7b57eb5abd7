//! Requests that wait for the parent.
//!
//! Below the root, a resource without a lease of its own cannot decide anything. Its holders get *not ready*: they keep
//! their leases, and ask again. The resource remembers their reports and sends them to the parent, which grants them in
//! learning mode. The same happens if the lease is too small for the reports, until the parent has all of them: the
//! resource cuts no lease that the parent may confirm.

use std::time::Duration;

use crate::amount::Amount;
use crate::division::{Bound, Reason, Why};
use crate::holders::{HolderAsk, Holding, Lease, Leases, Slot};
use crate::messages::Has;
use crate::resource::Resource;
use crate::resource::holders::Decision;
use crate::resource::learning::LearningMode;
use crate::templates::DURATION_MAX;
use crate::time::{Time, tolerance};

/// A lease that ends sooner has ended before its holder gets it.
const LEASE_MIN: Duration = Duration::from_millis(10);

/// A holder whose lease lasts longer may as well keep it for a while.
const WORD_MIN: Duration = Duration::from_secs(3);

/// Fraction of its report that a holder can get instead of waiting for the parent.
const NEARLY: f64 = 0.9;

/// Time that the claim of a holder counts after it got *not ready*.
const PENDING_LENGTH: Duration = Duration::from_secs(20);

impl Resource {
    /// Whether there is anything to share: at the root always, below it while a lease lasts that is
    /// worth giving a part of to anyone.
    pub(super) fn has_lease(&self, now: Time) -> bool {
        let lasts = |end| end > now + LEASE_MIN;
        self.parent.is_none() || self.supply.expires_at.is_some_and(lasts)
    }

    /// Whether a holder can only get *not ready*: there is no lease yet, or a lease that does not cover its report,
    /// which the parent may not know yet; or the predecessor's lease was shrunk below what was granted, and that runs
    /// down.
    pub(super) fn must_wait_for_parent(
        &self,
        slot: Option<Slot>,
        ask: &HolderAsk<'_>,
        now: Time,
    ) -> bool {
        let Some(upstream) = &self.parent else {
            return false;
        };
        if !self.has_lease(now) {
            return true;
        }
        if self.learning_remaining(now).is_none() {
            return false;
        }
        if self.lease_ends(ask.holder(), now) <= now + LEASE_MIN {
            // Its lease is nearly over, and this server may not extend it yet.
            return true;
        }
        let holding = slot.and_then(|slot| self.holders.get(slot));
        let held = holding.map_or(Amount::ZERO, Holding::own);
        // A part of its report that is not believed is not new to the parent.
        let news = ask.believed.most() > held;
        if !news && !holding.is_some_and(|holding| holding.pending) {
            return false;
        }
        if self.supply.runs_down() && !ask.in_use().is_zero() {
            // Grants of the predecessor under its larger lease must not be extended, and this server cannot distinguish
            // them from other grants. They have ended when the parent says so. The remaining grants then fit, and get
            // confirmed.
            return true;
        }
        let room = self.room_beside_others(held);
        let unreported = news || !upstream.reports.are_all_answered();
        let lasts_on = |has: Has| has.expires_in.is_none_or(|lasts| lasts > WORD_MIN);
        let has_time = ask.in_use.each().any(lasts_on);
        let far_off = room.get() < ask.in_use().get() * NEARLY;
        ask.in_use() > room && (unreported || has_time && far_off)
    }

    /// Remembers a holder's request and report, as far as it is believed, without a decision.
    pub(super) fn note_pending(&mut self, slot: Option<Slot>, ask: &HolderAsk<'_>, now: Time) {
        let nothing = Lease {
            capacity: Amount::ZERO,
            expires_at: now + PENDING_LENGTH,
        };
        let held = slot
            .and_then(|slot| self.holders.get(slot))
            .map(Holding::own);
        let held = held.unwrap_or(Amount::ZERO);
        let slot = match slot {
            Some(slot) => {
                self.holders.change_demand(slot, &ask.demand);
                let words: Vec<_> = self.reported_leases(ask, now).collect();
                self.holders.change_leases(slot, |leases| {
                    if ask.acknowledges() {
                        leases.acknowledge(ask.in_use());
                    }
                    let known = leases.own();
                    for lease in words {
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
                for lease in self.reported_leases(ask, now) {
                    leases.grant(lease);
                }
                leases.grant(nothing);
                self.holders.claim(&ask.demand);
                let (reason, bound) = (Reason::WaitsForParent, Bound::Share);
                let decision = Decision {
                    lease: nothing,
                    share: Amount::ZERO,
                    why: Why { reason, bound },
                    waits: false,
                    lowering: self.lowering.number(),
                };
                self.insert(ask, leases, &decision, now)
            }
        };
        let holding = self.holders.get(slot);
        if holding.is_some_and(|holding| holding.own() > held) {
            self.await_parent_answer(slot, ask, held, now);
        }
        // It comes back sooner; if another process of its name comes first, it has asked by then.
        let refresh_at = now + self.policy.algorithm().refresh_interval;
        self.holders.note_request(slot, ask);
        self.holders.note(slot, |holding| {
            holding.decided_at = now;
            holding.refresh_at = refresh_at;
            holding.pending = true;
        });
    }

    /// A holder's reports, as leases; none if there is nothing to learn.
    fn reported_leases(&self, ask: &HolderAsk<'_>, now: Time) -> impl Iterator<Item = Lease> {
        let words = ask.believed.each().filter(|_| self.learning.is_on());
        words.map(move |has| Lease {
            capacity: has.capacity,
            expires_at: now + self.report_lasts(has.expires_in, now),
        })
    }

    /// Longest duration, on this machine's clock, of a full lease that another machine's clock measures.
    pub(super) fn longest_by_others(&self) -> Duration {
        let length = self.policy.algorithm().lease_length;
        self.start.clock_tolerance.report(length)
    }

    /// Returns how long a reported lease counts.
    pub(super) fn report_lasts(&self, expires_in: Option<Duration>, now: Time) -> Duration {
        // A lease that has ended, but whose work continues, for an unknown time.
        let expires_in = expires_in.filter(|lasts| !lasts.is_zero());
        let expires_in = expires_in.map(tolerance::at_most);
        let length = self.longest_by_others();
        let lasts = expires_in.unwrap_or(length);
        match self.learning {
            // The length of leases is not known yet.
            LearningMode::Undecided => lasts.min(DURATION_MAX),
            LearningMode::Until(_) | LearningMode::Over => {
                lasts.min(self.longest_of_predecessors(now))
            }
        }
    }

    /// Longest time that a predecessor's lease may last. Leases may have been longer than now, and learning lasts until
    /// all of them have ended.
    pub(super) fn longest_of_predecessors(&self, now: Time) -> Duration {
        let learning = self.learning_remaining(now).unwrap_or_default();
        self.longest_by_others().max(learning).min(DURATION_MAX)
    }
}
