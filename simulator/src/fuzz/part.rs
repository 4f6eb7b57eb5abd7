//! What worlds are made of besides a tree, clients and a network, and how strongly each is drawn.

use crate::chance::Chance;

/// What can go wrong, or is unusual, in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Masters die, restart, freeze, hand over, lose their keys; often several in a row.
    Masters,
    /// Nodes are cut off from others.
    Cuts,
    /// etcd is wiped, restored, and reached badly.
    Etcd,
    /// Clocks differ by as much as they may, and jump.
    Clocks,
    /// The operator writes other templates.
    Edits,
    /// Clients leave, close resources, crash, and want something else.
    Departures,
    /// Clients use the library's limiters, and measure what they want.
    Limiters,
    /// Clients use several resources, of which some promise no total, or another one.
    Resources,
    /// Servers are looked for where they are not.
    Addresses,
    /// Two processes run under one name.
    Twins,
}

impl Part {
    /// All of them.
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

    /// As the command line names it.
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

/// How strongly a part is drawn.
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

    /// How many there are: none, up to a few, or up to many.
    pub(super) const fn many(self, chance: &mut Chance, few: usize, many: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Little => 1 + chance.below(few),
            Self::Much => few + 1 + chance.below(many - few),
        }
    }
}
