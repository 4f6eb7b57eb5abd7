//! Demand of many priorities, as it goes up to the parent.

use doorward_engine::claims::Level;

use super::*;
use crate::parents::answer;
use crate::whole::Whole as _;

/// A node that has a lease of its parent, by which priorities count, and a child that asks for all that.
fn leaf(wants: &Wants) -> Node {
    let mut child = Child::new(0);
    let mut node = node(true);
    let request = child.request(&vec![(0, vec![1])]);
    let _ = node.handle_get_server_capacity(&request, Via::Stream, at(1));
    let request = node.poll_upstream_request(1, at(2)).unwrap();
    node.handle_upstream_reply(&answer(&request, AlgorithmKind::PriorityBands), at(2));
    do_due(&mut node, at(2));
    let request = child.request(wants);
    let _ = node.handle_get_server_capacity(&request, Via::Stream, at(9));
    node
}

/// Demand at `priorities` priorities, each of 64 clients that want different amounts.
fn wide(priorities: i64) -> Wants {
    let clients: Vec<u8> = (0..64).map(|it| it * 3).collect();
    (0..priorities).map(|it| (it, clients.clone())).collect()
}

#[test]
fn demand_of_sixteen_priorities_goes_up_as_it_is() {
    let mut node = leaf(&wide(16));
    let asked = node.poll_upstream_request(1, at(10)).unwrap();
    assert_eq!(asked.asks[0].demand, demand(&wide(16)));
    node.assert_consistent();
}

#[test]
fn demand_of_more_priorities_goes_up_in_fewer_points_and_promises_no_more() {
    let all = demand(&wide(60));
    let mut node = leaf(&wide(60));
    let asked = node.poll_upstream_request(1, at(10)).unwrap();
    let sent = &asked.asks[0].demand;
    assert!((60..=1_024).contains(&sent.points()), "{}", sent.points());
    assert_eq!(sent.wants(), all.wants());
    assert_eq!(sent.clients(), all.clients());
    for level in 1..200 {
        let level = Level::At(f64::from(level));
        let (sent, of_all) = (sent.at(level), all.at(level));
        assert!(sent <= of_all * (1.0 + 1e-12), "{sent} of {of_all}");
        assert!(sent >= of_all * 0.9, "{sent} of {of_all}");
    }
    for band in sent.bands() {
        let points = band.curve.points();
        let (levels, demands): (Vec<f64>, Vec<f64>) =
            points.iter().map(|it| (it.level, it.demand)).unzip();
        let read = DemandCurve::parse(&levels, &demands, band.wants, band.clients);
        assert_eq!(read.as_ref(), Ok(&band.curve));
    }
}

#[test]
fn a_node_without_holders_gives_everything_back() {
    let mut node = leaf(&wide(20));
    let gone = at(9) + LEASE - Duration::from_secs(1);
    // The parent's lease lasts on; the child's ends before it.
    let request = node.poll_upstream_request(1, at(10)).unwrap();
    node.handle_upstream_reply(&answer(&request, AlgorithmKind::PriorityBands), at(10));
    while !node.snapshot(gone).resources.is_empty() {
        node.handle_timeout(gone);
        if let Some(request) = node.poll_upstream_request(1, gone) {
            let has_holders = node.snapshot(gone).resources.iter().any(|it| it.leases > 0);
            assert!(has_holders || request.asks[0].demand.wants().is_zero());
            node.handle_upstream_reply(&answer(&request, AlgorithmKind::PriorityBands), gone);
        }
    }
}
