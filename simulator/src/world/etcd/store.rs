//! Contents of the etcd model: the keys of all nodes, and the leases that some of them belong to.
//!
//! It answers as etcd does, as far as candidates ask. Every write has a revision, which counts for
//! all keys together. A transaction is one write or none. A key ends with its lease. This file does
//! not decide when a lease ends, only that it is no earlier than [`StoredLease::ends`].

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::time::Time;
use doorward_session::candidate::store::{
    Compare, EtcdEntry, EtcdKey, LeaseId, Op, OpAnswer, StoredMarks, Txn, TxnAnswer, TxnStep,
    Value, View,
};

use crate::world::message::NodesKeys;

/// Lease in etcd.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredLease {
    /// Node of its holder.
    pub(crate) node: u32,
    pub(crate) ttl: Duration,
    /// Earliest end of the lease.
    pub(crate) ends: Time,
    /// Its end, if that is later and it is not renewed.
    pub(crate) lasts_until: Option<Time>,
}

/// Contents of a backup.
#[derive(Clone, Debug)]
struct StoredState {
    revision: u64,
    nodes: Vec<Arc<NodesKeys>>,
    leases: BTreeMap<LeaseId, StoredLease>,
}

impl StoredState {
    fn new(nodes: usize) -> Self {
        Self {
            // Revision of an etcd without any write.
            revision: 1,
            nodes: vec![Arc::default(); nodes],
            leases: BTreeMap::new(),
        }
    }
}

/// Model of etcd for all nodes.
#[derive(Debug)]
pub(crate) struct EtcdStore {
    state: StoredState,
    /// Number of leases granted so far; it names the next one.
    leases_granted: i64,
    /// States and their times; `None` if the scenario never restores a backup.
    history: Option<Vec<(Time, StoredState)>>,
    /// Whether keys that candidates follow have changed: all but those of marks.
    is_changed: bool,
}

impl EtcdStore {
    /// Creates an empty etcd for that many nodes. With `is_restored` it keeps all its states.
    pub(crate) fn new(nodes: usize, is_restored: bool) -> Self {
        Self {
            state: StoredState::new(nodes),
            leases_granted: 0,
            history: is_restored.then(Vec::new),
            is_changed: false,
        }
    }

    /// Returns whether keys that candidates follow have changed since the last call.
    pub(crate) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Reads the keys of a node that candidates follow.
    pub(crate) fn read(&self, node: u32) -> View {
        let mut entries = NodesKeys::clone(&self.node(node));
        entries.retain(|key, _| !key.is_about_marks());
        let revision = self.state.revision;
        View { entries, revision }
    }

    fn node(&self, node: u32) -> Arc<NodesKeys> {
        let found = self.state.nodes.get(node as usize);
        found.cloned().unwrap_or_default()
    }

    /// Reads the marks of a node.
    fn read_marks(&self, node: u32) -> StoredMarks {
        let node = self.node(node);
        let head = node.get(&EtcdKey::MarksHead);
        let marks = node.iter();
        let marks = marks.filter_map(|(key, entry)| match (key, &entry.value) {
            (EtcdKey::Mark(resource), Value::Mark(mark)) => {
                Some((&**resource, (mark.amount, mark.longest)))
            }
            _ => None,
        });
        StoredMarks {
            head: head.and_then(|entry| match entry.value {
                Value::MarksHead(head) => Some(head),
                _ => None,
            }),
            head_modified: head.map_or(0, |entry| entry.modified),
            marks: marks.collect(),
            ..StoredMarks::default()
        }
    }

    /// Returns the lease of the key of a node's master, if the key exists.
    pub(crate) fn master_lease(&self, node: u32) -> Option<LeaseId> {
        let node = self.state.nodes.get(node as usize)?;
        node.get(&EtcdKey::Master)?.lease
    }

    /// Executes a candidate's request. Entries read have the origin as the time at which they were
    /// seen; the caller sets it when the answer arrives. [`Op::ReadHistory`] is answered elsewhere.
    pub(crate) fn execute(&mut self, node: u32, op: &Op, now: Time) -> OpAnswer {
        match op {
            Op::Probe => OpAnswer::Probed,
            Op::Grant(ttl) => OpAnswer::Granted(self.grant(node, *ttl, now), *ttl),
            Op::Renew(lease) => match self.state.leases.get_mut(lease) {
                Some(lease) => {
                    (lease.ends, lease.lasts_until) = (now + lease.ttl, None);
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
            Op::Confirm { lease, span, txn } => {
                // In the order that a candidate expects least.
                let answer = self.transact(node, txn, now);
                let renew = |lease| self.execute(node, &Op::Renew(lease), now);
                let mut renewed = [Some(*lease), *span].into_iter().flatten().map(renew);
                match renewed.all(|it| it == OpAnswer::Renewed) {
                    true => answer,
                    false => OpAnswer::LeaseGone,
                }
            }
            Op::ReadMarks { lease, .. } => match self.execute(node, &Op::Renew(*lease), now) {
                OpAnswer::Renewed => OpAnswer::Marks(Some(Arc::new(self.read_marks(node)))),
                other => other,
            },
            Op::ReadHistory(_) => OpAnswer::Failed,
        }
    }

    fn grant(&mut self, node: u32, ttl: Duration, now: Time) -> LeaseId {
        self.leases_granted += 1;
        let id = LeaseId(self.leases_granted);
        let lease = StoredLease {
            node,
            ttl,
            ends: now + ttl,
            lasts_until: None,
        };
        self.state.leases.insert(id, lease);
        self.note(now);
        id
    }

    /// Returns a lease, if it exists.
    pub(crate) fn lease(&self, lease: LeaseId) -> Option<&StoredLease> {
        self.state.leases.get(&lease)
    }

    /// Lets a lease last until then at least, unless it is renewed.
    pub(crate) fn keep(&mut self, lease: LeaseId, until: Time) {
        if let Some(lease) = self.state.leases.get_mut(&lease) {
            lease.lasts_until = lease.lasts_until.max(Some(until));
        }
    }

    /// Returns all leases with their earliest ends.
    pub(crate) fn leases(&self) -> Vec<(LeaseId, Time)> {
        let leases = self.state.leases.iter();
        leases.map(|(id, lease)| (*id, lease.ends)).collect()
    }

    /// Ends a lease and all its keys. Returns whether it existed.
    pub(crate) fn end(&mut self, lease: LeaseId, now: Time) -> bool {
        let Some(StoredLease { node, .. }) = self.state.leases.remove(&lease) else {
            return false;
        };
        let goes = |stored: &EtcdEntry| stored.lease == Some(lease);
        if let Some(node) = self.state.nodes.get_mut(node as usize)
            && node.values().any(goes)
        {
            self.state.revision += 1;
            self.is_changed = true;
            Arc::make_mut(node).retain(|_, stored| !goes(stored));
        }
        self.note(now);
        true
    }

    fn transact(&mut self, node: u32, txn: &Txn, now: Time) -> OpAnswer {
        let mut node_keys = self.node(node);
        let keys = Arc::make_mut(&mut node_keys);
        let succeeded = txn.when.iter().all(|compare| holds(keys, compare));
        let steps = if succeeded { &txn.then } else { &txn.or_else };
        let is_gone = |lease: &LeaseId| !self.state.leases.contains_key(lease);
        let needs_gone = |step: &TxnStep| match step {
            TxnStep::Put(.., lease) => lease.as_ref().is_some_and(is_gone),
            TxnStep::Delete(_) | TxnStep::DeleteMarks | TxnStep::Get(_) => false,
        };
        if steps.iter().any(needs_gone) {
            return OpAnswer::LeaseGone;
        }
        let revision = self.state.revision + 1;
        let (mut found, mut is_written, mut is_changed) = (None, false, false);
        for step in steps {
            match step {
                TxnStep::Put(key, value, lease) => {
                    let before = keys.get(key).map(|stored| stored.created);
                    let stored = EtcdEntry {
                        value: value.clone(),
                        created: before.unwrap_or(revision),
                        modified: revision,
                        lease: *lease,
                        seen_at: Time::ZERO,
                    };
                    keys.insert(key.clone(), stored);
                    is_written = true;
                    is_changed |= !key.is_about_marks();
                }
                TxnStep::Delete(key) => {
                    if keys.remove(key).is_some() {
                        is_written = true;
                        is_changed |= !key.is_about_marks();
                    }
                }
                TxnStep::DeleteMarks => {
                    keys.retain(|key, _| !matches!(key, EtcdKey::Mark(_)));
                    is_written = true;
                }
                TxnStep::Get(key) if found.is_none() => {
                    found = keys.get(key).cloned();
                }
                TxnStep::Get(_) => {}
            }
        }
        if is_written && let Some(place) = self.state.nodes.get_mut(node as usize) {
            *place = node_keys;
            self.state.revision = revision;
            self.is_changed |= is_changed;
            self.note(now);
        }
        OpAnswer::Transacted(TxnAnswer {
            succeeded,
            revision: self.state.revision,
            found,
        })
    }

    /// Deletes the key of a node's master. Returns whether it existed.
    pub(crate) fn delete_master(&mut self, node: u32, now: Time) -> bool {
        let delete = Txn {
            then: vec![TxnStep::Delete(EtcdKey::Master)],
            ..Txn::default()
        };
        self.transact(node, &delete, now);
        self.take_change()
    }

    /// Restores the state at an earlier time; `None` deletes everything. Leases start again with
    /// their full TTL, as they do when etcd elects a leader.
    pub(crate) fn restore(&mut self, then: Option<Time>, now: Time) {
        let mut earlier = self.history.iter().flatten().rev();
        let found = then.and_then(|then| earlier.find(|(at, _)| *at <= then));
        let nodes = self.state.nodes.len();
        self.state = found.map_or_else(|| StoredState::new(nodes), |(_, state)| state.clone());
        for lease in self.state.leases.values_mut() {
            (lease.ends, lease.lasts_until) = (now + lease.ttl, None);
        }
        self.note(now);
    }

    /// Adds the present state to the history.
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
