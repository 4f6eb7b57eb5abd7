//! Names of clients and child servers, bound to the identity that used them first.
//!
//! A name without an identity is bound to none. A binding ends when its identity has not used the name for an hour,
//! which is longer than leases last. It is the memory of one process: after a failover, the first use counts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use doorward_clock::Instant;
use doorward_tls::identity::Identity;
use tonic::Status as RpcStatus;

/// Time without use after which a name is free.
const KEPT: Duration = Duration::from_secs(3_600);

/// Largest number of names.
const NAMES_MAX: usize = 1_000_000;

/// Number of names from which unused ones are looked for.
const SWEEP_MIN: usize = 1_024;

/// Names with their identities. A client and a child server may have the same name.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    pub(crate) clients: NameTable,
    pub(crate) servers: NameTable,
}

/// Names of one kind.
#[derive(Debug)]
pub(crate) struct NameTable {
    started: Instant,
    names: Mutex<Names>,
}

#[derive(Debug)]
struct Names {
    owners: HashMap<Box<str>, Owner>,
    /// Number of names at which unused ones are removed: twice as many as the last time.
    sweep_at: usize,
}

#[derive(Debug)]
struct Owner {
    identity: Identity,
    used_at: Duration,
}

impl Default for NameTable {
    fn default() -> Self {
        let (owners, sweep_at) = (HashMap::new(), SWEEP_MIN);
        Self {
            started: Instant::now(),
            names: Mutex::new(Names { owners, sweep_at }),
        }
    }
}

impl NameTable {
    /// Notes that a caller uses a name.
    ///
    /// # Errors
    ///
    /// If the name belongs to another identity, or there are too many names.
    pub(crate) fn claim(&self, name: &str, identity: Option<&Identity>) -> Result<(), RpcStatus> {
        let now = self.started.elapsed();
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.claim(name, identity, now)
    }
}

impl Names {
    fn claim(
        &mut self,
        name: &str,
        identity: Option<&Identity>,
        now: Duration,
    ) -> Result<(), RpcStatus> {
        let is_kept = |owner: &Owner| now.saturating_sub(owner.used_at) < KEPT;
        let owner = self.owners.get_mut(name);
        if let Some(owner) = owner.filter(|owner| is_kept(owner)) {
            if Some(&owner.identity) == identity {
                owner.used_at = now;
                return Ok(());
            }
            return Err(RpcStatus::permission_denied(format!(
                "the name {name:?} belongs to another identity; use a name of your own"
            )));
        }
        let Some(identity) = identity else {
            return Ok(());
        };
        if self.owners.len() >= self.sweep_at {
            self.owners.retain(|_, owner| is_kept(owner));
            self.sweep_at = (2 * self.owners.len()).clamp(SWEEP_MIN, NAMES_MAX);
        }
        if self.owners.len() >= NAMES_MAX {
            return Err(RpcStatus::resource_exhausted(
                "too many names are in use; reuse a name, or try again in an hour",
            ));
        }
        let owner = Owner {
            identity: identity.clone(),
            used_at: now,
        };
        self.owners.insert(name.into(), owner);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(name: &str) -> Identity {
        Identity::parse(name).unwrap()
    }

    #[test]
    fn a_name_belongs_to_the_identity_that_used_it_first_until_it_is_unused_for_an_hour() {
        let (ann, bob) = (identity("dns:ann"), identity("dns:bob"));
        let mut names = NameTable::default().names.into_inner().unwrap();
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        for (name, who, at, is_allowed) in [
            ("c", None, 0, true),
            ("c", Some(&ann), 0, true),
            ("c", Some(&bob), 1, false),
            ("c", None, 1, false),
            ("c", Some(&ann), 50, true),
            ("c", Some(&bob), 109, false),
            ("d", Some(&bob), 109, true),
            ("c", Some(&bob), 110, true),
            ("c", Some(&ann), 111, false),
        ] {
            let claimed = names.claim(name, who, minutes(at));
            assert_eq!(claimed.is_ok(), is_allowed, "{name} {who:?} {at}");
        }
    }

    #[test]
    fn unused_names_are_forgotten() {
        let ann = identity("dns:ann");
        let mut names = NameTable::default().names.into_inner().unwrap();
        for hour in 0..50 {
            for number in 0..1_000 {
                let name = format!("{hour}-{number}");
                names.claim(&name, Some(&ann), KEPT * hour).unwrap();
            }
        }
        assert!(
            names.owners.len() <= 3 * SWEEP_MIN,
            "{}",
            names.owners.len()
        );
    }
}
