//! Earlier masterships: the amounts that a child server may be using from them, and the amounts that holders here may
//! be using from earlier masterships of this node.
//!
//! In learning mode a child knows only the holders that have reported. This server has the grants to its predecessors
//! on record, if this mastership granted them. While this node learns too, the record may lack predecessors that have
//! not asked. So a learning child sends the masterships that granted each reported lease. For masterships on record,
//! the larger of the record and the child's report counts. Leases of other masterships are added.

use std::sync::Arc;
use std::time::Duration;

use crate::amount::Amount;
use crate::continuity::learned::{Origin, ReportedLease};
use crate::division::ParentTerms;
use crate::exact_sum::ExactSum;
use crate::holders::Slot;
use crate::id::{HolderId, MastershipId};
use crate::messages::Has;
use crate::resource::Resource;
use crate::resource::ask::HolderAsk;
use crate::time::{self, Time};

/// Longest travel time of a report. The real time is unknown. This is far longer than most messages take, and so short
/// that few leases are that near to their end when their holder asks.
const TRAVEL_MAX: Duration = Duration::from_millis(500);

impl Resource {
    /// Whether a child server asks by another mastership of its node than before.
    pub(super) fn is_new_mastership(&self, slot: Slot, ask: &HolderAsk<'_>) -> bool {
        let past = self.ledger.get(slot).and_then(|it| it.past.as_ref());
        let known = past.and_then(|it| it.masterships().current());
        ask.mastership().is_some() && known != ask.mastership()
    }

    /// Notes the mastership by which a child server asks: before a decision, or after it for a new child.
    pub(super) fn note_mastership(&mut self, slot: Slot, ask: &HolderAsk<'_>, is_new: bool) {
        let is_another = self.is_new_mastership(slot, ask);
        let Some(mastership) = ask.mastership().filter(|_| is_another) else {
            return;
        };
        let learns = self.is_learning();
        let granted = self.ledger.copy_leases(slot).filter(|_| !is_new);
        self.ledger.note(slot, |holding| {
            let past = holding.past.get_or_insert_default();
            past.masterships_mut()
                .note(mastership, granted.as_ref(), learns);
        });
    }

    /// Remembers which mastership granted what a holder reports, in learning mode below the root.
    pub(super) fn note_learned(&mut self, slot: Option<Slot>, ask: &HolderAsk<'_>, now: Time) {
        let in_use = ask.believed;
        if self.upstream.is_none() || !self.is_learning() || in_use.most().is_zero() {
            return;
        }
        let granted_by = in_use.has.and_then(|has| has.granted_by);
        let holding = slot.and_then(|slot| self.ledger.get(slot));
        // A lease of this mastership says nothing about its predecessors.
        let may_be_ours = holding.is_some_and(|holding| !holding.pending);
        let origin: Origin = match granted_by {
            Some(granted_by) if granted_by == self.beginning.mastership => return,
            Some(granted_by) => Some(granted_by),
            None if may_be_ours => return,
            // A child server that has just begun does not know the granter either.
            None if ask.mastership().is_some() => Some(MastershipId::NOBODY),
            None => None,
        };
        let holder = self.ledger.key_of(ask.holder());
        // A report without a duration may be out of date at once.
        let lasts_of = |has: Has| {
            let lasts = has.expires_in.map_or(Duration::ZERO, time::at_least);
            lasts.saturating_sub(TRAVEL_MAX)
        };
        let lasts = in_use.each().map(lasts_of).max().unwrap_or_default();
        // Work that continues after its lease counts, but is not part of what earlier masterships had granted: they
        // may have granted that to others. Nor is a lease that may have ended while the report travelled.
        let is_over = |has: Has| has.expires_in.is_some_and(|lasts| lasts <= TRAVEL_MAX);
        let part = match in_use.each().all(is_over) {
            true => Amount::ZERO,
            false => in_use.most(),
        };
        // A child server reports the sum of its holders' leases, of which only the last one ends at the reported time.
        let has = in_use
            .has
            .map(|has| (has.capacity.min(part), now + lasts_of(has)));
        let report = ReportedLease {
            origin,
            amount: part,
            until: now + lasts,
            said: now - TRAVEL_MAX,
            lasts: has,
        };
        let learned = self.ledger.learned.get_or_insert_default();
        learned.note(holder, report);
    }

    /// Returns the room for a holder beside the leases of others, reported or not.
    pub(super) fn room_beside_others(&self, held: Amount) -> Amount {
        let mut others = *self.ledger.table().reserved();
        others.subtract(held);
        others.add_sum(&self.unreported());
        others.left_of(self.supply.capacity)
    }

    /// Returns the end of a lease that is granted now. A lease is not extended while a predecessor may live, since that
    /// one could grant the same capacity to others.
    pub(super) fn lease_ends(&self, holder: &HolderId, now: Time) -> Time {
        let expiry = self.expiry_from(now);
        let terms = self.supply.terms.as_ref();
        let may_live = terms.is_some_and(|terms| terms.predecessor_for.is_some());
        if !may_live || !self.is_learning() {
            return expiry;
        }
        let learned = self.ledger.learned.as_ref();
        let until = learned.and_then(|it| it.until(self.ledger.key_of(holder)));
        until.map_or(expiry, |until| expiry.min(until.max(now)))
    }

    /// Returns the most that holders may be using that have not reported yet.
    pub(super) fn unreported(&self) -> ExactSum {
        let learned = self.ledger.learned.as_ref();
        learned
            .filter(|_| self.is_learning())
            .map_or(ExactSum::ZERO, |it| it.unreported())
    }

    /// Whether capacity beyond the grants to predecessors may be granted in learning mode. The parent's record says how
    /// much that was. A parent that learns too grants nothing beyond it, except for rounding. While a predecessor may
    /// live, it may still grant capacity, so no capacity is free. If holders report more than the capacity, nothing is
    /// free either.
    pub(super) fn may_grant_growth(&self, now: Time) -> bool {
        let terms = self.supply.terms.as_ref();
        let is_settled =
            |terms: &Arc<ParentTerms>| !terms.learning && terms.predecessor_for.is_none();
        let learned = self.ledger.learned.as_ref();
        learned.is_some_and(|it| it.has_books())
            && terms.is_some_and(is_settled)
            && self.confirmed_level(now).is_none()
    }
}
