//! What a lease costs in memory, of one resource with many holders and of many resources with one: fills a node with
//! holders whose names have 20 bytes, and reads from the operating system how much the process has grown.

#![allow(clippy::unwrap_used, reason = "a bench may panic")]
#![expect(clippy::print_stdout, reason = "the figure is what this is for")]

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::node::mastership::Mastership;
use doorward_engine::node::{Config, Node};
use doorward_engine::request::{Ask, GetCapacity};
use doorward_engine::template::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

fn main() {
    // `cargo test --benches` runs this too: a few are enough then.
    let quick = std::env::args().any(|arg| arg == "--test");
    let sizes: &[u32] = if quick {
        &[1_000]
    } else {
        &[10_000, 100_000, 1_000_000]
    };
    println!(
        "{:>9}  {:>9}  {:>16}  {:>16}",
        "resources", "leases", "bytes each (OS)", "bytes each (own)"
    );
    // First, so that it does not take what others have left.
    let one_each = if quick { 1_000 } else { 100_000 };
    measure(one_each, one_each);
    for &leases in sizes {
        measure(1, leases);
    }
}

/// Prints what a lease takes, if there are so many of so many resources.
fn measure(resources: u32, leases: u32) {
    let before = resident_bytes();
    let node = fill(resources, leases);
    let grown = resident_bytes()
        .zip(before)
        .map(|(after, before)| after - before);
    let each = |bytes: usize| bytes as f64 / f64::from(leases);
    let measured = grown.map_or("unknown".to_owned(), |grown| format!("{:.0}", each(grown)));
    println!(
        "{resources:>9}  {leases:>9}  {measured:>16}  {:>16.0}",
        each(node.memory_bytes())
    );
}

fn fill(resources: u32, leases: u32) -> Node {
    let templates = Templates::parse(&[TemplateSpec {
        identifier_glob: Some("*".into()),
        capacity: Some(1e6),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(600)),
        refresh_interval: Some(Duration::from_secs(5)),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    }])
    .unwrap();
    let mut node = Node::new(Config::default(), templates);
    node.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
    for client in 0..leases {
        // All different, in no order, so that no two claims share an entry of the index.
        let wants = f64::from(client.wrapping_mul(2_654_435_761)) + 1.0;
        let resource = format!("bench-resource-{:07}", client % resources);
        let request = GetCapacity {
            caller: None,
            incarnation: None,
            client: HolderName::new(&format!("bench-client-{client:07}")).unwrap(),
            sequence: Some(1),
            asks: vec![Ask {
                resource: ResourceId::new(&resource).unwrap(),
                priority: 0,
                wants: Amount::new(wants).unwrap(),
                has: None,
            }],
        };
        // No faster than new resources are let in.
        let now = Time::from_secs(1) + Duration::from_micros(250) * client;
        node.handle_get_capacity(&request, now);
        while node.poll_event().is_some() {}
    }
    assert_eq!(node.load().leases, leases as usize);
    node
}

/// What the process has in memory, where the operating system tells.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
