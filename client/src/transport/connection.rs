//! The connection to whoever is the master: addresses, redirects, one channel at a time.
//!
//! A channel that failed is thrown away: a balancer over all addresses would keep the dead ones.
//! Addresses are tried in turn; a redirect goes before them, once. Nobody goes back to the master of
//! an older epoch while a lease is valid ([`EpochFilter`]); an epoch that is absent says nothing.

use std::error::Error;
use std::fmt;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use doorward_proto::doorman;
use doorward_proto::doorman::capacity_client::CapacityClient;
use tonic::transport::Channel;
use tracing::{debug, info, warn};

use crate::clock::Clock;
use crate::hooks::Hooks;
use crate::state::EpochFilter;
use crate::time::Time;
use crate::transport::addresses::{Address, Addresses};
use crate::transport::pushback::pushback;
use crate::visible;

/// Redirects that are followed without an answer of a master between them.
const REDIRECTS_MAX: u32 = 5;

/// The largest answer that is read, in bytes: thousands of leases.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// What came of a call.
#[derive(Debug)]
pub(crate) enum Outcome<T> {
    /// A master answered.
    Answered(T),
    /// Somewhere else there is a master: ask again at once.
    Redirected,
    /// No answer, or none from a master.
    Failed(Failure),
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// For people.
    pub(crate) problem: String,
    pub(crate) reason: Reason,
}

/// What a failure says of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Nothing: no answer of use came.
    OutOfReach,
    /// A server of the node is there, but there is no master: none is known, or the one that was
    /// named cannot be reached.
    Masterless,
    /// A server is there, and too busy; it told when to come back.
    Overloaded(Duration),
}

/// A server that was asked.
#[derive(Clone, Debug)]
struct Asked {
    name: String,
    /// Another server named it as the master.
    was_named: bool,
}

/// To one server at a time.
pub(crate) struct Connection {
    addresses: Addresses,
    redirect: Option<Address>,
    redirects: u32,
    channel: Option<(CapacityClient<Channel>, Asked)>,
    epochs: EpochFilter,
    /// When the last lease ends.
    leases_end: Option<Time>,
    clock: Clock,
    hooks: Arc<dyn Hooks>,
    timeout: Duration,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("channel", &self.channel)
            .field("epochs", &self.epochs)
            .finish_non_exhaustive()
    }
}

impl Connection {
    pub(crate) fn new(
        addresses: Addresses,
        clock: Clock,
        hooks: Arc<dyn Hooks>,
        timeout: Duration,
    ) -> Self {
        Self {
            addresses,
            redirect: None,
            redirects: 0,
            channel: None,
            epochs: EpochFilter::default(),
            leases_end: None,
            clock,
            hooks,
            timeout,
        }
    }

    /// Asks for capacity. `leases_end` is when the last lease ends that the client has.
    pub(crate) async fn get_capacity(
        &mut self,
        request: doorman::GetCapacityRequest,
        leases_end: Option<Time>,
    ) -> Outcome<doorman::GetCapacityResponse> {
        self.leases_end = leases_end;
        let (mut client, asked) = match self.connected().await {
            Ok(connected) => connected,
            Err(failure) => return Outcome::Failed(failure),
        };
        let answer = tokio::time::timeout(self.timeout, client.get_capacity(request)).await;
        let response = match answer {
            Ok(Ok(response)) => response.into_inner(),
            Ok(Err(status)) => {
                return Outcome::Failed(match pushback(&status) {
                    // The channel is as good as before.
                    Some(retry_in) => overloaded(&asked, "GetCapacity", &status, retry_in),
                    None => self.failed(&asked, "GetCapacity", &described(&status)),
                });
            }
            Err(_) => {
                let problem = format!("no answer within {:?}", self.timeout);
                return Outcome::Failed(self.failed(&asked, "GetCapacity", &problem));
            }
        };
        match response.mastership {
            None => {
                self.redirects = 0;
                Outcome::Answered(response)
            }
            Some(mastership) => match self.redirected(&asked, &mastership) {
                Ok(()) => Outcome::Redirected,
                Err(failure) => Outcome::Failed(failure),
            },
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

    /// Makes a channel to a master if there is none.
    pub(crate) async fn connect(&mut self) -> Result<(), Failure> {
        self.connected().await.map(|_| ())
    }

    /// The present channel, made if there is none. A fresh one is first asked who the master is; a
    /// server too old to say is taken for it.
    async fn connected(&mut self) -> Result<(CapacityClient<Channel>, Asked), Failure> {
        loop {
            if let Some(connected) = &self.channel {
                return Ok(connected.clone());
            }
            let was_named = self.redirect.is_some();
            let address = match self.redirect.take() {
                Some(address) => address,
                None => self.addresses.next().await.map_err(|problem| Failure {
                    problem: visible::line(&problem).into_owned(),
                    reason: Reason::OutOfReach,
                })?,
            };
            let asked = Asked {
                name: address.name.clone(),
                was_named,
            };
            let mut client = CapacityClient::new(address.endpoint.connect_lazy())
                .max_decoding_message_size(ANSWER_BYTES_MAX);
            let question = client.discovery(doorman::DiscoveryRequest {});
            let mastership = match tokio::time::timeout(self.timeout, question).await {
                Ok(Ok(answer)) => {
                    let answer = answer.into_inner();
                    if !answer.is_master {
                        self.redirected(&asked, &answer.mastership)?;
                        continue;
                    }
                    answer.mastership
                }
                Ok(Err(status)) if status.code() == tonic::Code::Unimplemented => {
                    doorman::Mastership::default()
                }
                Ok(Err(status)) => {
                    let Some(retry_in) = pushback(&status) else {
                        return Err(self.failed(&asked, "Discovery", &described(&status)));
                    };
                    // It is there: it is asked again, where it was named or when its turn was.
                    self.redirect = was_named.then_some(address);
                    return Err(overloaded(&asked, "Discovery", &status, retry_in));
                }
                Err(_) => return Err(self.failed(&asked, "Discovery", &"no answer in time")),
            };
            self.heed_epoch(&asked, "Discovery", &mastership)?;
            info!(
                server = asked.name,
                epoch = self.epochs.newest(),
                "connected"
            );
            self.addresses.settle();
            self.channel = Some((client, asked));
        }
    }

    /// The server says that it is not the master: goes where it says, at once.
    fn redirected(
        &mut self,
        asked: &Asked,
        mastership: &doorman::Mastership,
    ) -> Result<(), Failure> {
        self.channel = None;
        self.heed_epoch(asked, "redirect", mastership)?;
        let master = mastership.master_address.as_deref();
        let Some(master) = master.filter(|address| !address.is_empty()) else {
            let problem = "it is not the master and knows of none";
            return Err(self.leave(asked, "redirect", &problem, true));
        };
        self.redirects += 1;
        if self.redirects > REDIRECTS_MAX {
            self.redirects = 0;
            let problem = format!(
                "{REDIRECTS_MAX} redirects in a row, the last to {}",
                visible::cut(master)
            );
            return Err(self.failed(asked, "redirect", &problem));
        }
        match Address::parse(master, self.timeout) {
            Ok(address) => {
                debug!(master = address.name, "redirected");
                self.redirect = Some(address);
                Ok(())
            }
            Err(error) => Err(self.failed(asked, "redirect", &error)),
        }
    }

    /// Who has seen an epoch does not go back to an older one, while a lease is valid.
    fn heed_epoch(
        &mut self,
        asked: &Asked,
        what: &str,
        mastership: &doorman::Mastership,
    ) -> Result<(), Failure> {
        // Without one there is no election: nothing to compare.
        let Some(epoch) = mastership.epoch else {
            return Ok(());
        };
        let (clock, leases_end) = (self.clock, self.leases_end);
        let leases_last = || leases_end.map_or(Duration::ZERO, |end| end.since(clock.now()));
        match self.epochs.heed(epoch, leases_last) {
            Ok(None) => Ok(()),
            Ok(Some(forgotten)) => {
                warn!(
                    server = asked.name,
                    epoch,
                    forgotten,
                    "the node's masterships have begun again: was etcd wiped, or restored?"
                );
                self.hooks.mastership_forgotten(forgotten, epoch);
                Ok(())
            }
            // It ends, or that lease does: as soon as during an election.
            Err(problem) => Err(self.leave(asked, what, &problem, true)),
        }
    }

    /// Something failed at a server: next time, the next address. A master that another server
    /// named, and that cannot be asked, is about to have a successor.
    fn failed(&mut self, asked: &Asked, what: &str, problem: &dyn Display) -> Failure {
        self.leave(asked, what, problem, asked.was_named)
    }

    fn leave(
        &mut self,
        asked: &Asked,
        what: &str,
        problem: &dyn Display,
        is_masterless: bool,
    ) -> Failure {
        self.channel = None;
        self.redirect = None;
        // Where it leads next time, may be somewhere else.
        self.redirects = 0;
        self.addresses.leave(is_masterless);
        let problem = format!("{what} at {}: {problem}", asked.name);
        let problem = visible::line(&problem).into_owned();
        debug!(problem, "call failed");
        let reason = if is_masterless {
            Reason::Masterless
        } else {
            Reason::OutOfReach
        };
        Failure { problem, reason }
    }
}

/// A server is too busy. It is not left for that: the next one is no master.
fn overloaded(asked: &Asked, what: &str, status: &tonic::Status, retry_in: Duration) -> Failure {
    let said = described(status);
    let problem = format!(
        "{what} at {}: overloaded, to be asked again in {retry_in:?}: {said}",
        asked.name
    );
    debug!(problem, "call turned away");
    Failure {
        problem,
        reason: Reason::Overloaded(retry_in),
    }
}

/// What a status says, with its innermost cause: "connection refused" stands there. Both may be a
/// server's words.
fn described(status: &tonic::Status) -> String {
    let causes = std::iter::successors(status.source(), |&error| error.source());
    let message = visible::cut(status.message());
    match causes.last().map(ToString::to_string) {
        Some(cause) if !status.message().contains(&cause) => {
            format!("{message} ({})", visible::cut(&cause))
        }
        _ => message.into_owned(),
    }
}
