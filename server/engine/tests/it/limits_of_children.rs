//! Bounds on child servers: the bytes of their leases, curves and priorities; and that none of them loses what it has.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::admission::Limit;
use doorward_engine::admission::limits::Limits;
use doorward_engine::amount::Amount;
use doorward_engine::claims::{BandDemand, Claim, ClaimIndex, DemandCurve, ServerDemand};
use doorward_engine::id::Caller;
use doorward_engine::messages::{
    GetCapacity, GetServerCapacity, GetServerCapacityReply, Has, RefusalReason, ServerAsk,
    ServerLease, Via,
};
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::AlgorithmKind;
use doorward_engine::time::Time;

use crate::asking::{
    self, do_due, holder, master, parsed, request_for, served, server_ask, server_request, template,
};
use crate::whole::Whole as _;

const NOW: Time = Time::from_secs(1);

/// A root with other limits than by default.
fn root_with(change: impl FnOnce(&mut Limits)) -> Node {
    let templates = parsed(template("*", AlgorithmKind::PriorityBands, 1e9));
    let mut config = Config::default();
    change(&mut config.limits);
    master(config, templates)
}

fn root() -> Node {
    root_with(|_| {})
}

/// Demand of a child with this number of clients for each of these priorities, all with different wants.
fn demand(clients: u32, priorities: std::ops::Range<i64>) -> Arc<ServerDemand> {
    let band = |priority| {
        let mut index = ClaimIndex::default();
        for client in 1..=clients {
            let wants = Amount::new(f64::from(client * client)).unwrap();
            index.insert(Claim::of_client(wants));
        }
        BandDemand {
            priority,
            clients: index.total_subclients(),
            wants: Amount::new(index.total_wants()).unwrap(),
            curve: DemandCurve::of(&index, 64),
        }
    };
    Arc::new(ServerDemand::new(priorities.map(band).collect()))
}

fn ask(
    node: &mut Node,
    caller: u128,
    child: &str,
    resources: &[String],
    demand: &Arc<ServerDemand>,
    now: Time,
) -> GetServerCapacityReply {
    let ask = |resource: &String| ServerAsk {
        outstanding: Some(Has::untimed(Amount::ZERO)),
        ..server_ask(asking::resource(resource), Arc::clone(demand))
    };
    let request = GetServerCapacity {
        caller: Some(Caller::new(caller)),
        ..server_request(holder(child), resources.iter().map(ask).collect())
    };
    let outcome = node.handle_get_server_capacity(&request, Via::Stream, now);
    while node.poll_event().is_some() {}
    served(outcome.unwrap())
}

fn one(
    node: &mut Node,
    caller: u128,
    child: &str,
    resource: &str,
    demand: &Arc<ServerDemand>,
    now: Time,
) -> Result<ServerLease, Limit> {
    let reply = ask(node, caller, child, &[resource.to_owned()], demand, now);
    match (reply.leases.into_iter().next(), reply.refused.first()) {
        (Some(lease), None) => Ok(lease),
        (None, Some(refused)) => match refused.reason {
            RefusalReason::Full(full) => Err(full.limit),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn names(count: u32) -> Vec<String> {
    (0..count).map(|number| format!("r{number}")).collect()
}

#[test]
fn a_leaf_that_brings_very_many_resources_at_once_is_served() {
    let mut root = root();
    let demand = demand(1, 0..1);
    // More than clients of one address may bring.
    let resources = names(26_000);
    for part in resources.chunks(500) {
        let reply = ask(&mut root, 1, "leaf", part, &demand, NOW);
        assert_eq!((reply.leases.len(), reply.refused.len()), (part.len(), 0));
    }
    assert_eq!(root.refused_by_limits(), 0);
    assert_eq!(root.totals(NOW).children, 26_000);
    root.assert_consistent();
}

#[test]
fn forged_children_of_one_address_are_few_and_an_honest_one_comes_in() {
    const PART: usize = 3 << 20;
    let mut root = root_with(|limits| limits.memory_per_caller_max = PART);
    let demand = demand(8, 0..1);
    let resources = names(90);
    let (mut served, mut refused) = (0, 0);
    for child in 0..117 {
        let child = format!("forged-{child}");
        let reply = ask(&mut root, 1, &child, &resources, &demand, NOW);
        served += reply.leases.len();
        refused += reply.refused.len();
    }
    assert!(served > 1_000 && refused > 1_000, "{served} {refused}");
    let by_caller = root.refused_by_limit()[Limit::MemoryPerCaller as usize];
    assert_eq!(usize::try_from(by_caller).unwrap(), refused);
    let load = root.load();
    assert!(load.memory_per_caller <= PART, "{load:?}");
    let reply = ask(&mut root, 2, "honest", &resources, &demand, NOW);
    assert_eq!(reply.leases.len(), resources.len());
    root.assert_consistent();
}

#[test]
fn a_child_of_one_address_fills_no_more_than_the_part_of_one_caller() {
    const PART: usize = 1 << 20;
    for (kind, demand) in [
        ("resources", demand(1, 0..1)),
        ("points", demand(60, 0..1)),
        ("priorities", demand(1, 0..1_000)),
    ] {
        let mut root = root_with(|limits| limits.memory_per_caller_max = PART);
        let mut number = 0;
        let full = loop {
            number += 1;
            let resource = format!("r{number}");
            if let Err(full) = one(&mut root, 1, "forged", &resource, &demand, NOW) {
                break full;
            }
        };
        assert_eq!(full, Limit::MemoryPerCaller, "{kind}");
        let load = root.load();
        assert!(load.memory_per_caller <= PART, "{kind}: {load:?}");
        assert!(load.memory_bytes <= 2 * PART, "{kind}: {load:?}");
        one(&mut root, 2, "honest", "r1", &demand, NOW).unwrap();
        root.assert_consistent();
    }
}

#[test]
fn child_servers_leave_room_with_their_last_lease() {
    let mut root = root();
    let demand = demand(1, 0..1);
    one(&mut root, 1, "a", "r", &demand, NOW).unwrap();
    one(&mut root, 1, "b", "r", &demand, NOW).unwrap();
    let limits = Limits {
        memory_per_caller_max: root.load().memory_per_caller,
        ..*root.limits()
    };
    root.handle_limits(limits);
    let refused = one(&mut root, 1, "c", "r", &demand, NOW);
    assert_eq!(refused.unwrap_err(), Limit::MemoryPerCaller);
    one(&mut root, 2, "c", "r", &demand, NOW).unwrap();
    let later = Time::from_secs(70);
    do_due(&mut root, later);
    root.assert_consistent();
    assert_eq!(root.load().memory_per_caller, 0);
    one(&mut root, 1, "c", "r", &demand, later).unwrap();
}

/// Lowers a limit.
type Change = fn(&mut Limits);

#[test]
fn a_curve_that_may_not_grow_is_served_by_what_it_was() {
    const MAX: usize = 4_000;
    let small = demand(1, 0..1);
    let large = demand(60, 0..1);
    let cases: [(Limit, Change); 3] = [
        (Limit::Memory, |limits| limits.memory_max = MAX),
        (Limit::MemoryPerCaller, |limits| {
            limits.memory_per_caller_max = MAX;
        }),
        (Limit::MemoryPerTemplate, |limits| {
            limits.memory_per_template_max = MAX;
        }),
    ];
    for (limit, change) in cases {
        let mut root = root_with(change);
        assert_eq!(one(&mut root, 1, "a", "r", &large, NOW).unwrap_err(), limit);
        let first = one(&mut root, 1, "a", "r", &small, NOW).unwrap();
        let load = root.load();
        for second in [6, 30, 59, 80, 130] {
            let now = Time::from_secs(second);
            let refused = root.refused_by_limit()[limit as usize];
            let lease = one(&mut root, 1, "a", "r", &large, now).unwrap();
            assert_eq!(lease.capacity, first.capacity, "it keeps what it has");
            assert_eq!(lease.decided, Some(false), "nor is its new demand");
            assert_eq!(root.refused_by_limit()[limit as usize], refused + 1);
            assert_eq!(root.load(), load);
            root.assert_consistent();
            if second == 59 {
                // It goes on with what it had, and is refreshed by it.
                assert!(lease.expires_in > Duration::from_secs(50));
            }
        }
    }
}

#[test]
fn a_child_that_grows_and_shrinks_is_counted_as_it_is() {
    let mut changing = root();
    for (second, clients) in [(1, 3), (10, 40), (20, 7), (30, 60), (40, 1)] {
        let (demand, now) = (demand(clients, 0..2), Time::from_secs(second));
        one(&mut changing, 1, "a", "r", &demand, now).unwrap();
        changing.assert_consistent();
        let mut fresh = root();
        one(&mut fresh, 1, "a", "r", &demand, now).unwrap();
        assert_eq!(changing.load(), fresh.load(), "{clients} clients");
    }
}

#[test]
fn children_of_one_address_do_not_use_up_the_priorities() {
    let mut root = root();
    one(&mut root, 1, "a", "r", &demand(1, 0..1_000), NOW).unwrap();
    let refused = one(&mut root, 1, "b", "r", &demand(1, 1_000..2_000), NOW);
    assert_eq!(refused.unwrap_err(), Limit::Priorities);
    // The same ones as another are no new ones.
    one(&mut root, 1, "b", "r", &demand(1, 0..1_000), NOW).unwrap();
    one(&mut root, 2, "c", "r", &demand(1, 1_000..2_000), NOW).unwrap();
    one(&mut root, 3, "d", "r", &demand(1, 2_000..3_000), NOW).unwrap();
    one(&mut root, 4, "e", "r", &demand(1, 3_000..4_000), NOW).unwrap();
    let refused = one(&mut root, 5, "f", "r", &demand(1, 4_000..5_000), NOW);
    assert_eq!(refused.unwrap_err(), Limit::Priorities);
    // Of another resource they are there.
    one(&mut root, 5, "f", "s", &demand(1, 4_000..5_000), NOW).unwrap();
    root.assert_consistent();
}

#[test]
fn priorities_of_children_are_none_of_those_that_clients_bring() {
    let mut root = root();
    one(&mut root, 1, "a", "r", &demand(1, 0..1_000), NOW).unwrap();
    for priority in 2_000..2_010 {
        client(&mut root, &format!("c{priority}"), 1.0, priority).unwrap();
    }
    assert_eq!(root.totals(NOW).leases, 11);
    root.assert_consistent();
}

#[test]
fn the_bands_of_a_childs_lease_add_up_to_the_lease() {
    let mut root = root();
    client(&mut root, "x", 1e9 - 40.0, 0).unwrap();
    // Its share is more, but others hold it.
    let lease = one(&mut root, 1, "a", "r", &demand(10, 0..2), NOW).unwrap();
    assert!(lease.capacity.get() < lease.terms.share.get());
    let sum: f64 = lease.terms.bands.iter().map(|(_, it)| it.get()).sum();
    assert!((sum - lease.capacity.get()).abs() < 1e-6, "{sum}");
}

fn client(node: &mut Node, name: &str, wants: f64, priority: i64) -> Result<(), RefusalReason> {
    let request = GetCapacity {
        caller: Some(Caller::new(9)),
        ..request_for(name, asking::resource("r"), priority, wants, 0.0)
    };
    let reply = served(node.handle_get_capacity(&request, NOW));
    let refusal = reply.refused.first();
    refusal.map_or(Ok(()), |refusal| Err(refusal.reason))
}
