//! What a request costs that names many resources at once.
//!
//! A thousand resources have ten holders each. Each client holds as many consecutive ones as it asks for at once. The
//! clients ask one after the other, so that what a request needs is not what the request before it has just read. Nobody asks for
//! anything else than before, which is what nearly all requests are.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench may panic"
)]

use std::time::Duration;

use divan::Bencher;
use divan::counter::ItemsCount;
use doorward_engine::amount::Amount;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::{Ask, GetCapacity, Has};
use doorward_engine::template::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

const RESOURCES: usize = 1_000;

const HOLDERS: usize = 10;

fn main() {
    divan::main();
}

#[divan::bench(args = [1, 10, 100], sample_count = 200, sample_size = 64)]
fn same(bencher: Bencher, each: usize) {
    let mut clients = Clients::new(each);
    let mut node = clients.settle();
    bencher
        .counter(ItemsCount::new(each))
        .with_inputs(|| clients.next_request())
        .bench_local_values(|(request, now)| {
            let outcome = node.handle_get_capacity(&request, now);
            (request, outcome)
        });
}

/// Clients that take turns.
struct Clients {
    requests: Vec<GetCapacity>,
    next: usize,
    sequence: u64,
    now: Time,
}

impl Clients {
    /// As many as it takes, if each holds so many resources.
    fn new(each: usize) -> Self {
        let clients = RESOURCES * HOLDERS / each;
        let resources: Vec<_> = (0..RESOURCES)
            .map(|it| ResourceId::new(&format!("bench/r-{it:07}")).unwrap())
            .collect();
        let request = |client: usize| {
            let asks = (0..each).map(|number| Ask {
                resource: resources[(client * each + number) % RESOURCES].clone(),
                priority: 0,
                wants: Amount::new(10.0).unwrap(),
                has: None,
            });
            GetCapacity {
                caller: None,
                incarnation: None,
                client: HolderName::new(&format!("bench-client-{client:07}")).unwrap(),
                sequence: None,
                asks: asks.collect(),
            }
        };
        Self {
            requests: (0..clients).map(request).collect(),
            next: 0,
            sequence: 0,
            now: Time::from_secs(1),
        }
    }

    /// A node whose every client has asked often enough to ask for the same.
    fn settle(&mut self) -> Node {
        let templates = Templates::parse(&[TemplateSpec {
            identifier_glob: Some("bench/*".into()),
            capacity: Some(1e6),
            kind: Some(AlgorithmKind::FairShare),
            lease_length: Some(Duration::from_secs(60)),
            refresh_interval: Some(Duration::from_secs(5)),
            learning_mode_duration: Some(Duration::ZERO),
            ..TemplateSpec::default()
        }])
        .unwrap();
        let config = Config {
            refresh_floor: Duration::ZERO,
            ..Config::default()
        };
        let mut node = Node::new(config, templates);
        node.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
        for _ in 0..3 * self.requests.len() {
            let turn = self.next;
            let (request, now) = self.next_request();
            if let Outcome::Served(reply) = node.handle_get_capacity(&request, now) {
                let asks = &mut self.requests[turn].asks;
                assert_eq!(reply.refused, [], "everybody is served");
                for (ask, lease) in asks.iter_mut().zip(reply.leases) {
                    ask.has = Some(Has {
                        granted_by: None,
                        capacity: lease.capacity,
                        expires_in: None,
                    });
                }
            }
        }
        node
    }

    /// The client whose turn it is asks once more.
    fn next_request(&mut self) -> (GetCapacity, Time) {
        let clients = self.requests.len();
        self.sequence += 1;
        self.now = self.now + Duration::from_secs(5) / u32::try_from(clients).unwrap();
        let request = GetCapacity {
            sequence: Some(self.sequence),
            ..self.requests[self.next].clone()
        };
        self.next = (self.next + 1) % clients;
        (request, self.now)
    }
}
