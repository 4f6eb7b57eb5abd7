//! The rank of a caller among those that share a lease of a rule: its priority, and its weight.

use crate::rules::star::star_matches;

/// Largest weight: a caller counts as at most so many others.
pub const WEIGHT_MAX: u32 = 100;

/// Largest number of callers with a rank of their own.
pub const CALLERS_MAX: usize = 1_000;

/// A rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Higher is served first, if the algorithm of the resource uses priorities.
    pub priority: i64,
    /// Number of callers that it counts as. At least 1.
    pub weight: u32,
}

/// The ranks of a rule's callers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    /// Rank of a caller that is not listed.
    pub usual: Rank,
    /// Names, which may have stars, with their ranks. The first one that matches counts.
    pub listed: Vec<(String, Rank)>,
}

impl Default for Rank {
    fn default() -> Self {
        Self {
            priority: 0,
            weight: 1,
        }
    }
}

impl Ranks {
    /// Returns the rank of a caller.
    pub fn of(&self, caller: &str) -> Rank {
        let matches = |(name, _): &&(String, _)| star_matches(name.as_bytes(), caller.as_bytes());
        let listed = self.listed.iter().find(matches);
        listed.map_or(self.usual, |(_, rank)| *rank)
    }
}
