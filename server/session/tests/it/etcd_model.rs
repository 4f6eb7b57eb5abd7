//! A small model of etcd: keys with revisions, leases, transactions.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_session::candidate::store::{
    Compare, EtcdEntry, EtcdKey, LeaseId, Op, OpAnswer, Txn, TxnAnswer, TxnStep, Value, View,
};
use doorward_session::time::Time;

#[derive(Clone, Debug, Default)]
pub(crate) struct EtcdModel {
    pub(crate) revision: u64,
    pub(crate) keys: BTreeMap<EtcdKey, EtcdEntry>,
    leases: BTreeMap<LeaseId, (Duration, Time)>,
    granted: i64,
}

impl EtcdModel {
    /// Executes an operation.
    pub(crate) fn apply(&mut self, op: &Op, now: Time) -> OpAnswer {
        match op {
            Op::Probe => OpAnswer::Probed,
            Op::Grant(ttl) => {
                self.granted += 1;
                let id = LeaseId(self.granted);
                self.leases.insert(id, (*ttl, now + *ttl));
                OpAnswer::Granted(id, *ttl)
            }
            Op::Renew(id) => match self.leases.get_mut(id) {
                Some((ttl, ends)) => {
                    *ends = now + *ttl;
                    OpAnswer::Renewed
                }
                None => OpAnswer::LeaseGone,
            },
            Op::Revoke(id) if self.leases.contains_key(id) => {
                self.revoke(*id);
                OpAnswer::Revoked
            }
            Op::Revoke(_) => OpAnswer::LeaseGone,
            Op::Transact(_, txn) => self.transact(txn),
            Op::ReadHistory(_) => OpAnswer::History(Some(Duration::ZERO)),
        }
    }

    fn transact(&mut self, txn: &Txn) -> OpAnswer {
        let succeeded = txn.when.iter().all(|compare| self.holds(compare));
        let steps = if succeeded { &txn.then } else { &txn.or_else };
        let leases = steps.iter().filter_map(|step| match step {
            TxnStep::Put { lease, .. } => *lease,
            TxnStep::Delete(_) | TxnStep::Get(_) => None,
        });
        for lease in leases {
            if !self.leases.contains_key(&lease) {
                return OpAnswer::LeaseGone;
            }
        }
        let mut found = None;
        let next = self.revision + 1;
        for step in steps {
            match step {
                TxnStep::Put { key, value, lease } => {
                    self.revision = next;
                    let created = self.keys.get(key).map_or(next, |entry| entry.created);
                    self.insert(key.clone(), value.clone(), *lease, created);
                }
                TxnStep::Delete(key) => {
                    if self.keys.remove(key).is_some() {
                        self.revision = next;
                    }
                }
                TxnStep::Get(key) => found = found.or_else(|| self.keys.get(key).cloned()),
            }
        }
        OpAnswer::Transacted(TxnAnswer {
            succeeded,
            revision: self.revision,
            found,
        })
    }

    fn insert(&mut self, key: EtcdKey, value: Value, lease: Option<LeaseId>, created: u64) {
        let entry = EtcdEntry {
            value,
            created,
            modified: self.revision,
            lease,
            seen_at: Time::ZERO,
        };
        self.keys.insert(key, entry);
    }

    fn holds(&self, compare: &Compare) -> bool {
        match compare {
            Compare::Created(key, at) => self.keys.get(key).map_or(0, |it| it.created) == *at,
            Compare::Modified(key, at) => self.keys.get(key).map_or(0, |it| it.modified) == *at,
            Compare::Lease(key, lease) => self.keys.get(key).and_then(|it| it.lease) == *lease,
        }
    }

    /// Ends leases that were not renewed in time, and deletes their keys.
    pub(crate) fn end_leases(&mut self, now: Time) {
        let over = self.leases.iter().filter(|(_, (_, ends))| *ends <= now);
        for id in over.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.revoke(id);
        }
    }

    pub(crate) fn revoke(&mut self, lease: LeaseId) {
        self.leases.remove(&lease);
        let before = self.keys.len();
        self.keys.retain(|_, entry| entry.lease != Some(lease));
        self.revision += u64::from(self.keys.len() < before);
    }

    /// An operator deletes a key.
    pub(crate) fn delete(&mut self, key: &EtcdKey) {
        self.revision += u64::from(self.keys.remove(key).is_some());
    }

    /// An operator writes a key, without a lease.
    pub(crate) fn put(&mut self, key: EtcdKey, value: Value) {
        self.revision += 1;
        let created = self.keys.get(&key).map_or(self.revision, |it| it.created);
        self.insert(key, value, None, created);
    }

    /// Restores a backup. Leases begin anew, and lease ids are never reused.
    pub(crate) fn restore(&mut self, backup: &Self, now: Time) {
        let granted = self.granted;
        *self = Self {
            granted,
            ..backup.clone()
        };
        for (ttl, ends) in self.leases.values_mut() {
            *ends = now + *ttl;
        }
    }

    /// All keys.
    pub(crate) fn view(&self) -> View {
        View {
            entries: self.keys.clone(),
            revision: self.revision,
        }
    }
}

/// A view seen now. Entries that are unchanged since the last view keep the time when they were first seen.
pub(crate) fn seen(mut view: View, known: Option<&View>, now: Time) -> View {
    for (key, entry) in &mut view.entries {
        entry.seen_at = now;
        if let Some(known) = known.and_then(|known| known.entries.get(key)) {
            let since = EtcdEntry {
                seen_at: known.seen_at,
                ..entry.clone()
            };
            if since == *known {
                *entry = since;
            }
        }
    }
    view
}
