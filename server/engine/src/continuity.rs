//! How a new master finds out which leases are in use: reports of holders, and what the parent knows.

pub(crate) mod learned;
pub(crate) mod reported;
