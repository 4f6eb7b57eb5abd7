//! A day of people's demand: little in the small hours, a plateau while they work, most of it in the
//! evening.
//!
//! The shape is that of a day at a consumer service, hour by hour and straight in between; it is
//! stretched to any period, and turned so that its peak is where it should be.

use std::time::Duration;

use serde::Deserialize;

use crate::scenario::forms::{Amount, Part, Read, Step, Time, refuse, seconds};

/// The parts of a day, from the peak on: 1 is the most, 0 the least.
const SHAPE: [f64; 24] = [
    1.0, 0.97, 0.88, 0.74, 0.56, 0.36, 0.18, 0.06, 0.0, 0.03, 0.12, 0.28, 0.45, 0.58, 0.66, 0.7,
    0.72, 0.7, 0.68, 0.68, 0.7, 0.75, 0.84, 0.95,
];

/// A day.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Diurnal {
    /// The amount a third of a period after the peak.
    pub least: Amount,
    /// The amount at the peak.
    pub most: Amount,
    /// The length of a day.
    #[serde(default = "seconds::<86_400>")]
    pub period: Step,
    /// The time of the peak, from the beginning of a period. Absent: five sixths of the period (20:00).
    pub peak: Option<Time>,
    /// Each client is ahead of the one before it by this part of a period.
    #[serde(default)]
    pub shift: Part,
    /// The time between two steps. Absent: a hundredth of the period.
    pub every: Option<Step>,
}

impl Diurnal {
    /// Returns the time of the peak.
    fn peak(&self) -> Duration {
        self.peak.map_or(self.period.0 * 5 / 6, |peak| peak.0)
    }

    /// Checks the peak and the amounts.
    pub(super) fn check(&self) -> Read<()> {
        if self.most < self.least {
            let (least, most) = (self.least.0, self.most.0);
            let message = format!("is {most}; give at least the least, {least}");
            return refuse("most", message);
        }
        if self.peak() >= self.period.0 {
            let period = humantime::format_duration(self.period.0);
            let message = format!("is too late; give a time within the period, {period}");
            return refuse("peak", message);
        }
        Ok(())
    }

    /// Returns the amount that the client of that number wants at a time.
    pub(super) fn wants(&self, number: u32, now: Duration) -> f64 {
        let period = self.period.0.as_secs_f64();
        let since_peak = (now.as_secs_f64() - self.peak().as_secs_f64()) / period;
        let part = shape(since_peak + self.shift.0 * f64::from(number));
        self.least.0 * (1.0 - part) + self.most.0 * part
    }
}

/// The shape so many days after a peak.
fn shape(days: f64) -> f64 {
    let hours = days.rem_euclid(1.0) * SHAPE.len() as f64;
    let (hour, within) = (hours.floor(), hours.fract());
    // It is from 0 to 24, whatever was rounded.
    let at = |hour: f64| {
        let hour = hour as usize % SHAPE.len();
        SHAPE.get(hour).copied().unwrap_or_default()
    };
    at(hour) * (1.0 - within) + at(hour + 1.0) * within
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn hours(hours: u64) -> Duration {
        Duration::from_secs(hours * 3600)
    }

    fn day(peak: u64, shift: f64) -> Diurnal {
        Diurnal {
            least: Amount(10.0),
            most: Amount(110.0),
            peak: Some(Time(hours(peak))),
            period: Step(hours(24)),
            shift: Part(shift),
            every: Some(Step(hours(1))),
        }
    }

    #[test]
    fn the_peak_is_where_it_should_be_and_the_least_a_third_of_a_day_later() {
        for peak in [0, 9, 20] {
            let day = day(peak, 0.0);
            assert_eq!(day.wants(0, hours(peak)), 110.0);
            assert_eq!(day.wants(0, hours(peak + 24)), 110.0, "the next day, too");
            assert_eq!(day.wants(0, hours(peak + 8)), 10.0);
        }
    }

    #[test]
    fn it_is_low_at_night_and_high_during_the_day() {
        let day = day(20, 0.0);
        let mean = |from, until| {
            let all = (from..until).map(|hour| day.wants(0, hours(hour)));
            all.sum::<f64>() / (until - from) as f64
        };
        let (night, work, evening) = (mean(1, 7), mean(9, 17), mean(18, 23));
        assert!(night < 40.0, "{night}");
        assert!((65.0..85.0).contains(&work), "{work}");
        assert!(evening > 95.0, "{evening}");
    }

    #[test]
    fn between_two_hours_it_is_straight_and_never_beyond_its_bounds() {
        let day = day(20, 0.0);
        let half = hours(20) + Duration::from_secs(1800);
        assert!((day.wants(0, half) - (110.0 + 107.0) / 2.0).abs() < 1e-9);
        for second in (0..100_000).step_by(77) {
            let wants = day.wants(3, Duration::from_secs(second));
            assert!((10.0..=110.0).contains(&wants), "{wants}");
        }
    }

    #[test]
    fn each_client_is_ahead_of_the_one_before() {
        let day = day(20, 0.25);
        assert!((day.wants(1, hours(14)) - 110.0).abs() < 1e-9);
        assert!((day.wants(4, hours(20)) - 110.0).abs() < 1e-9);
    }
}
