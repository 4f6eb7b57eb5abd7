//! Holders of a resource and their leases.

mod lease;
mod past;
mod table;

pub(crate) use lease::*;
pub(crate) use past::*;
pub(crate) use table::*;
