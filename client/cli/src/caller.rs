//! Single calls to the master of a node: each known server is asked once, and whom it leads to.
//!
//! If several addresses are known, the first one that answers a Discovery is asked first. So a server that hangs delays
//! a call by a second, and no request that changes something goes to two servers at a time.

pub(crate) mod instances;
pub(crate) mod named_servers;
mod status_pages;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use doorward_etcd::address::{self, EtcdNode};
use doorward_etcd::directory;
use doorward_etcd::error::innermost;
use doorward_proto::admin::v1::plans_client::PlansClient;
use doorward_proto::admin::v1::{PlanRequest, PlanResponse};
use doorward_proto::doorman;
use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_session::address::{Address, ipv6_advice};
use doorward_session::master_finder::{DeadEndReason, MasterFinder};
use doorward_session::race::{self, HEAD_START};
use doorward_session::visible;
use doorward_tls::dialer::{Dialed as Channel, Dialer};
use doorward_tls::http_port;
use tokio::time::{Instant, timeout};
use tonic::transport::Endpoint;

use crate::common::Common;
use crate::failure::{Failure, Result};

/// The largest answer, in bytes. Only a status or a plan may be larger.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// The largest page of a status or of a plan, in bytes. A plan has a mebibyte, and then the rest of a resource.
const LOOK_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Time for a connection, however long the answer may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Time for which a busy server is asked again, in times the wait for an answer: it spends a limited time a second on
/// looks, and says when to come back.
const PATIENCE: u32 = 6;

/// Calls the servers of a node.
#[derive(Clone, Debug)]
pub(crate) struct MasterCaller {
    /// Given one by one.
    addresses: Arc<[Address]>,
    /// The node in etcd whose servers come before them.
    node: Option<EtcdNode>,
    dialer: Dialer,
    timeout: Duration,
    /// Whether another server named the address.
    is_claimed: bool,
}

/// Answer of a server to a call.
type Answer<T> = Result<tonic::Response<T>, tonic::Status>;

/// Why an address gave no answer.
enum Miss {
    /// Nothing of use was heard from it: the next address may do better.
    Silent(String),
    /// It answered, and names a master that does not answer: the next address may name another.
    Misled(String),
    /// It answered, and knows of no master: the next address may.
    Masterless(String),
    /// The answer is no, and would be elsewhere.
    Final(Failure),
}

impl From<Miss> for Failure {
    fn from(miss: Miss) -> Self {
        match miss {
            Miss::Silent(problem) | Miss::Misled(problem) | Miss::Masterless(problem) => {
                Self::Unreachable(problem)
            }
            Miss::Final(failure) => failure,
        }
    }
}

impl MasterCaller {
    pub(crate) fn new(common: &Common) -> Result<Self> {
        let dialer = Dialer::new(common.tls()?);
        let mut addresses = Vec::new();
        let mut node = None;
        for text in common.addresses() {
            if address::is_meant(&text) {
                if node.replace(common.node(&text)?).is_some() {
                    let problem = "--server names more than one node in etcd; give one";
                    return Err(Failure::Usage(problem.to_owned()));
                }
            } else {
                addresses.push(parse_given(&text, dialer.is_tls())?);
            }
        }
        if addresses.is_empty() && node.is_none() {
            return Err(Failure::Usage(
                "no server is given; see --server".to_owned(),
            ));
        }
        Ok(Self {
            addresses: addresses.into(),
            node,
            dialer,
            timeout: common.timeout,
            is_claimed: false,
        })
    }

    /// Returns a caller of a server that another one named. It has our certificate, but sends no token, which the
    /// server could use elsewhere.
    pub(crate) fn claimed(&self, address: &str) -> Result<Self> {
        Ok(Self {
            addresses: Arc::new([parse(address)?]),
            node: None,
            dialer: self.dialer.clone().without_token(),
            timeout: self.timeout,
            is_claimed: true,
        })
    }

    /// Where to ask, in that order.
    async fn servers(&self) -> Result<Arc<[Address]>> {
        let Some(node) = &self.node else {
            return Ok(Arc::clone(&self.addresses));
        };
        let keys = node.keys();
        let resolved = directory::resolve(&node.etcd.config, &keys);
        let problem = match timeout(self.timeout, resolved).await {
            Ok(Ok(servers)) if !servers.addresses(&[]).is_empty() => {
                return Ok(servers.addresses(&self.addresses));
            }
            Ok(Ok(_)) => format!("no server of {node} is there; see doorward nodes"),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("etcd did not answer within {:?}", self.timeout),
        };
        if self.addresses.is_empty() {
            Err(Failure::Unreachable(problem))
        } else {
            Ok(Arc::clone(&self.addresses))
        }
    }

    pub(crate) async fn get(
        &self,
        request: doorman::GetCapacityRequest,
    ) -> Result<doorman::GetCapacityResponse> {
        let ask = async |channel| capacity(channel).get_capacity(request.clone()).await;
        self.call(ask, |answer| answer.mastership.clone()).await
    }

    /// Releases what a client has of resources. This is not a process of the client, so the release concerns the newest
    /// one.
    pub(crate) async fn release(
        &self,
        client: &str,
        resources: &[String],
    ) -> Result<doorman::ReleaseCapacityResponse> {
        let request = doorman::ReleaseCapacityRequest {
            client_id: client.to_owned(),
            resource_id: resources.to_vec(),
            sequence: Some(sequence()),
            ..doorman::ReleaseCapacityRequest::default()
        };
        let ask = async |channel| capacity(channel).release_capacity(request.clone()).await;
        self.call(ask, |answer| answer.mastership.clone()).await
    }

    /// Asks the master what a change would give each holder.
    pub(crate) async fn plan(&self, request: &PlanRequest) -> Result<PlanResponse> {
        let ask = async |channel| {
            let mut plans = PlansClient::new(channel).max_decoding_message_size(LOOK_BYTES_MAX);
            plans.plan(request.clone()).await
        };
        let master = |answer: &PlanResponse| named(answer.master_address.clone());
        self.call(ask, master).await
    }

    /// Asks one address after the other until one answers, and follows it to the master.
    pub(crate) async fn call<T>(
        &self,
        ask: impl AsyncFn(Channel) -> Answer<T>,
        mastership: impl Fn(&T) -> Option<doorman::Mastership>,
    ) -> Result<T> {
        let servers = self.servers().await?;
        let mut finder = MasterFinder::new(Arc::clone(&servers));
        let mut problems = self.begin_with_first_answer(&mut finder).await;
        let (mut is_silent, mut is_misled) = (!problems.is_empty(), false);
        let turns = if is_silent { 0 } else { servers.len().max(1) };
        for _turn in 0..turns {
            let miss = match self.call_in_turn(&mut finder, &ask, &mastership).await {
                Ok(answer) => return Ok(answer),
                Err(Miss::Final(failure)) => return Err(failure),
                Err(miss) => miss,
            };
            is_silent |= matches!(miss, Miss::Silent(_));
            is_misled |= matches!(miss, Miss::Misled(_));
            problems.push(Failure::from(miss).to_string());
        }
        let problems = problems.join("; ");
        if self.is_claimed {
            return Err(Failure::Unreachable(problems));
        }
        let advice = match is_silent {
            false if is_misled => {
                "Try again once it does; doorward status --here shows the server that was asked"
                    .to_owned()
            }
            false => "Try again once there is one".to_owned(),
            true if self.dialer.is_tls() => {
                "Does a server run there, with a certificate that --ca has signed? --server says where to look"
                    .to_owned()
            }
            true => http_port::advice(servers.iter()).await.unwrap_or_else(|| {
                "Is a server running there? --server says where to look".to_owned()
            }),
        };
        // A problem may end with a question.
        let problems = problems.trim_end_matches('?');
        Err(Failure::Unreachable(format!("{problems}. {advice}")))
    }

    /// Gives the turn to the first of several servers that answers. Returns the problem of each if none answers.
    async fn begin_with_first_answer(&self, finder: &mut MasterFinder) -> Vec<String> {
        if finder.others() == 0 {
            return Vec::new();
        }
        let attempts = finder.known().iter().map(|it| self.discover(it));
        match race::first_success(attempts, || tokio::time::sleep(HEAD_START)).await {
            Ok(first) => {
                finder.handle_rival(&first);
                Vec::new()
            }
            Err(problems) => problems,
        }
    }

    /// Returns the address if its server answers.
    async fn discover(&self, address: &Address) -> Result<Address, String> {
        let request = doorman::DiscoveryRequest {};
        let discovery = async |channel| capacity(channel).discovery(request).await;
        match self.ask_once(address, address.as_str(), &discovery).await {
            Err(Miss::Silent(problem)) => Err(problem),
            // A refusal is an answer, too.
            _ => Ok(address.clone()),
        }
    }

    /// Asks the address whose turn it is, and whom it leads to.
    async fn call_in_turn<T>(
        &self,
        finder: &mut MasterFinder,
        ask: &impl AsyncFn(Channel) -> Answer<T>,
        mastership: &impl Fn(&T) -> Option<doorman::Mastership>,
    ) -> Result<T, Miss> {
        let mut named_by: Option<Address> = None;
        loop {
            let Some(address) = finder.target() else {
                return Err(Miss::Silent("no address is known".to_owned()));
            };
            let name = match &named_by {
                Some(by) => format!("{address} (the master, says {by})"),
                None => address.to_string(),
            };
            let asked = self.ask_once(&address, &name, ask).await;
            let asked = asked.inspect_err(|_| _ = finder.handle_failure());
            let answer = asked.map_err(|miss| match miss {
                Miss::Silent(problem) if named_by.is_some() => Miss::Misled(problem),
                other => other,
            })?;
            let Some(mastership) = mastership(&answer) else {
                return Ok(answer);
            };
            let (master, epoch) = (mastership.master_address.as_deref(), mastership.epoch);
            // A single request has no lease that a newer epoch could have granted.
            match finder.handle_redirect(master, epoch, Duration::ZERO) {
                Ok(_) => named_by = Some(address),
                Err(lost) if lost.why == DeadEndReason::NoMaster => {
                    return Err(Miss::Masterless(format!("{name}: {lost}")));
                }
                Err(lost) => return Err(Miss::Silent(format!("{name}: {lost}"))),
            }
        }
    }

    async fn ask_once<T>(
        &self,
        address: &Address,
        name: &str,
        ask: &impl AsyncFn(Channel) -> Answer<T>,
    ) -> Result<T, Miss> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|error| Miss::Silent(format!("{name}: {error}")))?;
        let endpoint = endpoint.connect_timeout(self.timeout.min(CONNECT_MAX));
        let channel = self.dialer.channel(&endpoint);
        let until = Instant::now() + self.timeout.saturating_mul(PATIENCE);
        loop {
            let status = match timeout(self.timeout, ask(channel.clone())).await {
                Ok(Ok(answer)) => return Ok(answer.into_inner()),
                Ok(Err(status)) => status,
                Err(_) => {
                    let problem = format!("{name} did not answer within {:?}", self.timeout);
                    return Err(Miss::Silent(problem));
                }
            };
            if let Some(wait) = pushback(&status).filter(|wait| Instant::now() + *wait < until) {
                tokio::time::sleep(wait).await;
                continue;
            }
            return Err(match self.dialer.refusal() {
                Some(alert) if status.source().is_some() => Miss::Final(Failure::No(format!(
                    "{name} refuses our certificate: {alert}"
                ))),
                _ => miss_of(name, &status),
            });
        }
    }
}

/// When a server that has too much to do wants to be asked again.
fn pushback(status: &tonic::Status) -> Option<Duration> {
    let wait = status.metadata().get("grpc-retry-pushback-ms")?;
    wait.to_str().ok()?.parse().ok().map(Duration::from_millis)
}

/// Returns the mastership in an answer of the admin service, which names the master if that is another server.
fn named(master_address: Option<String>) -> Option<doorman::Mastership> {
    master_address.map(|address| doorman::Mastership {
        master_address: Some(address),
        epoch: None,
    })
}

fn capacity(channel: Channel) -> CapacityClient<Channel> {
    CapacityClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX)
}

/// Returns the failure for an error of a call: the server refused, or did not answer.
fn miss_of(name: &str, status: &tonic::Status) -> Miss {
    use tonic::Code;

    let message = visible::cut(status.message());
    if status.code() == Code::PermissionDenied
        && let Some(refused) = status.source().map(innermost)
    {
        // The connection was refused, and not the call.
        return Miss::Final(Failure::No(format!("{name}: {}", visible::cut(&refused))));
    }
    match status.code() {
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::OutOfRange => Miss::Final(Failure::No(format!("{name} says: {message}"))),
        Code::Unimplemented => Miss::Final(Failure::No(format!(
            "{name} does not know this call; it may be an older server, or no Doorward server"
        ))),
        _ => {
            let source = status.source().map(innermost);
            let problem = source.unwrap_or_else(|| message.into_owned());
            Miss::Silent(format!("{name}: {}", visible::cut(&problem)))
        }
    }
}

/// An address of a flag, with or without a scheme, which must fit the way to servers.
fn parse_given(text: &str, is_tls: bool) -> Result<Address> {
    let (scheme, address) = text.split_once("://").unwrap_or(("", text));
    let problem = match scheme {
        "https" if !is_tls => "https needs --ca",
        "http" if is_tls => "with --ca, connections use TLS; give https",
        "" | "http" | "https" => return parse(address.trim_end_matches('/')),
        _ => "only http and https are spoken",
    };
    Err(Failure::Usage(format!("{text:?}: {problem}")))
}

/// A server's address, `host:port`.
fn parse(text: &str) -> Result<Address> {
    match (ipv6_advice(text), Address::parse(text)) {
        (Some(advice), _) => Err(Failure::Usage(format!("{text:?}: {advice}"))),
        (None, Err(error)) => Err(Failure::Usage(format!(
            "the server address {text:?} {error}"
        ))),
        (None, Ok(address)) => Ok(address),
    }
}

/// A number above that of all requests sent before by this client id.
pub(crate) fn sequence() -> u64 {
    u64::try_from(doorward_clock::wall().as_micros()).unwrap_or(0)
}

/// Returns a unique client id.
pub(crate) fn new_client_id() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| "doorward".to_owned());
    let user: String = user.chars().filter(|c| !c.is_control()).take(100).collect();
    format!("{user}-{}-{:x}", std::process::id(), sequence())
}
