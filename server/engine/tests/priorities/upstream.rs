//! What goes up to the parent of demand that has many priorities.

use doorward_engine::node::upstream_calls::UpstreamRequestCall;

use super::*;

/// What a parent answers that has enough for all.
fn answer(request: &GetServerCapacity) -> GetServerCapacityReply {
    let templates = templates(AlgorithmKind::PriorityBands, CAPACITY);
    let lease = |ask: &ServerAsk| ServerLease {
        resource: ask.resource.clone(),
        capacity: ask.demand.wants(),
        expires_in: LEASE,
        refresh_in: Duration::from_secs(5),
        algorithm: Some(templates.find(&ask.resource).unwrap().algorithm.clone()),
        terms: ParentTerms {
            share: ask.demand.wants(),
            inherited_for: Some(Duration::ZERO),
            ..ParentTerms::default()
        },
        granted_by: None,
        sequence: request.sequence,
        decided: Some(true),
    };
    GetServerCapacityReply {
        leases: request.asks.iter().map(lease).collect(),
        ..GetServerCapacityReply::default()
    }
}

/// A node that has a lease of its parent, by which priorities count.
fn leaf(claims_at_once: Option<u16>, child: &mut Child) -> Node {
    let mut node = node(claims_at_once, true);
    let request = child.request(&vec![(0, vec![1])]);
    let _ = node.handle_get_server_capacity(&request, Via::Stream, at(1));
    let (request, _) = asks_parent(&mut node, at(2), |_| ());
    node.handle_upstream_reply(&answer(&request), at(2));
    do_due(&mut node, at(2));
    node
}

/// What a node asks its parent, with something else between the parts.
fn asks_parent(
    node: &mut Node,
    now: Time,
    mut others: impl FnMut(&mut Node),
) -> (GetServerCapacity, usize) {
    let mut call = UpstreamRequestCall::new(1);
    let mut parts = 1;
    loop {
        if let Some(request) = call.next_part(node, now) {
            return (request.unwrap(), parts);
        }
        others(node);
        parts += 1;
    }
}

#[test]
fn demand_of_many_priorities_goes_up_in_parts_and_is_the_same() {
    let wants: Wants = (0..40)
        .map(|priority| (priority, (0..64).map(|it| it * 3).collect()))
        .collect();
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
    // What has changed in between goes up with the next one.
    let (mut node, first) = ask(true);
    node.handle_upstream_reply(&answer(&first), at(11));
    assert_ne!(first.asks[0].demand, demand(&many(9)));
    let (second, _) = asks_parent(&mut node, at(40), |_| ());
    assert_eq!(second.asks[0].demand, demand(&many(9)));
}

#[test]
fn what_goes_up_while_claims_are_on_their_way_can_be_read_and_goes_up_again() {
    let one = |clients: u8| vec![(0, (0..clients).map(|it| it * 7).collect())];
    let mut child = Child::new(0);
    let mut node = leaf(Some(1), &mut child);
    let request = child.request(&one(30));
    let mut call = GetServerCapacityCall::new(&request, Via::Stream);
    assert!(call.next_part(&mut node, at(9)).is_none());
    let (first, _) = asks_parent(&mut node, at(10), |_| ());
    let band = &first.asks[0].demand.bands()[0];
    let points = band.curve.points();
    let (levels, demands): (Vec<f64>, Vec<f64>) =
        points.iter().map(|it| (it.level, it.demand)).unzip();
    let read = DemandCurve::parse(&levels, &demands, band.wants, band.clients);
    assert_eq!(read.as_ref(), Ok(&band.curve));
    assert!(
        band.wants < demand(&one(30)).wants(),
        "some are on their way"
    );
    node.handle_upstream_reply(&answer(&first), at(10));
    do_due(&mut node, at(10));
    let (second, _) = asks_parent(&mut node, at(12), |_| ());
    assert_eq!(second.asks[0].demand.wants(), demand(&one(30)).wants());
}
