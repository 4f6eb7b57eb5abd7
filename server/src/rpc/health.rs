//! The readiness of the server ([`crate::status::readiness`]), as gRPC's health service reports it.

use std::sync::Arc;
use std::time::Duration;

use doorward_door::health::Health;

use crate::status::ServerState;

/// Names whose health is reported: the server as a whole, and each of its services.
pub const SERVICES: [&str; 5] = [
    "",
    "doorman.Capacity",
    "doorward.v1.CapacityStream",
    "doorward.admin.v1.Admin",
    "doorward.admin.v1.Rules",
];

/// Longest time until a change of another fact shows, such as the first answer of the parent.
const LOOK: Duration = Duration::from_millis(250);

/// Reports each change of readiness to the health service. Runs until the server stops: spawn it.
pub async fn report_readiness(state: Arc<ServerState>, health: Health) {
    let clock = state.node().clock();
    let mut masterships = state.node().masterships();
    // A stopping server has already reported that, and ended the watches.
    while !*state.is_stopping.borrow() {
        masterships.mark_unchanged();
        let (readiness, ends_at) = state.judge_readiness();
        health.set(readiness.is_ok()).await;
        let look = clock.now() + LOOK;
        let over = clock.sleep_until(ends_at.map_or(look, |end| end.min(look)));
        tokio::select! {
            Ok(()) = masterships.changed() => {}
            () = over => {}
            else => return,
        }
    }
}
