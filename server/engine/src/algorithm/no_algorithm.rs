//! NO_ALGORITHM: everyone gets what it wants. For watching a resource before limiting it.

use crate::algorithm::Rule;

/// What it wants.
pub const fn solve() -> Rule {
    Rule::NoAlgorithm
}
