//! Decides which part of a report a new master believes and confirms, and for how long.

use std::time::Duration;

use crate::amount::Amount;
use crate::claims::{Claim, Subclients};
use crate::continuity::reported::{claim_of, part_of};
use crate::continuity::{Ends, Outlook, Recovery, Situation};
use crate::division::{Bound, DecidedBy, Grant, KnownWhy};
use crate::holders::{HolderAsk, Lease, Slot};
use crate::id::{HolderId, HolderKind};
use crate::messages::Has;
use crate::rounding::SHORTFALL;
use crate::templates::{DURATION_MAX, REFRESH_IN_MAX};
use crate::time::{Time, tolerance};

impl Recovery {
    /// Limits a holder's report to what counts, and to what is believed of it. `own`: what it has on record here.
    pub(crate) fn believe(&self, s: &Situation<'_>, ask: &mut HolderAsk<'_>, own: Amount) {
        let is_bounded = ask.holder().kind == HolderKind::Client && !self.is_due(s.now);
        let most = s.bounds.wants_max.filter(|_| is_bounded);
        ask.in_use = ask.in_use.up_to(most.unwrap_or(Amount::MAX).max(own));
        let most = self.believed_max(s, ask).unwrap_or(Amount::MAX);
        ask.believed = ask.in_use.up_to(most.max(own));
    }

    /// A holder's report counts from now on.
    pub(crate) fn count(&mut self, s: &Situation<'_>, slot: Option<Slot>, ask: &HolderAsk<'_>) {
        // Reports that a mark covers need not be shared out.
        if !self.is_due(s.now) && !self.is_bounded() {
            let claim = self.claimed(s, slot, ask);
            let holder = s.table.name_hash(ask.holder());
            self.reported.count(holder, claim, ask.in_use());
        }
    }

    /// Confirms a holder's report, or the larger one before a cut; if the reports exceed the capacity, its part of
    /// that. `newest` is its newest lease, and `room` the most that it can get. Returns whether it may get more than
    /// that. None: recovery is over, or undecided.
    pub(crate) fn confirm(
        &self,
        s: &Situation<'_>,
        ask: &HolderAsk<'_>,
        newest: Amount,
        room: Amount,
    ) -> Option<(Grant, bool)> {
        let Outlook { level, grows, .. } = self.outlook(s)?;
        let holder = s.table.name_hash(ask.holder());
        let was_cut_from = self.reported.cut_from(holder);
        let had = ask.to_confirm().max(was_cut_from.unwrap_or(Amount::ZERO));
        let had = if ask.acknowledges() {
            had.min(ask.demand.wants())
        } else {
            had.max(newest)
        };
        let confirmed = had.min(confirmed_max(s, ask));
        let part = level.zip(self.reported.counts(holder));
        let amount = part.map_or(confirmed, |(level, claim)| {
            confirmed.min(part_of(claim, level))
        });
        let gets = amount.min(room).min(self.left_by_reports(s, holder));
        let is_cut = gets < confirmed && (level.is_some() || was_cut_from.is_some());
        let bound = if gets < confirmed {
            Bound::LearningLeft
        } else {
            Bound::SaysItHas
        };
        let decided_by = DecidedBy::Learning;
        let grant = Grant {
            share: amount,
            gets,
            room,
            waits: is_cut && gets.get() < amount.get() * (1.0 - SHORTFALL),
            cut_from: is_cut.then_some(confirmed),
            why: KnownWhy { decided_by, bound },
        };
        Some((grant, grows))
    }

    /// Returns a holder's reports as leases. At the root they cannot exceed the capacity. Below it, leases may exceed
    /// the present capacity, and the parent still reserves them. A report that is cut reserves only the confirmed part,
    /// for a short time unless it [is likely](is_likely).
    pub(crate) fn reserve(
        &self,
        s: &Situation<'_>,
        ask: &HolderAsk<'_>,
        room: Amount,
    ) -> Vec<Lease> {
        if self.remaining(s.now).is_none() {
            return Vec::new();
        }
        let counts = self.reported.counts(s.table.name_hash(ask.holder()));
        let cut_to = counts.and_then(|counts| {
            let part = part_of(counts, self.confirmed_level(s)?);
            let may_be_true = self.reported.said_fits(s.for_reported());
            Some(part).filter(|part| *part < counts.wants && !may_be_true)
        });
        let most = if s.is_root { room } else { Amount::MAX };
        let most = most.min(cut_to.unwrap_or(Amount::MAX));
        let at_once = match self.is_bounded() {
            true => Amount::MAX,
            false => confirmed_max(s, ask),
        };
        let short = short_lease(s);
        let mut leases = Vec::new();
        for has in ask.in_use.each() {
            let lasts = self.report_lasts(s, has.expires_in);
            let mut lease = |capacity: Amount, lasts: Duration| {
                leases.push(Lease {
                    capacity: capacity.min(most),
                    expires_at: s.now + lasts,
                });
            };
            if cut_to.is_some() && !is_likely(s, ask.holder().kind, has.capacity) {
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

    /// The believed part of a holder's reports, as leases. At the root, that is the part that a mark covers.
    pub(crate) fn believed_leases(&self, s: &Situation<'_>, ask: &HolderAsk<'_>) -> Vec<Lease> {
        let holder = s.table.name_hash(ask.holder());
        let counted = self.unreported.as_ref().map(|it| it.reported(holder));
        let most = match s.is_root {
            true => counted.unwrap_or_default(),
            false => Amount::MAX,
        };
        let lease = |has: Has| Lease {
            capacity: has.capacity.min(most),
            expires_at: s.now + self.report_lasts(s, has.expires_in),
        };
        ask.believed.each().map(lease).collect()
    }

    /// When a lease by a decision ends: soon, if its report was cut. But a child server grants what it has: a larger
    /// lease of it must not end before a smaller one that it had until `had_until`. When it shrinks, some of its
    /// holders still have the one, while others have the other already.
    pub(crate) fn lease_ends(
        &self,
        s: &Situation<'_>,
        holder: &HolderId,
        had_until: Option<Time>,
        is_cut: bool,
    ) -> Time {
        let ends = self.extends_until(s, holder);
        if !is_cut {
            return ends;
        }
        let had_until = had_until.filter(|_| holder.kind == HolderKind::Server);
        let soon = s.now + short_lease(s);
        ends.min(soon.max(had_until.unwrap_or(soon)))
    }

    /// Returns the end of a lease that is granted now. A lease is not extended while a predecessor may live, since that
    /// one could grant the same capacity to others. A parent that learns may not know that one yet.
    pub(super) fn extends_until(&self, s: &Situation<'_>, holder: &HolderId) -> Time {
        let expiry = s.lease_end();
        let was_refused = self.was_refused && s.supply.parent_learns();
        let terms = s.supply.terms.as_ref();
        if !was_refused && terms.is_none_or(|terms| terms.predecessor_for.is_none()) {
            return expiry;
        }
        let until = self.learned.until(s.table.name_hash(holder));
        until.map_or(expiry, |until| expiry.min(until.max(s.now)))
    }

    /// The most that is confirmed for each client, if the reports exceed the capacity.
    pub(super) fn confirmed_level(&self, s: &Situation<'_>) -> Option<f64> {
        let counts = self.has_reports(s).then(|| s.for_reported());
        self.reported.level_for(counts?)
    }

    fn has_reports(&self, s: &Situation<'_>) -> bool {
        !self.reported.is_empty() && !self.is_due(s.now) && s.has_lease()
    }

    /// Below the root, the most that is believed for each client, if the reports exceed the leases that the parent
    /// knows. That many leases may exist if a larger lease of our predecessor runs down. The present reports count, not
    /// the larger ones before cuts: all present reports may be true, once the holders that were cut have shrunk.
    pub(super) fn believed_level(&self, s: &Situation<'_>) -> Option<f64> {
        let terms = s.supply.terms.as_ref().filter(|_| self.has_reports(s))?;
        let known = s.for_reported().max(terms.reserved?);
        if self.reported.said_fits(known) {
            return None;
        }
        self.reported.level_for(known)
    }

    /// Returns a holder's report as a claim: the present report, or the larger one before a cut if the holder still
    /// wants that.
    pub(super) fn claimed(
        &self,
        s: &Situation<'_>,
        slot: Option<Slot>,
        ask: &HolderAsk<'_>,
    ) -> Claim {
        let cut_from = self.reported.cut_from(s.table.name_hash(ask.holder()));
        let mut clients = ask.demand.clients();
        let mut cut_from = cut_from.unwrap_or(Amount::ZERO);
        if ask.acknowledges() {
            cut_from = cut_from.min(ask.demand.wants());
        } else if let Some(holding) = s.holding(slot) {
            // Its demand looks smaller than it is.
            clients = clients.max(holding.demand.clients());
        }
        claim_of(ask.in_use().max(cut_from), clients)
    }

    /// The most that a holder gets beside the reports of all others, if all reports may be true. So a holder that was
    /// cut does not grow again by a lease that another holder still has although its report was not believed.
    fn left_by_reports(&self, s: &Situation<'_>, holder: u64) -> Amount {
        let there_is = s.for_reported();
        if self.reported.is_empty() || !self.reported.said_fits(there_is) {
            return Amount::MAX;
        }
        self.reported.left_beside_others(holder, there_is)
    }

    /// The most of a holder's report that is believed, if that is more than will be confirmed. None: all of it.
    fn believed_max(&self, s: &Situation<'_>, ask: &HolderAsk<'_>) -> Option<Amount> {
        let level = self.believed_level(s)?;
        let counts = self.reported.counts(s.table.name_hash(ask.holder()))?;
        let part = part_of(counts, level);
        Some(part).filter(|part| ask.in_use() <= counts.wants || *part < counts.wants)
    }

    /// Returns how long a reported lease counts. One that was taken from a mark counts as long as the mark: the report may
    /// be an old one, and the rest another holder's by now. The holder's next request frees it.
    fn report_lasts(&self, s: &Situation<'_>, expires_in: Option<Duration>) -> Duration {
        if self.is_bounded() {
            return self.remaining(s.now).unwrap_or_default();
        }
        // A lease that has ended, but whose work continues, for an unknown time.
        let expires_in = expires_in.filter(|lasts| !lasts.is_zero());
        let expires_in = expires_in.map(tolerance::at_most);
        let lasts = expires_in.unwrap_or(s.longest_by_others());
        match self.ends {
            // The length of leases is not known yet.
            Ends::Undecided => lasts.min(DURATION_MAX),
            Ends::At(_) => lasts.min(s.longest_of_predecessors(self.remaining(s.now))),
        }
    }
}

/// The most of a holder's report that is confirmed, whatever the capacity is. A child server in learning mode does not
/// know for how many clients it stands.
fn confirmed_max(s: &Situation<'_>, ask: &HolderAsk<'_>) -> Amount {
    let clients = if ask.acknowledges() {
        Some(ask.demand.clients().max(Subclients::ONE.get()))
    } else {
        s.bounds.subclients_max.map(Subclients::get)
    };
    let most = s.bounds.wants_max.zip(clients);
    most.map_or(Amount::MAX, |(each, clients)| {
        Amount::from_computed(each.get() * clients)
    })
}

/// Whether a report that is cut is true in part: a child server whose report fits the capacity has handed it out for
/// the reported time, though perhaps not all of it. If the child is silent then, its leases still count.
pub(super) fn is_likely(s: &Situation<'_>, kind: HolderKind, report: Amount) -> bool {
    kind == HolderKind::Server && report <= s.for_reported()
}

/// Length of a lease for a report that was cut.
pub(super) fn short_lease(s: &Situation<'_>) -> Duration {
    2 * s.algorithm.refresh_interval.min(REFRESH_IN_MAX)
}
