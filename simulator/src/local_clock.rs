//! Local clocks, which run at their own speed and may jump.

use std::time::Duration;

use doorward_engine::time::Time;

/// Clock of one process, relative to the time of the world.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LocalClock {
    /// World time from which `shown` and `speed` hold.
    since: Time,
    /// Time shown at `since`.
    shown: Time,
    /// Speed from then on, unless it is exactly 1.
    speed: Option<f64>,
}

impl LocalClock {
    /// Returns what the clock shows at a time of the world.
    pub(crate) fn shows(&self, world: Time) -> Time {
        self.shown + scaled(world.since(self.since), self.speed)
    }

    /// Returns the time of the world at which the clock shows `shown`, or very soon after.
    pub(crate) fn when(&self, shown: Time) -> Time {
        let ahead = shown.since(self.shown);
        let mut when = self.since + scaled(ahead, self.speed.map(f64::recip));
        // Rounding must not wake a process before its time, again and again.
        if self.shows(when) < shown {
            when = when + Duration::from_nanos(1) + shown.since(self.shows(when));
        }
        when
    }

    /// Runs at this speed from now on.
    pub(crate) fn run_at(&mut self, speed: f64, now: Time) {
        *self = Self {
            since: now,
            shown: self.shows(now),
            speed: Some(speed).filter(|speed| *speed != 1.0),
        };
    }

    /// Jumps ahead.
    pub(crate) fn jump(&mut self, by: Duration, now: Time) {
        self.run_at(self.speed.unwrap_or(1.0), now);
        self.shown = self.shown + by;
    }
}

fn scaled(span: Duration, by: Option<f64>) -> Duration {
    by.map_or(span, |by| span.mul_f64(by))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_left_alone_shows_the_time_of_the_world() {
        let time = Time::from_nanos(123_456_789_012_345);
        assert_eq!(LocalClock::default().shows(time), time);
        assert_eq!(LocalClock::default().when(time), time);
    }

    #[test]
    fn a_clock_runs_at_its_speed_and_never_wakes_a_process_too_early() {
        let mut clock = LocalClock::default();
        clock.run_at(1.01, Time::from_secs(100));
        clock.jump(Duration::from_secs(5), Time::from_secs(200));
        assert_eq!(clock.shows(Time::from_secs(200)), Time::from_secs(206));
        assert_eq!(clock.shows(Time::from_secs(300)), Time::from_secs(307));
        for nanos in (0..1_000_000_000_000).step_by(7_919_000_003) {
            let shown = Time::from_secs(206) + Duration::from_nanos(nanos);
            assert!(clock.shows(clock.when(shown)) >= shown);
        }
    }
}
