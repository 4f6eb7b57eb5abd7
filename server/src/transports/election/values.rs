//! Translates between etcd's keys, values and transactions and those of candidates. No other file knows both.
//!
//! Values are JSON ([`doorward_session::candidate::records`]), which servers of other versions read and write as well.
//! A value that does not have the form of its key is [`Value::Unreadable`].

use doorward_etcd::follow;
use doorward_etcd::layout::NodeKeys;
use doorward_session::candidate::store::{
    Compare, EtcdEntry, EtcdKey, LeaseId, Txn, TxnAnswer, TxnStep, Value, View,
};
use doorward_session::time::Time;
use etcd_client::{
    Client, CompareOp, DeleteOptions, KeyValue, PutOptions, ResponseHeader, TxnOp, TxnOpResponse,
};
use serde::de::DeserializeOwned;

use crate::clock::Clock;

/// Returns all keys of a node. Other keys with the same beginning are ignored: they are not ours.
pub fn view(keys: &NodeKeys, view: &follow::RangeView, clock: Clock) -> View {
    let entries = view.entries.iter().filter_map(|(text, entry)| {
        let (key, value) = read(keys, text, &entry.value)?;
        let entry = EtcdEntry {
            value,
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
    use etcd_client::Compare as Is;
    let (key, equal) = (|it: &EtcdKey| key_text(keys, it), CompareOp::Equal);
    let compares = txn.when.iter().map(|compare| match compare {
        Compare::Created(it, at) => Is::create_revision(key(it), equal, signed(*at)),
        Compare::Modified(it, at) => Is::mod_revision(key(it), equal, signed(*at)),
        Compare::Lease(it, lease) => Is::lease(key(it), equal, lease.map_or(0, |it| it.0)),
    });
    let ops = |steps: &[TxnStep]| {
        let ops = steps.iter().map(|step| match step {
            TxnStep::Put(it, value, lease) => {
                let options = lease.map(|lease| PutOptions::new().with_lease(lease.0));
                // Plain data with names as keys can always be written.
                let bytes = serde_json::to_vec(value).unwrap_or_default();
                TxnOp::put(key(it), bytes, options)
            }
            TxnStep::Delete(it) => TxnOp::delete(key(it), None),
            TxnStep::DeleteMarks => {
                TxnOp::delete(keys.marks_of(""), Some(DeleteOptions::new().with_prefix()))
            }
            TxnStep::Get(it) => TxnOp::get(key(it), None),
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
    let text = String::from_utf8_lossy(found.key());
    Some(EtcdEntry {
        value: read(keys, &text, found.value())?.1,
        created: unsigned(found.create_revision()),
        modified: unsigned(found.mod_revision()),
        lease: lease(found.lease()),
        seen_at: now,
    })
}

/// Reads a key and its value. None: it is another key.
fn read(keys: &NodeKeys, text: &str, bytes: &[u8]) -> Option<(EtcdKey, Value)> {
    fn parse<T: DeserializeOwned>(bytes: &[u8], value: fn(T) -> Value) -> Value {
        serde_json::from_slice(bytes).map_or(Value::Unreadable, value)
    }
    Some(if text == keys.master() {
        (EtcdKey::Master, parse(bytes, Value::Master))
    } else if text == keys.term() {
        (EtcdKey::Term, parse(bytes, Value::Term))
    } else if text == keys.lease_span() {
        (EtcdKey::LeaseSpan, Value::LeaseSpan {})
    } else if text == keys.step_down() {
        (EtcdKey::StepDown, parse(bytes, Value::StepDown))
    } else if text == keys.marks_head() {
        (EtcdKey::MarksHead, parse(bytes, Value::MarksHead))
    } else {
        let address = text.strip_prefix(&keys.servers())?;
        let key = EtcdKey::Server(address.into());
        (key, parse(bytes, Value::Server))
    })
}

fn key_text(keys: &NodeKeys, key: &EtcdKey) -> String {
    match key {
        EtcdKey::Master => keys.master(),
        EtcdKey::Term => keys.term(),
        EtcdKey::LeaseSpan => keys.lease_span(),
        EtcdKey::StepDown => keys.step_down(),
        EtcdKey::Server(address) => keys.server(address),
        EtcdKey::MarksHead => keys.marks_head(),
        EtcdKey::Mark(resource) => keys.mark(resource),
    }
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

/// Renews a lease, if there is one. Each renewal has a stream of its own: a kept stream may be dead without telling.
pub(super) async fn renew(
    mut client: Client,
    lease: Option<LeaseId>,
) -> Result<(), etcd_client::Error> {
    if let Some(lease) = lease {
        client.lease_keep_alive(lease.0).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
