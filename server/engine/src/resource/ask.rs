//! A holder's request for one resource, and the answer.

use std::time::Duration;

use crate::admission::CallerSlot;
use crate::amount::Amount;
use crate::demand::Demand;
use crate::id::{HolderId, Incarnation, MastershipId};
use crate::lease::Lease;
use crate::lease_table::{Asker, ServerReport};
use crate::past::Identity;
use crate::request::server::ReportedLeases;
use crate::request::{Has, LimitedBy};
use crate::template::SafeCapacity;

/// What a holder asks of this resource.
#[derive(Clone, Debug)]
pub(crate) struct HolderAsk<'a> {
    /// Who asks.
    pub(crate) asker: &'a Asker,
    /// Which process asks in that name.
    pub(crate) incarnation: Option<Incarnation>,
    /// See [`crate::request::GetCapacity::sequence`].
    pub(crate) sequence: Option<u64>,
    /// What it asks for.
    pub(crate) demand: Demand,
    /// What it has by a lease, or may be using still.
    pub(crate) has: Option<Has>,
    /// What its own holders may be using, if it is a child server that reports it.
    pub(crate) outstanding: Option<Has>,
    /// See [`crate::request::server::ServerAsk::reported`].
    pub(crate) reported: &'a [ReportedLeases],
    /// See [`crate::request::server::ServerAsk::unreported`].
    pub(crate) unreported: Amount,
    /// Its report about itself, if it is a child server.
    pub(crate) report: Option<ServerReport>,
    /// Asks faster than this get the current lease again.
    pub(crate) floor: Duration,
    /// Who brings the holder, if it is a new one.
    pub(crate) caller: CallerSlot,
}

impl<'a> HolderAsk<'a> {
    /// Who asks.
    pub(crate) fn holder(&self) -> &'a HolderId {
        self.asker.holder()
    }

    /// The same, with its reports limited to that amount.
    pub(crate) fn with_reports_up_to(&self, most: Amount) -> HolderAsk<'a> {
        let bounded = |has: Has| Has {
            capacity: has.capacity.min(most),
            ..has
        };
        HolderAsk {
            has: self.has.map(bounded),
            outstanding: self.outstanding.map(bounded),
            ..self.clone()
        }
    }

    /// What it reports that it may be using. The larger counts, each for as long as it lasts.
    pub(crate) fn reports(&self) -> impl Iterator<Item = Has> {
        self.has.into_iter().chain(self.outstanding)
    }

    /// The most it may be using now, as far as it knows.
    pub(crate) fn in_use(&self) -> Amount {
        let most = self.reports().map(|has| has.capacity).max();
        most.unwrap_or(Amount::ZERO)
    }

    /// The part of it to confirm in learning mode. What a child server keeps for holders that have not reported is part of
    /// its lease, if it still has one; beyond that, it is only reserved. It may be counted twice, and a server that
    /// was granted it would grant it on. If a child knows all its holders, what is out beyond its lease is only reserved,
    /// too: a predecessor has taken that back, perhaps for others, and it runs down.
    pub(crate) fn to_confirm(&self) -> Amount {
        let has = match self.has {
            Some(has) if self.acknowledges() => return has.capacity,
            has => has.map_or(Amount::ZERO, |has| has.capacity),
        };
        let outstanding = self.outstanding.map_or(Amount::ZERO, |has| has.capacity);
        has.max(Amount::from_computed(
            outstanding.get() - self.unreported.get(),
        ))
    }

    /// The epoch of the mastership by which it asks, if it is a child server that says so.
    pub(crate) fn epoch(&self) -> Option<u64> {
        self.report.as_ref().and_then(|report| report.epoch)
    }

    /// Who asks, as far as it matters for which of several requests counts.
    pub(crate) fn identity(&self) -> Identity {
        Identity {
            epoch: self.epoch(),
            process: self.incarnation,
            sequence: self.sequence,
        }
    }

    /// By which mastership of its node it hands out leases, if it is a child server that says so.
    pub(crate) fn mastership(&self) -> Option<MastershipId> {
        self.report.as_ref().and_then(|report| report.mastership)
    }

    /// Whether its report is complete. A server in learning mode does not know yet what its predecessor granted to others:
    /// it acknowledges nothing, and nothing is taken from it.
    pub(crate) fn acknowledges(&self) -> bool {
        !self.report.as_ref().is_some_and(|report| report.learning)
    }
}

/// The answer to a holder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    /// Its newest lease.
    pub(crate) lease: Lease,
    /// When it asks again, from now.
    pub(crate) refresh_in: Duration,
    /// What it may use in safe mode.
    pub(crate) safe_capacity: SafeCapacity,
    /// Why the lease is no larger.
    pub(crate) limited_by: LimitedBy,
    /// How long learning mode still lasts at most, here or above. Absent: no server learns.
    pub(crate) learning_for: Option<Duration>,
    /// How it came about.
    pub(crate) kind: AnswerKind,
    /// Whether what is asked for was decided about: now, or before if it is the same.
    pub(crate) decided: bool,
}

/// How an answer came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// By a decision, or by the same one as before while leases of the resource came up to be looked at. The resource may
    /// have changed.
    Decided,
    /// By the same decision as before. Nothing has changed but until when the lease lasts, and when its holder asks
    /// again: neither what the resource weighs nor when it is due, nor anything that others wait for.
    Repeated,
    /// The request came faster than the floor: the current lease again.
    TooEarly,
    /// The request was not newer than the newest seen: the current lease again.
    OutOfOrder,
}
