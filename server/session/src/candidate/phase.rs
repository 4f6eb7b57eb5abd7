//! What a candidate has in etcd: nothing, a lease, or the master's key as well.

use std::time::Duration;

use super::claim::Created;
use super::standing::{Standing, Term};
use super::state::State;
use super::store::{LeaseId, Registration, Txn};
use crate::planted::{self, Bug};
use crate::time::Time;

/// What a candidate has in etcd, as far as it knows.
#[derive(Debug)]
pub(super) enum Phase {
    /// Nothing.
    Outside,
    /// A lease.
    Watching(Seat),
    /// A lease, and under it the master's key.
    Holding(Seat, Held),
    /// It gives back what it had.
    Resigning(Resignation),
    /// It takes part no more.
    Over,
}

/// A lease in etcd, and what stands under it of this server.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) lease: Lease,
    /// What it has said of itself, and since which revision that stands.
    pub(super) registered: Option<(Registration, u64)>,
}

/// The lease of this server in etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) id: LeaseId,
    /// As it was granted, which may be longer than asked for.
    pub(super) ttl: Duration,
    /// When the last renewal was sent that was answered.
    pub(super) renewed: Time,
}

/// The master's key, while it is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) created: Created,
    /// When the predecessor has ended for certain.
    pub(super) begins: Time,
    /// When that was, if it was before: not after `begins`.
    pub(super) vacant_since: Time,
    /// The longest lease that may have been out then, by templates other than those in force.
    pub(super) longer_leases: Duration,
    /// Until when it is confirmed. None: it was not yet.
    pub(super) valid_until: Option<Time>,
}

/// What is left to give back.
#[derive(Debug)]
pub(super) struct Resignation {
    /// Until when it is tried.
    pub(super) until: Time,
    pub(super) lease: LeaseId,
    /// The mastership, and how often to try yet.
    pub(super) mastership: Option<(Txn, u64, u32)>,
}

impl Lease {
    pub(super) fn next_renewal(&self) -> Time {
        if planted::is(Bug::RenewalForgotten) {
            return self.renewed + self.ttl * 2;
        }
        self.renewed + self.ttl / 3
    }
}

impl Phase {
    /// The lease and what stands under it, while it takes part.
    pub(super) fn seat(&self) -> Option<&Seat> {
        match self {
            Self::Watching(seat) | Self::Holding(seat, _) => Some(seat),
            Self::Outside | Self::Resigning(_) | Self::Over => None,
        }
    }

    pub(super) fn seat_mut(&mut self) -> Option<&mut Seat> {
        match self {
            Self::Watching(seat) | Self::Holding(seat, _) => Some(seat),
            Self::Outside | Self::Resigning(_) | Self::Over => None,
        }
    }

    /// The mastership, while it has one.
    pub(super) fn held(&self) -> Option<&Held> {
        match self {
            Self::Holding(_, held) => Some(held),
            Self::Outside | Self::Watching(_) | Self::Resigning(_) | Self::Over => None,
        }
    }

    pub(super) fn held_mut(&mut self) -> Option<&mut Held> {
        match self {
            Self::Holding(_, held) => Some(held),
            Self::Outside | Self::Watching(_) | Self::Resigning(_) | Self::Over => None,
        }
    }

    /// It has a lease; nothing stands under it yet.
    pub(super) fn enter(&mut self, lease: Lease) {
        debug_assert!(
            matches!(self, Self::Outside),
            "one lease at a time: {self:?}"
        );
        *self = Self::Watching(Seat {
            lease,
            registered: None,
        });
    }

    /// It has the master's key.
    pub(super) fn hold(&mut self, held: Held) {
        debug_assert!(held.vacant_since <= held.begins, "{held:?}");
        *self = match std::mem::replace(self, Self::Outside) {
            Self::Watching(seat) => Self::Holding(seat, held),
            other => {
                debug_assert!(false, "it goes with a lease: {other:?}");
                other
            }
        };
    }

    /// The master's key is not its own any more. Returns what was lost, if there was something.
    pub(super) fn lose(&mut self) -> Option<Held> {
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

    /// Whether it takes part: it has not been told to resign.
    pub(super) fn takes_part(&self) -> bool {
        match self {
            Self::Outside | Self::Watching(_) | Self::Holding(..) => true,
            Self::Resigning(_) | Self::Over => false,
        }
    }
}

impl Held {
    /// It is confirmed until then.
    ///
    /// If it had lapsed before, somebody else may have decided meanwhile, although the key is as it was: etcd may
    /// have been restored from a backup to when that one was not elected yet. So it begins anew, as after one who
    /// decided until now.
    pub(super) fn note_confirmed(&mut self, until: Time, now: Time) {
        debug_assert!(self.valid_until <= Some(until), "{self:?}, {until:?}");
        let has_lapsed = self.valid_until.is_some_and(|before| before <= now);
        if has_lapsed {
            self.vacant_since = self.vacant_since.max(now);
            self.begins = self.begins.max(self.vacant_since);
        }
        self.valid_until = Some(until);
    }

    /// How a server stands that has it: as the master, from when it begins, as long as it is confirmed.
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

    /// The same by name.
    pub(super) fn state(&self, now: Time) -> State {
        match self.valid_until {
            Some(until) if self.begins <= now && now < until => State::Master,
            Some(_) if self.begins <= now => State::Lapsed,
            _ => State::Elected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::after_origin(Duration::from_secs(seconds))
    }

    /// One that begins at 10 s.
    fn held(valid_until: Option<u64>) -> Held {
        Held {
            created: Created {
                revision: 3,
                epoch_offset: 0,
            },
            begins: at(10),
            vacant_since: at(10),
            longer_leases: Duration::ZERO,
            valid_until: valid_until.map(at),
        }
    }

    #[test]
    fn what_is_confirmed_too_late_is_vacant_until_then() {
        for (what, valid_until, begins, now, expected) in [
            ("for the first time", None, 10, 12, (10, 5)),
            ("in time", Some(15), 10, 14, (10, 5)),
            ("too late", Some(15), 10, 15, (15, 15)),
            ("long after", Some(15), 10, 90, (90, 90)),
            ("too late, before it begins", Some(15), 30, 20, (30, 20)),
        ] {
            let mut held = Held {
                begins: at(begins),
                vacant_since: at(5),
                ..held(valid_until)
            };
            held.note_confirmed(at(99), at(now));
            let (begins, vacant) = expected;
            let found = (held.begins, held.vacant_since);
            assert_eq!(found, (at(begins), at(vacant)), "{what}");
            assert_eq!(held.valid_until, Some(at(99)), "{what}");
        }
    }

    #[test]
    fn a_mastership_is_in_force_once_it_begins_and_while_it_is_confirmed() {
        for (what, valid_until, now, state) in [
            ("it was never confirmed", None, 11, State::Elected),
            ("its predecessor has time", Some(15), 9, State::Elected),
            ("it begins", Some(15), 10, State::Master),
            ("it is confirmed", Some(15), 14, State::Master),
            ("it was confirmed", Some(15), 15, State::Lapsed),
        ] {
            let held = held(valid_until);
            let is_master = state == State::Master;
            assert_eq!(held.standing(at(now)).is_master(), is_master, "{what}");
            assert_eq!(held.state(at(now)), state, "{what}");
        }
    }
}
