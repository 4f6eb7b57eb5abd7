//! The term of a master. Elections and nodes do not know each other, and both know this.

use std::time::Duration;

use crate::Time;

/// A mastership that a server won in an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Number that grows with every change of mastership.
    pub epoch: u64,
    /// Time since which no earlier master of the node has decided anything. Its leases are over one lease length later,
    /// so a new master learns for that much less. If the time is not known: now. None: so long ago that no lease is
    /// left, and there is nothing to learn.
    pub vacant_since: Option<Time>,
    /// Longest lease that may have been valid then, by templates other than those in force: a root learns for that
    /// long, too. Zero: leases were no longer than they are now. Below the root the parent tells how long leases last,
    /// and this changes nothing.
    pub longer_leases: Duration,
    /// End of the confirmed time.
    pub valid_until: Time,
}
