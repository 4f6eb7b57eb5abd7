//! A client: its identity towards servers, and the task that keeps its leases.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use doorward_tls::dialer::Dialer;
use doorward_tls::http_port;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};

use crate::budget::BudgetLimiter;
use crate::clock::{self, Clock};
use crate::error::{ConnectError, ResourceError};
use crate::fake::FakeServer;
use crate::handle::{self, CloseGuard};
use crate::hooks::{Hooks, NoHooks};
use crate::limiter::budget::BudgetHolder;
use crate::limiter::demand::AdaptiveWants;
use crate::resource::{Resource, check_wants};
use crate::slot::{START, Slot};
use crate::state::{ClientConfig, ClientState, FailureKind, Mode, Streams, come_back};
use crate::time::Tolerance;
use crate::transport::addresses::Addresses;
use crate::transport::book::Book;
use crate::transport::connection::{Connection, Reason};
use crate::transport::fake_answers::FakeAnswers;
use crate::transport::task::{self, Shared};

/// Largest length of an id, in bytes.
pub(crate) const ID_BYTES_MAX: usize = 256;

/// A client of one node. One background task keeps its leases until the client is closed. Cheap to clone. When the last
/// clone and the last resource are dropped, the client releases its leases in the background; [`Client::close`] waits
/// for that.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    guard: Arc<CloseGuard>,
    mode: Mode,
}

/// Settings of a client before it starts.
#[must_use = "nothing happens until `connect` or `connect_lazy`"]
pub struct ClientBuilder {
    client_id: Option<String>,
    addresses: Vec<String>,
    #[cfg(feature = "etcd")]
    etcd: Option<doorward_etcd::Etcd>,
    dialer: Dialer,
    mode: Mode,
    config: ClientConfig,
    hooks: Option<Arc<dyn Hooks>>,
    clock: Clock,
    connect_timeout: Duration,
}

debug_by_name!(Client, ClientBuilder, ResourceBuilder<'_>);

impl Client {
    /// Connects to the server at an address, with the default settings. See [`ClientBuilder::connect`].
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::connect`].
    pub async fn connect(address: impl Into<String>) -> Result<Self, ConnectError> {
        Self::builder().address(address).connect().await
    }

    /// Creates a builder with the default settings. At least one address must follow.
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            client_id: None,
            addresses: Vec::new(),
            #[cfg(feature = "etcd")]
            etcd: None,
            dialer: Dialer::default(),
            mode: Mode::default(),
            config: ClientConfig::default(),
            hooks: None,
            clock: Clock::start(),
            connect_timeout: Duration::from_secs(10),
        }
    }

    /// Creates a client for tests that needs no server, and the [fake server](crate::fake) that answers it.
    pub fn fake(client_id: impl Into<String>) -> (Self, FakeServer) {
        Self::builder().id(client_id).fake()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.closing.load(Ordering::SeqCst)
    }

    pub(crate) fn runtime(&self) -> Option<&Handle> {
        self.shared.runtime.as_ref()
    }

    pub(crate) fn closed(&self) -> watch::Receiver<bool> {
        self.shared.closed.subscribe()
    }

    /// Returns the client's id.
    pub fn id(&self) -> &str {
        &self.shared.client_id
    }

    /// Creates a builder for the use of a resource.
    pub fn resource(&self, id: impl Into<String>) -> ResourceBuilder<'_> {
        ResourceBuilder {
            client: self,
            id: id.into(),
            priority: 0,
            wants: None,
            mode: self.mode,
            adaptive: None,
            is_budget: false,
        }
    }

    /// Opens a budget, or shares it if it is open.
    ///
    /// # Errors
    ///
    /// If the id is invalid or open as another kind of limit, the budget is being closed, or the client is closed.
    pub fn budget(&self, id: impl Into<String>) -> Result<BudgetLimiter, ResourceError> {
        let resource = ResourceBuilder {
            is_budget: true,
            wants: Some(0.0),
            ..self.resource(id)
        };
        resource.open()?.budget()
    }

    /// Returns the error of the last attempt to refresh, if it failed.
    pub fn failure(&self) -> Option<String> {
        self.shared.book().failure.clone()
    }

    /// Releases all leases and ends the client. From now on, resources and limiters report that they are closed. Waits
    /// at most two seconds for the server's answer; leases that could not be released expire. A lease whose permits are
    /// still out also expires, because its work may still run.
    pub async fn close(self) {
        let mut closed = self.closed();
        self.shared.close();
        // The sender lives in `shared`, so this ends when the task does.
        let _ended = closed.wait_for(|closed| *closed).await;
    }
}

impl ClientBuilder {
    /// Sets the client's id. It must be unique among the clients of a resource. Default: the names of the host and the
    /// program, and the number of the process, as in `web-3/orders/4711`. Further clients of a process are numbered, from
    /// 2. With an id that stays the same, a program that crashed and is back takes the place of the one before, whose
    /// wants count no longer.
    pub fn id(mut self, client_id: impl Into<String>) -> Self {
        self.client_id = Some(client_id.into());
        self
    }

    /// Adds a server's address, `host:port`, `http://host:port`, `https://host:port` or `unix:/path`. The client tries
    /// several in turn. Any server of the node will do, because every server names the master. With the feature `etcd`, one address may be that of a node
    /// in etcd, `etcd://host:port/node`: see [finding servers](crate#finding-servers).
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.addresses.push(address.into());
        self
    }

    /// Adds several addresses.
    pub fn addresses<A: Into<String>>(mut self, addresses: impl IntoIterator<Item = A>) -> Self {
        self.addresses.extend(addresses.into_iter().map(Into::into));
        self
    }

    /// Sets the access to etcd, for an address without hosts: `etcd:///node`.
    #[cfg(feature = "etcd")]
    pub fn etcd(mut self, etcd: crate::etcd::Etcd) -> Self {
        self.etcd = Some(etcd);
        self
    }

    /// Connects by TLS, to the given servers and to all that these name. Without it, no connection uses TLS.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: crate::tls::ClientTls) -> Self {
        self.dialer = Dialer::new(Some(tls));
        self
    }

    /// Sets the mode for resources that set none: the behaviour when a lease ended without a refresh. Default: safe.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the behaviour towards servers: gaps, timeouts, backoff.
    pub fn config(mut self, config: ClientConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the largest error of this machine's clock, as in [`ClientConfig::clock_tolerance`].
    pub fn clock_tolerance(mut self, tolerance: Tolerance) -> Self {
        self.config.clock_tolerance = Some(tolerance);
        self
    }

    /// Sets the receiver of events.
    pub fn hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.hooks = Some(hooks);
        self
    }

    /// Sets the time for which [`ClientBuilder::connect`] tries. Default: ten seconds. If no server answered, it takes
    /// half a second more to check whether an address is that of a status page.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Connects to a master and starts the client.
    ///
    /// # Errors
    ///
    /// If an address or the id is invalid, or no master answered in time.
    pub async fn connect(mut self) -> Result<Client, ConnectError> {
        let mut connection = self.connection()?;
        let waited = self.connect_timeout;
        let mut last = String::from("none was made");
        let mut is_out_of_reach = false;
        let attempts = async {
            let mut pause = Duration::from_millis(50);
            while let Err(failure) = connection.connected().await {
                last = failure.problem;
                is_out_of_reach = failure.reason == Reason::Failed(FailureKind::OutOfReach);
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
        // The check concerns servers that are out of reach, and not servers that are busy or have no master.
        let may_be_http = is_out_of_reach && !self.dialer.is_tls();
        if may_be_http && let Some(advice) = http_port::advice(connection.known()).await {
            last = format!("{last}. {advice}");
        }
        Err(ConnectError::NotConnected { waited, last })
    }

    /// Starts the client without waiting for a server. Resources work by their modes until a server answers. Must be
    /// called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// If an address or the id is invalid.
    pub fn connect_lazy(mut self) -> Result<Client, ConnectError> {
        let connection = self.connection()?;
        Ok(self.start(connection))
    }

    fn connection(&mut self) -> Result<Connection, ConnectError> {
        let client_id = self.client_id.get_or_insert_with(default_id);
        if !is_id(client_id) {
            return Err(ConnectError::BadClientId(client_id.clone()));
        }
        let (timeout, is_tls) = (self.config.timeout, self.dialer.is_tls());
        #[cfg(feature = "etcd")]
        let addresses =
            Addresses::parse_with_etcd(&self.addresses, self.etcd.as_ref(), timeout, is_tls)?;
        #[cfg(not(feature = "etcd"))]
        let addresses = Addresses::parse(&self.addresses, is_tls)?;
        let hooks = self.hooks.clone().unwrap_or_else(|| Arc::new(NoHooks));
        Ok(Connection::new(
            addresses,
            self.dialer.clone(),
            self.clock.clone(),
            hooks,
            timeout,
        ))
    }

    /// Creates a client for tests that needs no server, and the [fake server](crate::fake) that answers it. Addresses
    /// and timeouts have no effect; mode and hooks have.
    pub fn fake(mut self) -> (Client, FakeServer) {
        self.clock = Clock::start_by_timers();
        let client = self.client(Some(Mutex::default()));
        let server = FakeServer::new(client.shared.clone());
        (client, server)
    }

    fn start(self, connection: Connection) -> Client {
        let client = self.client(None);
        client.shared.clock.start_fast();
        client.shared.is_due_at(Some(client.shared.clock.now()));
        tokio::spawn(task::run(client.shared.clone(), connection));
        client
    }

    fn client(self, fake: Option<Mutex<FakeAnswers>>) -> Client {
        let sequence = u64::try_from(clock::wall().as_micros()).unwrap_or(0);
        let config = ClientConfig {
            clock_tolerance: self.config.clock_tolerance.or(Some(clock::tolerance())),
            // Requests on streams have no trace.
            streams: match cfg!(feature = "otel") {
                true => Streams::OnceLeased,
                false => Streams::Always,
            },
            ..self.config
        };
        let shared = Arc::new(Shared {
            client_id: self.client_id.unwrap_or_else(default_id),
            incarnation: clock::incarnation(),
            clock: self.clock,
            is_observed: self.hooks.is_some(),
            hooks: self.hooks.unwrap_or_else(|| Arc::new(NoHooks)),
            book: Mutex::new(Book {
                state: ClientState::new(config, sequence),
                slots: BTreeMap::new(),
                handles: BTreeMap::new(),
                last_words: BTreeMap::new(),
                measure_at: None,
                failure: None,
            }),
            runtime: Handle::try_current().ok(),
            due: AtomicU64::new(u64::MAX),
            is_late: AtomicBool::new(false),
            wake: Notify::new(),
            closing: AtomicBool::new(false),
            closed: watch::Sender::new(false),
            fake,
        });
        let guard = Arc::new(CloseGuard(shared.clone()));
        Client {
            shared,
            guard,
            mode: self.mode,
        }
    }
}

/// Settings of a resource before it opens.
#[must_use = "nothing happens until `open`"]
pub struct ResourceBuilder<'a> {
    client: &'a Client,
    id: String,
    priority: i64,
    wants: Option<f64>,
    mode: Mode,
    adaptive: Option<AdaptiveWants>,
    is_budget: bool,
}

impl ResourceBuilder<'_> {
    /// Sets the priority: higher is more important, if the resource's algorithm uses priorities. Default: 0.
    pub fn priority(mut self, priority: i64) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the wanted amount, until [`Resource::ask`] changes it. Default: the demand, as the limiter measures it by
    /// its calls.
    pub fn wants(mut self, wants: f64) -> Self {
        self.wants = Some(wants);
        self
    }

    /// Sets the mode: the behaviour when a lease ended without a refresh. Default: the client's mode.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Measures the demand with other settings. With [`ResourceBuilder::wants`] too, that amount is wanted at the start,
    /// for a window.
    pub fn adaptive_wants(mut self, adaptive: AdaptiveWants) -> Self {
        self.adaptive = Some(adaptive);
        self
    }

    /// Opens the resource, or shares it if it is open, with the settings of the first call. Returns at once; see
    /// [`Resource::wait_for_lease`].
    ///
    /// # Errors
    ///
    /// If the id or the wants are invalid, the resource is being closed, or the client is closed.
    pub fn open(self) -> Result<Resource, ResourceError> {
        if !is_id(&self.id) {
            return Err(ResourceError::BadId(self.id));
        }
        let (adaptive, wants) = match (self.adaptive, self.wants) {
            (None, None) => (Some(AdaptiveWants::default()), START),
            (Some(it), wants) => (Some(it), wants.unwrap_or_default().max(it.least)),
            (None, Some(wants)) => (None, wants),
        };
        check_wants(self.wants.unwrap_or(wants))?;
        if let Some(AdaptiveWants { least, most, .. }) = adaptive {
            check_wants(least)?;
            check_wants(most)?;
        }
        let shared = &self.client.shared;
        if shared.closing.load(Ordering::SeqCst) {
            return Err(ResourceError::Closed);
        }
        let now = shared.clock.now();
        let slot = Arc::new(Slot::new(
            &self.id,
            wants,
            adaptive,
            self.is_budget
                .then(|| BudgetHolder::new(clock::incarnation())),
            shared.clock.clone(),
            shared.is_observed,
        ));
        let mut book = shared.book();
        if !book
            .state
            .open(&self.id, self.priority, self.mode, wants, now)
        {
            let open = book.handles.get(&self.id).and_then(Weak::upgrade);
            drop(book);
            return open
                .and_then(|handle| handle.downcast().ok())
                .map(Resource::new)
                .ok_or_else(|| ResourceError::Closing(self.id.clone()))
                .and_then(|resource| match resource.is_budget() == self.is_budget {
                    true => Ok(resource),
                    false => Err(ResourceError::OtherKind(self.id)),
                });
        }
        let handle = Arc::new(handle::Handle {
            slot,
            shared: shared.clone(),
            guard: self.client.guard.clone(),
        });
        let kept: Arc<dyn Any + Send + Sync> = handle.clone();
        book.add(handle.slot.clone(), Arc::downgrade(&kept), now);
        drop(book);
        shared.wake();
        Ok(Resource::new(handle))
    }
}

/// Returns an id that no other client has, unless its host, program and process have the same names and number.
fn default_id() -> String {
    /// Number of clients of this process.
    static CLIENTS: AtomicU64 = AtomicU64::new(0);
    let host = gethostname::gethostname().to_string_lossy().into_owned();
    let program = std::env::current_exe().ok();
    let program = program.as_ref().and_then(|path| path.file_stem());
    let program = program.map_or("program".into(), |name| name.to_string_lossy());
    let process = match std::process::id() {
        // The first processes of each container have such numbers, and containers may share a host name.
        0..100 => (clock::chance() * 1e9) as u64,
        process => u64::from(process),
    };
    let id = format!("{host}/{program}/{process}");
    match CLIENTS.fetch_add(1, Ordering::Relaxed) {
        0 => id,
        others => format!("{id}/{}", others + 1),
    }
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= ID_BYTES_MAX && !id.chars().any(char::is_control)
}
