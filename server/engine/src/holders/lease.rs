//! The leases of one holder: the newest one, and older ones that the holder may still use.
//!
//! A grant that is smaller than the one before does not free capacity at once: the answer may be lost or late,
//! and until it arrives, the holder may use its older lease. So an older lease counts until it expires, or
//! until the holder reports what it has.
//!
//! A report (`has`) is a promise about the future, too. A holder applies an answer only if it answers its
//! newest request (`docs/protocol.md`). So after a report of h, the holder can use at most h of its earlier
//! leases. That is why [`Leases::acknowledge`] caps them all at h. It covers an acknowledged shrink (h is the
//! newer, smaller lease), a gauge with work still in flight (h is what is in flight) and a holder that
//! restarted (h is nothing).
//!
//! Leases of other processes under the same name count in addition ([`Leases::set_apart`]): the holder's report
//! does not cover them.

use crate::amount::Amount;
use crate::exact_sum::ExactSum;
use crate::id::Incarnation;
use crate::rounding::COVERS_BOTH;
use crate::time::Time;

/// An amount until a time. The lease is over *at* its expiry: the holder's view of it ends no later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    /// The amount.
    pub capacity: Amount,
    /// The expiry.
    pub expires_at: Time,
}

impl Lease {
    /// Whether `other` allows no more, at no time.
    fn covers(&self, other: &Self) -> bool {
        self.capacity >= other.capacity && self.expires_at >= other.expires_at
    }
}

/// The leases of one holder that it may be working to.
#[derive(Clone, Debug)]
pub(crate) struct Leases {
    newest: Lease,
    /// Absent: nothing counts but the newest lease, as for nearly every holder.
    others: Option<Box<OtherLeases>>,
}

/// Leases that count besides the newest one of a holder.
#[derive(Clone, Debug, Default)]
struct OtherLeases {
    /// Earlier leases of the holder, such as the one before a shrink. From the largest, which ends first, to the
    /// smallest, which ends last; none covers another, nor does the newest cover any.
    older: Vec<Lease>,
    /// The leases of other processes under this name, one by one.
    apart: Vec<OtherProcessLease>,
}

/// Number of older leases kept for one holder. Beyond it, the last two are merged into one with the larger
/// amount and the later expiry.
const OLDER_MAX: usize = 8;

impl Leases {
    /// A holder's first lease.
    pub(crate) fn new(lease: Lease) -> Self {
        Self {
            newest: lease,
            others: None,
        }
    }

    /// The newest lease.
    pub(crate) fn newest(&self) -> Lease {
        self.newest
    }

    /// The most that may be in use under the holder's name now, rounded up.
    pub(crate) fn reserved(&self) -> Amount {
        match self.has_apart() {
            true => self.reserved_sum().rounded_up(),
            false => self.own(),
        }
    }

    /// The same, exactly: what the holder itself may be using, and what other processes may be.
    pub(crate) fn reserved_sum(&self) -> ExactSum {
        // Nearly every holder has only its own leases, and each request reads this sum several times.
        if !self.has_apart() {
            return ExactSum::from(self.own());
        }
        let mut sum = self.apart_sum();
        sum.add(self.own());
        sum
    }

    /// The most the holder itself may be using now, whatever other processes under its name use.
    pub(crate) fn own(&self) -> Amount {
        let older = self.older().first();
        older.map_or(self.newest.capacity, |lease| {
            lease.capacity.max(self.newest.capacity)
        })
    }

    /// When the first of the leases ends.
    pub(crate) fn next_expiry(&self) -> Time {
        let all = self.all_others().map(|lease| lease.expires_at);
        all.fold(self.newest.expires_at, Time::min)
    }

    /// Ends each lease by then, at the latest.
    pub(crate) fn end_by(&mut self, time: Time) {
        self.newest.expires_at = self.newest.expires_at.min(time);
        if let Some(others) = &mut self.others {
            for lease in &mut others.older {
                lease.expires_at = lease.expires_at.min(time);
            }
            for apart in &mut others.apart {
                apart.lease.expires_at = apart.lease.expires_at.min(time);
                apart.ends = apart.ends.min(time);
            }
            self.tidy();
        }
    }

    /// When the last of the leases ends.
    pub(crate) fn last_expiry(&self) -> Time {
        let all = self.all_others().map(|lease| lease.expires_at);
        all.fold(self.newest.expires_at, Time::max)
    }

    /// End of the last lease with a capacity above 0.
    pub(crate) fn in_use_until(&self) -> Option<Time> {
        let all = std::iter::once(&self.newest).chain(self.all_others());
        let worth = all.filter(|lease| !lease.capacity.is_zero());
        worth.map(|lease| lease.expires_at).max()
    }

    /// End of the holder's own last lease with a capacity above 0.
    fn own_in_use_until(&self) -> Option<Time> {
        let own = std::iter::once(&self.newest).chain(self.older());
        let worth = own.filter(|lease| !lease.capacity.is_zero());
        worth.map(|lease| lease.expires_at).max()
    }

    /// Whether nothing counts but the newest lease.
    pub(crate) fn is_only_newest(&self) -> bool {
        self.others.is_none()
    }

    /// The newest lease lasts until then, if that is longer.
    pub(crate) fn renew(&mut self, expires_at: Time) {
        self.newest.expires_at = self.newest.expires_at.max(expires_at);
    }

    /// Gives the holder a new lease. Its earlier leases still count.
    pub(crate) fn grant(&mut self, lease: Lease) {
        let before = std::mem::replace(&mut self.newest, lease);
        if self.others.is_none() && (lease.covers(&before) || before.capacity.is_zero()) {
            return;
        }
        self.others.get_or_insert_default().older.push(before);
        self.tidy();
    }

    /// Gives a child server a new lease. A child hands out what it has: until an earlier, longer lease ends,
    /// some of its holders have leases under that one, while others have the rest of the new one. So the new
    /// lease counts as long as the earlier one, though the child hands out nothing under it after its end.
    pub(crate) fn grant_to_server(&mut self, lease: Lease) {
        let until = self.own_in_use_until();
        if let Some(expires_at) = until.filter(|until| *until > lease.expires_at) {
            self.grant(Lease {
                expires_at,
                ..lease
            });
        }
        self.grant(lease);
    }

    /// Drops the older leases, so that the newest alone counts (`shrink: immediate`).
    pub(crate) fn forget_older(&mut self) {
        if let Some(others) = &mut self.others {
            others.older.clear();
            self.tidy();
        }
    }

    fn own_last_expiry(&self) -> Time {
        let older = self.older().iter().map(|lease| lease.expires_at);
        older.fold(self.newest.expires_at, Time::max)
    }

    /// Caps all leases at `has`, which the holder reports in a request newer than all before.
    pub(crate) fn acknowledge(&mut self, has: Amount) {
        self.newest.capacity = self.newest.capacity.min(has);
        if let Some(others) = &mut self.others {
            for lease in &mut others.older {
                lease.capacity = lease.capacity.min(has);
            }
            self.tidy();
        }
    }

    /// Drops the leases that have ended. Returns whether any is left.
    pub(crate) fn expire(&mut self, now: Time) -> bool {
        if let Some(others) = &mut self.others {
            others.older.retain(|lease| lease.expires_at > now);
            others.apart.retain(|it| it.lease.expires_at > now);
            self.tidy();
        }
        if self.newest.expires_at > now {
            return true;
        }
        // The newest ended before an older one: the holder was given a shorter lease and may not
        // know it. It has nothing by its newest lease for as long as the older ones count.
        match self.all_others().map(|lease| lease.expires_at).max() {
            Some(expires_at) => {
                self.newest = Lease {
                    capacity: Amount::ZERO,
                    expires_at,
                };
                true
            }
            None => false,
        }
    }

    fn older(&self) -> &[Lease] {
        self.others.as_deref().map_or(&[], |others| &others.older)
    }

    fn apart(&self) -> &[OtherProcessLease] {
        self.others.as_deref().map_or(&[], |others| &others.apart)
    }

    /// Older leases of the holder, and leases of other processes.
    fn all_others(&self) -> impl Iterator<Item = &Lease> {
        let apart = self.apart().iter().map(|apart| &apart.lease);
        self.older().iter().chain(apart)
    }

    /// Keeps the other leases that still count: older ones that allow more than the newest.
    fn tidy(&mut self) {
        let (newest, Some(others)) = (self.newest, &mut self.others) else {
            return;
        };
        others.apart.retain(|it| !it.lease.capacity.is_zero());
        let older = &mut others.older;
        older.sort_by(|a, b| {
            b.capacity
                .cmp(&a.capacity)
                .then(b.expires_at.cmp(&a.expires_at))
        });
        let mut longest: Option<Time> = None;
        older.retain(|lease| {
            let counts = !newest.covers(lease) && !lease.capacity.is_zero();
            let counts = counts && longest.is_none_or(|time| lease.expires_at > time);
            if counts {
                longest = Some(lease.expires_at);
            }
            counts
        });
        while older.len() > OLDER_MAX {
            // The last is the longest, the one before it is larger.
            if let (Some(last), Some(before)) = (older.pop(), older.last_mut()) {
                before.expires_at = last.expires_at;
            }
        }
        if older.is_empty() && others.apart.is_empty() {
            self.others = None;
        }
    }
}

/// The lease of another process under the holder's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OtherProcessLease {
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
        let apart = self.apart().iter();
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
        let OtherLeases { older, apart } = &mut **self.others.get_or_insert_default();
        older.clear();
        if !lease.capacity.is_zero() && lease.expires_at > now {
            let whose = Whose::One(process);
            let ends = lease.expires_at;
            apart.push(OtherProcessLease { whose, lease, ends });
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
        self.tidy();
    }

    /// Makes that process the holder again. Returns its lease up to the real end, if any is left: no
    /// other holder got any of it while it was kept apart.
    pub(crate) fn take_apart(&mut self, process: Option<Incarnation>) -> Option<Lease> {
        let whose = Whose::One(process);
        let others = self.others.as_mut()?;
        let own = others.apart.extract_if(.., |apart| apart.whose == whose);
        // It may have had the name several times. It works to one lease at a time.
        let own = own.map(|apart| Lease {
            expires_at: apart.ends,
            ..apart.lease
        });
        let lease = own.reduce(|a, b| Lease {
            capacity: a.capacity.max(b.capacity),
            expires_at: a.expires_at.max(b.expires_at),
        });
        self.tidy();
        lease
    }

    /// Adds or replaces the lease of another process.
    pub(crate) fn add_apart(&mut self, apart: OtherProcessLease) {
        let all = &mut self.others.get_or_insert_default().apart;
        all.retain(|known| known.whose != apart.whose);
        all.push(apart);
        self.tidy();
    }

    /// Whether another process under this name may be using anything.
    pub(crate) fn has_apart(&self) -> bool {
        !self.apart().is_empty()
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod apart_tests {
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
        leases.add_apart(OtherProcessLease {
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
