//! Child servers whose clients have many priorities. Their claims come, change and go a few at a time, other holders
//! are served in between, and no share depends on that.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::claim::Claim;
use doorward_engine::claim_index::ClaimIndex;
use doorward_engine::demand::{BandDemand, ServerDemand};
use doorward_engine::demand_curve::{DemandCurve, POINTS_MAX};
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::node::children::GetServerCapacityCall;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::node::parts::InParts;
use doorward_engine::node::{Config, Node};
use doorward_engine::request::server::{
    GetServerCapacity, GetServerCapacityReply, ServerAsk, ServerLease, Via,
};
use doorward_engine::request::{Has, RefusalReason};
use doorward_engine::supply::ParentTerms;
use doorward_engine::template::{AlgorithmKind, Templates};
use doorward_engine::time::Time;
use proptest::prelude::*;

mod upstream;

use crate::asking::{self, amount, holder, served, server_ask, server_request, with_others};
use crate::parents::{LEASE, templates};

const CAPACITY: f64 = 100.0;

const CHILDREN: usize = 3;

/// Wants of the clients below a child, by priority.
type Wants = Vec<(i64, Vec<u8>)>;

fn resource() -> ResourceId {
    asking::resource("database")
}

fn at(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

/// Configures a node that puts in this number of claims at once. None: all of them.
fn config(claims_at_once: Option<u16>, has_parent: bool) -> Config {
    Config {
        refresh_floor: Duration::ZERO,
        has_parent,
        claims_at_once: NonZeroU16::new(claims_at_once.unwrap_or(u16::MAX)).unwrap(),
        ..Config::default()
    }
}

fn master(config: Config) -> Node {
    let templates = match config.has_parent {
        true => Templates::default(),
        false => templates(AlgorithmKind::PriorityBands, CAPACITY),
    };
    asking::master(config, templates)
}

fn node(claims_at_once: Option<u16>, has_parent: bool) -> Node {
    master(config(claims_at_once, has_parent))
}

fn demand(wants: &Wants) -> Arc<ServerDemand> {
    let band = |(priority, wants): &(i64, Vec<u8>)| {
        let mut index = ClaimIndex::default();
        for wants in wants {
            index.insert(Claim::of_client(amount(1.0 + f64::from(*wants))));
        }
        BandDemand {
            priority: *priority,
            clients: index.total_subclients(),
            wants: amount(index.total_wants()),
            curve: DemandCurve::of(&index, POINTS_MAX),
        }
    };
    Arc::new(ServerDemand::new(wants.iter().map(band).collect()))
}

/// Returns wants of twenty priorities, each client with more than the one before.
fn many(step: u8) -> Wants {
    let wants = |priority: u8| (0..5).map(move |client| step * (client + priority % 7));
    let bands = (0..20_u8).map(|priority| (priority.into(), wants(priority).collect()));
    bands.collect()
}

/// State of a child.
struct Child {
    name: HolderName,
    sequence: u64,
    has: Option<Has>,
}

impl Child {
    fn new(number: usize) -> Self {
        Self {
            name: holder(&format!("child-{number}")),
            sequence: 0,
            has: None,
        }
    }

    fn request(&mut self, wants: &Wants) -> GetServerCapacity {
        self.sequence += 1;
        let in_use = self.has.map(|has| Has {
            granted_by: None,
            ..has
        });
        let ask = ServerAsk {
            has: self.has,
            outstanding: in_use,
            ..server_ask(resource(), demand(wants))
        };
        GetServerCapacity {
            sequence: Some(self.sequence),
            ..server_request(self.name.clone(), vec![ask])
        }
    }

    /// Asks, with another call between the parts. Returns the answer, and the number of parts.
    fn asks(
        &mut self,
        node: &mut Node,
        wants: &Wants,
        now: Time,
        others: impl FnMut(&mut Node),
    ) -> (GetServerCapacityReply, usize) {
        let request = self.request(wants);
        let call = GetServerCapacityCall::new(&request, Via::Stream);
        let (answer, parts) = with_others(node, call, now, others);
        let reply = served(answer.unwrap());
        self.has = Some(Has {
            capacity: reply.leases[0].capacity,
            expires_in: Some(reply.leases[0].expires_in),
            granted_by: reply.leases[0].granted_by,
        });
        (reply, parts)
    }
}

fn client_asks(node: &mut Node, client: usize, wants: f64, now: Time) -> f64 {
    let ask = asking::ask(resource(), 7, amount(wants), None);
    let request = asking::request(holder(&format!("client-{client}")), vec![ask]);
    let reply = served(node.handle_get_capacity(&request, now));
    reply.leases[0].capacity.get()
}

fn assert_not_too_much(node: &Node, now: Time) {
    node.assert_consistent();
    for resource in node.snapshot(now).resources {
        assert!(resource.reserved <= CAPACITY, "{}", resource.reserved);
    }
}

/// Handles timers that are due. Returns the number of calls.
fn do_due(node: &mut Node, now: Time) -> usize {
    let is_due = |node: &Node| node.poll_timeout().is_some_and(|it| it.at <= now);
    let mut times = 0;
    while is_due(node) {
        node.handle_timeout(now);
        node.assert_consistent();
        times += 1;
    }
    times
}

/// Grants and terms of a reply, without the refresh intervals.
fn terms(reply: &GetServerCapacityReply) -> Vec<(ResourceId, f64, ParentTerms)> {
    let of = |lease: &ServerLease| {
        let capacity = lease.capacity.get();
        (lease.resource.clone(), capacity, lease.terms.clone())
    };
    reply.leases.iter().map(of).collect()
}

#[test]
fn others_are_served_while_the_claims_of_a_child_are_put_in() {
    let mut node = node(Some(10), false);
    let mut children = [Child::new(0), Child::new(1)];
    let mut served = 0;
    for (turn, child) in [0, 1, 0, 1].into_iter().enumerate() {
        let now = at(1 + turn as u64);
        let wants = many(1 + turn as u8);
        let (_, parts) = children[child].asks(&mut node, &wants, now, |node| {
            client_asks(node, 1 + served % 5, 1.0 + (served % 3) as f64, now);
            served += 1;
            assert_not_too_much(node, now);
        });
        assert!(parts > 5, "{parts}");
        assert_not_too_much(&node, now);
    }
    assert!(served > 20);
}

#[test]
fn a_child_that_gives_up_gets_its_share_when_it_asks_again() {
    let now = at(1);
    let ask = |claims_at_once, gives_up_after: usize| {
        let mut node = node(claims_at_once, false);
        let (mut child, mut other) = (Child::new(0), Child::new(1));
        other.asks(&mut node, &many(3), now, |_| ());
        let request = child.request(&many(1));
        let mut call = GetServerCapacityCall::new(&request, Via::Stream);
        for _ in 0..gives_up_after {
            assert!(call.next_part(&mut node, now).is_none());
        }
        // The next ask waits for the claims on their way, or time puts them in.
        assert_eq!(do_due(&mut node, now) > 0, gives_up_after > 0);
        for _ in 0..4 {
            other.asks(&mut node, &many(3), now, |_| ());
            child.asks(&mut node, &many(1), now, |_| ());
        }
        assert_not_too_much(&node, now);
        child.has.unwrap().capacity
    };
    let expected = ask(None, 0);
    for gives_up_after in 1..5 {
        assert_eq!(ask(Some(5), gives_up_after), expected);
    }
}

#[test]
fn a_child_that_gives_up_does_not_come_back_too_early() {
    let mut config = config(Some(5), false);
    config.refresh_floor = Duration::from_secs(1);
    let mut node = master(config);
    let mut child = Child::new(0);
    let request = child.request(&many(1));
    let mut call = GetServerCapacityCall::new(&request, Via::Poll);
    assert!(call.next_part(&mut node, at(1)).is_none());
    do_due(&mut node, at(1));
    let request = child.request(&many(1));
    let answer = node.handle_get_server_capacity(&request, Via::Poll, at(1));
    let reply = served(answer.unwrap());
    assert_eq!(reply.leases[0].capacity.get(), CAPACITY);
}

#[test]
fn a_child_that_cannot_be_decided_any_more_gets_no_lease_of_zero() {
    let mut node = node(Some(5), false);
    let request = Child::new(0).request(&many(1));
    let mut call = GetServerCapacityCall::new(&request, Via::Stream);
    assert!(call.next_part(&mut node, at(1)).is_none());
    node.handle_templates(Templates::default(), at(1));
    let (answer, _) = with_others(&mut node, call, at(1), |_| ());
    let reply = served(answer.unwrap());
    assert!(reply.leases.is_empty());
    assert_eq!(reply.refused[0].reason, RefusalReason::NotReady);
    node.assert_consistent();
}

#[test]
fn a_new_mastership_between_two_parts_knows_nothing_of_the_claims_of_the_former_one() {
    let mut node = node(Some(5), false);
    let mut child = Child::new(0);
    let mut epochs = 2..3;
    let (reply, _) = child.asks(&mut node, &many(2), at(1), |node| {
        for epoch in epochs.by_ref() {
            node.handle_mastership(Mastership::Unknown, at(1));
            node.handle_mastership(Mastership::Master { epoch: Some(epoch) }, at(1));
        }
    });
    assert_eq!(reply.leases[0].capacity.get(), CAPACITY);
    assert_not_too_much(&node, at(1));
}

#[test]
fn the_claims_of_a_child_that_is_gone_go_a_few_at_a_time() {
    let mut node = node(Some(10), false);
    let mut child = Child::new(0);
    child.asks(&mut node, &many(2), at(1), |_| ());
    // This lease lasts longer than the child.
    assert_eq!(client_asks(&mut node, 1, 5.0, at(300)), 0.0);
    let gone = at(1) + LEASE + Duration::from_secs(1);
    let times = do_due(&mut node, gone);
    assert!(times > 1, "{times}");
    assert_eq!(node.snapshot(gone).resources[0].wants, 5.0);
    assert_eq!(client_asks(&mut node, 1, 5.0, gone), 5.0);
    assert_not_too_much(&node, gone);
}

#[test]
fn no_push_has_the_shares_of_half_of_the_claims() {
    let mut node = node(Some(5), false);
    let (mut first, mut second) = (Child::new(0), Child::new(1));
    first.asks(&mut node, &many(2), at(1), |_| ());
    node.handle_subscription(&first.name, true);
    while node.has_pushes() {
        node.poll_pushes(at(1));
    }
    let mut pushed = Vec::new();
    second.asks(&mut node, &many(2), at(2), |node| {
        pushed.extend(node.poll_pushes(at(2)));
    });
    pushed.extend(node.poll_pushes(at(2)));
    assert_eq!(pushed.len(), 1, "one push tells it to shrink");
    assert_eq!(pushed[0].1.leases[0].capacity.get(), CAPACITY / 2.0);
}

/// Events at a node.
#[derive(Clone, Debug)]
enum Event {
    /// A child asks.
    Asks(usize, Wants),
    /// A client asks.
    ClientAsks(usize, u8),
    /// The capacity changes.
    Capacity(u8),
    /// The algorithm changes.
    Kind(AlgorithmKind),
    /// Time passes, in seconds.
    Passes(u16),
}

fn event() -> impl Strategy<Value = Event> {
    let wants = (0..12_i64, prop::collection::vec(any::<u8>(), 1..5));
    let wants = prop::collection::vec(wants, 0..8);
    prop_oneof![
        6 => (0..CHILDREN, wants).prop_map(|(child, wants)| Event::Asks(child, wants)),
        2 => (0..3_usize, any::<u8>()).prop_map(|(client, wants)| Event::ClientAsks(client, wants)),
        1 => (1..=100_u8).prop_map(Event::Capacity),
        1 => prop::sample::select(vec![AlgorithmKind::FairShare, AlgorithmKind::PriorityBands])
            .prop_map(Event::Kind),
        2 => (1..400_u16).prop_map(Event::Passes),
    ]
}

/// Plays the events. Returns the grants of the node and its children.
fn play(claims_at_once: Option<u16>, events: &[Event]) -> Vec<String> {
    let mut node = node(claims_at_once, false);
    let mut children: Vec<Child> = (0..CHILDREN).map(Child::new).collect();
    let (mut now, mut capacity, mut kind) = (at(1), CAPACITY, AlgorithmKind::PriorityBands);
    let mut course = Vec::new();
    for event in events {
        match event {
            Event::Asks(child, wants) => {
                let (reply, _) =
                    children[*child].asks(&mut node, wants, now, |node| node.assert_consistent());
                course.push(format!("{:?}", terms(&reply)));
            }
            Event::ClientAsks(client, wants) => {
                let capacity = client_asks(&mut node, *client, f64::from(*wants), now);
                course.push(format!("{capacity}"));
            }
            Event::Capacity(to) => capacity = f64::from(*to),
            Event::Kind(to) => kind = *to,
            Event::Passes(seconds) => now = now + Duration::from_secs(u64::from(*seconds)),
        }
        if matches!(event, Event::Capacity(_) | Event::Kind(_)) {
            node.handle_templates(templates(kind, capacity), now);
        }
        do_due(&mut node, now);
        assert_not_too_much(&node, now);
    }
    course
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Without an ask in between.
    #[test]
    fn no_share_depends_on_how_many_claims_are_put_in_at_once(
        events in prop::collection::vec(event(), 1..20),
        claims_at_once in 1..8_u16,
    ) {
        prop_assert_eq!(play(Some(claims_at_once), &events), play(None, &events));
    }
}
