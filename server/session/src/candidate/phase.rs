//! The phase of a candidate: it holds nothing in etcd, a lease, or the master's key as well.

use std::time::Duration;

use doorward_time::term::Term;

use super::standing::Standing;
use super::state::CandidateState;
use super::store::{LeaseId, Registration, Txn};
use super::transactions::CreatedKey;
use crate::time::Time;

/// Phase of a candidate, by its lease and keys in etcd as far as it knows.
#[derive(Debug)]
pub(super) enum Phase {
    /// Nothing.
    Outside,
    /// A lease, and perhaps keys under it.
    Present(Presence),
    /// It gives back its lease and keys.
    Resigning(Resignation),
    /// It no longer takes part.
    Over,
}

/// A lease in etcd, and this server's keys under it.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    pub(super) lease: EtcdLease,
    /// Its registration, and the revision at which that was written.
    pub(super) registered: Option<(Registration, u64)>,
    /// Its mastership, while it has the master's key.
    pub(super) held: Option<HeldMastership>,
}

/// The lease of this server in etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EtcdLease {
    pub(super) id: LeaseId,
    /// Granted TTL, which may be longer than requested.
    pub(super) ttl: Duration,
    /// Sending time of the last answered renewal.
    pub(super) renewed: Time,
}

/// A mastership, while this server has the master's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldMastership {
    pub(super) created: CreatedKey,
    /// Earliest beginning: the predecessor has certainly ended.
    pub(super) begins: Time,
    /// Time since which no master has decided anything. Not after `begins`. None: so long ago that no lease is left.
    pub(super) vacant_since: Option<Time>,
    /// Longest lease that may have been valid then, by templates other than those in force.
    pub(super) longer_leases: Duration,
    /// End of the confirmed time. None: not confirmed yet.
    pub(super) valid_until: Option<Time>,
}

/// Rest of a resignation.
#[derive(Debug)]
pub(super) struct Resignation {
    /// End of the attempts.
    pub(super) until: Time,
    pub(super) lease: LeaseId,
    /// Transaction that ends the mastership, its epoch, and the number of attempts left.
    pub(super) mastership: Option<(Txn, u64, u32)>,
}

impl EtcdLease {
    pub(super) fn next_renewal(&self) -> Time {
        self.renewed + self.ttl / 3
    }
}

impl Phase {
    /// Returns its lease and keys, while it takes part.
    pub(super) fn seat(&self) -> Option<&Presence> {
        match self {
            Self::Present(seat) => Some(seat),
            Self::Outside | Self::Resigning(_) | Self::Over => None,
        }
    }

    pub(super) fn seat_mut(&mut self) -> Option<&mut Presence> {
        match self {
            Self::Present(seat) => Some(seat),
            Self::Outside | Self::Resigning(_) | Self::Over => None,
        }
    }

    /// Returns its mastership, if it has one.
    pub(super) fn held(&self) -> Option<&HeldMastership> {
        self.seat()?.held.as_ref()
    }

    pub(super) fn held_mut(&mut self) -> Option<&mut HeldMastership> {
        self.seat_mut()?.held.as_mut()
    }

    /// Notes its lease. It is not registered yet.
    pub(super) fn enter(&mut self, lease: EtcdLease) {
        debug_assert!(
            matches!(self, Self::Outside),
            "one lease at a time: {self:?}"
        );
        *self = Self::Present(Presence {
            lease,
            registered: None,
            held: None,
        });
    }

    /// Notes that it has the master's key.
    pub(super) fn hold(&mut self, held: HeldMastership) {
        debug_assert!(held.vacant_since <= Some(held.begins), "{held:?}");
        debug_assert!(self.seat().is_some(), "it goes with a lease: {self:?}");
        if let Some(seat) = self.seat_mut() {
            seat.held = Some(held);
        }
    }

    /// Notes that the master's key is not its own any more. Returns the lost mastership, if there was one.
    pub(super) fn lose(&mut self) -> Option<HeldMastership> {
        self.seat_mut()?.held.take()
    }

    /// Whether it takes part and is not resigning.
    pub(super) fn takes_part(&self) -> bool {
        matches!(self, Self::Outside | Self::Present(_))
    }
}

impl HeldMastership {
    /// Notes a confirmation until that time.
    ///
    /// If the mastership had lapsed, another server may have decided meanwhile, although the key is unchanged: etcd may
    /// have been restored from a backup that was made before that server's election. So the mastership begins again, as
    /// if another master had decided until now.
    pub(super) fn note_confirmed(&mut self, until: Time, now: Time) {
        debug_assert!(self.valid_until <= Some(until), "{self:?}, {until:?}");
        let has_lapsed = self.valid_until.is_some_and(|before| before <= now);
        if has_lapsed {
            self.vacant_since = self.vacant_since.max(Some(now));
            self.begins = self.begins.max(now);
        }
        self.valid_until = Some(until);
    }

    /// Returns the standing of a server with this mastership: the master from its beginning, while it is confirmed.
    pub(super) fn standing(&self, now: Time) -> Standing {
        match self.valid_until {
            Some(valid_until) if self.begins <= now && now < valid_until => {
                Standing::Master(Term {
                    epoch: self.created.epoch(),
                    vacant_since: self.vacant_since,
                    longer_leases: self.longer_leases,
                    valid_until,
                })
            }
            _ => Standing::Unknown,
        }
    }

    /// Returns the state of a server with this mastership.
    pub(super) fn state(&self, now: Time) -> CandidateState {
        match self.valid_until {
            Some(until) if self.begins <= now && now < until => CandidateState::Master,
            Some(_) if self.begins <= now => CandidateState::Lapsed,
            _ => CandidateState::Elected,
        }
    }
}

#[cfg(test)]
mod tests;
