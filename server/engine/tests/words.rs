//! What a server that learns makes of what its holders say: of work that goes on when a lease is over, and
//! of a second process under a name.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::demand::{BandDemand, ServerDemand};
use doorward_engine::demand_curve::DemandCurve;
use doorward_engine::id::{HolderName, Incarnation, MastershipId, ResourceId};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::server::{
    GetServerCapacity, GetServerCapacityReply, ServerAsk, ServerLease, Via,
};
use doorward_engine::request::{Ask, GetCapacity, Has, RefusalReason};
use doorward_engine::supply::Told;
use doorward_engine::template::{Algorithm, Templates};
use doorward_engine::time::Time;

fn resource() -> ResourceId {
    ResourceId::new("r").unwrap()
}

fn amount(n: f64) -> Amount {
    Amount::new(n).unwrap()
}

fn at(s: u64) -> Time {
    Time::from_secs(s)
}

fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// What a client gets that has so much for so many seconds.
fn client(
    leaf: &mut Node,
    (name, process, sequence): (&str, u64, u64),
    wants: f64,
    has: Option<(f64, Duration)>,
    now: Time,
) -> Result<f64, RefusalReason> {
    let request = GetCapacity {
        caller: None,
        client: HolderName::new(name).unwrap(),
        incarnation: Incarnation::new(process),
        sequence: Some(sequence),
        asks: vec![Ask {
            resource: resource(),
            priority: 0,
            wants: amount(wants),
            has: has.map(|(c, s)| Has {
                capacity: amount(c),
                expires_in: Some(s),
                granted_by: Some(MastershipId::new(99)),
            }),
        }],
    };
    match leaf.handle_get_capacity(&request, now) {
        Outcome::Served(reply) => match reply.refused.first() {
            Some(r) => Err(r.reason),
            None => Ok(reply.leases[0].capacity.get()),
        },
        Outcome::NotMaster(_) => panic!(),
    }
}

fn leaf() -> Node {
    let config = Config {
        name: "leaf".to_owned(),
        has_parent: true,
        refresh_floor: Duration::ZERO,
        ..Config::default()
    };
    let mut leaf = Node::new(config, Templates::default());
    leaf.handle_mastership(Mastership::Master { epoch: None }, Time::ZERO);
    leaf
}

fn answer(leaf: &mut Node, capacity: f64, inherited: f64, inherited_for: u64, now: Time) {
    let request = leaf
        .poll_upstream_request(now.as_nanos() / 1000, now)
        .unwrap();
    let lease = ServerLease {
        decided: None,
        resource: resource(),
        capacity: amount(capacity),
        expires_in: Duration::from_secs(60),
        refresh_in: Duration::from_secs(8),
        algorithm: Some(Algorithm {
            lease_length: Duration::from_secs(60),
            refresh_interval: Duration::from_secs(8),
            ..Algorithm::default()
        }),
        told: Told {
            inherited_for: Some(Duration::from_secs(inherited_for)),
            inherited: Some(amount(inherited)),
            reserved: Some(amount(capacity)),
            ..Told::default()
        },
        granted_by: Some(MastershipId::new(7)),
        sequence: request.sequence,
    };
    leaf.handle_upstream_reply(
        &GetServerCapacityReply {
            leases: vec![lease],
            ..GetServerCapacityReply::default()
        },
        now,
    );
}

/// The node has handed out 60, and none of it to `a` any more, which is not done yet with what it had.
#[test]
fn work_that_goes_on_when_its_lease_is_over_is_no_part_of_what_others_have() {
    let mut leaf = leaf();
    client(&mut leaf, ("a", 1, 1), 0.0, Some((50.0, secs(0))), at(1)).unwrap_err();
    answer(&mut leaf, 60.0, 60.0, 50, at(2));
    client(&mut leaf, ("a", 1, 2), 0.0, Some((50.0, secs(0))), at(3)).unwrap();
    client(&mut leaf, ("a", 1, 3), 0.0, None, at(4)).unwrap();
    let new = client(&mut leaf, ("new", 2, 1), 60.0, None, at(5));
    assert!(new.unwrap() <= 0.0, "{new:?}, and 60 are out");
    let b = client(&mut leaf, ("b", 3, 1), 60.0, Some((60.0, secs(40))), at(6));
    assert_eq!(b.unwrap(), 60.0);
}

/// What a child server gets that says so much of itself, and of its holders, for so many seconds.
fn child(
    node: &mut Node,
    (name, sequence): (&str, u64),
    has: f64,
    outstanding: (f64, u64),
    now: Time,
) -> Result<f64, RefusalReason> {
    let lasting = |it: f64, lasts: u64| Has {
        expires_in: Some(secs(lasts)),
        granted_by: Some(MastershipId::new(99)),
        ..Has::untimed(amount(it))
    };
    let band = BandDemand {
        priority: 0,
        clients: 1.0,
        wants: amount(50.0),
        curve: DemandCurve::of_equals(amount(50.0), 1.0),
    };
    let (out, lasts) = outstanding;
    let request = GetServerCapacity {
        caller: None,
        server: HolderName::new(name).unwrap(),
        epoch: None,
        incarnation: Incarnation::new(1),
        mastership: Some(MastershipId::new(1)),
        sequence: Some(sequence),
        height: 1,
        asks: vec![ServerAsk {
            resource: resource(),
            demand: Arc::new(ServerDemand::new(vec![band])),
            has: Some(lasting(has, lasts)),
            outstanding: Some(lasting(out, lasts)),
            told_of: Vec::new(),
            unheard: Amount::ZERO,
            learning: false,
        }],
    };
    match node.handle_get_server_capacity(&request, Via::Stream, now) {
        Ok(Outcome::Served(reply)) => match reply.refused.first() {
            Some(refusal) => Err(refusal.reason),
            None => Ok(reply.leases[0].capacity.get()),
        },
        other => panic!("{other:?}"),
    }
}

/// The capacity was lowered: two children have 90 of 50, and each is confirmed its part. When what `a` had is over,
/// `b` still has 40: its holders have longer leases.
#[test]
fn who_was_cut_does_not_grow_by_what_another_one_has_that_was_cut() {
    let mut region = leaf();
    child(&mut region, ("a", 1), 50.0, (50.0, 11), at(1)).unwrap_err();
    child(&mut region, ("b", 1), 40.0, (40.0, 40), at(1)).unwrap_err();
    answer(&mut region, 50.0, 0.0, 60, at(1));
    let a = child(&mut region, ("a", 2), 50.0, (50.0, 2), at(10));
    assert_eq!(a, Ok(25.0));
    // As long as its lease lasts, it may as well keep that.
    child(&mut region, ("b", 2), 40.0, (40.0, 29), at(12)).unwrap_err();
    let a = child(&mut region, ("a", 3), 0.0, (0.0, 0), at(13));
    assert!(a.is_ok_and(|it| it <= 10.0), "{a:?}, and b has 40");
    child(&mut region, ("b", 3), 40.0, (40.0, 27), at(14)).unwrap();
    let a = child(&mut region, ("a", 4), 10.0, (10.0, 10), at(30));
    assert!(a.is_ok_and(|it| it <= 10.0), "{a:?}, and b has 40");
    region.assert_consistent();
}

/// The node had 60, of which 20 are over: those of `a`, whose word was sent before and comes afterwards. The
/// other 40 are those of `b`.
#[test]
fn a_lease_that_was_over_when_its_holders_word_came_is_no_part_of_what_others_have() {
    let mut leaf = leaf();
    client(&mut leaf, ("z", 1, 1), 0.0, None, at(1)).unwrap_err();
    answer(&mut leaf, 60.0, 60.0, 50, at(2));
    answer(&mut leaf, 40.0, 40.0, 30, at(20));
    let nearly_over = Some((20.0, Duration::from_millis(100)));
    let later = at(20) + Duration::from_millis(200);
    let a = client(&mut leaf, ("a", 2, 1), 20.0, nearly_over, later);
    assert!(a.unwrap_or(0.0) <= 0.0, "{a:?}, and 40 are out");
    let b = client(&mut leaf, ("b", 3, 1), 40.0, Some((40.0, secs(28))), at(21));
    assert_eq!(b.unwrap(), 40.0);
}

#[test]
fn what_a_process_said_counts_while_its_server_waits_though_another_one_takes_its_name() {
    let mut leaf = leaf();
    for second in 1..4 {
        let has = Some((60.0, secs(50 - second)));
        client(&mut leaf, ("a", 1, second), 60.0, has, at(second)).unwrap_err();
    }
    client(&mut leaf, ("a", 2, 1), 60.0, None, at(4)).unwrap_err();
    answer(&mut leaf, 60.0, 60.0, 50, at(5));
    for second in 5..8 {
        for name in [("a", 2, second), ("new", 3, second)] {
            let got = client(&mut leaf, name, 60.0, None, at(second)).unwrap_or(0.0);
            assert!(got <= 0.0, "{name:?}: {got}");
        }
    }
    let has = Some((60.0, secs(43)));
    let first = client(&mut leaf, ("a", 1, 9), 60.0, has, at(8));
    assert_eq!(first.unwrap(), 60.0);
}
