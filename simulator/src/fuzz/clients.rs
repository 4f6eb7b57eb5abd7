//! Clients and their demand: few or many clients, which together want less than the capacity or
//! much more, of one or several resources. Some use the library's limiters, for work in pieces that
//! suit their demand.

use std::time::Duration;

use doorward_engine::templates::{AlgorithmKind, TemplateSpec};
use serde_json::{Value, json};

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, Part, Span, said, span};
use crate::scenario::leaves_of;

/// Maximum number of clients.
const CLIENTS_MAX: usize = 24;

/// Fork of the random stream for the connections of clients.
const STREAMS: u64 = 61;

/// Smallest demand for permits, which are whole numbers.
const PERMITS_WANTED_MIN: f64 = 4.0;

/// Most permits of a piece of work, as scenario files may have them.
const PERMITS_MAX: f64 = 1e6;

pub(super) fn draw(draft: &mut Draft, chance: &mut Chance) {
    let most = chance.pick([1, 2, 4, 8]);
    let leaves = leaves_of(&draft.nodes).into_iter();
    let at = leaves.flat_map(|leaf| vec![leaf; 1 + chance.below(most)]);
    let mut at: Vec<usize> = at.collect();
    // Clients may be at any node.
    for _ in 0..chance.below(3) {
        at.push(chance.below(draft.nodes.len()));
    }
    at.truncate(CLIENTS_MAX);
    let factor = chance.pick([0.3, 1.0, 1.6, 3.0, 5.0]) / at.len().max(1) as f64;
    // None, little or much.
    let limiters = [0.0, 0.3, 0.8][draft.strength(Part::Limiters) as usize];
    let mut streams = chance.fork(STREAMS);
    for (number, node) in at.into_iter().enumerate() {
        let mut usages = Vec::new();
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
        let Some(mut group) = usages.pop() else {
            continue;
        };
        group["name"] = format!("client-{number}").into();
        group["at"] = draft.node_at(node).into();
        group["also"] = also.into();
        group["start_within"] = "0s".into();
        group["link"] = streams.pick(["stream", "poll"]).into();
        draft.file.clients.push(group);
    }
}

/// Draws the use of a resource, of which each client wants about that part.
fn usage(chance: &mut Chance, spec: &TemplateSpec, factor: f64, limiters: f64) -> Option<Value> {
    let (capacity, lease) = (spec.capacity?, spec.lease_length?);
    let amount = capacity * factor * chance.between(0.1, 2.0);
    let limiter = chance.happens(limiters);
    let limiter = limiter.then(|| self::limiter(chance, amount, lease));
    let mode = chance.pick(["pessimistic", "safe", "optimistic"]);
    let priority = match spec.kind {
        Some(AlgorithmKind::PriorityBands) => chance.below(3),
        _ => 0,
    };
    Some(json!({
        "resource": spec.identifier_glob,
        "priority": priority,
        "mode": mode,
        "wants": demand(chance, amount),
        "limiter": limiter,
    }))
}

/// Draws a curve around an amount.
fn demand(chance: &mut Chance, amount: f64) -> Value {
    let every = Duration::from_secs(1 + chance.below(20) as u64);
    let at = chance.duration(Duration::from_secs(10), Duration::from_secs(180));
    let long = chance.duration(Duration::from_secs(5), Duration::from_secs(100));
    let low = amount * chance.pick([0.0, 0.1, 0.5]);
    match chance.below(14) {
        0..=4 => json!(amount),
        5 => {
            let factor = chance.pick([(0.8, 1.25), (0.5, 2.0)]);
            json!({"walk": {"start": amount, "factor": factor, "every": said(every)}})
        }
        6 | 7 => {
            let on = said(every * chance.pick([1, 4]));
            let off = said(every * chance.pick([1, 2]));
            json!({"on_off": {"peak": amount, "base": low, "on_for": on, "off_for": off}})
        }
        8 => {
            let (at, length) = (said(every * 5), said(every * 3));
            json!({"spike": {"base": amount, "peak": amount * 10.0, "at": at, "for": length}})
        }
        9 => json!({"ramp": {"from": low, "to": amount, "at": said(at), "over": said(long)}}),
        10 => json!({"diurnal": {
            "least": low, "most": amount, "peak": said(long / 2), "period": said(long),
            "shift": chance.uniform(), "every": said(long / 50),
        }}),
        11 => json!({"flash_crowd": {
            "base": low, "peak": amount * 3.0, "at": said(at), "rise": said(long / 5),
            "half_life": said(long / 3), "every": said(long / 50),
        }}),
        12 => json!({"step": {"from": amount, "to": low, "at": said(at)}}),
        _ => json!({"sine": {
            "mean": amount, "amplitude": amount - low, "period": said(long),
            "shift": chance.uniform(), "every": said(long / 30),
        }}),
    }
}

/// Draws the limiter of a client that wants about that amount, with leases of that length.
fn limiter(chance: &mut Chance, amount: f64, lease: Duration) -> Value {
    let pieces = chance.between(1.0, 8.0);
    let is_gauge = amount >= PERMITS_WANTED_MIN && chance.happens(0.6);
    let mut limiter = match is_gauge {
        true => {
            let most = (lease / 2).min(Duration::from_secs(chance.pick([2, 8, 20])));
            let permits = (amount / pieces / 2.0).clamp(1.0, PERMITS_MAX) as u32;
            json!({"concurrency": permits, "for": span(Span(most / 10, most))})
        }
        // The demand is a rate, so the cost is a part of it.
        false => json!({"rate": (amount / pieces).max(1e-3)}),
    };
    if chance.happens(0.5) {
        limiter["adaptive"] = json!({
            "window": said(Duration::from_secs(chance.pick([1, 5, 10]))),
            "headroom": chance.pick([1.0, 1.2, 2.0]),
            "least": amount * chance.pick([0.0, 0.01, 0.3]),
            "most": amount * chance.pick([1.0, 3.0]),
        });
    }
    limiter
}
