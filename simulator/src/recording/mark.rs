//! Events from outside during a run: time, kind and nature.
//!
//! A report draws a fault as something wrong, a heal as the end of all faults, and everything else as an intended
//! change.

use serde::{Deserialize, Serialize};

use crate::recording::named;

/// An event from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Time of the event.
    pub at_s: f64,
    /// Time of its end, if it lasted.
    pub until_s: Option<f64>,
    /// Its kind.
    pub kind: MarkKind,
    /// Description for people.
    pub text: String,
}

named! {
    /// Kind of an event.
    MarkKind {
        /// A node loses its master, or all its servers stop.
        Kill = "kill",
        /// A node's master restarts.
        Restart = "restart",
        /// A master does nothing for some time.
        Freeze = "freeze",
        /// Servers reach etcd badly, or not at all.
        Isolate = "isolate",
        /// etcd loses data, or elections take another time.
        Election = "election",
        /// Clients and child servers get wrong addresses of servers.
        Addresses = "addresses",
        /// No message passes between nodes, or to clients.
        Partition = "partition",
        /// A clock runs at another speed, or jumps.
        Clock = "clock",
        /// Clients stop without a word.
        Crash = "crash",
        /// Clients end, and release their leases.
        Leave = "leave",
        /// Clients stop to use a resource, and release it.
        Close = "close",
        /// An operator deletes the key of a master.
        Depose = "depose",
        /// Two processes live under one name.
        Twin = "twin",
        /// A master hands over to another candidate.
        Elect = "elect",
        /// An operator writes other templates.
        Edit = "edit",
        /// Clients want other amounts than their curves say.
        Demand = "demand",
        /// All faults end, and none follows.
        Heal = "heal",
    }
}

impl MarkKind {
    /// Returns the nature of events of this kind: `change` is an intended one.
    pub const fn nature(self) -> &'static str {
        match self {
            Self::Elect | Self::Edit | Self::Demand | Self::Leave | Self::Close => "change",
            Self::Heal => "heal",
            _ => "fault",
        }
    }
}
