//! Tests of clients and child servers that meet redirect loops and stale addresses.

use std::path::Path;
use std::time::Duration;

use doorward_engine::time::Time;

use super::*;
use crate::scenario::{Scenario, forms};

/// Returns a scenario with a root of that many candidates, a leaf of one, two clients at each, and
/// these faults.
fn scenario(candidates: u32, faults: &str) -> Scenario {
    let text = format!(
        "templates: {{resources: [{{identifier_glob: shared, capacity: 100, algorithm: {{kind: FAIR_SHARE, \
         lease_length: 60s, refresh_interval: 5s}}}}]}}
duration: 10m
tree: {{root: {{candidates: {candidates}, children: [leaf]}}}}
clients: [{{name: high, count: 2, wants: 20, at: root}}, {{name: low, count: 2, wants: 20, at: leaf}}]
faults: [{faults}]
"
    );
    Scenario::parse(&text, "s.yaml", Path::new("")).unwrap()
}

fn play_until(world: &mut World<'_>, second: f64) {
    let end = Time::ZERO + Duration::from_secs_f64(second);
    while let Some((at, what)) = world.events.next(end) {
        world.now = at;
        what(world);
    }
    world.now = end;
}

/// Returns the address to which each server of the root redirects, by slot; `None` for the master.
fn sent_to(world: &World<'_>) -> Vec<Option<String>> {
    let place = &world.places[0];
    let mut servers: Vec<(u32, ServerId)> =
        place.servers.iter().map(|it| (it.slot, it.id)).collect();
    servers.sort_unstable();
    let published = servers
        .into_iter()
        .map(|(_, id)| match world.mastership_said_by(id) {
            Mastership::Elsewhere { master_address, .. } => Some(master_address),
            Mastership::Master { .. } => None,
            Mastership::Unknown => Some(String::new()),
        });
    published.collect()
}

#[test]
fn servers_that_are_not_master_redirect_to_one_another_and_afterwards_to_the_master() {
    for (candidates, healed) in [(2, false), (3, false), (4, true)] {
        let mut scenario = scenario(candidates, "{at: 100s, redirect_loop: root, for: 100s}");
        scenario.heal_at = healed.then_some(forms::Time(Duration::from_secs(150)));
        let mut world = World::new(&scenario);
        play_until(&mut world, 120.0);
        let now = world.now;
        let master = world.places[0].master(now).unwrap().slot;
        let address = |slot: u32| Some(world.places[0].addresses[slot as usize].to_string());
        let others: Vec<u32> = (0..candidates).filter(|slot| *slot != master).collect();
        let next = |slot: u32| {
            let place = others.iter().position(|it| *it == slot).unwrap();
            others[(place + 1) % others.len()]
        };
        let expected = |to: &dyn Fn(u32) -> u32| -> Vec<Option<String>> {
            let all = 0..candidates;
            all.map(|it| (it != master).then(|| address(to(it)).unwrap()))
                .collect()
        };
        assert_eq!(sent_to(&world), expected(&next), "{candidates} candidates");
        let right = expected(&|_| master);
        play_until(&mut world, if healed { 151.0 } else { 201.0 });
        assert_eq!(sent_to(&world), right, "{candidates} candidates");
    }
}

#[test]
fn stale_addresses_are_published_and_all_addresses_afterwards() {
    for healed in [false, true] {
        let mut scenario = scenario(
            3,
            "{at: 100s, stale_addresses: root, for: 100s}, {at: 105s, crash: {clients: 4}, for: 5s}, \
             {at: 105s, restart: leaf, for: 5s}, {at: 110s, stale_addresses: root, for: 20s}",
        );
        scenario.heal_at = healed.then_some(forms::Time(Duration::from_secs(150)));
        let mut world = World::new(&scenario);
        play_until(&mut world, 140.0);
        let all = Arc::clone(&world.places[0].addresses);
        let published = Arc::clone(&world.places[0].published);
        let shown: Vec<&str> = published.iter().map(Address::as_str).collect();
        assert_eq!(shown[..3], ["gone-0-0:1", "gone-0-1:1", "gone-0-2:1"]);
        assert_eq!(published.len(), 4);
        assert!(all.contains(&published[3]));
        let of_clients = |world: &World<'_>| -> Vec<Arc<[Address]>> {
            let here = world.clients.iter().filter(|it| it.place == 0);
            here.map(|it| Arc::clone(it.finder.known())).collect()
        };
        assert_eq!(
            of_clients(&world),
            [Arc::clone(&published), published.clone()]
        );
        assert_eq!(world.places[1].parents, published);
        play_until(&mut world, if healed { 151.0 } else { 201.0 });
        assert_eq!(world.places[0].published, all);
        assert_eq!(of_clients(&world), [Arc::clone(&all), all.clone()]);
        assert_eq!(world.places[1].parents, all);
    }
}

/// Returns the time at which the leaf gets an answer from its parent after its server started again
/// at 102 s.
fn back_at(fault: &str) -> f64 {
    let scenario = scenario(
        3,
        &format!("{{at: 50s, elect: root}}, {fault} {{at: 101s, restart: leaf, for: 1s}}"),
    );
    let mut world = World::new(&scenario);
    play_until(&mut world, 102.0);
    let master = world.places[0].master(world.now).unwrap().slot;
    assert_ne!(master, 0, "the first server asked is not the master");
    for hundredth in 10_201..20_000 {
        let at = f64::from(hundredth) / 100.0;
        play_until(&mut world, at);
        let answers = world.places[1].servers.first();
        let answers = answers.and_then(|it| it.replica.parent_session()?.answers());
        if answers.is_some() {
            return at;
        }
    }
    f64::INFINITY
}

#[test]
fn a_server_that_starts_finds_its_parent_behind_loops_and_addresses_that_are_gone_after_waits() {
    let at_once = back_at("");
    assert!(at_once < 103.0, "{at_once}");
    for fault in ["redirect_loop", "stale_addresses"] {
        let later = back_at(&format!("{{at: 100s, {fault}: root, for: 60s}},"));
        assert!(
            at_once < later && later < 130.0,
            "{fault}: {at_once} and {later}"
        );
    }
}
