//! The concurrency limit, which finds the number of requests that a service can work on at once.
//!
//! As long as more concurrency brings more throughput, latency stays the same; beyond the knee, more concurrency only
//! makes requests slower (Little's law). The *elasticity* is the relative change of latency, divided by that of the
//! number of requests in flight: 0 well below the knee, 1 well above it. Three states ask for it:
//!
//! | state | what it does | how it ends |
//! | --- | --- | --- |
//! | open | doubles the limit whenever it is reached | requests are slower at twice the limit, or slow at all |
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
//! effect. A round has no memory of earlier ones, so the limit does not drift.

use std::f64::consts::LN_2;
use std::time::Duration;

use doorward_limits::Moment;

use state::{Cut, Half, Run, State};
use window::{BIAS, Seen, Window};

mod state;
mod window;

pub use state::Percentile;
pub use window::End;

/// Smallest and largest limit.
const RANGE: (f64, f64) = (1.0, 10_000.0);

/// Relative difference of the two windows of a steady limit from the centre, and the smallest absolute one.
const SPREAD: (f64, f64) = (0.08, 0.3);

/// Elasticity at which the centre stays.
const TARGET: f64 = 0.85;

/// Change of the centre for a difference of 1 from the target, relative to the distance of the halves.
const GAIN: f64 = 0.3;

/// Mean difference from the target in a run, from which on the limit is open again; and the time for which that is not
/// tried again after more requests at once were slower, at least and in usual latencies.
const CLEAR: f64 = 0.6;
const QUIET: (f64, f64) = (6.0, 30.0);

/// First deviation of latencies, for which the numbers of requests of a percentile are enough, and the range of the
/// factor for others.
const NOISE: (f64, f64, f64) = (0.5, 0.25, 2.0);

/// Number of rounds in one direction after which steps double.
const RUN: u32 = 3;

/// Largest number of doublings.
const DOUBLINGS: u32 = 3;

/// Elasticity of a limit that is doubled or cut, from which on requests are slower because there are more of them.
const CHANGED: f64 = 0.5;

/// Number of requests that tell the latency of a limit that is doubled or cut: two for each place, within this range.
const PROBE: (f64, f64) = (8.0, 32.0);

/// Divisors of a limit that is cut: the smallest, the largest, and that for an unknown latency.
const DIVISORS: (f64, f64, f64) = (2.0, 8.0, 4.0);

/// Part of a limit with slow requests to which the limit doubles after it was cut.
const BELOW: f64 = 0.9;

/// Smallest share of requests that end while others wait or are refused, for a window to count.
const LIMITED: f64 = 0.75;

/// Number of requests in a block: if few short ones are in flight, and else. And the share of slow ones that makes a block slow.
const BLOCK: (usize, usize) = (8, 16);
const SLOW_SHARE: f64 = 0.75;

/// Largest open limit of requests that are short, in all and as a multiple of the most in flight in the last time, and
/// the time in which that halves.
const OPEN: (f64, f64, f64) = (16.0, 4.0, 60.0);

/// Number of requests that come while one ends, from which on they pile up.
const PILING: f64 = 1.25;

/// Fractional part of the golden ratio: the fractional parts of its multiples spread evenly.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Shortest length of a window.
const WINDOW_MIN: Duration = Duration::from_millis(20);

/// A concurrency limit.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    percentile: Percentile,
    centre: f64,
    /// An open limit grows to the centre by one for each end, so requests do not start all at once.
    open: f64,
    state: State,
    /// When more requests at once last were slower.
    failed_at: Moment,
    /// Most requests in flight in the last time, and the last end.
    peak: f64,
    seen_at: Moment,
    /// Deviation of the logarithms of latencies, relative to their references.
    noise: f64,
    /// Number of rounds so far.
    round: u32,
    /// Number of times that slow requests turned out to be the new usual.
    levels: u32,
    window: Window,
    block: Block,
    /// Number of slow blocks in a row.
    slow_blocks: u32,
    /// Part that rounds the limit up or down: 0 to 1, equally often.
    dither: f64,
}

/// The last requests that were admitted after the block before.
#[derive(Debug)]
struct Block {
    window: Window,
    /// Number of all that came and that ended meanwhile.
    arrivals: u32,
    ends: u32,
}

impl ConcurrencyLimit {
    /// Creates a limit that follows a percentile of latency.
    pub fn new(percentile: Percentile, first: u32) -> Self {
        Self {
            percentile,
            centre: f64::from(first).clamp(RANGE.0, RANGE.1),
            open: f64::from(first).clamp(RANGE.0, RANGE.1),
            state: State::Open {
                latency: None,
                most: RANGE.1,
            },
            failed_at: Moment::FIRST,
            peak: 0.0,
            seen_at: Moment::FIRST,
            noise: NOISE.0,
            round: 1,
            levels: 0,
            window: Window::new(percentile.settings().1),
            block: Block {
                window: Window::new(BLOCK.1),
                arrivals: 0,
                ends: 0,
            },
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

    /// Returns the largest number of requests at once with short critical ones: half as many more as the upper half.
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

    /// Returns the number of times that slow requests turned out to be the new usual.
    pub const fn levels(&self) -> u32 {
        self.levels
    }

    /// Counts a new request.
    pub const fn handle_arrival(&mut self) {
        self.block.arrivals += 1;
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
        self.watch(end, now);
        match self.state {
            State::Steady { .. } => self.handle_steady(end, usual, now),
            State::Open { .. } | State::Falling(_) => self.handle_probe(end, usual, now),
        }
    }

    /// Looks for slow requests.
    fn watch(&mut self, end: &End, now: Moment) {
        let block = &mut self.block;
        block.ends += 1;
        if end.admitted_at < block.window.began {
            return;
        }
        block.window.push(end, end.excess, self.noise, BLOCK.1);
        let is_small = end.is_short && end.in_flight <= 2 * BLOCK.0 as u32;
        if block.window.len() < if is_small { BLOCK.0 } else { BLOCK.1 } {
            return;
        }
        let seen = block.window.take(0.5, now);
        let is_piling = f64::from(block.arrivals) >= PILING * f64::from(block.ends);
        (block.arrivals, block.ends) = (0, 0);
        let is_slow = seen.slow >= SLOW_SHARE;
        self.slow_blocks = if is_slow { self.slow_blocks + 1 } else { 0 };
        let is_limited = seen.limited >= 0.5;
        let (is_bad, lower) = match self.state {
            // A cut is cheap only if requests can wait meanwhile.
            State::Open { .. } => {
                let blocks = if end.is_short { 1 } else { 2 };
                (self.slow_blocks >= blocks && (is_limited || is_piling), 0.5)
            }
            State::Steady { .. } => (self.slow_blocks >= 2 && is_limited, 1.0),
            State::Falling(_) => (false, 1.0),
        };
        if is_bad {
            self.fall(end.in_flight, seen.latency, self.cut(lower), now);
        }
    }

    /// Returns a cut of the limit. `fine`: the part of it at which requests were not slow.
    fn cut(&self, fine: f64) -> Cut {
        Cut {
            before: 0.0,
            latency: 0.0,
            most: BELOW * fine * self.centre,
            back: self.centre,
            has_proof: false,
            digs: false,
        }
    }

    /// Cuts the limit to the number of requests that would be in flight if none was slow (Little's law).
    fn fall(&mut self, in_flight: u32, latency: f64, cut: Cut, now: Moment) {
        let before = f64::from(in_flight.max(1));
        let (least, most, unknown) = DIVISORS;
        let divisor = match latency.is_finite() {
            true => latency.exp().clamp(least, most),
            false => unknown,
        };
        self.centre = (before / divisor).max(RANGE.0);
        self.open = before;
        self.state = State::Falling(Cut {
            before,
            latency,
            ..cut
        });
        self.failed_at = now;
        self.window.restart(now);
        self.slow_blocks = 0;
    }

    /// Collects a window of requests that were admitted at this limit, and compares it with the one before.
    fn handle_probe(&mut self, end: &End, usual: Duration, now: Moment) {
        let is_there = if let State::Falling(cut) = self.state {
            // One is admitted for two that end.
            self.open = (self.open - 0.5).max(self.centre);
            let is_there = self.open == self.centre && end.in_flight <= self.limit() + 1;
            if !is_there && self.has_waited(usual, now) {
                // Requests that do not end keep the places.
                self.open(cut.back);
                self.failed_at = now;
            }
            is_there
        } else {
            if end.is_short {
                self.centre = self.centre.min(f64::max(OPEN.0, OPEN.1 * self.peak));
            }
            self.open = (self.open + 1.0).min(self.centre);
            end.is_limited && self.open == self.centre
        };
        if !is_there && self.window.len() == 0 {
            self.window.restart(now);
        }
        if end.admitted_at < self.window.began {
            return;
        }
        let noise = (self.noise / NOISE.0).powi(2).clamp(1.0, NOISE.2);
        let enough = (noise * (2.0 * self.centre).clamp(PROBE.0, PROBE.1)) as usize;
        self.window.push(end, end.excess, self.noise, enough);
        if self.window.len() < enough {
            return;
        }
        let seen = self.take(0.5, now);
        match self.state {
            State::Falling(cut) => self.judge_cut(cut, &seen, now),
            State::Open { most, .. } if seen.limited < LIMITED => {
                let latency = None;
                self.state = State::Open { latency, most };
            }
            State::Open { latency, most } => {
                let (then, lower) = latency.unwrap_or((BIAS * self.noise, self.centre / 2.0));
                let (grown, apart) = (seen.latency - then, (self.centre / lower).ln());
                if grown <= CHANGED * apart {
                    self.rise(seen.latency, most);
                } else if self.round == 1 && (latency.is_none() || grown >= TARGET * apart) {
                    let digs = latency.is_some();
                    let cut = Cut {
                        digs,
                        ..self.cut(1.0)
                    };
                    self.fall(end.in_flight, seen.latency, cut, now);
                } else {
                    if latency.is_some() {
                        self.centre = (self.centre / grown.min(apart).exp()).max(RANGE.0);
                        self.failed_at = now;
                    }
                    self.settle();
                }
            }
            State::Steady { .. } => {}
        }
    }

    /// Looks whether requests are faster since the limit was cut.
    fn judge_cut(&mut self, cut: Cut, seen: &Seen, now: Moment) {
        let can_fall = self.centre > RANGE.0;
        let elasticity = (cut.latency - seen.latency) / (cut.before / self.centre).ln();
        let has_proof = true;
        if elasticity < CHANGED && cut.has_proof {
            self.rise(seen.latency, cut.before.min(cut.most));
        } else if elasticity < CHANGED && (seen.late < 0.5 || !can_fall) {
            // Fewer requests at once are as slow. So this is their usual latency now, unless it is too long for callers.
            self.levels += 1;
            self.open(cut.back.max(cut.before));
        } else if elasticity >= CHANGED && seen.limited < LIMITED {
            self.open(cut.back);
        } else if can_fall && (seen.slow >= SLOW_SHARE || cut.digs && elasticity >= TARGET) {
            let cut = Cut { has_proof, ..cut };
            self.fall(self.centre as u32, seen.latency, cut, now);
        } else if elasticity < CHANGED && can_fall {
            self.fall(self.centre as u32, seen.latency, cut, now);
        } else {
            self.rise(seen.latency, cut.most);
        }
    }

    /// Ends a window.
    fn take(&mut self, share: f64, now: Moment) -> Seen {
        let seen = self.window.take(share, now);
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
        let (latency, most) = (None, RANGE.1);
        self.state = State::Open { latency, most };
    }

    fn rise(&mut self, latency: f64, most: f64) {
        if self.centre >= most {
            return self.settle();
        }
        let latency = Some((latency, self.centre));
        self.state = State::Open { latency, most };
        self.centre = (self.centre * 2.0).min(most);
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

    /// Collects the windows of a round.
    fn handle_steady(&mut self, end: &End, usual: Duration, now: Moment) {
        let State::Steady { half, first, run } = self.state else {
            return;
        };
        let (share, enough) = self.percentile.settings();
        // Of a small limit, the halves are further apart, and fewer requests tell their difference.
        let spread = (SPREAD.1 / self.centre / SPREAD.0).max(1.0);
        let noise = (self.noise / NOISE.0).powi(2).clamp(NOISE.1, NOISE.2);
        let enough = (enough as f64 * noise / spread.powi(2)).max(PROBE.1) as usize;
        let age = Duration::from_nanos(now.nanos_since(self.window.began));
        // A request that ends earlier has mostly run under the other half.
        if age < usual {
            return;
        }
        let latency = end.ratio.ln();
        self.window.push(end, latency, self.noise, 4 * enough);
        if self.window.len() < enough || age < usual + usual.max(WINDOW_MIN) {
            return;
        }
        let seen = self.take(share, now);
        let in_flight = seen.in_flight.ln();
        match first {
            // The next round begins with the upper half, which is less of a limit.
            _ if seen.limited < LIMITED => self.begin(Half::High, run),
            _ if seen.excess >= LN_2 + BIAS * self.noise => {
                self.fall(end.in_flight, seen.excess, self.cut(1.0), now);
            }
            None => {
                let half = half.other();
                let first = Some((seen.latency, in_flight));
                self.state = State::Steady { half, first, run };
            }
            Some((then, others)) => {
                let grown = (seen.latency - then, in_flight - others);
                self.step((half, run), grown, usual, now);
            }
        }
    }

    /// Moves the centre. `grown`: the logarithms of the growth of latency and of the number of requests in flight from
    /// the first half to the second.
    fn step(&mut self, (half, run): (Half, Run), grown: (f64, f64), usual: Duration, now: Moment) {
        let (low, high) = self.halves();
        let apart = (high / low).ln();
        // If requests in flight do not follow the limit, some never end: more have to pass.
        let elasticity = match grown.1.abs() < apart / 4.0 {
            true => 0.0,
            false => grown.0 / grown.1,
        };
        if !elasticity.is_finite() {
            return self.begin(half, run);
        }
        let difference = (TARGET - elasticity).clamp(-1.0, 1.0);
        let grows = difference > 0.0;
        let before = if run.grows == grows {
            run
        } else {
            Run {
                grows,
                ..Run::default()
            }
        };
        let run = Run {
            length: before.length + 1,
            sum: before.sum + difference,
            ..before
        };
        let is_clear = run.length >= RUN && run.sum > CLEAR * f64::from(run.length);
        if is_clear && self.has_waited(usual, now) {
            return self.open(self.centre);
        }
        let doublings = run.length.saturating_sub(RUN).min(DOUBLINGS);
        let step = GAIN * apart * difference * f64::from(1 << doublings);
        self.centre = (self.centre * step.exp()).clamp(RANGE.0, RANGE.1);
        // The halves change places from round to round.
        self.begin(half, run);
    }

    /// Returns the limits of both halves.
    fn halves(&self) -> (f64, f64) {
        let spread = (self.centre * SPREAD.0).max(SPREAD.1);
        ((self.centre - spread).max(RANGE.0), self.centre + spread)
    }
}
