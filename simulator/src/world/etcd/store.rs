//! What stands in etcd: the keys of all nodes, and the leases with which some of them go.
//!
//! It answers as etcd does, as far as candidates ask: every write has a revision, which counts for all keys
//! together; a transaction is one write, or none; a key goes when its lease does. When that is, is not
//! decided here: no earlier than [`EtcdStore::ends`] says.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::time::Time;
use doorward_session::candidate::store::{
    Compare, EtcdEntry, EtcdKey, LeaseId, Op, OpAnswer, Txn, TxnAnswer, TxnStep, Value, View,
};

/// What stands under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    value: Value,
    created: u64,
    modified: u64,
    lease: Option<LeaseId>,
}

impl Stored {
    fn entry(&self, seen_at: Time) -> EtcdEntry {
        EtcdEntry {
            value: self.value.clone(),
            created: self.created,
            modified: self.modified,
            lease: self.lease,
            seen_at,
        }
    }

    fn is_as(&self, entry: &EtcdEntry) -> bool {
        (self.created, self.modified, self.lease) == (entry.created, entry.modified, entry.lease)
            && self.value == entry.value
    }
}

/// The keys of a node.
pub(crate) type NodesKeys = BTreeMap<EtcdKey, Stored>;

/// The keys of a node at a revision: what is read, and what a watch sends.
#[derive(Clone, Debug)]
pub(crate) struct ReadKeys {
    pub(crate) keys: Arc<NodesKeys>,
    pub(crate) revision: u64,
}

impl ReadKeys {
    /// As a server sees it now, which has seen `known` before: what has not changed was seen then.
    pub(crate) fn seen(&self, known: Option<&View>, now: Time) -> View {
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
struct StoredLease {
    /// Of which node its holder is.
    node: u32,
    ttl: Duration,
    /// It ends no earlier.
    ends: Time,
}

/// All that a backup has.
#[derive(Clone, Debug)]
struct StoredState {
    revision: u64,
    nodes: Vec<Arc<NodesKeys>>,
    leases: BTreeMap<LeaseId, StoredLease>,
}

impl StoredState {
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
pub(crate) struct EtcdStore {
    state: StoredState,
    /// No two leases ever have the same name.
    leases_granted: i64,
    /// What the state became, and when. None: it is never restored.
    history: Option<Vec<(Time, StoredState)>>,
}

impl EtcdStore {
    /// One in which nothing stands, for that many nodes. One that `is_restored` sometimes remembers all that
    /// ever was.
    pub(crate) fn new(nodes: usize, is_restored: bool) -> Self {
        Self {
            state: StoredState::new(nodes),
            leases_granted: 0,
            history: is_restored.then(Vec::new),
        }
    }

    /// At which revision it is.
    pub(crate) fn revision(&self) -> u64 {
        self.state.revision
    }

    /// What stands under the keys of a node.
    pub(crate) fn read(&self, node: u32) -> ReadKeys {
        ReadKeys {
            keys: self.keys(node),
            revision: self.state.revision,
        }
    }

    fn keys(&self, node: u32) -> Arc<NodesKeys> {
        let keys = self.state.nodes.get(node as usize);
        keys.map(Arc::clone).unwrap_or_default()
    }

    /// With which lease the master's key of a node goes, if it is there.
    pub(crate) fn master_lease(&self, node: u32) -> Option<LeaseId> {
        let keys = self.state.nodes.get(node as usize)?;
        keys.get(&EtcdKey::Master)?.lease
    }

    /// Does what a candidate of that node asks for. What it reads is as if it had been seen at the origin:
    /// when that is, is known when the answer has come. [`Op::ReadHistory`] is none of its business.
    pub(crate) fn execute(&mut self, node: u32, op: &Op, now: Time) -> OpAnswer {
        match op {
            Op::Probe => OpAnswer::Probed,
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
        self.state
            .leases
            .insert(id, StoredLease { node, ttl, ends });
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
        let Some(StoredLease { node, .. }) = self.state.leases.remove(&lease) else {
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
        let needs_gone = |step: &TxnStep| match step {
            TxnStep::Put { lease, .. } => lease.as_ref().is_some_and(is_gone),
            TxnStep::Delete(_) | TxnStep::Get(_) => false,
        };
        if steps.iter().any(needs_gone) {
            return OpAnswer::LeaseGone;
        }
        let revision = self.state.revision + 1;
        let (mut found, mut is_written) = (None, false);
        for step in steps {
            match step {
                TxnStep::Put { key, value, lease } => {
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
                TxnStep::Delete(key) => {
                    if keys.contains_key(key) {
                        Arc::make_mut(&mut keys).remove(key);
                        is_written = true;
                    }
                }
                TxnStep::Get(key) if found.is_none() => {
                    found = keys.get(key).map(|stored| stored.entry(Time::ZERO));
                }
                TxnStep::Get(_) => {}
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

    /// The master's key of a node is deleted. Returns whether it was there.
    pub(crate) fn delete_master(&mut self, node: u32, now: Time) -> bool {
        let keys = self.state.nodes.get_mut(node as usize);
        let Some(keys) = keys.filter(|keys| keys.contains_key(&EtcdKey::Master)) else {
            return false;
        };
        Arc::make_mut(keys).remove(&EtcdKey::Master);
        self.state.revision += 1;
        self.note(now);
        true
    }

    /// All that was in it is gone.
    pub(crate) fn wipe(&mut self, now: Time) {
        self.state = StoredState::new(self.state.nodes.len());
        self.note(now);
    }

    /// It is as it was at that time. Leases that it had then begin anew, as they do when a leader of etcd is
    /// elected.
    pub(crate) fn restore(&mut self, then: Time, now: Time) {
        let mut earlier = self.history.iter().flatten().rev();
        let found = earlier.find(|(at, _)| *at <= then);
        let nodes = self.state.nodes.len();
        self.state = found.map_or_else(|| StoredState::new(nodes), |(_, state)| state.clone());
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

fn holds(keys: &NodesKeys, compare: &Compare) -> bool {
    match compare {
        Compare::Created(key, created) => keys.get(key).map_or(0, |it| it.created) == *created,
        Compare::Modified(key, modified) => keys.get(key).map_or(0, |it| it.modified) == *modified,
        Compare::Lease(key, lease) => keys.get(key).and_then(|it| it.lease) == *lease,
    }
}
