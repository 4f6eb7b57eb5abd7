//! What goes up to the parent of demand that has many priorities.

use super::*;
use crate::parents::answer;

/// A node that has a lease of its parent, by which priorities count.
fn leaf(claims_at_once: Option<u16>, child: &mut Child) -> Node {
    let mut node = node(claims_at_once, true);
    let request = child.request(&vec![(0, vec![1])]);
    let _ = node.handle_get_server_capacity(&request, Via::Stream, at(1));
    let request = asks_parent(&mut node, at(2));
    node.handle_upstream_reply(&answer(&request, AlgorithmKind::PriorityBands), at(2));
    do_due(&mut node, at(2));
    node
}

fn asks_parent(node: &mut Node, now: Time) -> GetServerCapacity {
    node.poll_upstream_request(1, now).unwrap()
}

#[test]
fn demand_of_many_priorities_goes_up_as_it_is() {
    let wants = wide(40);
    let mut child = Child::new(0);
    let mut node = leaf(None, &mut child);
    let request = child.request(&wants);
    let _ = node.handle_get_server_capacity(&request, Via::Stream, at(1));
    let asked = asks_parent(&mut node, at(10));
    assert_eq!(asked.asks[0].demand, demand(&wants));
    node.assert_consistent();
}

/// Demand at `priorities` priorities, each of 64 clients that want different amounts.
fn wide(priorities: i64) -> Wants {
    let clients: Vec<u8> = (0..64).map(|it| it * 3).collect();
    (0..priorities).map(|it| (it, clients.clone())).collect()
}

#[test]
fn who_has_no_holders_any_more_gives_all_back() {
    let mut child = Child::new(0);
    let mut node = leaf(Some(1), &mut child);
    let request = child.request(&wide(20));
    let _ = node.handle_get_server_capacity(&request, Via::Stream, at(9));
    let gone = at(9) + LEASE - Duration::from_secs(1);
    // The parent's lease lasts on; the child's ends before it.
    let request = asks_parent(&mut node, at(10));
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
