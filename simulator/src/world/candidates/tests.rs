//! Tests of candidates against the model of etcd: the master at each time, with requests and answers
//! that are late or lost.

use std::path::Path;

use doorward_engine::node::mastership::Mastership;
use doorward_session::candidate::state::CandidateState;

use super::*;
use crate::recording::Checker;
use crate::scenario::Scenario;

/// Returns a scenario of a root with three candidates whose leases last ten seconds, and these
/// faults.
fn scenario(faults: &str) -> Scenario {
    let text = format!(
        "templates: {{resources: [{{identifier_glob: shared, capacity: 100, algorithm: {{kind: FAIR_SHARE, \
         lease_length: 60s, refresh_interval: 5s}}}}]}}
duration: 10m
tree: {{root: {{candidates: 3}}}}
clients: [{{count: 2, wants: 20}}]
limits: {{mastership: 0}}
faults: [{faults}]
"
    );
    Scenario::parse(&text, "s.yaml", Path::new("")).unwrap()
}

/// Plays up to a second of the world.
fn play_until(world: &mut World<'_>, second: f64) {
    let end = Time::ZERO + Duration::from_secs_f64(second);
    while let Some((at, what)) = world.events.next(end) {
        world.now = at;
        what(world);
    }
    world.now = end;
}

/// Returns the epoch of the master, and the number of servers that believe to be master.
fn master(world: &World<'_>) -> (u64, usize) {
    let place = &world.places[0];
    let local = place.clock.shows(world.now);
    let masters = place.servers.iter();
    let masters = masters.filter(|it| it.node().mastership(local).is_master());
    let epoch = place.master(world.now);
    let epoch = epoch.and_then(|it| it.node().mastership(local).epoch());
    (epoch.unwrap_or_default(), masters.count())
}

fn states(world: &World<'_>) -> Vec<CandidateState> {
    let place = &world.places[0];
    let local = place.clock.shows(world.now);
    let all = place.servers.iter().filter_map(|it| it.replica.candidate());
    let mut states: Vec<CandidateState> = all.map(|it| it.state(local)).collect();
    states.sort_unstable();
    states
}

#[test]
fn one_candidate_is_elected_before_the_run_begins_and_the_others_watch() {
    let scenario = scenario("");
    let mut world = World::new(&scenario);
    assert_eq!(master(&world).1, 1);
    let expected = [
        CandidateState::Watching,
        CandidateState::Watching,
        CandidateState::Master,
    ];
    assert_eq!(states(&world), expected);
    let epoch = master(&world).0;
    play_until(&mut world, 300.0);
    assert_eq!(
        (master(&world), states(&world).as_slice()),
        ((epoch, 1), &expected[..])
    );
}

/// Checks the fate of the master when a fault happens at 100 s: when its term ends, when the next
/// one begins, and whether its epoch is another one.
#[track_caller]
fn check(what: &str, fault: &str, ends: (f64, f64), again: (f64, f64), is_another: bool) {
    let scenario = scenario(fault);
    let mut world = World::new(&scenario);
    play_until(&mut world, 99.9);
    let (epoch, masters) = master(&world);
    assert_eq!(masters, 1, "{what}");
    let (mut ended, mut begun) = (None, None);
    for tenth in 1000..3000 {
        let at = f64::from(tenth) / 10.0;
        play_until(&mut world, at);
        let (now, masters) = master(&world);
        assert!(masters <= 1, "{what}: {masters} masters at {at}");
        if masters == 0 {
            ended.get_or_insert(at);
            begun = None;
        } else if ended.is_some() {
            begun.get_or_insert(at);
        }
        if masters == 1 && ended.is_none() && now != epoch {
            // One master followed the other between two looks.
            (ended, begun) = (Some(at), Some(at));
        }
    }
    let is_within = |at: Option<f64>, span: (f64, f64)| match at {
        Some(at) => span.0 <= at && at <= span.1,
        None => span == (0.0, 0.0),
    };
    assert!(is_within(ended, ends), "{what}: ended at {ended:?}");
    assert!(
        is_within(begun, again),
        "{what}: there was one again at {begun:?}"
    );
    let now = master(&world).0;
    assert_eq!(now != epoch, is_another, "{what}: {epoch} and {now}");
    assert!(now >= epoch, "{what}: epochs go back from {epoch} to {now}");
    let decided = world.watched[0].mastership;
    assert_eq!(
        format!("{decided:?}"),
        format!("{:?}", crate::checker::MastershipChecker::default()),
        "{what}"
    );
}

const NEVER: (f64, f64) = (0.0, 0.0);

#[test]
fn the_master_follows_from_the_messages_that_reach_etcd_and_its_candidates() {
    // A candidate renews its lease every 3.3 s, and stops deciding 9 s after the last confirmed
    // renewal.
    let dies = (105.5, 109.1);
    for (what, fault, ends, again, is_another) in [
        (
            "the master is cut off for a moment",
            "{at: 100s, isolate: root, for: 4s}",
            NEVER,
            NEVER,
            false,
        ),
        (
            "it is cut off for long",
            "{at: 100s, isolate: root, for: 60s}",
            dies,
            (110.0, 110.3),
            true,
        ),
        (
            "its questions are lost",
            "{at: 100s, isolate: root, way: there, for: 60s}",
            dies,
            (106.5, 110.3),
            true,
        ),
        (
            "it is not answered: one renewal may arrive at most",
            "{at: 100s, isolate: root, way: back, for: 60s}",
            dies,
            (106.5, 113.7),
            true,
        ),
        (
            "the others are cut off",
            "{at: 100s, isolate: root, servers: others, for: 60s}",
            NEVER,
            NEVER,
            false,
        ),
        (
            "all are cut off",
            "{at: 100s, isolate: root, servers: all, for: 60s}",
            dies,
            (160.0, 162.5),
            true,
        ),
        (
            "everything takes a little longer",
            "{at: 100s, etcd_link: root, late: [0s, 300ms], for: 60s}",
            NEVER,
            NEVER,
            false,
        ),
        (
            "each answer takes two fifths of the time for which it counts",
            "{at: 100s, etcd_link: root, late: 2s, for: 60s}",
            NEVER,
            NEVER,
            false,
        ),
        (
            "no answer comes in time",
            "{at: 100s, etcd_link: root, late: 3s, for: 60s}",
            dies,
            (160.0, 165.0),
            true,
        ),
        (
            "it dies",
            "{at: 100s, kill: root}",
            (100.0, 100.1),
            (110.0, 110.3),
            true,
        ),
        (
            "no candidate may succeed it; a fresh process that wins then gives it time",
            "{at: 100s, kill: root, for: 30s}",
            (100.0, 100.1),
            (130.0, 140.3),
            true,
        ),
        (
            "its process starts anew, and may win: then it gives its predecessor time",
            "{at: 100s, restart: root}",
            (100.0, 100.1),
            (110.0, 111.3),
            true,
        ),
        (
            "it hands over",
            "{at: 100s, elect: root}",
            (100.0, 100.2),
            (100.0, 100.2),
            true,
        ),
        (
            "it is frozen for a moment",
            "{at: 100s, freeze: root, for: 4s}",
            NEVER,
            NEVER,
            false,
        ),
        (
            "it is frozen for long",
            "{at: 100s, freeze: root, for: 60s}",
            dies,
            (110.0, 110.3),
            true,
        ),
        (
            "all stop, and know after their start only that there was a master",
            "{at: 100s, stop: root, for: 5s}",
            (100.0, 100.1),
            (115.0, 117.0),
            true,
        ),
        (
            "etcd is wiped: the old master may win again at once, others give it time",
            "{at: 100s, etcd: wiped}",
            (100.0, 101.1),
            (100.0, 115.0),
            true,
        ),
        (
            "etcd is restored: the key of the master is there",
            "{at: 100s, etcd: restored, back: 50s}",
            NEVER,
            NEVER,
            false,
        ),
        (
            "etcd is restored to when another one was the master",
            "{at: 50s, elect: root}, {at: 100s, etcd: restored, back: 60s}",
            (100.0, 101.1),
            (101.0, 121.0),
            true,
        ),
    ] {
        check(what, fault, ends, again, is_another);
    }
}

#[test]
fn a_succeeded_master_watches_and_knows_the_new_master() {
    let scenario = scenario("{at: 100s, isolate: root, for: 60s}");
    let mut world = World::new(&scenario);
    play_until(&mut world, 155.0);
    let states_apart = states(&world);
    assert_eq!(
        states_apart,
        [
            CandidateState::Watching,
            CandidateState::Master,
            CandidateState::Lapsed
        ]
    );
    play_until(&mut world, 165.0);
    assert_eq!(
        states(&world),
        [
            CandidateState::Watching,
            CandidateState::Watching,
            CandidateState::Master
        ]
    );
    let place = &world.places[0];
    let local = place.clock.shows(world.now);
    let master = place.master(world.now).unwrap();
    let address = place.addresses[master.slot as usize].as_str();
    for server in place.servers.iter().filter(|it| it.id != master.id) {
        let expected = Mastership::Elsewhere {
            master_address: address.to_owned(),
            epoch: master.node().mastership(local).epoch(),
        };
        assert_eq!(*server.node().mastership(local), expected);
    }
}

/// A term that is over by the clock of its server counts no more, even if nothing wakes the server.
#[test]
fn a_frozen_master_does_not_decide_when_it_goes_on() {
    let scenario = scenario("{at: 100s, freeze: root, for: 60s}");
    let recording = World::new(&scenario).run(|_| {});
    let verdict = recording
        .verdicts
        .iter()
        .find(|it| it.checker == Checker::Mastership);
    assert_eq!(verdict.unwrap().value, 0.0);
}

#[test]
fn templates_of_a_root_that_reaches_etcd_count_at_once_and_else_when_its_term_is_over() {
    let lower = "{resources: [{identifier_glob: shared, capacity: 10, algorithm: {kind: FAIR_SHARE, \
                 lease_length: 20s, refresh_interval: 5s}}]}";
    for (fault, counts_at) in [
        ("", (120.0, 120.1)),
        // Then, and once the request in flight is given up.
        ("{at: 115s, isolate: root, for: 60s},", (120.5, 126.2)),
    ] {
        let scenario = scenario(&format!("{fault} {{at: 120s, edit: {lower}}}"));
        let mut world = World::new(&scenario);
        play_until(&mut world, 119.9);
        let term = world.places[0].master(world.now).unwrap().id.term;
        let mut counted = None;
        for tenth in 1200..1300 {
            let at = f64::from(tenth) / 10.0;
            play_until(&mut world, at);
            let server = world.places[0].server(term).unwrap();
            let capacity = server
                .node()
                .templates()
                .iter()
                .next()
                .map(|it| it.capacity.get());
            if capacity == Some(10.0) {
                counted.get_or_insert(at);
            }
        }
        let counted = counted.unwrap();
        assert!(
            counts_at.0 <= counted && counted <= counts_at.1,
            "{fault}: {counted}"
        );
    }
}

#[test]
fn a_master_whose_key_is_deleted_may_be_elected_again_in_the_same_process() {
    let scenario = scenario("{every: 20s, from: 100s, depose: root}");
    let mut world = World::new(&scenario);
    let starts = world.places[0].starts;
    let mut masters: Vec<(u64, u64)> = Vec::new();
    for second in 90..590 {
        play_until(&mut world, f64::from(second));
        let place = &world.places[0];
        if let Some(server) = place.master(world.now) {
            let local = place.clock.shows(world.now);
            let epoch = server.node().mastership(local).epoch().unwrap();
            if masters.last().is_none_or(|last| last.1 != epoch) {
                masters.push((server.id.term, epoch));
            }
        }
    }
    assert!(masters.len() > 20, "{masters:?}");
    assert_eq!(world.places[0].starts, starts, "no process has started");
    let mut processes: Vec<u64> = masters.iter().map(|(term, _)| *term).collect();
    processes.sort_unstable();
    processes.dedup();
    assert!((2..=3).contains(&processes.len()), "{processes:?}");
}
