//! Other templates and another mastership, a little at a time: what is decided meanwhile is decided as if all of it had
//! been done at once. Another algorithm counts at once.

use std::time::Duration;

use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::messages::{GetCapacityReply, Has};
use doorward_engine::node::Node;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::node::reload::PreparedTemplates;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

use crate::asking::{self, LEASED, amount, do_due, no_floor, release_request, served, template};
use crate::story::chance::Chance;
use crate::whole::Whole as _;

/// More resources than get new templates at once.
const RESOURCES: usize = 100;

const LEASE: Duration = Duration::from_secs(20);

fn id(number: usize) -> ResourceId {
    asking::resource(&format!("r{number:02}"))
}

fn name(number: usize) -> HolderName {
    asking::holder(&format!("client-{number}"))
}

/// Returns a node whose resources divide a capacity of ten each by FAIR_SHARE.
fn shared_fairly() -> Node {
    master(of_all(AlgorithmKind::FairShare, 10.0))
}

/// Returns one template for all resources.
fn of_all(kind: AlgorithmKind, capacity: f64) -> Templates {
    templates(&[spec("*", kind, capacity)])
}

fn spec(glob: &str, kind: AlgorithmKind, capacity: f64) -> TemplateSpec {
    TemplateSpec {
        lease_length: Some(LEASE),
        ..template(glob, kind, capacity)
    }
}

fn templates(specs: &[TemplateSpec]) -> Templates {
    Templates::parse(specs).unwrap()
}

fn master(templates: Templates) -> Node {
    asking::master(no_floor(), templates)
}

fn ask(
    node: &mut Node,
    client: usize,
    resource: usize,
    wants: f64,
    has: Option<f64>,
    now: Time,
) -> GetCapacityReply {
    let (priority, has) = ((client % 3) as i64, has.map(|it| Has::untimed(amount(it))));
    let ask = asking::ask(id(resource), priority, amount(wants), has);
    let request = asking::request(name(client), vec![ask]);
    served(node.handle_get_capacity(&request, now))
}

/// Returns the grant of a client.
fn gets(node: &mut Node, client: usize, wants: f64, has: Option<f64>, now: Time) -> f64 {
    let reply = ask(node, client, 0, wants, has, now);
    reply.leases[0].capacity.get()
}

fn release(node: &mut Node, client: usize, resource: usize, now: Time) {
    let request = release_request(name(client), vec![id(resource)]);
    node.handle_release_capacity(&request, now);
}

/// Draws up to six templates.
fn draw_templates(chance: &mut Chance) -> Templates {
    let globs = ["r1*", "r?7", "r2[0-4]", "r33", "r*5", "*"];
    let specs = globs.map(|glob| {
        let kind = chance.one_of(&LEASED);
        let mut spec = spec(glob, kind, chance.one_of(&[0.0, 10.0, 40.0, 100.0]));
        spec.lease_length = Some(LEASE * (1 + chance.below(3)) as u32);
        spec
    });
    let some: Vec<_> = specs.into_iter().filter(|_| chance.below(5) > 0).collect();
    templates(&some)
}

/// Compares a node that has handled all timers with one that handles only some of them.
#[test]
fn no_decision_depends_on_the_progress_of_new_templates() {
    let mut behind = 0;
    for seed in 1..=30 {
        let mut chance = Chance(seed);
        let first = draw_templates(&mut chance);
        let (mut swept, mut node) = (master(first.clone()), master(first));
        let mut now = Time::from_secs(1);
        for _ in 0..300 {
            match chance.below(20) {
                0 => {
                    // The node takes each version: a resource that missed one never sees it.
                    do_due(&mut node, now);
                    let next = draw_templates(&mut chance);
                    swept.handle_templates(next.clone(), now);
                    node.handle_templates(next, now);
                    do_due(&mut swept, now);
                }
                1 => {
                    // The node handles all timers that are due before time passes.
                    do_due(&mut node, now);
                    now = now + Duration::from_secs(chance.below(8) as u64);
                    do_due(&mut swept, now);
                    do_due(&mut node, now);
                }
                2 => node.handle_timeout(now),
                3 => {
                    let (client, resource) = (chance.below(5), chance.below(RESOURCES));
                    release(&mut swept, client, resource, now);
                    release(&mut node, client, resource, now);
                }
                _ => {
                    let (client, resource) = (chance.below(5), chance.below(RESOURCES));
                    let (wants, has) = (chance.below(50) as f64, chance.below(20) as f64);
                    let asks = |node| ask(node, client, resource, wants, Some(has), now);
                    let expected = asks(&mut swept);
                    assert_eq!(asks(&mut node), expected, "seed {seed}");
                }
            }
            behind += u32::from(!node.is_swept());
            assert!(swept.is_swept());
            node.assert_consistent();
        }
        do_due(&mut node, now);
        let same = node.snapshot(now) == swept.snapshot(now);
        assert!(same, "seed {seed}: the snapshots differ");
        assert_eq!(node.load(), swept.load(), "seed {seed}");
    }
    assert!(behind > 500, "the sweep is behind often enough: {behind}");
}

#[test]
fn a_resource_without_requests_gets_new_templates_as_well() {
    let now = Time::from_secs(1);
    let of = |capacity| of_all(AlgorithmKind::FairShare, capacity);
    let mut node = shared_fairly();
    for resource in 0..RESOURCES {
        ask(&mut node, 0, resource, 5.0, None, now);
    }
    // Of two sets in a row, the second counts.
    node.handle_templates(of(15.0), now);
    let former = node.active_templates().clone();
    let next = PreparedTemplates::new(&former, of(20.0));
    node.handle_prepared_templates(next, now).unwrap();
    // The sweep runs in bounded steps.
    assert_eq!(node.poll_timeout(), Some(now));
    let capacity = |node: &Node, number| node.resource_snapshot(&id(number), now).unwrap().capacity;
    assert_eq!(
        capacity(&node, RESOURCES - 1),
        10.0,
        "the old template counts still"
    );
    let late = PreparedTemplates::new(&former, of(30.0));
    assert!(node.handle_prepared_templates(late, now).is_err());
    do_due(&mut node, now);
    assert!(node.is_swept());
    for resource in 0..RESOURCES {
        assert_eq!(capacity(&node, resource), 20.0, "{resource}");
    }
}

#[test]
fn work_for_all_resources_is_done_a_bounded_part_at_a_time() {
    let now = Time::from_secs(1);
    let of = |capacity| of_all(AlgorithmKind::FairShare, capacity);
    let mut node = shared_fairly();
    for resource in 0..RESOURCES {
        for client in 0..3 {
            ask(&mut node, client, resource, 3.0, None, now);
        }
    }
    let new = |node: &Node| {
        let all = node.snapshot(now).resources;
        all.iter().filter(|it| it.capacity == 20.0).count()
    };
    node.handle_templates(of(20.0), now);
    let mut before = new(&node);
    while !node.is_swept() {
        node.handle_timeout(now);
        let after = new(&node);
        // After the last resource, one more call finds that the sweep is over.
        let goes_on = after > before || node.is_swept();
        assert!(goes_on && after - before <= 16, "{before} to {after}");
        before = after;
    }
    assert_eq!(before, RESOURCES);
    let later = now + 2 * LEASE;
    let mut leases = node.totals(later).leases;
    while leases > 0 {
        node.handle_timeout(later);
        let left = node.totals(later).leases;
        assert!(left < leases && leases - left <= 48, "{leases} to {left}");
        leases = left;
    }
}

/// Returns the shares of all holders as snapshots show them.
fn shares(node: &Node, now: Time) -> Vec<(String, f64, f64)> {
    let leases = node.lease_snapshots(&id(0), usize::MAX, now).into_iter();
    let lease = leases.map(|it| (it.holder.to_string(), it.wants(), it.share));
    lease.collect()
}

/// Returns the share of one client, or 0 if it has none.
fn share_of(client: usize, node: &Node, now: Time) -> f64 {
    let (shares, name) = (shares(node, now), format!("client-{client}"));
    let own = shares.iter().find(|(holder, ..)| holder.ends_with(&name));
    own.map_or(0.0, |(_, _, share)| *share)
}

const CROWD: usize = 1_000;

#[test]
fn another_algorithm_divides_as_if_there_had_never_been_another_one() {
    let now = Time::from_secs(1);
    let of = |kind| of_all(kind, 700.0);
    use AlgorithmKind::{FairShare, NoAlgorithm, PriorityBands, ProportionalShare};
    for (from, to) in [
        (FairShare, PriorityBands),
        (NoAlgorithm, PriorityBands),
        (PriorityBands, FairShare),
        (PriorityBands, ProportionalShare),
    ] {
        let mut node = master(of(from));
        let mut chance = Chance(7);
        let wants: Vec<f64> = (0..CROWD).map(|_| chance.below(4) as f64).collect();
        for (client, wants) in wants.iter().enumerate() {
            ask(&mut node, client, 0, *wants, None, now);
        }
        node.handle_templates(of(to), now);
        // Some want something else, some go, some come.
        for (client, wants) in wants.iter().enumerate().take(20) {
            gets(&mut node, client, wants + 1.0, None, now);
            release(&mut node, CROWD / 2 + client, 0, now);
            gets(&mut node, CROWD + client, 2.0, None, now);
            node.assert_consistent();
        }
        let seen = node.resource_snapshot(&id(0), now).unwrap();
        let fits = seen.reserved <= seen.capacity || !from.promises_total();
        assert!(fits, "{from} to {to}");
        let mut anew = master(of(to));
        for lease in node.lease_snapshots(&id(0), usize::MAX, now) {
            let client = lease.holder.name.as_str().strip_prefix("client-");
            let client = client.and_then(|number| number.parse().ok()).unwrap();
            ask(&mut anew, client, 0, lease.wants(), None, now);
        }
        let (all, of_anew) = (shares(&node, now), shares(&anew, now));
        assert_eq!(all.len(), of_anew.len());
        for ((holder, wants, share), (same, _, expected)) in all.iter().zip(&of_anew) {
            let close = (share - expected).abs() <= 1e-9;
            let about = format!("{from} to {to}: {holder} ({same}) wants {wants}");
            assert!(holder == same && close, "{about}: {share}, not {expected}");
        }
    }
}

#[test]
fn another_template_counts_for_the_next_request_with_all_that_it_says() {
    let now = Time::from_secs(1);
    let mut bands = spec("*", AlgorithmKind::PriorityBands, 100.0);
    bands.parameters = vec![("min_share.0".to_owned(), Some("0.5".to_owned()))];
    let fair = spec("*", AlgorithmKind::FairShare, 10_000.0);
    let mut node = master(templates(std::slice::from_ref(&fair)));
    for client in 0..CROWD {
        assert_eq!(gets(&mut node, client, 10.0, None, now), 10.0);
    }
    // 334 clients of priority 0 have half of it; the most important ones have the other half.
    node.handle_templates(templates(&[bands]), now);
    let expected = [50.0 / 334.0, 0.0, 50.0 / 333.0];
    for (client, expected) in expected.into_iter().enumerate() {
        gets(&mut node, client, 10.0, Some(10.0), now);
        let share = share_of(client, &node, now);
        assert!((share - expected).abs() < 1e-6, "{client}: {share}");
    }
    let half = spec("*", AlgorithmKind::ProportionalShare, 50.0);
    node.handle_templates(templates(&[half]), now);
    gets(&mut node, 0, 10.0, Some(0.0), now);
    let share = share_of(0, &node, now);
    assert!((share - 50.0 / CROWD as f64).abs() < 1e-6, "{share}");
}

#[test]
fn the_driver_of_a_node_drops_the_leases_that_it_has_forgotten() {
    let now = Time::from_secs(1);
    let mut node = shared_fairly();
    while node.poll_garbage().is_some() {}
    for resource in 0..RESOURCES {
        ask(&mut node, 0, resource, 5.0, None, now);
    }
    for client in 0..2_000 {
        ask(&mut node, client, 0, 5.0, None, now);
    }
    assert!(node.poll_garbage().is_none());
    node.handle_mastership(Mastership::Unknown, now);
    assert!(node.poll_garbage().is_some());
    while node.poll_garbage().is_some() {}
    // One that had many holders is, too, when the last is gone.
    let mut node = shared_fairly();
    for client in 0..2_000 {
        ask(&mut node, client, 0, 5.0, None, now);
    }
    while node.poll_garbage().is_some() {}
    do_due(&mut node, now + 2 * LEASE);
    assert_eq!(node.resources_count(), 0);
    assert!(node.poll_garbage().is_some());
}

#[test]
fn priorities_are_bounded_whatever_the_algorithm_is_and_known_ones_stay() {
    let now = Time::from_secs(1);
    let fair = spec("*", AlgorithmKind::FairShare, 1e6);
    let bands = spec("*", AlgorithmKind::PriorityBands, 1e6);
    let mut config = no_floor();
    config.limits.priorities_max = 3;
    let mut node = asking::master(config, templates(&[fair]));
    let asks = |node: &mut Node, client: usize, priority: i64| {
        let ask = asking::ask(id(0), priority, amount(1.0), None);
        let request = asking::request(name(client), vec![ask]);
        served(node.handle_get_capacity(&request, now)).leases.len()
    };
    for client in 0..4 {
        let served = usize::from(client < 3);
        assert_eq!(asks(&mut node, client, client as i64), served, "{client}");
    }
    node.handle_templates(templates(&[bands]), now);
    for client in 0..3 {
        assert_eq!(asks(&mut node, client, client as i64), 1, "{client}");
    }
    node.assert_consistent();
}
