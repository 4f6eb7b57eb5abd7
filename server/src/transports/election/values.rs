//! Translates between etcd's keys, values and transactions and those of candidates. No other file knows both.
//!
//! Values are JSON ([`doorward_etcd::directory`]), which servers of other versions read and write as well. A value that
//! does not have the form of its key is [`Value::Unreadable`].

use std::time::Duration;

use doorward_etcd::directory::{self, MasterKey, Role};
use doorward_etcd::follow;
use doorward_etcd::layout::NodeKeys;
use doorward_session::candidate::store::{
    Compare, EtcdEntry, EtcdKey, LeaseId, LeaseLengths, Master, Registration, TermRecord, Txn,
    TxnAnswer, TxnStep, Value, View,
};
use doorward_session::time::{Time, millis};
use etcd_client::{CompareOp, KeyValue, PutOptions, ResponseHeader, TxnOp, TxnOpResponse};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::clock::Clock;
use crate::transports::election::TreePlace;

/// Part of a registration that no election depends on.
#[derive(Serialize, Deserialize)]
struct Rest {
    node: String,
    version: String,
}

/// Place in the tree, as text.
#[derive(Serialize, Deserialize)]
struct Place {
    role: Role,
    level: Option<u32>,
}

/// Returns all keys of a node. Other keys with the same beginning are ignored: they are not ours.
pub fn view(keys: &NodeKeys, view: &follow::RangeView, clock: Clock) -> View {
    let entries = view.entries.iter().filter_map(|(text, entry)| {
        let key = key(keys, text)?;
        let entry = EtcdEntry {
            value: value(&key, &entry.value),
            created: unsigned(entry.create_revision),
            modified: unsigned(entry.mod_revision),
            lease: lease(entry.lease),
            seen_at: clock.time(entry.seen_at),
        };
        Some((key, entry))
    });
    View {
        entries: entries.collect(),
        revision: unsigned(view.revision),
    }
}

/// Returns a transaction in etcd's terms.
pub(super) fn txn(keys: &NodeKeys, txn: &Txn) -> etcd_client::Txn {
    let compares = txn.when.iter().map(|compare| match compare {
        Compare::Created(key, revision) => etcd_client::Compare::create_revision(
            key_text(keys, key),
            CompareOp::Equal,
            signed(*revision),
        ),
        Compare::Modified(key, revision) => etcd_client::Compare::mod_revision(
            key_text(keys, key),
            CompareOp::Equal,
            signed(*revision),
        ),
        Compare::Lease(key, lease) => etcd_client::Compare::lease(
            key_text(keys, key),
            CompareOp::Equal,
            lease.map_or(0, |lease| lease.0),
        ),
    });
    let ops = |steps: &[TxnStep]| {
        let ops = steps.iter().map(|step| match step {
            TxnStep::Put { key, value, lease } => {
                let options = lease.map(|lease| PutOptions::new().with_lease(lease.0));
                TxnOp::put(key_text(keys, key), bytes(value), options)
            }
            TxnStep::Delete(key) => TxnOp::delete(key_text(keys, key), None),
            TxnStep::Get(key) => TxnOp::get(key_text(keys, key), None),
        });
        ops.collect::<Vec<_>>()
    };
    etcd_client::Txn::new()
        .when(compares.collect::<Vec<_>>())
        .and_then(ops(&txn.then))
        .or_else(ops(&txn.or_else))
}

/// Returns the answer to a transaction, which arrives at `now`.
pub(super) fn txn_answer(
    keys: &NodeKeys,
    answer: &etcd_client::TxnResponse,
    now: Time,
) -> TxnAnswer {
    let found = answer.op_responses().into_iter().find_map(|op| match op {
        TxnOpResponse::Get(found) => found.kvs().first().cloned(),
        _ => None,
    });
    TxnAnswer {
        succeeded: answer.succeeded(),
        revision: unsigned(answer.header().map_or(0, ResponseHeader::revision)),
        found: found.and_then(|found| entry_found(keys, &found, now)),
    }
}

fn entry_found(keys: &NodeKeys, found: &KeyValue, now: Time) -> Option<EtcdEntry> {
    let key = key(keys, &String::from_utf8_lossy(found.key()))?;
    Some(EtcdEntry {
        value: value(&key, found.value()),
        created: unsigned(found.create_revision()),
        modified: unsigned(found.mod_revision()),
        lease: lease(found.lease()),
        seen_at: now,
    })
}

fn key(keys: &NodeKeys, text: &str) -> Option<EtcdKey> {
    if text == keys.master() {
        Some(EtcdKey::Master)
    } else if text == keys.term() {
        Some(EtcdKey::Term)
    } else if text == keys.outstanding() {
        Some(EtcdKey::Outstanding)
    } else {
        let address = text.strip_prefix(&keys.servers())?;
        Some(EtcdKey::Server(address.into()))
    }
}

fn key_text(keys: &NodeKeys, key: &EtcdKey) -> String {
    match key {
        EtcdKey::Master => keys.master(),
        EtcdKey::Term => keys.term(),
        EtcdKey::Outstanding => keys.outstanding(),
        EtcdKey::Server(address) => keys.server(address),
    }
}

fn value(key: &EtcdKey, bytes: &[u8]) -> Value {
    fn read<T: DeserializeOwned>(bytes: &[u8], value: impl FnOnce(T) -> Value) -> Value {
        serde_json::from_slice(bytes).map_or(Value::Unreadable, value)
    }
    match key {
        EtcdKey::Master => read(bytes, |key: MasterKey| {
            Value::Master(Master {
                address: key.master.address.into(),
                server: key.master.server.into(),
                epoch_offset: key.epoch_offset,
            })
        }),
        EtcdKey::Term => read(bytes, |term: directory::TermRecord| {
            Value::Term(term_read(term))
        }),
        EtcdKey::Outstanding => Value::Outstanding,
        EtcdKey::Server(_) => read(bytes, |registration: directory::Registration| {
            Value::Server(registration_read(registration))
        }),
    }
}

fn term_read(term: directory::TermRecord) -> TermRecord {
    TermRecord {
        epoch: term.epoch,
        address: term.address.into(),
        server: term.server.into(),
        length: Duration::from_millis(term.length_ms),
        resigned: term.resigned,
        leases: term.leases.map(|leases| LeaseLengths {
            templates: leases.templates.into(),
            longest: Duration::from_millis(leases.longest_ms),
            older: Duration::from_millis(leases.older_ms),
        }),
        is_marked: term.outstanding,
    }
}

fn registration_read(registration: directory::Registration) -> Registration {
    Registration {
        address: registration.address.into(),
        server: registration.server.into(),
        highest_epoch: registration.highest_epoch,
        pages: registration.http_address.map(SmolStr::from),
        place: json_text(&Place {
            role: registration.role,
            level: registration.level,
        }),
        rest: json_text(&Rest {
            node: registration.node,
            version: registration.version,
        }),
    }
}

/// Returns the bytes that are written under a key.
fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::Master(master) => json(&MasterKey {
            master: directory::Master {
                address: master.address.to_string(),
                server: master.server.to_string(),
            },
            epoch_offset: master.epoch_offset,
        }),
        Value::Term(term) => json(&directory::TermRecord {
            epoch: term.epoch,
            address: term.address.to_string(),
            server: term.server.to_string(),
            length_ms: millis(term.length),
            resigned: term.resigned,
            leases: term.leases.as_ref().map(|leases| directory::LeaseLengths {
                templates: leases.templates.to_string(),
                longest_ms: millis(leases.longest),
                older_ms: millis(leases.older),
            }),
            outstanding: term.is_marked,
        }),
        Value::Outstanding => b"{}".to_vec(),
        Value::Server(registration) => json(&registration_written(registration)),
        // No candidate writes such a value.
        Value::Unreadable => Vec::new(),
    }
}

fn registration_written(registration: &Registration) -> directory::Registration {
    // This process wrote both texts.
    let place = serde_json::from_str(&registration.place).unwrap_or(Place {
        role: Role::Root,
        level: None,
    });
    let rest = serde_json::from_str(&registration.rest).unwrap_or(Rest {
        node: String::new(),
        version: String::new(),
    });
    directory::Registration {
        node: rest.node,
        address: registration.address.to_string(),
        http_address: registration.pages.as_ref().map(SmolStr::to_string),
        server: registration.server.to_string(),
        role: place.role,
        level: place.level,
        highest_epoch: registration.highest_epoch,
        version: rest.version,
    }
}

/// Returns a place in the tree as text.
pub(super) fn place(place: TreePlace) -> SmolStr {
    json_text(&Place {
        role: place.role,
        level: place.level,
    })
}

/// Returns the part of a registration that no election depends on, for this version.
pub(super) fn rest(node: &str) -> SmolStr {
    json_text(&Rest {
        node: node.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

fn lease(id: i64) -> Option<LeaseId> {
    (id != 0).then_some(LeaseId(id))
}

/// Returns a revision of etcd; revisions begin at 1.
fn unsigned(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}

fn signed(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

/// Returns a value as JSON. Plain data with names as keys can always be written.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn json_text(value: &impl Serialize) -> SmolStr {
    serde_json::to_string(value).unwrap_or_default().into()
}

#[cfg(test)]
mod tests;
