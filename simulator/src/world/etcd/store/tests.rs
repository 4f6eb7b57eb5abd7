//! Tests of the etcd model's contents after requests.

use doorward_session::candidate::store::{Master, Value};

use super::*;
use crate::world::message::seen;

const TTL: Duration = Duration::from_secs(10);

fn at(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

fn master(server: &str) -> Value {
    Value::Master(Master {
        address: "a:1".into(),
        server: server.into(),
        epoch_offset: 0,
    })
}

fn put(key: EtcdKey, value: Value, lease: Option<LeaseId>) -> TxnStep {
    TxnStep::Put(key, value, lease)
}

fn txn(when: Vec<Compare>, then: Vec<TxnStep>) -> Op {
    let or_else = vec![TxnStep::Get(EtcdKey::Master)];
    Op::Transact(
        "test",
        Txn {
            when,
            then,
            or_else,
        },
    )
}

/// Returns a store with a lease, and the master's key of node 0 under it, at revision 2.
fn with_master() -> (EtcdStore, LeaseId) {
    let mut store = EtcdStore::new(2, true);
    let lease = grant(&mut store, 0);
    let created = put(EtcdKey::Master, master("a"), Some(lease));
    let vacant = Compare::Created(EtcdKey::Master, 0);
    check(&mut store, 0, &txn(vec![vacant], vec![created]), true, 2);
    (store, lease)
}

fn grant(store: &mut EtcdStore, node: u32) -> LeaseId {
    match store.execute(node, &Op::Grant(TTL), at(0)) {
        OpAnswer::Granted(lease, _) => lease,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check(store: &mut EtcdStore, node: u32, op: &Op, succeeds: bool, at_revision: u64) {
    match store.execute(node, op, at(1)) {
        OpAnswer::Transacted(answer) => {
            let found = (answer.succeeded, answer.revision);
            assert_eq!(found, (succeeds, at_revision), "{op:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_transaction_takes_one_branch_by_the_stored_keys() {
    let (store, lease) = with_master();
    let other = LeaseId(77);
    for (compare, holds) in [
        (Compare::Created(EtcdKey::Master, 2), true),
        (Compare::Created(EtcdKey::Master, 0), false),
        (Compare::Created(EtcdKey::Term, 0), true),
        (Compare::Modified(EtcdKey::Master, 2), true),
        (Compare::Modified(EtcdKey::Master, 3), false),
        (Compare::Modified(EtcdKey::Term, 0), true),
        (Compare::Lease(EtcdKey::Master, Some(lease)), true),
        (Compare::Lease(EtcdKey::Master, Some(other)), false),
        (Compare::Lease(EtcdKey::Master, None), false),
        (Compare::Lease(EtcdKey::Term, None), true),
    ] {
        let mut store = EtcdStore {
            history: None,
            state: store.state.clone(),
            ..store
        };
        let write = put(EtcdKey::Term, master("a"), None);
        let op = txn(vec![compare], vec![write]);
        check(&mut store, 0, &op, holds, if holds { 3 } else { 2 });
        assert_eq!(store.node(0).contains_key(&EtcdKey::Term), holds, "{op:?}");
    }
}

#[test]
fn a_key_written_again_keeps_its_creation_revision() {
    let (mut store, lease) = with_master();
    let again = put(EtcdKey::Master, master("b"), Some(lease));
    check(&mut store, 0, &txn(vec![], vec![again]), true, 3);
    let found = store.node(0).get(&EtcdKey::Master).cloned().unwrap();
    assert_eq!((found.created, found.modified), (2, 3));
    // A key that was deleted starts again. Deleting a missing key is no write.
    let delete = || txn(vec![], vec![TxnStep::Delete(EtcdKey::Master)]);
    check(&mut store, 0, &delete(), true, 4);
    check(&mut store, 0, &delete(), true, 4);
    let anew = put(EtcdKey::Master, master("b"), Some(lease));
    check(&mut store, 0, &txn(vec![], vec![anew]), true, 5);
    assert_eq!(store.node(0).get(&EtcdKey::Master).unwrap().created, 5);
    assert!(store.node(1).is_empty(), "of another node");
}

#[test]
fn a_read_sees_the_writes_of_its_transaction() {
    let (mut store, _) = with_master();
    let vacant = Compare::Created(EtcdKey::Master, 0);
    let op = txn(vec![vacant], vec![]);
    let OpAnswer::Transacted(answer) = store.execute(0, &op, at(1)) else {
        panic!("{op:?}");
    };
    assert!(!answer.succeeded);
    assert_eq!(answer.found.unwrap().created, 2);
}

#[test]
fn keys_end_with_their_lease_and_writes_under_an_ended_lease_fail() {
    let (mut store, lease) = with_master();
    assert_eq!(store.lease(lease).unwrap().ends, at(10));
    assert_eq!(
        store.execute(0, &Op::Renew(lease), at(5)),
        OpAnswer::Renewed
    );
    assert_eq!(store.lease(lease).unwrap().ends, at(15));
    let other = grant(&mut store, 1);
    let theirs = put(EtcdKey::Master, master("b"), Some(other));
    check(&mut store, 1, &txn(vec![], vec![theirs]), true, 3);
    assert_eq!(
        store.execute(0, &Op::Revoke(lease), at(6)),
        OpAnswer::Revoked
    );
    assert_eq!(store.state.revision, 4);
    assert!(store.node(0).is_empty());
    assert_eq!(store.master_lease(1), Some(other), "of another lease");
    for op in [
        Op::Renew(lease),
        Op::Revoke(lease),
        txn(vec![], vec![put(EtcdKey::Master, master("a"), Some(lease))]),
    ] {
        assert_eq!(store.execute(0, &op, at(7)), OpAnswer::LeaseGone, "{op:?}");
    }
    assert_eq!(store.state.revision, 4, "nothing was written");
}

#[test]
fn a_restored_backup_has_the_keys_of_its_time() {
    let (mut store, lease) = with_master();
    let second = put(EtcdKey::Term, master("a"), None);
    let op = txn(vec![], vec![second]);
    store.execute(0, &op, at(5));
    store.end(lease, at(9));
    assert_eq!(store.state.revision, 4);
    store.restore(Some(at(4)), at(20));
    assert_eq!((store.state.revision, store.node(0).len()), (2, 1));
    assert_eq!(store.lease(lease).unwrap().ends, at(30), "it begins anew");
    store.restore(None, at(40));
    assert_eq!((store.state.revision, store.node(0).len()), (1, 0));
    assert_eq!(
        store.execute(0, &Op::Renew(lease), at(41)),
        OpAnswer::LeaseGone
    );
    // A backup from after a restore, and one from before the first write.
    store.restore(Some(at(21)), at(50));
    assert_eq!(store.state.revision, 2);
    let mut empty = EtcdStore::new(1, true);
    empty.restore(Some(at(0)), at(1));
    assert_eq!(empty.state.revision, 1);
    // A new lease never has the id of a lost one.
    assert_ne!(grant(&mut store, 0), lease);
}

#[test]
fn an_unchanged_entry_keeps_the_time_at_which_it_was_first_seen() {
    let (mut store, lease) = with_master();
    let at_clock = |seconds| Time::after_origin(Duration::from_secs(seconds));
    let first = seen(store.read(0), None, at_clock(3));
    let term = put(EtcdKey::Term, master("a"), None);
    check(&mut store, 0, &txn(vec![], vec![term]), true, 3);
    let second = seen(store.read(0), Some(&first), at_clock(7));
    assert_eq!(second.revision, 3);
    assert_eq!(second.entries[&EtcdKey::Master].seen_at, at_clock(3));
    assert_eq!(second.entries[&EtcdKey::Term].seen_at, at_clock(7));
    // Equal revisions in an etcd that was set up again do not mean the same key.
    let again = put(EtcdKey::Master, master("b"), Some(lease));
    check(&mut store, 0, &txn(vec![], vec![again]), true, 4);
    let third = seen(store.read(0), Some(&second), at_clock(9));
    assert_eq!(third.entries[&EtcdKey::Master].seen_at, at_clock(9));
}
