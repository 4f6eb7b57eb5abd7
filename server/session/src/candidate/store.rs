//! What a candidate reads and writes in etcd, free of etcd's own types.
//!
//! Three kinds of keys stand under a node: who is the master, its last term, and each server that is there.
//! A driver translates: keys to texts, values to JSON, transactions to etcd's. It decides nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use smol_str::SmolStr;

use crate::time::Time;

/// A key of the candidate's node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Who is the master; goes with its lease.
    Master,
    /// The last mastership; stays.
    Term,
    /// A server that is there, by its address as it stands in the key; goes with its lease.
    Server(SmolStr),
}

/// What stands under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Under [`Key::Master`].
    Master(Master),
    /// Under [`Key::Term`].
    Term(Term),
    /// Under [`Key::Server`].
    Server(Registration),
    /// It was written by hand, or by a program that we do not know: nothing can be read in it.
    Unreadable,
}

/// Who is the master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Master {
    /// Where it is.
    pub address: SmolStr,
    /// Which process it is: another one each time a server starts.
    pub server: SmolStr,
    /// Its epoch is the revision at which the key came to be, and this. Not 0 only after etcd was set up anew,
    /// or restored from a backup.
    pub epoch_offset: u64,
}

/// A mastership, as its master last confirmed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The epoch. 0: the term cannot be read.
    pub epoch: u64,
    /// Where the master is.
    pub address: SmolStr,
    /// Which process it is.
    pub server: SmolStr,
    /// How long the master may believe in it without confirming it again, at most.
    pub length: Duration,
    /// The master has given it up, and decides nothing any more.
    pub resigned: bool,
    /// How long leases last that may be out. Only the root has it.
    pub leases: Option<LeaseLengths>,
}

/// How long leases last that a master may have granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseLengths {
    /// Which lease lengths are in force: the same text for the same templates.
    pub templates: SmolStr,
    /// How long the longest of them is.
    pub longest: Duration,
    /// For how long leases may last from now on, at most, that were granted by templates which gave longer ones.
    pub older: Duration,
}

/// What a server says of itself, as far as an election goes by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Where it serves.
    pub address: SmolStr,
    /// Which process it is.
    pub server: SmolStr,
    /// The highest epoch of the node that it has seen.
    pub highest_epoch: Option<u64>,
    /// Where its pages are, if it says so.
    pub pages: Option<SmolStr>,
    /// Its place in the tree, as the driver writes it. A candidate that is not the master says what the
    /// master says: only that one knows.
    pub place: SmolStr,
    /// Everything else that it says, which no election depends on: as the driver writes it.
    pub rest: SmolStr,
}

/// A lease in etcd. Never 0, which is etcd's word for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub i64);

/// What stands under a key, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What.
    pub value: Value,
    /// The revision at which the key came to be.
    pub created: u64,
    /// The revision at which it was last written.
    pub modified: u64,
    /// The lease it goes with.
    pub lease: Option<LeaseId>,
    /// When this was first seen here: no earlier than it was written.
    pub seen_at: Time,
}

/// All keys of the node at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// By key.
    pub entries: BTreeMap<Key, Entry>,
    /// The revision at which they were so.
    pub revision: u64,
}

impl View {
    /// The master, and its epoch. What makes no sense is passed over: it is not ours.
    pub fn master(&self) -> Option<(&Master, u64)> {
        let entry = self.entries.get(&Key::Master)?;
        match &entry.value {
            Value::Master(master) => {
                Some((master, entry.created.saturating_add(master.epoch_offset)))
            }
            Value::Term(_) | Value::Server(_) | Value::Unreadable => None,
        }
    }

    /// The servers that are there, by address.
    pub fn registrations(&self) -> impl Iterator<Item = &Registration> {
        self.entries
            .iter()
            .filter_map(|(key, entry)| match (key, &entry.value) {
                (Key::Server(_), Value::Server(registration)) => Some(registration),
                _ => None,
            })
    }

    /// What the server at that address says of itself, if it is there.
    pub fn registration_of(&self, address: &str) -> Option<&Registration> {
        self.registrations()
            .find(|registration| registration.address == address)
    }
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    /// The key came to be at that revision. 0: it is not there.
    Created(Key, u64),
    /// The key was last written at that revision.
    Modified(Key, u64),
    /// The key goes with that lease.
    Lease(Key, Option<LeaseId>),
}

/// A step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Writes a key.
    Put {
        /// Which.
        key: Key,
        /// What.
        value: Value,
        /// The lease it goes with.
        lease: Option<LeaseId>,
    },
    /// Removes a key.
    Delete(Key),
    /// Reads a key.
    Get(Key),
}

/// A transaction: all of `then` if all of `when` holds, else all of `or_else`; nothing comes between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    /// The conditions.
    pub when: Vec<Compare>,
    /// Done if all hold.
    pub then: Vec<Step>,
    /// Done if one does not.
    pub or_else: Vec<Step>,
}

/// What came of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnAnswer {
    /// Whether all conditions held.
    pub succeeded: bool,
    /// etcd's revision after it.
    pub revision: u64,
    /// The first key that it read and that was there. `seen_at` is when the answer came.
    pub found: Option<Entry>,
}

/// Which of a candidate's questions this is: each has a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// A question to etcd, on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    /// Its number.
    pub id: OpId,
    /// What is asked.
    pub op: Op,
    /// How long to wait for the answer: then [`OpAnswer::Failed`] is the answer, and the next question goes to
    /// the next endpoint. Of [`Op::ReadHistory`]: how long each of its reads may take.
    pub within: Duration,
}

/// What a candidate asks etcd for: one at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reads the master's key, only to hear whether etcd answers.
    Hear,
    /// A lease of that length.
    Grant(Duration),
    /// Renews a lease.
    Renew(LeaseId),
    /// Gives a lease back, and all keys that go with it.
    Revoke(LeaseId),
    /// A transaction, and what it is for, for people.
    Transact(&'static str, Txn),
    /// The longest lease by any templates that there ever were, as far as etcd has them, for which those in
    /// force give a shorter one. Reads on until that time at most; see [`OpAnswer::History`].
    ReadHistory(Time),
}

/// What came of an [`Op`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpAnswer {
    /// Of [`Op::Hear`].
    Heard,
    /// Of [`Op::Grant`]: as it was granted, which may be longer than asked for.
    Granted(LeaseId, Duration),
    /// Of [`Op::Renew`].
    Renewed,
    /// Of [`Op::Revoke`].
    Revoked,
    /// Of [`Op::Transact`].
    Transacted(TxnAnswer),
    /// Of [`Op::ReadHistory`]. None: it takes longer; ask again.
    History(Option<Duration>),
    /// etcd knows nothing of the lease any more.
    LeaseGone,
    /// No answer of use came: it may have been done, or may still be. The next question goes to the next
    /// endpoint.
    Failed,
}
