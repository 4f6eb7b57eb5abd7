//! The transactions of an election, and how a candidate reads the keys of its node.
//!
//! Any value may have been written by hand. The candidate never trusts an unreadable one: an unreadable term may belong
//! to another master, and so is not over yet.

use std::time::Duration;

use super::CandidateConfig;
use super::store::{
    Compare, EtcdEntry, EtcdKey, LeaseId, Master, Registration, TermRecord, Txn, TxnAnswer,
    TxnStep, Value, View,
};
use crate::time::Time;

/// The master's key, as this candidate created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CreatedKey {
    /// The revision at which the key was created.
    pub(super) revision: u64,
    /// Number that is added to the revision: see [`super::term::epoch_offset`].
    pub(super) epoch_offset: u64,
}

impl CreatedKey {
    pub(super) fn epoch(self) -> u64 {
        self.revision.saturating_add(self.epoch_offset)
    }
}

/// Transactions of the candidate with this configuration.
impl CandidateConfig {
    /// Returns the value of the master's key while this candidate has it.
    fn master(&self, epoch_offset: u64) -> Value {
        Value::Master(Master {
            address: self.address.clone(),
            server: self.server.clone(),
            epoch_offset,
        })
    }

    fn put_master(&self, epoch_offset: u64, lease: LeaseId) -> TxnStep {
        TxnStep::Put(EtcdKey::Master, self.master(epoch_offset), Some(lease))
    }

    /// Creates the master's key if there is none, and reads the last term.
    pub(super) fn stand(&self, epoch_offset: u64, lease: LeaseId) -> Txn {
        let put = self.put_master(epoch_offset, lease);
        let is_free = Compare::Created(EtcdKey::Master, 0);
        txn(vec![is_free], vec![put, TxnStep::Get(EtcdKey::Term)])
    }

    /// Confirms the mastership with this term if the key is unchanged, and otherwise reads the key. `span` is the lease
    /// of the lease span, if the term has one. With `mend`, the key is also written again.
    pub(super) fn confirm(
        &self,
        created: CreatedKey,
        term: TermRecord,
        span: Option<LeaseId>,
        lease: LeaseId,
        mend: bool,
    ) -> Txn {
        let span = span.map(|it| TxnStep::Put(EtcdKey::LeaseSpan, Value::LeaseSpan {}, Some(it)));
        let mut then = vec![put_term(term)];
        then.extend(span);
        if mend {
            then.push(self.put_master(created.epoch_offset, lease));
        }
        let when = match mend {
            true => vec![is_the_key(created)],
            false => is_ours(created, lease),
        };
        Txn {
            when,
            then,
            or_else: vec![TxnStep::Get(EtcdKey::Master)],
        }
    }

    /// Registers this server.
    pub(super) fn register(&self, registration: Registration, lease: LeaseId) -> Txn {
        let (key, value) = (
            EtcdKey::Server(self.address.clone()),
            Value::Server(registration),
        );
        txn(Vec::new(), vec![TxnStep::Put(key, value, Some(lease))])
    }

    /// Whether the master's key has the value and lease that this candidate wrote.
    pub(super) fn is_intact(&self, entry: &EtcdEntry, created: CreatedKey, lease: LeaseId) -> bool {
        entry.lease == Some(lease) && entry.value == self.master(created.epoch_offset)
    }

    /// Whether the master's key belongs to another server, under a lease.
    pub(super) fn is_of_another(&self, entry: &EtcdEntry) -> bool {
        entry.lease.is_some()
            && matches!(&entry.value, Value::Master(master) if master.server != self.server)
    }

    /// Returns the key as created, if it names this candidate.
    pub(super) fn created_by_us(&self, entry: &EtcdEntry) -> Option<CreatedKey> {
        match &entry.value {
            Value::Master(master) if master.server == self.server => Some(CreatedKey {
                revision: entry.created,
                epoch_offset: master.epoch_offset,
            }),
            _ => None,
        }
    }

    /// Whether our registration is in place. The registration of another process at our address counts, too. Then two
    /// servers are misconfigured, and must not overwrite each other forever.
    pub(super) fn is_registered(
        &self,
        entry: &EtcdEntry,
        ours: &Registration,
        lease: LeaseId,
    ) -> bool {
        match &entry.value {
            Value::Server(found) if found.server == self.server => {
                found == ours && entry.lease == Some(lease)
            }
            Value::Server(_) => true,
            _ => false,
        }
    }

    /// Returns the epoch of another server that has the master's key.
    pub(super) fn epoch_of_another(&self, view: &View) -> Option<u64> {
        let (master, epoch) = view.master()?;
        (master.server != self.server).then_some(epoch)
    }

    /// Returns the epochs in the registrations of other servers, except for that of the master's key.
    pub(super) fn reported_epochs(&self, view: &View) -> Vec<u64> {
        let key = view.master();
        let own = key.filter(|(master, _)| master.server == self.server);
        let registrations = view.registrations();
        let others = registrations.filter(|other| other.server != self.server);
        let epochs = others.filter_map(|other| other.highest_epoch);
        // Other servers have also seen our own key, which is no mastership of theirs.
        let epochs = epochs.filter(|epoch| own.is_none_or(|(_, own)| own != *epoch));
        epochs.collect()
    }
}

/// Ends the mastership with this term. If the term says that its master has resigned, a successor may begin at once. If
/// not, a successor may begin when the predecessor's time is over.
pub(super) fn resign(created: CreatedKey, term: TermRecord, lease: LeaseId) -> Txn {
    let steps = vec![put_term(term), TxnStep::Delete(EtcdKey::Master)];
    txn(is_ours(created, lease), steps)
}

fn txn(when: Vec<Compare>, then: Vec<TxnStep>) -> Txn {
    Txn {
        when,
        then,
        ..Txn::default()
    }
}

fn put_term(term: TermRecord) -> TxnStep {
    TxnStep::Put(EtcdKey::Term, Value::Term(term), None)
}

/// Deletes the key alone. The term stays, so a successor waits until its time is over.
pub(super) fn give_back(created: CreatedKey, lease: LeaseId) -> Txn {
    let when = is_ours(created, lease);
    txn(when, vec![TxnStep::Delete(EtcdKey::Master)])
}

/// Deletes a master's key without a lease.
pub(super) fn sweep(entry: &EtcdEntry) -> Txn {
    let is_unchanged = Compare::Modified(EtcdKey::Master, entry.modified);
    txn(vec![is_unchanged], vec![TxnStep::Delete(EtcdKey::Master)])
}

/// Returns the conditions of every transaction of a master: the key is the one that it created, under its lease. The
/// lease is compared, too, because in an etcd that was restored from a backup another server's key may have been
/// created at the same revision.
pub(super) fn is_ours(created: CreatedKey, lease: LeaseId) -> Vec<Compare> {
    vec![
        is_the_key(created),
        Compare::Lease(EtcdKey::Master, Some(lease)),
    ]
}

fn is_the_key(created: CreatedKey) -> Compare {
    Compare::Created(EtcdKey::Master, created.revision)
}

/// Whether an answer to [`Transactions::confirm`] shows the key of that mastership, overwritten by hand. Then the
/// candidate repairs it.
pub(super) fn is_ours_by_hand(answer: &TxnAnswer, created: CreatedKey) -> bool {
    let found = answer.found.as_ref();
    found.is_some_and(|key| key.lease.is_none() && key.created == created.revision)
}

/// Returns the last term in a view, and when it was seen.
pub(super) fn term_in_view(view: &View, ttl: Duration) -> Option<(TermRecord, Time)> {
    let entry = view.entries.get(&EtcdKey::Term)?;
    Some((term(&entry.value, ttl), entry.seen_at))
}

/// Whether the last term and all leases are over by etcd's clock: the lease span is gone.
pub(super) fn is_settled(view: &View) -> bool {
    let term = view.entries.get(&EtcdKey::Term).map(|entry| &entry.value);
    matches!(term, Some(Value::Term(term)) if term.has_lease_span)
        && !view.entries.contains_key(&EtcdKey::LeaseSpan)
}

/// Returns the last term as [`Transactions::stand`] found it, and when it was seen: in the view, or with the answer.
pub(super) fn term_found(
    answer: &TxnAnswer,
    view: Option<&View>,
    ttl: Duration,
) -> Option<(TermRecord, Time)> {
    let found = answer.found.as_ref()?;
    let seen = view
        .and_then(|view| view.entries.get(&EtcdKey::Term))
        .filter(|entry| entry.modified == found.modified && entry.value == found.value)
        .map_or(found.seen_at, |entry| entry.seen_at);
    Some((term(&found.value, ttl), seen))
}

/// Returns a term. An unreadable one counts as that of another master, for one TTL.
fn term(value: &Value, ttl: Duration) -> TermRecord {
    match value {
        Value::Term(term) => term.clone(),
        _ => TermRecord {
            length: ttl,
            ..TermRecord::default()
        },
    }
}

#[cfg(test)]
mod tests;
