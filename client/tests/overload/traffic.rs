//! A service in virtual time, its traffic, and the ends of its requests.

use doorward::overload::{Criticality, Reason};

/// Kind of requests.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    /// Seconds of one core, or in a place.
    pub(crate) cost: f64,
    /// Seconds of waiting after that.
    pub(crate) wait: f64,
    /// Share of all requests.
    pub(crate) share: f64,
    /// Part of its requests that is critical, if not that of the phase.
    pub(crate) critical: Option<f64>,
}

/// The service.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) cores: f64,
    /// Whether the cores are places.
    pub(crate) has_places: bool,
    pub(crate) operations: Vec<Operation>,
    /// Relative deviation of the costs and waits of an operation.
    pub(crate) deviation: f64,
    /// Part of the throughput that is lost if twice as many requests as cores are in flight.
    pub(crate) overhead: f64,
    /// Time after which an answer is useless, in seconds.
    pub(crate) deadline: f64,
    pub(crate) callers: Callers,
}

/// Behaviour of callers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Callers {
    /// They tell the deadline.
    TellDeadline,
    /// They only wait.
    Wait,
    /// They tell the deadline, and give up then. The work goes on, and its place is free.
    GiveUp,
    /// The same, and the work ends with it, like an async handler whose connection is closed.
    GiveUpAndWorkEnds,
    /// The same, but the work goes on, and has the place until its end.
    GiveUpAndWorkKeepsPlace,
}

/// A time with a constant load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    pub(crate) seconds: f64,
    /// Work that arrives, as a multiple of what the cores of the service can do.
    pub(crate) load: f64,
    /// Part of it that is critical.
    pub(crate) critical: f64,
    /// Number of cores now, as a multiple of those of the service.
    pub(crate) cores: f64,
    /// Multiple of the waits.
    pub(crate) slower: f64,
    /// Number of requests that come together.
    pub(crate) batch: u32,
}

impl Phase {
    pub(crate) const fn new(seconds: f64, load: f64, critical: f64) -> Self {
        Self {
            seconds,
            load,
            critical,
            cores: 1.0,
            slower: 1.0,
            batch: 1,
        }
    }

    pub(crate) const fn cores(self, cores: f64) -> Self {
        Self { cores, ..self }
    }

    pub(crate) const fn slower(self, slower: f64) -> Self {
        Self { slower, ..self }
    }

    pub(crate) const fn batch(self, batch: u32) -> Self {
        Self { batch, ..self }
    }
}

impl Operation {
    pub(crate) const fn new(cost: f64, share: f64) -> Self {
        Self {
            cost,
            wait: 0.0,
            share,
            critical: None,
        }
    }
}

/// A request that has come to its end.
#[derive(Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) came_at: f64,
    pub(crate) ended_at: f64,
    pub(crate) cost: f64,
    pub(crate) tier: Criticality,
    pub(crate) user: u64,
    pub(crate) outcome: Outcome,
    pub(crate) deadline: f64,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Outcome {
    /// Served after so many seconds.
    Served(f64),
    Refused(Reason, f64),
    /// The caller has gone.
    GaveUp,
}

impl Ended {
    /// Returns whether the answer was of use.
    pub(crate) fn is_good(&self) -> bool {
        matches!(self.outcome, Outcome::Served(latency) if latency <= self.deadline)
    }

    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.outcome, Outcome::Refused(..))
    }

    pub(crate) fn is_critical(&self) -> bool {
        self.tier == Criticality::Critical
    }
}

pub(crate) struct Request {
    pub(crate) came_at: f64,
    pub(crate) cost: f64,
    pub(crate) wait: f64,
    pub(crate) tier: Criticality,
    pub(crate) user: u64,
}

/// Numbers that look random. Source: SplitMix64.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// Returns a number above 0, and at most 1.
    pub(crate) fn part(&mut self) -> f64 {
        ((self.number() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Returns a log-normal number with the mean 1 and a deviation.
    pub(crate) fn cost(&mut self, deviation: f64) -> f64 {
        let variance = deviation.mul_add(deviation, 1.0).ln();
        let angle = std::f64::consts::TAU * self.part();
        let normal = (-2.0 * self.part().ln()).sqrt() * angle.cos();
        variance.sqrt().mul_add(normal, -variance / 2.0).exp()
    }
}
