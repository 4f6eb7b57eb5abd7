//! Makes pages, metrics and statuses on a thread of its own.
//!
//! A worker that serves calls must not do it. The status of a hundred thousand resources takes many milliseconds to
//! make and to write, and a server with one core has one such worker. The door bounds the number of readers at a time
//! (`InFlightCall::look`).

use std::sync::Arc;

use doorward_door::tasks::joined;
use tokio::task;

use crate::status::ServerState;

impl ServerState {
    /// Reads the state, and makes an answer from it. The work continues to its end even if the caller gives up.
    pub async fn look<T>(self: &Arc<Self>, look: impl FnOnce(&Self) -> T + Send + 'static) -> T
    where
        T: Send + 'static,
    {
        let state = Arc::clone(self);
        joined(task::spawn_blocking(move || look(&state))).await
    }
}
