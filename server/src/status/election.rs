//! What a server tells of its election: how etcd is doing, and for how long it is the master.

use serde::Serialize;

use crate::clock;
use crate::election::etcd::Contact;
use crate::status::millis;

/// An election in etcd at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EtcdStatus {
    /// Why etcd cannot be asked. Absent: it can.
    pub problem: Option<String>,
    /// How long that has been so, in milliseconds.
    pub age_ms: u64,
    /// How long this server is the master if nothing more is heard from etcd, in milliseconds.
    /// Absent: it is not the master.
    pub master_for_ms: Option<u64>,
}

impl EtcdStatus {
    pub(super) fn of(contact: Contact, master_for_ms: Option<u64>) -> Self {
        Self {
            problem: contact.problem,
            age_ms: millis(clock::wall().saturating_sub(contact.since)),
            master_for_ms,
        }
    }
}
