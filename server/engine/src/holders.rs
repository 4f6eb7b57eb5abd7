//! Holders of a resource and their leases.

mod ask;
mod lease;
mod past;
mod streaming;
mod table;

pub(crate) use ask::*;
pub(crate) use lease::*;
pub(crate) use past::*;
pub(crate) use streaming::{Position, Streaming};
pub(crate) use table::*;
