//! Resources of a random world: one or several, with all algorithms; and edits of their templates.

use std::time::Duration;

use doorward_engine::templates::AlgorithmKind::{
    self, FairShare, NoAlgorithm, PriorityBands, ProportionalShare, Static,
};
use doorward_engine::templates::{TemplateSpec, Templates};
use serde_json::{Value, json};

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, Part, Quality, Strength};
use crate::scenario::templates;

/// Longest lease length of any template. A root that may forget the length of earlier leases learns
/// for this long. After a restart soon after leases were made shorter it knows only the new length,
/// while old leases are still valid. With an election the length is stored with the term, unless
/// etcd loses it while no candidate runs.
const LEARNING: Duration = Duration::from_secs(90);

pub(super) fn draw(draft: &mut Draft, chance: &mut Chance) {
    let of_total = [FairShare, FairShare, ProportionalShare, PriorityBands];
    let kind = chance.pick(of_total);
    let mut specs = vec![spec("shared", kind, draft, chance)];
    // None, one or two.
    let many = draft.strength(Part::Resources) as usize;
    for resource in ["other", "third"].iter().take(many) {
        let any = [
            FairShare,
            ProportionalShare,
            PriorityBands,
            Static,
            NoAlgorithm,
        ];
        let kind = chance.pick(any);
        let mut other = spec(resource, kind, draft, chance);
        if chance.happens(0.3) && of_total.contains(&kind) {
            let shrink = ("shrink".to_owned(), Some("immediate".to_owned()));
            other.parameters.push(shrink);
        }
        if chance.happens(0.3) {
            let part = chance.pick([0.0, 0.01, 0.1]);
            other.safe_capacity = other.capacity.map(|capacity| capacity * part);
        }
        specs.push(other);
    }
    draft.specs = specs;
}

fn spec(resource: &str, kind: AlgorithmKind, draft: &Draft, chance: &mut Chance) -> TemplateSpec {
    // With shorter leases, one may expire under way on slow links.
    let (lease, refreshes) = match draft.quality {
        Quality::Quick => (chance.pick([10, 20, 60]), chance.pick([3, 4, 8])),
        _ => (chance.pick([20, 20, 30, 60]), chance.pick([4, 8, 20])),
    };
    let lease = Duration::from_secs(lease);
    let capacity = chance.pick([1.0, 77.7, 100.0, 100.0, 1e6]);
    let bands = ("min_share.0".to_owned(), Some("0.2".to_owned()));
    let bands = Some(bands).filter(|_| kind == PriorityBands);
    TemplateSpec {
        identifier_glob: Some(resource.to_owned()),
        capacity: Some(capacity),
        kind: Some(kind),
        lease_length: Some(lease),
        refresh_interval: Some((lease / refreshes).max(Duration::from_secs(1))),
        parameters: bands.into_iter().collect(),
        ..TemplateSpec::default()
    }
}

/// Draws edits of capacities, lease lengths and refresh intervals.
pub(super) fn edit(draft: &mut Draft) {
    let chance = &mut draft.chance_of(Part::Edits);
    let strength = draft.strength(Part::Edits);
    let lengths = strength == Strength::Much;
    let root = draft.nodes.first();
    let is_alone = root.is_some_and(|root| root.candidates == 1);
    if lengths && (is_alone || forgets(&draft.file.faults)) {
        for spec in &mut draft.specs {
            spec.learning_mode_duration = Some(LEARNING);
        }
    }
    for _ in 0..strength.many(chance, 2, 5) {
        let at = draft.some_time(chance);
        let templates = written(&edited(draft, chance, lengths));
        draft.put(at, json!({"edit": templates}));
    }
}

/// Returns whether etcd may lose the longest lease length of the root while no candidate runs that
/// remembers it.
fn forgets(faults: &[Value]) -> bool {
    let is_lost = faults.iter().any(|fault| fault.get("etcd").is_some());
    is_lost && faults.iter().any(|fault| fault["stop"] == "root")
}

/// Draws changes to the templates; to lengths only if `lengths` is set.
fn edited(draft: &Draft, chance: &mut Chance, lengths: bool) -> Vec<TemplateSpec> {
    let mut edited = draft.specs.clone();
    for spec in &mut edited {
        let factor = chance.pick([0.3, 0.6, 0.8, 1.0, 1.2, 2.0]);
        spec.capacity = spec.capacity.map(|capacity| capacity * factor);
        if lengths && chance.happens(0.5) {
            let lease = Duration::from_secs(chance.pick([20, 30, 45, 90]));
            let fewest = if draft.quality == Quality::Quick {
                3
            } else {
                4
            };
            let refresh = lease / chance.pick([20, 8, fewest]);
            (spec.lease_length, spec.refresh_interval) = (Some(lease), Some(refresh));
        }
    }
    edited
}

/// Returns the templates of these resources as files have them.
pub(super) fn written(specs: &[TemplateSpec]) -> Value {
    // They are literals of this program and valid.
    templates::written(&Templates::parse(specs).unwrap_or_default())
}
