//! Metrics of the node's lock, which every request waits for.

use std::fmt;

use crate::metrics::families::Families;
use crate::status::ServerState;

pub(super) fn write(state: &ServerState, families: &mut Families<'_>) -> fmt::Result {
    let times = state.node().lock_times();
    let help = "How long the lock of the node was held, each time";
    families.histogram("node_lock_held_seconds", help, &times.held.seen())?;
    let help = "How long the lock of the node was waited for, each time";
    families.histogram("node_lock_wait_seconds", help, &times.waited.seen())
}
