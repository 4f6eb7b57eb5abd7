//! Whether a master of an epoch may be listened to: pure.
//!
//! Who has seen an epoch does not go back to an older one: that mastership is over, though its
//! server may not know. But etcd may be wiped, or restored from a backup, while no server runs that
//! remembers the epoch. Then epochs begin again below it, and a holder that kept to what it has seen
//! would be cut off for ever. So the epoch is forgotten when the last lease of the node is over:
//! from then on the holder has nothing that it could use beside what the lower epoch grants.
//!
//! A holder without a valid lease forgets at once. A lease of an earlier epoch counts as well: it
//! cannot be told whether the newer master has confirmed it.
//!
//! One filter is for one node, whichever servers it has. A client has one for its node, a child
//! server one for its parent. A master that tells no epoch is not asked about here: there is nothing
//! to compare.

use std::time::Duration;

use crate::planted::{self, Bug};

/// Remembers the newest epoch of a node that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochFilter {
    newest: Option<u64>,
}

/// The epoch is older than one that was seen, and leases are not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its mastership is out of date: it has epoch {epoch}, and {newest} was seen; that counts for \
     {forgotten_in:?} yet, until the last lease is over"
)]
pub struct OutOfDate {
    /// The epoch that was told.
    pub epoch: u64,
    /// The newest epoch that was seen.
    pub newest: u64,
    /// When that is forgotten, unless a lease is renewed before.
    pub forgotten_in: Duration,
}

impl EpochFilter {
    /// The newest epoch that was seen and is not forgotten.
    pub fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Takes note of a master of that epoch: one that answers, or one that another server names.
    /// `leases_last` tells how long the last lease of the node is still valid, zero if none is; it is
    /// called only if the epoch is older than the newest.
    ///
    /// Returns the newer epoch that was forgotten for it, if there was one.
    ///
    /// # Errors
    ///
    /// If that master is not to be listened to. Nothing is changed then.
    pub fn heed(
        &mut self,
        epoch: u64,
        leases_last: impl FnOnce() -> Duration,
    ) -> Result<Option<u64>, OutOfDate> {
        let newer = self.newest.filter(|newest| *newest > epoch);
        if let Some(newest) = newer {
            let forgotten_in = leases_last();
            let is_refused = !forgotten_in.is_zero() || planted::is(Bug::EpochNeverForgotten);
            if is_refused && !planted::is(Bug::OlderEpochHeeded) {
                return Err(OutOfDate {
                    epoch,
                    newest,
                    forgotten_in,
                });
            }
        }
        self.newest = Some(epoch);
        Ok(newer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Heeded = Result<Option<u64>, OutOfDate>;

    const UP_TO_DATE: Heeded = Ok(None);

    fn out_of_date(epoch: u64, newest: u64, seconds: u64) -> Heeded {
        Err(OutOfDate {
            epoch,
            newest,
            forgotten_in: Duration::from_secs(seconds),
        })
    }

    /// Plays epochs that are told at some second, by a holder whose last lease ends at another.
    #[track_caller]
    fn check(leases_end_at: u64, told: &[(u64, u64, Heeded)]) {
        let mut filter = EpochFilter::default();
        for (at, epoch, expected) in told {
            let leases_last = || Duration::from_secs(leases_end_at.saturating_sub(*at));
            let heeded = filter.heed(*epoch, leases_last);
            assert_eq!(&heeded, expected, "epoch {epoch} at {at} s");
        }
    }

    #[test]
    fn while_a_lease_is_valid_nobody_goes_back_to_an_older_epoch() {
        check(
            60,
            &[
                (0, 5, UP_TO_DATE),
                (1, 5, UP_TO_DATE),
                (2, 4, out_of_date(4, 5, 58)),
                (3, 6, UP_TO_DATE),
                (4, 5, out_of_date(5, 6, 56)),
                (59, 5, out_of_date(5, 6, 1)),
            ],
        );
    }

    #[test]
    fn an_epoch_is_forgotten_when_the_last_lease_is_over() {
        check(
            60,
            &[
                (0, 46, UP_TO_DATE),
                (59, 18, out_of_date(18, 46, 1)),
                (60, 18, Ok(Some(46))),
                // It is told once; from now on the lower one counts.
                (61, 18, UP_TO_DATE),
                (62, 19, UP_TO_DATE),
                (63, 18, Ok(Some(19))),
            ],
        );
    }

    #[test]
    fn who_never_had_a_lease_forgets_at_once() {
        check(0, &[(0, 9, UP_TO_DATE), (0, 8, Ok(Some(9)))]);
    }

    #[test]
    fn a_refused_epoch_leaves_the_newest_as_it_is() {
        let mut filter = EpochFilter::default();
        assert_eq!(filter.newest(), None);
        let minute = || Duration::from_secs(60);
        filter.heed(9, minute).expect("it is the first");
        filter.heed(8, minute).expect_err("it is older");
        assert_eq!(filter.newest(), Some(9));
    }

    #[test]
    fn leases_are_looked_at_only_for_an_older_epoch() {
        let mut filter = EpochFilter::default();
        let never = || -> Duration { panic!("nobody needs to know") };
        for epoch in [0, 0, 7, 7, u64::MAX] {
            assert_eq!(filter.heed(epoch, never), UP_TO_DATE);
        }
    }
}
