//! Values in etcd, where any program may have written: the master, terms, registrations, lease
//! lengths, versions of templates; and a candidate's reading of them.

use std::collections::BTreeSet;
use std::time::Duration;

use doorward_engine::templates::Templates;
use doorward_etcd::directory::Servers;
use doorward_etcd::documents::{DocumentEdit, Recorded, StoredDocument, VersionKind};
use doorward_etcd::follow::{KeyEntry, RangeView};
use doorward_etcd::layout::{DocumentKeys, NodeKeys};
use doorward_replica::templates_in_force;
use doorward_server::clock::Clock;
use doorward_server::transports::election::values;
use doorward_session::address::Address;
use doorward_session::candidate::older_leases::{OlderLeases, PredecessorLeases};
use doorward_session::candidate::standing::standing_of_other;
use doorward_session::candidate::store::{EtcdKey, Value, View as Seen};
use doorward_session::candidate::term;
use doorward_session::candidate::term_history::TermHistory;
use doorward_session::time::Time;
use doorward_session::time::tolerance::Tolerance;
use prost::Message;

use crate::mutate::Format;
use crate::runner::fuzz;

/// Data of etcd, as it changes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Etcd {
    #[prost(message, repeated, tag = "1")]
    pub writes: Vec<Write>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Write {
    /// Data under the prefix of the node, or of the templates.
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub create_revision: i64,
    #[prost(int64, tag = "4")]
    pub lease: i64,
}

const TTL: Duration = Duration::from_secs(10);

#[test]
fn etcd_values() {
    fuzz!("etcd_values", Format::Wire, share: 7, read);
}

fn read(bytes: &[u8]) {
    let Ok(etcd) = Etcd::decode(bytes) else {
        return;
    };
    let keys = NodeKeys::new("/doorward/nodes", "eu");
    let clock = Clock::start();
    let (mut view, mut past) = (RangeView::default(), TermHistory::default());
    let mut now = clock.instant(Time::ZERO);
    let in_force = templates_in_force(&Templates::default(), false);
    let mut lengths = OlderLeases::new(&in_force, Tolerance::LEAST);
    for write in etcd.writes.into_iter().take(16) {
        version(&write);
        let entry = KeyEntry {
            value: write.value,
            create_revision: write.create_revision,
            mod_revision: write.create_revision,
            lease: write.lease,
            seen_at: now,
        };
        let key = format!("{}{}", keys.prefix(), write.key);
        view.entries.insert(key, entry);
        addresses(&Servers::of_view(&keys, &view));
        let seen = values::view(&keys, &view, clock);
        look(&seen, &mut past, &mut lengths, clock.time(now));
        now = now + Duration::from_secs(1);
    }
}

/// Reads the servers' addresses.
fn addresses(servers: &Servers) {
    let given = Address::parse("given:1").unwrap();
    let addresses = servers.addresses(std::slice::from_ref(&given));
    assert!(addresses.contains(&given));
    let distinct: BTreeSet<&str> = addresses.iter().map(Address::as_str).collect();
    assert_eq!(distinct.len(), addresses.len(), "{addresses:?}");
    let _ = servers.named();
}

/// Reads the values as a candidate does.
fn look(view: &Seen, past: &mut TermHistory, lengths: &mut OlderLeases, now: Time) {
    if let Some((_, epoch)) = view.master() {
        past.note_epoch(epoch);
    }
    if let Some(Value::Term(last)) = view.entries.get(&EtcdKey::Term).map(|entry| &entry.value) {
        past.note_term(last, now);
    }
    let seen = standing_of_other(view, "here:1", past.highest_epoch());
    assert!(seen.term().is_none());
    let (begins, vacant_since) = past.begin("own", None, now);
    let vacant_since = vacant_since.expect("nothing is settled");
    assert!(begins >= now && vacant_since <= begins);
    let length = term::length(begins, TTL, now);
    assert!(length >= TTL);
    let unsaid = Duration::from_secs(60);
    let longer = lengths
        .longer_leases(past.predecessor_leases(), unsaid)
        .max(past.lost_after(vacant_since));
    if past.predecessor_leases() == PredecessorLeases::NoTerm {
        assert!(longer.is_zero(), "{longer:?}");
    }
    lengths.note_older(vacant_since, longer);
    // Time saturates after 584 years.
    let longer = (vacant_since + longer).since(vacant_since);
    assert!(lengths.older_after(vacant_since) >= longer);
    let written = lengths.to_write(None, now);
    assert!(written.older >= longer || vacant_since < now);
    assert!(term::epoch_offset(past.highest_epoch(), 1) < u64::MAX);
}

/// Reads a version of templates: it is listed with any value.
fn version(write: &Write) {
    let keys = DocumentKeys::new("/doorward/templates");
    let number = keys.number(format!("{}{}", keys.history(), write.key).as_bytes());
    let recorded = Recorded::parse(number.unwrap_or(1), &write.value);
    if let Ok(version) = &recorded.version {
        let again = Recorded::parse(recorded.number, version.to_json().as_bytes());
        assert_eq!(again, recorded, "a version is what is written of it");
    }
    let standing = StoredDocument {
        document: Some(write.value.clone()),
        mod_revision: write.create_revision,
        numbers: vec![recorded.number],
        newest: Some(recorded),
    };
    let change = DocumentEdit {
        document: "resources: []\n",
        kind: VersionKind::Apply,
        who: "fuzz",
        why: None,
        when: std::time::UNIX_EPOCH,
    };
    if let Ok(versions) = standing.versions_for(&change) {
        assert!(versions.len() == 1 || !standing.is_recorded());
    }
}
