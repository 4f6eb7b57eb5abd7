//! A program of its own, with one test, so that no other test takes memory meanwhile. The estimate of memory, by which
//! a node refuses newcomers, must be near the growth of the process. The tolerance is 10 % for leases of clients, and
//! 30 % for other kinds of state.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::admission::limits::{Limits, NO_BOUND};
use doorward_engine::amount::Amount;
use doorward_engine::claims::{
    BandDemand, Claim, ClaimIndex, DemandCurve, ServerDemand, Subclients,
};
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::messages::{Ask, GetCapacity, GetServerCapacity, Has, ServerAsk, Via};
use doorward_engine::node::mastership::Mastership;
use doorward_engine::node::pages::Totals;
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

/// Fills a node with one kind of load.
type Fill = Box<dyn Fn() -> Node>;

#[test]
fn estimated_memory_is_near_the_growth_of_the_process() {
    if resident_bytes().is_none() {
        // Only Linux reports the memory.
        return;
    }
    // Measured nodes stay, so that no node reuses freed memory.
    let mut kept = Vec::new();
    let mut wrong = Vec::new();
    let shapes: [(&str, f64, Fill); 10] = [
        (
            "many leases of one resource",
            0.1,
            Box::new(|| clients(1, 150_000, 20, 1)),
        ),
        ("long names", 0.3, Box::new(|| clients(1, 60_000, 200, 1))),
        (
            "many resources with one lease",
            0.1,
            Box::new(|| clients(40_000, 1, 20, 1)),
        ),
        (
            "resources with a few leases",
            0.15,
            Box::new(|| clients(8_000, 10, 20, 1)),
        ),
        (
            "resources with twenty leases",
            0.15,
            Box::new(|| clients(5_000, 20, 20, 1)),
        ),
        (
            "resources with a hundred leases",
            0.15,
            Box::new(|| clients(1_500, 100, 20, 1)),
        ),
        (
            "children with large curves",
            0.3,
            Box::new(|| children(20, 100, 64, 1)),
        ),
        (
            "children with small curves",
            0.3,
            Box::new(|| children(60, 500, 2, 1)),
        ),
        (
            "many priorities",
            0.3,
            Box::new(|| clients(500, 64, 20, 64)),
        ),
        (
            "children with many priorities",
            0.3,
            Box::new(|| children(4, 50, 1, 500)),
        ),
    ];
    for (what, within, fill) in shapes {
        let before = resident_bytes().unwrap();
        let node = fill();
        let grown = resident_bytes().unwrap().saturating_sub(before) as f64;
        let figure = node.load().memory_bytes as f64;
        println!("{what}: {figure} for {grown}, {:.2}", figure / grown);
        if (figure / grown - 1.0).abs() > within {
            wrong.push(what);
        }
        kept.push(node);
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

fn node(kind: AlgorithmKind) -> Node {
    let templates = Templates::parse(&[TemplateSpec {
        identifier_glob: Some("*".into()),
        capacity: Some(1e6),
        kind: Some(kind),
        lease_length: Some(Duration::from_secs(3600)),
        refresh_interval: Some(Duration::from_secs(5)),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    }])
    .unwrap();
    let config = Config {
        limits: Limits {
            memory_per_caller_max: NO_BOUND,
            ..Limits::default()
        },
        ..Config::default()
    };
    let mut node = Node::new(config, templates);
    node.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
    node
}

/// Returns different amounts for different numbers, in no order.
fn scattered(number: u32) -> Amount {
    Amount::new(f64::from(number.wrapping_mul(2_654_435_761)) + 1.0).unwrap()
}

fn resource(number: u32) -> ResourceId {
    ResourceId::new(&format!("service-{number:07}")).unwrap()
}

fn clients(resources: u32, leases_each: u32, name_bytes: usize, priorities: u32) -> Node {
    let mut node = node(if priorities > 1 {
        AlgorithmKind::PriorityBands
    } else {
        AlgorithmKind::FairShare
    });
    for of in 0..resources {
        for client in 0..leases_each {
            let name = format!("{client:0name_bytes$}");
            let request = GetCapacity {
                incarnation: None,
                caller: None,
                client: HolderName::new(&name).unwrap(),
                sequence: Some(1),
                asks: vec![Ask {
                    budget: None,
                    resource: resource(of),
                    priority: i64::from(client % priorities),
                    weight: Subclients::ONE,
                    wants: scattered(client),
                    has: None,
                }],
            };
            node.handle_get_capacity(&request, Time::from_secs(1));
            while node.poll_event().is_some() {}
        }
    }
    let mut totals = Totals::default();
    node.add_to_totals(&mut totals, None, usize::MAX, Time::from_secs(1));
    assert_eq!(totals.leases, (resources * leases_each) as usize);
    node
}

fn children(children: u32, resources: u32, points: u32, priorities: u32) -> Node {
    let mut node = node(if priorities > 1 {
        AlgorithmKind::PriorityBands
    } else {
        AlgorithmKind::FairShare
    });
    for child in 0..children {
        for of in 0..resources {
            let mut index = ClaimIndex::default();
            for claim in 0..points {
                index.insert(Claim::of_client(scattered(
                    (child * resources + of) * points + claim,
                )));
            }
            let band = |priority| BandDemand {
                priority: i64::from(priority),
                clients: index.total_subclients(),
                wants: Amount::new(index.total_wants()).unwrap(),
                curve: DemandCurve::of(&index, points as usize),
            };
            let request = GetServerCapacity {
                caller: None,
                incarnation: None,
                mastership: None,
                epoch: None,
                server: HolderName::new(&format!("leaf-{child}")).unwrap(),
                sequence: Some(1),
                height: 1,
                address: None,
                asks: vec![ServerAsk {
                    budget: None,
                    unreported: Amount::ZERO,
                    reported: Vec::new(),
                    resource: resource(of),
                    demand: Arc::new(ServerDemand::new((0..priorities).map(band).collect())),
                    has: None,
                    outstanding: Some(Has::untimed(Amount::ZERO)),
                    learning: false,
                }],
            };
            node.handle_get_server_capacity(&request, Via::Stream, Time::from_secs(1))
                .unwrap();
            while node.poll_event().is_some() {}
        }
    }
    let mut totals = Totals::default();
    node.add_to_totals(&mut totals, None, usize::MAX, Time::from_secs(1));
    assert_eq!(totals.children, (children * resources) as usize);
    node
}

/// Returns the resident memory of the process, if the operating system reports it.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
