//! What a candidate has in etcd: its lease, and the master's key while that is its own.

use std::time::Duration;

use doorward_clock::Instant;
use doorward_engine::node::mastership::Mastership;

use super::claim::Created;
use crate::election::{self, Standing};

/// The lease of this server in etcd.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub(super) id: i64,
    /// As it was granted, which may be longer than asked for.
    pub(super) ttl: Duration,
    /// When the last renewal was sent that was answered.
    pub(super) renewed: Instant,
}

impl Lease {
    pub(super) fn next_renewal(&self) -> Instant {
        self.renewed + self.ttl / 3
    }
}

/// The master's key, while it is ours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) created: Created,
    /// When the predecessor has ended for certain.
    pub(super) begins: Instant,
    /// When that was, if it was before: not after `begins`.
    pub(super) vacant_since: Instant,
    /// The longest lease that may have been out then, by templates other than those in force.
    pub(super) longer_leases: Duration,
    /// Until when it is confirmed. None: it was not yet.
    pub(super) valid_until: Option<Instant>,
}

impl Held {
    /// How a server stands that has it: as the master, from when it begins, as long as it is
    /// confirmed.
    pub(super) fn standing(&self, now: Instant) -> Standing {
        match self.valid_until {
            Some(until) if self.begins <= now && now < until => Standing {
                mastership: Mastership::Master {
                    epoch: Some(self.created.epoch()),
                },
                held: Some(election::Held {
                    vacant_since: self.vacant_since,
                    longer_leases: self.longer_leases,
                    valid_until: until,
                }),
                master_pages: None,
            },
            _ => Standing::UNKNOWN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_mastership_is_in_force_once_it_begins_and_while_it_is_confirmed() {
        let begins = Instant::now() + Duration::from_secs(10);
        let at = |seconds| begins + Duration::from_secs(seconds);
        let before = begins - Duration::from_secs(1);
        for (what, valid_until, now, is_master) in [
            ("it was never confirmed", None, at(1), false),
            ("its predecessor has time", Some(at(5)), before, false),
            ("it begins", Some(at(5)), begins, true),
            ("it is confirmed", Some(at(5)), at(4), true),
            ("it was confirmed", Some(at(5)), at(5), false),
        ] {
            let held = Held {
                created: Created {
                    revision: 3,
                    epoch_offset: 0,
                },
                begins,
                vacant_since: begins,
                longer_leases: Duration::ZERO,
                valid_until,
            };
            let standing = held.standing(now);
            assert_eq!(standing.mastership.is_master(), is_master, "{what}");
            assert_eq!(standing.held.is_some(), is_master, "{what}");
        }
    }
}
