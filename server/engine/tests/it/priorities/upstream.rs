//! Requests to the parent for demand of many priorities.

use doorward_engine::node::upstream_calls::UpstreamRequestCall;

use super::*;
use crate::parents::answer;

/// Returns a node with a lease from its parent, by which priorities count.
fn leaf(claims_at_once: Option<u16>, child: &mut Child) -> Node {
    let mut node = node(claims_at_once, true);
    let request = child.request(&vec![(0, vec![1])]);
    let _ = node.handle_get_server_capacity(&request, Via::Stream, at(1));
    let (request, _) = asks_parent(&mut node, at(2), |_| ());
    node.handle_upstream_reply(&answer(&request, AlgorithmKind::PriorityBands), at(2));
    do_due(&mut node, at(2));
    node
}

/// Returns the node's request to its parent, with another call between the parts.
fn asks_parent(
    node: &mut Node,
    now: Time,
    others: impl FnMut(&mut Node),
) -> (GetServerCapacity, usize) {
    let (request, parts) = with_others(node, UpstreamRequestCall::new(1), now, others);
    (request.unwrap(), parts)
}

#[test]
fn demand_of_many_priorities_goes_up_in_parts_and_is_the_same() {
    let wants = wide(40);
    let ask = |child_asks_meanwhile: bool| {
        let mut child = Child::new(0);
        let mut node = leaf(None, &mut child);
        let request = child.request(&wants);
        let _ = node.handle_get_server_capacity(&request, Via::Stream, at(1));
        let (asked, parts) = asks_parent(&mut node, at(10), |node| {
            if child_asks_meanwhile {
                let others = child.request(&many(9));
                let _ = node.handle_get_server_capacity(&others, Via::Stream, at(10));
            }
        });
        assert!(parts > 10 || child_asks_meanwhile, "{parts}");
        node.assert_consistent();
        (node, asked)
    };
    let (_, asked) = ask(false);
    assert_eq!(asked.asks[0].demand, demand(&wants));
    // Changes in between go up with the next request.
    let (mut node, first) = ask(true);
    node.handle_upstream_reply(&answer(&first, AlgorithmKind::PriorityBands), at(11));
    assert_ne!(first.asks[0].demand, demand(&many(9)));
    let (second, _) = asks_parent(&mut node, at(40), |_| ());
    assert_eq!(second.asks[0].demand, demand(&many(9)));
}

/// Returns demand of `priorities` priorities, each of 64 clients with different wants.
fn wide(priorities: i64) -> Wants {
    let clients: Vec<u8> = (0..64).map(|it| it * 3).collect();
    (0..priorities).map(|it| (it, clients.clone())).collect()
}

/// Returns a node that puts in claims one by one, and a child that asks for all of them. The capacity is small.
fn begun(wants: &Wants) -> Node {
    let mut child = Child::new(0);
    let mut node = leaf(Some(1), &mut child);
    let request = child.request(wants);
    let mut call = GetServerCapacityCall::new(&request, Via::Stream);
    assert!(call.next_part(&mut node, at(9)).is_none());
    node
}

#[test]
fn a_request_to_the_parent_waits_for_claims_that_are_on_their_way() {
    let mut node = begun(&wide(3));
    let (asked, parts) = asks_parent(&mut node, at(10), |node| node.assert_consistent());
    assert_eq!(asked.asks[0].demand, demand(&wide(3)));
    assert!(parts > 3, "{parts}");
}

#[test]
fn if_there_are_very_many_it_can_be_read_without_and_goes_up_again() {
    let mut node = begun(&wide(20));
    let (first, _) = asks_parent(&mut node, at(10), |_| ());
    for band in first.asks[0].demand.bands() {
        let points = band.curve.points();
        let (levels, demands): (Vec<f64>, Vec<f64>) =
            points.iter().map(|it| (it.level, it.demand)).unzip();
        let read = DemandCurve::parse(&levels, &demands, band.wants, band.clients);
        assert_eq!(read.as_ref(), Ok(&band.curve));
    }
    let all = demand(&wide(20)).wants();
    assert!(first.asks[0].demand.wants() < all, "some are on their way");
    node.handle_upstream_reply(&answer(&first, AlgorithmKind::PriorityBands), at(10));
    do_due(&mut node, at(10));
    let (second, _) = asks_parent(&mut node, at(12), |_| ());
    assert_eq!(second.asks[0].demand.wants(), all);
}

#[test]
fn a_node_without_holders_wants_nothing_from_its_parent() {
    let mut node = begun(&wide(20));
    let gone = at(9) + LEASE - Duration::from_secs(1);
    // The parent's lease lasts on. The child's lease ends before it.
    let (request, _) = asks_parent(&mut node, at(10), |_| ());
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
