//! Leases of other processes under a holder's name. They count in addition to the holder's own, and the
//! holder's report does not cover them.

use crate::amount::Amount;
use crate::exact_sum::ExactSum;
use crate::holders::lease::{Lease, Leases, Older};
use crate::id::Incarnation;
use crate::rounding::COVERS_BOTH;
use crate::time::Time;

/// The lease of another process under the holder's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Apart {
    /// The process or processes that have it.
    pub whose: Whose,
    /// The lease as it counts: it ends when the process, if it lives, should have asked again.
    pub lease: Lease,
    /// The real end of the lease, which applies if that process asks again.
    pub ends: Time,
}

/// The owner of a lease that is kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// One process. None: its requests do not name it.
    One(Option<Incarnation>),
    /// Several processes, counted as one: a report of one of them does not cover the lease.
    Several,
}

/// Number of other processes whose leases are kept. Beyond it, the first two are merged into one with
/// the sum of both amounts and the later expiry.
const APART_MAX: usize = 4;

impl Leases {
    /// Sum of the leases of other processes under the holder's name.
    pub(crate) fn apart_sum(&self) -> ExactSum {
        let mut sum = ExactSum::ZERO;
        let apart = self.older.apart().iter();
        apart.for_each(|apart| sum.add(apart.lease.capacity));
        sum
    }

    /// Another process has taken the holder's name. The former process keeps the present leases, which
    /// count in addition. The holder itself has nothing.
    pub(crate) fn set_apart(&mut self, process: Option<Incarnation>, now: Time) {
        let lease = Lease {
            capacity: self.own(),
            expires_at: self.own_last_expiry(),
        };
        let mut apart = self.older.apart().to_vec();
        if !lease.capacity.is_zero() && lease.expires_at > now {
            let whose = Whose::One(process);
            let ends = lease.expires_at;
            apart.push(Apart { whose, lease, ends });
        }
        while apart.len() > APART_MAX {
            let first = apart.remove(0);
            if let Some(second) = apart.first_mut() {
                let sum = first.lease.capacity.get() + second.lease.capacity.get();
                second.lease.capacity = Amount::from_computed(sum * COVERS_BOTH);
                second.lease.expires_at = second.lease.expires_at.max(first.lease.expires_at);
                second.ends = second.ends.max(first.ends);
                second.whose = Whose::Several;
            }
        }
        let expires_at = apart.iter().map(|apart| apart.lease.expires_at).max();
        self.newest = Lease {
            capacity: Amount::ZERO,
            expires_at: expires_at.unwrap_or(now).max(now),
        };
        self.older = Older::of(Vec::new(), apart);
    }

    /// Makes that process the holder again. Returns its lease up to the real end, if any is left: no
    /// other holder got any of it while it was kept apart.
    pub(crate) fn take_apart(&mut self, process: Option<Incarnation>) -> Option<Lease> {
        let whose = Whose::One(process);
        let apart = self.older.apart().iter();
        let found = apart.filter(|apart| apart.whose == whose);
        // It may have had the name several times. It works to one lease at a time.
        let own = found.map(|apart| Lease {
            expires_at: apart.ends,
            ..apart.lease
        });
        let lease = own.reduce(|a, b| Lease {
            capacity: a.capacity.max(b.capacity),
            expires_at: a.expires_at.max(b.expires_at),
        })?;
        self.change_apart(|apart| (apart.whose != whose).then_some(apart));
        Some(lease)
    }

    /// Adds or replaces the lease of another process.
    pub(crate) fn add_apart(&mut self, apart: Apart) {
        let mut all = self.older.apart().to_vec();
        all.retain(|known| known.whose != apart.whose);
        all.push(apart);
        let older = self.older.as_slice().to_vec();
        self.older = Older::of(older, all);
    }

    /// Whether another process under this name may be using anything.
    pub(crate) fn has_apart(&self) -> bool {
        !self.older.apart().is_empty()
    }

    /// Changes or drops what other processes have.
    pub(super) fn change_apart(&mut self, change: impl Fn(Apart) -> Option<Apart>) {
        if self.older.apart().is_empty() {
            return;
        }
        let all = self.older.apart().iter().copied().filter_map(change);
        let apart = all.filter(|apart| !apart.lease.capacity.is_zero());
        self.older = Older::of(self.older.as_slice().to_vec(), apart.collect());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn lease(capacity: f64, ends: u64) -> Lease {
        Lease {
            capacity: Amount::new(capacity).unwrap(),
            expires_at: at(ends),
        }
    }

    /// A holder, and a lease of the first process beside it: it counts until 20 s, and ends at 60 s.
    fn apart(first: Option<Incarnation>) -> Leases {
        let mut leases = Leases::new(lease(0.0, 5));
        leases.add_apart(Apart {
            whose: Whose::One(first),
            lease: lease(10.0, 20),
            ends: at(60),
        });
        leases
    }

    #[test]
    fn a_process_that_asks_again_has_its_lease_up_to_the_real_end() {
        let first = Incarnation::new(1);
        let mut leases = apart(first);
        assert_eq!(leases.last_expiry(), at(20), "the lease counts until then");
        assert_eq!(leases.take_apart(first), Some(lease(10.0, 60)));
        assert!(!leases.has_apart());
    }

    #[test]
    fn end_by_also_shortens_the_lease_of_a_process_that_asks_again() {
        let first = Incarnation::new(1);
        let mut leases = apart(first);
        leases.end_by(at(30));
        assert_eq!(leases.take_apart(first), Some(lease(10.0, 30)));
    }
}
