//! Names of clients and child servers, bound to the identity that used them first. Names of the holders of other doors
//! are refused: there, a name has its identity in it.
//!
//! A name without an identity is bound to none. A binding ends when its identity has not used the name for ten minutes.
//! It is the memory of one process: after a failover, the first use counts. All servers of a node use its name, so they
//! need the same identity. While callers need no identity, or change over to TLS, no name is bound.

use std::collections::HashMap;
use std::time::Duration;

use doorward_clock::Instant;
use doorward_door::refusals::Refusals;
use doorward_edge::holder::{CALLERS, LEASE_HOLDERS};
use doorward_tls::identity::Identity;
use parking_lot::Mutex;
use tonic::Status as RpcStatus;
use tracing::warn;

/// Time without use after which a name is free.
const KEPT: Duration = Duration::from_secs(600);

/// Largest number of names, of one identity and of all.
const NAMES_OF_IDENTITY_MAX: usize = 100_000;
const NAMES_MAX: usize = 1_000_000;

/// Part of the memory that the names of one kind take at most, and of that the names of one identity. The largest
/// name has so many bytes.
const PART_OF_MEMORY: u64 = 8;
const PART_OF_IDENTITY: usize = 4;
const NAME_BYTES: u64 = 512;

/// Shortest interval between two looks for unused names.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Number of names from which unused ones are looked for.
const SWEEP_MIN: usize = 1_024;

/// Starts of the names of holders of other doors: of `/v1/lease`, and of the callers of rules.
const OF_DOORS: [&str; 2] = [LEASE_HOLDERS, CALLERS];

/// Names with their identities. A client and a child server may have the same name.
#[derive(Debug)]
pub(crate) struct Bindings {
    pub(crate) clients: NameTable,
    pub(crate) servers: NameTable,
}

impl Bindings {
    /// Makes tables without names, of a part of the memory. `is_off`: they bind none.
    pub(crate) fn new(is_off: bool, memory_max: u64) -> Self {
        let names_max = usize::try_from(memory_max / PART_OF_MEMORY / NAME_BYTES);
        let names_max = names_max.unwrap_or(NAMES_MAX).min(NAMES_MAX);
        Self {
            clients: NameTable::new(is_off, names_max),
            servers: NameTable::new(is_off, names_max),
        }
    }
}

/// Names of one kind.
#[derive(Debug)]
pub(crate) struct NameTable {
    is_off: bool,
    started: Instant,
    refusals: Refusals,
    names: Mutex<Names>,
}

#[derive(Debug, Default)]
struct Names {
    /// Largest number.
    max: usize,
    owners: HashMap<Box<str>, Owner>,
    /// Number of names of each identity.
    counts: HashMap<Identity, usize>,
    /// Number of names at which unused ones are removed: 0 at first, then twice as many as the last time.
    sweep_at: usize,
    swept_at: Duration,
}

#[derive(Debug)]
struct Owner {
    identity: Identity,
    used_at: Duration,
}

impl NameTable {
    fn new(is_off: bool, names_max: usize) -> Self {
        Self {
            is_off,
            started: Instant::now(),
            refusals: Refusals::default(),
            names: Mutex::new(Names {
                max: names_max,
                ..Names::default()
            }),
        }
    }

    /// Notes that a caller uses a name.
    ///
    /// # Errors
    ///
    /// If the name belongs to another identity, or there are too many names.
    pub(crate) fn claim(&self, name: &str, identity: Option<&Identity>) -> Result<(), RpcStatus> {
        if self.is_off {
            return Ok(());
        }
        let now = self.started.elapsed();
        let claimed = self.names.lock().claim(name, identity, now);
        claimed.inspect_err(|refusal| {
            let by = identity.map_or_else(|| "nobody".to_owned(), Identity::to_string);
            // The caller chooses the name, so it does not tell refusals apart.
            if let Some(refusals) = self.refusals.note(&by, now) {
                let problem = refusal.message();
                warn!(by, problem, refusals, "a name was refused");
            }
        })
    }
}

impl Names {
    fn claim(
        &mut self,
        name: &str,
        identity: Option<&Identity>,
        now: Duration,
    ) -> Result<(), RpcStatus> {
        if OF_DOORS.iter().any(|start| name.starts_with(start)) {
            return Err(RpcStatus::permission_denied(format!(
                "the name {name:?} begins as those of the HTTP and rate limit doors do; use another one"
            )));
        }
        let is_kept = |owner: &Owner| now.saturating_sub(owner.used_at) < KEPT;
        let owner = self.owners.get_mut(name);
        if let Some(owner) = owner.filter(|owner| is_kept(owner)) {
            if Some(&owner.identity) == identity {
                owner.used_at = now;
                return Ok(());
            }
            return Err(RpcStatus::permission_denied(format!(
                "the name {name:?} belongs to another identity, {}; use a name of your own, or a certificate of that \
                 identity; it is free after ten minutes without use",
                owner.identity
            )));
        }
        let Some(identity) = identity else {
            return Ok(());
        };
        let is_due = now.saturating_sub(self.swept_at) >= SWEEP_EVERY;
        if self.owners.len() >= self.sweep_at && is_due {
            self.sweep(now);
        }
        let count = self.counts.entry(identity.clone()).or_default();
        let of_identity = NAMES_OF_IDENTITY_MAX.min(self.max / PART_OF_IDENTITY);
        if *count >= of_identity || self.owners.len() >= self.max {
            let problem = "too many names are in use; use fewer, or try again in ten minutes";
            return Err(RpcStatus::resource_exhausted(problem));
        }
        *count += 1;
        let owner = Owner {
            identity: identity.clone(),
            used_at: now,
        };
        if let Some(former) = self.owners.insert(name.into(), owner)
            && let Some(count) = self.counts.get_mut(&former.identity)
        {
            *count = count.saturating_sub(1);
        }
        Ok(())
    }

    /// Forgets unused names.
    fn sweep(&mut self, now: Duration) {
        self.swept_at = now;
        let is_kept = |owner: &Owner| now.saturating_sub(owner.used_at) < KEPT;
        self.owners.retain(|_, owner| is_kept(owner));
        self.counts.clear();
        #[expect(
            clippy::iter_over_hash_type,
            reason = "counts do not depend on the order"
        )]
        for owner in self.owners.values() {
            *self.counts.entry(owner.identity.clone()).or_default() += 1;
        }
        self.sweep_at = (2 * self.owners.len()).clamp(SWEEP_MIN, NAMES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(name: &str) -> Identity {
        Identity::parse(name).unwrap()
    }

    fn names() -> Names {
        Names {
            max: NAMES_MAX,
            ..Names::default()
        }
    }

    #[test]
    fn a_name_belongs_to_the_identity_that_used_it_first_until_it_is_unused_for_ten_minutes() {
        let (ann, bob) = (identity("dns:ann"), identity("dns:bob"));
        let mut names = names();
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        for (name, who, at, is_allowed) in [
            ("c", None, 0, true),
            ("c", Some(&ann), 0, true),
            ("c", Some(&bob), 1, false),
            ("c", None, 1, false),
            ("c", Some(&ann), 5, true),
            ("c", Some(&bob), 14, false),
            ("d", Some(&bob), 14, true),
            ("c", Some(&bob), 15, true),
            ("c", Some(&ann), 16, false),
            ("http:dns:ann#job", Some(&bob), 16, false),
            ("http:job", None, 16, false),
            ("caller:dns:ann", Some(&ann), 16, false),
        ] {
            let claimed = names.claim(name, who, minutes(at));
            assert_eq!(claimed.is_ok(), is_allowed, "{name} {who:?} {at}");
        }
    }

    #[test]
    fn unused_names_are_forgotten() {
        let ann = identity("dns:ann");
        let mut names = names();
        for round in 0..50 {
            for number in 0..1_000 {
                let name = format!("{round}-{number}");
                names.claim(&name, Some(&ann), KEPT * round).unwrap();
            }
        }
        assert!(
            names.owners.len() <= 3 * SWEEP_MIN,
            "{}",
            names.owners.len()
        );
    }

    #[test]
    fn one_identity_does_not_fill_the_table() {
        let (ann, bob) = (identity("dns:ann"), identity("dns:bob"));
        let mut names = names();
        let mut claim = |name: &str, who| names.claim(name, Some(who), Duration::ZERO);
        for number in 0..NAMES_OF_IDENTITY_MAX {
            claim(&number.to_string(), &ann).unwrap();
        }
        assert!(claim("one more", &ann).is_err());
        claim("7", &ann).unwrap();
        claim("of bob", &bob).unwrap();
        // Little memory has room for few names.
        let names = Bindings::new(false, 1 << 16).clients;
        let claimed =
            (0..100).filter(|number| names.claim(&number.to_string(), Some(&ann)).is_ok());
        assert_eq!(claimed.count(), 4);
        names.claim("of bob", Some(&bob)).unwrap();
    }

    #[test]
    fn no_name_is_bound_while_callers_change_over() {
        let names = Bindings::new(true, 0).clients;
        names.claim("c", Some(&identity("dns:ann"))).unwrap();
        names.claim("c", None).unwrap();
    }
}
