//! Memory of leases. Fills a node with a million leases in several shapes. Prints the growth of the process, as the
//! operating system reports it, beside the estimate that servers show and use to refuse newcomers.
//!
//! ```sh
//! cargo bench -p doorward-engine --bench memory
//! ```
//!
//! Each shape runs in a process of its own, so that no shape reuses memory that another one freed.

#![allow(clippy::unwrap_used, reason = "a bench may panic")]
#![expect(clippy::print_stdout, reason = "the figure is what this is for")]

use std::num::NonZeroU32;
use std::process::Command;
use std::time::Duration;

use doorward_engine::admission::Rate;
use doorward_engine::admission::limits::Limits;
use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::messages::{Ask, GetCapacity};
use doorward_engine::node::mastership::Mastership;
use doorward_engine::node::pages::Totals;
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

/// Number of resources, and holders of each.
const SHAPES: [(u32, u32); 7] = [
    (1, 10_000),
    (1, 100_000),
    (1, 1_000_000),
    (1_000, 1_000),
    (10_000, 100),
    (50_000, 10),
    (100_000, 1),
];

fn main() {
    let mut args = std::env::args().skip_while(|arg| arg != "--shape").skip(1);
    let shape = args.next().zip(args.next());
    if let Some((resources, each)) = shape {
        measure(resources.parse().unwrap(), each.parse().unwrap());
        return;
    }
    println!(
        "{:>9} {:>9}  {:>15}  {:>15}  {:>11}",
        "resources", "each", "bytes each (OS)", "bytes each (own)", "own of OS"
    );
    // `cargo test --benches` runs this too. A few leases are enough then.
    if std::env::args().any(|arg| arg == "--test") {
        measure(10, 100);
        return;
    }
    let this = std::env::current_exe().unwrap();
    for (resources, each) in SHAPES {
        let shape = [resources.to_string(), each.to_string()];
        let status = Command::new(&this).arg("--shape").args(shape).status();
        assert!(status.unwrap().success());
    }
}

fn measure(resources: u32, each: u32) {
    let before = resident_bytes();
    let node = fill(resources, each);
    let grown = resident_bytes()
        .zip(before)
        .map(|(after, before)| after.saturating_sub(before) as f64);
    let leases = f64::from(resources) * f64::from(each);
    let own = node.load().memory_bytes as f64;
    let (of_system, ratio) = grown.map_or(("unknown".to_owned(), String::new()), |grown| {
        (
            format!("{:.0}", grown / leases),
            format!("{:.3}", own / grown),
        )
    });
    println!(
        "{resources:>9} {each:>9}  {of_system:>15}  {:>15.0}  {ratio:>11}",
        own / leases,
    );
}

fn fill(resources: u32, each: u32) -> Node {
    let templates = Templates::parse(&[TemplateSpec {
        identifier_glob: Some("*".into()),
        capacity: Some(1e6),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(60)),
        refresh_interval: Some(Duration::from_secs(5)),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    }])
    .unwrap();
    // All holders come within a second.
    let fast = Rate::new(NonZeroU32::MAX, 1);
    let config = Config {
        limits: Limits {
            requests_per_template: fast,
            ..Limits::default()
        },
        ..Config::default()
    };
    let mut node = Node::new(config, templates);
    node.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
    // Clients come one after the other, so the resources grow side by side.
    for client in 0..each {
        for of in 0..resources {
            // All wants differ, in no order, so that no two claims share an entry of the index.
            let wants = f64::from((client * resources + of).wrapping_mul(2_654_435_761)) + 1.0;
            let request = GetCapacity {
                caller: None,
                incarnation: None,
                // 20 bytes.
                client: HolderName::new(&format!("bench-client-{client:07}")).unwrap(),
                sequence: Some(1),
                asks: vec![Ask {
                    budget: None,
                    resource: ResourceId::new(&format!("bench-{of:07}")).unwrap(),
                    priority: 0,
                    weight: Subclients::ONE,
                    wants: Amount::new(wants).unwrap(),
                    has: None,
                }],
            };
            node.handle_get_capacity(&request, Time::from_secs(1));
            while node.poll_event().is_some() {}
        }
    }
    let mut totals = Totals::default();
    node.add_to_totals(&mut totals, None, usize::MAX, Time::from_secs(1));
    assert_eq!(totals.leases, resources as usize * each as usize);
    node
}

/// Returns the resident memory of the process, if the operating system reports it.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
