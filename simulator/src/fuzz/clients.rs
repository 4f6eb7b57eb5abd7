//! Clients and their demand: few or many clients, which together want less than the capacity or
//! much more, of one or several resources. Some use the library's limiters, for work in pieces that
//! suit their demand.

use std::time::Duration;

use doorward::limiter::demand::AdaptiveWants;
use doorward::state::Mode;
use doorward_engine::id::ResourceId;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec};

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, Part, Strength};
use crate::scenario::clients::Connection;
use crate::scenario::demand::{Demand, Diurnal, FlashCrowd, OnOff, Ramp, Sine, Spike};
use crate::scenario::usage::{Adaptive, Limiter, Usage};
use crate::scenario::{ClientGroup, leaves_of};

/// Maximum number of clients.
const CLIENTS_MAX: usize = 24;

/// Fork of the random stream for the connections of clients.
const STREAMS: u64 = 61;

/// Smallest demand for permits, which are whole numbers.
const PERMITS_WANTED_MIN: f64 = 4.0;

pub(super) fn draw(draft: &mut Draft, chance: &mut Chance) {
    let most = chance.pick([1, 2, 4, 8]);
    let leaves = leaves_of(&draft.scenario.nodes).into_iter();
    let at = leaves.flat_map(|leaf| vec![leaf; 1 + chance.below(most)]);
    let mut at: Vec<usize> = at.collect();
    // Clients may be at any node.
    for _ in 0..chance.below(3) {
        at.push(chance.below(draft.scenario.nodes.len()));
    }
    at.truncate(CLIENTS_MAX);
    let factor = chance.pick([0.3, 1.0, 1.6, 3.0, 5.0]) / at.len().max(1) as f64;
    let limiters = match draft.strength(Part::Limiters) {
        Strength::None => 0.0,
        Strength::Little => 0.3,
        Strength::Much => 0.8,
    };
    let mut groups = Vec::with_capacity(at.len());
    let mut streams = chance.fork(STREAMS);
    for (number, node) in at.into_iter().enumerate() {
        let node = draft.scenario.nodes.get(node);
        let mut usages: Vec<Usage> = Vec::new();
        let first = chance.below(draft.specs.len());
        for (place, spec) in draft.specs.iter().enumerate() {
            if place == first || chance.happens(0.4) {
                usages.extend(usage(chance, spec, factor, limiters));
            }
        }
        if chance.happens(0.5) {
            usages.reverse();
        }
        let also = usages.split_off(1.min(usages.len()));
        let Some(first) = usages.pop() else {
            continue;
        };
        groups.push(ClientGroup {
            name: format!("client-{number}"),
            count: 1,
            nodes: node.map(|node| node.name.as_str().into()),
            first,
            also,
            start_within: Duration::ZERO,
            connection: match streams.happens(0.5) {
                true => Connection::Stream,
                false => Connection::Poll,
            },
        });
    }
    draft.scenario.clients = groups;
}

/// Draws the use of a resource, of which each client wants about that part.
fn usage(chance: &mut Chance, spec: &TemplateSpec, factor: f64, limiters: f64) -> Option<Usage> {
    let (capacity, lease) = (spec.capacity?, spec.lease_length?);
    let amount = capacity * factor * chance.between(0.1, 2.0);
    let limiter = chance.happens(limiters);
    let limiter = limiter.then(|| self::limiter(chance, amount, lease));
    let mode = chance.pick([Mode::Pessimistic, Mode::Safe, Mode::Optimistic]);
    Some(Usage {
        // The id is a literal of this program.
        resource: ResourceId::new(spec.identifier_glob.as_deref()?).ok()?,
        priority: match spec.kind {
            Some(AlgorithmKind::PriorityBands) => chance.below(3) as i64,
            _ => 0,
        },
        mode,
        demand: demand(chance, amount),
        limiter,
    })
}

/// Draws a curve around an amount.
fn demand(chance: &mut Chance, amount: f64) -> Demand {
    let every = Duration::from_secs(1 + chance.below(20) as u64);
    let at = chance.duration(Duration::from_secs(10), Duration::from_secs(180));
    let long = chance.duration(Duration::from_secs(5), Duration::from_secs(100));
    let low = amount * chance.pick([0.0, 0.1, 0.5]);
    match chance.below(14) {
        0..=4 => Demand::Constant(amount),
        5 => Demand::Walk {
            start: amount,
            factor: chance.pick([(0.8, 1.25), (0.5, 2.0)]),
            every,
        },
        6 | 7 => Demand::OnOff(OnOff {
            on: amount,
            off: low,
            on_for: every * chance.pick([1, 4]),
            off_for: every * chance.pick([1, 2]),
        }),
        8 => Demand::Spike(Spike {
            base: amount,
            peak: amount * 10.0,
            at: every * 5,
            length: every * 3,
        }),
        9 => Demand::Ramp(Ramp {
            from: low,
            to: amount,
            at,
            length: long,
            every: long / 20,
        }),
        10 => Demand::Diurnal(Diurnal {
            least: low,
            most: amount,
            peak: long / 2,
            period: long,
            shift: chance.uniform(),
            every: long / 50,
        }),
        11 => Demand::FlashCrowd(FlashCrowd {
            base: low,
            peak: amount * 3.0,
            at,
            rise: long / 5,
            half_life: long / 3,
            every: long / 50,
        }),
        12 => Demand::Step {
            from: amount,
            to: low,
            at,
        },
        _ => Demand::Sine(Sine {
            mean: amount,
            amplitude: amount - low,
            period: long,
            shift: chance.uniform(),
            every: long / 30,
        }),
    }
}

/// Draws the limiter of a client that wants about that amount, with leases of that length.
fn limiter(chance: &mut Chance, amount: f64, lease: Duration) -> Limiter {
    let pieces = chance.between(1.0, 8.0);
    let is_gauge = amount >= PERMITS_WANTED_MIN && chance.happens(0.6);
    let mut limiter = Limiter::default();
    match is_gauge {
        true => {
            let most = (lease / 2).min(Duration::from_secs(chance.pick([2, 8, 20])));
            let permits = (amount / pieces / 2.0).max(1.0) as u32;
            (limiter.concurrency, limiter.takes) = (Some(permits), Some((most / 10, most)));
        }
        // The demand is a rate, so the cost is a part of it.
        false => limiter.rate = Some((amount / pieces).max(1e-3)),
    }
    let adaptive = chance.happens(0.5).then(|| AdaptiveWants {
        window: Duration::from_secs(chance.pick([1, 5, 10])),
        headroom: chance.pick([1.0, 1.2, 2.0]),
        least: amount * chance.pick([0.0, 0.01, 0.3]),
        most: amount * chance.pick([1.0, 3.0]),
    });
    limiter.adaptive = adaptive.map(Adaptive);
    limiter
}
