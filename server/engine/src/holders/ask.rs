//! A holder's request for one resource, as it counts.
//!
//! `resource/ask` makes it from what was sent. From then on it is only read.

use std::time::Duration;

use crate::admission::CallerSlot;
use crate::amount::Amount;
use crate::claims::Demand;
use crate::holders::{Asker, Holding, Identity, ServerReport};
use crate::id::{HolderId, Incarnation, MastershipId};
use crate::messages::{Has, ReportedLeases};

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
    /// Whether the node asks on behalf of the holder, to push the answer.
    pub(crate) is_push: bool,
    /// Whether it is a client with a stream.
    pub(crate) streams: bool,
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
    pub(crate) fn up_to(self, most: Amount) -> Self {
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
    pub(crate) fn on_behalf_of(asker: &'a Asker, holding: &Holding) -> Self {
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
            is_push: true,
            streams: holding.streams,
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
    /// reserved, too: a predecessor has taken that capacity back, perhaps for others or for another process of the
    /// child's node, and the leases run down.
    pub(crate) fn to_confirm(&self) -> Amount {
        let InUse { has, outstanding } = self.in_use;
        let has = has.map_or(Amount::ZERO, |has| has.capacity);
        if self.acknowledges() {
            return has;
        }
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
