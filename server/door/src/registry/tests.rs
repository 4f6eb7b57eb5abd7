//! Connections that come and go, and evictions at a limit.

use std::net::{IpAddr, Ipv4Addr};

use super::*;
use crate::door_limits::testing::limits;

fn registry(connections: u64, per_caller: u64) -> Registry {
    Registry::new(Arc::new(limits(connections, per_caller)))
}

fn caller(number: u8) -> CallerId {
    CallerId::of(IpAddr::V4(Ipv4Addr::new(10, 0, 0, number)))
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Connects a client and finishes one call, `seconds` after the start.
fn proven(registry: &mut Registry, of: u8, seconds: u64) -> Arc<Connection> {
    let admission = registry.admit(caller(of), None, at(seconds));
    let connection = admission.admitted.expect("there is room");
    connection.begin_call(at(seconds));
    connection.end_call(at(seconds));
    connection.prove();
    connection
}

#[test]
fn at_the_limit_the_oldest_that_said_nothing_goes() {
    let mut registry = registry(3, 3);
    let speaks = proven(&mut registry, 1, 0);
    let silent = registry.admit(caller(1), None, at(1)).admitted.unwrap();
    let later = registry.admit(caller(2), None, at(2)).admitted.unwrap();
    for (newcomer, goes) in [(3, &silent), (4, &later)] {
        let admission = registry.admit(caller(newcomer), None, at(3));
        let connection = admission.admitted.expect("accepting never stops");
        let full = admission.full.unwrap();
        assert!(Arc::ptr_eq(&full, &registry.limits.connections));
        assert_eq!(admission.evicted.unwrap().id, goes.id);
        connection.begin_call(at(3));
        connection.end_call(at(3));
        connection.prove();
    }
    // All connections left have finished a call, so the one that has been idle for longest is evicted.
    let admission = registry.admit(caller(5), None, at(4));
    assert_eq!(admission.evicted.unwrap().id, speaks.id);
    assert_eq!(registry.len(), 3);
}

#[test]
fn who_has_a_call_in_progress_stays() {
    let mut registry = registry(2, 2);
    let busy = [proven(&mut registry, 1, 0), proven(&mut registry, 2, 1)];
    for connection in &busy {
        connection.begin_call(at(2));
    }
    let admission = registry.admit(caller(3), None, at(3));
    assert!(admission.admitted.is_none() && admission.evicted.is_none());
    busy[1].end_call(at(4));
    let admission = registry.admit(caller(3), None, at(5));
    assert_eq!(admission.evicted.unwrap().id, busy[1].id);
}

#[test]
fn an_address_takes_only_from_itself() {
    let mut registry = registry(100, 2);
    let other = registry.admit(caller(1), None, at(0)).admitted.unwrap();
    let first = registry.admit(caller(2), None, at(1)).admitted.unwrap();
    registry.admit(caller(2), None, at(2)).admitted.unwrap();
    let admission = registry.admit(caller(2), None, at(3));
    let full = admission.full.unwrap();
    assert!(Arc::ptr_eq(&full, &registry.limits.connections_per_caller));
    assert_eq!(admission.evicted.unwrap().id, first.id);
    assert_eq!(registry.largest(), 2);
    registry.remove(&other, at(4));
    assert_eq!(registry.len(), 2);
}

#[test]
fn an_address_that_left_is_remembered_for_a_while_and_then_forgotten() {
    let mut registry = registry(10, 10);
    for round in 0..2 {
        let connection = registry.admit(caller(1), None, at(round)).admitted.unwrap();
        for _ in 0..5 {
            assert!(connection.of_caller.takes_call(false, at(0)), "{round}");
        }
        registry.remove(&connection, at(round));
    }
    let connection = registry.admit(caller(1), None, at(2)).admitted.unwrap();
    assert!(!connection.of_caller.takes_call(false, at(0)));
    registry.remove(&connection, at(3));
    registry.admit(caller(2), None, at(60));
    assert_eq!(registry.callers.len(), 1);
}

#[test]
fn connections_that_come_and_go_leave_nothing_behind() {
    let mut registry = registry(1_000, 1_000);
    let stays = proven(&mut registry, 1, 0);
    for second in 0..100_000 {
        let connection = registry
            .admit(caller(2), None, at(second))
            .admitted
            .unwrap();
        registry.remove(&connection, at(second));
        registry.remove(&connection, at(second));
    }
    assert_eq!(registry.len(), 1);
    assert!(registry.all.unproven.len() + registry.all.proven.len() < 200);
    assert_eq!(registry.sizes, BTreeMap::from([(1, 1)]));
    assert!(registry.left.len() < 10);
    drop(stays);
}

#[test]
fn ten_thousand_clients_behind_one_address_all_stay() {
    let mut registry = registry(18_000, 13_500);
    for _ in 0..10_000 {
        let admission = registry.admit(caller(1), None, at(0));
        assert!(admission.full.is_none());
    }
    assert_eq!((registry.len(), registry.largest()), (10_000, 10_000));
}
