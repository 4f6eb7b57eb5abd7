//! Demand measured from use: the use that would occur without a limit.
//!
//! For a rate, demand is the amount that callers ask for per second. For a gauge, it is the largest
//! amount in flight and waiting at once. Both are measured over a sliding window, with headroom on
//! top so that growth does not wait for the next measurement. A refused attempt counts like an
//! admitted one, so a caller that retries in a tight loop measures its retries.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Time;

/// Settings of the measurement of demand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveWants {
    /// Span of the measurement; at least 100 ms.
    pub window: Duration,
    /// Factor from measured demand to wants; at least 1.
    pub headroom: f64,
    /// Smallest wants. They let an idle client start at once.
    pub least: f64,
    /// Largest wants.
    pub most: f64,
}

impl Default for AdaptiveWants {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(10),
            headroom: 1.2,
            least: 1.0,
            most: 1e15,
        }
    }
}

/// Shortest window; a shorter one would measure noise.
const WINDOW_MIN: Duration = Duration::from_millis(100);

/// Number of parts of a window.
const PARTS: u32 = 10;

/// Relative change of wants below which a request is not worthwhile.
const WORTH_ASKING: f64 = 0.05;

/// Meter of demand over a sliding window.
#[derive(Clone, Debug)]
pub struct DemandMeter {
    config: AdaptiveWants,
    /// Start of each part, the amount asked for in it, and the largest amount at once in it; oldest
    /// first.
    parts: VecDeque<(Time, f64, f64)>,
    began: Time,
    /// Wants while callers waited, and the end of the window in which they last did.
    waited: (f64, Time),
}

impl DemandMeter {
    /// Creates a meter without measurements.
    pub fn new(config: AdaptiveWants, now: Time) -> Self {
        let window = config.window.max(WINDOW_MIN);
        Self {
            config: AdaptiveWants { window, ..config },
            parts: VecDeque::new(),
            began: now,
            waited: (0.0, now),
        }
    }

    /// Records a call that asks for `cost`.
    pub fn asked(&mut self, cost: f64, now: Time) {
        *self.part(now).0 += cost;
    }

    /// Records that callers wait. A caller that waits asks only once, so the measured rate cannot grow beyond the
    /// granted one: the wants are at least this amount, for a window.
    pub fn wait(&mut self, wants: f64, now: Time) {
        self.waited = (wants, now + self.config.window);
    }

    /// Records the amount in flight or waiting.
    pub fn at_once(&mut self, level: f64, now: Time) {
        let most = self.part(now).1;
        *most = most.max(level);
    }

    /// Returns the wants of a rate.
    pub fn rate(&mut self, now: Time) -> f64 {
        self.forget(now);
        let asked: f64 = self.parts.iter().map(|(_, asked, _)| asked).sum();
        let span = now.since(self.began).min(self.config.window);
        // In its first moments, a client has asked for little, in almost no time.
        let span = span.max(self.config.window / PARTS);
        let wants = self.with_headroom(asked / span.as_secs_f64());
        match self.waited {
            (waited, until) if now < until => wants.max(waited.min(self.config.most)),
            _ => wants,
        }
    }

    /// Returns the wants of a gauge.
    pub fn gauge(&mut self, now: Time) -> f64 {
        self.forget(now);
        let most = self
            .parts
            .iter()
            .fold(0.0_f64, |most, (_, _, level)| most.max(*level));
        self.with_headroom(most)
    }

    /// Returns whether `wants` differs enough from the current wants.
    pub fn is_worth_asking(wants: f64, asked: f64) -> bool {
        (wants - asked).abs() > asked.abs() * WORTH_ASKING
    }

    /// Returns the time between two looks.
    pub fn interval(&self) -> Duration {
        self.config.window / PARTS
    }

    fn with_headroom(&self, measured: f64) -> f64 {
        let least = self.config.least.min(self.config.most);
        (measured * self.config.headroom.max(1.0)).clamp(least, self.config.most)
    }

    fn part(&mut self, now: Time) -> (&mut f64, &mut f64) {
        self.forget(now);
        let length = self.config.window / PARTS;
        let latest = self.parts.pop_back();
        let still = latest.filter(|(start, ..)| now.since(*start) < length);
        if let (Some(over), None) = (latest, still) {
            self.parts.push_back(over);
        }
        let (_, asked, level) = self.parts.push_back_mut(still.unwrap_or((now, 0.0, 0.0)));
        (asked, level)
    }

    fn forget(&mut self, now: Time) {
        while self
            .parts
            .front()
            .is_some_and(|(start, ..)| now.since(*start) >= self.config.window)
        {
            self.parts.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::after_origin(Duration::from_secs_f64(seconds))
    }

    #[test]
    fn amounts_older_than_the_window_are_forgotten_even_without_a_look() {
        let window = Duration::from_secs(10);
        let config = AdaptiveWants {
            window,
            headroom: 1.0,
            least: 0.0,
            ..AdaptiveWants::default()
        };
        let mut demand = DemandMeter::new(config, Time::ZERO);
        demand.asked(20.0, Time::ZERO);
        assert_eq!(demand.rate(at(9.999)), 20.0 / 9.999);
        assert_eq!(demand.rate(at(10.0)), 0.0);
        for i in 0..1000 {
            demand.asked(1.0, at(10.0 + f64::from(i)));
        }
        assert!(
            demand.parts.len() <= PARTS as usize + 1,
            "{}",
            demand.parts.len()
        );
    }

    #[test]
    fn a_part_of_the_window_takes_what_comes_before_its_end() {
        let mut demand = DemandMeter::new(AdaptiveWants::default(), Time::ZERO);
        let length = demand.interval();
        demand.asked(1.0, Time::ZERO);
        demand.asked(1.0, Time::ZERO + (length - Duration::from_nanos(1)));
        assert_eq!(demand.parts.len(), 1);
        demand.asked(1.0, Time::ZERO + length);
        assert_eq!(demand.parts.len(), 2);
    }

    #[test]
    fn an_idle_client_has_no_news() {
        assert!(!DemandMeter::is_worth_asking(0.0, 0.0));
        assert!(DemandMeter::is_worth_asking(0.0, 1e-9));
        assert!(DemandMeter::is_worth_asking(1e-9, 0.0));
    }

    #[test]
    fn a_steady_rate_is_measured_with_headroom() {
        let mut demand = DemandMeter::new(AdaptiveWants::default(), Time::ZERO);
        for i in 0..3000 {
            demand.asked(1.0, at(f64::from(i) * 0.01));
        }
        let wants = demand.rate(at(30.0));
        assert!((wants - 120.0).abs() < 13.0, "{wants}");
    }

    #[test]
    fn a_client_whose_callers_wait_asks_for_no_less_for_a_window() {
        let mut demand = DemandMeter::new(AdaptiveWants::default(), Time::ZERO);
        demand.wait(40.0, at(1.0));
        assert_eq!(demand.rate(at(10.9)), 40.0);
        assert_eq!(demand.rate(at(11.0)), 1.0);
    }

    #[test]
    fn an_idle_client_asks_for_the_least() {
        let config = AdaptiveWants {
            least: 3.0,
            ..AdaptiveWants::default()
        };
        let mut demand = DemandMeter::new(config, Time::ZERO);
        demand.asked(500.0, at(1.0));
        assert!(demand.rate(at(2.0)) > 3.0);
        assert_eq!(demand.rate(at(12.0)), 3.0);
    }

    #[test]
    fn a_gauge_asks_for_the_most_at_once() {
        let mut demand = DemandMeter::new(AdaptiveWants::default(), Time::ZERO);
        for (second, level) in [(0.0, 3.0), (1.0, 10.0), (2.0, 4.0)] {
            demand.at_once(level, at(second));
        }
        assert_eq!(demand.gauge(at(3.0)), 12.0);
        assert!((demand.gauge(at(11.5)) - 4.8).abs() < 1e-9);
    }

    #[test]
    fn small_changes_are_not_worth_a_request() {
        assert!(!DemandMeter::is_worth_asking(104.0, 100.0));
        assert!(DemandMeter::is_worth_asking(106.0, 100.0));
        assert!(DemandMeter::is_worth_asking(1.0, 0.0));
    }
}
