//! What a candidate writes in etcd, and what it finds there: the transactions of an election.
//!
//! Whatever stands under the keys of a node may have been written by hand. What makes no sense is never
//! believed: a term that cannot be read may be anybody's, and so is not over yet.

use std::time::Duration;

use smol_str::SmolStr;

use super::store::{
    Compare, Entry, Key, LeaseId, LeaseLengths, Master, Registration, Step, Term, Txn, TxnAnswer,
    Value, View,
};
use crate::planted::{self, Bug};
use crate::time::Time;

/// A candidate, as etcd knows it.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// Where it is.
    pub(super) address: SmolStr,
    /// Which process it is.
    pub(super) server: SmolStr,
}

/// A mastership that is claimed: the master's key, and what it was when it was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Created {
    /// The revision at which the key came to be.
    pub(super) revision: u64,
    /// What is added to that: see [`super::term::epoch_offset`].
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
        self.revision.saturating_add(self.epoch_offset)
    }
}

impl Claim {
    /// What stands under the master's key while it is this one.
    fn master(&self, epoch_offset: u64) -> Value {
        Value::Master(Master {
            address: self.address.clone(),
            server: self.server.clone(),
            epoch_offset,
        })
    }

    fn put_master(&self, epoch_offset: u64, lease: LeaseId) -> Step {
        Step::Put {
            key: Key::Master,
            value: self.master(epoch_offset),
            lease: Some(lease),
        }
    }

    /// Becomes the master if there is none, and reads the last term.
    pub(super) fn stand(&self, epoch_offset: u64, lease: LeaseId) -> Txn {
        Txn {
            when: vec![Compare::Created(Key::Master, 0)],
            then: vec![self.put_master(epoch_offset, lease), Step::Get(Key::Term)],
            or_else: Vec::new(),
        }
    }

    /// Confirms the mastership, if the key still is what it was, and else reads the key. With `mend`, what
    /// stands there is written again.
    pub(super) fn confirm(&self, created: Created, told: Told, lease: LeaseId, mend: bool) -> Txn {
        let mut then = vec![self.put_term(created, told, false)];
        if mend {
            then.push(self.put_master(created.epoch_offset, lease));
        }
        let when = if planted::is(Bug::ConfirmWithoutComparing) {
            Vec::new()
        } else if mend {
            vec![is_the_key(created)]
        } else {
            is_ours(created, lease)
        };
        Txn {
            when,
            then,
            or_else: vec![Step::Get(Key::Master)],
        }
    }

    /// Ends the mastership, so that another one may begin at once; or, if it had not begun, when its
    /// predecessor's is over.
    pub(super) fn resign(
        &self,
        created: Created,
        told: Told,
        lease: LeaseId,
        had_begun: bool,
    ) -> Txn {
        let when = if planted::is(Bug::ResignWithoutComparing) {
            Vec::new()
        } else {
            is_ours(created, lease)
        };
        Txn {
            when,
            then: vec![
                self.put_term(created, told, had_begun),
                Step::Delete(Key::Master),
            ],
            or_else: Vec::new(),
        }
    }

    fn put_term(&self, created: Created, told: Told, resigned: bool) -> Step {
        let term = Term {
            epoch: created.epoch(),
            address: self.address.clone(),
            server: self.server.clone(),
            length: told.length,
            resigned,
            leases: told.leases,
        };
        Step::Put {
            key: Key::Term,
            value: Value::Term(term),
            lease: None,
        }
    }

    /// Says that this server is there.
    pub(super) fn register(&self, registration: Registration, lease: LeaseId) -> Txn {
        let put = Step::Put {
            key: Key::Server(self.address.clone()),
            value: Value::Server(registration),
            lease: Some(lease),
        };
        Txn {
            then: vec![put],
            ..Txn::default()
        }
    }

    /// Whether the master's key says what it said when this one created it.
    pub(super) fn is_intact(&self, entry: &Entry, created: Created, lease: LeaseId) -> bool {
        entry.lease == Some(lease) && entry.value == self.master(created.epoch_offset)
    }

    /// Whether the master's key is somebody else's, under a lease of its own.
    pub(super) fn is_of_another(&self, entry: &Entry) -> bool {
        entry.lease.is_some()
            && matches!(&entry.value, Value::Master(master) if master.server != self.server)
    }

    /// What was created, if the key of the master says that it is this one.
    pub(super) fn created_by_us(&self, entry: &Entry) -> Option<Created> {
        match &entry.value {
            Value::Master(master) if master.server == self.server => Some(Created {
                revision: entry.created,
                epoch_offset: master.epoch_offset,
            }),
            _ => None,
        }
    }

    /// Whether our registration stands, or that of another process that says it is where we are: then two are
    /// misconfigured, and must not write for ever.
    pub(super) fn is_registered(&self, entry: &Entry, ours: &Registration, lease: LeaseId) -> bool {
        match &entry.value {
            Value::Server(found) if found.server == self.server => {
                found == ours && entry.lease == Some(lease)
            }
            Value::Server(_) => true,
            _ => false,
        }
    }

    /// The epoch of another one that has the master's key.
    pub(super) fn epoch_of_another(&self, view: &View) -> Option<u64> {
        let (master, epoch) = view.master()?;
        (master.server != self.server).then_some(epoch)
    }

    /// The epochs that others tell of, beside where they are.
    pub(super) fn told_epochs(&self, view: &View) -> Vec<u64> {
        let key = view.master();
        let own = key.filter(|(master, _)| master.server == self.server);
        let others = view
            .registrations()
            .filter(|other| other.server != self.server);
        // Others have seen our own key, too: that is no mastership of theirs.
        let told = others
            .filter_map(|other| other.highest_epoch)
            .filter(|epoch| own.is_none_or(|(_, own)| own != *epoch));
        told.collect()
    }
}

/// Gives back the key alone. The term stays, and whoever it is of is given time.
pub(super) fn give_back(created: Created, lease: LeaseId) -> Txn {
    Txn {
        when: is_ours(created, lease),
        then: vec![Step::Delete(Key::Master)],
        or_else: Vec::new(),
    }
}

/// Deletes a master's key that goes with nobody's lease.
pub(super) fn sweep(entry: &Entry) -> Txn {
    Txn {
        when: vec![Compare::Modified(Key::Master, entry.modified)],
        then: vec![Step::Delete(Key::Master)],
        or_else: Vec::new(),
    }
}

/// What every transaction of a master is bound to: the key is the one that made it the master, under its lease.
/// In an etcd that was restored from a backup, somebody else's key may have come to be at the same revision.
fn is_ours(created: Created, lease: LeaseId) -> Vec<Compare> {
    vec![
        is_the_key(created),
        Compare::Lease(Key::Master, Some(lease)),
    ]
}

fn is_the_key(created: Created) -> Compare {
    Compare::Created(Key::Master, created.revision)
}

/// Whether an answer to [`Claim::confirm`] shows the key of that mastership, written by hand: then it is to be
/// mended.
pub(super) fn is_ours_by_hand(answer: &TxnAnswer, created: Created) -> bool {
    let found = answer.found.as_ref();
    found.is_some_and(|key| key.lease.is_none() && key.created == created.revision)
}

/// The last term, as a view shows it, and when it was seen.
pub(super) fn term_in_view(view: &View, ttl: Duration) -> Option<(Term, Time)> {
    let entry = view.entries.get(&Key::Term)?;
    Some((term(&entry.value, ttl), entry.seen_at))
}

/// The last term, as [`Claim::stand`] found it, and when it was seen: in the view, or when the answer came.
pub(super) fn term_found(
    answer: &TxnAnswer,
    view: Option<&View>,
    ttl: Duration,
) -> Option<(Term, Time)> {
    let found = answer.found.as_ref()?;
    let seen = view
        .and_then(|view| view.entries.get(&Key::Term))
        .filter(|entry| entry.modified == found.modified && entry.value == found.value)
        .map_or(found.seen_at, |entry| entry.seen_at);
    Some((term(&found.value, ttl), seen))
}

/// A term; one that cannot be read is of somebody who may believe in it for as long as we would.
fn term(value: &Value, ttl: Duration) -> Term {
    match value {
        Value::Term(term) => term.clone(),
        Value::Master(_) | Value::Server(_) | Value::Unreadable => Term {
            epoch: 0,
            address: SmolStr::default(),
            server: SmolStr::default(),
            length: ttl,
            resigned: false,
            leases: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);
    const OURS: LeaseId = LeaseId(9);

    fn claim(server: &str) -> Claim {
        Claim {
            address: "here:1".into(),
            server: server.into(),
        }
    }

    fn entry(value: Value, lease: Option<LeaseId>) -> Entry {
        Entry {
            value,
            created: 5,
            modified: 5,
            lease,
            seen_at: Time::after_origin(TTL),
        }
    }

    fn registered(server: &str, highest_epoch: Option<u64>) -> Registration {
        Registration {
            address: server.into(),
            server: server.into(),
            highest_epoch,
            pages: None,
            place: "root".into(),
            rest: SmolStr::default(),
        }
    }

    #[test]
    fn a_key_is_taken_up_by_whom_it_was_created_for() {
        let (claim, other) = (claim("ours"), claim("theirs"));
        let created = Created {
            revision: 5,
            epoch_offset: 2,
        };
        assert_eq!(created.epoch(), 7);
        let ours = entry(claim.master(2), Some(OURS));
        assert_eq!(claim.created_by_us(&ours), Some(created));
        assert!(claim.is_intact(&ours, created, OURS));
        let without_lease = Entry {
            lease: None,
            ..ours
        };
        assert!(!claim.is_intact(&without_lease, created, OURS));
        for (value, lease, is_of_another) in [
            (other.master(2), Some(LeaseId(8)), true),
            (other.master(2), None, false),
            (claim.master(2), Some(OURS), false),
            (Value::Unreadable, Some(OURS), false),
        ] {
            let found = claim.is_of_another(&entry(value, lease));
            assert_eq!(found, is_of_another);
        }
        for value in [other.master(2), Value::Unreadable] {
            let found = entry(value, Some(OURS));
            assert_eq!(claim.created_by_us(&found), None);
            assert!(!claim.is_intact(&found, created, OURS));
        }
    }

    #[test]
    fn a_term_that_cannot_be_read_is_not_over() {
        let mut view = View::default();
        assert_eq!(term_in_view(&view, TTL), None);
        let nonsense = entry(Value::Unreadable, None);
        let seen_at = nonsense.seen_at;
        view.entries.insert(Key::Term, nonsense);
        let (term, seen) = term_in_view(&view, TTL).unwrap();
        assert_eq!((term.resigned, term.length, seen), (false, TTL, seen_at));
    }

    #[test]
    fn others_tell_of_epochs_that_they_have_seen() {
        let (claim, other) = (claim("ours"), claim("theirs"));
        let mut view = View::default();
        let register = |view: &mut View, server: &str, epoch| {
            let value = Value::Server(registered(server, epoch));
            let entry = entry(value, Some(OURS));
            view.entries.insert(Key::Server(server.into()), entry);
        };
        for (server, epoch) in [("ours", Some(90)), ("theirs", Some(46)), ("old", None)] {
            register(&mut view, server, epoch);
        }
        let found = |view: &View| (claim.epoch_of_another(view), claim.told_epochs(view));
        assert_eq!(found(&view), (None, vec![46]));
        let key = entry(other.master(3), Some(OURS));
        view.entries.insert(Key::Master, key);
        assert_eq!(found(&view), (Some(8), vec![46]));
        let own = entry(claim.master(3), Some(OURS));
        view.entries.insert(Key::Master, own);
        assert_eq!(found(&view), (None, vec![46]));
        register(&mut view, "theirs", Some(8));
        let told = claim.told_epochs(&view);
        assert!(told.is_empty(), "it has seen our own: {told:?}");
    }

    #[test]
    fn a_registration_is_mended_but_not_fought_over() {
        let claim = claim("ours");
        let ours = registered("ours", None);
        let theirs = Registration {
            server: "theirs".into(),
            ..ours.clone()
        };
        let old = Registration {
            place: "leaf".into(),
            ..ours.clone()
        };
        for (value, lease, stands) in [
            (Value::Server(ours.clone()), Some(OURS), true),
            (Value::Server(ours.clone()), None, false),
            (Value::Server(old), Some(OURS), false),
            (Value::Server(theirs), Some(LeaseId(4)), true),
            (Value::Unreadable, Some(OURS), false),
        ] {
            let found = entry(value, lease);
            let found_to_stand = claim.is_registered(&found, &ours, OURS);
            assert_eq!(found_to_stand, stands, "{found:?}");
        }
    }
}
