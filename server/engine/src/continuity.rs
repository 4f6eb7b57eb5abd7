//! Recovery after a takeover: which leases of earlier masterships are in use, and until when.
//!
//! A resource has a [`Recovery`] until it is over, and none afterwards. [`Recovery`] has all that is known of earlier
//! masterships, and a resource calls it through a few doors. `confirming` decides what a holder is believed and gets.
//! `upward`, below the root, is about the parent: what it hears, what it answers, and which holders wait for it.
//! [`reported`] has the reports of all holders together, and [`learned`] the masterships that granted what they report.
//! At the root, [`mark`] is what a master tells its successor, and [`unreported`] what the successor makes of it.
//!
//! Below the root, some rules follow from these facts. A child in learning mode knows only the holders that have
//! reported. Its parent has the grants to the child's predecessors on record, if its present mastership granted them.
//! While the parent learns too, the record may lack predecessors that have not asked. So a learning child sends the
//! masterships that granted each reported lease. For masterships on record, the larger of the record and the child's
//! report counts. Leases of other masterships are added.

mod confirming;
mod learned;
pub(crate) mod mark;
mod recovery;
mod reported;
mod unreported;
mod upward;

pub(crate) use recovery::{Ends, Outlook, Recovery};
pub(crate) use upward::Statement;

use std::time::Duration;

use crate::amount::Amount;
use crate::division::Supply;
use crate::holders::{Holding, LeaseTable, Slot};
use crate::id::MastershipId;
use crate::templates::{Algorithm, DURATION_MAX, HolderBounds};
use crate::time::Time;
use crate::time::tolerance::Tolerance;

/// A lease that ends sooner has ended before its holder gets it.
const LEASE_MIN: Duration = Duration::from_millis(10);

/// The start of the mastership in which a resource is decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MastershipStart {
    /// The mastership.
    pub(crate) mastership: MastershipId,
    /// No earlier master of the node has granted anything since then. None: no lease of it is left.
    pub(crate) vacant_since: Option<Time>,
    /// The longest of their leases by templates other than those in force. Zero: there are none.
    pub(crate) longer_leases: Duration,
    /// Largest error of the clock that measures them now.
    pub(crate) clock_tolerance: Tolerance,
}

impl MastershipStart {
    /// Returns when leases of that length have ended that earlier masters granted.
    pub(crate) fn end_of(&self, length: Duration) -> Time {
        let lasts = self.clock_tolerance.report(length);
        self.vacant_since.map_or(Time::ZERO, |since| since + lasts)
    }

    /// Returns when leases by earlier masters have ended, if an algorithm and other templates gave them.
    pub(crate) fn leases_end(&self, algorithm: &Algorithm) -> Time {
        self.end_of(algorithm.learns_for(self.longer_leases))
    }

    /// Returns the same, if that is later than now.
    pub(crate) fn ends_anew(&self, algorithm: &Algorithm, now: Time) -> Option<Time> {
        Some(self.leases_end(algorithm)).filter(|ends| *ends > now)
    }
}

/// A resource as it is now, as far as recovery depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    pub(crate) is_root: bool,
    pub(crate) supply: &'a Supply,
    pub(crate) algorithm: &'a Algorithm,
    pub(crate) bounds: HolderBounds,
    /// Longest lease that may be granted.
    pub(crate) length_max: Duration,
    pub(crate) start: &'a MastershipStart,
    pub(crate) table: &'a LeaseTable,
    pub(crate) now: Time,
}

impl Situation<'_> {
    /// Whether there is anything to share: at the root always, below it while a lease lasts that is worth giving a part
    /// of to anyone. A parent that learns and reserves more than it confirms, as for a process that was refused, leases
    /// nothing yet.
    pub(crate) fn has_lease(&self) -> bool {
        let lasts = |end| end > self.now + LEASE_MIN;
        let supply = self.supply;
        let is_only_reserved =
            supply.capacity.is_zero() && supply.parent_learns() && supply.runs_down();
        self.is_root || !is_only_reserved && supply.expires_at.is_some_and(lasts)
    }

    /// Returns the end of a full lease that is granted now.
    pub(crate) fn lease_end(&self) -> Time {
        let length = self.algorithm.lease_length.min(self.length_max);
        self.supply.lease_end(length, self.now)
    }

    /// Longest time that a predecessor's lease may last. Leases may have been longer than now, and recovery, which
    /// takes that much more time, lasts until all of them have ended.
    pub(crate) fn longest_of_predecessors(&self, remaining: Option<Duration>) -> Duration {
        let remaining = remaining.unwrap_or_default();
        self.longest_by_others().max(remaining).min(DURATION_MAX)
    }

    /// Longest duration, on this machine's clock, of a full lease that another machine's clock measures.
    fn longest_by_others(&self) -> Duration {
        let length = self.algorithm.lease_length;
        self.start.clock_tolerance.report(length)
    }

    /// The capacity for reports: below the root, with what is to come.
    fn for_reported(&self) -> Amount {
        let terms = self.supply.terms.as_ref();
        let share = terms.map_or(Amount::ZERO, |terms| terms.share);
        self.supply.capacity.max(share)
    }

    fn holding(&self, slot: Option<Slot>) -> Option<&Holding> {
        self.table.get(slot?)
    }
}
