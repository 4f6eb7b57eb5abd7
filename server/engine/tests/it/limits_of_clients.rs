//! Bounds on newcomers: the resources and holders that one caller can bring, all callers of a template, and
//! all callers together. A holder that has a lease keeps it, whatever is full.

use std::num::NonZeroU32;
use std::time::Duration;

use doorward_engine::admission::limits::Limits;
use doorward_engine::admission::{Full, Limit, Rate};
use doorward_engine::id::Caller;
use doorward_engine::messages::{
    ClientLease, GetCapacity, RefusalReason, ReleaseCapacity, Released,
};
use doorward_engine::node::mastership::Mastership;
use doorward_engine::node::pages::Totals;
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

use crate::asking::{self, do_due, holder, master, release_request, request_for, served, template};
use crate::whole::Whole as _;

const LEASE: Duration = Duration::from_secs(60);

/// One template of which nothing is shared, one with priorities, and one for the rest.
fn templates(globs: &[&str]) -> Templates {
    let spec = |glob: &&str| match glob.starts_with("prio") {
        true => TemplateSpec {
            parameters: vec![("min_share.1000".to_owned(), Some("0.1".to_owned()))],
            ..template(glob, AlgorithmKind::PriorityBands, 1e9)
        },
        false => template(glob, AlgorithmKind::FairShare, 1e9),
    };
    Templates::parse(&globs.iter().map(spec).collect::<Vec<_>>()).unwrap()
}

struct LimitedNode {
    node: Node,
    now: Time,
}

impl LimitedNode {
    /// A node with other limits than by default.
    fn with(change: impl FnOnce(&mut Limits)) -> Self {
        let mut config = Config::default();
        change(&mut config.limits);
        Self {
            node: master(config, templates(&["a*", "b*", "prio*"])),
            now: Time::from_secs(1),
        }
    }

    fn totals(&self) -> Totals {
        self.node.totals(self.now)
    }

    fn advance(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
        do_due(&mut self.node, self.now);
    }

    fn ask(
        &mut self,
        caller: u128,
        client: &str,
        resource: &str,
    ) -> Result<ClientLease, RefusalReason> {
        self.ask_for(caller, client, resource, 1.0, 0)
    }

    fn ask_for(
        &mut self,
        caller: u128,
        client: &str,
        resource: &str,
        wants: f64,
        priority: i64,
    ) -> Result<ClientLease, RefusalReason> {
        let request = GetCapacity {
            caller: Some(Caller::new(caller)),
            ..request_for(client, asking::resource(resource), priority, wants, 0.0)
        };
        let outcome = self.node.handle_get_capacity(&request, self.now);
        while self.node.poll_event().is_some() {}
        let mut reply = asking::served(outcome);
        match (reply.leases.pop(), reply.refused.pop()) {
            (Some(lease), None) => Ok(lease),
            (None, Some(refused)) => Err(refused.reason),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn check_full(&mut self, caller: u128, client: &str, resource: &str, limit: Limit) -> Full {
        let refused_before = self.node.refused_by_limit()[limit as usize];
        let full = match self.ask(caller, client, resource) {
            Err(RefusalReason::Full(full)) => full,
            other => panic!("{other:?}"),
        };
        assert_eq!(full.limit, limit);
        let refused = self.node.refused_by_limit()[limit as usize];
        assert_eq!(refused, refused_before + 1, "it is counted");
        assert!(full.retry_in >= Duration::from_secs(1), "{full:?}");
        self.node.assert_consistent();
        full
    }

    fn release(&mut self, caller: u128, client: &str, resource: &str) -> Released {
        let request = ReleaseCapacity {
            caller: Some(Caller::new(caller)),
            ..release_request(holder(client), vec![asking::resource(resource)])
        };
        served(self.node.handle_release_capacity(&request, self.now))[0]
    }
}

fn rate(per_second: u32, burst_seconds: u32) -> Rate {
    Rate::new(NonZeroU32::new(per_second).unwrap(), burst_seconds)
}

#[test]
fn ten_thousand_honest_clients_behind_one_address_are_never_refused() {
    let mut world = LimitedNode::with(|_| {});
    // They come all at once, are all started anew at once, and refresh.
    for wave in 0..3 {
        for client in 0..10_000 {
            let name = format!("client-{client}");
            for shared in 0..3 {
                let resource = format!("a-{}", (client + shared * 97) % 300);
                world.ask(1, &name, &resource).unwrap();
            }
            world.ask(1, &name, &format!("b-{client}")).unwrap();
        }
        if wave == 0 {
            for client in 0..10_000 {
                world.release(1, &format!("client-{client}"), &format!("b-{client}"));
            }
        }
        world.advance(5);
    }
    assert_eq!(world.node.refused_by_limits(), 0);
    assert_eq!(world.totals().leases, 40_000);
    assert_eq!(world.totals().resources, 10_300);
    world.node.assert_consistent();
}

#[test]
fn a_caller_that_invents_resources_fills_a_part_and_others_go_on() {
    const PART: usize = 4 << 20;
    let mut world = LimitedNode::with(|limits| limits.memory_per_caller_max = PART);
    world.ask(2, "honest", "b").unwrap();
    let mut served = 0;
    for number in 0..10_000 {
        served += usize::from(world.ask(1, "liar", &format!("a{number}")).is_ok());
    }
    assert!((2_000..10_000).contains(&served), "{served}");
    assert!(world.node.load().memory_per_caller <= PART);
    world.check_full(1, "liar", "a10001", Limit::MemoryPerCaller);
    world.ask(2, "honest", "b").unwrap();
    world.ask(2, "honest", "a10001").unwrap();
    world.ask(3, "another", "b-too").unwrap();
    world.node.assert_consistent();
    world.advance(LEASE.as_secs() + 1);
    assert_eq!(world.totals().resources, 0, "nothing is left of it");
    assert_eq!(world.node.load().memory_per_caller, 0);
    world.ask(1, "liar", "a1").unwrap();
}

#[test]
fn a_caller_that_invents_anything_fills_a_part_and_others_come_in() {
    const PART: usize = 1 << 20;
    let long = "x".repeat(200);
    type Newcomer<'a> = dyn Fn(usize) -> (String, String, i64) + 'a;
    let kinds: [(&str, &Newcomer); 4] = [
        ("resources", &|it| ("c".to_owned(), format!("a{it}"), 0)),
        ("holders", &|it| (format!("c{it}"), "a".to_owned(), 0)),
        ("long names", &|it| {
            (format!("{it}{long}"), "a".to_owned(), 0)
        }),
        ("priorities", &|it| {
            let priority = i64::try_from(it % 10).unwrap();
            (format!("c{it}"), format!("prio{}", it / 10), priority)
        }),
    ];
    for (kind, invented) in kinds {
        let mut world = LimitedNode::with(|limits| limits.memory_per_caller_max = PART);
        let mut number = 0;
        loop {
            let (client, resource, priority) = invented(number);
            match world.ask_for(1, &client, &resource, 1.0, priority) {
                Ok(_) => number += 1,
                Err(RefusalReason::Full(full)) => {
                    assert_eq!(full.limit, Limit::MemoryPerCaller, "{kind}");
                    break;
                }
                Err(other) => panic!("{kind}: {other:?}"),
            }
        }
        let load = world.node.load();
        assert!(load.memory_per_caller <= PART, "{kind}: {load:?}");
        assert!(load.memory_bytes <= 2 * PART, "{kind}: {load:?}");
        world.ask(2, "honest", "a").unwrap();
        world.node.assert_consistent();
    }
}

/// Bytes of so many resources with one lease each, of one caller.
fn bytes_of(resources: usize) -> usize {
    let mut world = LimitedNode::with(|_| {});
    for number in 0..resources {
        world.ask(1, "c", &format!("a{number}")).unwrap();
    }
    world.node.load().memory_per_caller
}

#[test]
fn bytes_are_bounded_in_all_by_template_and_by_caller() {
    // Less than a lease.
    const SLACK: usize = 200;
    let books = {
        let mut world = LimitedNode::with(|_| {});
        for caller in 1..=4 {
            world.ask(caller, "c", &format!("a{caller}")).unwrap();
        }
        world.node.load().memory_bytes - bytes_of(4)
    };
    let mut world = LimitedNode::with(|limits| {
        limits.memory_max = bytes_of(4) + books + SLACK;
        limits.memory_per_template_max = bytes_of(3) + SLACK;
        limits.memory_per_caller_max = bytes_of(2) + SLACK;
    });
    world.ask(1, "c", "a1").unwrap();
    world.ask(1, "c", "a2").unwrap();
    world.check_full(1, "c", "a3", Limit::MemoryPerCaller);
    world.check_full(1, "d", "a2", Limit::MemoryPerCaller);
    world.ask(2, "c", "a3").unwrap();
    world.check_full(2, "c", "a4", Limit::MemoryPerTemplate);
    world.check_full(2, "d", "a3", Limit::MemoryPerTemplate);
    world.ask(3, "c", "b1").unwrap();
    world.check_full(4, "c", "b2", Limit::Memory);
    assert_eq!(world.release(1, "c", "a1"), Released::Freed);
    world.ask(4, "c", "b2").unwrap();
    world.advance(LEASE.as_secs());
    world.ask(1, "c", "a3").unwrap();
    world.node.assert_consistent();
}

#[test]
fn holders_of_one_resource_are_bounded() {
    let mut world = LimitedNode::with(|limits| limits.leases_per_resource_max = 4);
    for client in ["1", "2", "3", "4"] {
        world.ask(1, client, "a1").unwrap();
    }
    world.check_full(2, "5", "a1", Limit::LeasesPerResource);
    world.ask(2, "5", "a2").unwrap();
    world.advance(LEASE.as_secs());
    world.ask(2, "5", "a1").unwrap();
    world.node.assert_consistent();
}

#[test]
fn clients_of_one_caller_at_one_resource_are_bounded_and_each_that_leaves_makes_room() {
    let mut world = LimitedNode::with(|limits| limits.leases_per_caller_max = 2);
    for client in ["1", "2"] {
        world.ask(1, client, "a1").unwrap();
    }
    world.check_full(1, "3", "a1", Limit::LeasesPerCaller);
    world.ask(1, "1", "a1").unwrap();
    world.ask(1, "3", "a2").unwrap();
    world.ask(2, "4", "a1").unwrap();
    world.release(1, "1", "a1");
    world.ask(1, "3", "a1").unwrap();
    world.check_full(1, "1", "a1", Limit::LeasesPerCaller);
    world.advance(LEASE.as_secs());
    for client in ["5", "6"] {
        world.ask(1, client, "a1").unwrap();
    }
    world.check_full(1, "7", "a1", Limit::LeasesPerCaller);
}

#[test]
fn newcomers_each_second_are_bounded_and_served_when_they_were_told_to_come_back() {
    let mut world = LimitedNode::with(|limits| limits.newcomers_per_caller = rate(4, 1));
    // A resource and its first holder are two newcomers.
    world.ask(1, "1", "a").unwrap();
    world.ask(1, "2", "a").unwrap();
    world.ask(1, "3", "a").unwrap();
    let full = world.check_full(1, "4", "a", Limit::NewcomersPerCaller);
    world.check_full(1, "4", "b", Limit::NewcomersPerCaller);
    world.ask(2, "4", "a").unwrap();
    world.ask(1, "1", "a").unwrap();
    world.now = world.now + full.retry_in;
    world.ask(1, "5", "a").unwrap();
    world.ask(1, "5", "b").unwrap();
}

#[test]
fn refused_clients_come_back_at_different_times() {
    let mut world = LimitedNode::with(|limits| limits.leases_per_resource_max = 1);
    world.ask(1, "1", "a").unwrap();
    let mut in_second = [0; 6];
    for client in 0..400 {
        let full = world.check_full(1, &format!("{client}-th"), "a", Limit::LeasesPerResource);
        in_second[usize::try_from(full.retry_in.as_secs()).unwrap()] += 1;
    }
    for second in 1..=4 {
        assert!((90..=110).contains(&in_second[second]), "{in_second:?}");
    }
}

#[test]
fn a_holder_keeps_its_lease_whatever_is_full() {
    let mut world = LimitedNode::with(|_| {});
    world.ask_for(1, "c", "a", 1.0, 7).unwrap();
    world.ask_for(1, "c", "prio", 1.0, 7).unwrap();
    let nothing_more = Limits {
        memory_max: 0,
        memory_per_caller_max: 0,
        memory_per_template_max: 0,
        newcomers_per_caller: rate(1, 1),
        requests_per_template: rate(20, 1),
        leases_per_resource_max: 0,
        leases_per_caller_max: 0,
        priorities_max: 0,
    };
    world.node.handle_limits(nothing_more);
    for round in 0..40 {
        world.advance(5);
        for resource in ["a", "prio"] {
            let wants = f64::from(round) + 2.0;
            let lease = world.ask_for(1, "c", resource, wants, 7).unwrap();
            assert_eq!(lease.capacity.get(), wants);
            assert!(world.ask(1, "new", resource).is_err());
        }
    }
}

#[test]
fn the_books_of_callers_end_with_the_mastership() {
    let mut world = LimitedNode::with(|limits| {
        limits.memory_per_caller_max = bytes_of(1);
        limits.newcomers_per_caller = rate(2, 2);
    });
    world.ask(1, "1", "a").unwrap();
    world.check_full(1, "2", "a", Limit::MemoryPerCaller);
    for epoch in 2..4 {
        let master = Mastership::Master { epoch: Some(epoch) };
        world.node.handle_mastership(Mastership::Unknown, world.now);
        world.node.handle_mastership(master, world.now);
        world.ask(1, "2", "a").unwrap();
        world.node.assert_consistent();
        assert_eq!(world.totals().leases, 1);
    }
    let refused = world.node.refused_by_limits();
    assert_eq!(refused, 1, "refusals stay counted");
}

#[test]
fn the_bytes_of_a_template_move_with_its_resources() {
    let two = bytes_of(2);
    let mut world = LimitedNode::with(|limits| limits.memory_per_template_max = two);
    world.ask(1, "1", "a1").unwrap();
    world.ask(1, "2", "a2").unwrap();
    world.check_full(1, "3", "a2", Limit::MemoryPerTemplate);
    let others = templates(&["a1", "b*", "a*", "prio*"]);
    world.node.handle_templates(others, world.now);
    world.node.assert_consistent();
    assert_eq!(world.node.load().memory_per_template, two / 2);
    world.ask(1, "3", "a2").unwrap();
    for number in 4..10 {
        let _fits_or_not = world.ask(1, &format!("{number}-th"), "a2");
    }
    world.check_full(1, "4", "a2", Limit::MemoryPerTemplate);
    world.ask(1, "4", "a1").unwrap();
    // A resource whose template is gone has no limit of a template, and its leases run down.
    world.node.handle_templates(templates(&["b*"]), world.now);
    world.node.assert_consistent();
    world.advance(LEASE.as_secs());
    world.node.assert_consistent();
    assert_eq!(world.totals().leases, 0);
    assert_eq!(world.node.load().memory_per_template, 0);
}

#[test]
fn above_the_mark_of_memory_newcomers_are_refused_until_something_is_free() {
    let mut world = LimitedNode::with(|limits| limits.memory_max = 40_000);
    let mut clients = 0;
    while world.ask(1, &format!("c{clients}"), "a").is_ok() {
        clients += 1;
    }
    assert!((50..200).contains(&clients), "{clients}");
    world.check_full(1, "one-more", "a", Limit::Memory);
    world.check_full(2, "one-more", "b", Limit::Memory);
    let used = world.node.load().memory_bytes;
    assert!((30_000..=40_000).contains(&used), "{used}");
    for client in 0..clients {
        let client = format!("c{client}");
        world.ask_for(1, &client, "a", 5.0, 0).unwrap();
    }
    assert_eq!(world.release(1, "c0", "a"), Released::Freed);
    world.ask(1, "one-more", "a").unwrap();
    assert_eq!(world.node.load().memory_bytes, used);
}

#[test]
fn one_caller_does_not_use_up_the_priorities_and_those_of_the_template_are_always_there() {
    let mut world = LimitedNode::with(|_| {});
    let mut ask = |caller: u128, priority: i64| {
        let client = format!("{caller}-{priority}");
        world.ask_for(caller, &client, "prio", 1.0, priority)
    };
    let is_full = |answer, expected| matches!(answer, Err(RefusalReason::Full(full)) if full.limit == expected);
    for priority in 0..16 {
        ask(1, priority).unwrap();
    }
    assert!(is_full(ask(1, 16), Limit::Priorities));
    // The template names priority 1000, and another caller brought 16.
    ask(1, 1000).unwrap();
    ask(2, 16).unwrap();
    ask(1, 16).unwrap();
    for caller in 3..6 {
        for priority in 0..15 {
            ask(caller, priority + 100 * i64::try_from(caller).unwrap()).unwrap();
        }
    }
    ask(6, 17).unwrap();
    ask(6, 18).unwrap();
    assert!(is_full(ask(6, 19), Limit::Priorities));
    ask(7, 1000).unwrap();
    // A known client that wants another priority keeps its lease.
    let answer = world.ask_for(1, "1-3", "prio", 1.0, 99);
    assert!(is_full(answer, Limit::Priorities));
    world.ask_for(1, "1-3", "prio", 2.0, 3).unwrap();
    world.node.assert_consistent();
}

#[test]
fn a_client_that_changes_its_priority_brings_the_new_one_and_unused_ones_are_free() {
    let mut world = LimitedNode::with(|_| {});
    let mut ask = |client: &str, priority: i64| world.ask_for(1, client, "prio", 1.0, priority);
    ask("changes", 0).unwrap();
    ask("c0", 0).unwrap();
    for priority in 1..15 {
        ask(&format!("c{priority}"), priority).unwrap();
    }
    ask("changes", 50).unwrap();
    assert!(ask("one-more", 51).is_err(), "those are sixteen");
    assert_eq!(world.totals().leases_per_resource, 16);
    for client in 0..15 {
        world.release(1, &format!("c{client}"), "prio");
    }
    for priority in 100..115 {
        let client = format!("later-{priority}");
        world.ask_for(1, &client, "prio", 1.0, priority).unwrap();
    }
    world.node.assert_consistent();
    // These fifteen expire, and the one that changed.
    world.advance(60);
    assert_eq!(world.node.snapshot(world.now).counters.expired, 16);
}

#[test]
fn one_caller_leaves_three_quarters_of_the_requests_of_a_template_to_others() {
    let mut world = LimitedNode::with(|limits| limits.requests_per_template = rate(10, 4));
    let passed = (0..100).filter(|number| world.ask(1, "flood", &format!("a{number}")).is_ok());
    assert_eq!(passed.count(), 10);
    world.check_full(1, "flood", "a", Limit::RequestsPerTemplate);
    for client in 0..10 {
        world.ask(2, &format!("new-{client}"), "a").unwrap();
    }
}

#[test]
fn too_many_requests_of_a_template_put_refreshes_off_only_as_long_as_their_leases_last() {
    let mut world = LimitedNode::with(|limits| limits.requests_per_template = rate(20, 5));
    world.ask(1, "c", "a1").unwrap();
    world.advance(30);
    let flood = |world: &mut LimitedNode| {
        for liar in 2..9 {
            while world.ask(liar, &format!("liar-{liar}"), "a2").is_ok() {}
        }
    };
    flood(&mut world);
    // Half of its lease is over: it is served.
    world.ask(1, "c", "a1").unwrap();
    world.advance(1);
    flood(&mut world);
    let full = world.check_full(1, "c", "a1", Limit::RequestsPerTemplate);
    assert!(full.retry_in < LEASE / 2, "it is back in time: {full:?}");
    // Of another template there are enough.
    world.ask(1, "c", "b").unwrap();
}
