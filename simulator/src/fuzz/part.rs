//! Parts of a random world besides its tree, clients and network; and the strength of each.

use crate::chance::Chance;
use crate::recording::named;

named! {
    /// Kind of fault or special case in a random world.
    Part {
        /// Masters die, restart, freeze, hand over or lose their keys; often several in a row.
        Masters = "masters",
        /// Nodes are cut off from others.
        Cuts = "cuts",
        /// Etcd is wiped, restored, or badly reachable.
        Etcd = "etcd",
        /// Clocks differ as much as allowed, and jump.
        Clocks = "clocks",
        /// The operator edits the templates.
        Edits = "edits",
        /// Clients leave, close resources, crash, and change their demand.
        Departures = "departures",
        /// Clients use the library's limiters and measure their demand.
        Limiters = "limiters",
        /// Clients use several resources, some with another promise on the total or none.
        Resources = "resources",
        /// Servers' addresses are wrong.
        Addresses = "addresses",
        /// Two processes run under one name.
        Twins = "twins",
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
