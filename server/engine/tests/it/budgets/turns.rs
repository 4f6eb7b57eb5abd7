//! Windows that turn, change or stay without use, and roots that begin within one.

use std::time::Duration;

use doorward_engine::id::HolderName;
use doorward_engine::messages::{LeasesFrom, LimitedBy, RefusalReason};
use doorward_engine::node::learning::UnknownLeases;
use doorward_engine::node::mastership::Outcome;
use doorward_engine::resource::parent::ParentPace;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};

use super::{TOTAL, WINDOW, World, relay, templates, templates_with};
use crate::asking::resource;

#[test]
fn a_new_root_goes_on_from_the_mark() {
    let mut world = World::new(2);
    for number in 0..6 {
        drop(world.ask(number, false));
        world.round(number % 2, false);
        world.write_marks(false);
        drop(world.ask(number, false));
        world.take(number, 5);
    }
    world.start_root();
    world
        .leaves
        .iter_mut()
        .for_each(|leaf| leaf.handle_upstream_lost(world.now));
    world.settle();
    // The lead of the mark stays reserved, and so does the part that was asked for and not given.
    let taken = *world.taken.values().next().unwrap();
    assert!(
        (TOTAL * 9 / 10..=TOTAL).contains(&taken),
        "{taken} of {TOTAL}"
    );
    world.assert_not_over();
}

#[test]
fn another_kind_of_template_takes_nothing_back_and_stops_no_timer() {
    let mut world = World::new(6);
    world.settle();
    let fair = Templates::parse(&[TemplateSpec {
        identifier_glob: Some("r".to_owned()),
        capacity: Some(7.0),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(20)),
        refresh_interval: Some(Duration::from_secs(5)),
        ..TemplateSpec::default()
    }]);
    world.root.handle_templates(fair.unwrap(), world.now);
    for _ in 0..8 {
        world.settle();
        world.advance(WINDOW / 2);
    }
    assert_eq!(world.taken.values().sum::<u64>(), TOTAL);
    world.root.handle_templates(templates(TOTAL), world.now);
    world.settle();
    assert_eq!(world.taken.values().sum::<u64>(), 2 * TOTAL);
}

#[test]
fn a_window_that_becomes_longer_is_marked_from_its_first_turn_on() {
    let mut world = World::new(7);
    world.templates = templates_with("5m", &[], TOTAL);
    world.start_root();
    world.settle();
    world.templates = templates_with("day", &[], TOTAL);
    let longer = world.templates.clone();
    world.root.handle_templates(longer, world.now);
    for _ in 0..2 {
        world.settle();
        world.advance(WINDOW);
    }
    // Only the store knows what was given.
    world.start_root();
    for number in 0..6 {
        world.clients[number] = world.client(number);
    }
    world.leaves = ["eu", "us"].map(|name| world.leaf(name)).into();
    world.settle();
    world.assert_not_over();
    assert_eq!(world.taken.len(), 1, "{:?}", world.taken);
}

#[test]
fn a_root_that_begins_within_a_window_carries_nothing_into_it() {
    let mut world = World::new(8);
    world.templates = templates_with("15m", &[("carry", "10%")], TOTAL);
    world.start_root();
    world.advance(Duration::from_secs(120));
    world.settle();
    assert_eq!(world.taken.values().sum::<u64>(), TOTAL);
}

#[test]
fn a_use_above_what_was_granted_is_not_paid_from_what_others_may_have() {
    let mut world = World::new(9);
    let unreported = |world: &World| {
        let seen = world.root.snapshots_after(None, 1, world.now);
        seen[0].unreported
    };
    for number in 0..2 {
        for _ in 0..3 {
            drop(world.ask(number, false));
            world.round(number, false);
            world.write_marks(false);
        }
    }
    // Another root: the first leaf is cut off, and the clients of the second use more than they have.
    world.start_root();
    world.leaves[1].handle_upstream_lost(world.now);
    let mut known = Vec::new();
    for _ in 0..4 {
        drop(world.ask(1, false));
        world.round(1, false);
        known.push(unreported(&world));
        if let Some(account) = world.clients[1].accounts.last_mut() {
            account.3 = account.2 + 40;
        }
        world.advance(Duration::from_secs(6));
    }
    assert!(known[3] > 0.0 && known[1] == known[3], "{known:?}");
}

#[test]
fn nothing_is_known_of_a_budget_that_nobody_used_for_two_windows() {
    let mut world = World::new(10);
    world.settle();
    assert_eq!(world.store.len(), 1);
    for _ in 0..4 {
        world.advance(WINDOW);
        world.write_marks(false);
    }
    assert_eq!(world.store.len(), 0);
    assert_eq!(world.root.snapshots_after(None, 10, world.now), []);
    world.settle();
    assert_eq!(world.taken.values().sum::<u64>(), 2 * TOTAL);
}

#[test]
fn a_root_that_begins_within_a_short_window_gives_nothing_before_the_next() {
    let mut world = World::new(11);
    world.templates = templates_with("5m", &[], TOTAL);
    for windows in 1..3 {
        world.start_root();
        world.settle();
        assert_eq!(world.taken.values().sum::<u64>(), (windows - 1) * TOTAL);
        world.advance(WINDOW / 3);
        world.settle();
        assert_eq!(world.taken.values().sum::<u64>(), windows * TOTAL);
    }
}

#[test]
fn a_call_up_to_the_largest_one_is_served_through_a_leaf_before_its_next_refresh() {
    let mut world = World::new(12);
    // A short window has no mark that would have to rise.
    world.templates = templates_with("5m", &[("largest_call", "1000")], TOTAL);
    world.start_root();
    world.advance(WINDOW / 3);
    stream_to_parents(&mut world);
    for (call, sum) in [(700, 700), (250, 950)] {
        wait_for(&mut world, call);
        assert_eq!(world.taken.values().sum::<u64>(), sum, "{call}");
    }
    // More than there is, and then less than that.
    wait_for(&mut world, 60);
    wait_for(&mut world, 20);
    assert_eq!(world.taken.values().sum::<u64>(), 970);
}

fn stream_to_parents(world: &mut World) {
    let pace = ParentPace {
        round: Duration::from_millis(50),
        slow: Duration::from_secs(1),
    };
    for leaf in &mut world.leaves {
        leaf.handle_upstream_pace(pace, world.now);
    }
}

/// Lets the first client wait for a call, for less than a refresh interval.
fn wait_for(world: &mut World, call: u64) {
    let before: u64 = world.taken.values().sum();
    for _ in 0..6 {
        let taken: u64 = world.taken.values().sum();
        let client = &mut world.clients[0];
        let waits = u64::from(taken == before) * call;
        client.need = waits;
        let mut request = client.request();
        request.asks[0].budget.as_mut().unwrap().least = waits;
        let sequence = request.sequence.unwrap();
        let leaf = &mut world.leaves[0];
        let Outcome::Served(reply) = leaf.handle_get_capacity(&request, world.now) else {
            panic!("it is the master");
        };
        if let Some(lease) = reply.leases.first() {
            world.clients[0].answer(sequence, lease);
            if world.clients[0].has(waits) {
                world.take(0, waits);
            }
        }
        world.advance(Duration::from_millis(100));
        world.round(0, false);
        world.write_marks(false);
    }
}

#[test]
fn a_root_that_saw_a_short_window_begin_serves_a_new_budget_in_it() {
    let mut world = World::new(17);
    world.templates = templates_with("5m", &[], TOTAL);
    world.start_root();
    world.advance(WINDOW / 3 + Duration::from_secs(1));
    world.settle();
    assert_eq!(world.taken.values().sum::<u64>(), TOTAL);
}

#[test]
fn what_was_given_back_before_a_failover_is_given_again_after_it() {
    let mut world = World::new(18);
    for need in [800, 800, 10, 10, 10] {
        world.clients[0].need = need;
        drop(world.ask(0, false));
        world.advance(Duration::from_secs(1));
        world.round(0, false);
        world.write_marks(false);
    }
    let (_, mark) = world.store[0];
    assert!((10.0..100.0).contains(&mark), "{mark}");
    world.start_root();
    for leaf in &mut world.leaves {
        leaf.handle_upstream_lost(world.now);
    }
    world.settle();
    let taken = world.taken.values().sum::<u64>();
    assert!((TOTAL * 9 / 10..=TOTAL).contains(&taken), "{taken}");
}

#[test]
fn a_raised_capacity_counts_before_anybody_asks() {
    let mut world = World::new(13);
    world.settle();
    let raised = templates(2 * TOTAL);
    world.root.handle_templates(raised, world.now);
    let seen = world.root.snapshots_after(None, 1, world.now);
    assert_eq!(seen[0].capacity, 2.0 * TOTAL as f64);
}

#[test]
fn an_operator_says_that_nothing_is_used_of_an_unknown_budget() {
    for only in [None, Some(resource("r"))] {
        let mut world = World::new(14);
        world.is_complete = false;
        world.start_root();
        world.settle();
        let none = UnknownLeases::AreNone;
        let said = world
            .root
            .handle_unknown_leases(none, only.as_ref(), world.now);
        said.unwrap();
        world.settle();
        assert_eq!(world.taken.values().sum::<u64>(), TOTAL);
    }
}

#[test]
fn a_silent_holder_keeps_what_it_may_have_taken_and_a_live_one_its_need() {
    let mut world = World::new(15);
    for _ in 0..4 {
        world.clients[0].need = 50;
        drop(world.ask(0, false));
        world.round(0, false);
        world.write_marks(false);
        world.advance(Duration::from_secs(6));
    }
    let held = world.clients[0].accounts[0].2;
    assert!(held > 0);
    world.clients[2].need = 10;
    for _ in 0..8 {
        drop(world.ask(2, false));
        world.advance(Duration::from_secs(6));
    }
    let leaf = world.leaves[0].snapshots_after(None, 1, world.now);
    assert_eq!((leaf[0].leases, leaf[0].clients), (2, 1.0));
    for _ in 0..60 {
        for number in 1..6 {
            world.clients[number].need = 50;
            drop(world.ask(number, false));
            world.take(number, 50);
            world.round(number % 2, false);
            world.write_marks(false);
        }
        world.advance(Duration::from_secs(1));
    }
    assert_eq!(world.taken.values().sum::<u64>(), TOTAL - held);
    world.take(0, held);
    world.assert_not_over();
}

#[test]
fn child_servers_are_shown_before_clients_each_once() {
    let mut world = World::new(11);
    world.settle();
    // A leaf that forgot has another account.
    world.leaves[0] = world.leaf("eu");
    world.settle();
    let seen = world.root.snapshots_after(None, 1, world.now);
    assert_eq!((seen[0].children, seen[0].leases), (2, 2));
    let id = resource("r");
    let start = LeasesFrom::Start;
    let (holders, _) = world.root.leases_from(&id, &start, "", 100, world.now);
    let names = |child: bool| {
        let of = holders.iter().filter(move |it| it.child.is_some() == child);
        of.map(|it| it.holder.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(true), ["us", "eu"]);
    assert_eq!(
        holders
            .iter()
            .take(2)
            .filter(|it| it.child.is_some())
            .count(),
        2
    );
    let reserved: f64 = holders.iter().map(|it| it.reserved).sum();
    assert_eq!(reserved, seen[0].reserved, "{holders:?}");
    let children = world.root.child_servers_after(None, 10, world.now);
    let children: Vec<_> = children.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(children, ["eu", "us"]);
    let used = seen[0].budget.as_ref().unwrap().used;
    assert_eq!(used, world.taken.values().sum::<u64>());
}

#[test]
fn calls_are_served_through_three_levels_within_a_second() {
    let mut world = World::new(13);
    let below = world.leaf("below");
    world.leaves.push(below);
    let name = |name| HolderName::new(name).unwrap();
    world.root.handle_subscription(&name("eu"), true, world.now);
    world.leaves[0].handle_subscription(&name("below"), true, world.now);
    stream_to_parents(&mut world);
    for (need, end) in [
        (10, LimitedBy::Wants),
        (50, LimitedBy::Wants),
        (900, LimitedBy::Wants),
        // More than there is.
        (100, LimitedBy::Others),
    ] {
        world.clients[0].need = need;
        let began = world.now;
        while let told = told_below(&mut world)
            && told != Some(end)
        {
            assert!(told.is_none_or(|it| it == LimitedBy::Parent), "{need}");
            assert!(world.now < began + Duration::from_secs(1), "call of {need}");
            world.advance(Duration::from_millis(10));
        }
        world.take(0, need);
    }
    world.advance(Duration::from_secs(6));
    world.round(0, false);
    let children = world.root.child_servers_after(None, 10, world.now);
    let heights: Vec<_> = children.iter().map(|child| child.height).collect();
    assert_eq!(heights, [2]);
}

/// Lets the first client ask the server below the first one, and all servers ask and push. Returns what limits its lease,
/// if there is one.
fn told_below(world: &mut World) -> Option<LimitedBy> {
    let now = world.now;
    let mut request = world.clients[0].request();
    request.asks[0].budget.as_mut().unwrap().least = world.clients[0].need;
    let [region, _, below] = &mut world.leaves[..] else {
        unreachable!("three are there");
    };
    let Outcome::Served(reply) = below.handle_get_capacity(&request, now) else {
        unreachable!("it is the master");
    };
    relay(below, region, false, now);
    relay(region, &mut world.root, false, now);
    for (_, pushed) in world.root.poll_pushes(now).children {
        region.handle_upstream_reply(&pushed, now);
    }
    for (_, pushed) in region.poll_pushes(now).children {
        below.handle_upstream_reply(&pushed, now);
    }
    world.write_marks(false);
    let Some(lease) = reply.leases.first() else {
        assert_eq!(reply.refused[0].reason, RefusalReason::NotReady);
        return None;
    };
    world.clients[0].answer(request.sequence.unwrap(), lease);
    Some(lease.limited_by)
}

#[test]
fn a_leaf_with_one_client_gets_no_large_call_while_others_need_some() {
    let mut world = World::new(19);
    world.templates = templates_with("5m", &[("largest_call", "50")], TOTAL);
    world.start_root();
    world.advance(WINDOW / 3);
    stream_to_parents(&mut world);
    world.clients[1].need = 200;
    drop(world.ask(1, false));
    world.round(1, false);
    wait_for(&mut world, 700);
    assert_eq!(world.taken.values().sum::<u64>(), 0);
    world.clients[1].need = 0;
    drop(world.ask(1, false));
    world.advance(Duration::from_secs(6));
    world.round(1, false);
    wait_for(&mut world, 700);
    assert_eq!(world.taken.values().sum::<u64>(), 700);
}

#[test]
fn a_budget_that_is_gone_is_asked_for_seldom_after_its_window() {
    let mut world = World::new(20);
    world.settle();
    let none = Templates::parse(&[]).unwrap();
    world.root.handle_templates(none, world.now);
    world.advance(WINDOW);
    stream_to_parents(&mut world);
    let mut requests = 0;
    for _ in 0..1_000 {
        world.advance(Duration::from_millis(10));
        let asks = world.leaves[0].poll_upstream_timeout();
        requests += usize::from(asks.is_some_and(|at| at <= world.now));
        world.round(0, false);
    }
    assert!((1..5).contains(&requests), "{requests} in ten seconds");
}
