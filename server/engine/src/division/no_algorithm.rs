//! NO_ALGORITHM: every holder gets all it wants. An operator watches a resource with it before
//! limiting the resource.

use crate::division::Rule;

/// Returns the rule that grants all wants.
pub const fn solve() -> Rule {
    Rule::NoAlgorithm
}
