//! The concurrency limit, which finds the number of requests that a service can work on at once.
//!
//! As long as more concurrency brings more throughput, latency stays the same; beyond the knee, more concurrency only
//! makes requests slower (Little's law). So the limit compares two windows, one slightly below its centre and one
//! slightly above it. The *elasticity* is the relative change of latency, divided by that of the limit: 0 well below
//! the knee, 1 well above it. The centre moves until the elasticity is 0.85. A round has no memory of earlier ones, so
//! the limit does not drift, as one that compares latency with a slowly moving baseline does.
//!
//! Two halves make a round, and rounds alternate in their order, so that a load which grows or falls meanwhile has no
//! effect. A round counts only if requests waited for most of it: otherwise the limit does not matter.
//!
//! The limit of a new service doubles after every few requests, until latency grows with it.

use std::f64::consts::LN_2;
use std::time::Duration;

use doorward_limits::Moment;

/// Limit of a new service.
const FIRST: f64 = 4.0;

/// Number of requests that end before the limit of a new service doubles.
const STARTING: usize = 32;

/// Elasticity at which it doubles no more.
const STARTED: f64 = 0.5;

/// Smallest and largest limit.
const RANGE: (f64, f64) = (1.0, 10_000.0);

/// Relative difference of the two windows from the centre.
const SPREAD: f64 = 0.08;

/// Elasticity at which the centre stays.
const TARGET: f64 = 0.85;

/// Relative change of the centre for a difference of 1 from the target.
const GAIN: f64 = 0.05;

/// Number of rounds in one direction after which steps double.
const RUN: u32 = 3;

/// Largest number of doublings.
const DOUBLINGS: u32 = 3;

/// Smallest share of requests that end while others wait, for a window to count.
const LIMITED: f64 = 0.75;

/// Fractional part of the golden ratio: the fractional parts of its multiples spread evenly.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Shortest length of a window.
const WINDOW_MIN: Duration = Duration::from_millis(20);

/// The latency that the limit follows: a share of the requests are faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Percentile {
    /// The median. It needs the fewest requests for a decision.
    #[default]
    P50,
    /// Nine of ten requests are faster.
    P90,
    /// 99 of 100 requests are faster.
    P99,
}

/// Half of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Low,
    High,
}

/// A concurrency limit.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    percentile: Percentile,
    centre: f64,
    half: Half,
    /// Whether the limit has never been too large.
    is_starting: bool,
    /// Latency in the first half of this round, or before the limit doubled.
    first: Option<f64>,
    /// Number of rounds so far.
    round: u32,
    /// Direction of the last steps, and their number.
    run: (bool, u32),
    window: Window,
    /// Part that rounds the limit up or down: 0 to 1, equally often.
    dither: f64,
}

/// Requests that ended in one half.
#[derive(Debug)]
struct Window {
    began: Moment,
    /// Logarithms of latencies, relative to their references.
    latencies: Vec<f64>,
    /// Number of ends while requests waited.
    limited: usize,
}

impl Percentile {
    /// Returns the share of faster requests, and the number of requests that tell it well enough.
    const fn settings(self) -> (f64, usize) {
        match self {
            Self::P50 => (0.5, 128),
            Self::P90 => (0.9, 320),
            Self::P99 => (0.99, 1_000),
        }
    }
}

impl ConcurrencyLimit {
    /// Creates a limit that follows a percentile of latency.
    pub fn new(percentile: Percentile) -> Self {
        let window = Window {
            began: Moment::FIRST,
            latencies: Vec::with_capacity(percentile.settings().1),
            limited: 0,
        };
        Self {
            percentile,
            centre: FIRST,
            half: Half::High,
            is_starting: true,
            first: None,
            round: 1,
            run: (true, 0),
            window,
            dither: 0.0,
        }
    }

    /// Returns the largest number of requests at once. Over many ends of requests, it averages to the limit, which need
    /// not be whole: of a limit of 3.7, seven of ten times are 4.
    pub fn limit(&self) -> u32 {
        let (low, high) = self.halves();
        let limit = match self.half {
            _ if self.is_starting => self.centre,
            Half::Low => low,
            Half::High => high,
        };
        (limit + self.dither) as u32
    }

    /// Returns the limit around which the two halves of a round are.
    pub const fn centre(&self) -> f64 {
        self.centre
    }

    /// Returns the number of the round, in which references of latencies stay the same.
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// Takes the end of a request into account: its latency relative to its reference, the usual latency, and whether
    /// requests wait.
    pub fn handle_end(&mut self, ratio: f64, usual: Duration, is_limited: bool, now: Moment) {
        self.dither = (self.dither + GOLDEN).fract();
        let (share, enough) = self.percentile.settings();
        let (share, enough) = match self.is_starting {
            // So few requests tell only the median.
            true => (0.5, STARTING),
            false => (share, enough),
        };
        let window = &mut self.window;
        let age = Duration::from_nanos(now.nanos_since(window.began));
        // A request that ends earlier has mostly run under the other half.
        if age < usual || !ratio.is_normal() || ratio < 0.0 {
            return;
        }
        if window.latencies.len() < 4 * enough {
            window.latencies.push(ratio.ln());
            window.limited += usize::from(is_limited);
        }
        if window.latencies.len() < enough || age < usual + usual.max(WINDOW_MIN) {
            return;
        }
        let is_limited = window.limited as f64 >= LIMITED * window.latencies.len() as f64;
        let latency = percentile(&mut window.latencies, share);
        match (is_limited, self.first.take()) {
            // The next round begins with the upper half, which is less of a limit.
            (false, first) => {
                // Nothing has shown yet that the last doubling was of use.
                if self.is_starting && first.is_some() {
                    self.centre /= 2.0;
                }
                self.begin(Half::High);
            }
            (true, first) if self.is_starting => self.start(first, latency),
            (true, None) => {
                self.first = Some(latency);
                self.half = self.half.other();
            }
            (true, Some(first)) => {
                let grown = match self.half {
                    Half::High => latency - first,
                    Half::Low => first - latency,
                };
                self.step(grown);
                // The halves change places from round to round.
                self.begin(self.half);
            }
        }
        self.window.restart(now);
    }

    /// Doubles the limit of a new service, or goes back if the last doubling has made requests slower.
    fn start(&mut self, before: Option<f64>, latency: f64) {
        if before.is_some_and(|before| latency - before > STARTED * LN_2) {
            self.centre /= 2.0;
            self.is_starting = false;
            self.begin(Half::High);
        } else {
            self.first = Some(latency);
            self.centre = (self.centre * 2.0).min(RANGE.1);
        }
    }

    fn begin(&mut self, half: Half) {
        self.half = half;
        self.round = self.round.wrapping_add(1);
        self.first = None;
    }

    /// Moves the centre. `grown`: the logarithm of the growth of latency from the lower to the upper half.
    fn step(&mut self, grown: f64) {
        let (low, high) = self.halves();
        let elasticity = grown / (high / low).ln();
        let difference = (TARGET - elasticity).clamp(-1.0, 1.0);
        let grows = difference > 0.0;
        let length = if self.run.0 == grows {
            self.run.1 + 1
        } else {
            1
        };
        self.run = (grows, length);
        let doublings = length.saturating_sub(RUN).min(DOUBLINGS);
        let step = GAIN * difference * f64::from(1 << doublings);
        self.centre = (self.centre * step.exp()).clamp(RANGE.0, RANGE.1);
    }

    /// Returns the limits of both halves.
    fn halves(&self) -> (f64, f64) {
        let low = (self.centre * (1.0 - SPREAD)).max(RANGE.0);
        (low, (self.centre * (1.0 + SPREAD)).max(low + 0.1))
    }
}

impl Half {
    const fn other(self) -> Self {
        match self {
            Self::Low => Self::High,
            Self::High => Self::Low,
        }
    }
}

impl Window {
    fn restart(&mut self, now: Moment) {
        self.began = now;
        self.latencies.clear();
        self.limited = 0;
    }
}

/// Returns the value below which a share of the values are.
fn percentile(values: &mut [f64], share: f64) -> f64 {
    let last = values.len().saturating_sub(1);
    let place = (share * last as f64) as usize;
    if place > last || values.is_empty() {
        return 0.0;
    }
    *values.select_nth_unstable_by(place, f64::total_cmp).1
}
