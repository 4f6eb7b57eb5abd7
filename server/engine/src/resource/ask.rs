//! A holder's request for one resource as far as it counts, and the answer.
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
use crate::claims::demand::DemandBounds;
use crate::exact_sum::ExactSum;
use crate::holders::{HolderAsk, Holding, Lease, Slot};
use crate::messages::{Has, LimitedBy};
use crate::resource::Resource;
use crate::templates::{HolderBounds, SafeCapacity};
use crate::time::Time;

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
        let known = slot.and_then(|slot| self.holders.table.get(slot));
        match admitted {
            Admitted::AsAsked => {}
            Admitted::New(caller) => ask.caller = caller,
            Admitted::WithoutGrowth => ask.is_held = true,
        }
        if let Some(known) = known.filter(|known| counts_as_before(known, ask)) {
            let present = std::mem::replace(&mut ask.demand, known.demand.clone()).wants();
            let report = ask.report.as_mut().filter(|_| !ask.is_held);
            // They are in it, except for what is beyond it: growth need not wait for the last of them. If reports leave
            // nothing unreported, they may be false.
            if let Some(report) = report.filter(|report| !report.unreported.is_zero()) {
                let all = present.get() + report.unreported.get();
                report.unreported = Amount::from_computed(all - known.demand.wants().get());
            }
        }
        if let Some(outstanding) = known.and_then(|known| with_books(known, ask, now)) {
            ask.in_use.outstanding = Some(outstanding);
        }
        let own = known.map_or(Amount::ZERO, Holding::own);
        ask.believed = ask.in_use;
        self.in_recovery(now, |recovery, s| recovery.believe(s, ask, own));
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
