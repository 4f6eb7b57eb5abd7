//! What servers say to each other, message by message: pushes, giving back, safe capacity, refresh
//! intervals by height, cycles, and children of the old kind.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::demand::{BandDemand, ServerDemand};
use doorward_engine::demand_curve::DemandCurve;
use doorward_engine::id::{HolderName, Incarnation, ResourceId};
use doorward_engine::node::event::Event;
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::server::{
    GetServerCapacity, GetServerCapacityReply, ServerAsk, ServerLease, Via,
};
use doorward_engine::request::{Ask, GetCapacity, Has, Refusal, RefusalReason, ReleaseCapacity};
use doorward_engine::supply::Told;
use doorward_engine::template::{Algorithm, AlgorithmKind, SafeCapacity, TemplateSpec, Templates};
use doorward_engine::time::Time;

fn resource() -> ResourceId {
    ResourceId::new("r").unwrap()
}

fn templates(capacity: f64) -> Templates {
    Templates::parse(&[TemplateSpec {
        identifier_glob: Some("r".to_owned()),
        capacity: Some(capacity),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(3600)),
        refresh_interval: Some(Duration::from_secs(1)),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    }])
    .unwrap()
}

/// A node that is the master, with `r` at this capacity if it is the root.
fn node(name: &str, root: Option<f64>) -> Node {
    static STARTED: AtomicU64 = AtomicU64::new(1);
    let config = Config {
        incarnation: Incarnation::new(STARTED.fetch_add(1, Ordering::Relaxed)).unwrap(),
        name: name.to_owned(),
        has_parent: root.is_none(),
        refresh_floor: Duration::ZERO,
        ..Config::default()
    };
    let of_root = templates;
    let mut node = Node::new(config, root.map_or_else(Templates::default, of_root));
    node.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
    node
}

/// What a child with so many clients that want 10 each asks.
fn asking(server: &str, sequence: u64, clients: u32, height: u32) -> GetServerCapacity {
    let wants = Amount::new(10.0 * f64::from(clients)).unwrap();
    let clients = f64::from(clients);
    let band = BandDemand {
        priority: 0,
        clients,
        wants,
        curve: DemandCurve::of_equals(wants, clients),
    };
    GetServerCapacity {
        caller: None,
        incarnation: None,
        mastership: None,
        epoch: None,
        server: HolderName::new(server).unwrap(),
        sequence: Some(sequence),
        height,
        asks: vec![ServerAsk {
            unheard: Amount::ZERO,
            told_of: Vec::new(),
            resource: resource(),
            demand: Arc::new(ServerDemand::new(vec![band])),
            has: None,
            outstanding: Some(Has::untimed(Amount::ZERO)),
            learning: false,
        }],
    }
}

fn granted(node: &mut Node, request: &GetServerCapacity, seconds: u64) -> ServerLease {
    let answer = node.handle_get_server_capacity(request, Via::Stream, Time::from_secs(seconds));
    match answer {
        Ok(Outcome::Served(reply)) => reply.leases[0].clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_safe_capacity_counts_the_clients_of_the_whole_tree() {
    let mut root = node("root", Some(120.0));
    granted(&mut root, &asking("eu", 1, 1, 2), 1);
    let lease = granted(&mut root, &asking("us", 1, 5, 1), 1);
    let expected = SafeCapacity::Limited(Amount::new(120.0 / 6.0).unwrap());
    assert_eq!(lease.told.safe_capacity, Some(expected));
    // And below, what the root says is what clients are told.
    let mut eu = node("eu", None);
    let client = GetCapacity {
        caller: None,
        incarnation: None,
        client: HolderName::new("c").unwrap(),
        sequence: Some(1),
        asks: vec![Ask {
            resource: resource(),
            priority: 0,
            wants: Amount::new(10.0).unwrap(),
            has: None,
        }],
    };
    eu.handle_get_capacity(&client, Time::from_secs(1));
    let request = eu.poll_upstream_request(9, Time::from_secs(1)).unwrap();
    let answer = root.handle_get_server_capacity(&request, Via::Stream, Time::from_secs(1));
    let Ok(Outcome::Served(reply)) = answer else {
        panic!("it is the master");
    };
    eu.handle_upstream_reply(&reply, Time::from_secs(1));
    let Outcome::Served(reply) = eu.handle_get_capacity(&client, Time::from_secs(1)) else {
        panic!("it is the master");
    };
    assert_eq!(reply.leases[0].safe_capacity, Some(expected));
}

#[test]
fn the_nearer_to_the_root_the_sooner_a_server_refreshes() {
    let mut root = node("root", Some(1e6));
    for (height, millis) in [(1, 500), (2, 250), (3, 125), (4, 62)] {
        let name = format!("child-{height}");
        let lease = granted(&mut root, &asking(&name, 1, 1, height), 1);
        assert_eq!(lease.refresh_in.as_millis(), millis, "height {height}");
    }
}

#[test]
fn a_server_that_is_its_own_ancestor_is_refused_and_takes_nothing() {
    let now = Time::from_secs(1);
    let mut eu = node("eu", None);
    let own = asking("eu", 1, 1, 1);
    let error = eu
        .handle_get_server_capacity(&own, Via::Poll, now)
        .unwrap_err();
    assert_eq!(error.path, ["eu"]);
    // A parent that tells of ancestors, among which is this node.
    eu.handle_get_server_capacity(&asking("leaf", 1, 1, 1), Via::Poll, now)
        .unwrap();
    let request = eu.poll_upstream_request(9, now).unwrap();
    assert_eq!(request.asks.len(), 1);
    let mut root = node("us", Some(100.0));
    let Ok(Outcome::Served(mut reply)) = root.handle_get_server_capacity(&request, Via::Poll, now)
    else {
        panic!("it is the master");
    };
    reply.ancestors = vec!["us".to_owned(), "eu".to_owned()];
    eu.handle_upstream_reply(&reply, now);
    assert!(eu.is_in_cycle());
    let events: Vec<Event> = std::iter::from_fn(|| eu.poll_event()).collect();
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::Cycle { .. })),
        "{events:?}"
    );
    let snapshot = eu.resource_snapshot(&resource(), now).unwrap();
    assert_eq!(snapshot.capacity, 0.0);
    // Told once, and over once the parent is moved.
    eu.handle_upstream_reply(&reply, now);
    let again = std::iter::from_fn(|| eu.poll_event());
    assert!(
        !again
            .into_iter()
            .any(|event| matches!(event, Event::Cycle { .. }))
    );
    reply.ancestors = vec!["us".to_owned()];
    eu.handle_upstream_reply(&reply, now);
    assert!(!eu.is_in_cycle());
}

#[test]
fn a_child_of_the_old_kind_is_served_by_its_rules() {
    // No curve, no `has`, no sequence: what it is granted counts at once.
    let mut root = node("root", Some(100.0));
    let old = |server: &str, clients| {
        let mut request = asking(server, 1, clients, 1);
        request.sequence = None;
        request.asks[0].outstanding = None;
        request
    };
    assert_eq!(granted(&mut root, &old("a", 20), 1).capacity.get(), 100.0);
    assert_eq!(granted(&mut root, &old("b", 20), 2).capacity.get(), 0.0);
    assert_eq!(granted(&mut root, &old("a", 20), 3).capacity.get(), 50.0);
    // One of ours would have to wait here until `a` has said that it shrank.
    assert_eq!(granted(&mut root, &old("b", 20), 4).capacity.get(), 50.0);
}

/// What is pushed to children now: who gets how much, as the answer to which of its requests.
fn pushed(node: &mut Node, seconds: u64) -> Vec<(String, f64, Option<u64>)> {
    let pushes = node.poll_pushes(Time::from_secs(seconds));
    let told = |(name, reply): (HolderName, GetServerCapacityReply)| {
        let lease = &reply.leases[0];
        let rounded = (lease.capacity.get() * 100.0).round() / 100.0;
        (name.to_string(), rounded, lease.sequence)
    };
    pushes.into_iter().map(told).collect()
}

#[test]
fn a_shrink_an_acknowledgement_and_a_growth_travel_without_being_asked_for() {
    let mut root = node("root", Some(100.0));
    for name in ["a", "b"] {
        root.handle_subscription(&HolderName::new(name).unwrap(), true);
    }
    let acknowledging = |name: &str, sequence, clients, has: f64| {
        let mut request = asking(name, sequence, clients, 1);
        let has = Amount::new(has).unwrap();
        request.asks[0].has = Some(Has::untimed(has));
        request.asks[0].outstanding = Some(Has::untimed(has));
        request
    };
    assert_eq!(
        granted(&mut root, &asking("a", 7, 10, 1), 1).capacity.get(),
        100.0
    );
    assert_eq!(pushed(&mut root, 1), []);
    // `b` comes: it waits, and `a` is told at once to shrink.
    assert_eq!(
        granted(&mut root, &asking("b", 1, 10, 1), 2).capacity.get(),
        0.0
    );
    assert_eq!(pushed(&mut root, 2), [("a".to_owned(), 50.0, Some(7))]);
    assert_eq!(pushed(&mut root, 2), [], "everyone is told once");
    // As soon as `a` says so, `b` grows.
    assert_eq!(
        granted(&mut root, &acknowledging("a", 8, 10, 50.0), 3)
            .capacity
            .get(),
        50.0
    );
    assert_eq!(pushed(&mut root, 3), [("b".to_owned(), 50.0, Some(1))]);
    // `a` wants less, and `b` gets it; whoever closed its stream is told nothing.
    assert_eq!(
        granted(&mut root, &acknowledging("a", 9, 2, 10.0), 4)
            .capacity
            .get(),
        100.0 / 6.0
    );
    assert_eq!(pushed(&mut root, 4), [("b".to_owned(), 83.33, Some(1))]);
    root.handle_subscription(&HolderName::new("b").unwrap(), false);
    assert_eq!(
        granted(&mut root, &acknowledging("a", 10, 1, 10.0), 5)
            .capacity
            .get(),
        100.0 / 11.0
    );
    assert_eq!(pushed(&mut root, 5), []);
}

#[test]
fn what_nobody_holds_any_more_is_given_back_to_the_parent() {
    let now = Time::from_secs(1);
    let mut root = node("root", Some(100.0));
    let mut eu = node("eu", None);
    let client = HolderName::new("c").unwrap();
    let ask = GetCapacity {
        caller: None,
        incarnation: None,
        client: client.clone(),
        sequence: Some(1),
        asks: vec![Ask {
            resource: resource(),
            priority: 0,
            wants: Amount::new(30.0).unwrap(),
            has: None,
        }],
    };
    let exchange = |eu: &mut Node, root: &mut Node, now| {
        let request = eu.poll_upstream_request(1, now).unwrap();
        let answer = root.handle_get_server_capacity(&request, Via::Stream, now);
        let Ok(Outcome::Served(reply)) = answer else {
            panic!("it is the master");
        };
        eu.handle_upstream_reply(&reply, now);
        request
    };
    eu.handle_get_capacity(&ask, now);
    exchange(&mut eu, &mut root, now);
    eu.handle_get_capacity(&ask, now);
    exchange(&mut eu, &mut root, Time::from_secs(3));
    assert_eq!(
        root.resource_snapshot(&resource(), now).unwrap().reserved,
        30.0
    );
    let later = Time::from_secs(5);
    let release = ReleaseCapacity {
        caller: None,
        incarnation: None,
        client,
        sequence: Some(2),
        resources: vec![resource()],
    };
    eu.handle_release_capacity(&release, later);
    let request = exchange(&mut eu, &mut root, Time::from_secs(7));
    assert_eq!(
        (request.asks[0].has, request.asks[0].demand.bands().len()),
        (None, 0)
    );
    assert_eq!(
        request.asks[0].outstanding,
        Some(Has::untimed(Amount::ZERO))
    );
    assert_eq!(
        root.resource_snapshot(&resource(), later).unwrap().reserved,
        0.0
    );
    assert_eq!(eu.resource_snapshot(&resource(), later), None);
}

#[test]
fn what_was_out_before_a_restart_and_is_more_than_there_is_now_runs_down_and_goes_to_nobody() {
    // A leaf whose lease was shrunk to 10 while 40 was out, and that restarted then.
    let mut eu = node("eu", None);
    let ask = |eu: &mut Node, client: &str, wants: f64, has: Option<(f64, u64)>, seconds: u64| {
        let has = has.map(|(capacity, until)| Has {
            granted_by: None,
            capacity: Amount::new(capacity).unwrap(),
            expires_in: Some(Duration::from_secs(until - seconds)),
        });
        let request = GetCapacity {
            caller: None,
            incarnation: None,
            client: HolderName::new(client).unwrap(),
            sequence: None,
            asks: vec![Ask {
                resource: resource(),
                priority: 0,
                wants: Amount::new(wants).unwrap(),
                has,
            }],
        };
        let answer = eu.handle_get_capacity(&request, Time::from_secs(seconds));
        let Outcome::Served(reply) = answer else {
            panic!("it is the master");
        };
        reply.leases.first().map(|lease| lease.capacity.get())
    };
    let (a, b) = (Some((30.0, 20)), Some((10.0, 40)));
    assert_eq!(ask(&mut eu, "a", 30.0, a, 1), None, "no lease yet");
    assert_eq!(ask(&mut eu, "b", 10.0, b, 1), None);
    let request = eu.poll_upstream_request(1, Time::from_secs(1)).unwrap();
    let asked = &request.asks[0];
    assert!(asked.learning && asked.has.is_none());
    let outstanding = asked.outstanding.unwrap();
    assert_eq!(outstanding.capacity.get(), 40.0);
    let lasts = outstanding.expires_in.unwrap();
    assert!(lasts >= Duration::from_secs(39) && lasts < Duration::from_millis(39_100));
    let algorithm = Algorithm {
        kind: AlgorithmKind::FairShare,
        ..Algorithm::default()
    };
    let answer = |sequence, reserved| GetServerCapacityReply {
        leases: vec![ServerLease {
            decided: None,
            granted_by: None,
            resource: resource(),
            capacity: Amount::new(10.0).unwrap(),
            expires_in: algorithm.lease_length,
            refresh_in: algorithm.refresh_interval,
            algorithm: Some(algorithm.clone()),
            told: Told {
                reserved: Amount::new(reserved).ok(),
                ..Told::default()
            },
            sequence,
        }],
        ..GetServerCapacityReply::default()
    };
    eu.handle_upstream_reply(&answer(request.sequence, 40.0), Time::from_secs(2));
    // Both keep what they have; neither's is given to the other, nor made longer.
    assert_eq!(ask(&mut eu, "a", 30.0, a, 3), None);
    assert_eq!(ask(&mut eu, "b", 10.0, b, 3), None);
    // What `a` had is over at 20 s, and the parent says so.
    let request = eu.poll_upstream_request(1, Time::from_secs(21)).unwrap();
    eu.handle_upstream_reply(&answer(request.sequence, 10.0), Time::from_secs(21));
    assert_eq!(ask(&mut eu, "a", 30.0, None, 22), Some(0.0));
    assert_eq!(ask(&mut eu, "b", 10.0, b, 22), Some(10.0));
}

/// How long a master of `eu` learns that begins at `begins`, if one before it had a lease of the
/// parent since `before`. The parent itself learns until 60 s.
fn learns_for(before: Option<u64>, begins: u64) -> Option<Duration> {
    let spec = TemplateSpec {
        identifier_glob: Some("r".to_owned()),
        capacity: Some(100.0),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(60)),
        refresh_interval: Some(Duration::from_secs(5)),
        ..TemplateSpec::default()
    };
    let config = Config {
        refresh_floor: Duration::ZERO,
        ..Config::default()
    };
    let mut root = Node::new(config, Templates::parse(&[spec]).unwrap());
    root.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
    let mut served = |epoch, seconds| {
        let now = Time::from_secs(seconds);
        let mut eu = node("eu", None);
        eu.handle_mastership(Mastership::Master { epoch: Some(epoch) }, now);
        let request = GetCapacity {
            caller: None,
            incarnation: None,
            client: HolderName::new("c").unwrap(),
            sequence: None,
            asks: vec![Ask {
                resource: resource(),
                priority: 0,
                wants: Amount::new(10.0).unwrap(),
                has: None,
            }],
        };
        eu.handle_get_capacity(&request, now);
        let sequence = 1 + seconds * 1_000_000;
        let asked = eu.poll_upstream_request(sequence, now).unwrap();
        let answer = root.handle_get_server_capacity(&asked, Via::Stream, now);
        let Ok(Outcome::Served(reply)) = answer else {
            panic!("it is the master");
        };
        eu.handle_upstream_reply(&reply, now);
        eu.resource_snapshot(&resource(), now)
            .unwrap()
            .learning_remaining
    };
    if let Some(before) = before {
        served(2, before);
    }
    served(3, begins)
}

#[test]
fn a_child_learns_for_as_long_as_what_its_predecessor_had_can_last() {
    for (what, before, begins, expected) in [
        ("it is new to its parent", None, 100, None),
        ("it was restarted", Some(100), 101, Some(59.0)),
        ("it was away for a while", Some(100), 140, Some(20.0)),
        ("it was away for long", Some(100), 160, None),
        ("the parent learns, too", Some(1), 30, Some(30.0)),
    ] {
        let found = learns_for(before, begins).map(|it| it.as_secs_f64());
        let near = |a: f64, b: f64| a >= b && a < b * 1.002;
        let as_expected = match (found, expected) {
            (Some(found), Some(expected)) => near(found, expected),
            (found, expected) => found == expected,
        };
        assert!(as_expected, "{what}: {found:?}");
    }
}

#[test]
fn what_a_child_says_is_out_is_not_told_on_when_it_is_over() {
    let outstanding = |eu: &mut Node, millis| {
        let now = Time::ZERO + Duration::from_millis(millis);
        eu.handle_timeout(now);
        let request = eu.poll_upstream_request(millis, now).unwrap();
        request.asks[0].outstanding.unwrap()
    };
    // Neither has a lease: nothing but its word tells how long the child's clients have theirs.
    let mut eu = node("eu", None);
    let mut request = asking("leaf", 1, 4, 1);
    request.asks[0].learning = true;
    request.asks[0].outstanding = Some(Has {
        granted_by: None,
        capacity: Amount::new(30.0).unwrap(),
        expires_in: Some(Duration::from_millis(500)),
    });
    let answer = eu.handle_get_server_capacity(&request, Via::Stream, Time::ZERO);
    let Ok(Outcome::Served(reply)) = answer else {
        panic!("it is the master");
    };
    assert_eq!(reply.refused[0].reason, RefusalReason::NotReady);
    let told = outstanding(&mut eu, 100);
    assert_eq!(told.capacity.get(), 30.0);
    assert!(told.expires_in.unwrap() <= Duration::from_millis(401));
    // The request was lost, and is made again.
    eu.handle_upstream_lost(Time::ZERO + Duration::from_millis(600));
    let over = Has::untimed(Amount::ZERO);
    assert_eq!(outstanding(&mut eu, 1_600), over);
}

#[test]
fn what_a_child_says_cannot_break_its_parent() {
    let mut spec = TemplateSpec {
        identifier_glob: Some("r".to_owned()),
        capacity: Some(100.0),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(3600)),
        refresh_interval: Some(Duration::from_secs(5)),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    };
    spec.parameters = vec![("decay_factor".to_owned(), Some("100".to_owned()))];
    let mut root = node("root", Some(100.0));
    root.handle_templates(Templates::parse(&[spec]).unwrap(), Time::from_secs(1));
    // A height, to the power of which the factor leaves every clock.
    let lease = granted(&mut root, &asking("a", u64::MAX, 1, u32::MAX), 1);
    assert!(lease.refresh_in < lease.expires_in);
    assert_eq!(lease.capacity.get(), 10.0);
}

#[test]
fn one_who_wants_more_than_can_be_told_does_not_spoil_it_for_the_others() {
    let mut root = node("root", Some(100.0));
    let mut eu = node("eu", None);
    let now = Time::from_secs(1);
    for (client, wants) in [("a", Amount::MAX.get()), ("b", 2.0)] {
        let request = GetCapacity {
            caller: None,
            incarnation: None,
            client: HolderName::new(client).unwrap(),
            sequence: None,
            asks: vec![Ask {
                resource: resource(),
                priority: 0,
                wants: Amount::new(wants).unwrap(),
                has: None,
            }],
        };
        eu.handle_get_capacity(&request, now);
    }
    let request = eu.poll_upstream_request(1, now).unwrap();
    for band in request.asks[0].demand.bands() {
        let levels: Vec<f64> = band.curve.points().iter().map(|p| p.level).collect();
        let demands: Vec<f64> = band.curve.points().iter().map(|p| p.demand).collect();
        let told = DemandCurve::parse(&levels, &demands, band.wants, band.clients);
        assert_eq!(told.as_ref(), Ok(&band.curve));
    }
    assert_eq!(granted(&mut root, &request, 1).capacity.get(), 100.0);
}

#[test]
fn a_parent_that_is_not_ready_after_it_refused_is_asked_in_rounds() {
    let mut eu = node("eu", None);
    let child = asking("leaf", 1, 1, 1);
    let mut now = Time::from_secs(1);
    let _waits = eu.handle_get_server_capacity(&child, Via::Stream, now);
    let mut asks = 0;
    for step in 0..20_000_u64 {
        now = Time::from_nanos(1_000_000_000 + step * 1_000_000);
        if let Some(request) = eu.poll_upstream_request(1, now) {
            asks += 1;
            let reason = if step == 0 {
                RefusalReason::UnknownResource
            } else {
                RefusalReason::NotReady
            };
            let refused = vec![Refusal {
                resource: request.asks[0].resource.clone(),
                reason,
            }];
            let reply = GetServerCapacityReply {
                refused,
                ..GetServerCapacityReply::default()
            };
            eu.handle_upstream_reply(&reply, now);
        }
    }
    assert!((2..200).contains(&asks), "{asks} in 20 s");
}
