//! How a candidate stands: the one shape between etcd's view and the engine's term.

use std::time::Duration;

use smol_str::SmolStr;

use super::store::View;
use crate::time::Time;

/// Who is the master of the node, as far as a server knows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Standing {
    /// This server, for ever and without an epoch: its node has no election. No candidate stands so.
    Alone,
    /// This server, for a time.
    Master(Term),
    /// Another one.
    Elsewhere {
        /// Where it is.
        address: SmolStr,
        /// Its epoch.
        epoch: u64,
        /// Where its pages are. None: it does not say.
        pages: Option<SmolStr>,
    },
    /// None, or none is known.
    #[default]
    Unknown,
}

/// A mastership that was won, as the engine is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Grows with every change of mastership.
    pub epoch: u64,
    /// No master before has decided anything since then.
    pub vacant_since: Time,
    /// The longest lease that may have been out then, by templates other than those in force.
    pub longer_leases: Duration,
    /// Until when it holds, unless it is told again.
    pub valid_until: Time,
}

impl Standing {
    /// Whether this server is the master.
    pub const fn is_master(&self) -> bool {
        matches!(self, Self::Alone | Self::Master(_))
    }

    /// The mastership of this server, if it has one that was won.
    pub const fn term(&self) -> Option<&Term> {
        match self {
            Self::Master(term) => Some(term),
            Self::Alone | Self::Elsewhere { .. } | Self::Unknown => None,
        }
    }
}

/// The mastership as a candidate sees it that is not the master, and has seen that epoch.
pub fn seen_by_follower(view: &View, own_address: &str, highest_epoch: u64) -> Standing {
    match view.master() {
        // Who has seen a higher one would not believe it: etcd was restored from a backup, and shows somebody
        // who was the master once, or does not know yet that its epoch must be higher.
        Some((_, epoch)) if epoch < highest_epoch => Standing::Unknown,
        // Under our own address there is nobody but us: a process before this one.
        Some((master, epoch)) if master.address != own_address => Standing::Elsewhere {
            address: master.address.clone(),
            epoch,
            pages: view
                .registration_of(&master.address)
                .and_then(|registration| registration.pages.clone()),
        },
        _ => Standing::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::{Entry, Key, Master, Registration, Value};
    use super::*;

    fn entry(value: Value) -> Entry {
        Entry {
            value,
            created: 9,
            modified: 9,
            lease: None,
            seen_at: Time::ZERO,
        }
    }

    /// A node whose master is there, and says where its pages are.
    fn view(address: Option<&str>) -> View {
        let mut view = View::default();
        if let Some(address) = address {
            let master = Value::Master(Master {
                address: address.into(),
                server: "x".into(),
                epoch_offset: 0,
            });
            let registration = Value::Server(Registration {
                address: address.into(),
                server: "x".into(),
                highest_epoch: None,
                pages: Some("pages:2".into()),
                place: SmolStr::default(),
                rest: SmolStr::default(),
            });
            view.entries.insert(Key::Master, entry(master));
            let key = Key::Server(address.into());
            view.entries.insert(key, entry(registration));
        }
        view
    }

    #[test]
    fn a_follower_sends_to_the_master_and_never_to_itself() {
        let elsewhere = Standing::Elsewhere {
            address: "there:1".into(),
            epoch: 9,
            pages: Some("pages:2".into()),
        };
        for (what, master, highest, expected) in [
            ("there is none", None, 9, Standing::Unknown),
            ("a process before", Some("here:1"), 9, Standing::Unknown),
            ("an epoch of before", Some("there:1"), 10, Standing::Unknown),
            ("another one", Some("there:1"), 9, elsewhere),
        ] {
            let found = seen_by_follower(&view(master), "here:1", highest);
            assert_eq!(found, expected, "{what}");
        }
    }
}
