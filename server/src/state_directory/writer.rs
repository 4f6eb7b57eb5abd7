//! Writes marks to the state directory.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::node::marks::MarkWrites;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::{error, info};

use crate::state_directory::StateDirectory;
use crate::status::ServerState;

/// Time before a failed write is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Writes each batch, and tells the node when it is on the disk. While that fails, the node grants nothing above its
/// marks.
pub(crate) async fn write_marks(
    mut directory: StateDirectory,
    mut batches: UnboundedReceiver<(u64, MarkWrites)>,
    state: Arc<ServerState>,
) {
    while let Some((number, batch)) = batches.recv().await {
        let batch = Arc::new(batch);
        let (mut is_retry, mut told) = (false, String::new());
        loop {
            let batch = Arc::clone(&batch);
            let attempt = spawn_blocking(move || {
                let opened = match is_retry {
                    true => directory.reopen(),
                    false => Ok(()),
                };
                let written = opened.and_then(|()| directory.write(&batch));
                (directory, written)
            });
            // It panics only by a bug, and then the file cannot be trusted.
            let Ok((returned, written)) = attempt.await else {
                error!("the writer of the state directory has stopped; restart the server");
                let problem = "its writer has stopped".to_owned();
                state.state_directory.send_replace(Some(Some(problem)));
                return;
            };
            directory = returned;
            let Err(problem) = written else {
                break;
            };
            let problem = problem.to_string();
            if told != problem {
                let path = directory.path().display();
                error!(%path, problem, "the state directory cannot be written; leases do not grow");
            }
            told.clone_from(&problem);
            state.state_directory.send_replace(Some(Some(problem)));
            is_retry = true;
            sleep(RETRY).await;
        }
        if is_retry {
            info!("the state directory is written again");
            state.state_directory.send_replace(Some(None));
        }
        let node = state.node();
        node.input(|replica, now| replica.handle_marks_written(number, now));
    }
}
