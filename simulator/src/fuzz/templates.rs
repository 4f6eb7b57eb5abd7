//! Resources of a random world: one or several, with all algorithms.

use std::time::Duration;

use doorward_engine::templates::AlgorithmKind::{
    self, FairShare, NoAlgorithm, PriorityBands, ProportionalShare, Static,
};
use doorward_engine::templates::{TemplateSpec, Templates};

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, Part, Quality};

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
    let lease = match draft.quality {
        Quality::Quick => chance.pick([10, 20, 60]),
        Quality::Usual | Quality::Bad => chance.pick([20, 20, 30, 60]),
    };
    let lease = Duration::from_secs(lease);
    let refresh = match draft.quality {
        Quality::Quick => lease / chance.pick([3, 4, 8]),
        Quality::Usual | Quality::Bad => lease / chance.pick([4, 8, 20]),
    };
    let capacity = chance.pick([1.0, 77.7, 100.0, 100.0, 1e6]);
    let bands = ("min_share.0".to_owned(), Some("0.2".to_owned()));
    let bands = Some(bands).filter(|_| kind == PriorityBands);
    TemplateSpec {
        identifier_glob: Some(resource.to_owned()),
        capacity: Some(capacity),
        kind: Some(kind),
        lease_length: Some(lease),
        refresh_interval: Some(refresh.max(Duration::from_secs(1))),
        parameters: bands.into_iter().collect(),
        ..TemplateSpec::default()
    }
}

/// Returns the templates of these resources.
pub(super) fn written(specs: &[TemplateSpec]) -> Templates {
    // They are literals of this program and valid.
    Templates::parse(specs).unwrap_or_default()
}
