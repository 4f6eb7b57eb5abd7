//! A holder's request for one resource, as it counts, and the answer.
//!
//! A request does not always count as it was sent: a client may want more than a client can have, a child server may
//! know less than the record here, and a new master does not believe all reports. All of that is applied to one value,
//! here and nowhere else, in two steps. The demand is counted when the request arrives ([`Resource::count_demand`]).
//! The reports are counted when the process is known and the request is let in ([`Resource::count_reports`]). From then
//! on the request is only read.

use std::time::Duration;

use crate::admission::CallerSlot;
use crate::admission::limits::Limits;
use crate::amount::Amount;
use crate::claims::Demand;
use crate::claims::demand::DemandBounds;
use crate::exact_sum::ExactSum;
use crate::holders::{Asker, Holding, Identity, Lease, ServerReport, Slot};
use crate::id::{HolderId, HolderKind, Incarnation, MastershipId};
use crate::messages::{Has, LimitedBy, ReportedLeases};
use crate::resource::Resource;
use crate::templates::{HolderBounds, SafeCapacity};
use crate::time::Time;

/// A holder's request for this resource.
#[derive(Clone, Debug)]
pub(crate) struct HolderAsk<'a> {
    /// The holder that asks.
    pub(crate) asker: &'a Asker,
    /// The process that asks.
    pub(crate) incarnation: Option<Incarnation>,
    /// See [`crate::messages::GetCapacity::sequence`].
    pub(crate) sequence: Option<u64>,
    /// Its demand.
    pub(crate) demand: Demand,
    /// Whether it wants more than that, which does not count.
    pub(crate) wants_more: bool,
    /// Its report of what it may be using.
    pub(crate) in_use: InUse,
    /// The believed part of that.
    pub(crate) believed: InUse,
    /// See [`crate::messages::ServerAsk::reported`].
    pub(crate) reported: &'a [ReportedLeases],
    /// See [`crate::messages::ServerAsk::unreported`].
    pub(crate) unreported: Amount,
    /// Its report about itself, if it is a child server.
    pub(crate) report: Option<ServerReport>,
    /// Asks faster than this get the current lease again.
    pub(crate) floor: Duration,
    /// The caller that brings the holder, if it is a new one.
    pub(crate) caller: CallerSlot,
    /// Whether its former demand counts, since there is no room for more.
    pub(crate) is_held: bool,
}

/// A holder's report of what it may be using. The larger amount counts, each for as long as it lasts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InUse {
    /// The amount that it has by a lease, or may be using still.
    pub(crate) has: Option<Has>,
    /// The amount that its own holders may be using, if it is a child server that reports it.
    pub(crate) outstanding: Option<Has>,
}

impl InUse {
    /// Both.
    pub(crate) fn each(&self) -> impl Iterator<Item = Has> {
        self.has.into_iter().chain(self.outstanding)
    }

    /// The most it may be using now.
    pub(crate) fn most(&self) -> Amount {
        let most = self.each().map(|has| has.capacity).max();
        most.unwrap_or(Amount::ZERO)
    }

    /// The same, limited to that amount.
    fn up_to(self, most: Amount) -> Self {
        let bounded = |has: Has| Has {
            capacity: has.capacity.min(most),
            ..has
        };
        Self {
            has: self.has.map(bounded),
            outstanding: self.outstanding.map(bounded),
        }
    }
}

impl<'a> HolderAsk<'a> {
    /// An ask that the node makes on behalf of a known holder: its last one. It acknowledges nothing.
    pub(super) fn on_behalf_of(asker: &'a Asker, holding: &Holding) -> Self {
        let report = holding.report.as_deref();
        let in_use = InUse {
            has: Some(Has::untimed(holding.own())),
            outstanding: None,
        };
        Self {
            asker,
            incarnation: holding.incarnation,
            sequence: None,
            demand: holding.demand.clone(),
            wants_more: holding.wants_more,
            in_use,
            believed: in_use,
            reported: &[],
            unreported: report.map_or(Amount::ZERO, |report| report.unreported),
            report: report.cloned(),
            floor: Duration::ZERO,
            caller: holding.caller,
            is_held: false,
        }
    }

    /// The holder that asks.
    pub(crate) fn holder(&self) -> &'a HolderId {
        self.asker.holder()
    }

    /// The most it may be using now, as far as it knows.
    pub(crate) fn in_use(&self) -> Amount {
        self.in_use.most()
    }

    /// The part of it to confirm in learning mode. A child server's reserve for holders that have not reported is part
    /// of its lease, if it still has one; beyond that, it is only reserved. It may be counted twice, and a server that
    /// gets it would grant it to others. If a child knows all its holders, leases beyond its own lease are only
    /// reserved, too: a predecessor has taken that capacity back, perhaps for others, and the leases run down.
    pub(crate) fn to_confirm(&self) -> Amount {
        let InUse { has, outstanding } = self.in_use;
        let has = match has {
            Some(has) if self.acknowledges() => return has.capacity,
            has => has.map_or(Amount::ZERO, |has| has.capacity),
        };
        let outstanding = outstanding.map_or(Amount::ZERO, |has| has.capacity);
        has.max(Amount::from_computed(
            outstanding.get() - self.unreported.get(),
        ))
    }

    /// The amount that it counts for holders that have not reported yet and so are not in its demand.
    pub(crate) fn without_demand(&self) -> Amount {
        let report = self.report.as_ref();
        report.map_or(Amount::ZERO, |report| report.unreported)
    }

    /// The epoch of the mastership by which it asks, if it is a child server that reports it.
    pub(crate) fn epoch(&self) -> Option<u64> {
        self.report.as_ref().and_then(|report| report.epoch)
    }

    /// Returns the fields that decide which of several requests counts.
    pub(crate) fn identity(&self) -> Identity {
        Identity {
            epoch: self.epoch(),
            process: self.incarnation,
            sequence: self.sequence,
        }
    }

    /// The mastership of its node by which it hands out leases, if it is a child server that reports it.
    pub(crate) fn mastership(&self) -> Option<MastershipId> {
        self.report.as_ref().and_then(|report| report.mastership)
    }

    /// Whether its report is complete. A server in learning mode does not know yet what its predecessor granted to
    /// others: it acknowledges nothing, and nothing is taken from it.
    pub(crate) fn acknowledges(&self) -> bool {
        !self.report.as_ref().is_some_and(|report| report.learning)
    }
}

impl Resource {
    /// Limits the demand to what a holder can have: a client's wants, a child server's clients, and the points of its
    /// curves. The rest is not refused; it does not count.
    pub(super) fn count_demand(&self, ask: &mut HolderAsk<'_>, limits: &Limits) {
        let HolderBounds {
            wants_max,
            subclients_max,
        } = self.policy.holder_bounds();
        let leases_max = || limits.leases_per_resource_max as f64;
        let bounds = DemandBounds {
            wants_max,
            subclients_max: subclients_max.map_or_else(leases_max, |most| most.get()),
        };
        if let Some(counts) = ask.demand.bounded(bounds) {
            ask.wants_more = counts.wants() < ask.demand.wants();
            ask.demand = counts;
        }
    }

    /// Merges the reports with what is known of the holder, as far as the request is let in.
    pub(super) fn count_reports(
        &self,
        slot: Option<Slot>,
        ask: &mut HolderAsk<'_>,
        admitted: Admitted,
        now: Time,
    ) {
        let known = slot.and_then(|slot| self.holders.get(slot));
        match admitted {
            Admitted::AsAsked => {}
            Admitted::New(caller) => ask.caller = caller,
            Admitted::WithoutGrowth => ask.is_held = true,
        }
        if let Some(known) = known.filter(|known| counts_as_before(known, ask)) {
            ask.demand = known.demand.clone();
            if let Some(report) = ask.report.as_mut().filter(|_| !ask.is_held) {
                // They are in it.
                report.unreported = Amount::ZERO;
            }
        }
        if let Some(outstanding) = known.and_then(|known| with_books(known, ask, now)) {
            ask.in_use.outstanding = Some(outstanding);
        }
        let own = known.map_or(Amount::ZERO, Holding::own);
        if let Some(most) = self.client_max(ask, now) {
            ask.in_use = ask.in_use.up_to(most.max(own));
        }
        let most = self.believed_max(ask, now);
        ask.believed = ask.in_use.up_to(most.max(own));
    }

    /// In learning mode: the most of a client's report that counts. None: all of it.
    fn client_max(&self, ask: &HolderAsk<'_>, now: Time) -> Option<Amount> {
        let is_client = ask.holder().kind == HolderKind::Client;
        let most = self.policy.holder_bounds().wants_max;
        most.filter(|_| is_client && self.learning.is_on_at(now))
    }
}

/// Whether a holder's former demand counts: if there is no room for another one; and a child server in learning mode
/// does not know all its holders yet: as long as it asks on behalf of fewer clients than before, what it asked for
/// before counts, here and towards our own parent.
fn counts_as_before(known: &Holding, ask: &HolderAsk<'_>) -> bool {
    let looks_small = !ask.acknowledges() && ask.demand.clients() < known.demand.clients();
    (ask.is_held || looks_small) && known.demand != ask.demand
}

/// The outstanding amount of a child server in learning mode, plus the amount on record here of its
/// predecessors. None: nothing besides.
fn with_books(known: &Holding, ask: &HolderAsk<'_>, now: Time) -> Option<Has> {
    ask.mastership()?;
    if ask.acknowledges() {
        return None;
    }
    let masterships = &known.past.as_ref()?.masterships;
    let inherited = masterships.inherited(now)?;
    // The amount that the child keeps for holders that have not reported is part of its report.
    let mut reported = ExactSum::from(ask.unreported);
    let parts = ask.reported.iter();
    parts
        .filter(|part| masterships.is_accounted(part.granted_by))
        .for_each(|part| reported.add(part.capacity));
    let mut outstanding = ExactSum::from(inherited.reserved()).without(&reported);
    if outstanding.is_zero() {
        return None;
    }
    let sent = ask.in_use.outstanding.unwrap_or(Has::untimed(Amount::ZERO));
    let lasts = inherited.last_expiry().since(now);
    let expires_in = match sent.expires_in {
        Some(sent) => Some(sent.max(lasts)),
        None if sent.capacity.is_zero() => Some(lasts),
        None => None,
    };
    outstanding.add(sent.capacity);
    Some(Has {
        capacity: outstanding.rounded_up(),
        expires_in,
        ..sent
    })
}

/// The part of a request that is let in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Admitted {
    /// All of it.
    AsAsked,
    /// A new holder, which that caller brings.
    New(CallerSlot),
    /// The request, but its former demand counts, for there is no room for more.
    WithoutGrowth,
}

/// The answer to a holder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    /// Its newest lease.
    pub(crate) lease: Lease,
    /// Time from now to its next request.
    pub(crate) refresh_in: Duration,
    /// Capacity that it may use in safe mode.
    pub(crate) safe_capacity: SafeCapacity,
    /// Why the lease is no larger.
    pub(crate) limited_by: LimitedBy,
    /// Longest rest of learning mode, here or above. Absent: no server learns.
    pub(crate) learning_for: Option<Duration>,
    /// The origin of the answer.
    pub(crate) kind: AnswerKind,
    /// Whether what is asked for was decided about: now, or before if it is the same.
    pub(crate) decided: bool,
}

/// The origin of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// By a decision, or by the same one as before while leases of the resource came up to be looked at. The resource
    /// may have changed.
    Decided,
    /// By the same decision as before. Nothing has changed but until when the lease lasts, and when its holder asks
    /// again: neither what the resource weighs nor when it is due, nor anything that others wait for.
    Repeated,
    /// The request came faster than the floor: the current lease again.
    TooEarly,
    /// The request was not newer than the newest seen: the current lease again.
    OutOfOrder,
}
