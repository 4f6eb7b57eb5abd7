//! Repeated requests. A request with the same ask as before is answered without a new decision while nothing has
//! changed. The sums of the node stay right, whatever state the request finds.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::messages::{ClientLease, GetCapacity, Has, ReleaseCapacity};
use doorward_engine::node::mastership::Mastership;
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;
use proptest::prelude::*;

use crate::asking::{self, holder, parsed, release_request, served, template};

const LEASE_LENGTH: Duration = Duration::from_secs(60);

/// A root that decides every request, and its clients. No timer is handled: requests find the work that is due.
struct World {
    node: Node,
    has: BTreeMap<(u8, u8), Amount>,
    sequence: u64,
    now: Time,
}

/// Returns templates. FAIR_SHARE and PRIORITY_BANDS use different indexes, so claims regroup when one becomes the
/// other.
fn templates(kind: AlgorithmKind, capacity: f64) -> Templates {
    parsed(TemplateSpec {
        lease_length: Some(LEASE_LENGTH),
        ..template("*", kind, capacity)
    })
}

fn client_name(client: u8) -> HolderName {
    holder(&format!("client {client}"))
}

fn resource_id(resource: u8) -> ResourceId {
    asking::resource(&format!("r{resource}"))
}

impl World {
    fn new() -> Self {
        Self::with_floor(Duration::ZERO)
    }

    fn with_floor(refresh_floor: Duration) -> Self {
        let config = Config {
            refresh_floor,
            ..Config::default()
        };
        let mut node = Node::new(config, templates(AlgorithmKind::FairShare, 100.0));
        node.handle_mastership(Mastership::Master { epoch: None }, Time::ZERO);
        Self {
            node,
            has: BTreeMap::new(),
            sequence: 0,
            now: Time::from_secs(1),
        }
    }

    fn advance(&mut self, by: Duration) {
        self.now = self.now + by;
        self.sequence += 1;
    }

    /// Lets a client ask for a resource, this long after the previous call.
    fn ask(&mut self, client: u8, resource: u8, wants: f64, after: Duration) -> ClientLease {
        self.ask_with_priority(client, resource, wants, 0, after)
    }

    fn ask_with_priority(
        &mut self,
        client: u8,
        resource: u8,
        wants: f64,
        priority: i64,
        after: Duration,
    ) -> ClientLease {
        self.advance(after);
        let has = self.has.get(&(client, resource)).map(|capacity| Has {
            granted_by: None,
            capacity: *capacity,
            expires_in: None,
        });
        let request = GetCapacity {
            sequence: Some(self.sequence),
            ..asking::request(
                client_name(client),
                vec![asking::ask(
                    resource_id(resource),
                    priority,
                    Amount::new(wants).unwrap(),
                    has,
                )],
            )
        };
        let reply = served(self.node.handle_get_capacity(&request, self.now));
        let lease = reply.leases.into_iter().next().unwrap();
        self.has.insert((client, resource), lease.capacity);
        self.node.assert_consistent();
        lease
    }

    /// Lets a client release a lease.
    fn release(&mut self, client: u8, resource: u8, after: Duration) {
        self.advance(after);
        let request = ReleaseCapacity {
            sequence: Some(self.sequence),
            ..release_request(client_name(client), vec![resource_id(resource)])
        };
        self.node.handle_release_capacity(&request, self.now);
        self.has.remove(&(client, resource));
        self.node.assert_consistent();
    }
}

#[test]
fn a_request_at_the_old_expiry_of_a_renewed_lease_schedules_the_resource_again() {
    let mut world = World::new();
    let second = Duration::from_secs(1);
    for _ in 0..2 {
        world.ask(1, 1, 10.0, second);
        world.ask(2, 1, 10.0, second);
    }
    for _ in 0..20 {
        let lease = world.ask(1, 1, 10.0, 7 * second);
        assert_eq!(lease.capacity.get(), 10.0);
        world.ask(2, 1, 10.0, second);
        let due = world.node.poll_timeout().unwrap();
        assert!(due > world.now, "no timer of the past is due");
    }
}

#[test]
fn a_request_at_the_expiry_of_a_released_lease_finds_the_resource_scheduled() {
    let mut world = World::new();
    let second = Duration::from_secs(1);
    world.ask(1, 1, 10.0, second);
    world.ask(2, 1, 10.0, second);
    world.release(1, 1, second);
    world.ask(2, 1, 10.0, second);
    world.ask(2, 1, 10.0, 30 * second);
    // The released lease would have ended half a second ago, and the first lease of the other client as well.
    let lease = world.ask(2, 1, 10.0, Duration::from_millis(27_500));
    assert_eq!(lease.capacity.get(), 10.0);
    let due = world.node.poll_timeout().unwrap();
    assert!(due > world.now, "no timer of the past is due");
}

#[test]
fn a_request_is_repeated_until_something_changes() {
    let mut world = World::new();
    let second = Duration::from_secs(1);
    let mut check = |client, wants, is_repeat: bool| {
        let before = world.node.counters();
        world.ask(client, 1, wants, second);
        let after = world.node.counters();
        assert_eq!(after.decisions - before.decisions, 1);
        let repeats = after.repeats - before.repeats;
        assert_eq!(repeats == 1, is_repeat, "{client} wants {wants}");
    };
    // The first decision changes the state for other decisions. The second one is the first that changes nothing.
    for _ in 0..2 {
        check(1, 10.0, false);
        check(2, 10.0, false);
    }
    for client in [1, 2, 1] {
        check(client, 10.0, true);
    }
    check(2, 20.0, false);
    check(1, 10.0, false);
    check(2, 20.0, false);
    for (client, wants) in [(1, 10.0), (2, 20.0), (1, 10.0)] {
        check(client, wants, true);
    }
}

#[test]
fn an_early_request_that_changes_nothing_keeps_the_expiry_of_its_lease() {
    let second = Duration::from_secs(1);
    let mut world = World::with_floor(second);
    for _ in 0..3 {
        world.ask(1, 1, 10.0, second);
    }
    let before = world.node.counters();
    assert_eq!(before.repeats, 1);
    let early = Duration::from_millis(100);
    let lease = world.ask(1, 1, 10.0, early);
    assert_eq!(lease.expires_in, LEASE_LENGTH - early);
    assert_eq!(world.node.counters().repeats, before.repeats);
}

/// Events at the node.
#[derive(Clone, Copy, Debug)]
enum Step {
    Ask(u8, u8, u8, i64),
    Release(u8, u8),
    Timeout,
    Templates(bool, u8),
}

fn steps() -> impl Strategy<Value = Vec<(Step, u64)>> {
    let ask = (0..7_u8, 0..2_u8, 0..8_u8, 0..12_i64)
        .prop_map(|(client, resource, wants, other)| Step::Ask(client, resource, wants, other));
    let step = prop_oneof![
        30 => ask,
        3 => (0..7_u8, 0..2_u8).prop_map(|(client, resource)| Step::Release(client, resource)),
        2 => Just(Step::Timeout),
        1 => (any::<bool>(), 1..4_u8).prop_map(|(bands, capacity)| Step::Templates(bands, capacity)),
    ];
    prop::collection::vec((step, 0..30_u64), 1..120)
}

proptest! {
    #[test]
    fn the_sums_are_right_whatever_state_a_request_finds(steps in steps()) {
        let mut world = World::new();
        for (step, after) in steps {
            let after = Duration::from_secs(after);
            match step {
                Step::Ask(client, resource, wants, other) => {
                    // Most requests have the same wants as always, with the same priority.
                    let wants = if wants == 0 { 40.0 } else { f64::from(10 + client) };
                    let priority = if other == 0 { 7 } else { i64::from(client % 3) };
                    let lease = world.ask_with_priority(client, resource, wants, priority, after);
                    prop_assert!(lease.expires_in <= LEASE_LENGTH);
                }
                Step::Release(client, resource) => world.release(client, resource, after),
                Step::Timeout => {
                    world.advance(after);
                    world.node.handle_timeout(world.now);
                }
                Step::Templates(bands, capacity) => {
                    let kind = if bands { AlgorithmKind::PriorityBands } else { AlgorithmKind::FairShare };
                    world.advance(after);
                    world.node.handle_templates(templates(kind, 50.0 * f64::from(capacity)), world.now);
                }
            }
            world.node.assert_consistent();
        }
    }
}
