//! The concurrency limit, which finds the number of requests that a service can work on at once.
//!
//! As long as more concurrency brings more throughput, latency stays the same; beyond the knee, more concurrency only
//! makes requests slower (Little's law). The *elasticity* is the relative change of latency, divided by that of the
//! number of requests in flight: 0 well below the knee, 1 well above it. Three states ask for it:
//!
//! | state | what it does | how it ends |
//! | --- | --- | --- |
//! | open | raises the limit by half, then doubles it, whenever it is reached | requests are slower at twice the limit, or slow at all |
//! | falling | cuts the limit to what would be in flight if no request was slow | newer requests are faster, or not |
//! | steady | alternates between two halves, and moves until the elasticity is 0.85 | clear rounds, or slow requests |
//!
//! A limit is open at first, and whenever a run of rounds shows that more requests at once are as fast. It falls when
//! most requests take far longer than their operation does at best, while others wait or pile up. If fewer requests at
//! once are as slow, that is their latency now, and the limit is what it was. So no state needs requests that wait: a
//! limit is reached if requests wait or are refused. Sources: BBR (Cardwell et al., 2016) for doubling and for the cut to
//! what fits; gradient and Vegas limits for the comparison with a shortest latency, which here only starts a comparison
//! of two limits.
//!
//! Two halves make a round, and rounds alternate in their order, so that a load which grows or falls meanwhile has no
//! effect. A round has no memory of earlier ones, so the limit does not drift. Only the limit at which the
//! service last collapsed is remembered, as in CUBIC (RFC 9438): near it, the limit grows by small steps, and not at all
//! for a while.

use std::time::Duration;

use doorward_limits::Moment;

use block::Block;
use state::{Cut, Drained, Half, Run, State};
use window::{Seen, Window};

mod block;
mod probe;
mod state;
mod steady;
mod window;

pub use window::End;

/// Limit of a new service before requests end, so that its first ones tell the shortest latency. It grows by one for
/// each request that ends, by a quarter if the shortest latency is not known yet, and if none has ended for a while, to
/// the first limit within a second.
const START: f64 = 1.0;
const UNKNOWN: f64 = 0.25;
const PACE_AFTER: Duration = Duration::from_millis(100);

/// Factors by which an open limit grows: one that was steady grows by the smaller one first.
const FACTORS: (f64, f64) = (1.5, 2.0);

/// Smallest and largest limit.
const RANGE: (f64, f64) = (1.0, 10_000.0);

/// Elasticity at which the centre stays.
const TARGET: f64 = 0.85;

/// Mean difference from the target in a run, from which on the limit is open again; and the time for which that is not
/// tried again after more requests at once were slower, at least and in usual latencies.
const CLEAR: f64 = 0.6;
const QUIET: (f64, f64) = (4.0, 30.0);

/// First deviation of latencies, for which the numbers of requests of a window are enough, and the range of the
/// factor for others.
const NOISE: (f64, f64, f64) = (0.5, 0.25, 2.0);

/// Elasticity of a limit that is doubled or cut, from which on requests are slower because there are more of them.
const CHANGED: f64 = 0.5;

/// Number of requests that tell the latency of a limit that is doubled or cut: two for each place, within this range.
const PROBE: (f64, f64) = (8.0, 32.0);

/// Divisors of a limit that is cut: the smallest and the largest.
const DIVISORS: (f64, f64) = (2.0, 8.0);

/// Part of a limit with slow requests to which the limit doubles after it was cut.
const BELOW: f64 = 0.9;

/// Smallest share of requests that end while others wait or are refused, for a window to count.
const LIMITED: f64 = 0.75;

/// Largest open limit of requests that are short, in all and as a multiple of the most in flight in the last time, and
/// the time in which that halves.
const OPEN: (f64, f64, f64) = (16.0, 4.0, 60.0);

/// Fractional part of the golden ratio: the fractional parts of its multiples spread evenly.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// A concurrency limit.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    centre: f64,
    /// An open limit grows to the centre by one for each end, so requests do not start all at once.
    open: f64,
    /// Time until which an open limit has grown because no request ended.
    paced_at: Option<Moment>,
    state: State,
    /// When more requests at once last were slower.
    failed_at: Moment,
    /// Limit at which more requests at once last ended more slowly in all. A limit near it grows slowly.
    ceiling: f64,
    /// Most requests in flight in the last time, and the last end.
    peak: f64,
    seen_at: Moment,
    /// Deviation of the logarithms of latencies, relative to their references.
    noise: f64,
    /// Number of rounds so far.
    round: u32,
    /// Sum of the logarithms by which slow requests turned out to be the new usual.
    level: f64,
    window: Window,
    block: Block,
    /// Number of slow blocks in a row.
    slow_blocks: u32,
    /// Part that rounds the limit up or down: 0 to 1, equally often.
    dither: f64,
}

impl ConcurrencyLimit {
    /// Creates the limit of a new service.
    pub fn new(first: u32) -> Self {
        Self {
            centre: f64::from(first).clamp(RANGE.0, RANGE.1),
            open: START,
            paced_at: None,
            state: State::Open {
                latency: None,
                most: RANGE.1,
            },
            failed_at: Moment::FIRST,
            ceiling: RANGE.1,
            peak: 0.0,
            seen_at: Moment::FIRST,
            noise: NOISE.0,
            round: 1,
            level: 0.0,
            window: Window::new(Moment::FIRST),
            block: Block::new(Moment::FIRST),
            slow_blocks: 0,
            dither: 0.0,
        }
    }

    /// Returns the largest number of requests at once. Over many ends of requests, it averages to the limit, which need
    /// not be whole: of a limit of 3.7, seven of ten times are 4.
    pub fn limit(&self) -> u32 {
        let (low, high) = self.halves();
        let limit = match self.state {
            State::Steady {
                half: Half::Low, ..
            } => low,
            State::Steady {
                half: Half::High, ..
            } => high,
            State::Open { .. } | State::Falling(_) => self.open,
        };
        (limit + self.dither) as u32
    }

    /// Returns the largest number of requests at once with short critical ones: half as many more than the upper half.
    pub fn short_limit(&self) -> u32 {
        let limit = match self.state {
            State::Steady { .. } => self.halves().1.ceil() as u32,
            _ => self.limit(),
        };
        limit + limit.div_ceil(2)
    }

    /// Returns the name of the state.
    pub const fn state(&self) -> &'static str {
        match self.state {
            State::Open { .. } => "open",
            State::Falling(_) => "falling",
            State::Steady { .. } => "steady",
        }
    }

    /// Returns the number of the round, in which references of latencies stay the same.
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// Returns the sum of the logarithms by which slow requests turned out to be the new usual.
    pub const fn level(&self) -> f64 {
        self.level
    }

    /// Counts a new request.
    pub fn handle_arrival(&mut self, in_flight: u32, now: Moment) {
        self.block.arrivals += 1;
        self.watch(in_flight, now);
        if matches!(self.state, State::Open { .. }) && self.open < self.centre {
            let paced_at = *self.paced_at.get_or_insert(now.after(PACE_AFTER));
            if paced_at < now {
                let seconds = now.nanos_since(paced_at) as f64 / 1e9;
                self.open = (self.open + self.centre * seconds).min(self.centre);
                self.paced_at = Some(now);
            }
        }
    }

    /// Takes the end of a request into account. `usual`: the usual latency.
    pub fn handle_end(&mut self, end: &End, usual: Duration, now: Moment) {
        self.dither = (self.dither + GOLDEN).fract();
        if !end.ratio.is_normal() || end.ratio < 0.0 {
            return;
        }
        let seconds = now.nanos_since(self.seen_at) as f64 / 1e9;
        let decayed = self.peak * (-seconds / OPEN.2).exp2();
        (self.peak, self.seen_at) = (decayed.max(f64::from(end.in_flight)), now);
        self.paced_at = Some(now.after(PACE_AFTER));
        self.block.end(end, self.noise);
        self.watch(end.in_flight, now);
        match self.state {
            State::Steady { .. } => self.handle_steady(end, usual, now),
            State::Open { .. } | State::Falling(_) => self.handle_probe(end, usual, now),
        }
    }

    /// Counts an admitted request. `best`: the shortest usual latency of its operation in seconds, if that is known.
    pub fn handle_admitted(&mut self, best: Option<f64>, in_flight: u32, now: Moment) {
        if let Some(best) = best {
            self.block.admit(best, in_flight, now);
        }
    }

    /// Counts a request that has to wait, or is refused.
    pub const fn handle_pressed(&mut self) {
        self.block.pressed += 1;
    }

    /// Looks for slow requests.
    fn watch(&mut self, in_flight: u32, now: Moment) {
        let Some(verdict) = self.block.judge(self.noise, now) else {
            return;
        };
        self.block = Block::new(now);
        self.slow_blocks = if verdict.is_slow {
            self.slow_blocks + 1
        } else {
            0
        };
        let (is_bad, fine) = match self.state {
            State::Open { latency, .. } => {
                let fine = latency.map_or(0.5, |(_, lower)| lower / self.centre);
                (verdict.is_slow && verdict.is_limited, fine)
            }
            State::Steady { .. } => (self.slow_blocks >= 2 && verdict.is_limited, 1.0),
            State::Falling(_) => (false, 1.0),
        };
        if is_bad {
            let cut = self.cut(fine, None);
            self.fall(in_flight, f64::from(in_flight) / verdict.useful, cut, now);
        }
    }

    /// Returns a cut of the limit. `fine`: the part of it at which requests were not slow.
    fn cut(&self, fine: f64, latency: Option<f64>) -> Cut {
        Cut {
            before: 0.0,
            latency,
            drained: Drained::default(),
            most: BELOW * fine * self.centre,
            back: self.centre,
        }
    }

    /// Cuts the limit to the number of requests that would be in flight if none was slow (Little's law).
    fn fall(&mut self, in_flight: u32, slower: f64, cut: Cut, now: Moment) {
        let before = f64::from(in_flight.max(1));
        self.centre = (before / slower.clamp(DIVISORS.0, DIVISORS.1)).max(RANGE.0);
        self.open = before;
        self.state = State::Falling(Cut { before, ..cut });
        self.failed_at = now;
        self.window = Window::new(now);
        self.slow_blocks = 0;
    }

    /// Ends a window.
    fn take(&mut self, now: Moment) -> Seen {
        let seen = self.window.take(now);
        let deviation = seen.deviation.unwrap_or(self.noise);
        self.noise += (deviation - self.noise) / 4.0;
        seen
    }

    /// Returns whether enough time has passed since more requests at once were slower.
    fn has_waited(&self, usual: Duration, now: Moment) -> bool {
        let seconds = f64::max(QUIET.0, QUIET.1 * usual.as_secs_f64());
        now.nanos_since(self.failed_at) as f64 >= seconds * 1e9
    }

    fn open(&mut self, limit: f64) {
        (self.centre, self.open) = (limit, limit);
        self.ceiling = RANGE.1;
        let (latency, most) = (None, RANGE.1);
        self.state = State::Open { latency, most };
    }

    fn rise(&mut self, latency: f64, most: f64, factor: f64) {
        if self.centre >= most {
            return self.settle();
        }
        let latency = Some((latency, self.centre));
        self.centre = (self.centre * factor).min(most);
        self.state = State::Open { latency, most };
    }

    fn settle(&mut self) {
        self.begin(Half::High, Run::default());
    }

    /// Begins a round.
    fn begin(&mut self, half: Half, run: Run) {
        let first = None;
        self.state = State::Steady { half, first, run };
        self.round = self.round.wrapping_add(1);
    }
}
