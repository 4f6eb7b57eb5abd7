//! A lease, as its holder has it.

use crate::time::Time;

/// A valid lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lease {
    /// How much may be used; finite, not negative.
    pub capacity: f64,
    /// Until when, counted from when the request was sent.
    pub expires_at: Time,
    /// Which mastership granted it, if the server said so.
    pub granted_by: Option<u64>,
}
