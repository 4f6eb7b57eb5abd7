//! Clients and their demand: few or many clients, which together want less than the capacity or
//! much more, of one or several resources.

use std::time::Duration;

use doorward_client::state::Mode;
use doorward_engine::id::ResourceId;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec};

use crate::chance::Chance;
use crate::fuzz::draft::Draft;
use crate::fuzz::part::{Part, Strength};
use crate::fuzz::{demand, limiters};
use crate::scenario::ClientGroup;
use crate::scenario::usage::Usage;

/// Maximum number of clients.
const CLIENTS_MAX: usize = 24;

pub(super) fn draw(draft: &mut Draft, chance: &mut Chance) {
    let most = chance.pick([1, 2, 4, 8]);
    let leaves = draft.scenario.leaves().into_iter();
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
    for (number, node) in at.into_iter().enumerate() {
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
            nodes: vec![node],
            nodes_file: None,
            first,
            also,
            start_within: Duration::ZERO,
        });
    }
    draft.scenario.clients = groups;
}

/// Draws the use of a resource, of which each client wants about that part.
fn usage(chance: &mut Chance, spec: &TemplateSpec, factor: f64, limiters: f64) -> Option<Usage> {
    let (capacity, lease) = (spec.capacity?, spec.lease_length?);
    let amount = capacity * factor * chance.between(0.1, 2.0);
    let limiter = chance.happens(limiters);
    let limiter = limiter.then(|| limiters::draw(chance, amount, lease));
    let mode = chance.pick([Mode::Pessimistic, Mode::Safe, Mode::Optimistic]);
    Some(Usage {
        // The id is a literal of this program.
        resource: ResourceId::new(spec.identifier_glob.as_deref()?).ok()?,
        priority: match spec.kind {
            Some(AlgorithmKind::PriorityBands) => chance.below(3) as i64,
            _ => 0,
        },
        mode,
        demand: demand::draw(chance, amount),
        limiter,
    })
}
