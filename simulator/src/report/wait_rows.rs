//! Which wait cost what: what utilisation misses to 100 %, by what those waited for who wanted more.

use crate::recording::{Figures, ResourceRecording};
use crate::report::figures::{Better, Figure, Unit};

const fn wait(name: &'static str, about: &'static str, get: fn(&Figures) -> f64) -> Figure {
    Figure {
        name,
        about,
        unit: Unit::Points,
        better: Better::Neither,
        get,
    }
}

/// All of them, in the order in which a change of demand meets them.
pub(super) const WAITS: [Figure; 8] = [
    wait(
        "client's gap",
        "The client asked a moment ago, and keeps its own gap before it says that it wants something \
         else.",
        |figures| figures.waits.gap,
    ),
    wait(
        "answer under way",
        "Its request, or the answer, is under way.",
        |figures| figures.waits.answer,
    ),
    wait(
        "refresh floor",
        "Its server had just decided about it, and answered without a decision.",
        |figures| figures.waits.floor,
    ),
    wait(
        "others to shrink",
        "Others hold what it is to get, and give it up when they refresh, or when their leases end.",
        |figures| figures.waits.others,
    ),
    wait(
        "share",
        "It has its share, as its server says. What others no longer want they say at their next \
         request; it hears of that at its own next refresh.",
        |figures| figures.waits.share,
    ),
    wait(
        "learning mode",
        "Its server, or one above it, is in learning mode.",
        |figures| figures.waits.learning,
    ),
    wait(
        "refusal or parent",
        "Its server has no lease itself yet, or refused.",
        |figures| figures.waits.refused,
    ),
    wait(
        "no server",
        "No server answers: the client waits, and tries again.",
        |figures| figures.waits.no_server,
    ),
];

/// Whether there is anything to show of it.
pub(super) fn is_shown(lost: f64) -> bool {
    lost >= 5e-7
}

/// What there is to show of a resource.
pub(super) fn shown_waits(
    resource: &ResourceRecording,
) -> impl Iterator<Item = (&'static Figure, f64)> {
    let all = WAITS
        .iter()
        .map(|wait| (wait, (wait.get)(&resource.figures)));
    all.filter(|(_, lost)| is_shown(*lost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::plausible;

    #[test]
    fn what_waits_cost_adds_up_to_what_utilisation_misses() {
        for recording in [plausible::small(), plausible::day()] {
            for resource in &recording.resources {
                let lost: f64 = shown_waits(resource).map(|(_, lost)| lost).sum();
                let missing = 1.0 - resource.figures.utilisation;
                assert!((lost - missing).abs() < 1e-9, "{lost}, not {missing}");
            }
        }
    }

    #[test]
    fn of_what_was_not_measured_nothing_is_shown() {
        assert_eq!(shown_waits(&ResourceRecording::default()).count(), 0);
    }
}
