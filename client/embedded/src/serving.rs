//! The thread in which a process serves its group, when it is its turn.

use std::error::Error;
use std::fs::{File, TryLockError};
use std::future::pending;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use doorward_server::app::{Server, ServerConfig, ServerError};
use doorward_server::metrics::Metrics;
use doorward_server::status::ServerState;
use doorward_server::stored_place::StoredPlace;
use doorward_server::templates::file::TemplateFile;
use tokio::runtime;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::error::{JoinError, chain};

#[cfg(feature = "etcd")]
mod by_etcd;

#[cfg(feature = "etcd")]
pub(crate) use by_etcd::by_etcd;

/// Interval between two looks whether the lock is free.
const LOOK: Duration = Duration::from_millis(50);

/// Pause after a server that could not start or has failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Time for which a process that leaves goes on serving. Leases that others give back at the same moment lower the marks
/// within a second, so that the next process can grant them at once.
const SERVES_ON: Duration = Duration::from_millis(1_200);

/// How a process comes to serve.
#[derive(Debug)]
pub(crate) enum Seat {
    /// By the lock of a file.
    Lock(File),
    /// By an election in etcd, in which its server takes part.
    #[cfg(feature = "etcd")]
    Election,
}

/// The thread. It is told to end when this is dropped.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
pub(crate) struct Shared {
    stop: CancellationToken,
    now: Mutex<Now>,
}

/// State of the thread.
#[derive(Debug, Default)]
pub(crate) struct Now {
    /// The server that this process runs.
    pub(crate) server: Option<(Arc<ServerState>, Arc<Metrics>)>,
    /// Address of the page that this process serves.
    pub(crate) page: Option<SocketAddr>,
    problem: Option<String>,
}

impl Shared {
    /// Notes and logs a problem, if it is another one than before.
    fn note(&self, problem: Option<String>) {
        self.change(|now| {
            if let Some(problem) = problem.as_ref().filter(|_| now.problem != problem) {
                error!(problem, "this process cannot serve its group as it should");
            }
            now.problem = problem;
        });
    }

    /// Whether this process serves now.
    pub(crate) fn is_master(&self) -> bool {
        let server = self.read(|now| now.server.clone());
        server.is_some_and(|(state, _)| {
            let node = state.node();
            node.read(|node, now| node.mastership(now).is_master())
        })
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.now.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Now) -> T) -> T {
        read(&self.now.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Serving {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// If the system refuses a thread.
    pub(crate) fn start(seat: Seat, config: ServerConfig) -> Result<Self, JoinError> {
        let shared = Arc::new(Shared::default());
        let name = format!("doorward-{}", config.node_name);
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name(name)
            .spawn(move || take_turns(&seat, &config, &of_thread))
            .map_err(JoinError::Thread)?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Returns why this process does not serve, or not as it should, although it is its turn.
    pub(crate) fn problem(&self) -> Option<String> {
        self.shared.read(|now| now.problem.clone())
    }

    /// Ends the thread, and waits for that.
    pub(crate) async fn end(mut self) {
        self.shared.stop.cancel();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ended = tokio::task::spawn_blocking(|| thread.join()).await;
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.shared.stop.cancel();
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

/// Serves whenever it is the turn of this process, until it is told to stop.
fn take_turns(seat: &Seat, config: &ServerConfig, shared: &Shared) {
    while !shared.stop.is_cancelled() {
        let served = match seat {
            Seat::Lock(file) => match file.try_lock() {
                Ok(()) => serve(config, shared).and_then(|()| Ok(file.unlock()?)),
                // Another process serves.
                Err(TryLockError::WouldBlock) => {
                    thread::park_timeout(LOOK);
                    continue;
                }
                Err(TryLockError::Error(error)) => Err(error.into()),
            },
            #[cfg(feature = "etcd")]
            Seat::Election => serve(config, shared),
        };
        shared.change(|now| (now.server, now.page) = (None, None));
        if let Err(error) = served {
            shared.note(Some(chain(&*error)));
            // Another process may be able to serve.
            match seat {
                Seat::Lock(file) => drop(file.unlock()),
                #[cfg(feature = "etcd")]
                Seat::Election => {}
            }
            thread::park_timeout(PAUSE);
        }
    }
}

/// Serves until the end, or a failure.
fn serve(config: &ServerConfig, shared: &Shared) -> Result<(), Box<dyn Error>> {
    let group = &config.node_name;
    let mut builder = runtime::Builder::new_multi_thread();
    let runtime = builder
        .worker_threads(1)
        .thread_name(format!("doorward-{group}"));
    let runtime = runtime.enable_all().build()?;
    runtime.block_on(async {
        let (mut server, problem, file) = start(config).await?;
        shared.note(problem);
        let running = (Arc::clone(server.state()), Arc::clone(server.metrics()));
        shared.change(|now| (now.server, now.page) = (Some(running), server.http_address()));
        // A candidate says itself when it is elected.
        if config.election.is_none() {
            info!(group, at = %config.listen, "this process serves its group");
        }
        tokio::select! {
            () = shared.stop.cancelled() => {
                if shared.is_master() {
                    sleep(SERVES_ON).await;
                }
                server.shutdown().await;
                Ok(())
            }
            error = server.failed() => Err(error.into()),
            // The next server follows it again.
            () = until_valid(file.as_deref()) => {
                server.shutdown().await;
                Ok(())
            }
        }
    })
}

/// Starts the server. It starts without its page, or with the templates that were valid when the process joined, if the
/// port or the file cannot be used now. Returns also that problem, and the file.
async fn start(
    config: &ServerConfig,
) -> Result<(Server, Option<String>, Option<PathBuf>), ServerError> {
    let problem = match Server::start(config.clone()).await {
        Ok(server) => return Ok((server, None, None)),
        Err(error) => error,
    };
    let file = match &config.templates_place {
        Some(StoredPlace::File(path)) => Some(path),
        _ => None,
    };
    for (has_page, has_file) in [(false, true), (true, false), (false, false)] {
        if !has_file && file.is_none() {
            break;
        }
        let mut config = config.clone();
        config.http_listen.take_if(|_| !has_page);
        config.templates_place.take_if(|_| !has_file);
        if let Ok(server) = Server::start(config).await {
            let file = file.filter(|_| !has_file).cloned();
            return Ok((server, Some(chain(&problem)), file));
        }
    }
    Err(problem)
}

/// Waits until a file of templates is valid again. Without one, for ever.
async fn until_valid(file: Option<&Path>) {
    let Some(file) = file else {
        return pending().await;
    };
    while TemplateFile::open(file, PAUSE, true).await.is_err() {
        sleep(PAUSE).await;
    }
}
