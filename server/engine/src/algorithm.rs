//! What a holder should have, and why.

use std::fmt;

/// Why a grant is the number it is. `Display` is a sentence for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// stub
    Stub,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stub")
    }
}
