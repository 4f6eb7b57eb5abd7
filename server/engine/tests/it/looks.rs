//! Pages of a node: pages that continue each other show the same as one page of everything.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::claims::{BandDemand, DemandCurve, ServerDemand};
use doorward_engine::id::{Caller, ResourceId};
use doorward_engine::messages::{GetCapacity, LeasesFrom, ResourceSnapshot, Via};
use doorward_engine::node::Node;
use doorward_engine::node::mastership::Learning;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::node::pages::Totals;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

use crate::asking::{
    self, amount, ask, do_due, holder, master, no_floor, release_request, resource, server_ask,
    server_request,
};
use crate::whole::Whole as _;

const RESOURCES: usize = 100;

fn id(number: usize) -> ResourceId {
    resource(&format!("r{number:03}"))
}

fn template(glob: &str) -> TemplateSpec {
    asking::template(glob, AlgorithmKind::FairShare, 10.0)
}

/// Returns the master of a root, which decides every request.
fn master_of(templates: &[TemplateSpec]) -> Node {
    let config = no_floor();
    master(config, Templates::parse(templates).unwrap())
}

/// Returns a root whose resources have one client each. Every tenth has a second client that has to wait, and every
/// fifth has a child.
fn busy() -> Node {
    let mut node = master_of(&[template("*")]);
    for number in 0..RESOURCES {
        client_asks(&mut node, "a", number);
        if number.is_multiple_of(10) {
            client_asks(&mut node, "b", number);
        }
        if number.is_multiple_of(5) {
            child_asks(&mut node, number);
        }
    }
    node
}

fn client_asks(node: &mut Node, client: &str, number: usize) {
    let request = asking::request(holder(client), vec![ask(id(number), 0, amount(10.0), None)]);
    node.handle_get_capacity(&request, Time::ZERO);
}

fn child_asks(node: &mut Node, number: usize) {
    let band = BandDemand {
        priority: 0,
        clients: 3.0,
        wants: amount(3.0),
        curve: DemandCurve::of_equals(amount(3.0), 3.0),
    };
    let ask = server_ask(id(number), Arc::new(ServerDemand::new(vec![band])));
    let request = server_request(holder("leaf"), vec![ask]);
    let answer = node.handle_get_server_capacity(&request, Via::Stream, Time::ZERO);
    assert!(answer.is_ok());
}

#[test]
fn pages_of_snapshots_equal_the_whole_and_keep_their_size() {
    let node = busy();
    let whole = node.snapshot(Time::ZERO).resources;
    assert_eq!(whole.len(), RESOURCES);
    for size in [1, 7, 50, RESOURCES, usize::MAX] {
        let mut seen = Vec::new();
        loop {
            let after = seen.last().map(|it: &ResourceSnapshot| &it.resource);
            let part = node.snapshots_after(after, size, Time::ZERO);
            assert!(part.len() <= size);
            if part.is_empty() {
                break;
            }
            seen.extend(part);
        }
        assert_eq!(seen, whole, "in parts of {size}");
    }
}

#[test]
fn sums_equal_those_of_all_resources_through_all_changes() {
    let mut node = busy();
    check_sums(&node, Time::ZERO);
    let totals = node.totals(Time::ZERO);
    assert_eq!(totals.resources, RESOURCES);
    assert_eq!((totals.leases, totals.children), (130, 20));
    assert_eq!(totals.leases_per_resource, 3);
    assert!(totals.waiting > 0 && totals.clients == 170.0, "{totals:?}");

    // The largest resource shrinks, one holder after the other.
    for client in ["a", "b"] {
        release(&mut node, client, 0);
        check_sums(&node, Time::ZERO);
    }
    // Half of the resources go, then all.
    for number in 0..RESOURCES / 2 {
        release(&mut node, "a", number);
    }
    check_sums(&node, Time::ZERO);
    let end = Time::from_secs(61);
    do_due(&mut node, end);
    check_sums(&node, end);
    assert_eq!(node.totals(end), Totals::default());

    client_asks(&mut node, "a", 7);
    node.handle_mastership(Mastership::Unknown, end);
    assert_eq!(node.totals(end), Totals::default());
}

#[test]
fn a_resource_that_goes_while_it_learns_does_not_count_as_learning() {
    let learns = TemplateSpec {
        learning_mode_duration: Some(Duration::from_secs(60)),
        ..template("*")
    };
    let mut node = master_of(&[learns]);
    for number in 0..3 {
        client_asks(&mut node, "a", number);
        node.assert_consistent();
    }
    for number in 0..3 {
        assert_eq!(learning(&node, Time::ZERO), Learning::Elected);
        release(&mut node, "a", number);
        node.assert_consistent();
    }
    assert_eq!(node.totals(Time::ZERO), Totals::default());
}

fn learning(node: &Node, now: Time) -> Learning {
    node.learning(&node.totals(now), now)
}

/// The sums are those of a look at everything, whatever the size of a page.
#[track_caller]
fn check_sums(node: &Node, now: Time) {
    node.assert_consistent();
    let (all, totals) = (node.snapshot(now).resources, node.totals(now));
    for size in [1, 7, RESOURCES] {
        let (mut by_pages, mut after) = (Totals::default(), None);
        while let Some(last) = node.add_to_totals(&mut by_pages, after.as_ref(), size, now) {
            after = Some(last);
        }
        assert_eq!(by_pages, totals, "by pages of {size}");
    }
    let sum = |of: fn(&ResourceSnapshot) -> usize| all.iter().map(of).sum::<usize>();
    assert_eq!(totals.resources, all.len());
    assert_eq!(totals.leases, sum(|it| it.leases));
    assert_eq!(totals.children, sum(|it| it.children));
    assert_eq!(totals.waiting, sum(|it| it.waiting));
    assert_eq!(totals.clients, all.iter().map(|it| it.clients).sum::<f64>());
    let largest = all.iter().map(|it| it.leases).max();
    assert_eq!(totals.leases_per_resource, largest.unwrap_or(0));
}

fn release(node: &mut Node, client: &str, number: usize) {
    let request = release_request(holder(client), vec![id(number)]);
    node.handle_release_capacity(&request, Time::ZERO);
}

#[test]
fn pages_of_leases_equal_the_whole_and_keep_their_size() {
    let mut node = busy();
    for client in 0..200 {
        client_asks(&mut node, &format!("c{client:03}"), 0);
    }
    // Every place except each tenth is empty now.
    for client in 0..200 {
        if client % 10 != 0 {
            release(&mut node, &format!("c{client:03}"), 0);
        }
    }
    let whole = node.lease_snapshots(&id(0), usize::MAX, Time::ZERO);
    // Two clients and a child from before, and twenty more.
    assert_eq!(whole.len(), 23);
    for size in [1, 7, 50, 500, usize::MAX] {
        let (mut seen, mut looks) = (Vec::new(), 0);
        let mut next = Some(LeasesFrom::Start);
        while let Some(from) = next {
            let (part, then) = node.leases_from(&id(0), &from, "", size, Time::ZERO);
            assert!(part.len() <= size, "{} in a look at {size}", part.len());
            if seen.is_empty() {
                assert!(part[0].child.is_some(), "children come first");
            }
            looks += 1;
            seen.extend(part);
            next = then;
        }
        // 203 places were used, one of them by the child, which a page also reads by its name.
        assert!(looks >= 203_usize.div_ceil(size), "{looks} looks at {size}");
        seen.sort_by(|a, b| a.holder.cmp(&b.holder));
        assert_eq!(seen, whole, "in parts of {size}");
    }
    let of_nobody = node.leases_from(&id(RESOURCES), &LeasesFrom::Start, "", 9, Time::ZERO);
    assert_eq!(of_nobody, (Vec::new(), None));
}

#[test]
fn the_load_is_the_highest_use_by_one_caller_and_one_template() {
    let templates: Vec<TemplateSpec> = (0..30).map(|of| template(&format!("t{of}/*"))).collect();
    let mut node = master_of(&templates);
    for caller in 0..40_u128 {
        let ids = (0..=caller % 7).map(|of| resource(&format!("t{of}/{}", caller % 5)));
        let asks = ids.map(|id| ask(id, 0, amount(1.0), None));
        let request = GetCapacity {
            caller: Some(Caller::new(caller)),
            ..asking::request(holder(&format!("c{caller}")), asks.collect())
        };
        node.handle_get_capacity(&request, Time::ZERO);
    }
    let whole = node.load();
    assert_eq!(whole.callers, 40);
    // Seven leases of one caller, and forty of one template.
    assert!(whole.memory_per_caller > 0);
    assert!(whole.memory_per_template > 40 / 7 * whole.memory_per_caller / 2);
    assert_eq!(whole.memory_bytes, node.lease_memory_bytes());
}

#[test]
fn a_snapshot_does_not_copy_templates() {
    let described = TemplateSpec {
        description: Some("long ".repeat(200_000)),
        ..template("*")
    };
    let mut node = master_of(&[described]);
    for number in 0..3 {
        client_asks(&mut node, "a", number);
    }
    let seen = node.snapshots_after(None, 3, Time::ZERO);
    let written = node.active_templates().templates().iter().next().unwrap();
    for resource in &seen {
        let template = resource.template.as_ref().unwrap();
        assert!(Arc::ptr_eq(template, written), "{}", resource.resource);
    }
}

#[test]
fn a_node_that_is_no_master_does_not_learn() {
    let mut node = busy();
    assert_eq!(learning(&node, Time::ZERO), Learning::Over);
    node.handle_mastership(Mastership::Unknown, Time::ZERO);
    assert_eq!(learning(&node, Time::ZERO), Learning::Standby);
}
