//! What a child server may be using if its node has had several masterships; and what holders here may be using from
//! earlier masterships of this node.
//!
//! In learning mode a child knows only the holders that have reported. What its predecessors granted to others is in
//! the books here, if this mastership had granted it to them; while this node learns, too, it is not, unless they have
//! asked. So a learning child sends which masterships granted what was reported to it. For masterships in the books,
//! the larger of the books and the child's report counts; leases of other masterships are added.

use std::sync::Arc;
use std::time::Duration;

use crate::amount::Amount;
use crate::exact_sum::ExactSum;
use crate::id::{HolderId, MastershipId};
use crate::lease_table::Slot;
use crate::request::Has;
use crate::resource::Resource;
use crate::resource::ask::HolderAsk;
use crate::resource::learned::{Origin, ReportedLease};
use crate::supply::ParentTerms;
use crate::time::{self, Time};

/// How long a report may have travelled. The real time is unknown; this is far longer than most messages take, and
/// so short that hardly any lease is that near to its end when its holder asks.
const TRAVEL_MAX: Duration = Duration::from_millis(500);

impl Resource {
    /// Whether a child server asks by another mastership of its node than before.
    pub(super) fn is_new_mastership(&self, slot: Slot, ask: &HolderAsk<'_>) -> bool {
        let past = self.ledger.get(slot).and_then(|it| it.past.as_ref());
        let known = past.and_then(|it| it.masterships().current());
        ask.mastership().is_some() && known != ask.mastership()
    }

    /// Remembers by which mastership of its node a child server asks, before anything is decided. Of a
    /// child that is new, afterwards.
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
            // A child server that has just begun, too, does not know who granted it.
            None if ask.mastership().is_some() => Some(MastershipId::NOBODY),
            None => None,
        };
        let holder = self.ledger.key_of(ask.holder());
        // Without a duration, the report may be out of date at once.
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
        // What a child server has out is a sum, of which only the last part ends when it says.
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

    /// What is left for a holder beside what others have, or may have without having reported it.
    pub(super) fn room_beside_others(&self, held: Amount) -> Amount {
        let mut others = *self.ledger.table().reserved();
        others.subtract(held);
        others.add_sum(&self.unreported());
        others.left_of(self.supply.capacity)
    }

    /// When a lease ends that is granted now. A lease is not extended while a predecessor may live, which could grant
    /// its capacity to others.
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

    /// The most that holders may be using that have not reported yet.
    pub(super) fn unreported(&self) -> ExactSum {
        let learned = self.ledger.learned.as_ref();
        learned
            .filter(|_| self.is_learning())
            .map_or(ExactSum::ZERO, |it| it.unreported())
    }

    /// Whether capacity above what predecessors had may be granted in learning mode. The parent's books say how much
    /// that was. A parent that learns, too, grants nothing above it, except for rounding. While a predecessor may live,
    /// it may still grant capacity, so none is free. If holders report more than there is, none is free either.
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
