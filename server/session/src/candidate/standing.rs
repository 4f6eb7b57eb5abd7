//! The master as a candidate knows it: the form between etcd's view and the engine's term.

use doorward_time::term::Term;
use smol_str::SmolStr;

use super::records::Registration;
use super::store::View;

/// Master of the node, as far as a server knows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Standing {
    /// This server, for a time.
    Master(Term),
    /// Another server.
    Elsewhere {
        /// Its address.
        address: SmolStr,
        /// Its epoch.
        epoch: u64,
        /// The address of its pages. None: not stated.
        pages: Option<SmolStr>,
    },
    /// No master, or an unknown one.
    #[default]
    Unknown,
}

impl Standing {
    /// Returns the mastership of this server, if it won one.
    pub const fn term(&self) -> Option<&Term> {
        match self {
            Self::Master(term) => Some(term),
            Self::Elsewhere { .. } | Self::Unknown => None,
        }
    }
}

/// Returns the standing of a candidate that is not the master, and whose highest known epoch is this.
pub fn standing_of_other(view: &View, own_address: &str, highest_epoch: u64) -> Standing {
    let pages = |registration: &Registration| registration.pages.clone();
    match view.master() {
        // A higher epoch was seen, so clients refuse this one. etcd was restored from a backup: this is a former
        // master, or a new one that does not know yet that its epoch must be higher.
        Some((_, epoch)) if epoch < highest_epoch => Standing::Unknown,
        // The own address belongs to a former process of this server.
        Some((master, epoch)) if master.address != own_address => Standing::Elsewhere {
            address: master.address.clone(),
            epoch,
            pages: view.registration_of(&master.address).and_then(pages),
        },
        _ => Standing::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::{EtcdEntry, EtcdKey, Master, Registration, Role, TreePlace, Value};
    use super::*;
    use crate::time::Time;

    fn entry(value: Value) -> EtcdEntry {
        EtcdEntry {
            value,
            created: 9,
            modified: 9,
            lease: None,
            seen_at: Time::ZERO,
        }
    }

    /// A node whose master is at that address, and registers the address of its pages.
    fn view(address: Option<&str>) -> View {
        let mut view = View::default();
        if let Some(address) = address {
            let master = Value::Master(Master {
                address: address.into(),
                server: "x".into(),
                epoch_offset: 0,
            });
            let registration = Value::Server(Registration {
                node: "n".into(),
                address: address.into(),
                pages: Some("pages:2".into()),
                server: "x".into(),
                place: TreePlace {
                    role: Role::Root,
                    level: None,
                },
                highest_epoch: None,
                version: "1".into(),
            });
            view.entries.insert(EtcdKey::Master, entry(master));
            let key = EtcdKey::Server(address.into());
            view.entries.insert(key, entry(registration));
        }
        view
    }

    #[test]
    fn a_candidate_redirects_to_the_master_and_never_to_itself() {
        let elsewhere = Standing::Elsewhere {
            address: "there:1".into(),
            epoch: 9,
            pages: Some("pages:2".into()),
        };
        for (what, master, highest, expected) in [
            ("no master", None, 9, Standing::Unknown),
            ("a former process", Some("here:1"), 9, Standing::Unknown),
            ("an older epoch", Some("there:1"), 10, Standing::Unknown),
            ("another master", Some("there:1"), 9, elsewhere),
        ] {
            let found = standing_of_other(&view(master), "here:1", highest);
            assert_eq!(found, expected, "{what}");
        }
    }
}
