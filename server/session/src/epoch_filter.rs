//! Whether the master of an epoch is accepted.
//!
//! A holder that has seen an epoch refuses masters of older ones: their masterships are over, even if their
//! servers do not know it yet. But etcd may be wiped, or restored from a backup, while no server runs that
//! remembers the epoch. Then epochs begin again at a lower number, and a holder that refused them would be cut
//! off for ever. So the epoch is forgotten when the last lease of the node has ended: from then on the holder
//! uses nothing beside what the lower epoch grants.
//!
//! A holder without a valid lease forgets at once. A lease from an earlier epoch counts as valid, too, because
//! the holder cannot know whether the newer master confirmed it.
//!
//! There is one filter per node, whichever servers it has: a client has one for its node, a child server one for
//! its parent. A master without an epoch is not checked, because there is nothing to compare.

use std::time::Duration;

use crate::session_bugs::{self, SessionBug};

/// Remembers the newest epoch of a node that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochFilter {
    newest: Option<u64>,
}

/// The epoch is older than the newest one seen, and a lease is still valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its mastership is out of date: its epoch is {epoch}, and {newest} was seen, which is remembered for another \
     {forgotten_in:?}, until the last lease ends"
)]
pub struct OutOfDate {
    /// The refused epoch.
    pub epoch: u64,
    /// The newest epoch that was seen.
    pub newest: u64,
    /// How long until that is forgotten, unless a lease is renewed before.
    pub forgotten_in: Duration,
}

impl EpochFilter {
    /// The newest epoch seen that is not forgotten.
    pub fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// A master of that epoch answered, or another server named it. `leases_last` returns how long the last lease
    /// of the node is still valid, zero if there is none; it is called only if the epoch is older than the newest.
    ///
    /// Returns the newer epoch that was forgotten for it, if there was one.
    ///
    /// # Errors
    ///
    /// If the master is refused. Then nothing changes.
    pub fn accept(
        &mut self,
        epoch: u64,
        leases_last: impl FnOnce() -> Duration,
    ) -> Result<Option<u64>, OutOfDate> {
        let newer = self.newest.filter(|newest| *newest > epoch);
        if let Some(newest) = newer {
            let forgotten_in = leases_last();
            let is_refused =
                !forgotten_in.is_zero() || session_bugs::is(SessionBug::EpochNeverForgotten);
            if is_refused && !session_bugs::is(SessionBug::OlderEpochAccepted) {
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

    type Accepted = Result<Option<u64>, OutOfDate>;

    const UP_TO_DATE: Accepted = Ok(None);

    fn out_of_date(epoch: u64, newest: u64, seconds: u64) -> Accepted {
        Err(OutOfDate {
            epoch,
            newest,
            forgotten_in: Duration::from_secs(seconds),
        })
    }

    /// A holder whose last lease ends at `leases_end_at` sees these epochs: (second, epoch, result).
    #[track_caller]
    fn check(leases_end_at: u64, epochs: &[(u64, u64, Accepted)]) {
        let mut filter = EpochFilter::default();
        for (at, epoch, expected) in epochs {
            let leases_last = || Duration::from_secs(leases_end_at.saturating_sub(*at));
            let accepted = filter.accept(*epoch, leases_last);
            assert_eq!(&accepted, expected, "epoch {epoch} at {at} s");
        }
    }

    #[test]
    fn while_a_lease_is_valid_an_older_epoch_is_refused() {
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
                // It is returned once; from now on the lower epoch counts.
                (61, 18, UP_TO_DATE),
                (62, 19, UP_TO_DATE),
                (63, 18, Ok(Some(19))),
            ],
        );
    }

    #[test]
    fn a_holder_without_a_lease_forgets_at_once() {
        check(0, &[(0, 9, UP_TO_DATE), (0, 8, Ok(Some(9)))]);
    }

    #[test]
    fn a_refused_epoch_leaves_the_newest_as_it_is() {
        let mut filter = EpochFilter::default();
        assert_eq!(filter.newest(), None);
        let minute = || Duration::from_secs(60);
        filter.accept(9, minute).expect("it is the first");
        filter.accept(8, minute).expect_err("it is older");
        assert_eq!(filter.newest(), Some(9));
    }

    #[test]
    fn leases_are_checked_only_for_an_older_epoch() {
        let mut filter = EpochFilter::default();
        let never = || -> Duration { panic!("nobody needs to know") };
        for epoch in [0, 0, 7, 7, u64::MAX] {
            assert_eq!(filter.accept(epoch, never), UP_TO_DATE);
        }
    }
}
