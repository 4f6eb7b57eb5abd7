//! A client: an identity towards servers, and the task that keeps its leases.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::clock::{self, Clock};
use crate::error::{ConnectError, ResourceError};
use crate::fake::{FakeAnswers, FakeServer};
use crate::hooks::{Hooks, NoHooks};
use crate::limiter::demand::AdaptiveWants;
use crate::resource::{Resource, check_wants};
use crate::slot::Slot;
use crate::state::{ClientConfig, ClientState, Mode, come_back};
use crate::time::Tolerance;
use crate::transport::addresses::Addresses;
use crate::transport::connection::{Connection, Reason};
use crate::transport::http_port;
use crate::transport::task::{self, Book, Shared};

/// The longest id, in bytes.
const ID_BYTES_MAX: usize = 256;

/// A client of one node: keeps leases on resources, in one background task, until it is closed.
/// Cheap to clone. When the last clone and the last resource are dropped, it releases what it holds
/// in the background; [`Client::close`] waits for that.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    guard: Arc<CloseGuard>,
    mode: Mode,
}

/// Closes the client when it is dropped.
pub(crate) struct CloseGuard {
    shared: Arc<Shared>,
}

impl Drop for CloseGuard {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// Sets a client up.
#[must_use = "nothing happens until `connect` or `connect_lazy`"]
pub struct ClientBuilder {
    client_id: String,
    addresses: Vec<String>,
    #[cfg(feature = "etcd")]
    etcd: Option<doorward_etcd::Etcd>,
    mode: Mode,
    config: ClientConfig,
    hooks: Option<Arc<dyn Hooks>>,
    clock: Clock,
    connect_timeout: Duration,
}

impl Client {
    /// Starts setting up a client of that id, which must be unique among the clients of a resource
    /// and stay the same while it lives. Of two programs with one id, the later one gets what is free,
    /// and nothing once the first is heard again.
    pub fn builder(client_id: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            client_id: client_id.into(),
            addresses: Vec::new(),
            #[cfg(feature = "etcd")]
            etcd: None,
            mode: Mode::default(),
            config: ClientConfig::default(),
            hooks: None,
            clock: Clock::start(),
            connect_timeout: Duration::from_secs(10),
        }
    }

    /// A client for tests that needs no server, and the [fake](crate::fake) that says what it gets.
    pub fn fake(client_id: impl Into<String>) -> (Self, FakeServer) {
        Self::builder(client_id).fake()
    }

    /// The client's id.
    pub fn id(&self) -> &str {
        &self.shared.client_id
    }

    /// Starts setting up the use of a resource.
    pub fn resource(&self, id: impl Into<String>) -> ResourceBuilder<'_> {
        ResourceBuilder {
            client: self,
            id: id.into(),
            priority: 0,
            wants: 0.0,
            mode: self.mode,
            adaptive: None,
        }
    }

    /// What the last attempt to refresh said, if it failed.
    pub fn failure(&self) -> Option<String> {
        self.shared.book().failure.clone()
    }

    /// Releases everything and ends. Resources and limiters report that they are closed from now
    /// on. Waits for the release to be answered, at most two seconds; leases that could not be
    /// released expire. So do those of which permits are out: that work may still be going on.
    pub async fn close(self) {
        let mut closed = self.shared.closed.subscribe();
        self.shared.close();
        // The sender lives in `shared`, so this ends when the task does.
        let _ended = closed.wait_for(|closed| *closed).await;
    }
}

impl ClientBuilder {
    /// Adds a server's address, `host:port` or `http://host:port`. Several are tried in turn; any
    /// server of the node will do, since it says who the master is. With the feature `etcd`, one
    /// may be that of a node in etcd, `etcd://host:port/node`: see [finding
    /// servers](crate#finding-servers).
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.addresses.push(address.into());
        self
    }

    /// Adds several addresses.
    pub fn addresses<A: Into<String>>(mut self, addresses: impl IntoIterator<Item = A>) -> Self {
        self.addresses.extend(addresses.into_iter().map(Into::into));
        self
    }

    /// How etcd is reached, for an address that does not say so: `etcd:///node`.
    #[cfg(feature = "etcd")]
    pub fn etcd(mut self, etcd: crate::etcd::Etcd) -> Self {
        self.etcd = Some(etcd);
        self
    }

    /// What to use when a lease ended unrenewed, unless a resource says otherwise. Default: safe.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// How to behave towards servers: gaps, timeouts, backoff.
    pub fn config(mut self, config: ClientConfig) -> Self {
        self.config = config;
        self
    }

    /// By how much this machine's clock may be wrong, as in [`ClientConfig::clock_tolerance`].
    pub fn clock_tolerance(mut self, tolerance: Tolerance) -> Self {
        self.config.clock_tolerance = Some(tolerance);
        self
    }

    /// How long a former process of this id may go on beside this one before limiters fail with
    /// [`AcquireError::AnotherProcess`](crate::AcquireError::AnotherProcess), as in [`ClientConfig::restart_overlap`].
    /// Default: ten seconds.
    pub fn restart_overlap(mut self, overlap: Duration) -> Self {
        self.config.restart_overlap = overlap;
        self
    }

    /// Where to report what happens.
    pub fn hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.hooks = Some(hooks);
        self
    }

    /// How long [`ClientBuilder::connect`] tries. Default: ten seconds. If nobody answered, it looks for half a second more
    /// whether an address is that of a status page.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Connects to a master and starts the client.
    ///
    /// # Errors
    ///
    /// If an address or the id does not parse, or no master answered in time.
    pub async fn connect(self) -> Result<Client, ConnectError> {
        let mut connection = self.connection()?;
        let waited = self.connect_timeout;
        let mut last = String::from("none was made");
        let mut is_out_of_reach = false;
        let attempts = async {
            let mut pause = Duration::from_millis(50);
            while let Err(failure) = connection.connect().await {
                last = failure.problem;
                is_out_of_reach = matches!(failure.reason, Reason::OutOfReach);
                let chance = clock::chance();
                if let Reason::Overloaded(retry_in) = failure.reason {
                    tokio::time::sleep(come_back(retry_in, chance)).await;
                } else {
                    tokio::time::sleep(pause.mul_f64(0.5 + chance)).await;
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
            }
        };
        if tokio::time::timeout(waited, attempts).await.is_ok() {
            return Ok(self.start(connection));
        }
        // Whoever is there, but busy or without a master, is not asked once more.
        if is_out_of_reach && let Some(advice) = http_port::advice(connection.known()).await {
            last = format!("{last}. {advice}");
        }
        Err(ConnectError::NotConnected { waited, last })
    }

    /// Starts the client without waiting for a server; resources work by their modes until one
    /// answers. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// If an address or the id does not parse.
    pub fn connect_lazy(self) -> Result<Client, ConnectError> {
        let connection = self.connection()?;
        Ok(self.start(connection))
    }

    fn connection(&self) -> Result<Connection, ConnectError> {
        if !is_id(&self.client_id) {
            return Err(ConnectError::BadClientId(self.client_id.clone()));
        }
        let timeout = self.config.timeout;
        #[cfg(feature = "etcd")]
        let addresses = Addresses::parse_with_etcd(&self.addresses, self.etcd.as_ref(), timeout)?;
        #[cfg(not(feature = "etcd"))]
        let addresses = Addresses::parse(&self.addresses)?;
        let hooks = self.hooks.clone().unwrap_or_else(|| Arc::new(NoHooks));
        Ok(Connection::new(
            addresses,
            self.clock.clone(),
            hooks,
            timeout,
        ))
    }

    /// A client for tests that needs no server, and the [fake](crate::fake) that says what it gets. Addresses
    /// and timeouts do not count; mode and hooks do.
    pub fn fake(mut self) -> (Client, FakeServer) {
        self.clock = Clock::start_by_timers();
        // Its server answers once, and says what is the case.
        self.config.restart_overlap = Duration::ZERO;
        let client = self.client(Some(FakeAnswers::default()));
        let server = FakeServer::new(client.shared.clone());
        (client, server)
    }

    fn start(self, connection: Connection) -> Client {
        let client = self.client(None);
        client.shared.clock.start_fast();
        tokio::spawn(task::run(client.shared.clone(), connection));
        client
    }

    fn client(self, fake: Option<FakeAnswers>) -> Client {
        let sequence = u64::try_from(clock::since_epoch().as_micros()).unwrap_or(0);
        let config = ClientConfig {
            clock_tolerance: self.config.clock_tolerance.or(Some(clock::tolerance())),
            ..self.config
        };
        let shared = Arc::new(Shared {
            client_id: self.client_id,
            incarnation: clock::incarnation(),
            clock: self.clock,
            is_observed: self.hooks.is_some(),
            hooks: self.hooks.unwrap_or_else(|| Arc::new(NoHooks)),
            book: Mutex::new(Book {
                state: ClientState::new(config, sequence),
                slots: BTreeMap::new(),
                releases: Vec::new(),
                failure: None,
            }),
            wake: Notify::new(),
            closing: AtomicBool::new(false),
            closed: watch::Sender::new(false),
            fake,
        });
        let guard = Arc::new(CloseGuard {
            shared: shared.clone(),
        });
        Client {
            shared,
            guard,
            mode: self.mode,
        }
    }
}

/// Sets up the use of a resource.
#[must_use = "nothing happens until `open`"]
pub struct ResourceBuilder<'a> {
    client: &'a Client,
    id: String,
    priority: i64,
    wants: f64,
    mode: Mode,
    adaptive: Option<AdaptiveWants>,
}

impl ResourceBuilder<'_> {
    /// Higher is more important, if the resource's algorithm looks at it. Default: 0.
    pub fn priority(mut self, priority: i64) -> Self {
        self.priority = priority;
        self
    }

    /// What is wanted to begin with. Default: 0, which gets nothing.
    pub fn wants(mut self, wants: f64) -> Self {
        self.wants = wants;
        self
    }

    /// What to use when a lease ended unrenewed. Default: the client's.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Measures what is wanted from what is acquired from the resource's limiter, from now on.
    pub fn adaptive_wants(mut self, adaptive: AdaptiveWants) -> Self {
        self.wants = self.wants.max(adaptive.least);
        self.adaptive = Some(adaptive);
        self
    }

    /// Starts using the resource. Returns at once; see [`Resource::wait_for_lease`].
    ///
    /// # Errors
    ///
    /// If the id or the wants do not do, the resource is open already, or the client is closed.
    pub fn open(self) -> Result<Resource, ResourceError> {
        if !is_id(&self.id) {
            return Err(ResourceError::BadId(self.id));
        }
        check_wants(self.wants)?;
        let shared = &self.client.shared;
        if shared.closing.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(ResourceError::Closed);
        }
        let now = shared.clock.now();
        let slot = Arc::new(Slot::new(
            &self.id,
            self.wants,
            self.adaptive,
            shared.clock.clone(),
            shared.is_observed,
        ));
        let mut book = shared.book();
        if !book
            .state
            .open(&self.id, self.priority, self.mode, self.wants, now)
        {
            drop(book);
            return Err(ResourceError::AlreadyOpen(self.id));
        }
        // Released and opened again before the release was sent: then it is not to be.
        book.releases.retain(|id| *id != self.id);
        book.slots.insert(self.id, slot.clone());
        drop(book);
        shared.wake();
        Ok(Resource::new(
            slot,
            shared.clone(),
            self.client.guard.clone(),
        ))
    }
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= ID_BYTES_MAX && !id.chars().any(char::is_control)
}
