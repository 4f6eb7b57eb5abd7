//! Windows of a period, which follow each other without a gap, aligned to 1970 in UTC: [k·length, (k+1)·length), or to
//! the calendar.

use std::num::NonZeroU64;

use crate::error::SettingsError;
use crate::moment::Moment;
use crate::rate::{Period, Rate};

/// Nanoseconds of a day.
const DAY: i128 = 86_400_000_000_000;

impl Period {
    /// Returns the window of a moment, counted from 1970.
    #[inline]
    pub(crate) fn of_moment(self, now: Moment) -> i64 {
        // A division of 128 bits takes several times as long.
        if let Self::Nanos(nanos) = self
            && let Ok(nanos) = i64::try_from(nanos.get())
        {
            return now.nanos().div_euclid(nanos);
        }
        let now = i128::from(now.nanos());
        let number = match self {
            Self::Nanos(nanos) => now.div_euclid(i128::from(nanos.get())),
            Self::Month => month_of(now.div_euclid(DAY)),
            Self::Year => month_of(now.div_euclid(DAY)).div_euclid(12),
        };
        // A window is a nanosecond at least, and moments have 64 bits.
        i64::try_from(number).unwrap_or(i64::MAX)
    }

    /// Returns the start of a window, in nanoseconds.
    #[inline]
    pub(crate) fn start(self, window: i64) -> i128 {
        let window = i128::from(window);
        match self {
            Self::Nanos(nanos) => window * i128::from(nanos.get()),
            Self::Month => first_day_of(window) * DAY,
            Self::Year => first_day_of(window * 12) * DAY,
        }
    }

    /// Returns the end of a window, which is the start of the next one.
    #[inline]
    pub(crate) fn end(self, window: i64) -> i128 {
        match window.checked_add(1) {
            Some(next) => self.start(next),
            None => i128::from(i64::MAX),
        }
    }
}

/// Returns the length of sliding windows; windows of the calendar do not slide.
pub(crate) const fn length(rate: Rate) -> Result<NonZeroU64, SettingsError> {
    match rate.period() {
        Period::Nanos(nanos) => Ok(nanos),
        Period::Month | Period::Year => Err(SettingsError::CalendarRate { rate }),
    }
}

/// Returns the nanoseconds from now until an instant.
#[inline]
pub(crate) fn nanos_until(instant: i128, now: Moment) -> u128 {
    u128::try_from(instant - i128::from(now.nanos())).unwrap_or(0)
}

/// Days of 400 years, the cycle of the calendar.
const ERA: i128 = 146_097;

/// Days from March 0000 to 1970.
const TO_1970: i128 = 719_468;

/// Returns the day on which a month begins, both counted from January 1970. Internally, years begin in March, so that a
/// leap day is their last day.
fn first_day_of(month: i128) -> i128 {
    let from_march = month + 1970 * 12 - 2;
    let (year, month) = (from_march.div_euclid(12), from_march.rem_euclid(12));
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // From March on, every five months have 153 days.
    365 * year + leap_days + (153 * month + 2) / 5 - TO_1970
}

/// Returns the month of a day.
fn month_of(day: i128) -> i128 {
    // The estimate is at most two months too early in 400 years; the last month that has begun is the right one.
    let eras = (day + TO_1970).div_euclid(ERA);
    let in_era = (day + TO_1970).rem_euclid(ERA);
    let about = eras * 4800 + in_era * 4800 / ERA - 1970 * 12 + 2;
    let mut month = about - 1;
    while first_day_of(month + 1) <= day {
        month += 1;
    }
    month
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_begin_when_the_calendar_says() {
        #[track_caller]
        fn check(year: i128, month: i128, day: i128) {
            assert_eq!(first_day_of((year - 1970) * 12 + month - 1), day);
        }
        check(1970, 1, 0);
        check(1970, 2, 31);
        check(1970, 3, 59);
        check(1969, 12, -31);
        check(2000, 2, 10_988);
        check(2000, 3, 11_017);
        check(2024, 3, 19_783);
        check(2026, 1, 20_454);
        check(2100, 3, 47_541);
        check(1600, 1, -135_140);
    }

    #[test]
    fn every_day_is_in_the_month_that_has_begun() {
        for day in (-140_000..140_000).chain([-106_752, 106_751]) {
            let month = month_of(day);
            assert!(first_day_of(month) <= day, "{day}");
            assert!(first_day_of(month + 1) > day, "{day}");
        }
    }

    #[test]
    fn every_moment_is_in_its_window() {
        let hour = NonZeroU64::new(3_600_000_000_000).unwrap();
        for window in [
            Period::Nanos(NonZeroU64::MIN),
            Period::Nanos(hour),
            Period::Nanos(NonZeroU64::MAX),
            Period::Month,
            Period::Year,
        ] {
            for now in [i64::MIN, -1, 0, 1, 1_767_225_600_000_000_000, i64::MAX] {
                let number = window.of_moment(Moment::from_nanos(now));
                assert!(window.start(number) <= i128::from(now));
                assert!(i128::from(now) < window.end(number) || now == i64::MAX);
            }
        }
        let new_year = Moment::from_nanos(1_767_225_600_000_000_000);
        assert_eq!(Period::Year.start(56), 1_767_225_600_000_000_000);
        assert_eq!(Period::Year.of_moment(new_year), 56);
    }
}
