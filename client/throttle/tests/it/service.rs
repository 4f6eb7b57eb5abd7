//! A service in virtual time: some cores that share their time among the requests in flight, behind a throttler.
//!
//! More requests than cores make each one slower, and cost a little throughput. A request that misses its deadline
//! uses up its cost all the same. Arrivals are a Poisson process; all chance comes from the seed.

use std::collections::{BTreeSet, HashMap};

use doorward_limits::Moment;
use doorward_throttle::{Admission, Ask, Config, Criticality, Offer, Reason, Throttler};

/// Time after which an answer is useless, in seconds.
pub(crate) const DEADLINE: f64 = 1.0;

/// Cost of an operation in seconds of one core, and its share of the requests.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) cost: f64,
    pub(crate) share: f64,
}

/// The service.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) cores: f64,
    pub(crate) operations: Vec<Operation>,
    /// Relative deviation of the costs of an operation.
    pub(crate) deviation: f64,
    /// Part of the throughput that is lost if twice as many requests as cores are in flight.
    pub(crate) overhead: f64,
}

/// A time with a constant load.
#[derive(Clone, Copy)]
pub(crate) struct Phase {
    pub(crate) seconds: f64,
    /// Work that arrives, as a multiple of what the cores can do.
    pub(crate) load: f64,
    /// Part of it that is critical.
    pub(crate) critical: f64,
    /// Whether the cores do anything.
    pub(crate) stalled: bool,
}

impl Phase {
    pub(crate) const fn new(seconds: f64, load: f64, critical: f64) -> Self {
        let stalled = false;
        Self {
            seconds,
            load,
            critical,
            stalled,
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
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Outcome {
    /// Served after so many seconds.
    Served(f64),
    Refused(Reason, f64),
}

impl Ended {
    /// Returns whether the answer was of use.
    pub(crate) fn is_good(&self) -> bool {
        matches!(self.outcome, Outcome::Served(latency) if latency <= DEADLINE)
    }

    pub(crate) fn is_critical(&self) -> bool {
        self.tier == Criticality::Critical
    }
}

struct Request {
    came_at: f64,
    cost: f64,
    tier: Criticality,
    user: u64,
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

/// Run of a service.
pub(crate) struct Run {
    service: Service,
    pub(crate) throttler: Throttler<u64>,
    chance: Chance,
    now: f64,
    /// Work that each request in flight has got since the start.
    attained: f64,
    /// Requests in flight, by the attained work at which they end.
    working: BTreeSet<(u64, u64)>,
    admissions: HashMap<u64, Admission>,
    requests: HashMap<u64, Request>,
    arrivals: u64,
    pub(crate) ended: Vec<Ended>,
    /// Limit at the end of each second.
    pub(crate) limits: Vec<f64>,
    /// Whether the ended requests are kept.
    pub(crate) keeps: bool,
}

impl Run {
    pub(crate) fn new(service: &Service, config: Config, seed: u64) -> Self {
        Self {
            service: service.clone(),
            throttler: Throttler::new(config),
            chance: Chance(seed),
            now: 0.0,
            attained: 0.0,
            working: BTreeSet::new(),
            admissions: HashMap::new(),
            requests: HashMap::new(),
            arrivals: 0,
            ended: Vec::new(),
            limits: Vec::new(),
            keeps: true,
        }
    }

    /// Plays phases one after the other.
    pub(crate) fn play(mut self, phases: &[Phase]) -> Self {
        for phase in phases {
            self.phase(phase);
        }
        let mut unfinished: Vec<u64> = self.requests.keys().copied().collect();
        unfinished.sort_unstable();
        for id in unfinished {
            self.finish(id, Outcome::Served(f64::INFINITY));
        }
        self
    }

    fn phase(&mut self, phase: &Phase) {
        let end = self.now + phase.seconds;
        let mean: f64 = self
            .service
            .operations
            .iter()
            .map(|it| it.cost * it.share)
            .sum();
        let gap = mean / (self.service.cores * phase.load);
        let mut next = self.now - self.chance.part().ln() * gap;
        loop {
            let speed = if phase.stalled { 0.0 } else { self.speed() };
            let ending = self
                .working
                .first()
                .map(|(at, _)| self.now + (f64::from_bits(*at) - self.attained).max(0.0) / speed);
            let timeout = self
                .throttler
                .poll_timeout()
                .map(|at| at.nanos() as f64 / 1e9);
            let until = [Some(next), ending, timeout, Some(end)];
            let until = until
                .into_iter()
                .flatten()
                .fold(f64::INFINITY, f64::min)
                .max(self.now);
            self.attained += speed * (until - self.now);
            for second in self.now as u64..until as u64 {
                debug_assert_eq!(second as usize, self.limits.len());
                self.limits.push(f64::from(self.throttler.limit()));
            }
            self.now = until;
            if until >= end {
                return;
            } else if ending.is_some_and(|at| at <= until) {
                self.end();
            } else if next <= until {
                self.arrive(phase);
                next = self.now - self.chance.part().ln() * gap;
            } else {
                // A timeout is a whole nanosecond, which the time may miss by rounding.
                let at = timeout.map_or(0.0, |at| at * 1e9) as i64 + 1_000;
                self.throttler.handle_timeout(Moment::from_nanos(at));
            }
            self.take_decided();
        }
    }

    /// Returns the speed of each request in flight.
    fn speed(&self) -> f64 {
        let (requests, cores) = (self.working.len() as f64, self.service.cores);
        let more = (requests - cores).max(0.0) / cores;
        requests.min(cores) / requests.max(1.0) / self.service.overhead.mul_add(more, 1.0)
    }

    fn moment(&self) -> Moment {
        Moment::from_nanos((self.now * 1e9) as i64)
    }

    fn arrive(&mut self, phase: &Phase) {
        let mut place = self.chance.part();
        let operations = &self.service.operations;
        let operation = operations.iter().position(|it| {
            place -= it.share;
            place <= 0.0
        });
        let operation = operation.unwrap_or(0);
        let is_critical = self.chance.part() <= phase.critical;
        let tier = [Criticality::NotCritical, Criticality::Critical][usize::from(is_critical)];
        let request = Request {
            came_at: self.now,
            cost: operations[operation].cost * self.chance.cost(self.service.deviation),
            tier,
            user: self.chance.number() % 1_000,
        };
        let ask = Ask {
            operation: operation as u64,
            criticality: tier,
            user: Some(request.user.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            deadline: Some(Moment::from_nanos(((self.now + DEADLINE) * 1e9) as i64)),
        };
        self.arrivals += 1;
        let id = self.arrivals;
        self.requests.insert(id, request);
        match self.throttler.offer(&ask, || id, self.moment()) {
            Offer::Admitted(admission) => self.start(id, admission),
            Offer::Queued(_) => {}
            Offer::Refused(refusal) => self.finish(id, Outcome::Refused(refusal.reason, 0.0)),
        }
    }

    fn start(&mut self, id: u64, admission: Admission) {
        let ends_at = self.attained + self.requests[&id].cost;
        self.working.insert((ends_at.to_bits(), id));
        self.admissions.insert(id, admission);
    }

    fn end(&mut self) {
        let (_, id) = self.working.pop_first().unwrap();
        let admission = self.admissions.remove(&id).unwrap();
        let cost = self.requests[&id].cost * 1e3;
        self.throttler
            .handle_end(admission, Some(cost), self.moment());
        let latency = self.now - self.requests[&id].came_at;
        self.finish(id, Outcome::Served(latency));
    }

    fn take_decided(&mut self) {
        while let Some((id, decision)) = self.throttler.poll_decided() {
            match decision {
                Ok(admission) => self.start(id, admission),
                Err(refusal) => {
                    let waited = self.now - self.requests[&id].came_at;
                    self.finish(id, Outcome::Refused(refusal.reason, waited));
                }
            }
        }
    }

    fn finish(&mut self, id: u64, outcome: Outcome) {
        let request = self.requests.remove(&id).unwrap();
        if self.keeps {
            self.ended.push(Ended {
                came_at: request.came_at,
                ended_at: self.now,
                cost: request.cost,
                tier: request.tier,
                user: request.user,
                outcome,
            });
        }
    }
}

/// Returns the service of the documents: a cheap and an expensive operation on eight cores.
pub(crate) fn service() -> Service {
    Service {
        cores: 8.0,
        operations: vec![
            Operation {
                cost: 0.005,
                share: 0.8,
            },
            Operation {
                cost: 0.050,
                share: 0.2,
            },
        ],
        deviation: 0.5,
        overhead: 0.1,
    }
}

/// Returns the work of requests that came in a span and match, in seconds of a core.
pub(crate) fn work(run: &Run, from: f64, to: f64, is: impl Fn(&Ended) -> bool) -> f64 {
    let ended = run.ended.iter();
    let matching = ended.filter(|it| (from..to).contains(&it.came_at) && is(it));
    // The sum of nothing is -0.
    matching.map(|it| it.cost).sum::<f64>() + 0.0
}

/// Returns the latency that 99 of 100 critical requests are below, of those that were served; infinite if none was.
pub(crate) fn critical_p99(run: &Run, from: f64, to: f64) -> f64 {
    let ended = run.ended.iter();
    let critical = ended.filter(|it| it.is_critical() && (from..to).contains(&it.came_at));
    let latencies = critical.filter_map(|it| match it.outcome {
        Outcome::Served(latency) => Some(latency),
        Outcome::Refused(..) => None,
    });
    let mut latencies: Vec<f64> = latencies.collect();
    latencies.sort_by(f64::total_cmp);
    let p99 = latencies.get(latencies.len() * 99 / 100);
    p99.copied().unwrap_or(f64::INFINITY)
}
