//! Single calls to the master of a node: finds its servers, tries them in turn and follows redirects.

use std::error::Error;
use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use doorward_client::visible;
use doorward_etcd::address::{self, NodeAddress, Place};
use doorward_etcd::directory;
use doorward_etcd::error::innermost;
use doorward_proto::admin::v1 as admin;
use doorward_proto::admin::v1::admin_client::AdminClient;
use doorward_proto::doorman;
use doorward_proto::doorman::capacity_client::CapacityClient;
use tonic::transport::{Channel, Endpoint};

use crate::failure::Failure;
use crate::flags::Common;
use crate::nodes::hurried;

/// The longest address of a master, in bytes.
const ADDRESS_BYTES_MAX: usize = 300;

/// The largest answer, in bytes. Only a status may be larger.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Redirects that are followed.
const REDIRECTS_MAX: usize = 5;

/// Calls the servers of a node.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// Given one by one.
    addresses: Vec<String>,
    /// The node in etcd whose servers come before them.
    node: Option<Place>,
    timeout: Duration,
}

/// Why an address gave no answer.
enum Miss {
    /// Nothing of use was heard from it: the next address may do better.
    Silent(String),
    /// It answered, and knows of no master: the next address may.
    Masterless(String),
    /// The answer is no, and would be elsewhere.
    Final(Failure),
}

/// An answer that may say that somebody else is the master.
trait Answer {
    fn mastership(&self) -> Option<&doorman::Mastership>;
}

impl Answer for doorman::GetCapacityResponse {
    fn mastership(&self) -> Option<&doorman::Mastership> {
        self.mastership.as_ref()
    }
}

impl Answer for doorman::ReleaseCapacityResponse {
    fn mastership(&self) -> Option<&doorman::Mastership> {
        self.mastership.as_ref()
    }
}

impl Answer for doorman::DiscoveryResponse {
    fn mastership(&self) -> Option<&doorman::Mastership> {
        None
    }
}

impl Answer for admin::GetStatusResponse {
    fn mastership(&self) -> Option<&doorman::Mastership> {
        None
    }
}

impl Caller {
    pub(crate) fn new(common: &Common) -> Result<Self, Failure> {
        let mut addresses = Vec::new();
        let mut node = None;
        for text in common.addresses() {
            if address::is_meant(&text) {
                let etcd = common.etcd()?;
                let place = NodeAddress::parse(&text).and_then(|node| node.place(etcd.as_ref()));
                let place = place.map_err(|error| Failure::Usage(error.to_string()))?;
                let place = Place {
                    etcd: hurried(place.etcd, common.timeout),
                    ..place
                };
                if node.replace(place).is_some() {
                    let problem = "--server names more than one node in etcd; give one";
                    return Err(Failure::Usage(problem.to_owned()));
                }
            } else {
                endpoint(&text)?;
                addresses.push(text);
            }
        }
        if addresses.is_empty() && node.is_none() {
            return Err(Failure::Usage(
                "no server is given; see --server".to_owned(),
            ));
        }
        Ok(Self {
            addresses,
            node,
            timeout: common.timeout,
        })
    }

    /// Where to ask, in that order.
    async fn servers(&self) -> Result<Vec<String>, Failure> {
        let Some(node) = &self.node else {
            return Ok(self.addresses.clone());
        };
        let keys = node.keys();
        let resolved = directory::resolve(&node.etcd.config, &keys);
        let found = match tokio::time::timeout(self.timeout, resolved).await {
            Ok(Ok(servers)) => Ok(servers.addresses()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("etcd did not answer within {:?}", self.timeout)),
        };
        let problem = match found {
            Ok(mut servers) if !servers.is_empty() => {
                servers.extend(self.addresses.iter().cloned());
                return Ok(servers);
            }
            Ok(_) => format!("no server of {node} is there; see doorward nodes"),
            Err(problem) => problem,
        };
        if self.addresses.is_empty() {
            Err(Failure::Unreachable(problem))
        } else {
            Ok(self.addresses.clone())
        }
    }

    pub(crate) async fn get(
        &self,
        request: doorman::GetCapacityRequest,
    ) -> Result<doorman::GetCapacityResponse, Failure> {
        self.call(|channel| {
            let request = request.clone();
            async move { capacity(channel).get_capacity(request).await }
        })
        .await
    }

    pub(crate) async fn release(
        &self,
        request: doorman::ReleaseCapacityRequest,
    ) -> Result<doorman::ReleaseCapacityResponse, Failure> {
        let call = self.call(|channel| {
            let request = request.clone();
            async move { capacity(channel).release_capacity(request).await }
        });
        call.await
    }

    pub(crate) async fn discover(&self) -> Result<doorman::DiscoveryResponse, Failure> {
        self.call(|channel| async move {
            capacity(channel)
                .discovery(doorman::DiscoveryRequest {})
                .await
        })
        .await
    }

    /// What a server holds: the master, or else whoever answers; with `here` whoever answers.
    pub(crate) async fn status(
        &self,
        request: admin::GetStatusRequest,
        here: bool,
    ) -> Result<admin::GetStatusResponse, Failure> {
        let ask = |channel: Channel| {
            let request = request.clone();
            async move { AdminClient::new(channel).get_status(request).await }
        };
        let answer = self.call(ask).await?;
        if here || answer.is_master || answer.master_address.is_empty() {
            return Ok(answer);
        }
        let master = &answer.master_address;
        self.call_at(master, &ask).await.map_err(|miss| match miss {
            Miss::Silent(problem) | Miss::Masterless(problem) => Failure::Unreachable(format!(
                "the master does not answer: {problem}. --here shows the server that was asked"
            )),
            Miss::Final(failure) => failure,
        })
    }

    /// Asks one address after the other until one answers, and follows it to the master.
    async fn call<T, F>(&self, ask: impl Fn(Channel) -> F) -> Result<T, Failure>
    where
        T: Answer,
        F: Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    {
        let mut problems = Vec::new();
        let mut advice = "Try again once there is one";
        for address in &self.servers().await? {
            match self.call_at(address, &ask).await {
                Ok(answer) => return Ok(answer),
                Err(Miss::Silent(problem)) => {
                    problems.push(problem);
                    advice = "Is a server running there? --server says where to look";
                }
                Err(Miss::Masterless(problem)) => problems.push(problem),
                Err(Miss::Final(failure)) => return Err(failure),
            }
        }
        let problems = problems.join("; ");
        Err(Failure::Unreachable(format!("{problems}. {advice}")))
    }

    async fn call_at<T, F>(&self, first: &str, ask: &impl Fn(Channel) -> F) -> Result<T, Miss>
    where
        T: Answer,
        F: Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    {
        let mut address = first.to_owned();
        let first = visible::line(first);
        let mut name = first.clone().into_owned();
        for _redirect in 0..=REDIRECTS_MAX {
            // Those from the flags were looked at before: only a redirect can be wrong here.
            let endpoint = endpoint(&address)
                .map_err(|failure| Miss::Silent(format!("{first} sends on, but {failure}")))?;
            let channel = endpoint.connect_timeout(self.timeout).connect_lazy();
            let answer = match tokio::time::timeout(self.timeout, ask(channel)).await {
                Err(_) => {
                    let problem = format!("{name} did not answer within {:?}", self.timeout);
                    return Err(Miss::Silent(problem));
                }
                Ok(Err(status)) => return Err(miss_of(&name, &status)),
                Ok(Ok(answer)) => answer.into_inner(),
            };
            match answer.mastership() {
                None => return Ok(answer),
                Some(mastership) => match mastership.master_address.as_deref() {
                    Some(master) if !master.is_empty() => {
                        if master.len() > ADDRESS_BYTES_MAX {
                            let problem = format!("{name} names a master with no address");
                            return Err(Miss::Silent(problem));
                        }
                        name = format!(
                            "{} (the master, says {})",
                            visible::line(master),
                            visible::line(&address)
                        );
                        address = master.to_owned();
                    }
                    _ => {
                        let problem = format!("{name} is not the master and knows of none");
                        return Err(Miss::Masterless(problem));
                    }
                },
            }
        }
        Err(Miss::Silent(format!(
            "{first} leads nowhere: more than {REDIRECTS_MAX} redirects, the last to {}",
            visible::line(&address)
        )))
    }
}

fn capacity(channel: Channel) -> CapacityClient<Channel> {
    CapacityClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX)
}

/// What an error of a call means: whether the server said no, or did not say anything.
fn miss_of(name: &str, status: &tonic::Status) -> Miss {
    use tonic::Code;

    let message = visible::cut(status.message());
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
            let problem = status
                .source()
                .map(innermost)
                .unwrap_or_else(|| message.into_owned());
            Miss::Silent(format!("{name}: {}", visible::cut(&problem)))
        }
    }
}

fn endpoint(address: &str) -> Result<Endpoint, Failure> {
    let uri = if address.contains("://") {
        address.to_owned()
    } else {
        format!("http://{address}")
    };
    let bad = |problem: &str| {
        Failure::Usage(format!(
            "{address:?} is no server address: {problem}; give host:port"
        ))
    };
    let endpoint = Endpoint::from_shared(uri).map_err(|error| bad(&error.to_string()))?;
    match (endpoint.uri().scheme_str(), endpoint.uri().port()) {
        (Some("http"), Some(_)) => Ok(endpoint),
        (Some("http"), None) => Err(bad("it has no port")),
        _ => Err(bad("only http is spoken")),
    }
}

/// The wall clock since the Unix epoch: for sequences, new client ids, and timestamps.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of the command line that may"
)]
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// A number above that of all requests sent before by this client id.
pub(crate) fn sequence() -> u64 {
    u64::try_from(since_epoch().as_micros()).unwrap_or(0)
}

/// Which process this is towards servers: 64 random bits, not all 0.
pub(crate) fn incarnation() -> u64 {
    rand::random::<u64>().max(1)
}

/// An id that nobody else has.
pub(crate) fn new_client_id() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| "doorward".to_owned());
    let user: String = user.chars().filter(|c| !c.is_control()).take(100).collect();
    format!("{user}-{}-{:x}", std::process::id(), sequence())
}

/// The lease on a resource in an answer, or why there is none.
pub(crate) fn lease_on<'a>(
    response: &'a doorman::GetCapacityResponse,
    resource: &str,
) -> Result<&'a doorman::ResourceResponse, Failure> {
    if let Some(answer) = response.response.iter().find(|r| r.resource_id == resource) {
        return Ok(answer);
    }
    let refusal = response
        .refused
        .iter()
        .find(|r| r.resource_id() == resource);
    let message = refusal.map_or("the server has no template for it", |r| r.message());
    let message = visible::cut(message);
    Err(Failure::No(format!("{resource}: {message}")))
}

/// How long a lease lasts and when to refresh it, whichever way the server says so.
pub(crate) fn spans(lease: &doorman::Lease) -> (Duration, Duration) {
    let seconds = |seconds: i64| Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let expires_in = match lease.expires_in_ms {
        Some(millis) => Duration::from_millis(millis),
        None => seconds(lease.expiry_time).saturating_sub(since_epoch()),
    };
    let refresh_in = match lease.refresh_in_ms {
        Some(millis) => Duration::from_millis(millis),
        None => seconds(lease.refresh_interval),
    };
    (expires_in, refresh_in)
}
