//! What stands in etcd: the keys of all nodes, and the leases with which some of them go.
//!
//! It answers as etcd does, as far as candidates ask: every write has a revision, which counts for all keys
//! together; a transaction is one write, or none; a key goes when its lease does. When that is, is not
//! decided here: no earlier than [`Store::ends`] says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::time::Time;
use doorward_session::candidate::store::{
    Compare, Entry, Key, LeaseId, Op, OpAnswer, Step, Txn, TxnAnswer, Value, View,
};
use doorward_session::time::Time as LocalTime;

/// What stands under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    value: Value,
    created: u64,
    modified: u64,
    lease: Option<LeaseId>,
}

impl Stored {
    fn entry(&self, seen_at: LocalTime) -> Entry {
        Entry {
            value: self.value.clone(),
            created: self.created,
            modified: self.modified,
            lease: self.lease,
            seen_at,
        }
    }

    fn is_as(&self, entry: &Entry) -> bool {
        (self.created, self.modified, self.lease) == (entry.created, entry.modified, entry.lease)
            && self.value == entry.value
    }
}

/// The keys of a node.
pub(crate) type Keys = BTreeMap<Key, Stored>;

/// The keys of a node at a revision: what is read, and what a watch tells.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) keys: Arc<Keys>,
    pub(crate) revision: u64,
}

impl Reading {
    /// As a server sees it now, which has seen `known` before: what has not changed was seen then.
    pub(crate) fn seen(&self, known: Option<&View>, now: LocalTime) -> View {
        let entries = self.keys.iter().map(|(key, stored)| {
            let known = known.and_then(|known| known.entries.get(key));
            let known = known.filter(|known| stored.is_as(known));
            (
                key.clone(),
                stored.entry(known.map_or(now, |it| it.seen_at)),
            )
        });
        View {
            entries: entries.collect(),
            revision: self.revision,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    /// Of which node its holder is.
    node: u32,
    ttl: Duration,
    /// It ends no earlier.
    ends: Time,
}

/// All that a backup has.
#[derive(Clone, Debug)]
struct State {
    revision: u64,
    nodes: Vec<Arc<Keys>>,
    leases: BTreeMap<LeaseId, Lease>,
}

impl State {
    fn new(nodes: usize) -> Self {
        Self {
            // As an etcd in which nothing was written.
            revision: 1,
            nodes: vec![Arc::default(); nodes],
            leases: BTreeMap::new(),
        }
    }
}

/// An etcd for all nodes.
#[derive(Debug)]
pub(crate) struct Store {
    state: State,
    /// No two leases ever have the same name.
    leases_granted: i64,
    /// What the state became, and when. None: it is never restored.
    history: Option<Vec<(Time, State)>>,
}

impl Store {
    /// One in which nothing stands, for that many nodes. One that `is_restored` sometimes remembers all that
    /// ever was.
    pub(crate) fn new(nodes: usize, is_restored: bool) -> Self {
        Self {
            state: State::new(nodes),
            leases_granted: 0,
            history: is_restored.then(Vec::new),
        }
    }

    /// At which revision it is.
    pub(crate) fn revision(&self) -> u64 {
        self.state.revision
    }

    /// What stands under the keys of a node.
    pub(crate) fn read(&self, node: u32) -> Reading {
        Reading {
            keys: self.keys(node),
            revision: self.state.revision,
        }
    }

    fn keys(&self, node: u32) -> Arc<Keys> {
        let keys = self.state.nodes.get(node as usize);
        keys.map(Arc::clone).unwrap_or_default()
    }

    /// With which lease the master's key of a node goes, if it is there.
    pub(crate) fn master_lease(&self, node: u32) -> Option<LeaseId> {
        let keys = self.state.nodes.get(node as usize)?;
        keys.get(&Key::Master)?.lease
    }

    /// Does what a candidate of that node asks for. What it reads is as if it had been seen at the origin:
    /// when that is, is known when the answer has come. [`Op::ReadHistory`] is none of its business.
    pub(crate) fn execute(&mut self, node: u32, op: &Op, now: Time) -> OpAnswer {
        match op {
            Op::Hear => OpAnswer::Heard,
            Op::Grant(ttl) => OpAnswer::Granted(self.grant(node, *ttl, now), *ttl),
            Op::Renew(lease) => match self.state.leases.get_mut(lease) {
                Some(lease) => {
                    lease.ends = now + lease.ttl;
                    self.note(now);
                    OpAnswer::Renewed
                }
                None => OpAnswer::LeaseGone,
            },
            Op::Revoke(lease) => match self.end(*lease, now) {
                true => OpAnswer::Revoked,
                false => OpAnswer::LeaseGone,
            },
            Op::Transact(_, txn) => self.transact(node, txn, now),
            Op::ReadHistory(_) => OpAnswer::Failed,
        }
    }

    fn grant(&mut self, node: u32, ttl: Duration, now: Time) -> LeaseId {
        self.leases_granted += 1;
        let id = LeaseId(self.leases_granted);
        let ends = now + ttl;
        self.state.leases.insert(id, Lease { node, ttl, ends });
        self.note(now);
        id
    }

    /// No earlier than then a lease ends. None: it is not there.
    pub(crate) fn ends(&self, lease: LeaseId) -> Option<Time> {
        self.state.leases.get(&lease).map(|lease| lease.ends)
    }

    /// All leases that are there.
    pub(crate) fn leases(&self) -> Vec<LeaseId> {
        self.state.leases.keys().copied().collect()
    }

    /// Of which node the holder of a lease is.
    pub(crate) fn node_of(&self, lease: LeaseId) -> Option<u32> {
        self.state.leases.get(&lease).map(|lease| lease.node)
    }

    /// A lease ends, and all keys that go with it. Returns whether it was there.
    pub(crate) fn end(&mut self, lease: LeaseId, now: Time) -> bool {
        let Some(Lease { node, .. }) = self.state.leases.remove(&lease) else {
            return false;
        };
        let goes = |stored: &Stored| stored.lease == Some(lease);
        if let Some(keys) = self.state.nodes.get_mut(node as usize)
            && keys.values().any(goes)
        {
            self.state.revision += 1;
            Arc::make_mut(keys).retain(|_, stored| !goes(stored));
        }
        self.note(now);
        true
    }

    fn transact(&mut self, node: u32, txn: &Txn, now: Time) -> OpAnswer {
        let mut keys = self.keys(node);
        let succeeded = txn.when.iter().all(|compare| holds(&keys, compare));
        let steps = if succeeded { &txn.then } else { &txn.or_else };
        let is_gone = |lease: &LeaseId| !self.state.leases.contains_key(lease);
        let needs_gone = |step: &Step| match step {
            Step::Put { lease, .. } => lease.as_ref().is_some_and(is_gone),
            Step::Delete(_) | Step::Get(_) => false,
        };
        if steps.iter().any(needs_gone) {
            return OpAnswer::LeaseGone;
        }
        let revision = self.state.revision + 1;
        let (mut found, mut is_written) = (None, false);
        for step in steps {
            match step {
                Step::Put { key, value, lease } => {
                    let before = keys.get(key).map(|stored| stored.created);
                    let stored = Stored {
                        value: value.clone(),
                        created: before.unwrap_or(revision),
                        modified: revision,
                        lease: *lease,
                    };
                    Arc::make_mut(&mut keys).insert(key.clone(), stored);
                    is_written = true;
                }
                Step::Delete(key) => {
                    if keys.contains_key(key) {
                        Arc::make_mut(&mut keys).remove(key);
                        is_written = true;
                    }
                }
                Step::Get(key) if found.is_none() => {
                    found = keys.get(key).map(|stored| stored.entry(LocalTime::ZERO));
                }
                Step::Get(_) => {}
            }
        }
        if is_written && let Some(place) = self.state.nodes.get_mut(node as usize) {
            *place = keys;
            self.state.revision = revision;
            self.note(now);
        }
        OpAnswer::Transacted(TxnAnswer {
            succeeded,
            revision: self.state.revision,
            found,
        })
    }

    /// All that was in it is gone.
    pub(crate) fn wipe(&mut self, now: Time) {
        self.state = State::new(self.state.nodes.len());
        self.note(now);
    }

    /// It is as it was at that time. Leases that it had then begin anew, as they do when a leader of etcd is
    /// elected.
    pub(crate) fn restore(&mut self, then: Time, now: Time) {
        let mut earlier = self.history.iter().flatten().rev();
        let found = earlier.find(|(at, _)| *at <= then);
        let nodes = self.state.nodes.len();
        self.state = found.map_or_else(|| State::new(nodes), |(_, state)| state.clone());
        for lease in self.state.leases.values_mut() {
            lease.ends = now + lease.ttl;
        }
        self.note(now);
    }

    /// Remembers what became of it.
    fn note(&mut self, now: Time) {
        if let Some(history) = &mut self.history {
            history.push((now, self.state.clone()));
        }
    }
}

fn holds(keys: &Keys, compare: &Compare) -> bool {
    match compare {
        Compare::Created(key, created) => keys.get(key).map_or(0, |it| it.created) == *created,
        Compare::Modified(key, modified) => keys.get(key).map_or(0, |it| it.modified) == *modified,
        Compare::Lease(key, lease) => keys.get(key).and_then(|it| it.lease) == *lease,
    }
}

#[cfg(test)]
mod tests {
    use doorward_session::candidate::store::Master;

    use super::*;

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

    fn put(key: Key, value: Value, lease: Option<LeaseId>) -> Step {
        Step::Put { key, value, lease }
    }

    fn txn(when: Vec<Compare>, then: Vec<Step>) -> Op {
        let or_else = vec![Step::Get(Key::Master)];
        Op::Transact(
            "test",
            Txn {
                when,
                then,
                or_else,
            },
        )
    }

    /// A store with a lease, and the master's key of node 0 under it, at revision 2.
    fn with_master() -> (Store, LeaseId) {
        let mut store = Store::new(2, true);
        let lease = grant(&mut store, 0);
        let created = put(Key::Master, master("a"), Some(lease));
        let vacant = Compare::Created(Key::Master, 0);
        check(&mut store, 0, &txn(vec![vacant], vec![created]), true, 2);
        (store, lease)
    }

    fn grant(store: &mut Store, node: u32) -> LeaseId {
        match store.execute(node, &Op::Grant(TTL), at(0)) {
            OpAnswer::Granted(lease, _) => lease,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn check(store: &mut Store, node: u32, op: &Op, succeeds: bool, at_revision: u64) {
        match store.execute(node, op, at(1)) {
            OpAnswer::Transacted(answer) => {
                let found = (answer.succeeded, answer.revision);
                assert_eq!(found, (succeeds, at_revision), "{op:?}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_transaction_does_one_thing_or_the_other_by_what_stands_there() {
        let (store, lease) = with_master();
        let other = LeaseId(77);
        for (compare, holds) in [
            (Compare::Created(Key::Master, 2), true),
            (Compare::Created(Key::Master, 0), false),
            (Compare::Created(Key::Term, 0), true),
            (Compare::Modified(Key::Master, 2), true),
            (Compare::Modified(Key::Master, 3), false),
            (Compare::Modified(Key::Term, 0), true),
            (Compare::Lease(Key::Master, Some(lease)), true),
            (Compare::Lease(Key::Master, Some(other)), false),
            (Compare::Lease(Key::Master, None), false),
            (Compare::Lease(Key::Term, None), true),
        ] {
            let mut store = Store {
                history: None,
                state: store.state.clone(),
                ..store
            };
            let write = put(Key::Term, master("a"), None);
            let op = txn(vec![compare], vec![write]);
            check(&mut store, 0, &op, holds, if holds { 3 } else { 2 });
            assert_eq!(store.keys(0).contains_key(&Key::Term), holds, "{op:?}");
        }
    }

    #[test]
    fn what_is_written_again_came_to_be_when_it_was_first_written() {
        let (mut store, lease) = with_master();
        let again = put(Key::Master, master("b"), Some(lease));
        check(&mut store, 0, &txn(vec![], vec![again]), true, 3);
        let found = store.keys(0).get(&Key::Master).cloned().unwrap();
        assert_eq!((found.created, found.modified), (2, 3));
        // Once it was deleted it is another one. What is not there is not deleted, and is no write.
        let delete = || txn(vec![], vec![Step::Delete(Key::Master)]);
        check(&mut store, 0, &delete(), true, 4);
        check(&mut store, 0, &delete(), true, 4);
        let anew = put(Key::Master, master("b"), Some(lease));
        check(&mut store, 0, &txn(vec![], vec![anew]), true, 5);
        assert_eq!(store.keys(0).get(&Key::Master).unwrap().created, 5);
        assert!(store.keys(1).is_empty(), "of another node");
    }

    #[test]
    fn what_is_read_is_what_stands_there_when_the_transaction_is_done() {
        let (mut store, _) = with_master();
        let vacant = Compare::Created(Key::Master, 0);
        let op = txn(vec![vacant], vec![]);
        let OpAnswer::Transacted(answer) = store.execute(0, &op, at(1)) else {
            panic!("{op:?}");
        };
        assert!(!answer.succeeded);
        assert_eq!(answer.found.unwrap().created, 2);
    }

    #[test]
    fn keys_go_with_their_lease_and_nobody_writes_under_one_that_is_gone() {
        let (mut store, lease) = with_master();
        assert_eq!(store.ends(lease), Some(at(10)));
        assert_eq!(
            store.execute(0, &Op::Renew(lease), at(5)),
            OpAnswer::Renewed
        );
        assert_eq!(store.ends(lease), Some(at(15)));
        let other = grant(&mut store, 1);
        let theirs = put(Key::Master, master("b"), Some(other));
        check(&mut store, 1, &txn(vec![], vec![theirs]), true, 3);
        assert_eq!(
            store.execute(0, &Op::Revoke(lease), at(6)),
            OpAnswer::Revoked
        );
        assert_eq!(store.revision(), 4);
        assert!(store.keys(0).is_empty());
        assert_eq!(store.master_lease(1), Some(other), "of another lease");
        for op in [
            Op::Renew(lease),
            Op::Revoke(lease),
            txn(vec![], vec![put(Key::Master, master("a"), Some(lease))]),
        ] {
            assert_eq!(store.execute(0, &op, at(7)), OpAnswer::LeaseGone, "{op:?}");
        }
        assert_eq!(store.revision(), 4, "nothing was written");
    }

    #[test]
    fn a_backup_has_what_was_there_when_it_was_made() {
        let (mut store, lease) = with_master();
        let second = put(Key::Term, master("a"), None);
        let op = txn(vec![], vec![second]);
        store.execute(0, &op, at(5));
        store.end(lease, at(9));
        assert_eq!(store.revision(), 4);
        store.restore(at(4), at(20));
        assert_eq!((store.revision(), store.keys(0).len()), (2, 1));
        assert_eq!(store.ends(lease), Some(at(30)), "it begins anew");
        store.wipe(at(40));
        assert_eq!((store.revision(), store.keys(0).len()), (1, 0));
        assert_eq!(
            store.execute(0, &Op::Renew(lease), at(41)),
            OpAnswer::LeaseGone
        );
        // A backup that was made after it was restored, and one from before there was anything.
        store.restore(at(21), at(50));
        assert_eq!(store.revision(), 2);
        let mut empty = Store::new(1, true);
        empty.restore(at(0), at(1));
        assert_eq!(empty.revision(), 1);
        // Nobody has the name of a lease that was lost.
        assert_ne!(grant(&mut store, 0), lease);
    }

    #[test]
    fn what_has_not_changed_was_seen_when_it_was_first_seen() {
        let (mut store, lease) = with_master();
        let seen = |seconds| LocalTime::after_origin(Duration::from_secs(seconds));
        let first = store.read(0).seen(None, seen(3));
        let term = put(Key::Term, master("a"), None);
        check(&mut store, 0, &txn(vec![], vec![term]), true, 3);
        let second = store.read(0).seen(Some(&first), seen(7));
        assert_eq!(second.revision, 3);
        assert_eq!(second.entries[&Key::Master].seen_at, seen(3));
        assert_eq!(second.entries[&Key::Term].seen_at, seen(7));
        // The same revisions in an etcd that was set up anew are not the same key.
        let again = put(Key::Master, master("b"), Some(lease));
        check(&mut store, 0, &txn(vec![], vec![again]), true, 4);
        let third = store.read(0).seen(Some(&second), seen(9));
        assert_eq!(third.entries[&Key::Master].seen_at, seen(9));
    }
}
