//! The longest single call of a node for what an operator, an election or an accident does to all of it: whoever
//! calls holds the node's lock meanwhile, and every request waits.
//!
//! Two nodes are filled: one with 10,000 resources of 100 leases each, one with a single resource of a million. Each is
//! then reloaded with 5,000 globs before the one that matches, divided by another kind of algorithm, loses and wins its
//! mastership, and lets all leases end. What is printed of each: how many calls that took, and how long they lasted.
//! What is not done while the lock is held (preparing templates, dropping what is forgotten) stands apart. On a machine
//! that does something else, too, the longest call is the one that was interrupted for the longest.
//!
//! `cargo bench -p doorward-engine --bench stalls`; with `-- --test`, a few leases only.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench may panic, and prints what it measures"
)]
#![allow(clippy::disallowed_methods, reason = "it measures how long calls take")]

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use doorward_engine::admission::Rate;
use doorward_engine::amount::Amount;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::reload::PreparedTemplates;
use doorward_engine::node::{Config, Node};
use doorward_engine::request::{Ask, GetCapacity};
use doorward_engine::template::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

const LEASE: Duration = Duration::from_secs(60);

/// Leases, or holders of one, that are dropped by one call.
const PIECES: usize = 256;

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let (resources, leases, most, globs) = if is_test {
        (100, 3, 2_000, 50)
    } else {
        (10_000, 100, 1_000_000, 5_000)
    };
    println!("{resources} resources of {leases} leases each; {globs} globs before the match");
    play(resources, leases, globs);
    println!("\none resource of {most} leases; {globs} globs before the match");
    play(1, most, globs);
}

/// Everything that happens to one node.
fn play(resources: usize, leases: usize, globs: usize) {
    let started = Time::from_secs(1_000);
    let mut node = filled(resources, leases, globs, started);
    let now = started + Duration::from_secs(1);

    search(globs);
    reload(
        &mut node,
        "reload",
        &templates(globs, AlgorithmKind::FairShare, 2.0),
        now,
    );
    let by_priority = templates(globs, AlgorithmKind::PriorityBands, 2.0);
    reload(&mut node, "changed kind", &by_priority, now);

    let mut expiry = Calls::new("expiry of all");
    let later = started + 2 * LEASE;
    expiry.drain(&mut node, later);
    expiry.print();
    drop_garbage(&mut node, "  dropped elsewhere");
    assert_eq!(node.resources_count(), 0, "every lease has ended");

    let mut node = filled(resources, leases, globs, started);
    let mut loss = Calls::new("loss of mastership");
    loss.call(|| node.handle_mastership(Mastership::Unknown, now));
    loss.print();
    drop_garbage(&mut node, "  dropped elsewhere");

    let mut node = filled(resources, leases, globs, started);
    let mut gain = Calls::new("gain of mastership");
    gain.call(|| node.handle_mastership(Mastership::Master { epoch: Some(2) }, now));
    gain.print();
    drop_garbage(&mut node, "  dropped elsewhere");
}

/// How long a resource that was not asked for before looks for its template.
fn search(globs: usize) {
    let templates = templates(globs, AlgorithmKind::FairShare, 1.0);
    let ids: Vec<ResourceId> = (0..10_000).map(unknown).collect();
    let mut calls = Calls::new("search of 100 unknown ids");
    for ids in ids.chunks(100) {
        calls.call(|| ids.iter().filter(|id| templates.find(id).is_some()).count());
    }
    calls.print();
}

fn reload(node: &mut Node, what: &'static str, templates: &Templates, now: Time) {
    let mut prepared = Calls::new("  prepared elsewhere");
    let next = prepared.call(|| PreparedTemplates::new(node.in_force(), templates.clone()));
    let mut calls = Calls::new(what);
    calls
        .call(|| node.handle_prepared_templates(next, now))
        .unwrap();
    calls.drain(node, now);
    calls.print();
    prepared.print();
    drop_garbage(node, "  dropped elsewhere");
}

fn drop_garbage(node: &mut Node, what: &'static str) {
    let mut calls = Calls::new(what);
    while let Some(mut garbage) = node.poll_garbage() {
        while calls.call(|| garbage.drop_some(PIECES)) {}
    }
    calls.print();
}

/// How long each call took.
struct Calls {
    what: &'static str,
    lasted: Vec<Duration>,
}

impl Calls {
    fn new(what: &'static str) -> Self {
        let lasted = Vec::new();
        Self { what, lasted }
    }

    fn call<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let answer = std::hint::black_box(call());
        self.lasted.push(began.elapsed());
        answer
    }

    /// Everything that is due.
    fn drain(&mut self, node: &mut Node, now: Time) {
        while node.poll_timeout().is_some_and(|timeout| timeout.at <= now) {
            self.call(|| node.handle_timeout(now));
        }
    }

    fn print(&mut self) {
        self.lasted.sort_unstable();
        let at = |part: f64| {
            let place = (self.lasted.len() as f64 * part) as usize;
            let place = place.min(self.lasted.len().saturating_sub(1));
            self.lasted.get(place).copied().unwrap_or_default()
        };
        println!(
            "{:26} {:6} calls, {:9.1?} in all; half of them up to {:8.1?}, 99 % {:8.1?}, the longest {:8.1?}",
            self.what,
            self.lasted.len(),
            self.lasted.iter().sum::<Duration>(),
            at(0.5),
            at(0.99),
            at(1.0),
        );
    }
}

/// A node with so many resources, each with so many leases.
fn filled(resources: usize, leases: usize, globs: usize, now: Time) -> Node {
    let templates = templates(globs, AlgorithmKind::FairShare, 1.0);
    let mut config = Config {
        refresh_floor: Duration::ZERO,
        ..Config::default()
    };
    // All come at once.
    let at_once = Rate::new(NonZeroU32::MAX, 1);
    config.limits.new_resources_per_template = at_once;
    config.limits.new_leases_per_template = at_once;
    config.limits.requests_per_template = at_once;
    let mut node = Node::new(config, templates);
    node.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
    let resources: Vec<ResourceId> = (0..resources).map(known).collect();
    for holder in 0..leases {
        let client = HolderName::new(&format!("bench-client-{holder:07}")).unwrap();
        for (number, resource) in resources.iter().enumerate() {
            let request = GetCapacity {
                caller: None,
                incarnation: None,
                client: client.clone(),
                sequence: Some(1),
                asks: vec![Ask {
                    resource: resource.clone(),
                    priority: (holder % 4) as i64,
                    wants: Amount::new((1 + (holder * 7 + number) % 1_000) as f64).unwrap(),
                    has: None,
                }],
            };
            let Outcome::Served(reply) = node.handle_get_capacity(&request, now) else {
                panic!("it is the master");
            };
            assert_eq!(reply.leases.len(), 1, "{:?}", reply.refused);
        }
    }
    while node.poll_event().is_some() {}
    drop(node.poll_garbage());
    node
}

fn known(number: usize) -> ResourceId {
    ResourceId::new(&format!("bench/resource-{number:05}")).unwrap()
}

fn unknown(number: usize) -> ResourceId {
    ResourceId::new(&format!("bench/none/{number:05}")).unwrap()
}

/// So many globs that match none of the resources, and one that matches them all.
fn templates(globs: usize, kind: AlgorithmKind, part: f64) -> Templates {
    let spec = |glob: String| TemplateSpec {
        identifier_glob: Some(glob),
        capacity: Some(1e6 * part),
        kind: Some(kind),
        lease_length: Some(LEASE),
        refresh_interval: Some(Duration::from_secs(5)),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    };
    // One in ten begins as the resources do, and is told apart by its end only.
    let others = (0..globs).map(|number| match number % 10 {
        0 => spec(format!("bench/resource-*-{number}")),
        _ => spec(format!("service-{number}/*")),
    });
    let specs: Vec<TemplateSpec> = others.chain([spec("bench/*".to_owned())]).collect();
    Templates::parse(&specs).unwrap()
}
