//! Recovery below the root: reports that go up to the parent, what the parent answers, and which holders wait for that.
//!
//! Without a lease of its own that covers its holders' reports, a server confirms none. It passes the reports to its
//! parent, which grants them in learning mode, and tells the holders that it is *not ready*: they keep their leases. So
//! no lease is cut that the parent may confirm.

use std::time::Duration;

use crate::amount::Amount;
use crate::continuity::confirming::{is_likely, short_lease};
use crate::continuity::learned::{Origin, ReportedLease};
use crate::continuity::reported::{Unanswered, part_of};
use crate::continuity::{Ends, LEASE_MIN, Recovery, Situation};
use crate::exact_sum::ExactSum;
use crate::holders::{HolderAsk, Holding, Slot};
use crate::id::MastershipId;
use crate::messages::{Has, ReportedLeases, ServerLease};
use crate::templates::REFRESH_IN_MAX;
use crate::time::{Time, tolerance};

/// A holder whose lease lasts longer may as well keep it for a while.
const WORD_MIN: Duration = Duration::from_secs(3);

/// Fraction of its report that a holder can get instead of waiting for the parent.
const NEARLY: f64 = 0.9;

/// Longest travel time of a report. The real time is unknown. This is far longer than most messages take, and so short
/// that few leases are that near to their end when their holder asks.
const TRAVEL_MAX: Duration = Duration::from_millis(500);

/// Fields of a request to the parent about recovery. The default: it is over.
#[derive(Debug, Default)]
pub(crate) struct Statement {
    /// The server learns.
    pub(crate) learning: bool,
    /// The most that holders may be using that have not reported.
    pub(crate) unreported: ExactSum,
    /// The end of that. None: there is nothing, or its end is not known.
    pub(crate) unreported_until: Option<Time>,
    /// The reports, by granting mastership.
    pub(crate) reported: Vec<ReportedLeases>,
}

/// Returns how long a reported lease lasts at least. Without a duration, the report may be out of date at once.
fn report_lasts(has: Has) -> Duration {
    let lasts = has.expires_in.map_or(Duration::ZERO, tolerance::at_least);
    lasts.saturating_sub(TRAVEL_MAX)
}

/// Whether a lease may have ended while its report travelled. Work that continues after its lease counts, but is not part
/// of what earlier masterships had granted: they may have granted that to others.
fn is_over(has: Has) -> bool {
    has.expires_in.is_some_and(|lasts| lasts <= TRAVEL_MAX)
}

impl Recovery {
    /// Remembers which mastership granted what a holder reports. At the root, counts the report.
    pub(crate) fn hear(&mut self, s: &Situation<'_>, slot: Option<Slot>, ask: &HolderAsk<'_>) {
        if s.is_root {
            return self.hear_at_root(s, slot, ask);
        }
        let Some(origin) = self.origin(s, slot, ask) else {
            return;
        };
        let in_use = ask.believed;
        if in_use.most().is_zero() {
            return;
        }
        let lasts = in_use.each().map(report_lasts).max().unwrap_or_default();
        let part = match in_use.each().all(is_over) {
            true => Amount::ZERO,
            false => in_use.most(),
        };
        // A child server reports the sum of its holders' leases, of which only the last one ends at the reported time.
        let of_own = |has: Has| (has.capacity.min(part), s.now + report_lasts(has));
        let report = ReportedLease {
            origin,
            amount: part,
            until: s.now + lasts,
            said: s.now - TRAVEL_MAX,
            lasts: in_use.has.map(of_own),
        };
        let holder = s.table.name_hash(ask.holder());
        self.learned.note(holder, report);
    }

    /// Returns the mastership that granted what a holder reports. None: a lease of this mastership says nothing about
    /// its predecessors.
    fn origin(&self, s: &Situation<'_>, slot: Option<Slot>, ask: &HolderAsk<'_>) -> Option<Origin> {
        let granted_by = ask.believed.has.and_then(|has| has.granted_by);
        let may_be_ours = s.holding(slot).is_some_and(|holding| !holding.pending);
        match granted_by {
            Some(granted_by) if granted_by == s.start.mastership => None,
            Some(granted_by) => Some(Some(granted_by)),
            None if may_be_ours => None,
            // A child server that has just begun does not know the granter either.
            None if ask.mastership().is_some() => Some(Some(MastershipId::NOBODY)),
            None => Some(None),
        }
    }

    /// Counts a report against the mark of the last master. Only the holder's own lease counts, which the mark surely
    /// covers. The rest of a child server's report may be counted twice. So a child that learns, has no lease of a
    /// predecessor, and reports more than is on record here leaves nothing to count, and the resource learns with it: both
    /// lost their masters together.
    fn hear_at_root(&mut self, s: &Situation<'_>, slot: Option<Slot>, ask: &HolderAsk<'_>) {
        if !self.is_bounded() {
            return;
        }
        let origin = self.origin(s, slot, ask);
        let lease = ask.believed.has.filter(|has| !is_over(*has));
        let lease = lease.map_or(Amount::ZERO, |has| has.capacity);
        let known = s.holding(slot).map_or(Amount::ZERO, Holding::own);
        let has_former = origin.is_some() && !lease.is_zero();
        if !ask.acknowledges() && !has_former && ask.in_use() > known.max(lease) {
            return self.become_unbounded(s.start.leases_end(s.algorithm));
        }
        let Some(unreported) = self.unreported.as_mut().filter(|_| origin.is_some()) else {
            return;
        };
        let holder = s.table.name_hash(ask.holder());
        if !unreported.count(holder, lease) {
            let ends = s.now + s.longest_by_others();
            self.become_unbounded(ends.max(s.start.leases_end(s.algorithm)));
        }
    }

    /// Whether a holder can only get *not ready*: this server's lease does not cover its report, which the parent may
    /// not know yet; or the predecessor's lease was shrunk below what was granted, and that runs down. `room` is the
    /// most that the holder can get.
    pub(crate) fn must_wait(
        &self,
        s: &Situation<'_>,
        holding: Option<&Holding>,
        ask: &HolderAsk<'_>,
        room: Amount,
    ) -> bool {
        if self.remaining(s.now).is_none() {
            return false;
        }
        if self.extends_until(s, ask.holder()) <= s.now + LEASE_MIN {
            // Its lease is nearly over, and this server may not extend it yet.
            return true;
        }
        let held = holding.map_or(Amount::ZERO, Holding::own);
        // A part of its report that is not believed is not new to the parent.
        let news = ask.believed.most() > held;
        if !news && !holding.is_some_and(|holding| holding.pending) {
            return false;
        }
        if s.supply.runs_down() && !ask.in_use().is_zero() {
            // Grants of the predecessor under its larger lease must not be extended, and this server cannot distinguish
            // them from other grants. They have ended when the parent says so. The remaining grants then fit, and get
            // confirmed.
            return true;
        }
        let unreported = news || self.answered != self.made;
        let lasts_on = |has: Has| has.expires_in.is_none_or(|lasts| lasts > WORD_MIN);
        let has_time = ask.in_use.each().any(lasts_on);
        let far_off = room.get() < ask.in_use().get() * NEARLY;
        ask.in_use() > room && (unreported || has_time && far_off)
    }

    /// A holder's report was noted and goes up to the parent, as the newest of all. `held`: what it had before.
    pub(crate) fn await_answer(
        &mut self,
        s: &Situation<'_>,
        slot: Slot,
        ask: &HolderAsk<'_>,
        held: Amount,
    ) {
        self.made += 1;
        if self.is_due(s.now) {
            return;
        }
        let unanswered = Unanswered {
            number: self.made,
            slot,
            claim: self.claimed(s, Some(slot), ask),
            said: ask.in_use(),
            held,
        };
        let holder = s.table.name_hash(ask.holder());
        self.reported.wait_for_answer(holder, unanswered);
    }

    /// Whether there is a report that is in no request to the parent, or no request has said yet how much is not
    /// reported.
    pub(crate) fn has_news(&self) -> bool {
        self.sent != self.made || !self.said_unreported && !self.learned.unreported().is_zero()
    }

    /// Returns what the next request to the parent says, with all reports.
    pub(crate) fn speak(&mut self) -> Statement {
        self.sent = self.made;
        self.said_unreported = self.learned.has_books();
        let unreported = self.unreported();
        Statement {
            learning: true,
            // Learning mode ends when they end.
            unreported_until: self.ends_at().filter(|_| !unreported.is_zero()),
            unreported,
            reported: self.learned.reported(),
        }
    }

    /// Hears the parent's answer, whose algorithm is in force. The first one decides how long recovery lasts. Returns
    /// whether it goes on.
    ///
    /// It ends when two things hold: all leases of the predecessor have ended, and the parent knows the division of the
    /// whole. A parent that learns itself does not know it.
    pub(crate) fn hear_parent(&mut self, s: &Situation<'_>, lease: &ServerLease) -> bool {
        let (terms, now) = (&lease.terms, s.now);
        self.answered = self.sent;
        if self.ends == Ends::Undecided {
            // Leases of the predecessor were part of the parent's grants to it. When those have ended, there is nothing
            // left to learn. Later answers include the grants to this server itself.
            let inherited_for = terms.inherited_for.filter(|_| s.algorithm.learns());
            self.inherited_until = inherited_for.map(|lasts| now + tolerance::at_most(lasts));
            // Leases of the predecessor may be longer than the present lease length.
            let out_until = now + terms.reserved_for.unwrap_or_default();
            let by_algorithm = s.start.ends_anew(s.algorithm, now);
            let Some(ends) = Ends::by_parent(by_algorithm, out_until, self.inherited_until) else {
                return false;
            };
            self.ends = ends;
        } else if terms.inherited.is_some_and(|it| !it.is_zero()) {
            // The parent has granted a lease to another process of this node since.
            let lasts = terms.inherited_for.map(tolerance::at_most);
            self.inherited_until = self.inherited_until.max(lasts.map(|it| now + it));
        }
        if terms.learning {
            // The parent only confirms reports, rounded up. The rest is not granted before the parent knows the
            // division of the whole, even if the parent is unreachable meanwhile.
            let next = 2 * lease.refresh_in.min(REFRESH_IN_MAX);
            let learns = terms.learning_for.map(tolerance::at_most);
            let outlasts = Some(now + next.max(learns.unwrap_or_default()));
            self.ends = self.ends_at().max(outlasts).map_or(self.ends, Ends::At);
        } else if let Some(inherited_until) = self.inherited_until {
            self.ends = Ends::At(inherited_until);
        }
        if self.is_due(now) {
            return false;
        }
        self.learned.note_parent_books(terms, lease.granted_by, now);
        true
    }

    /// Counts the reports that the parent has answered, with its lease in force. If they exceed its grant, each
    /// reserves only the part that will be confirmed. Returns the holders, these parts, and the end of all leases of
    /// some.
    pub(crate) fn count_answered(
        &mut self,
        s: &Situation<'_>,
    ) -> Vec<(Slot, Amount, Option<Time>)> {
        let answered = self.reported.answered(self.answered);
        let Some(level) = self.believed_level(s) else {
            return Vec::new();
        };
        let until = s.now + short_lease(s);
        let mut believed = Vec::new();
        for (holder, report) in answered {
            let Unanswered {
                slot, claim, held, ..
            } = report;
            let part = part_of(claim, level).max(held);
            if part >= claim.wants {
                continue;
            }
            let kind = s.holding(Some(slot)).map(Holding::kind);
            let is_likely = kind.is_some_and(|kind| is_likely(s, kind, report.said));
            let ends_by = Some(until).filter(|_| held.is_zero() && !is_likely);
            believed.push((slot, part, ends_by));
            self.learned.lower(holder, part);
        }
        believed
    }
}
