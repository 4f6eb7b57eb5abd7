//! Chance: the only file of the server that draws entropy. And its clocks.
//!
//! The engine counts time from the start of the process, on [the clock that leases count on](doorward_clock). A wall
//! clock may jump, and a monotonic clock may run fast while NTP corrects it; neither may end leases. The wall clock is
//! read for three things only: the absolute expiry that old peers understand, the start of sequences, and timestamps
//! for people.

pub use doorward_clock::{Clock, tolerance, wall};
pub use doorward_edge::clock::incarnation;

/// Returns a fresh seed for one node.
pub fn seed() -> u64 {
    rand::random()
}
