//! Rules from a file, a directory or a Doorward server, kept up to date.
//!
//! A retriever loads all documents at its start, or returns an error that says what to mend. Later it brings each valid
//! set into force as a whole. If documents become invalid or unreachable, the last good ones stay, and
//! [`Retriever::status`] tells the problem. Dropping the retriever ends it.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use doorward_limits::StdClock;
//! # use doorward_retriever::Retriever;
//! # use doorward_rules::{Limiter, Rules};
//! # async fn example() -> Result<(), doorward_retriever::RetrieverError> {
//! let limiter = Arc::new(Limiter::new(Rules::default(), 100_000, [1, 2]));
//! let servers = ["rules-0:6970", "rules-1:6970"];
//! let mut retriever = Retriever::server(servers, "login-7").domains(["login"]).start().await?;
//! retriever.drive(Arc::clone(&limiter), StdClock::new());
//! # Ok(())
//! # }
//! ```

mod current;
pub mod files;
mod server;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use doorward_limits::Clock;
use doorward_rules::{Limiter, Problem, Rules};
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use crate::current::Status;
use crate::current::{Current, Known};
use crate::files::Content;
use crate::server::Follower;

/// Rules that are kept up to date until this is dropped.
#[derive(Debug)]
pub struct Retriever {
    rules: watch::Receiver<Rules>,
    known: watch::Receiver<Known>,
    tasks: JoinSet<()>,
}

/// Reason why no rules are there.
#[derive(Clone, Debug, Error)]
pub enum RetrieverError {
    /// Documents are invalid. The text has a line for each problem.
    #[error("the rules are invalid; mend them:\n{}", lines(.0))]
    Invalid(Vec<Problem>),
    /// Files cannot be read.
    #[error("{0}; give a file or directory with rules")]
    Unreadable(String),
    /// An address is invalid.
    #[error("{0:?} is no address of a server; give HOST:PORT")]
    Address(String),
    /// No server has sent valid rules in time.
    #[error("no server has sent rules within {within:?}: {problem}")]
    Unreachable {
        /// Time that was waited.
        within: Duration,
        /// Last problem.
        problem: String,
    },
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The source of rules, before its start.
#[derive(Clone, Debug)]
pub struct Source {
    place: Place,
    interval: Duration,
    patience: Duration,
}

#[derive(Clone, Debug)]
enum Place {
    File(PathBuf),
    Directory(PathBuf),
    Server {
        addresses: Vec<String>,
        instance: String,
        domains: Vec<String>,
    },
}

impl Retriever {
    /// Takes rules from a file.
    pub fn file(path: impl Into<PathBuf>) -> Source {
        Source::new(Place::File(path.into()))
    }

    /// Takes rules from the files of a directory that end with `.yaml` or `.yml`, without hidden ones.
    pub fn directory(path: impl Into<PathBuf>) -> Source {
        Source::new(Place::Directory(path.into()))
    }

    /// Takes rules from the first of some servers that serves them. Servers list this client under its name.
    pub fn server<A: Into<String>>(
        addresses: impl IntoIterator<Item = A>,
        instance: impl Into<String>,
    ) -> Source {
        Source::new(Place::Server {
            addresses: addresses.into_iter().map(Into::into).collect(),
            instance: instance.into(),
            domains: Vec::new(),
        })
    }

    /// Returns the rules in force now, and whenever they change.
    pub fn rules(&self) -> watch::Receiver<Rules> {
        self.rules.clone()
    }

    /// Returns the versions in force, and the problem with newer ones.
    pub fn status(&self) -> Status {
        self.known.borrow().status()
    }

    /// Gives the rules to a limiter, at once and whenever they change.
    pub fn drive(&mut self, limiter: Arc<Limiter>, clock: impl Clock + Send + 'static) {
        let mut rules = self.rules();
        limiter.replace(rules.borrow_and_update().clone(), clock.now());
        self.tasks.spawn(async move {
            while rules.changed().await.is_ok() {
                let next = rules.borrow_and_update().clone();
                limiter.replace(next, clock.now());
            }
        });
    }
}

impl Source {
    fn new(place: Place) -> Self {
        Self {
            place,
            interval: Duration::from_secs(1),
            patience: Duration::from_secs(10),
        }
    }

    /// Sets the interval between two reads of files; 1 s without this.
    #[must_use]
    pub const fn every(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets the longest wait for the first answer of a server; 10 s without this.
    #[must_use]
    pub const fn within(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Takes only these domains from a server; all without this.
    #[must_use]
    pub fn domains<D: Into<String>>(mut self, names: impl IntoIterator<Item = D>) -> Self {
        if let Place::Server { domains, .. } = &mut self.place {
            *domains = names.into_iter().map(Into::into).collect();
        }
        self
    }

    /// Loads the rules for the first time, and keeps them up to date from then on.
    ///
    /// # Errors
    ///
    /// If there are no valid rules.
    pub async fn start(self) -> Result<Retriever, RetrieverError> {
        let (current, rules, mut known) = Current::new();
        let mut tasks = JoinSet::new();
        let interval = self.interval;
        match self.place {
            Place::File(path) => {
                let read = move || files::read_file(&path);
                poll(&mut tasks, current, read, interval).await?;
            }
            Place::Directory(path) => {
                let read = move || some(files::read_directory(&path), &path);
                poll(&mut tasks, current, read, interval).await?;
            }
            Place::Server {
                addresses,
                instance,
                domains,
            } => {
                let follower = Follower::new(current, &addresses, instance, domains)?;
                tasks.spawn(follower.run());
                let loaded = known.wait_for(Known::is_loaded);
                let loaded = tokio::time::timeout(self.patience, loaded).await.is_ok();
                if !loaded {
                    let problem = known.borrow().status().problem;
                    return Err(RetrieverError::Unreachable {
                        within: self.patience,
                        problem: problem.unwrap_or_else(|| "none has answered".to_owned()),
                    });
                }
            }
        }
        Ok(Retriever {
            rules,
            known,
            tasks,
        })
    }
}

/// Loads files, and again whenever their content changes.
async fn poll(
    tasks: &mut JoinSet<()>,
    current: Current,
    read: impl Fn() -> Content + Clone + Send + Sync + 'static,
    interval: Duration,
) -> Result<(), RetrieverError> {
    let mut content = files::read_apart(read.clone()).await;
    current.take(content.clone()).await?;
    tasks.spawn(async move {
        loop {
            content = files::changed(read.clone(), &content, interval).await;
            if let Err(error) = current.take(content.clone()).await {
                current.note_problem(error.to_string());
            }
        }
    });
    Ok(())
}

/// A directory without documents is probably another one than was meant.
fn some(content: Content, path: &std::path::Path) -> Content {
    match content {
        Ok(files) if files.is_empty() => Err(format!(
            "{} has no file that ends with .yaml",
            path.display()
        )),
        content => content,
    }
}
