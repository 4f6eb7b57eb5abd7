//! One holder of a resource, and everything that is known of it.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::admission::CallerSlot;
use crate::amount::Amount;
use crate::claims::Demand;
use crate::division::KnownWhy;
use crate::holders::{CurrentProcess, Identity, Lease, Leases, Precedence, ProcessHistory};
use crate::id::{HolderId, HolderKind, HolderName, Incarnation, MastershipId};
use crate::templates::SafeCapacity;
use crate::time::Time;

/// Version of the table. It changes whenever a sum or another input of decisions changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(NonZeroU64);

impl Version {
    /// The first version.
    pub(super) const FIRST: Self = Self(NonZeroU64::MIN);

    /// The next version.
    pub(super) const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Place of a client's process among those of its name. Of a child server, always [`Standing::Newest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// No later process of its name has asked.
    Newest,
    /// The same, and its only request so far replaced another process.
    Restarted,
    /// A later process of its name has asked. If it is silent, it wants nothing.
    Replaced,
}

/// A holder and everything known of it. No larger than three lines of a processor's cache: a request waits for each
/// that it reads.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    /// Its name among those of its kind.
    pub name: HolderName,
    /// The demand of its newest request.
    pub demand: Demand,
    /// The report of a child server about itself.
    pub report: Option<Box<ServerReport>>,
    /// Its share at its last request.
    pub share: Amount,
    /// Why it got what it got.
    pub why: KnownWhy,
    /// The newest request seen; 0 if it does not number its requests.
    pub sequence: u64,
    /// The process that has the name. None: its requests do not name a process.
    pub incarnation: Option<Incarnation>,
    /// Its place among the processes of its name.
    pub standing: Standing,
    /// Earlier processes of a child server's node, if any are known.
    pub past: Option<Box<ProcessHistory>>,
    /// When its last request was decided.
    pub decided_at: Time,
    /// When its refresh is due.
    pub refresh_at: Time,
    /// It was invited to come before its refresh interval is over, because it waits for others, or others
    /// wait for it.
    pub invited: bool,
    /// Its requests for something else that came faster than the floor are made up for then: each costs a
    /// floor (a token bucket, kept as the time when it is full again).
    pub news_paid_until: Time,
    /// Whether it got less than its share because of what others hold.
    pub waits: bool,
    /// The latest lowering of the capacity its grant has taken into account.
    pub lowering: u32,
    /// Its newest request is not answered yet: this server waits for its own parent.
    pub pending: bool,
    /// The caller that brought it.
    pub caller: CallerSlot,
    /// The version in which its last request was decided and changed nothing: the same request comes
    /// to the same in it (`resource/decide.rs`).
    pub repeats_in: Option<Version>,
    /// It wants more than counts: more than its template lets a client have.
    pub wants_more: bool,
    /// Whether it is a client with a stream, on which changes are pushed.
    pub streams: bool,
    pub(super) leases: Leases,
    /// When it is to be looked at, because a lease of it may have ended.
    pub(super) scheduled: Time,
    /// Whether the [end of all leases](super::ending) concerns it no more.
    pub(super) is_ended: bool,
}

const _: () = assert!(size_of::<Option<Holding>>() <= 3 * 64);

impl Holding {
    /// A holder that was just given its first leases; the rest is to be noted.
    pub(crate) fn new(
        holder: HolderId,
        demand: Demand,
        leases: Leases,
        why: KnownWhy,
        now: Time,
    ) -> Self {
        let scheduled = leases.next_expiry();
        Self {
            name: holder.name,
            demand,
            report: None,
            share: Amount::ZERO,
            why,
            sequence: 0,
            incarnation: holder.process,
            standing: Standing::Newest,
            past: None,
            decided_at: now,
            refresh_at: now,
            invited: false,
            news_paid_until: Time::ZERO,
            waits: false,
            lowering: 0,
            pending: false,
            caller: CallerSlot::NOBODY,
            repeats_in: None,
            wants_more: false,
            streams: false,
            leases,
            scheduled,
            is_ended: false,
        }
    }

    /// Returns the kind and the name of the holder.
    pub(crate) fn holder(&self) -> HolderId {
        HolderId {
            kind: self.kind(),
            name: self.name.clone(),
            process: self
                .incarnation
                .filter(|_| self.kind() == HolderKind::Client),
        }
    }

    /// Client or child server.
    pub(crate) fn kind(&self) -> HolderKind {
        match self.demand {
            Demand::Client { .. } => HolderKind::Client,
            Demand::Server(_) => HolderKind::Server,
        }
    }

    /// Whether it is that holder.
    pub(super) fn is(&self, holder: &HolderId) -> bool {
        let is_process = self.kind() == HolderKind::Server || self.incarnation == holder.process;
        self.is_named(holder) && is_process
    }

    /// Whether it is a process of that holder's name.
    pub(super) fn is_named(&self, holder: &HolderId) -> bool {
        self.kind() == holder.kind && self.name == holder.name
    }

    /// Its newest lease.
    pub(crate) fn newest(&self) -> Lease {
        self.leases.newest()
    }

    /// How a request relates to earlier ones under this name.
    pub(crate) fn precedence(&self, asks: Identity, now: Time) -> Precedence {
        let known = CurrentProcess {
            epoch: self.report.as_ref().and_then(|report| report.epoch),
            process: self.incarnation,
            sequence: self.sequence,
            pending: self.pending,
            // It matters only for former processes of the name.
            overdue: self.past.is_some() && self.overdue_at() <= now,
            past: self.past.as_deref(),
        };
        known.precedence(asks)
    }

    /// Whether it was replaced, and did not ask when it should have
    /// ([`LeaseTable::replace`](super::LeaseTable::replace)).
    pub(super) fn is_silent(&self, now: Time) -> bool {
        self.standing == Standing::Replaced && self.newest().expires_at <= now
    }

    /// Whether it was invited to come back early, and comes then. Its clock, or the network to it, may be
    /// a little faster than they were.
    pub(crate) fn is_invited(&self, now: Time) -> bool {
        let slack = self.refresh_at.since(self.decided_at) / 16;
        self.invited && now + slack >= self.refresh_at
    }

    /// When it is to have asked again, if it lives: a client, if nothing is lost; a child server, if no more than
    /// one request is.
    pub(crate) fn overdue_at(&self) -> Time {
        let interval = self.refresh_at.since(self.decided_at);
        let least = match self.kind() {
            HolderKind::Client => OVERDUE_MIN,
            // Or clients of a node that is started again would be without leases before it has anything to confirm.
            HolderKind::Server => {
                let lasts = self.leases.in_use_until().unwrap_or(self.decided_at);
                let length = lasts.since(self.decided_at);
                OVERDUE_MIN_OF_SERVER.min(length / 4).max(OVERDUE_MIN)
            }
        };
        self.refresh_at + (interval / 4).max(least)
    }

    /// The most that may be in use under its name.
    pub(crate) fn reserved(&self) -> Amount {
        self.leases.reserved()
    }

    /// The larger of what it wants, with what is not in the demand of a learning child server, and the most that may be in
    /// use.
    pub(crate) fn needs(&self) -> Amount {
        let mut wants = self.demand.wants();
        if let Some(report) = &self.report {
            wants = Amount::from_computed(wants.get() + report.unreported.get()).max(wants);
        }
        wants.max(self.reserved())
    }

    /// The amount that it counts for holders that have not reported yet and so are not in its demand.
    pub(super) fn without_demand(&self) -> Amount {
        let report = self.report.as_ref();
        report.map_or(Amount::ZERO, |report| report.unreported)
    }

    /// The most that it may be using itself.
    pub(crate) fn own(&self) -> Amount {
        self.leases.own()
    }

    /// Its leases.
    pub(crate) fn leases(&self) -> &Leases {
        &self.leases
    }
}

/// Longest time that a due request may be in flight.
const OVERDUE_MIN: Duration = Duration::from_secs(1);

/// A child server notices after 2 s that a request is lost; then it connects anew and asks again.
const OVERDUE_MIN_OF_SERVER: Duration = Duration::from_secs(4);

/// A child server's report about itself, sent with its demand.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServerReport {
    /// The epoch of its mastership of its node. Absent: it does not report one.
    pub epoch: Option<u64>,
    /// The mastership of its node by which it hands out leases. Absent: it does not report one.
    pub mastership: Option<MastershipId>,
    /// Levels of servers from it down; a leaf is 1.
    pub height: u32,
    /// Whether it is in learning mode.
    pub learning: bool,
    /// Whether it asks on a stream, on which changes are pushed.
    pub streams: bool,
    /// Capacity that it may hand out by its own lease.
    pub has: Option<Amount>,
    /// The most its holders may be using. Absent: it is a Doorman server.
    pub outstanding: Option<Amount>,
    /// The capacity that it counts for holders that have not reported yet and so are not in its demand: its own if it is
    /// in learning mode, or else those of its children.
    pub unreported: Amount,
    /// The last safe capacity that it got.
    pub last_safe_capacity: Option<SafeCapacity>,
    /// Arrival of its newest request. The child counts its lease from the time at which it sent that request.
    pub asked_at: Time,
}
