//! Servers whose clocks are wrong by more than everybody allows for, and say so.
//!
//! Times are true ones, in seconds; a clock that is 8.3 % fast shows 1.083 times as much, as chrony
//! makes it while it corrects the time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::server::Via;
use doorward_engine::request::{Ask, GetCapacity, Has, Lease};
use doorward_engine::template::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;
use doorward_engine::tolerance::Tolerance;

const FAST: f64 = 1.083;
const SLOW: f64 = 0.917;

/// What a client takes off a lease.
const CLIENTS: f64 = 0.999;

/// A node, and how fast its clock is.
struct Server {
    node: Node,
    speed: f64,
}

impl Server {
    fn new(name: &str, parent: Option<&str>, speed: f64, tolerance: f64, learning: u64) -> Self {
        let config = Config {
            name: name.to_owned(),
            has_parent: parent.is_some(),
            refresh_floor: Duration::ZERO,
            clock_tolerance: Tolerance::of_part(tolerance).unwrap(),
            ..Config::default()
        };
        let templates = Templates::parse(&[TemplateSpec {
            identifier_glob: Some("r".to_owned()),
            capacity: Some(100.0),
            kind: Some(AlgorithmKind::FairShare),
            lease_length: Some(Duration::from_secs(60)),
            refresh_interval: Some(Duration::from_secs(58)),
            learning_mode_duration: Some(Duration::from_secs(learning)),
            ..TemplateSpec::default()
        }]);
        let mut node = Node::new(config, templates.unwrap());
        node.handle_mastership(Mastership::Master { epoch: None }, Time::ZERO);
        Self { node, speed }
    }

    fn shows(&self, at: f64) -> Time {
        Time::ZERO + Duration::from_secs_f64(at * self.speed)
    }

    /// What a client gets that wants everything and has nothing, or so much for so long.
    fn gets(&mut self, client: &str, has: Option<(f64, f64)>, at: f64) -> Option<Lease> {
        let has = has.map(|(capacity, lasts)| Has {
            expires_in: Some(Duration::from_secs_f64(lasts)),
            ..Has::untimed(Amount::new(capacity).unwrap())
        });
        let request = GetCapacity {
            caller: None,
            client: HolderName::new(client).unwrap(),
            sequence: None,
            incarnation: None,
            asks: vec![Ask {
                resource: ResourceId::new("r").unwrap(),
                priority: 0,
                wants: Amount::new(100.0).unwrap(),
                has,
            }],
        };
        let now = self.shows(at);
        self.node.handle_timeout(now);
        match self.node.handle_get_capacity(&request, now) {
            Outcome::Served(reply) => reply.leases.first().cloned(),
            other => panic!("{other:?}"),
        }
    }

    /// Asks its parent, and is answered at once.
    fn refresh(&mut self, parent: &mut Self, at: f64) {
        let now = self.shows(at);
        self.node.handle_timeout(now);
        let request = self.node.poll_upstream_request(1, now).unwrap();
        let answer =
            parent
                .node
                .handle_get_server_capacity(&request, Via::Stream, parent.shows(at));
        let Ok(Outcome::Served(reply)) = answer else {
            panic!("{answer:?}");
        };
        self.node.handle_upstream_reply(&reply, now);
    }
}

/// When a client stops that got the lease at that time.
fn stops(lease: &Lease, at: f64) -> f64 {
    at + lease.expires_in.as_secs_f64() * CLIENTS
}

/// The first moment from which on a newcomer gets all, looked for in tenths of a second.
fn all_is_free(server: &mut Server, from: f64) -> f64 {
    let mut tenths = (from * 10.0).ceil();
    loop {
        let at = tenths / 10.0;
        let lease = server.gets("newcomer", None, at);
        if lease.is_some_and(|lease| lease.capacity.get() == 100.0) {
            return at;
        }
        assert!(tenths < 2_000.0, "never");
        tenths += 1.0;
    }
}

#[test]
fn a_fast_server_that_says_so_frees_no_lease_before_its_holder_has_stopped() {
    for (tolerance, is_safe) in [(0.001, false), (0.1, true)] {
        let mut root = Server::new("root", None, FAST, tolerance, 0);
        let lease = root.gets("first", None, 1.0).unwrap();
        assert_eq!(lease.capacity.get(), 100.0);
        assert!(lease.refresh_in < lease.expires_in, "{lease:?}");
        let free = all_is_free(&mut root, 1.0);
        let stops = stops(&lease, 1.0);
        assert_eq!(stops <= free, is_safe, "{tolerance}: {stops} {free}");
    }
}

#[test]
fn a_fast_root_that_says_so_learns_until_earlier_leases_are_over() {
    for (tolerance, is_safe) in [(0.001, false), (0.1, true)] {
        // A good predecessor gave a whole lease just before this one began.
        let mut root = Server::new("root", None, FAST, tolerance, 60);
        let free = all_is_free(&mut root, 0.0);
        assert_eq!(60.0 * CLIENTS <= free, is_safe, "{tolerance}: {free}");
        // It confirms what a holder says that it has, for as long as it says; then the holder is gone.
        let mut root = Server::new("root", None, FAST, tolerance, 20);
        let lease = root.gets("first", Some((100.0, 59.0)), 1.0).unwrap();
        assert_eq!(lease.capacity.get(), 100.0);
        let free = all_is_free(&mut root, 1.0);
        let holder_stops = 60.0 * CLIENTS;
        assert_eq!(holder_stops <= free, is_safe, "{tolerance}: {free}");
    }
}

#[test]
fn no_lease_outlives_the_one_it_was_cut_from_whichever_clock_is_wrong() {
    for (of_root, of_leaf, tolerances, is_safe) in [
        (1.0, SLOW, (0.001, 0.001), false),
        (1.0, SLOW, (0.001, 0.1), true),
        (FAST, 1.0, (0.001, 0.001), false),
        (FAST, 1.0, (0.1, 0.001), true),
        (FAST, SLOW, (0.1, 0.1), true),
        (SLOW, FAST, (0.1, 0.1), true),
    ] {
        let mut root = Server::new("root", None, of_root, tolerances.0, 0);
        let mut leaf = Server::new("leaf", Some("root"), of_leaf, tolerances.1, 0);
        assert!(leaf.gets("c", None, 1.0).is_none(), "it has to ask first");
        leaf.refresh(&mut root, 1.0);
        // The client comes as late as it can. The leaf is cut off from its parent.
        let mut last = None;
        for tenths in 10..1_000 {
            let at = f64::from(tenths) / 10.0;
            if let Some(lease) = leaf.gets("c", None, at)
                && lease.capacity.get() == 100.0
            {
                last = Some(stops(&lease, at));
            }
        }
        let free = all_is_free(&mut root, 1.0);
        let last = last.unwrap();
        let what = format!("{of_root} {of_leaf} {tolerances:?}: {last} {free}");
        assert_eq!(last <= free, is_safe, "{what}");
    }
}

#[test]
fn a_slow_leaf_that_says_so_tells_a_learning_parent_of_all_the_time_it_has() {
    for (tolerance, is_safe) in [(0.001, false), (0.1, true)] {
        let mut root = Server::new("root", None, 1.0, 0.001, 0);
        let mut leaf = Server::new("leaf", Some("root"), SLOW, tolerance, 0);
        assert!(leaf.gets("c", None, 1.0).is_none(), "it has to ask first");
        leaf.refresh(&mut root, 1.0);
        // What the leaf says of its own lease, and when that is over by its clock.
        let now = leaf.shows(4.0);
        leaf.node.handle_upstream_lost(now);
        let request = leaf.node.poll_upstream_request(2, now).unwrap();
        let says = request.asks[0].has.unwrap().expires_in.unwrap();
        let ends = leaf.node.upstream_leases_end(now).unwrap();
        let really = ends.since(now).as_secs_f64() / SLOW;
        // The parent adds a thousandth.
        let counted = says.as_secs_f64() * 1.001;
        assert_eq!(
            really <= counted,
            is_safe,
            "{tolerance}: {really} {counted}"
        );
    }
}
