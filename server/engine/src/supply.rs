//! What there is to share of a resource, and until when.

use crate::amount::Amount;
use crate::time::Time;

/// The capacity a server may hand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    /// So much in total.
    pub capacity: Amount,
    /// When the server's own lease on it ends; no lease it gives lasts longer. Absent at the root,
    /// whose capacity is its own.
    pub expires_at: Option<Time>,
}

impl Supply {
    /// Nothing to share.
    pub const NONE: Self = Self {
        capacity: Amount::ZERO,
        expires_at: None,
    };

    /// The root's: what the template says.
    pub const fn of_root(capacity: Amount) -> Self {
        Self {
            capacity,
            expires_at: None,
        }
    }
}
