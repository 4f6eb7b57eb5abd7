//! Work on other threads.

use std::panic;

use tokio::task::JoinHandle;

/// Waits for a task. A panic of the task goes on here.
pub async fn joined<T>(task: JoinHandle<T>) -> T {
    match task.await {
        Ok(done) => done,
        Err(failed) => match failed.try_into_panic() {
            Ok(panicked) => panic::resume_unwind(panicked),
            // The process is ending, so no client gets an answer.
            Err(_) => std::future::pending().await,
        },
    }
}
