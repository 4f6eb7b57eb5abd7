//! Where whoever looks at the server does so: on a thread of its own.
//!
//! A worker that serves calls must not do it: whatever is said of a hundred thousand resources takes many milliseconds
//! to be put together and written, and on a server with one core there is one such worker. How many look at once
//! is bounded at the door (`InProgress::look`).

use std::panic;
use std::sync::Arc;

use tokio::task;

use crate::status::Board;

impl Board {
    /// Looks at what is known, and makes of it what is to be sent. What has begun is finished, whether or not
    /// somebody still waits for it.
    pub async fn look<T>(self: &Arc<Self>, look: impl FnOnce(&Self) -> T + Send + 'static) -> T
    where
        T: Send + 'static,
    {
        let board = Arc::clone(self);
        match task::spawn_blocking(move || look(&board)).await {
            Ok(seen) => seen,
            Err(failed) => match failed.try_into_panic() {
                Ok(panicked) => panic::resume_unwind(panicked),
                // The process ends, and nobody will hear of it.
                Err(_) => std::future::pending().await,
            },
        }
    }
}
