//! Demand of an identity for a resource.
//!
//! Dense requests are measured over a second. Sparse ones would look like one request a second then, so their rate is
//! that of the last few requests.
//!
//! Requests come unevenly. So the largest rate of the last seconds counts, up to twice the present one: otherwise a caller
//! below its share would leave a part of it to others after each short pause, and be refused until it has that back.

use std::collections::VecDeque;
use std::time::Duration;

use doorward::limiter::demand::{AdaptiveWants, DemandMeter};
use doorward::time::Time;

/// Measurement of dense requests.
const DENSE: AdaptiveWants = AdaptiveWants {
    window: Duration::from_secs(1),
    headroom: HEADROOM,
    least: 0.0,
    most: 1e15,
};

/// Factor from the demand to the wants.
const HEADROOM: f64 = 1.1;

/// Number of requests that tell the rate of sparse ones.
const KEPT: usize = 8;

/// Span of the largest rate.
const PEAK: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Demand {
    dense: DemandMeter,
    /// Start of the present span, the largest rate in it, and in the one before.
    peak: (Time, f64, f64),
    /// The last requests, with their costs.
    last: VecDeque<(Time, f64)>,
    began: Time,
    is_dense: bool,
}

impl Demand {
    pub(super) fn new(now: Time) -> Self {
        Self {
            dense: DemandMeter::new(DENSE, now),
            peak: (now, 0.0, 0.0),
            last: VecDeque::new(),
            began: now,
            is_dense: false,
        }
    }

    /// Records a request.
    pub(super) fn asked(&mut self, cost: f64, now: Time) {
        self.dense.asked(cost, now);
        let before = self.last.back().map(|(at, _)| *at);
        self.is_dense = before.is_some_and(|before| now.since(before) < DENSE.window);
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back((now, cost));
    }

    /// Returns the wants.
    pub(super) fn wants(&mut self, now: Time) -> f64 {
        let is_young = now.since(self.began) < DENSE.window;
        match self.is_dense || is_young {
            true => self.steady(now).max(self.sparse(now)),
            false => self.sparse(now),
        }
    }

    /// Returns the wants of dense requests, without short dips.
    fn steady(&mut self, now: Time) -> f64 {
        let rate = self.dense.rate(now);
        let (since, recent, before) = self.peak;
        self.peak = match now.since(since) {
            age if age < PEAK => (since, recent.max(rate), before),
            age if age < 2 * PEAK => (since + PEAK, rate, recent),
            _ => (now, rate, 0.0),
        };
        let (_, recent, before) = self.peak;
        recent.max(before).min(2.0 * rate)
    }

    fn sparse(&self, now: Time) -> f64 {
        let (since, first) = self.last.front().copied().unwrap_or((now, 0.0));
        // The first request begins the span, so half of it is in it.
        let cost = self.last.iter().map(|it| it.1).sum::<f64>() - first / 2.0;
        let span = now.since(since).max(DENSE.window).as_secs_f64();
        let idle = self.last.back().map_or(now, |(at, _)| *at);
        let idle = now.since(idle).max(DENSE.window).as_secs_f64();
        // After a pause, no more than two usual requests in such a time are likely.
        let likely = 2.0 * cost / self.last.len().max(1) as f64 / idle;
        ((cost / span).min(likely) * HEADROOM).min(DENSE.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::after_origin(Duration::from_secs_f64(seconds))
    }

    #[track_caller]
    fn check(every: f64, until: f64, now: f64, expected: std::ops::RangeInclusive<f64>) {
        let mut demand = Demand::new(Time::ZERO);
        let mut next = 0.0;
        while next <= until {
            demand.asked(1.0, at(next));
            next += every;
        }
        let wants = demand.wants(at(now));
        assert!(expected.contains(&wants), "{wants} of one each {every} s");
    }

    #[test]
    fn wants_are_up_to_a_tenth_above_the_requests_however_rare_and_end_with_them() {
        check(0.004, 10.0, 10.0, 247.0..=276.0);
        check(0.5, 10.0, 10.1, 1.9..=2.4);
        check(1.0, 20.0, 20.5, 0.9..=1.2);
        check(10.0, 100.0, 100.1, 0.1..=0.12);
        check(10.0, 100.0, 109.9, 0.09..=0.11);
        check(0.004, 10.0, 12.0, 0.0..=1.1);
        check(0.004, 10.0, 30.0, 0.0..=0.11);
    }

    #[test]
    fn a_short_dip_leaves_the_wants_as_they_are() {
        let mut demand = Demand::new(Time::ZERO);
        for number in 0..1_000_u32 {
            let now = f64::from(number) / 100.0;
            // A pause of 300 ms every two seconds.
            if number % 200 >= 30 {
                demand.asked(1.0, at(now));
            }
            let wants = demand.wants(at(now));
            let is_near = (99.0..=111.0).contains(&wants);
            assert!(now < 2.5 || is_near, "{wants} after {now} s");
        }
    }

    #[test]
    fn a_new_caller_is_measured_from_its_first_requests_on() {
        check(0.01, 0.25, 0.25, 100.0..=130.0);
        check(100.0, 0.0, 5.0, 0.1..=0.12);
    }
}
