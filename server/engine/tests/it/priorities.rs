//! Child servers whose clients have many priorities: what they get, what is pushed to them, and what goes up.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::claims::{
    BandDemand, Claim, ClaimIndex, DemandCurve, POINTS_MAX, ServerDemand,
};
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::messages::{GetServerCapacity, GetServerCapacityReply, Has, ServerAsk, Via};
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::{AlgorithmKind, Templates};
use doorward_engine::time::Time;
use proptest::prelude::*;

mod upstream;

use crate::asking::{self, amount, holder, served, server_ask, server_request};
use crate::parents::{LEASE, templates};
use crate::whole::Whole as _;

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

fn node(has_parent: bool) -> Node {
    let config = Config {
        refresh_floor: Duration::ZERO,
        has_parent,
        ..Config::default()
    };
    let templates = match has_parent {
        true => Templates::default(),
        false => templates(AlgorithmKind::PriorityBands, CAPACITY),
    };
    asking::master(config, templates)
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

    fn asks(&mut self, node: &mut Node, wants: &Wants, now: Time) -> GetServerCapacityReply {
        let request = self.request(wants);
        let answer = node.handle_get_server_capacity(&request, Via::Stream, now);
        let reply = served(answer.unwrap());
        self.has = Some(Has {
            capacity: reply.leases[0].capacity,
            expires_in: Some(reply.leases[0].expires_in),
            granted_by: reply.leases[0].granted_by,
        });
        reply
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

fn do_due(node: &mut Node, now: Time) {
    while node.poll_timeout().is_some_and(|due| due <= now) {
        node.handle_timeout(now);
        node.assert_consistent();
    }
}

#[test]
fn the_claims_of_a_child_that_is_gone_go_with_it() {
    let mut node = node(false);
    let mut child = Child::new(0);
    child.asks(&mut node, &many(2), at(1));
    // It lasts longer than the child.
    assert_eq!(client_asks(&mut node, 1, 5.0, at(300)), 0.0);
    let gone = at(1) + LEASE + Duration::from_secs(1);
    do_due(&mut node, gone);
    assert_eq!(node.snapshot(gone).resources[0].wants, 5.0);
    assert_eq!(client_asks(&mut node, 1, 5.0, gone), 5.0);
    assert_not_too_much(&node, gone);
}

#[test]
fn a_child_whose_share_shrinks_for_another_one_hears_of_it_once() {
    let mut node = node(false);
    let (mut first, mut second) = (Child::new(0), Child::new(1));
    first.asks(&mut node, &many(2), at(1));
    node.handle_subscription(&first.name, true, at(1));
    while node.has_pushes() {
        node.poll_pushes(at(1));
    }
    second.asks(&mut node, &many(2), at(2));
    let mut pushed = Vec::new();
    while node.has_pushes() {
        pushed.extend(node.poll_pushes(at(2)).children);
    }
    assert_eq!(pushed.len(), 1, "it is to shrink");
    assert_eq!(pushed[0].1.leases[0].capacity.get(), CAPACITY / 2.0);
}

#[test]
fn another_algorithm_finds_all_claims_where_they_are() {
    let mut node = node(false);
    let mut children = [Child::new(0), Child::new(1)];
    for (child, step) in children.iter_mut().zip([1, 3]) {
        child.asks(&mut node, &many(step), at(1));
    }
    for kind in [
        AlgorithmKind::FairShare,
        AlgorithmKind::ProportionalShare,
        AlgorithmKind::PriorityBands,
    ] {
        node.handle_templates(templates(kind, CAPACITY), at(2));
        let mut anew = asking::master(
            Config {
                refresh_floor: Duration::ZERO,
                ..Config::default()
            },
            templates(kind, CAPACITY),
        );
        for (child, step) in children.iter().zip([1, 3]) {
            let mut same = Child::new(0);
            same.name.clone_from(&child.name);
            same.asks(&mut anew, &many(step), at(2));
        }
        let shares = |node: &Node| -> Vec<f64> {
            let children = node.child_snapshots(&resource(), at(2));
            children.iter().map(|child| child.share).collect()
        };
        assert_eq!(shares(&node), shares(&anew), "{kind}");
        assert_not_too_much(&node, at(2));
    }
}

/// An event at a node.
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn grants_never_exceed_the_capacity(
        events in prop::collection::vec(event(), 1..20),
    ) {
        let mut node = node(false);
        let mut children: Vec<Child> = (0..CHILDREN).map(Child::new).collect();
        let (mut now, mut capacity, mut kind) = (at(1), CAPACITY, AlgorithmKind::PriorityBands);
        for event in &events {
            match event {
                Event::Asks(child, wants) => drop(children[*child].asks(&mut node, wants, now)),
                Event::ClientAsks(client, wants) => {
                    client_asks(&mut node, *client, f64::from(*wants), now);
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
    }
}
