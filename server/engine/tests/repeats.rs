//! A request that asks for the same as before, where nothing has changed, is answered without a look at the books of the
//! node: they are right all the same, whatever the request came upon.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]
#![allow(missing_docs, reason = "a test")]

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::{Ask, ClientLease, GetCapacity, Has};
use doorward_engine::template::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;
use proptest::prelude::*;

const LEASE_LENGTH: Duration = Duration::from_secs(60);

/// A root that decides every request, and its clients. Nobody wakes it up when something is due: requests come upon it.
struct World {
    node: Node,
    has: BTreeMap<(u8, u8), Amount>,
    sequence: u64,
    now: Time,
}

impl World {
    fn new() -> Self {
        let spec = TemplateSpec {
            identifier_glob: Some("*".to_owned()),
            capacity: Some(100.0),
            kind: Some(AlgorithmKind::FairShare),
            lease_length: Some(LEASE_LENGTH),
            refresh_interval: Some(Duration::from_secs(5)),
            learning_mode_duration: Some(Duration::ZERO),
            ..TemplateSpec::default()
        };
        let config = Config {
            refresh_floor: Duration::ZERO,
            ..Config::default()
        };
        let mut node = Node::new(config, Templates::parse(&[spec]).unwrap());
        node.handle_mastership(Mastership::Master { epoch: None }, Time::ZERO);
        Self {
            node,
            has: BTreeMap::new(),
            sequence: 0,
            now: Time::from_secs(1),
        }
    }

    /// A client asks for a resource, so long after the last request.
    fn ask(&mut self, client: u8, resource: u8, wants: f64, after: Duration) -> ClientLease {
        self.now = self.now + after;
        self.sequence += 1;
        let has = self.has.get(&(client, resource)).map(|capacity| Has {
            granted_by: None,
            capacity: *capacity,
            expires_in: None,
        });
        let request = GetCapacity {
            caller: None,
            incarnation: None,
            client: HolderName::new(&format!("client {client}")).unwrap(),
            sequence: Some(self.sequence),
            asks: vec![Ask {
                resource: ResourceId::new(&format!("r{resource}")).unwrap(),
                priority: 0,
                wants: Amount::new(wants).unwrap(),
                has,
            }],
        };
        let Outcome::Served(reply) = self.node.handle_get_capacity(&request, self.now) else {
            panic!("it is the master");
        };
        let lease = reply.leases.into_iter().next().unwrap();
        self.has.insert((client, resource), lease.capacity);
        self.node.assert_consistent();
        lease
    }
}

#[test]
fn one_that_comes_when_a_renewed_lease_is_to_be_looked_at_puts_the_resource_where_it_belongs() {
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
        let due = world.node.poll_timeout().unwrap().at;
        assert!(due > world.now, "nothing that is over is to be looked at");
    }
}

proptest! {
    #[test]
    fn whatever_a_request_comes_upon_the_books_are_right(
        asks in prop::collection::vec((0..7_u8, 0..2_u8, 0..8_u8, 0..30_u64), 1..120),
    ) {
        let mut world = World::new();
        for (client, resource, wants, after) in asks {
            // Most of them want the same as ever.
            let wants = if wants == 0 { 40.0 } else { f64::from(10 + client) };
            let lease = world.ask(client, resource, wants, Duration::from_secs(after));
            prop_assert!(lease.expires_in <= LEASE_LENGTH);
        }
    }
}
