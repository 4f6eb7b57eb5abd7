//! Edits of the templates: capacities, lease lengths and refresh intervals.

use std::time::Duration;

use doorward_engine::templates::TemplateSpec;

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, Part, Quality, Strength};
use crate::fuzz::templates::written;
use crate::scenario::Scenario;
use crate::scenario::fault::{Event, NodeChoice};

/// Longest lease length of any template. A root that may forget the length of earlier leases learns
/// for this long. After a restart soon after leases were made shorter it knows only the new length,
/// while old leases are still valid. With an election the length is stored with the term, unless
/// etcd loses it while no candidate runs.
const LEARNING: Duration = Duration::from_secs(90);

pub(super) fn draw(draft: &mut Draft) {
    let chance = &mut draft.chance_of(Part::Edits);
    let strength = draft.strength(Part::Edits);
    let lengths = strength == Strength::Much;
    let root = draft.scenario.nodes.first();
    let is_alone = root.is_some_and(|root| root.candidates == 1);
    if lengths && (is_alone || forgets(&draft.scenario)) {
        for spec in &mut draft.specs {
            spec.learning_mode_duration = Some(LEARNING);
        }
    }
    for _ in 0..strength.many(chance, 2, 5) {
        let at = draft.some_time(chance);
        let templates = written(&edited(draft, chance, lengths));
        draft.put(at, Event::Edit { templates });
    }
}

/// Returns whether etcd may lose the longest lease length of the root while no candidate runs that
/// remembers it.
fn forgets(scenario: &Scenario) -> bool {
    let root = NodeChoice::of("root");
    let is_loss = |event: &Event| matches!(event, Event::Etcd { .. });
    let is_stop = |event: &Event| matches!(event, Event::Stop { node, .. } if *node == root);
    scenario.events().any(is_loss) && scenario.events().any(is_stop)
}

/// Draws changes to the templates; to lengths only if `lengths` is set.
fn edited(draft: &Draft, chance: &mut Chance, lengths: bool) -> Vec<TemplateSpec> {
    let mut edited = draft.specs.clone();
    for spec in &mut edited {
        let factor = chance.pick([0.3, 0.6, 0.8, 1.0, 1.2, 2.0]);
        spec.capacity = spec.capacity.map(|capacity| capacity * factor);
        if lengths && chance.happens(0.5) {
            let lease = Duration::from_secs(chance.pick([20, 30, 45, 90]));
            let refresh = match draft.quality {
                Quality::Quick => lease / chance.pick([20, 8, 3]),
                Quality::Usual | Quality::Bad => lease / chance.pick([20, 8, 4]),
            };
            (spec.lease_length, spec.refresh_interval) = (Some(lease), Some(refresh));
        }
    }
    edited
}
