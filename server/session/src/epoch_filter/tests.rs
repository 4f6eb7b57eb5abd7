//! Epochs that are refused, and the time when they are forgotten.

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

/// Checks a holder whose last lease ends at `leases_end_at`. Each epoch is (second, epoch, result).
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
            // The forgotten epoch is returned once. From now on the lower epoch counts.
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
