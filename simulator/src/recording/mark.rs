//! What happened from outside while a run was played: when, what, and of what nature.
//!
//! A report draws a fault as something that is wrong, a heal as the end of all that, and everything else as a
//! change that somebody wants.

use serde::{Deserialize, Serialize};

/// Something that happened from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// When.
    pub at_s: f64,
    /// Until when, if it lasted.
    pub until_s: Option<f64>,
    /// What.
    pub kind: MarkKind,
    /// For people.
    pub text: String,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkKind {
    /// A node loses its master, or all its servers stop.
    Kill,
    /// A node's master starts anew.
    Restart,
    /// A master does nothing for some time.
    Freeze,
    /// Servers reach etcd badly, or not at all.
    Isolate,
    /// etcd loses what was written, or elections take another time.
    Election,
    /// Servers are looked for where they are not.
    Addresses,
    /// Nothing gets through between nodes, or to clients.
    Partition,
    /// A clock runs at another speed, or jumps.
    Clock,
    /// Clients stop without a word.
    Crash,
    /// Clients end, and release what they have.
    Leave,
    /// Clients stop to use a resource, and release it.
    Close,
    /// Somebody deletes the key of a master.
    Depose,
    /// Two processes live under one name.
    Twin,
    /// A master hands over to another one.
    Elect,
    /// Other templates are written.
    Edit,
    /// Clients want something else, whatever their curve says.
    Demand,
    /// From now on nothing goes wrong.
    Heal,
}

/// Of what nature something is that happens from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// Something goes wrong.
    Fault,
    /// What was wrong is over.
    Heal,
    /// A master is changed on purpose.
    HandOver,
    /// The operator writes other templates.
    Templates,
    /// Demand shifts.
    Demand,
}

impl MarkKind {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Kill,
        Self::Restart,
        Self::Freeze,
        Self::Isolate,
        Self::Election,
        Self::Addresses,
        Self::Partition,
        Self::Clock,
        Self::Crash,
        Self::Leave,
        Self::Close,
        Self::Depose,
        Self::Twin,
        Self::Elect,
        Self::Edit,
        Self::Demand,
        Self::Heal,
    ];

    /// As recordings and reports name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Restart => "restart",
            Self::Freeze => "freeze",
            Self::Isolate => "isolate",
            Self::Election => "election",
            Self::Addresses => "addresses",
            Self::Partition => "partition",
            Self::Clock => "clock",
            Self::Crash => "crash",
            Self::Leave => "leave",
            Self::Close => "close",
            Self::Depose => "depose",
            Self::Twin => "twin",
            Self::Elect => "elect",
            Self::Edit => "edit",
            Self::Demand => "demand",
            Self::Heal => "heal",
        }
    }

    /// Of what nature it is.
    pub const fn nature(self) -> Nature {
        match self {
            Self::Kill
            | Self::Restart
            | Self::Freeze
            | Self::Isolate
            | Self::Election
            | Self::Addresses
            | Self::Partition
            | Self::Clock
            | Self::Crash
            | Self::Depose
            | Self::Twin => Nature::Fault,
            Self::Elect => Nature::HandOver,
            Self::Edit => Nature::Templates,
            Self::Demand | Self::Leave | Self::Close => Nature::Demand,
            Self::Heal => Nature::Heal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_written_by_its_name() {
        for kind in MarkKind::ALL {
            let text = serde_json::to_string(&kind).unwrap();
            assert_eq!(text, format!("\"{}\"", kind.as_str()));
            assert_eq!(serde_json::from_str::<MarkKind>(&text).unwrap(), kind);
        }
    }

    #[test]
    fn a_heal_is_no_fault_and_neither_is_what_somebody_wants() {
        let faults = MarkKind::ALL.map(MarkKind::nature);
        let faults = faults.iter().filter(|it| **it == Nature::Fault);
        assert_eq!(faults.count(), MarkKind::ALL.len() - 6);
        assert_eq!(MarkKind::Heal.nature(), Nature::Heal);
        assert_eq!(MarkKind::Kill.nature(), Nature::Fault);
    }
}
