//! A lease in the state of its holder.

use crate::time::Time;

/// A valid lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lease {
    /// Amount that may be used; finite, not negative.
    pub capacity: f64,
    /// End of the lease, counted from when the request was sent.
    pub expires_at: Time,
    /// Mastership that granted it, if the server sent it.
    pub granted_by: Option<u64>,
}
