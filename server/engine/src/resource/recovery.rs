//! Learning mode: what a new master believes of reports, and what it knows of earlier masterships. When reports exceed
//! the capacity, it decides which part of each is confirmed, and for how long.
//! [`continuity`](crate::continuity) has all reports together.

use std::sync::Arc;
use std::time::Duration;

use crate::amount::Amount;
use crate::claims::{Claim, Subclients};
use crate::continuity::learned::{Origin, ReportedLease};
use crate::continuity::{Unanswered, claim_of, part_of};
use crate::division::{Grant, ParentTerms};
use crate::exact_sum::ExactSum;
use crate::holders::{HolderAsk, Lease, Slot};
use crate::id::{HolderId, HolderKind, MastershipId};
use crate::messages::Has;
use crate::resource::Resource;
use crate::resource::pace::short_lease;
use crate::templates::HolderBounds;
use crate::time::{Time, tolerance};

impl Resource {
    /// The capacity for reports: below the root, with what is to come.
    fn for_reported(&self) -> Amount {
        let terms = self.supply.terms.as_ref();
        let share = terms.map_or(Amount::ZERO, |terms| terms.share);
        self.supply.capacity.max(share)
    }

    /// In learning mode, the most that is confirmed for each client, if the reports exceed the capacity.
    pub(super) fn confirmed_level(&self, now: Time) -> Option<f64> {
        let reported = self.holders.reported()?;
        if !self.learning.is_on_at(now) || !self.has_lease(now) {
            return None;
        }
        reported.level_for(self.for_reported())
    }

    /// Below the root, the most that is believed for each client, if the reports exceed the leases that the parent
    /// knows. That many leases may exist if a larger lease of our predecessor runs down. The present reports count, not
    /// the larger ones before cuts: all present reports may be true, once the holders that were cut have shrunk.
    fn believed_level(&self, now: Time) -> Option<f64> {
        let reported = self.holders.reported()?;
        if !self.learning.is_on_at(now) || !self.has_lease(now) {
            return None;
        }
        let terms = self.supply.terms.as_ref()?;
        let known = self.for_reported().max(terms.reserved?);
        if reported.said_fits(known) {
            return None;
        }
        reported.level_for(known)
    }

    /// In learning mode, the most that a holder gets beside the reports of all others, if all reports may be true. So a
    /// holder that was cut does not grow again by a lease that another holder still has although its report was not
    /// believed.
    pub(super) fn left_by_reports(&self, holder: u64) -> Amount {
        let there_is = self.for_reported();
        let reported = self.holders.reported();
        reported
            .filter(|it| it.said_fits(there_is))
            .map_or(Amount::MAX, |it| it.left_beside_others(holder, there_is))
    }

    /// Returns a holder's report as a claim: the present report, or the larger one before a cut if the holder still
    /// wants that.
    fn claimed(&self, slot: Option<Slot>, ask: &HolderAsk<'_>) -> Claim {
        let reported = self.holders.reported();
        let cut_from = reported.and_then(|it| it.cut_from(self.holders.key_of(ask.holder())));
        let mut clients = ask.demand.clients();
        let mut cut_from = cut_from.unwrap_or(Amount::ZERO);
        if ask.acknowledges() {
            cut_from = cut_from.min(ask.demand.wants());
        } else if let Some(holding) = slot.and_then(|slot| self.holders.get(slot)) {
            // Its demand looks smaller than it is.
            clients = clients.max(holding.demand.clients());
        }
        claim_of(ask.in_use().max(cut_from), clients)
    }

    /// A holder's report counts from now on, in learning mode.
    pub(super) fn count_report(&mut self, slot: Option<Slot>, ask: &HolderAsk<'_>, now: Time) {
        if self.learning.is_on_at(now) {
            let claim = self.claimed(slot, ask);
            let holder = self.holders.key_of(ask.holder());
            let reported = self.holders.reported_mut();
            reported.count(holder, claim, ask.in_use());
        }
    }

    /// A holder's report was noted and goes up to the parent, as the newest of all.
    pub(super) fn await_parent_answer(
        &mut self,
        slot: Slot,
        ask: &HolderAsk<'_>,
        held: Amount,
        now: Time,
    ) {
        let Some(number) = self.parent.as_mut().map(|it| it.reports.count()) else {
            return;
        };
        if !self.learning.is_on_at(now) {
            return;
        }
        let unanswered = Unanswered {
            number,
            slot,
            claim: self.claimed(Some(slot), ask),
            said: ask.in_use(),
            held,
        };
        let holder = self.holders.key_of(ask.holder());
        let reported = self.holders.reported_mut();
        reported.wait_for_answer(holder, unanswered);
    }

    /// Counts the reports that the parent has answered. If they exceed its grant, each reserves only the part that will
    /// be confirmed.
    pub(super) fn count_answered_reports(&mut self, now: Time) {
        let Some(upstream) = &self.parent else {
            return;
        };
        if self.holders.reported().is_none() {
            return;
        }
        let answered = self
            .holders
            .reported_mut()
            .answered(upstream.reports.answered());
        let Some(level) = self.believed_level(now) else {
            return;
        };
        let until = now + short_lease(self.policy.algorithm().refresh_interval);
        for (
            holder,
            Unanswered {
                slot,
                claim,
                said,
                held,
                ..
            },
        ) in answered
        {
            let part = part_of(claim, level).max(held);
            if part >= claim.wants {
                continue;
            }
            let kind = self.holders.get(slot).map(|holding| holding.kind);
            let is_likely = kind.is_some_and(|kind| self.is_likely(kind, said));
            self.holders.change_leases(slot, |leases| {
                leases.acknowledge(part);
                if held.is_zero() && !is_likely {
                    leases.end_by(until);
                }
            });
            self.holders.learned_mut().lower(holder, part);
        }
    }

    /// The most of a holder's report that is believed, if that is more than will be confirmed.
    pub(super) fn believed_max(&self, ask: &HolderAsk<'_>, now: Time) -> Amount {
        let all = Amount::MAX;
        let (Some(_), Some(level)) = (&self.parent, self.believed_level(now)) else {
            return all;
        };
        let holder = self.holders.key_of(ask.holder());
        let reported = self.holders.reported();
        let Some(counts) = reported.and_then(|it| it.counts(holder)) else {
            return all;
        };
        let part = part_of(counts, level);
        let is_counted = ask.in_use() <= counts.wants || part < counts.wants;
        if is_counted { part } else { all }
    }

    /// The most of a holder's report that is confirmed, whatever the capacity is. A child server in learning mode does
    /// not know for how many clients it stands.
    pub(super) fn confirmed_max(&self, ask: &HolderAsk<'_>, clients: f64) -> Amount {
        let HolderBounds {
            wants_max,
            subclients_max,
        } = self.policy.holder_bounds();
        let clients = if ask.acknowledges() {
            Some(clients.max(Subclients::ONE.get()))
        } else {
            subclients_max.map(Subclients::get)
        };
        let most = wants_max.zip(clients);
        most.map_or(Amount::MAX, |(each, clients)| {
            Amount::from_computed(each.get() * clients)
        })
    }

    /// In learning mode: returns a holder's reports as leases. At the root they cannot exceed the capacity. Below it,
    /// leases may exceed the present capacity, and the parent still reserves them. A report that is cut reserves only
    /// the confirmed part, for a short time unless it [is likely](Self::is_likely).
    pub(super) fn leases_of_reports(
        &self,
        ask: &HolderAsk<'_>,
        room: Amount,
        now: Time,
    ) -> Vec<Lease> {
        let cut_to = self.holders.reported().and_then(|reported| {
            let counts = reported.counts(self.holders.key_of(ask.holder()))?;
            let part = part_of(counts, self.confirmed_level(now)?);
            let may_be_true = reported.said_fits(self.for_reported());
            Some(part).filter(|part| *part < counts.wants && !may_be_true)
        });
        let most = if self.parent.is_none() {
            room
        } else {
            Amount::MAX
        };
        let most = most.min(cut_to.unwrap_or(Amount::MAX));
        let at_once = self.confirmed_max(ask, ask.demand.clients());
        let short = short_lease(self.policy.algorithm().refresh_interval);
        let mut leases = Vec::new();
        for has in ask.in_use.each() {
            let lasts = self.report_lasts(has.expires_in, now);
            let mut lease = |capacity: Amount, lasts: Duration| {
                leases.push(Lease {
                    capacity: capacity.min(most),
                    expires_at: now + lasts,
                });
            };
            let is_likely = self.is_likely(ask.holder().kind, has.capacity);
            if cut_to.is_some() && !is_likely {
                lease(has.capacity, lasts.min(short));
                continue;
            }
            if has.capacity > at_once {
                lease(has.capacity, lasts.min(short));
            }
            lease(has.capacity.min(at_once), lasts);
        }
        leases
    }

    /// Whether a report that is cut is true in part: a child server whose report fits the capacity has handed it out
    /// for the reported time, though perhaps not all of it. If the child is silent then, its leases still count.
    fn is_likely(&self, kind: HolderKind, report: Amount) -> bool {
        kind == HolderKind::Server && report <= self.for_reported()
    }

    /// When a lease by a decision ends: soon, if its report was cut. But a child server grants
    /// what it has: a larger lease of it must not end before a smaller one that it had until `had_until`.
    /// When it shrinks, some of its holders still have the one, while others have the other already.
    pub(super) fn grant_ends(
        &self,
        holder: &HolderId,
        had_until: Option<Time>,
        grant: &Grant,
        now: Time,
    ) -> Time {
        let ends = self.lease_ends(holder, now);
        if grant.cut_from.is_none() {
            return ends;
        }
        let had_until = had_until.filter(|_| holder.kind == HolderKind::Server);
        let soon = now + short_lease(self.policy.algorithm().refresh_interval);
        ends.min(soon.max(had_until.unwrap_or(soon)))
    }

    /// Records a grant, and the report that it was cut from.
    pub(super) fn note_granted(&mut self, holder: &HolderId, grant: &Grant) {
        if self.holders.reported().is_some() {
            let holder = self.holders.key_of(holder);
            let reported = self.holders.reported_mut();
            reported.note_granted(holder, grant.cut_from);
        }
    }
}

// Earlier masterships: the amounts that a child server may be using from them, and the amounts that holders here may
// be using from earlier masterships of this node.
//
// In learning mode a child knows only the holders that have reported. This server has the grants to its predecessors
// on record, if this mastership granted them. While this node learns too, the record may lack predecessors that have
// not asked. So a learning child sends the masterships that granted each reported lease. For masterships on record,
// the larger of the record and the child's report counts. Leases of other masterships are added.

/// Longest travel time of a report. The real time is unknown. This is far longer than most messages take, and so short
/// that few leases are that near to their end when their holder asks.
const TRAVEL_MAX: Duration = Duration::from_millis(500);

impl Resource {
    /// Whether a child server asks by another mastership of its node than before.
    pub(super) fn is_new_mastership(&self, slot: Slot, ask: &HolderAsk<'_>) -> bool {
        let past = self.holders.get(slot).and_then(|it| it.past.as_ref());
        let known = past.and_then(|it| it.masterships.current());
        ask.mastership().is_some() && known != ask.mastership()
    }

    /// Notes the mastership by which a child server asks: before a decision, or after it for a new child.
    pub(super) fn note_mastership(&mut self, slot: Slot, ask: &HolderAsk<'_>, is_new: bool) {
        let is_another = self.is_new_mastership(slot, ask);
        let Some(mastership) = ask.mastership().filter(|_| is_another) else {
            return;
        };
        let learns = self.learning.is_on();
        let granted = self.holders.copy_leases(slot).filter(|_| !is_new);
        self.holders.note(slot, |holding| {
            let past = holding.past.get_or_insert_default();
            past.masterships.note(mastership, granted.as_ref(), learns);
        });
    }

    /// Remembers which mastership granted what a holder reports, in learning mode below the root.
    pub(super) fn note_learned(&mut self, slot: Option<Slot>, ask: &HolderAsk<'_>, now: Time) {
        let in_use = ask.believed;
        if self.parent.is_none() || !self.learning.is_on() || in_use.most().is_zero() {
            return;
        }
        let granted_by = in_use.has.and_then(|has| has.granted_by);
        let holding = slot.and_then(|slot| self.holders.get(slot));
        // A lease of this mastership says nothing about its predecessors.
        let may_be_ours = holding.is_some_and(|holding| !holding.pending);
        let origin: Origin = match granted_by {
            Some(granted_by) if granted_by == self.start.mastership => return,
            Some(granted_by) => Some(granted_by),
            None if may_be_ours => return,
            // A child server that has just begun does not know the granter either.
            None if ask.mastership().is_some() => Some(MastershipId::NOBODY),
            None => None,
        };
        let holder = self.holders.key_of(ask.holder());
        // A report without a duration may be out of date at once.
        let lasts_of = |has: Has| {
            let lasts = has.expires_in.map_or(Duration::ZERO, tolerance::at_least);
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
        let learned = self.holders.learned_mut();
        learned.note(holder, report);
    }

    /// Returns the room for a holder beside the leases of others, reported or not.
    pub(super) fn room_beside_others(&self, held: Amount) -> Amount {
        let mut others = *self.holders.table().reserved();
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
        if !may_live || !self.learning.is_on() {
            return expiry;
        }
        let learned = self.holders.learned();
        let until = learned.and_then(|it| it.until(self.holders.key_of(holder)));
        until.map_or(expiry, |until| expiry.min(until.max(now)))
    }

    /// Returns the most that holders may be using that have not reported yet.
    pub(super) fn unreported(&self) -> ExactSum {
        let learned = self.holders.learned();
        learned
            .filter(|_| self.learning.is_on())
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
        let learned = self.holders.learned();
        learned.is_some_and(|it| it.has_books())
            && terms.is_some_and(is_settled)
            && self.confirmed_level(now).is_none()
    }
}
