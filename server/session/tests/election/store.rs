//! An etcd of a few lines: keys with revisions, leases, transactions.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_session::candidate::store::{
    Compare, Entry, Key, LeaseId, Op, OpAnswer, Step, Txn, TxnAnswer, Value, View,
};
use doorward_session::time::Time;

#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    pub(crate) revision: u64,
    pub(crate) keys: BTreeMap<Key, Entry>,
    leases: BTreeMap<LeaseId, (Duration, Time)>,
    granted: i64,
}

impl Store {
    /// Does what is asked, at that time.
    pub(crate) fn apply(&mut self, op: &Op, now: Time) -> OpAnswer {
        match op {
            Op::Hear => OpAnswer::Heard,
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
            Step::Put { lease, .. } => *lease,
            Step::Delete(_) | Step::Get(_) => None,
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
                Step::Put { key, value, lease } => {
                    self.revision = next;
                    let created = self.keys.get(key).map_or(next, |entry| entry.created);
                    self.insert(key.clone(), value.clone(), *lease, created);
                }
                Step::Delete(key) => {
                    if self.keys.remove(key).is_some() {
                        self.revision = next;
                    }
                }
                Step::Get(key) => found = found.or_else(|| self.keys.get(key).cloned()),
            }
        }
        OpAnswer::Transacted(TxnAnswer {
            succeeded,
            revision: self.revision,
            found,
        })
    }

    fn insert(&mut self, key: Key, value: Value, lease: Option<LeaseId>, created: u64) {
        let entry = Entry {
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

    /// Leases that nobody has renewed in time are gone, and the keys that go with them.
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

    /// Somebody deletes a key by hand.
    pub(crate) fn delete(&mut self, key: &Key) {
        self.revision += u64::from(self.keys.remove(key).is_some());
    }

    /// Somebody writes a key by hand, with nobody's lease.
    pub(crate) fn put(&mut self, key: Key, value: Value) {
        self.revision += 1;
        let created = self.keys.get(&key).map_or(self.revision, |it| it.created);
        self.insert(key, value, None, created);
    }

    /// It is what it was then. Leases begin anew, and numbers of leases are never given twice.
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

/// A view that was first seen then, but for what was known to be so before.
pub(crate) fn seen(mut view: View, known: Option<&View>, now: Time) -> View {
    for (key, entry) in &mut view.entries {
        entry.seen_at = now;
        if let Some(known) = known.and_then(|known| known.entries.get(key)) {
            let since = Entry {
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
