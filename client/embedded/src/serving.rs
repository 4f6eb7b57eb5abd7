//! The thread in which a process serves its group, when it is its turn.

use std::error::Error;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use doorward_server::app::{Server, ServerConfig};
use doorward_server::metrics::Metrics;
use doorward_server::metrics::format::Format;
use doorward_server::status::ServerState;
use doorward_server::stored_place::StoredPlace;
use doorward_server::templates::file::TemplateFile;
use tokio::runtime;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::error::JoinError;

#[cfg(feature = "etcd")]
mod by_etcd;

#[cfg(feature = "etcd")]
pub(crate) use by_etcd::by_etcd;

/// Pause after a server that could not start or has failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Time for which a process that leaves goes on serving. What others give back at the same moment lowers the marks
/// within a second, so that the next process can grant it at once.
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
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: CancellationToken,
    now: Mutex<Now>,
}

/// What the thread does now.
#[derive(Debug, Default)]
struct Now {
    server: Option<(Arc<ServerState>, Arc<Metrics>)>,
    page: Option<SocketAddr>,
    problem: Option<String>,
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.now.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn read<T>(&self, read: impl FnOnce(&Now) -> T) -> T {
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

    /// Whether this process serves the group.
    pub(crate) fn is_serving(&self) -> bool {
        let server = self.shared.read(|now| now.server.clone());
        server.is_some_and(|(state, _)| {
            let node = state.node();
            node.read(|node, now| node.mastership(now).is_master())
        })
    }

    /// Returns why this process does not serve although it is its turn.
    pub(crate) fn problem(&self) -> Option<String> {
        self.shared.read(|now| now.problem.clone())
    }

    /// Returns the address of the page, as long as this process serves it.
    pub(crate) fn page(&self) -> Option<SocketAddr> {
        self.shared.read(|now| now.page)
    }

    /// Returns the metrics of the server in Prometheus' text format, as long as this process runs it.
    pub(crate) fn metrics(&self) -> Option<String> {
        let (_, metrics) = self.shared.read(|now| now.server.clone())?;
        metrics.render(Format::Plain).ok()
    }
}

impl Serving {
    /// Ends the thread, and waits for that if it serves.
    pub(crate) async fn end(mut self) {
        self.shared.stop.cancel();
        let runs = self.shared.read(|now| now.server.is_some());
        let thread = self.thread.take().filter(|_| runs);
        // A thread that waits for its turn ends when that comes.
        if let Some(thread) = thread {
            let _ended = tokio::task::spawn_blocking(|| thread.join()).await;
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

impl Seat {
    /// Waits for the turn of this process.
    fn take(&self) -> io::Result<()> {
        match self {
            Self::Lock(file) => file.lock(),
            #[cfg(feature = "etcd")]
            Self::Election => Ok(()),
        }
    }

    /// Lets another process serve.
    fn leave(&self) -> io::Result<()> {
        match self {
            Self::Lock(file) => file.unlock(),
            #[cfg(feature = "etcd")]
            Self::Election => Ok(()),
        }
    }
}

/// Serves whenever it is the turn of this process, until it is told to stop.
fn take_turns(seat: &Seat, config: &ServerConfig, shared: &Shared) {
    while !shared.stop.is_cancelled() {
        let served = match seat.take() {
            Ok(()) if shared.stop.is_cancelled() => return,
            Ok(()) => serve(config.clone(), shared),
            Err(error) => Err(error.into()),
        };
        shared.change(|now| (now.server, now.page) = (None, None));
        let left = seat.leave();
        if let Err(error) = served.and_then(|()| Ok(left?)) {
            let problem = chain(&*error);
            error!(problem, "this process cannot serve its group");
            shared.change(|now| now.problem = Some(problem));
            thread::park_timeout(PAUSE);
        }
    }
}

/// Returns an error with its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text = format!("{text}: {source}");
        cause = source.source();
    }
    text
}

/// Serves until the end, or a failure.
fn serve(mut config: ServerConfig, shared: &Shared) -> Result<(), Box<dyn Error>> {
    // A candidate says itself when it is elected.
    let is_alone = config.election.is_none();
    let group = config.node_name.clone();
    let mut builder = runtime::Builder::new_multi_thread();
    let runtime = builder
        .worker_threads(1)
        .thread_name(format!("doorward-{group}"));
    let runtime = runtime.enable_all().build()?;
    runtime.block_on(async {
        let file = match &config.templates_place {
            Some(StoredPlace::File(path)) => Some(TemplateFile::open(path).await?),
            _ => None,
        };
        let file = file.map(|(file, templates)| {
            config.templates = templates;
            file
        });
        let mut server = Server::start(config).await?;
        let (state, metrics) = (Arc::clone(server.state()), Arc::clone(server.metrics()));
        if let Some(file) = file {
            let rereads = server.rereads().subscribe();
            server.spawn(file.run(Arc::clone(&state), Arc::clone(&metrics), rereads));
        }
        shared.change(|now| {
            *now = Now {
                server: Some((state, metrics)),
                page: server.http_address(),
                problem: None,
            };
        });
        if is_alone {
            info!(group, "this process serves its group");
        }
        tokio::select! {
            () = shared.stop.cancelled() => {
                sleep(SERVES_ON).await;
                server.shutdown().await;
                Ok(())
            }
            error = server.failed() => Err(error.into()),
        }
    })
}
