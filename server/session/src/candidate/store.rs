//! Keys and requests of a candidate in etcd, free of etcd's own types.
//!
//! A node has keys for its master, its last term, whether leases may be valid, each of its servers, and the marks of its
//! resources. A driver translates: keys to texts, values to JSON ([`records`](super::records)), transactions to etcd's. It
//! decides nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorward_time::marks::MarksByResource;
use serde::Serialize;
use smol_str::SmolStr;

pub use super::records::{
    LeaseLengths, MarkRecord, MarksHead, Master, Registration, Role, StepDown, TermRecord,
    TreePlace,
};
use crate::time::Time;

/// A key of the candidate's node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EtcdKey {
    /// The master. Deleted with the master's lease.
    Master,
    /// The last mastership. It has no lease, so it stays.
    Term,
    /// Exists while leases of the last mastership may be valid. Deleted with a lease in etcd that outlasts them.
    LeaseSpan,
    /// An operator's request to the master. Deleted with a lease of the program that wrote it.
    StepDown,
    /// A server, by its address as it is written in the key. Deleted with the server's lease.
    Server(SmolStr),
    /// Facts about all marks. It stays, and no view shows it or a mark.
    MarksHead,
    /// The mark of a resource. It stays.
    Mark(SmolStr),
}

impl EtcdKey {
    /// Whether it is about marks.
    pub const fn is_about_marks(&self) -> bool {
        matches!(self, Self::MarksHead | Self::Mark(_))
    }
}

/// The value of a key. etcd has it as JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Under [`EtcdKey::Master`].
    Master(Master),
    /// Under [`EtcdKey::Term`].
    Term(TermRecord),
    /// Under [`EtcdKey::LeaseSpan`]: only whether the key exists counts.
    LeaseSpan {},
    /// Under [`EtcdKey::StepDown`].
    StepDown(StepDown),
    /// Under [`EtcdKey::Server`].
    Server(Registration),
    /// Under [`EtcdKey::MarksHead`].
    MarksHead(MarksHead),
    /// Under [`EtcdKey::Mark`].
    Mark(MarkRecord),
    /// Written by hand, or by an unknown program, and not parsable.
    Unreadable,
}

/// The id of a lease in etcd. Never 0, which means no lease in etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub i64);

/// Value of a key, and its revisions.
#[derive(Clone, Debug, PartialEq)]
pub struct EtcdEntry {
    /// The value.
    pub value: Value,
    /// The revision at which the key was created.
    pub created: u64,
    /// The revision at which it was last written.
    pub modified: u64,
    /// The lease that it is attached to.
    pub lease: Option<LeaseId>,
    /// Time when this was first seen here: not before it was written.
    pub seen_at: Time,
}

/// All keys of the node at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// Entries by key.
    pub entries: BTreeMap<EtcdKey, EtcdEntry>,
    /// The revision of this view.
    pub revision: u64,
}

impl View {
    /// The master, and its epoch. An unreadable value is ignored.
    pub fn master(&self) -> Option<(&Master, u64)> {
        let entry = self.entries.get(&EtcdKey::Master)?;
        match &entry.value {
            Value::Master(master) => {
                Some((master, entry.created.saturating_add(master.epoch_offset)))
            }
            _ => None,
        }
    }

    /// The epoch of the mastership that an operator wants another server to have.
    pub fn steps_down(&self) -> Option<u64> {
        match self.entries.get(&EtcdKey::StepDown)?.value {
            Value::StepDown(request) => Some(request.epoch),
            _ => None,
        }
    }

    /// The registered servers, by address.
    pub fn registrations(&self) -> impl Iterator<Item = &Registration> {
        self.entries
            .iter()
            .filter_map(|(key, entry)| match (key, &entry.value) {
                (EtcdKey::Server(_), Value::Server(registration)) => Some(registration),
                _ => None,
            })
    }

    /// The registration of the server at that address, if there is one.
    pub fn registration_of(&self, address: &str) -> Option<&Registration> {
        self.registrations()
            .find(|registration| registration.address == address)
    }
}

/// The marks of a node at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredMarks {
    /// Facts about all of them. None: absent, or unreadable.
    pub head: Option<MarksHead>,
    /// The revision at which the head was last written. 0: it does not exist.
    pub head_modified: u64,
    /// The readable ones.
    pub marks: MarksByResource,
    /// Whether another one cannot be read.
    pub has_unreadable: bool,
    /// etcd lets this server read none. Then it keeps none.
    pub is_refused: bool,
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    /// The key was created at that revision. 0: it does not exist.
    Created(EtcdKey, u64),
    /// The key was last written at that revision.
    Modified(EtcdKey, u64),
    /// The key is attached to that lease.
    Lease(EtcdKey, Option<LeaseId>),
}

/// A step of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum TxnStep {
    /// Writes a value under a key, attached to a lease.
    Put(EtcdKey, Value, Option<LeaseId>),
    /// Removes a key.
    Delete(EtcdKey),
    /// Removes all marks.
    DeleteMarks,
    /// Reads a key.
    Get(EtcdKey),
}

/// A transaction: all of `then` if all of `when` holds, else all of `or_else`, atomically.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Txn {
    /// The conditions.
    pub when: Vec<Compare>,
    /// Steps if all conditions hold.
    pub then: Vec<TxnStep>,
    /// Steps if one condition fails.
    pub or_else: Vec<TxnStep>,
}

/// The result of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct TxnAnswer {
    /// Whether all conditions held.
    pub succeeded: bool,
    /// etcd's revision after it.
    pub revision: u64,
    /// First existing key that it read. `seen_at` is the time of the answer.
    pub found: Option<EtcdEntry>,
}

/// Number of a candidate's request to etcd. Each request has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// A request to etcd.
#[derive(Clone, Debug, PartialEq)]
pub struct EtcdRequest {
    /// Its number.
    pub id: OpId,
    /// The operation.
    pub op: Op,
    /// Timeout of the answer. After that, the answer is [`OpAnswer::Failed`], and the next request goes to the next
    /// endpoint. For [`Op::ReadHistory`] and [`Op::ReadMarks`]: timeout of each of its reads.
    pub within: Duration,
}

/// An operation in etcd. A candidate asks for one at a time, and for one write of marks beside it.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Reads the master's key, only to check whether etcd answers.
    Probe,
    /// Grants a lease of that length.
    Grant(Duration),
    /// Renews a lease.
    Renew(LeaseId),
    /// Revokes a lease, and with it all keys attached to it.
    Revoke(LeaseId),
    /// Runs a transaction, with its purpose for logs.
    Transact(&'static str, Txn),
    /// Renews leases and runs a transaction. No part waits for another. If a part fails, its answer is that of the whole.
    Confirm {
        /// The lease of the master's key.
        lease: LeaseId,
        /// The lease of the lease span.
        span: Option<LeaseId>,
        /// The transaction.
        txn: Txn,
    },
    /// Renews a lease and reads all marks. Stops at `until` at the latest; see [`OpAnswer::Marks`].
    ReadMarks {
        /// The lease of the master's key.
        lease: LeaseId,
        /// The mastership for which they are read, by the revision of its key.
        won: u64,
        /// Latest end.
        until: Time,
    },
    /// Reads all versions of the templates that etcd keeps, for the longest lease of a resource that gets a shorter one
    /// now. Stops at that time at the latest; see [`OpAnswer::History`].
    ReadHistory(Time),
}

/// The result of an [`Op`].
#[derive(Clone, Debug, PartialEq)]
pub enum OpAnswer {
    /// Of [`Op::Probe`].
    Probed,
    /// Of [`Op::Grant`]. The granted length may be longer than asked for.
    Granted(LeaseId, Duration),
    /// Of [`Op::Renew`].
    Renewed,
    /// Of [`Op::Revoke`].
    Revoked,
    /// Of [`Op::Transact`] and [`Op::Confirm`].
    Transacted(TxnAnswer),
    /// Of [`Op::ReadMarks`]. None: the time was over; ask again.
    Marks(Option<Arc<StoredMarks>>),
    /// Of [`Op::ReadHistory`]. None: the time was over; ask again.
    History(Option<Duration>),
    /// etcd does not know the lease any more.
    LeaseGone,
    /// etcd refuses a write of marks, and would again: this server has no permission.
    Refused,
    /// No usable answer came. The operation may have been executed, or may still be executed. The next request goes to
    /// the next endpoint.
    Failed,
}
