//! Tests of the contents of random scenarios.

use std::collections::BTreeSet;
use std::fmt::Debug;

use doorward_engine::templates::Shrink;

use super::*;
use crate::scenario::ClientGroup;
use crate::scenario::fault::Event;

/// Returns the name of an enum's variant.
fn kind(of: &impl Debug) -> String {
    let text = format!("{of:?}");
    let end = text.find(|c: char| !c.is_alphanumeric());
    text.get(..end.unwrap_or(text.len()))
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn all_that_can_happen_is_drawn_somewhere() {
    let (mut events, mut demands, mut works) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut algorithms, mut modes) = (BTreeSet::new(), BTreeSet::new());
    let (mut immediate, mut safe, mut adaptive) = (0, 0, 0);
    for seed in 0..400 {
        let scenario = scenario(seed, None);
        for (_, event) in scenario.faults.iter().flat_map(|fault| &fault.choices) {
            events.insert(kind(event));
        }
        for usage in scenario.clients.iter().flat_map(ClientGroup::usages) {
            demands.insert(kind(&usage.demand));
            modes.insert(kind(&usage.mode));
            works.extend(usage.limiter.map(|limiter| limiter.rate.is_some()));
            adaptive += usize::from(usage.limiter.is_some_and(|it| it.adaptive.is_some()));
        }
        for template in scenario.templates.iter() {
            algorithms.insert(kind(&template.algorithm.kind));
            immediate += usize::from(template.algorithm.shrink == Shrink::Immediate);
            safe += usize::from(template.safe_capacity.is_some());
        }
    }
    let names = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        names(&events),
        "Close Crash Demand Depose Drift Edit Elect Elections Etcd EtcdLink Freeze Isolate Jump Kill Leave \
             Partition RedirectLoop Restart StaleAddresses Stop Surge Twin"
    );
    assert_eq!(
        names(&demands),
        "Constant Diurnal FlashCrowd OnOff Ramp Sine Spike Step Walk"
    );
    assert_eq!(works.len(), 2, "rates and concurrency");
    assert_eq!(
        names(&algorithms),
        "FairShare NoAlgorithm PriorityBands ProportionalShare Static"
    );
    assert_eq!(names(&modes), "Optimistic Pessimistic Safe");
    assert!(immediate > 0 && safe > 0 && adaptive > 0);
}

/// A random world with invalid templates would have none, and nothing would report it.
#[test]
fn all_that_is_used_has_a_template_and_is_judged() {
    for seed in 0..400 {
        let scenario = scenario(seed, None);
        assert!(!scenario.clients.is_empty(), "seed {seed}");
        for usage in scenario.clients.iter().flat_map(ClientGroup::usages) {
            let found = scenario.templates.find(&usage.resource);
            assert!(found.is_some(), "{} of seed {seed}", usage.resource);
        }
        let events = scenario.faults.iter().flat_map(|fault| &fault.choices);
        for (_, event) in events {
            if let Event::Edit { templates, .. } = event {
                let (before, after) = (scenario.templates.iter(), templates.iter());
                assert_eq!(before.count(), after.count(), "seed {seed}");
            }
        }
        let judged = Checker::ALL.into_iter();
        let judged = judged.filter(|it| scenario.limits.of(*it).is_some());
        let expected = [
            Checker::Overshoot,
            Checker::Nesting,
            Checker::Fairness,
            Checker::Utilisation,
            Checker::Mastership,
            Checker::SettledFairness,
            Checker::Requests,
        ];
        assert_eq!(judged.collect::<Vec<_>>(), expected);
        assert_eq!(scenario.right_at.len(), 2, "seed {seed}");
    }
}

/// Marks are too low after a restore during which no candidate of the root ran, so the capacity may be exceeded.
#[test]
fn no_node_stops_as_a_whole_where_etcd_is_restored() {
    let mut restored = 0;
    // In the last one, the part about masters stops the root.
    for seed in (0..400).chain([5_042_108]) {
        let scenario = scenario(seed, None);
        let stops = scenario.events().any(|it| matches!(it, Event::Stop { .. }));
        let is_restored = |it: &Event| matches!(it, Event::Etcd { back: Some(_), .. });
        let restores = scenario.events().any(is_restored);
        assert!(!restores || !stops, "seed {seed}");
        restored += usize::from(restores);
    }
    assert!(restored > 10, "{restored}");
}
