//! What a candidate holds in etcd: nothing, a lease, or the master's key as well.

use std::time::Duration;

use super::standing::{Standing, WonTerm};
use super::state::CandidateState;
use super::store::{LeaseId, Registration, Txn};
use super::transactions::CreatedKey;
use crate::time::Time;

/// What a candidate holds in etcd, as far as it knows.
#[derive(Debug)]
pub(super) enum Phase {
    /// Nothing.
    Outside,
    /// A lease.
    Watching(Presence),
    /// A lease, and under it the master's key.
    Holding(Presence, HeldMastership),
    /// It gives back what it held.
    Resigning(Resignation),
    /// It no longer takes part.
    Over,
}

/// A lease in etcd, and this server's registration under it.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    pub(super) lease: EtcdLease,
    /// Its registration, and the revision at which that was written.
    pub(super) registered: Option<(Registration, u64)>,
}

/// The lease of this server in etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EtcdLease {
    pub(super) id: LeaseId,
    /// As it was granted, which may be longer than asked for.
    pub(super) ttl: Duration,
    /// When the last answered renewal was sent.
    pub(super) renewed: Time,
}

/// A mastership, while this server has the master's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldMastership {
    pub(super) created: CreatedKey,
    /// When it may begin: the predecessor has certainly ended.
    pub(super) begins: Time,
    /// Time since which no master has decided anything. Not after `begins`. None: so long ago that no lease is left.
    pub(super) vacant_since: Option<Time>,
    /// The longest lease that may have been valid then, by templates other than those in force.
    pub(super) longer_leases: Duration,
    /// Until when it is confirmed. None: not yet.
    pub(super) valid_until: Option<Time>,
}

/// What still has to be given back.
#[derive(Debug)]
pub(super) struct Resignation {
    /// Until when to try.
    pub(super) until: Time,
    pub(super) lease: LeaseId,
    /// The transaction that ends the mastership, its epoch, and how many attempts are left.
    pub(super) mastership: Option<(Txn, u64, u32)>,
}

impl EtcdLease {
    pub(super) fn next_renewal(&self) -> Time {
        self.renewed + self.ttl / 3
    }
}

impl Phase {
    /// Its lease and registration, while it takes part.
    pub(super) fn seat(&self) -> Option<&Presence> {
        match self {
            Self::Watching(seat) | Self::Holding(seat, _) => Some(seat),
            Self::Outside | Self::Resigning(_) | Self::Over => None,
        }
    }

    pub(super) fn seat_mut(&mut self) -> Option<&mut Presence> {
        match self {
            Self::Watching(seat) | Self::Holding(seat, _) => Some(seat),
            Self::Outside | Self::Resigning(_) | Self::Over => None,
        }
    }

    /// Its mastership, if it has one.
    pub(super) fn held(&self) -> Option<&HeldMastership> {
        match self {
            Self::Holding(_, held) => Some(held),
            Self::Outside | Self::Watching(_) | Self::Resigning(_) | Self::Over => None,
        }
    }

    pub(super) fn held_mut(&mut self) -> Option<&mut HeldMastership> {
        match self {
            Self::Holding(_, held) => Some(held),
            Self::Outside | Self::Watching(_) | Self::Resigning(_) | Self::Over => None,
        }
    }

    /// It has a lease, and is not registered yet.
    pub(super) fn enter(&mut self, lease: EtcdLease) {
        debug_assert!(
            matches!(self, Self::Outside),
            "one lease at a time: {self:?}"
        );
        *self = Self::Watching(Presence {
            lease,
            registered: None,
        });
    }

    /// It has the master's key.
    pub(super) fn hold(&mut self, held: HeldMastership) {
        debug_assert!(held.vacant_since <= Some(held.begins), "{held:?}");
        *self = match std::mem::replace(self, Self::Outside) {
            Self::Watching(seat) => Self::Holding(seat, held),
            other => {
                debug_assert!(false, "it goes with a lease: {other:?}");
                other
            }
        };
    }

    /// The master's key is not its own any more. Returns the lost mastership, if there was one.
    pub(super) fn lose(&mut self) -> Option<HeldMastership> {
        match std::mem::replace(self, Self::Outside) {
            Self::Holding(seat, held) => {
                *self = Self::Watching(seat);
                Some(held)
            }
            other => {
                *self = other;
                None
            }
        }
    }

    /// Whether it takes part: it is not resigning.
    pub(super) fn takes_part(&self) -> bool {
        match self {
            Self::Outside | Self::Watching(_) | Self::Holding(..) => true,
            Self::Resigning(_) | Self::Over => false,
        }
    }
}

impl HeldMastership {
    /// It is confirmed until then.
    ///
    /// If it had lapsed, another server may have decided meanwhile, although the key is unchanged: etcd may have
    /// been restored from a backup that was made before that server's election. So the mastership begins anew, as
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

    /// The standing of a server with this mastership: the master from its beginning, while it is confirmed.
    pub(super) fn standing(&self, now: Time) -> Standing {
        match self.valid_until {
            Some(valid_until) if self.begins <= now && now < valid_until => {
                Standing::Master(WonTerm {
                    epoch: self.created.epoch(),
                    vacant_since: self.vacant_since,
                    longer_leases: self.longer_leases,
                    valid_until,
                })
            }
            _ => Standing::Unknown,
        }
    }

    /// The state of a server with this mastership.
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
