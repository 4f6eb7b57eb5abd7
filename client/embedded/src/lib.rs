//! An exact limit over several processes, without a server to run: one of them serves the others.
//!
//! ```no_run
//! use doorward::limiter::rate::Burst;
//! use doorward_embedded::embedded;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let group = embedded("orders").limit("db/orders", "300/s").join().await?;
//! let database = group.client().resource("db/orders").open()?;
//! let limiter = database.rate_limiter(Burst::default());
//! limiter.acquire(1).await?;
//! # Ok(())
//! # }
//! ```
//!
//! All processes of a user on a machine that [join](Embedded::join) a group of one name share its limits, exactly as the
//! [clients](doorward::Client) of a server do. The first one that locks a file in the group's folder serves on a Unix
//! socket there. When it ends, in whatever way, the system releases the lock, and the next process serves. It continues
//! with the marks that the folder keeps of what is granted, so that no limit is exceeded.
//!
//! The serving process has a thread and a runtime of its own for that: a busy program does not starve the others.
//!
//! With the feature `etcd`, [`Embedded::etcd`] makes a group over several machines. Each process is a candidate then, and
//! etcd elects one.
//!
//! A process joins after it has forked: threads do not survive that, and a child that is forked later keeps the lock.

mod error;
mod folder;
mod limits;
mod member;
mod serving;

#[cfg(feature = "etcd")]
use std::net::IpAddr;
use std::net::SocketAddr;
use std::path::PathBuf;

use doorward::{Client, ClientBuilder, ConnectError};
use doorward_server::app::ServerConfig;

pub use doorward;

pub use crate::error::JoinError;
pub use crate::member::Member;

use crate::folder::Folder;
use crate::limits::Limits;
use crate::serving::{Seat, Serving};

/// Settings of a group, from a process that joins it.
#[derive(Clone, Debug)]
#[must_use = "nothing happens until `join`"]
pub struct Embedded {
    group: String,
    limits: Limits,
    folder: Option<PathBuf>,
    page: Option<SocketAddr>,
    #[cfg(feature = "etcd")]
    etcd: Option<String>,
    #[cfg(feature = "etcd")]
    address: Option<IpAddr>,
}

/// Begins the settings of a group. Its name has letters, digits, `-`, `_` and `.`, at most 64 of them.
pub fn embedded(group: impl Into<String>) -> Embedded {
    Embedded {
        group: group.into(),
        limits: Limits::default(),
        folder: None,
        page: None,
        #[cfg(feature = "etcd")]
        etcd: None,
        #[cfg(feature = "etcd")]
        address: None,
    }
}

impl Embedded {
    /// Sets the limit of a resource, or of all that a glob such as `tenants/*` matches: a rate such as `300/s` or
    /// `600/min`, or a number in flight such as `20`. The limits of the process that serves are in force.
    pub fn limit(mut self, resource: impl Into<String>, limit: impl Into<String>) -> Self {
        self.limits.in_code.push((resource.into(), limit.into()));
        self
    }

    /// Takes the limits from a file of resource templates, as a server does, and follows it. There must be no
    /// [`Embedded::limit`] then.
    pub fn templates(mut self, file: impl Into<PathBuf>) -> Self {
        self.limits.file = Some(file.into());
        self
    }

    /// Sets the folder, on a local disk, in which the group has one of its own. All processes of a group need the same.
    /// Default: `doorward` in the user's folder for state (`$XDG_STATE_HOME`, or `~/.local/state`), or the state directory
    /// of the unit of systemd.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Serves the page at an address of this machine as long as this process serves the group. A candidate in etcd serves
    /// it all the time.
    pub fn page(mut self, address: SocketAddr) -> Self {
        self.page = Some(address);
        self
    }

    /// Joins a group over several machines, by etcd at `HOST:PORT[,HOST:PORT…]`. With `?ca=FILE` and the other keys of
    /// [addresses in etcd](doorward#finding-servers) behind it, by TLS and with credentials.
    #[cfg(feature = "etcd")]
    pub fn etcd(mut self, hosts: impl Into<String>) -> Self {
        self.etcd = Some(hosts.into());
        self
    }

    /// Sets the address of this machine at which processes on others reach it. Default: the one by which it reaches etcd.
    #[cfg(feature = "etcd")]
    pub fn address(mut self, address: IpAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// Joins the group with a client of the default settings, and waits until a process serves it.
    ///
    /// # Errors
    ///
    /// If a setting is invalid, the folder cannot be used, or no process serves the group in time.
    pub async fn join(self) -> Result<Member, JoinError> {
        self.join_with(Client::builder()).await
    }

    /// Joins the group with a client of other settings. Addresses must not be among them.
    ///
    /// # Errors
    ///
    /// As [`Embedded::join`].
    pub async fn join_with(self, client: ClientBuilder) -> Result<Member, JoinError> {
        if !folder::is_name(&self.group) {
            return Err(JoinError::BadGroup(self.group));
        }
        let (seat, server, address) = self.place().await?;
        let server = self.limits.load(server).await?;
        let config = ServerConfig {
            node_name: self.group,
            http_listen: self.page.map(Into::into),
            ..server
        };
        let serving = Serving::start(seat, config)?;
        let joined = client.address(address.clone()).connect().await;
        let client = joined.map_err(|error| match error {
            ConnectError::NotConnected { .. } => JoinError::NobodyServes {
                at: address,
                problem: serving.problem(),
                source: error,
            },
            error => JoinError::Client(error),
        })?;
        Ok(Member::new(client, serving))
    }

    /// Returns how this process comes to serve, the server that it runs then, and the address of the one that serves.
    async fn place(&self) -> Result<(Seat, ServerConfig, String), JoinError> {
        #[cfg(feature = "etcd")]
        if let Some(hosts) = &self.etcd {
            return serving::by_etcd(hosts, self.address, &self.group).await;
        }
        let folder = Folder::open(self.folder.clone(), &self.group)?;
        let (config, address) = (folder.server(), folder.address());
        Ok((Seat::Lock(folder.lock()?), config, address))
    }
}

/// The page in the repository, whose examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedded.md")]
struct Page;
