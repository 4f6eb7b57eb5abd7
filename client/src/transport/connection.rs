//! The connection to whoever is the master: addresses, redirects, one channel at a time.
//!
//! A channel that failed is thrown away: a balancer over all addresses would keep the dead ones.
//! Addresses are tried in turn; a redirect goes before them, once.

use std::convert::Infallible;
use std::error::Error;
use std::fmt::Display;
use std::time::Duration;

use doorward_proto::doorman;
use doorward_proto::doorman::capacity_client::CapacityClient;
use tonic::transport::{Channel, Endpoint};
use tracing::{debug, info};

use crate::error::ConnectError;

/// Redirects that are followed without an answer of a master between them.
const REDIRECTS_MAX: u32 = 5;

/// What came of a call.
#[derive(Debug)]
pub(crate) enum Outcome<T> {
    /// A master answered.
    Answered(T),
    /// Somewhere else there is a master: ask again at once.
    Redirected,
    /// No answer, or none from a master; why, for people.
    Failed(String),
}

/// To one server at a time.
#[derive(Debug)]
pub(crate) struct Connection {
    addresses: Vec<Endpoint>,
    /// The address whose turn it is.
    turn: usize,
    redirect: Option<(Endpoint, String)>,
    redirects: u32,
    channel: Option<(CapacityClient<Channel>, String)>,
    /// The newest mastership heard of.
    epoch: u64,
    timeout: Duration,
}

impl Connection {
    pub(crate) fn new(addresses: &[String], timeout: Duration) -> Result<Self, ConnectError> {
        if addresses.is_empty() {
            return Err(ConnectError::NoAddress);
        }
        let addresses: Result<Vec<Endpoint>, ConnectError> = addresses
            .iter()
            .map(|address| endpoint(address, timeout))
            .collect();
        Ok(Self {
            addresses: addresses?,
            turn: 0,
            redirect: None,
            redirects: 0,
            channel: None,
            epoch: 0,
            timeout,
        })
    }

    /// Asks for capacity.
    pub(crate) async fn get_capacity(
        &mut self,
        request: doorman::GetCapacityRequest,
    ) -> Outcome<doorman::GetCapacityResponse> {
        let mut client = match self.client().await {
            Ok(client) => client,
            Err(problem) => return Outcome::Failed(problem),
        };
        let answer = tokio::time::timeout(self.timeout, client.get_capacity(request)).await;
        let response = match answer {
            Ok(Ok(response)) => response.into_inner(),
            Ok(Err(status)) => {
                return Outcome::Failed(self.failed("GetCapacity", &described(&status)));
            }
            Err(_) => {
                let problem = format!("no answer within {:?}", self.timeout);
                return Outcome::Failed(self.failed("GetCapacity", &problem));
            }
        };
        match response.mastership {
            None => {
                self.redirects = 0;
                Outcome::Answered(response)
            }
            Some(mastership) => self.redirected(&mastership),
        }
    }

    /// Gives capacity back; best effort.
    pub(crate) async fn release(&mut self, request: doorman::ReleaseCapacityRequest) -> bool {
        // A release need not go to a new master, nor wait for one.
        let Some((client, _)) = &mut self.channel else {
            return false;
        };
        let answer = tokio::time::timeout(self.timeout, client.release_capacity(request)).await;
        matches!(answer, Ok(Ok(_)))
    }

    /// The client of the present channel, made if there is none. A fresh channel is first asked
    /// who the master is; a server too old to say is taken for it.
    pub(crate) async fn client(&mut self) -> Result<CapacityClient<Channel>, String> {
        loop {
            if let Some((client, _)) = &self.channel {
                return Ok(client.clone());
            }
            let (endpoint, name) = self
                .redirect
                .take()
                .unwrap_or_else(|| self.address_in_turn());
            let mut client = CapacityClient::new(endpoint.connect_lazy());
            let question = client.discovery(doorman::DiscoveryRequest {});
            let mastership = match tokio::time::timeout(self.timeout, question).await {
                Ok(Ok(answer)) => {
                    let answer = answer.into_inner();
                    if !answer.is_master {
                        match self.redirected::<Infallible>(&answer.mastership) {
                            Outcome::Redirected => continue,
                            Outcome::Failed(problem) => return Err(problem),
                            Outcome::Answered(never) => match never {},
                        }
                    }
                    answer.mastership
                }
                Ok(Err(status)) if status.code() == tonic::Code::Unimplemented => {
                    doorman::Mastership::default()
                }
                Ok(Err(status)) => {
                    return Err(self.failed_at(&name, "Discovery", &described(&status)));
                }
                Err(_) => return Err(self.failed_at(&name, "Discovery", &"no answer in time")),
            };
            if let Some(epoch) = mastership.epoch {
                if epoch < self.epoch {
                    let problem = "its mastership is out of date";
                    return Err(self.failed_at(&name, "Discovery", &problem));
                }
                self.epoch = epoch;
            }
            info!(server = name, epoch = self.epoch, "connected");
            self.channel = Some((client, name));
        }
    }

    fn address_in_turn(&self) -> (Endpoint, String) {
        // There is at least one address, and the turn is below their number.
        let endpoint = self.addresses.get(self.turn).or(self.addresses.first());
        let endpoint = endpoint
            .cloned()
            .unwrap_or_else(|| Endpoint::from_static("http://[::1]:1"));
        let name = endpoint
            .uri()
            .authority()
            .map(ToString::to_string)
            .unwrap_or_default();
        (endpoint, name)
    }

    /// The server says that it is not the master.
    fn redirected<T>(&mut self, mastership: &doorman::Mastership) -> Outcome<T> {
        let name = self.channel.take().map(|(_, name)| name);
        let name = name.unwrap_or_else(|| self.address_in_turn().1);
        if let Some(epoch) = mastership.epoch {
            if epoch < self.epoch {
                return Outcome::Failed(self.failed_at(&name, "redirect", &"it is out of date"));
            }
            self.epoch = epoch;
        }
        let Some(address) = mastership
            .master_address
            .as_deref()
            .filter(|a| !a.is_empty())
        else {
            return Outcome::Failed(self.failed_at(&name, "redirect", &"no master is known"));
        };
        self.redirects += 1;
        if self.redirects > REDIRECTS_MAX {
            self.redirects = 0;
            let problem = format!("{REDIRECTS_MAX} redirects in a row, the last to {address}");
            return Outcome::Failed(self.failed_at(&name, "redirect", &problem));
        }
        match endpoint(address, self.timeout) {
            Ok(endpoint) => {
                debug!(master = address, "redirected");
                self.redirect = Some((endpoint, address.to_owned()));
                Outcome::Redirected
            }
            Err(error) => Outcome::Failed(self.failed_at(&name, "redirect", &error)),
        }
    }

    /// Something failed at the present server: next time, the next address. Returns what happened,
    /// for people.
    fn failed(&mut self, what: &str, problem: &dyn Display) -> String {
        let name = self.channel.take().map(|(_, name)| name);
        let name = name.unwrap_or_else(|| self.address_in_turn().1);
        self.failed_at(&name, what, problem)
    }

    fn failed_at(&mut self, name: &str, what: &str, problem: &dyn Display) -> String {
        self.channel = None;
        self.redirect = None;
        self.turn = (self.turn + 1) % self.addresses.len();
        let message = format!("{what} at {name}: {problem}");
        debug!(message, "call failed");
        message
    }
}

/// `host:port`, with or without `http://`.
fn endpoint(address: &str, timeout: Duration) -> Result<Endpoint, ConnectError> {
    let bad = |problem: String| ConnectError::BadAddress {
        address: address.to_owned(),
        problem,
    };
    let uri = if address.contains("://") {
        address.to_owned()
    } else {
        format!("http://{address}")
    };
    let endpoint = Endpoint::from_shared(uri).map_err(|error| bad(error.to_string()))?;
    match (endpoint.uri().scheme_str(), endpoint.uri().port()) {
        (Some("http"), Some(_)) => {}
        (Some("http"), None) => return Err(bad("it has no port".to_owned())),
        _ => return Err(bad("only http is spoken".to_owned())),
    }
    Ok(endpoint
        .connect_timeout(timeout)
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_timeout(Duration::from_secs(5))
        .keep_alive_while_idle(true)
        .tcp_nodelay(true))
}

/// What a status says, with its innermost cause: "connection refused" stands there.
fn described(status: &tonic::Status) -> String {
    let mut cause: Option<&dyn Error> = status.source();
    let mut innermost = None;
    while let Some(error) = cause {
        innermost = Some(error.to_string());
        cause = error.source();
    }
    match innermost {
        Some(cause) if !status.message().contains(&cause) => {
            format!("{} ({cause})", status.message())
        }
        _ => status.message().to_owned(),
    }
}
