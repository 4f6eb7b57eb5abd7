//! Whether a node is in learning mode, and why, as one name: for metrics, pages and tools.
//!
//! Resources learn one by one, and the snapshot of each has the remaining time
//! ([`crate::messages::ResourceSnapshot`]). This file finds the reason for which any of them still learns.

use std::time::Duration;

use crate::node::Node;
use crate::node::totals::Totals;
use crate::resource::over_after;
use crate::time::Time;

/// Whether a node learns, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Learning {
    /// It is not the master, and decides nothing.
    Standby,
    /// It decides: all leases are known or have ended.
    Over,
    /// The process has started; without an election, the time of a former process's last decision is unknown.
    Started,
    /// It was elected, and leases of the former master may still last.
    Elected,
    /// As the two before, but only because leases longer than those of the templates in force may still last.
    LongerLeases,
    /// It does not learn, but a server above it does, and only confirms existing leases.
    Above,
}

impl Learning {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Standby,
        Self::Over,
        Self::Started,
        Self::Elected,
        Self::LongerLeases,
        Self::Above,
    ];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standby => "standby",
            Self::Over => "over",
            Self::Started => "started",
            Self::Elected => "elected",
            Self::LongerLeases => "longer_leases",
            Self::Above => "above",
        }
    }
}

impl Node {
    /// Returns the longest remaining learning mode of resources without a holder. None: it is over, or only
    /// the parent can tell, or this is not the master.
    pub fn learning_remaining(&self, now: Time) -> Option<Duration> {
        if self.config.has_parent || !self.mastership.is_master() {
            return None;
        }
        let longest = self.templates().learns_for(self.longer_leases)?;
        let until = over_after(
            self.vacant_since,
            self.config.clock_tolerance.report(longest),
        );
        Some(until.since(now)).filter(|left| !left.is_zero())
    }

    /// Whether this node learns, and why, by the totals of its resources.
    pub fn learning(&self, totals: &Totals, now: Time) -> Learning {
        let mastership = self.mastership(now);
        if !mastership.is_master() {
            return Learning::Standby;
        }
        // A resource that learns in any case says more about the node than one that learns only for longer leases.
        let held = self.learns_of_held(totals);
        let why = [held, self.learns_of_others(now)];
        match why.into_iter().flatten().min() {
            Some(true) => Learning::LongerLeases,
            Some(false) if mastership.epoch().is_none() => Learning::Started,
            Some(false) => Learning::Elected,
            None if totals.learns_above => Learning::Above,
            None => Learning::Over,
        }
    }

    /// Returns whether resources learn only because longer leases may still last; false outweighs true. None: no
    /// resource learns, or only as long as a server above does.
    fn learns_of_held(&self, totals: &Totals) -> Option<bool> {
        if totals.learns_usually {
            return Some(false);
        }
        if !totals.learns {
            return None;
        }
        if self.config.has_parent {
            // The parent's accounts show how long leases of its predecessor last.
            (!totals.learns_above).then_some(false)
        } else {
            Some(true)
        }
    }

    /// Returns whether resources without a holder learn only because longer leases may still last. None: they do
    /// not learn, or only the parent can tell.
    fn learns_of_others(&self, now: Time) -> Option<bool> {
        self.learning_remaining(now)?;
        let longest = self.templates().learns_for(Duration::ZERO)?;
        Some(
            over_after(
                self.vacant_since,
                self.config.clock_tolerance.report(longest),
            ) <= now,
        )
    }
}
