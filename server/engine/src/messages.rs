//! Requests of clients and child servers, their answers, and what a node reports of itself: parsed, without any wire
//! format.

mod event;
mod request;
mod snapshot;

pub use event::*;
pub use request::*;
pub use snapshot::*;
