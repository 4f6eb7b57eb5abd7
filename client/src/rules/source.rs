//! Rules from a file, a directory or a Doorward server, kept up to date.
//!
//! A retriever loads all documents at its start, or returns an error that says what to mend. Later it brings each valid
//! set into force as a whole. If documents become invalid or unreachable, the last good ones stay, and
//! [`Retriever::status`] tells the problem. Dropping the retriever ends it.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use doorward_limits::StdClock;
//! # use doorward::rules::source::Retriever;
//! # use doorward::rules::{Limiter, Rules};
//! # async fn example() -> Result<(), doorward::rules::source::RetrieverError> {
//! let limiter = Arc::new(Limiter::new(Rules::default(), 100_000, [1, 2]));
//! let servers = ["rules-0:6970", "rules-1:6970"];
//! let mut retriever = Retriever::server(&servers, "login-7", &["login"]).start().await?;
//! retriever.drive(Arc::clone(&limiter), StdClock::new());
//! # Ok(())
//! # }
//! ```

mod current;
pub mod files;
#[cfg(feature = "leases")]
mod server;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use doorward_clock::Instant;
use doorward_files::warn_of_mounts;
use doorward_limits::Clock;
#[cfg(feature = "leases")]
use doorward_tls::dialer::Dialer;
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use crate::rules::source::current::Status;
use crate::rules::source::current::{Check, Current};
use crate::rules::source::files::Content;
#[cfg(feature = "leases")]
use crate::rules::source::server::{Follower, Servers};
use crate::rules::{Limiter, Problems, Rules};

debug_by_name!(Retriever);
debug_by_text!(RetrieverError);

/// Rules that are kept up to date until this is dropped.
pub struct Retriever {
    rules: watch::Receiver<Rules>,
    check: Arc<OnceLock<Check>>,
    status: watch::Receiver<Status>,
    tasks: JoinSet<()>,
}

/// Reason why no rules are there.
#[derive(Clone, Error)]
#[non_exhaustive]
pub enum RetrieverError {
    /// Documents are invalid. The text has a line for each problem.
    #[error("the rules are invalid; mend them:\n{0}")]
    Invalid(Problems),
    /// Files cannot be read.
    #[error("{0}; give a file or directory with rules")]
    Unreadable(String),
    /// The user of the rules refuses them: see [`Retriever::accept`].
    #[error("the rules do not fit the service: {0}")]
    Refused(String),
    /// Later documents lack the domains with rules that are named here.
    #[error(
        "all rules of {0} would go; write `empty: true` into their document, or remove it for longer than a minute"
    )]
    Gone(String),
    /// An address is invalid.
    #[error("{0:?} is no address of a server; give HOST:PORT")]
    Address(String),
    /// No server has sent valid rules in time.
    #[error("no server has sent rules within {0:?}: {1}")]
    Unreachable(Duration, String),
}

/// The source of rules, before its start.
#[derive(Debug)]
#[must_use = "nothing is loaded until `start`"]
pub struct Source {
    place: Place,
    interval: Duration,
    patience: Duration,
}

#[derive(Debug)]
enum Place {
    Files(PathBuf, fn(&Path) -> Content),
    #[cfg(feature = "leases")]
    Servers(Servers),
}

impl Retriever {
    /// Takes rules from a file.
    pub fn file(path: impl Into<PathBuf>) -> Source {
        Source::new(Place::Files(path.into(), files::read_file))
    }

    /// Takes rules from the files of a directory that end with `.yaml` or `.yml`, without hidden ones. One without such
    /// files is an error: probably another one was meant.
    pub fn directory(path: impl Into<PathBuf>) -> Source {
        let read = |path: &Path| match files::read_directory(path) {
            Ok(files) if files.is_empty() => Err(format!(
                "{} has no file that ends with .yaml",
                path.display()
            )),
            content => content,
        };
        Source::new(Place::Files(path.into(), read))
    }

    /// Takes rules from the first of some servers that serves them, of these domains or, without any, of all. Servers
    /// list this client as an instance of that name.
    #[cfg(feature = "leases")]
    pub fn server(addresses: &[&str], instance: &str, domains: &[&str]) -> Source {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Source::new(Place::Servers(Servers {
            addresses: owned(addresses),
            instance: instance.to_owned(),
            domains: owned(domains),
            dialer: Dialer::default(),
        }))
    }

    /// Returns the rules in force now, and whenever they change.
    pub fn rules(&self) -> watch::Receiver<Rules> {
        self.rules.clone()
    }

    /// Returns the versions in force, and the problem with newer ones.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Returns the same, now and whenever it changes.
    pub fn statuses(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Sets a check of later rules. Rules that it refuses do not come into force, and [`Retriever::status`] and the
    /// server hear its text as the problem. The first check counts.
    pub fn accept(&self, check: impl Fn(&Rules) -> Result<(), String> + Send + Sync + 'static) {
        self.check.get_or_init(|| Box::new(check));
    }

    /// Gives the rules to a limiter, at once and whenever they change.
    pub fn drive(&mut self, limiter: Arc<Limiter>, clock: impl Clock + 'static) {
        let mut rules = self.rules();
        limiter.replace(rules.borrow_and_update().clone(), clock.now());
        self.keep_up(rules, move |rules| limiter.replace(rules, clock.now()));
    }

    /// Calls a function with each later set of rules, until this is dropped.
    pub(crate) fn keep_up(
        &mut self,
        mut rules: watch::Receiver<Rules>,
        put: impl Fn(Rules) + Send + 'static,
    ) {
        self.tasks.spawn(async move {
            while rules.changed().await.is_ok() {
                let next = rules.borrow_and_update().clone();
                put(next);
            }
        });
    }
}

impl Source {
    const fn new(place: Place) -> Self {
        Self {
            place,
            interval: Duration::from_secs(1),
            patience: Duration::from_secs(10),
        }
    }

    /// Connects to servers by TLS. Has no effect on files.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: doorward_tls::client::ClientTls) -> Self {
        if let Place::Servers(servers) = &mut self.place {
            servers.dialer = Dialer::new(Some(tls));
        }
        self
    }

    /// Sets the interval between two reads of files; 1 s without this.
    pub const fn every(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets the longest wait for the first answer of a server; 10 s without this.
    pub const fn within(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Loads the rules for the first time, and keeps them up to date from then on.
    ///
    /// # Errors
    ///
    /// If there are no valid rules.
    pub async fn start(self) -> Result<Retriever, RetrieverError> {
        let check = Arc::default();
        let (mut current, rules, status) = Current::new(Arc::clone(&check));
        let mut tasks = JoinSet::new();
        match self.place {
            Place::Files(path, read) => {
                warn_of_mounts([&path]);
                let mut follower = doorward_files::Follower::new(&path, self.interval, read);
                let mut content = follower.read().await;
                current.take(content.clone(), Instant::now()).await?;
                tasks.spawn(async move {
                    loop {
                        content = tokio::select! {
                            changed = follower.changed(&content) => changed,
                            () = files::until(current.due()) => content,
                        };
                        if let Err(error) = current.take(content.clone(), Instant::now()).await {
                            current.note_problem(error.to_string());
                        }
                    }
                });
            }
            #[cfg(feature = "leases")]
            Place::Servers(servers) => {
                tasks.spawn(Follower::new(current, servers)?.run());
                let mut loaded = rules.clone();
                let loaded = tokio::time::timeout(self.patience, loaded.changed()).await;
                loaded
                    .map_err(|_| {
                        let problem = status.borrow().problem.clone().unwrap_or_default();
                        RetrieverError::Unreachable(self.patience, problem)
                    })?
                    .ok();
            }
        }
        Ok(Retriever {
            rules,
            check,
            status,
            tasks,
        })
    }
}
