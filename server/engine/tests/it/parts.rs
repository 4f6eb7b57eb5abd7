//! Messages that name many resources, one resource a call: whatever happens between two calls, each resource is
//! answered as if it had been asked for alone, and there is never too much.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Poll;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::messages::{
    GetCapacity, GetCapacityReply, GetServerCapacity, GetServerCapacityReply, Has, NodeEvent,
    RefusalReason, ReleaseCapacity, Released, Via,
};
use doorward_engine::node::asking::Answers;
use doorward_engine::node::children::Pushes;
use doorward_engine::node::mastership::Outcome;
use doorward_engine::node::reload::PreparedTemplates;
use doorward_engine::node::upstream::UpstreamAnswered;
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::{AlgorithmKind, Templates};
use doorward_engine::time::Time;
use proptest::prelude::*;

mod masterships;

use crate::asking::{self, amount, do_due, master, release_request, served, with_others};
use crate::parents::{LEASE, answer, templates};
use crate::whole::Whole as _;

const CAPACITY: f64 = 100.0;

fn id(number: usize) -> ResourceId {
    asking::resource(&format!("r{number:03}"))
}

fn name(number: usize) -> HolderName {
    asking::holder(&format!("holder-{number}"))
}

fn node(has_parent: bool) -> Node {
    let config = Config {
        refresh_floor: Duration::ZERO,
        has_parent,
        ..Config::default()
    };
    let templates = match has_parent {
        true => Templates::default(),
        false => templates(AlgorithmKind::FairShare, CAPACITY),
    };
    master(config, templates)
}

fn at(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

fn asks(client: usize, resources: &[usize], wants: f64) -> GetCapacity {
    let priority = (client % 3) as i64;
    let wants = |number: usize| amount(wants + number as f64);
    let ask = |number: &usize| asking::ask(id(*number), priority, wants(*number), None);
    asking::request(name(client), resources.iter().map(ask).collect())
}

fn release(client: usize, resources: &[usize]) -> ReleaseCapacity {
    let ids = resources.iter().map(|number| id(*number));
    release_request(name(client), ids.collect())
}

fn assert_not_too_much(node: &Node, now: Time) {
    node.assert_consistent();
    let resources = node.snapshot(now).resources;
    assert!(resources.iter().all(|it| it.reserved <= CAPACITY));
}

/// A child server that asks for so many resources.
fn child_asks(child: &str, resources: usize, wants: f64) -> GetServerCapacity {
    // The request of a node with one client.
    let mut below = node(true);
    let all: Vec<usize> = (0..resources).collect();
    below.handle_get_capacity(&asks(0, &all, wants), at(1));
    let mut request = below.poll_upstream_request(1, at(10)).unwrap();
    request.server = asking::holder(child);
    request
}

/// A node with that many children which hear of changes. The first ones have more than their share.
fn with_children(children: usize, resources: usize) -> Node {
    let mut node = node(false);
    for child in 0..children {
        let request = child_asks(&format!("child-{child}"), resources, 50.0);
        node.handle_subscription(&request.server, true, at(10));
        let reply = node.handle_get_server_capacity(&request, Via::Stream, at(10));
        assert!(reply.is_ok());
    }
    node
}

/// Answers a request of a client, with something else between two calls.
fn client_with_others(
    node: &mut Node,
    request: &GetCapacity,
    now: Time,
    others: impl FnMut(&mut Node),
) -> (Outcome<GetCapacityReply>, usize) {
    let mut answers = Answers::to_client(request);
    let next = |node: &mut Node| node.answer_client_next(request, &mut answers, now);
    with_others(node, next, others)
}

/// Brings an answer of the parent into force, with something else between two calls.
fn reply_with_others(
    node: &mut Node,
    reply: &GetServerCapacityReply,
    now: Time,
    others: impl FnMut(&mut Node),
) -> (bool, usize) {
    let mut answered = UpstreamAnswered::default();
    let next = |node: &mut Node| node.upstream_reply_next(reply, &mut answered, now);
    with_others(node, next, others)
}

/// Decides what to ask the parent, with something else between two calls.
fn request_with_others(
    node: &mut Node,
    now: Time,
    others: impl FnMut(&mut Node),
) -> (Option<GetServerCapacity>, usize) {
    let mut begun = node.begin_upstream_request(7, now).unwrap();
    let next = |node: &mut Node| node.upstream_request_next(&mut begun, now);
    with_others(node, next, others)
}

/// Decides what to push, with something else between two calls.
fn pushes_with_others(
    node: &mut Node,
    now: Time,
    others: impl FnMut(&mut Node),
) -> (BTreeMap<HolderName, GetServerCapacityReply>, usize) {
    let mut pushes = Pushes::default();
    let (pushed, calls) = with_others(node, |node| node.push_next(&mut pushes, now), others);
    (pushed.children, calls)
}

#[test]
fn a_request_of_a_thousand_resources_takes_a_thousand_calls() {
    let mut node = node(false);
    let many: Vec<usize> = (0..1_000).collect();
    let (reply, calls) = client_with_others(&mut node, &asks(0, &many, 1.0), at(2), |_| {});
    assert_eq!(served(reply).leases.len(), 1_000);
    assert_eq!(calls, 1_000);
    let request = release(0, &many);
    let mut released = Vec::new();
    let next = |node: &mut Node| node.release_next(&request, &mut released, at(3));
    let (released, calls) = with_others(&mut node, next, |_| {});
    assert_eq!(served(released), vec![Released::Freed; 1_000]);
    assert_eq!(calls, 1_000);
    assert_eq!(node.resources_count(), 0);
}

#[test]
fn each_resource_that_begins_to_learn_by_an_answer_of_the_parent_is_reported() {
    let mut node = node(true);
    let all: Vec<usize> = (0..100).collect();
    node.handle_get_capacity(&asks(0, &all, 1.0), at(1));
    let request = node.poll_upstream_request(1, at(1)).unwrap();
    let mut reply = answer(&request, AlgorithmKind::FairShare);
    for lease in &mut reply.leases {
        lease.terms.inherited_for = None;
        lease.algorithm.as_mut().unwrap().learning_mode_duration = Duration::from_secs(60);
    }
    let began_to_learn = |node: &mut Node| {
        let events = std::iter::from_fn(|| node.poll_event());
        let began = |event: &NodeEvent| matches!(event, NodeEvent::LearningBegan { .. });
        events.filter(began).collect::<Vec<_>>()
    };
    assert_eq!(began_to_learn(&mut node), []);
    node.handle_upstream_reply(&reply, at(1));
    // Since mastership began.
    let left = Duration::from_secs(59);
    let ids = all.iter().map(|number| id(*number));
    let expected = ids.map(|resource| NodeEvent::LearningBegan { resource, left });
    assert!(began_to_learn(&mut node).into_iter().eq(expected));
    node.handle_upstream_reply(&reply, at(2));
    assert_eq!(began_to_learn(&mut node), [], "they learn already");
}

#[test]
fn a_request_to_the_parent_and_its_answer_one_by_one_are_those_of_the_whole() {
    let (mut whole, mut single) = (node(true), node(true));
    let all: Vec<usize> = (0..300).collect();
    for node in [&mut whole, &mut single] {
        node.handle_get_capacity(&asks(0, &all, 1.0), at(1));
    }
    let expected = whole.poll_upstream_request(7, at(10)).unwrap();
    // A resource that is asked for the first time in between is due later.
    let (request, calls) = request_with_others(&mut single, at(10), |node| {
        node.handle_get_capacity(&asks(1, &[999], 1.0), at(10));
    });
    let request = request.unwrap();
    assert!(calls >= 300, "{calls}");
    let of = |request: &GetServerCapacity| {
        let asks = request.asks.iter();
        let asks = asks.map(|ask| (ask.resource.clone(), ask.demand.wants()));
        (request.sequence, request.height, asks.collect::<Vec<_>>())
    };
    assert_eq!(of(&request), of(&expected));

    let reply = answer(&request, AlgorithmKind::FairShare);
    whole.handle_upstream_reply(&reply, at(10));
    let (is_in_force, calls) = reply_with_others(&mut single, &reply, at(10), |_| {});
    assert!(is_in_force && calls >= 300, "{calls}");
    for node in [&mut whole, &mut single] {
        node.assert_consistent();
        let asks = asks(0, &all, 1.0);
        let reply = served(node.handle_get_capacity(&asks, at(11)));
        let granted = reply.leases.iter().map(|lease| lease.capacity.get());
        let wanted = asks.asks.iter().map(|ask| ask.wants.get());
        assert!(granted.eq(wanted), "all have what they want");
    }
}

#[test]
fn pushes_one_by_one_reach_every_child_once_for_each_resource_that_changed() {
    let resources = 5;
    let mut node = with_children(20, resources);
    let mut heard = BTreeSet::new();
    let (pushes, calls) = pushes_with_others(&mut node, at(11), |_| {});
    assert!(calls > 100, "{calls}");
    for (child, reply) in pushes {
        for lease in reply.leases {
            assert!(heard.insert((child.clone(), lease.resource)), "twice");
        }
    }
    let first = asking::holder("child-0");
    let of_first = (0..resources).map(|number| (first.clone(), id(number)));
    assert!(of_first.into_iter().all(|it| heard.contains(&it)));
    assert_not_too_much(&node, at(11));
    assert!(!node.has_pushes());
}

#[test]
fn a_change_between_two_calls_is_pushed_afterwards() {
    let mut node = with_children(40, 1);
    let mut others = vec![child_asks("another", 1, 50.0)];
    let (_, calls) = pushes_with_others(&mut node, at(11), |node| {
        for request in others.drain(..) {
            let reply = node.handle_get_server_capacity(&request, Via::Stream, at(11));
            assert!(reply.is_ok());
        }
    });
    assert!(calls > 1, "it came in between");
    let pushes = node.poll_pushes(at(12));
    assert!(
        !pushes.children.is_empty(),
        "each has less since the other one came"
    );
    assert!(!node.has_pushes());
}

/// An event between two calls.
#[derive(Clone, Debug)]
enum Meanwhile {
    Asks(usize, usize, f64),
    Releases(usize, usize),
    Reload(AlgorithmKind),
    Timeout,
}

fn meanwhile() -> impl Strategy<Value = Meanwhile> {
    let (client, resource) = (0..5_usize, 0..60_usize);
    prop_oneof![
        (client.clone(), resource.clone(), 0.0..100.0)
            .prop_map(|(client, resource, wants)| Meanwhile::Asks(client, resource, wants)),
        (client, resource).prop_map(|(client, resource)| Meanwhile::Releases(client, resource)),
        prop::sample::select(vec![
            AlgorithmKind::FairShare,
            AlgorithmKind::ProportionalShare,
            AlgorithmKind::PriorityBands,
        ])
        .prop_map(Meanwhile::Reload),
        Just(Meanwhile::Timeout),
    ]
}

fn play(node: &mut Node, what: &Meanwhile, now: Time) {
    match what {
        Meanwhile::Asks(client, resource, wants) => {
            node.handle_get_capacity(&asks(*client, &[*resource], *wants), now);
        }
        Meanwhile::Releases(client, resource) => {
            node.handle_release_capacity(&release(*client, &[*resource]), now);
        }
        Meanwhile::Reload(kind) => {
            let prepared =
                PreparedTemplates::new(node.active_templates(), templates(*kind, CAPACITY));
            node.handle_prepared_templates(prepared, now).unwrap();
        }
        Meanwhile::Timeout => node.handle_timeout(now),
    }
}

/// Returns each resource's grant or refusal.
fn outcome(reply: &GetCapacityReply) -> Vec<(ResourceId, Result<Amount, RefusalReason>)> {
    let (granted, refused) = (reply.leases.iter(), reply.refused.iter());
    let granted = granted.map(|it| (it.resource.clone(), Ok(it.capacity)));
    let refused = refused.map(|it| (it.resource.clone(), Err(it.reason)));
    granted.chain(refused).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Of one request and one request for each of its resources, with the same in between.
    #[test]
    fn a_request_of_many_resources_is_a_request_for_each(
        before in prop::collection::vec(meanwhile(), 0..60),
        between in prop::collection::vec(meanwhile(), 0..30),
        resources in prop::sample::subsequence((0..60).collect::<Vec<usize>>(), 1..60).prop_shuffle(),
        wants in 0.0..100.0,
    ) {
        let (mut whole, mut single) = (node(false), node(false));
        for node in [&mut whole, &mut single] {
            before.iter().for_each(|it| play(node, it, at(1)));
        }
        let request = asks(0, &resources, wants);
        let mut answers = Answers::to_client(&request);
        let mut meanwhile = between.iter();
        let mut asked = 0;
        let reply = loop {
            let before = whole.snapshot(at(2)).counters;
            let reply = whole.answer_client_next(&request, &mut answers, at(2));
            let after = whole.snapshot(at(2)).counters;
            let done = after.decisions + after.refused - before.decisions - before.refused;
            prop_assert_eq!(done, 1);
            let one = asks(0, &resources[asked..=asked], wants);
            single.handle_get_capacity(&one, at(2));
            asked += 1;
            if let Poll::Ready(reply) = reply {
                break served(reply);
            }
            if let Some(it) = meanwhile.next() {
                play(&mut whole, it, at(2));
                play(&mut single, it, at(2));
            }
            assert_not_too_much(&whole, at(2));
        };
        prop_assert_eq!(asked, resources.len());
        prop_assert_eq!(outcome(&reply).len(), resources.len());
        // Both come to the same.
        for node in [&mut whole, &mut single] {
            do_due(node, at(2));
        }
        assert_not_too_much(&whole, at(2));
        for client in 0..5 {
            for number in 0..60 {
                let lease = |node: &Node| {
                    let leases = node.lease_snapshots(&id(number), 10, at(2));
                    let of = leases.into_iter().find(|it| it.holder.name == name(client));
                    of.map(|it| (it.wants(), it.granted, it.reserved))
                };
                prop_assert_eq!(lease(&whole), lease(&single), "{} of {}", client, number);
            }
        }
    }

    /// Holders that reported leases of a predecessor, of which the first answer of the parent says when they end.
    #[test]
    fn leases_of_predecessors_end_in_time_whatever_happens_while_they_are_ended(
        holders in 65..400_usize,
        touched in prop::collection::vec((0..400_usize, any::<bool>()), 0..20),
    ) {
        let mut node = node(true);
        for holder in 0..holders {
            let mut request = asks(holder, &[0], 1.0);
            request.asks[0].has = Some(Has {
                capacity: amount(1.0),
                expires_in: Some(2 * LEASE),
                granted_by: None,
            });
            node.handle_get_capacity(&request, at(1));
        }
        let request = node.poll_upstream_request(1, at(10)).unwrap();
        let mut reply = answer(&request, AlgorithmKind::FairShare);
        // The last lease of the predecessor ends when leases do that are granted now.
        reply.leases[0].terms.inherited_for = Some(LEASE);
        node.handle_upstream_reply(&reply, at(10));
        for (holder, asks_again) in touched {
            let holder = holder % holders;
            if asks_again {
                node.handle_get_capacity(&asks(holder, &[0], 1.0), at(11));
            } else {
                node.handle_release_capacity(&release(holder, &[0]), at(11));
            }
            node.assert_consistent();
        }
        let calls = do_due(&mut node, at(11));
        prop_assert!(calls < 1_000, "{}", calls);
        node.assert_consistent();
        // Clocks may be wrong by a little.
        let last = at(11) + LEASE + LEASE / 8;
        do_due(&mut node, last);
        let left = node.lease_snapshots(&id(0), holders, last);
        prop_assert!(left.is_empty(), "{:?} lasts longer", left.first());
    }
}
