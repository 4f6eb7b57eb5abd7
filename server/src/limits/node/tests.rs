//! The limits of a node among those of the server.

use super::*;
use crate::limits::Unit;

#[test]
fn every_limit_of_a_node_is_one_of_the_server_with_a_bound() {
    let limits = ServerLimits::default();
    limits.set_of_node(&NodeLimits {
        memory_max: 3,
        memory_per_template_max: 2,
        ..NodeLimits::default()
    });
    let mut seen = Vec::new();
    for limit in engine::Limit::ALL {
        let limit = ServerLimit::of(limit);
        assert!(!seen.contains(&limit), "{limit:?} stands for two");
        seen.push(limit);
        let figure = &limits.figures()[limit as usize];
        assert!(figure.max.is_some(), "{limit:?}");
    }
}

#[test]
fn what_is_counted_by_a_node_is_shown() {
    let limits = ServerLimits::default();
    limits.set_used_by_node(&Load::default(), 0);
    for limit in engine::Limit::ALL.map(ServerLimit::of) {
        let figure = &limits.figures()[limit as usize];
        let is_uncounted = [ServerLimit::Priorities, ServerLimit::LeasesPerAddress];
        let counted = limit.unit() != Unit::PerSecond && !is_uncounted.contains(&limit);
        assert_eq!(figure.used.is_some(), counted, "{limit:?}");
    }
}

#[test]
fn what_a_node_refuses_is_counted() {
    let limits = ServerLimits::default();
    let mut before = [0; engine::Limit::ALL.len()];
    before[engine::Limit::LeasesPerResource as usize] = 7;
    let mut after = before;
    after[engine::Limit::LeasesPerResource as usize] = 12;
    after[engine::Limit::Memory as usize] = 1;
    limits.refuse_by_node(&before, &after, Duration::ZERO);
    let refused: Vec<_> = limits
        .figures()
        .into_iter()
        .filter(|it| it.refused_count > 0)
        .collect();
    let counted: Vec<_> = refused
        .iter()
        .map(|it| (&*it.name, it.refused_count))
        .collect();
    let expected = [
        (ServerLimit::Memory, 1),
        (ServerLimit::LeasesPerResource, 5),
    ];
    assert_eq!(
        counted,
        expected.map(|(limit, count)| (limit.texts().name, count))
    );
}
