//! A service in virtual time: some cores, or places, behind a throttler or a reference.
//!
//! More requests than cores make each one slower, and cost a little throughput. Places serve one request each, and the
//! others wait for one in the order of their arrival. After that, a request may wait for something that needs neither,
//! such as a dependency. A request that misses its deadline uses up its cost all the same. Arrivals are a Poisson
//! process; all chance comes from the seed.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};

use doorward::overload::{Admission, Ask, Config, Criticality, Offer, Place, Reason, Throttler};
use doorward_limits::Moment;

use crate::references::Reference;
pub(crate) use crate::traffic::{
    Callers, Chance, Ended, Operation, Outcome, Phase, Request, Service,
};

/// Limit of a run.
pub(crate) enum Control {
    Throttler(Box<Throttler<u64>>),
    Reference(Reference),
}

/// The end of a part of a request, at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The work in a place.
    Work(u64),
    /// The wait after the work.
    Wait(u64),
    /// The patience of the caller.
    Patience(u64),
}

/// Run of a service.
pub(crate) struct Run {
    service: Service,
    pub(crate) control: Control,
    chance: Chance,
    now: f64,
    /// Work that each request on a core has got since the start.
    attained: f64,
    /// Requests on cores, by the attained work at which they end.
    working: BTreeSet<(u64, u64)>,
    /// Number of requests in places, and those that wait for one.
    placed: u32,
    placeless: VecDeque<u64>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    admissions: HashMap<u64, Admission>,
    waiting: HashMap<u64, Place>,
    requests: HashMap<u64, Request>,
    arrivals: u64,
    pub(crate) ended: Vec<Ended>,
    /// Limit at the end of each second.
    pub(crate) limits: Vec<f64>,
    /// Largest number of requests at work.
    pub(crate) at_work_max: usize,
    /// Whether the ended requests are kept.
    pub(crate) keeps: bool,
}

impl Run {
    pub(crate) fn new(service: &Service, config: Config, seed: u64) -> Self {
        Self::with(
            service,
            Control::Throttler(Box::new(Throttler::new(config))),
            seed,
        )
    }

    pub(crate) fn with(service: &Service, control: Control, seed: u64) -> Self {
        Self {
            service: service.clone(),
            control,
            chance: Chance(seed),
            now: 0.0,
            attained: 0.0,
            working: BTreeSet::new(),
            placed: 0,
            placeless: VecDeque::new(),
            events: BinaryHeap::new(),
            admissions: HashMap::new(),
            waiting: HashMap::new(),
            requests: HashMap::new(),
            arrivals: 0,
            ended: Vec::new(),
            limits: Vec::new(),
            at_work_max: 0,
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
        let operations = self.service.operations.iter();
        let mean: f64 = operations.map(|it| it.cost * it.share).sum();
        let gap = mean / (self.service.cores * phase.load) * f64::from(phase.batch);
        let cores = self.service.cores * phase.cores;
        let mut next = self.now - self.chance.part().ln() * gap;
        self.fill_places(cores);
        loop {
            let speed = self.speed(cores);
            let working = self.working.first();
            let ending = working
                .map(|(at, _)| self.now + (f64::from_bits(*at) - self.attained).max(0.0) / speed);
            let event = self
                .events
                .peek()
                .map(|Reverse((at, _))| f64::from_bits(*at));
            let timeout = match &mut self.control {
                Control::Throttler(throttler) => throttler.poll_timeout(),
                Control::Reference(_) => None,
            };
            let timeout = timeout.map(|at| at.nanos() as f64 / 1e9);
            let until = [Some(next), ending, event, timeout, Some(end)];
            let until = until.into_iter().flatten().fold(f64::INFINITY, f64::min);
            let until = until.max(self.now);
            self.attained += speed * (until - self.now);
            for second in self.now as u64..until as u64 {
                debug_assert_eq!(second as usize, self.limits.len());
                self.limits.push(self.limit());
            }
            self.now = until;
            if until >= end {
                return;
            } else if ending.is_some_and(|at| at <= until) {
                if let Some((_, id)) = self.working.pop_first() {
                    self.work_done(id);
                }
            } else if event.is_some_and(|at| at <= until) {
                self.event();
            } else if next <= until {
                for _ in 0..phase.batch {
                    self.arrive(phase);
                    self.take_decided();
                }
                next = self.now - self.chance.part().ln() * gap;
            } else if let Control::Throttler(throttler) = &mut self.control {
                // A timeout is a whole nanosecond, which the time may miss by rounding.
                let at = timeout.map_or(0.0, |at| at * 1e9) as i64 + 1_000;
                throttler.handle_timeout(Moment::from_nanos(at));
            }
            self.take_decided();
            self.fill_places(cores);
            self.at_work_max = self
                .at_work_max
                .max(self.working.len() + self.placed as usize);
        }
    }

    pub(crate) fn limit(&self) -> f64 {
        match &self.control {
            Control::Throttler(throttler) => f64::from(throttler.limit()),
            Control::Reference(reference) => reference.limit(),
        }
    }

    /// Returns the speed of each request on a core.
    fn speed(&self, cores: f64) -> f64 {
        if cores == 0.0 {
            return 0.0;
        }
        let requests = self.working.len() as f64;
        let more = (requests - cores).max(0.0) / cores;
        requests.min(cores) / requests.max(1.0) / self.service.overhead.mul_add(more, 1.0)
    }

    fn moment(&self) -> Moment {
        Moment::from_nanos((self.now * 1e9) as i64)
    }

    fn after(&mut self, seconds: f64, event: Event) {
        let at = (self.now + seconds).to_bits();
        self.events.push(Reverse((at, event)));
    }

    fn arrive(&mut self, phase: &Phase) {
        let mut place = self.chance.part();
        let operations = &self.service.operations;
        let operation = operations.iter().position(|it| {
            place -= it.share;
            place <= 0.0
        });
        let operation = operation.unwrap_or(0);
        let kind = operations[operation];
        let is_critical = self.chance.part() <= kind.critical.unwrap_or(phase.critical);
        let tier = [Criticality::NotCritical, Criticality::Critical][usize::from(is_critical)];
        let cost = kind.cost * self.chance.cost(self.service.deviation);
        let mut wait = kind.wait * phase.slower;
        if wait > 0.0 {
            wait *= self.chance.cost(self.service.deviation);
        }
        let request = Request {
            came_at: self.now,
            cost,
            wait,
            tier,
            user: self.chance.number() % 1_000,
        };
        let (deadline, callers) = (self.service.deadline, self.service.callers);
        let deadline_at = Moment::from_nanos(((self.now + deadline) * 1e9) as i64);
        let ask = Ask {
            operation: operation as u64,
            criticality: tier,
            user: Some(request.user.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            deadline: (callers != Callers::Wait).then_some(deadline_at),
        };
        self.arrivals += 1;
        let id = self.arrivals;
        self.requests.insert(id, request);
        let now = self.moment();
        if !matches!(callers, Callers::TellDeadline | Callers::Wait) {
            self.after(deadline, Event::Patience(id));
        }
        match &mut self.control {
            Control::Throttler(throttler) => match throttler.offer(&ask, || id, now) {
                Offer::Admitted(admission) => self.start(id, Some(admission)),
                Offer::Queued(place) => {
                    self.waiting.insert(id, place);
                }
                Offer::Refused(refusal) => {
                    self.finish(id, Outcome::Refused(refusal.overloaded().unwrap(), 0.0))
                }
            },
            Control::Reference(reference) => {
                if reference.offer(is_critical, id, self.now) {
                    self.start(id, None);
                } else {
                    self.finish(id, Outcome::Refused(Reason::Full, 0.0));
                }
            }
        }
    }

    fn start(&mut self, id: u64, admission: Option<Admission>) {
        if let Some(admission) = admission {
            self.admissions.insert(id, admission);
        }
        if self.service.has_places {
            self.placeless.push_back(id);
        } else {
            let ends_at = self.attained + self.requests[&id].cost;
            self.working.insert((ends_at.to_bits(), id));
        }
    }

    fn fill_places(&mut self, places: f64) {
        while f64::from(self.placed) < places
            && let Some(id) = self.placeless.pop_front()
        {
            self.placed += 1;
            self.after(self.requests[&id].cost, Event::Work(id));
        }
    }

    fn event(&mut self) {
        let Some(Reverse((_, event))) = self.events.pop() else {
            return;
        };
        match event {
            // The caller has gone, and the work with it.
            Event::Work(id) | Event::Wait(id) if !self.requests.contains_key(&id) => {}
            Event::Work(id) => {
                self.placed -= 1;
                self.work_done(id);
            }
            Event::Wait(id) => self.end(id),
            Event::Patience(id) => self.give_up(id),
        }
    }

    fn work_done(&mut self, id: u64) {
        match self.requests[&id].wait {
            0.0 => self.end(id),
            wait => self.after(wait, Event::Wait(id)),
        }
    }

    /// The caller goes, unless it has its answer.
    fn give_up(&mut self, id: u64) {
        let now = self.moment();
        if let Some(place) = self.waiting.remove(&id) {
            if let Control::Throttler(throttler) = &mut self.control {
                throttler.leave(place);
            }
            self.finish(id, Outcome::GaveUp);
        } else if self.service.callers != Callers::GiveUpAndWorkKeepsPlace
            && self.requests.contains_key(&id)
        {
            match &mut self.control {
                Control::Throttler(throttler) => {
                    if let Some(admission) = self.admissions.remove(&id) {
                        throttler.cancel(admission, now);
                    }
                }
                Control::Reference(reference) => reference.end(id, true, self.now),
            }
            if self.service.callers == Callers::GiveUpAndWorkEnds {
                self.stop(id);
            }
        }
    }

    /// Stops the work of a request.
    fn stop(&mut self, id: u64) {
        let queued = self.placeless.len();
        self.placeless.retain(|it| *it != id);
        if self.service.has_places && self.placeless.len() == queued {
            self.placed -= 1;
        }
        self.working.retain(|(_, it)| *it != id);
        self.finish(id, Outcome::GaveUp);
    }

    fn end(&mut self, id: u64) {
        let now = self.moment();
        let latency = self.now - self.requests[&id].came_at;
        match &mut self.control {
            Control::Throttler(throttler) => {
                if let Some(admission) = self.admissions.remove(&id) {
                    let cost = self.requests[&id].cost * 1e3;
                    throttler.handle_end(admission, Some(cost), now);
                }
            }
            Control::Reference(reference) => {
                let is_late =
                    self.service.callers != Callers::Wait && latency > self.service.deadline;
                reference.end(id, is_late, self.now);
            }
        }
        self.finish(id, Outcome::Served(latency));
    }

    fn take_decided(&mut self) {
        while let Control::Throttler(throttler) = &mut self.control
            && let Some((id, decision)) = throttler.poll_decided()
        {
            self.waiting.remove(&id);
            match decision {
                Ok(admission) => self.start(id, Some(admission)),
                Err(refusal) => {
                    let waited = self.now - self.requests[&id].came_at;
                    self.finish(id, Outcome::Refused(refusal.overloaded().unwrap(), waited));
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
                deadline: self.service.deadline,
            });
        }
    }
}

/// Returns the service of the documents: a cheap and an expensive operation on eight cores.
pub(crate) fn service() -> Service {
    Service {
        cores: 8.0,
        has_places: false,
        operations: vec![Operation::new(0.005, 0.8), Operation::new(0.050, 0.2)],
        deviation: 0.5,
        overhead: 0.1,
        deadline: 1.0,
        callers: Callers::TellDeadline,
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
        Outcome::Refused(..) | Outcome::GaveUp => None,
    });
    let mut latencies: Vec<f64> = latencies.collect();
    latencies.sort_by(f64::total_cmp);
    let p99 = latencies.get(latencies.len() * 99 / 100);
    p99.copied().unwrap_or(f64::INFINITY)
}
