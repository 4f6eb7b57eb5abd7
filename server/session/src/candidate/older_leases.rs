//! The longest leases that former templates may have left.
//!
//! A new master learns for the lease length of its own templates. If leases were longer before, one of them may still
//! be valid when learning ends, and its capacity would be granted twice. So a master of the root writes the lease
//! lengths beside its term ([`LeaseLengths`]), and its successor learns for that long. Three things must hold:
//!
//! - A term never states less than the leases that may be valid. Templates with other lengths come into force only
//!   after etcd has confirmed a term that states them ([`OlderLeases::to_write`], then [`OlderLeases::change`]).
//! - The time of older leases counts from the writing of the term. The master counts down the rest on its own
//!   clock. A successor counts it from when the node became vacant, which is later than the writing.
//! - A chain of short masterships loses nothing: a master includes the inherited time in its own term, until that
//!   time has ended by its own clock.

use std::time::Duration;

use smol_str::SmolStr;

use super::store::LeaseLengths;
use super::term::whole_millis;
use super::{ActiveTemplates, NextTemplates};
use crate::time::Time;
use crate::time::tolerance::{Tolerance, at_most};

/// Statement of the last term about leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredecessorLeases<'a> {
    /// There is no term.
    NoTerm,
    /// The term states nothing: a server of an older version wrote it, or it is unreadable.
    NotStated,
    /// The lease lengths.
    Lengths(&'a LeaseLengths),
}

/// Lease lengths of present and former templates, as a candidate of the root tracks them.
#[derive(Clone, Debug)]
pub struct OlderLeases {
    /// Digest of the lease lengths in force.
    digest: SmolStr,
    longest: Duration,
    /// Latest end of leases from former templates with longer leases.
    older_until: Option<Time>,
    /// Largest error of this clock. Durations of other servers' leases are lengthened by it.
    clock_tolerance: Tolerance,
}

impl OlderLeases {
    /// Starts with the templates in force, on a clock with that error.
    pub fn new(in_force: &ActiveTemplates, clock_tolerance: Tolerance) -> Self {
        Self {
            digest: in_force.digest.clone(),
            longest: in_force.longest,
            older_until: None,
            clock_tolerance,
        }
    }

    /// Returns the longest lease by the templates in force.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// Returns the lease lengths for a term that is written now. `next` are templates that come into force once the
    /// term is confirmed. Until then, leases are granted by the present ones.
    pub fn to_write(&self, next: Option<&NextTemplates>, now: Time) -> LeaseLengths {
        let left = self.older_after(now);
        let (templates, longest, older) = match next {
            Some(next) => (&next.digest, next.longest, left.max(next.outlasts)),
            None => (&self.digest, self.longest, left),
        };
        LeaseLengths {
            templates: templates.clone(),
            longest: whole_millis(longest),
            older: whole_millis(self.clock_tolerance.report(older)),
        }
    }

    /// Notes that `next` came into force. Leases may have been granted by the former templates until `granted_until`.
    pub fn change(&mut self, next: NextTemplates, granted_until: Time) {
        self.digest = next.digest;
        self.longest = next.longest;
        self.note_older(granted_until, next.outlasts);
    }

    /// Returns the longest lease that a predecessor may have left, by templates other than these. `unstated` is that
    /// length if its term states nothing.
    pub fn longer_leases(
        &self,
        predecessor: PredecessorLeases<'_>,
        unstated: Duration,
    ) -> Duration {
        match predecessor {
            PredecessorLeases::NoTerm => Duration::ZERO,
            PredecessorLeases::NotStated => unstated,
            PredecessorLeases::Lengths(lengths) if lengths.templates == self.digest => {
                lengths.older
            }
            PredecessorLeases::Lengths(lengths) => lengths.older.max(lengths.longest),
        }
    }

    /// Notes leases of that length from former templates, or of former masters. They were granted until that time.
    /// Holders count them on their own clocks. Zero: there are none.
    pub fn note_older(&mut self, granted_until: Time, length: Duration) {
        if !length.is_zero() {
            let lasts = self.clock_tolerance.report(at_most(length));
            self.older_until = self.older_until.max(Some(granted_until + lasts));
        }
    }

    /// Returns how long after a node became vacant the known older leases may last.
    pub fn older_after(&self, vacant_since: Time) -> Duration {
        self.older_until
            .map_or(Duration::ZERO, |until| until.since(vacant_since))
    }
}

#[cfg(test)]
mod tests;
