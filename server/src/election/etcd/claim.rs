//! What a candidate writes in etcd, and what it finds there: the transactions of an election.
//!
//! Whatever stands under the keys of a node may have been written by hand. What makes no sense is
//! never believed: a term that cannot be read may be anybody's, and so is not over yet.

use std::time::Duration;

use doorward_clock::Instant;
use doorward_etcd::directory::{LeaseLengths, Master, MasterKey, Registration, Servers, Term};
use doorward_etcd::follow::{Entry, View};
use doorward_etcd::layout::NodeKeys;
use etcd_client::{
    Compare, CompareOp, KeyValue, PutOptions, Txn, TxnOp, TxnOpResponse, TxnResponse,
};
use serde::Serialize;

/// A candidate, as etcd knows it.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) keys: NodeKeys,
    /// Where it is.
    pub(super) address: String,
    /// Which process it is.
    pub(super) server: String,
}

/// A mastership that is claimed: the master's key, and what it was when it was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Created {
    /// The revision at which the key came to be.
    pub(super) revision: i64,
    /// What is added to that: see [`super::super::term::epoch_offset`].
    pub(super) epoch_offset: u64,
}

/// What a master tells of its mastership beside who it is.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// How long it may believe in it.
    pub(super) length: Duration,
    /// How long leases last that may be out. Absent: the parent knows.
    pub(super) leases: Option<LeaseLengths>,
}

impl Created {
    pub(super) fn epoch(self) -> u64 {
        unsigned(self.revision).saturating_add(self.epoch_offset)
    }
}

impl Claim {
    /// What stands under the master's key while it is this one.
    fn master(&self, epoch_offset: u64) -> Vec<u8> {
        json(&MasterKey {
            master: Master {
                address: self.address.clone(),
                server: self.server.clone(),
            },
            epoch_offset,
        })
    }

    fn put_master(&self, epoch_offset: u64, lease: i64) -> TxnOp {
        let options = PutOptions::new().with_lease(lease);
        let value = self.master(epoch_offset);
        TxnOp::put(self.keys.master(), value, Some(options))
    }

    /// Becomes the master if there is none, and reads the last term.
    pub(super) fn stand(&self, epoch_offset: u64, lease: i64) -> Txn {
        let is_vacant = Compare::create_revision(self.keys.master(), CompareOp::Equal, 0);
        Txn::new().when([is_vacant]).and_then([
            self.put_master(epoch_offset, lease),
            TxnOp::get(self.keys.term(), None),
        ])
    }

    /// Confirms the mastership, if the key still is what it was, and else reads the key. With `restore`,
    /// what stands there is written again.
    pub(super) fn confirm(
        &self,
        created: Created,
        told: Told,
        lease: i64,
        restore: Option<i64>,
    ) -> Txn {
        let key = self.keys.master();
        let term = self.put_term(created, told, false);
        let mut guards = vec![self.is_the_key(created)];
        let mut ops = vec![term];
        match restore {
            Some(lease) => ops.push(self.put_master(created.epoch_offset, lease)),
            // In an etcd that was restored from a backup, somebody else's key may have come to be at
            // the same revision.
            None => guards.push(Compare::lease(key.clone(), CompareOp::Equal, lease)),
        }
        Txn::new()
            .when(guards)
            .and_then(ops)
            .or_else([TxnOp::get(key, None)])
    }

    /// Whether an answer to [`Claim::confirm`] shows the key of that mastership, written by hand: then
    /// it is to be mended.
    pub(super) fn is_ours_by_hand(&self, answer: &TxnResponse, created: Created) -> bool {
        let found = key_found(answer);
        found.is_some_and(|key| key.lease() == 0 && key.create_revision() == created.revision)
    }

    /// Ends the mastership, so that another one may begin at once; or, if it had not begun, when its
    /// predecessor's is over.
    pub(super) fn resign(&self, created: Created, told: Told, had_begun: bool) -> Txn {
        let term = self.put_term(created, told, had_begun);
        let delete = TxnOp::delete(self.keys.master(), None);
        self.while_ours(created, [term, delete])
    }

    /// Gives back the key alone. The term stays, and whoever it is of is given time.
    pub(super) fn give_back(&self, created: Created) -> Txn {
        self.while_ours(created, [TxnOp::delete(self.keys.master(), None)])
    }

    fn while_ours(&self, created: Created, ops: impl IntoIterator<Item = TxnOp>) -> Txn {
        Txn::new()
            .when([self.is_the_key(created)])
            .and_then(ops.into_iter().collect::<Vec<_>>())
    }

    fn is_the_key(&self, created: Created) -> Compare {
        Compare::create_revision(self.keys.master(), CompareOp::Equal, created.revision)
    }

    fn put_term(&self, created: Created, told: Told, resigned: bool) -> TxnOp {
        let term = json(&Term {
            epoch: created.epoch(),
            address: self.address.clone(),
            server: self.server.clone(),
            length_ms: u64::try_from(told.length.as_millis()).unwrap_or(u64::MAX),
            resigned,
            leases: told.leases,
        });
        TxnOp::put(self.keys.term(), term, None)
    }

    /// Deletes a master's key that goes with nobody's lease.
    pub(super) fn sweep(&self, entry: &Entry) -> Txn {
        let (key, revision) = (self.keys.master(), entry.mod_revision);
        Txn::new()
            .when([Compare::mod_revision(
                key.clone(),
                CompareOp::Equal,
                revision,
            )])
            .and_then([TxnOp::delete(key, None)])
    }

    /// Whether the master's key says what it said when this one created it.
    pub(super) fn is_intact(&self, entry: &Entry, created: Created, lease: i64) -> bool {
        entry.lease == lease && entry.value == self.master(created.epoch_offset)
    }

    /// Whether the master's key is somebody else's, under a lease of its own.
    pub(super) fn is_of_another(&self, entry: &Entry) -> bool {
        let key = serde_json::from_slice::<MasterKey>(&entry.value);
        entry.lease != 0 && key.is_ok_and(|key| key.master.server != self.server)
    }

    /// What was created, if the key of the master says that it is this one.
    pub(super) fn created_by_us(&self, entry: &Entry) -> Option<Created> {
        let key: MasterKey = serde_json::from_slice(&entry.value).ok()?;
        (key.master.server == self.server).then_some(Created {
            revision: entry.create_revision,
            epoch_offset: key.epoch_offset,
        })
    }

    /// Whether our registration stands, or that of another process that says it is where we are:
    /// then two are misconfigured, and must not write for ever.
    pub(super) fn is_registered(&self, entry: &Entry, ours: &Registration, lease: i64) -> bool {
        match serde_json::from_slice::<Registration>(&entry.value) {
            Ok(found) if found.server == self.server => found == *ours && entry.lease == lease,
            Ok(_) => true,
            Err(_) => false,
        }
    }

    /// The epochs of which others tell in a view.
    pub(super) fn epochs_of_others(&self, view: &View) -> Vec<u64> {
        let Servers {
            master, servers, ..
        } = Servers::of_view(&self.keys, view);
        let (own, theirs) = match master {
            Some((master, epoch)) if master.server == self.server => (Some(epoch), None),
            master => (None, master.map(|(_, epoch)| epoch)),
        };
        let others = servers.iter().filter(|it| it.server != self.server);
        // Others have seen our own key, too: that is no mastership of theirs.
        let seen = others
            .filter_map(|other| other.highest_epoch)
            .filter(|epoch| Some(*epoch) != own);
        theirs.into_iter().chain(seen).collect()
    }

    /// The last term, as a view shows it, and when it was seen. Else: see [`Claim::term`].
    pub(super) fn term_in_view(&self, view: &View, ttl: Duration) -> Option<(Term, Instant)> {
        let entry = view.entries.get(&self.keys.term())?;
        Some((term(&entry.value, ttl), entry.seen_at))
    }

    /// The last term, as [`Claim::stand`] found it, and when it was seen: in the view, or now.
    pub(super) fn term_found(
        &self,
        answer: &TxnResponse,
        view: &View,
        ttl: Duration,
        now: Instant,
    ) -> Option<(Term, Instant)> {
        let found = key_found(answer)?;
        let seen = view
            .entries
            .get(&self.keys.term())
            .filter(|entry| {
                entry.mod_revision == found.mod_revision() && entry.value == found.value()
            })
            .map_or(now, |entry| entry.seen_at);
        Some((term(found.value(), ttl), seen))
    }
}

/// The key that a transaction has read, if it was there.
fn key_found(answer: &TxnResponse) -> Option<KeyValue> {
    answer.op_responses().into_iter().find_map(|op| match op {
        TxnOpResponse::Get(found) => found.kvs().first().cloned(),
        _ => None,
    })
}

/// A term; one that cannot be read is of somebody who may believe in it for as long as we would.
fn term(value: &[u8], ttl: Duration) -> Term {
    serde_json::from_slice(value).unwrap_or_else(|_| Term {
        epoch: 0,
        address: String::new(),
        server: String::new(),
        length_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
        resigned: false,
        leases: None,
    })
}

/// Revisions of etcd begin at 1.
pub(super) fn unsigned(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}

/// Plain data with names for keys: it can always be written.
pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use doorward_etcd::directory::Role;

    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn claim() -> Claim {
        Claim {
            keys: NodeKeys::new("/p", "n"),
            address: "here:1".to_owned(),
            server: "ours".to_owned(),
        }
    }

    fn entry(value: Vec<u8>, lease: i64) -> Entry {
        Entry {
            value,
            create_revision: 5,
            mod_revision: 5,
            lease,
            seen_at: Instant::now(),
        }
    }

    #[tokio::test]
    async fn a_key_is_taken_up_by_whom_it_was_created_for() {
        let claim = claim();
        let created = Created {
            revision: 5,
            epoch_offset: 2,
        };
        assert_eq!(created.epoch(), 7);
        let ours = entry(claim.master(2), 9);
        assert_eq!(claim.created_by_us(&ours), Some(created));
        assert!(claim.is_intact(&ours, created, 9));
        let other = Claim {
            server: "theirs".to_owned(),
            ..claim.clone()
        };
        let without_lease = Entry { lease: 0, ..ours };
        assert!(!claim.is_intact(&without_lease, created, 9));
        for (value, lease, is_of_another) in [
            (other.master(2), 8, true),
            (other.master(2), 0, false),
            (claim.master(2), 9, false),
            (b"nonsense".to_vec(), 9, false),
        ] {
            let found = claim.is_of_another(&entry(value, lease));
            assert_eq!(found, is_of_another);
        }
        for value in [other.master(2), b"nonsense".to_vec()] {
            let found = entry(value, 9);
            assert_eq!(claim.created_by_us(&found), None);
            assert!(!claim.is_intact(&found, created, 9));
        }
    }

    #[tokio::test]
    async fn a_term_that_cannot_be_read_is_not_over() {
        let claim = claim();
        let mut view = View::default();
        assert_eq!(claim.term_in_view(&view, TTL), None);
        let nonsense = entry(b"nonsense".to_vec(), 0);
        let seen_at = nonsense.seen_at;
        view.entries.insert(claim.keys.term(), nonsense);
        let (term, seen) = claim.term_in_view(&view, TTL).unwrap();
        assert_eq!(
            (term.resigned, term.length_ms, seen),
            (false, 10_000, seen_at)
        );
    }

    #[tokio::test]
    async fn others_tell_of_epochs_that_they_have_seen() {
        let claim = claim();
        let mut view = View::default();
        let other = Claim {
            server: "theirs".to_owned(),
            ..claim.clone()
        };
        let registered = |server: &str, highest_epoch| {
            json(&Registration {
                node: "n".to_owned(),
                address: server.to_owned(),
                http_address: None,
                server: server.to_owned(),
                role: Role::Root,
                level: None,
                highest_epoch,
                version: "1".to_owned(),
            })
        };
        for (server, epoch) in [("ours", Some(90)), ("theirs", Some(46)), ("old", None)] {
            let value = entry(registered(server, epoch), 9);
            view.entries.insert(claim.keys.server(server), value);
        }
        assert_eq!(claim.epochs_of_others(&view), [46]);
        let key = entry(other.master(3), 9);
        view.entries.insert(claim.keys.master(), key);
        assert_eq!(claim.epochs_of_others(&view), [8, 46]);
        let own = entry(claim.master(3), 9);
        view.entries.insert(claim.keys.master(), own);
        assert_eq!(claim.epochs_of_others(&view), [46]);
        let echo = entry(registered("theirs", Some(8)), 9);
        view.entries.insert(claim.keys.server("theirs"), echo);
        let told = claim.epochs_of_others(&view);
        assert!(told.is_empty(), "it has seen our own: {told:?}");
    }

    #[tokio::test]
    async fn a_registration_is_mended_but_not_fought_over() {
        let claim = claim();
        let ours = Registration {
            node: "n".to_owned(),
            address: claim.address.clone(),
            http_address: None,
            server: claim.server.clone(),
            role: Role::Root,
            level: Some(0),
            highest_epoch: None,
            version: "1".to_owned(),
        };
        let theirs = Registration {
            server: "theirs".to_owned(),
            ..ours.clone()
        };
        let old = Registration {
            level: None,
            ..ours.clone()
        };
        for (value, lease, stands) in [
            (json(&ours), 9, true),
            (json(&ours), 0, false),
            (json(&old), 9, false),
            (json(&theirs), 4, true),
            (b"nonsense".to_vec(), 9, false),
        ] {
            let found = entry(value, lease);
            assert_eq!(claim.is_registered(&found, &ours, 9), stands, "{found:?}");
        }
    }
}
