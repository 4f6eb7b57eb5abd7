//! Calls that end in time, at whichever endpoint works.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Client, ConnectOptions, GetOptions, GetResponse, Txn, TxnResponse};
use tracing::debug;

use crate::config::{Endpoint, EtcdConfig};
use crate::error::{Error, FailedCall};

/// Interval between pings while a call waits on a connection, and the timeout of each: the sum of
/// both is the time in which a hanging member is noticed. etcd disconnects a client that pings more
/// often than every 5 s (`--grpc-keepalive-min-time`), so noticing a hang sooner needs a call.
const PING: (Duration, Duration) = (Duration::from_secs(6), Duration::from_secs(2));

/// A connection to one endpoint at a time. If a call fails, the next endpoint takes its place.
pub struct EtcdConnection {
    config: Arc<EtcdConfig>,
    /// Index of the endpoint that is in use, or comes next.
    turn: usize,
    client: Option<Client>,
    /// Whether this endpoint has answered since it came into use.
    has_answered: bool,
}

impl fmt::Debug for EtcdConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("endpoint", &self.endpoint())
            .field("connected", &self.client.is_some())
            .finish_non_exhaustive()
    }
}

impl EtcdConnection {
    /// Begins with a random endpoint, so that clients spread over all of them. Connects at the
    /// first call.
    pub fn new(config: Arc<EtcdConfig>) -> Self {
        let turn = rand::random_range(0..config.endpoints.len().max(1));
        Self {
            config,
            turn,
            client: None,
            has_answered: false,
        }
    }

    /// The endpoint in use, or the one that comes next.
    pub fn endpoint(&self) -> &str {
        let endpoint = self.config.endpoints.get(self.turn);
        endpoint.map_or("nowhere", Endpoint::as_str)
    }

    /// Longest time that a call may take.
    pub fn call_timeout(&self) -> Duration {
        self.config.call_timeout
    }

    /// Sets the longest time that a call may take.
    pub(crate) fn set_call_timeout(&mut self, timeout: Duration) {
        Arc::make_mut(&mut self.config).call_timeout = timeout;
    }

    /// Number of endpoints.
    pub fn endpoints(&self) -> usize {
        self.config.endpoints.len()
    }

    /// Asks etcd, within the configured time. `what` names the question, for people.
    ///
    /// # Errors
    ///
    /// If it does not answer in time, or says no. If it may be the endpoint's fault, the next call
    /// goes to the next one.
    pub async fn call<T>(
        &mut self,
        what: &'static str,
        ask: impl AsyncFnOnce(&mut Client) -> Result<T, etcd_client::Error>,
    ) -> Result<T, Error> {
        let timeout = self.config.call_timeout;
        let asking = async {
            let endpoint = self.endpoint().to_owned();
            let client = match self.client.take() {
                Some(client) => client,
                // On the heap: its future is large, and callers may have many calls at once.
                None => Box::pin(self.connect()).await?,
            };
            let answer = ask(self.client.insert(client)).await;
            answer.map_err(|error| Error::of(&endpoint, what, &error))
        };
        let answer = match tokio::time::timeout(timeout, asking).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::Unreachable(FailedCall {
                endpoint: self.endpoint().to_owned(),
                what,
                problem: format!("no answer within {timeout:?}"),
            })),
        };
        match answer {
            Ok(_) | Err(Error::LeaseGone) => {
                self.has_answered = true;
                answer
            }
            // Refused here may be refused everywhere. But a token that is out of date, say, is
            // renewed only by a new connection.
            Err(error) => {
                let error = if self.has_answered {
                    error
                } else {
                    error.of_stranger()
                };
                debug!(%error, "leaving the endpoint");
                self.leave();
                Err(error)
            }
        }
    }

    /// Reads keys.
    ///
    /// # Errors
    ///
    /// Those of [`EtcdConnection::call`].
    pub async fn get(
        &mut self,
        what: &'static str,
        key: impl Into<Vec<u8>>,
        options: Option<GetOptions>,
    ) -> Result<GetResponse, Error> {
        let get = async |client: &mut Client| client.get(key, options).await;
        self.call(what, get).await
    }

    /// Executes a transaction.
    ///
    /// # Errors
    ///
    /// Those of [`EtcdConnection::call`].
    pub async fn txn(&mut self, what: &'static str, txn: Txn) -> Result<TxnResponse, Error> {
        let commit = async |client: &mut Client| client.txn(txn).await;
        self.call(what, commit).await
    }

    /// Leaves the endpoint: the next call goes to the next one.
    pub fn leave(&mut self) {
        self.client = None;
        self.has_answered = false;
        self.turn = (self.turn + 1) % self.config.endpoints.len().max(1);
    }

    async fn connect(&self) -> Result<Client, Error> {
        let endpoint = self.endpoint();
        let mut options = ConnectOptions::new()
            .with_connect_timeout(self.config.call_timeout)
            .with_keep_alive(PING.0, PING.1)
            .with_keep_alive_while_idle(false)
            // A member without a leader says so, and ends watches, instead of being silent.
            .with_require_leader(true);
        let credentials = self.config.credentials().await;
        if let Some(user) = &credentials.user {
            options = options.with_user(&user.name, &user.password);
            options = options.with_auto_token_refresh(true);
        }
        if endpoint.starts_with("https:") {
            options = options.with_tls(credentials.tls.options());
        }
        let connected = Client::connect([endpoint], Some(options)).await;
        connected.map_err(|error| Error::of(endpoint, "connect", &error))
    }
}
