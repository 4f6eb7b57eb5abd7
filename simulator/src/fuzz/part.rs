//! Parts of a random world besides its tree, clients and network; and the strength of each.

use crate::chance::Chance;

/// Kind of fault or special case in a random world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Masters die, restart, freeze, hand over or lose their keys; often several in a row.
    Masters,
    /// Nodes are cut off from others.
    Cuts,
    /// Etcd is wiped, restored, or badly reachable.
    Etcd,
    /// Clocks differ as much as allowed, and jump.
    Clocks,
    /// The operator edits the templates.
    Edits,
    /// Clients leave, close resources, crash, and change their demand.
    Departures,
    /// Clients use the library's limiters and measure their demand.
    Limiters,
    /// Clients use several resources, some with another promise on the total or none.
    Resources,
    /// Servers' addresses are wrong.
    Addresses,
    /// Two processes run under one name.
    Twins,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 10] = [
        Self::Masters,
        Self::Cuts,
        Self::Etcd,
        Self::Clocks,
        Self::Edits,
        Self::Departures,
        Self::Limiters,
        Self::Resources,
        Self::Addresses,
        Self::Twins,
    ];

    /// Returns the name, as the command line uses it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Masters => "masters",
            Self::Cuts => "cuts",
            Self::Etcd => "etcd",
            Self::Clocks => "clocks",
            Self::Edits => "edits",
            Self::Departures => "departures",
            Self::Limiters => "limiters",
            Self::Resources => "resources",
            Self::Addresses => "addresses",
            Self::Twins => "twins",
        }
    }
}

/// Strength of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    None,
    Little,
    Much,
}

impl Strength {
    pub(super) const fn draw(chance: &mut Chance) -> Self {
        match chance.below(10) {
            0..=4 => Self::None,
            5..=7 => Self::Little,
            _ => Self::Much,
        }
    }

    pub(super) const fn is_some(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Draws a number: none, up to `few`, or up to `many`.
    pub(super) const fn many(self, chance: &mut Chance, few: usize, many: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Little => 1 + chance.below(few),
            Self::Much => few + 1 + chance.below(many - few),
        }
    }
}
