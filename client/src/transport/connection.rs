//! The connection to the master: one channel at a time.
//!
//! The [`MasterFinder`] decides which server to ask, and the effect of an answer or a failure on that. A failed channel
//! is dropped: a balancer over all addresses would keep the dead ones.

use std::error::Error;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use doorward_proto::doorman;
use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_session::address::Address;
use doorward_session::backoff::FailureKind;
use doorward_session::master_finder::{DeadEnd, MasterFinder};
use doorward_session::race::{self, HEAD_START};
use doorward_tls::dialer::{Dialed, Dialer};
use tracing::{debug, info, warn};

use crate::clock::Clock;
use crate::error::ConnectError;
use crate::hooks::Hooks;
use crate::time::Time;
#[cfg(feature = "etcd")]
use crate::transport::addresses::Directory;
use crate::transport::addresses::{Addresses, endpoint};
use crate::transport::pushback::pushback;
use crate::transport::stream::{ANSWER_BYTES_MAX, CapacityStream};
use doorward_session::visible;

/// Pushes that are kept while an answer is awaited.
const PUSHES_MAX: usize = 1_000;

/// A failed call.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Problem, for people.
    pub(crate) problem: String,
    pub(crate) reason: Reason,
}

/// Kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// There is no usable answer.
    Failed(FailureKind),
    /// A server is reachable but overloaded, and sends the time to wait.
    Overloaded(Duration),
}

/// A connection to one server at a time.
pub(crate) struct Connection {
    finder: MasterFinder,
    #[cfg(feature = "etcd")]
    directory: Option<Directory>,
    /// Channel to the finder's server, once that server has confirmed that it is the master.
    channel: Option<(Dialed, Address)>,
    /// Stream on that channel.
    stream: Option<Box<CapacityStream>>,
    /// Whether a stream was to be opened since that was last asked.
    has_opened: bool,
    /// Pushes that came before an answer.
    pushes: Vec<doorman::GetCapacityResponse>,
    /// End of the last lease.
    leases_end: Option<Time>,
    dialer: Dialer,
    clock: Clock,
    hooks: Arc<dyn Hooks>,
    timeout: Duration,
}

impl Connection {
    pub(crate) fn new(
        addresses: Addresses,
        dialer: Dialer,
        clock: Clock,
        hooks: Arc<dyn Hooks>,
        timeout: Duration,
    ) -> Self {
        Self {
            finder: MasterFinder::new(addresses.given),
            #[cfg(feature = "etcd")]
            directory: addresses.directory,
            channel: None,
            stream: None,
            has_opened: false,
            pushes: Vec::new(),
            leases_end: None,
            dialer,
            clock,
            hooks,
            timeout,
        }
    }

    /// Returns the known servers of the node.
    pub(crate) fn known(&self) -> &[Address] {
        self.finder.known()
    }

    /// Asks for capacity. `leases_end` is the end of the client's last lease. Returns the answer of a master. `None`: the
    /// server named another master; ask again at once.
    pub(crate) async fn get_capacity(
        &mut self,
        request: doorman::GetCapacityRequest,
        on_stream: bool,
        leases_end: Option<Time>,
    ) -> Result<Option<doorman::GetCapacityResponse>, Failure> {
        self.leases_end = leases_end;
        let (channel, asked) = self.connected().await?;
        let answer =
            tokio::time::timeout(self.timeout, self.ask(channel, request, on_stream)).await;
        let response = match answer {
            Ok(Ok(response)) => response,
            Ok(Err(status)) => return Err(self.refused(&asked, "GetCapacity", &status)),
            Err(_) => {
                let problem = format!("no answer within {:?}", self.timeout);
                return Err(self.failed(&asked, "GetCapacity", &problem));
            }
        };
        if let Some(mastership) = response.mastership {
            self.redirected(&asked, &mastership)?;
            return Ok(None);
        }
        self.finder.handle_answer();
        Ok(Some(response))
    }

    /// Asks on the stream, or by a call if there is none.
    async fn ask(
        &mut self,
        channel: Dialed,
        request: doorman::GetCapacityRequest,
        on_stream: bool,
    ) -> Result<doorman::GetCapacityResponse, tonic::Status> {
        let is_new = on_stream && self.stream.is_none();
        if is_new {
            self.has_opened = true;
            match CapacityStream::open(channel.clone(), request.clone()).await {
                Ok(stream) => self.stream = Some(Box::new(stream)),
                Err(status) => debug!(%status, "no stream; asking by calls"),
            }
        } else if let Some(stream) = &self.stream {
            stream.send(request.clone()).await?;
        }
        match self.answer(request.sequence).await {
            Some(Err(status)) if is_new => debug!(%status, "no stream; asking by calls"),
            Some(answer) => return answer,
            None => {}
        }
        #[cfg(feature = "otel")]
        let (request, _span) = crate::transport::otel::outgoing(request);
        let answer = client(channel).get_capacity(request).await?;
        Ok(answer.into_inner())
    }

    /// Waits on the stream for the answer to the request of that number. None: there is no stream.
    async fn answer(
        &mut self,
        sequence: Option<u64>,
    ) -> Option<Result<doorman::GetCapacityResponse, tonic::Status>> {
        let stream = self.stream.as_mut()?;
        loop {
            match stream.next().await {
                Ok(message) if message.sequence == sequence || message.mastership.is_some() => {
                    return Some(Ok(message));
                }
                Ok(push) if self.pushes.len() < PUSHES_MAX => self.pushes.push(push),
                Ok(_) => {}
                Err(status) => {
                    self.stream = None;
                    return Some(Err(status));
                }
            }
        }
    }

    /// Whether the server pushes changes.
    pub(crate) fn is_streaming(&self) -> bool {
        self.stream.is_some()
    }

    /// Returns whether a stream was to be opened since the last such call.
    pub(crate) fn take_opening(&mut self) -> bool {
        std::mem::take(&mut self.has_opened)
    }

    /// Takes the pushes that came before the last answer.
    pub(crate) fn take_pushes(&mut self) -> Vec<doorman::GetCapacityResponse> {
        std::mem::take(&mut self.pushes)
    }

    /// Waits for a change of leases that was not asked for. None: the stream broke. Cancel safe.
    pub(crate) async fn push(&mut self) -> Option<doorman::GetCapacityResponse> {
        let Some(stream) = &mut self.stream else {
            return std::future::pending().await;
        };
        let asked = self.channel.as_ref().map(|(_, asked)| asked.clone());
        match stream.next().await {
            Ok(message) => match (&message.mastership, asked) {
                (Some(mastership), Some(asked)) => {
                    let _not_followed = self.redirected(&asked, mastership);
                    None
                }
                _ => Some(message),
            },
            Err(status) => {
                debug!(%status, "the stream broke");
                self.disconnect();
                None
            }
        }
    }

    fn disconnect(&mut self) {
        self.channel = None;
        self.stream = None;
    }

    /// Releases capacity; best effort.
    pub(crate) async fn release(&mut self, request: doorman::ReleaseCapacityRequest) {
        // A release need not go to a new master, nor wait for one.
        if let Some((channel, _)) = &self.channel {
            let mut client = client(channel.clone());
            let release = client.release_capacity(request);
            let _answer = tokio::time::timeout(self.timeout, release).await;
        }
    }

    /// Returns the channel, and opens one if there is none. A new channel asks for the master first; a server that is
    /// too old for the question counts as the master.
    pub(crate) async fn connected(&mut self) -> Result<(Dialed, Address), Failure> {
        loop {
            if let Some(connected) = &self.channel {
                return Ok(connected.clone());
            }
            let asked = self.target().await?;
            let channel = match dial(&self.dialer, &asked, self.timeout) {
                Ok(channel) => channel,
                Err(error) => return Err(self.failed(&asked, "connecting", &error)),
            };
            let mut client = client(channel.clone());
            let question = client.discovery(doorman::DiscoveryRequest {});
            let (dialer, timeout) = (self.dialer.clone(), self.timeout);
            let rivals = self.finder.rivals().into_iter();
            let rivals = rivals.map(|rival| answers(dialer.clone(), rival, timeout));
            let answer = tokio::select! {
                biased;
                answer = tokio::time::timeout(timeout, question) => answer,
                rival = race::rival(rivals, || tokio::time::sleep(HEAD_START)) => {
                    debug!(server = asked.as_str(), %rival, "another server answers first");
                    self.finder.handle_rival(&rival);
                    continue;
                }
            };
            let epoch = match answer {
                Ok(Ok(answer)) => {
                    let answer = answer.into_inner();
                    if !answer.is_master {
                        self.redirected(&asked, &answer.mastership)?;
                        continue;
                    }
                    answer.mastership.epoch
                }
                Ok(Err(status)) if status.code() == tonic::Code::Unimplemented => None,
                Ok(Err(status)) => {
                    return Err(self.refused(&asked, "Discovery", &status));
                }
                Err(_) => return Err(self.failed(&asked, "Discovery", &"no answer in time")),
            };
            match self.finder.handle_master(epoch, self.leases_last()) {
                Ok(forgotten) => self.report_forgotten(&asked, forgotten),
                Err(lost) => return Err(self.leave(&asked, "Discovery", &lost, &lost)),
            }
            info!(
                server = asked.as_str(),
                epoch = self.finder.epoch(),
                "connected"
            );
            self.channel = Some((channel, asked));
        }
    }

    /// Returns the server to connect to. While etcd does not answer, its last list counts.
    async fn target(&mut self) -> Result<Address, Failure> {
        let looked = self.look_up().await;
        self.finder.target().ok_or_else(|| {
            let problem = looked.err();
            let problem = problem.unwrap_or_else(|| "no address is known".to_owned());
            Failure {
                problem: visible::line(&problem).into_owned(),
                reason: Reason::Failed(FailureKind::OutOfReach),
            }
        })
    }

    /// Reads the servers from etcd, if that is due.
    #[cfg(feature = "etcd")]
    async fn look_up(&mut self) -> Result<(), String> {
        match &self.directory {
            Some(directory) if self.finder.is_look_due() => {
                directory.look_up(&mut self.finder).await
            }
            _ => Ok(()),
        }
    }

    #[cfg(not(feature = "etcd"))]
    #[expect(clippy::unused_async, reason = "only etcd is waited for")]
    async fn look_up(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Follows the redirect of a server that is not the master, at once.
    fn redirected(
        &mut self,
        asked: &Address,
        mastership: &doorman::Mastership,
    ) -> Result<(), Failure> {
        self.disconnect();
        let (master, epoch) = (mastership.master_address.as_deref(), mastership.epoch);
        let leases_last = self.leases_last();
        match self.finder.handle_redirect(master, epoch, leases_last) {
            Ok(forgotten) => {
                debug!(master, "redirected");
                self.report_forgotten(asked, forgotten);
                Ok(())
            }
            Err(lost) => Err(self.leave(asked, "redirect", &lost, &lost)),
        }
    }

    /// Returns the remaining time of the last lease.
    fn leases_last(&self) -> Duration {
        let end = self.leases_end;
        end.map_or(Duration::ZERO, |end| end.since(self.clock.now()))
    }

    fn report_forgotten(&self, asked: &Address, forgotten: Option<u64>) {
        if let (Some(forgotten), Some(epoch)) = (forgotten, self.finder.epoch()) {
            warn!(
                server = asked.as_str(),
                epoch,
                forgotten,
                "the node's masterships have begun again: was etcd wiped, or restored?"
            );
            self.hooks.mastership_forgotten(forgotten, epoch);
        }
    }

    /// Returns the failure of a call that the server refused. The client stays with an overloaded one, because the next server
    /// is not the master.
    fn refused(&mut self, asked: &Address, what: &str, status: &tonic::Status) -> Failure {
        let said = described(status);
        let Some(retry_in) = pushback(status) else {
            return self.failed(asked, what, &said);
        };
        let problem = format!("{what} at {asked}: overloaded; retry in {retry_in:?}: {said}");
        debug!(problem, "call turned away");
        let reason = Reason::Overloaded(retry_in);
        Failure { problem, reason }
    }

    /// Records a failure at a server: the next attempt goes to the next one.
    fn failed(&mut self, asked: &Address, what: &str, problem: &dyn Display) -> Failure {
        let lost = self.finder.handle_failure();
        self.leave(asked, what, &lost, problem)
    }

    fn leave(
        &mut self,
        asked: &Address,
        what: &str,
        lost: &DeadEnd,
        problem: &dyn Display,
    ) -> Failure {
        self.disconnect();
        let mut problem = format!("{what} at {asked}: {problem}");
        if let Some(alert) = self.dialer.refusal() {
            problem += &format!("; the server refuses our certificate: {alert}");
        }
        let problem = visible::line(&problem).into_owned();
        debug!(problem, "call failed");
        let reason = Reason::Failed(lost.kind);
        Failure { problem, reason }
    }
}

fn dial(dialer: &Dialer, server: &Address, timeout: Duration) -> Result<Dialed, ConnectError> {
    Ok(dialer.channel(&endpoint(server, timeout)?))
}

fn client(channel: Dialed) -> CapacityClient<Dialed> {
    CapacityClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX)
}

/// Returns the address if its server knows the master, or is too old to say so.
async fn answers(dialer: Dialer, address: Address, timeout: Duration) -> Result<Address, ()> {
    let mut client = client(dial(&dialer, &address, timeout).map_err(drop)?);
    let question = client.discovery(doorman::DiscoveryRequest {});
    match tokio::time::timeout(timeout, question).await {
        Ok(Ok(answer)) if knows_master(answer.get_ref()) => Ok(address),
        Ok(Err(status)) if status.code() == tonic::Code::Unimplemented => Ok(address),
        _ => Err(()),
    }
}

fn knows_master(answer: &doorman::DiscoveryResponse) -> bool {
    answer.is_master || !answer.mastership.master_address().is_empty()
}

/// Returns the text of a status with its innermost cause, such as "connection refused". Both may come from a server.
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
