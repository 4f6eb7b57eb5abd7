//! Questions to single servers, and the proof that two of them never decide at the same time.
//!
//! A [`Watcher`] asks every candidate of a node again and again, on its own connections: for the master, for capacity,
//! and for the master again. A grant between two answers with the same epoch belongs to that epoch. A [`Record`] has
//! every answer, with the times of its request and its arrival.
//!
//! **What can be proven from outside.** A server decides at some time between the sending of a request and the arrival
//! of its answer. Suppose that a request is sent after an answer of a newer epoch arrived, and an older epoch grants
//! it. Then the older master decided after the newer one: a violation, whatever clocks say. In the other direction
//! nothing is proven, because an answer may travel for long. The answer "I am the master" counts as a grant, because a
//! grant would be given at that moment.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_proto::doorman::{
    DiscoveryRequest, GetCapacityRequest, GetServerCapacityRequest, GetServerCapacityResponse,
    Lease, Mastership, PriorityBandAggregate, ResourceRequest, ServerCapacityResourceRequest,
};
use doorward_proto::doorward::v1::capacity_stream_client::CapacityStreamClient;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

use crate::processes::PATIENCE;

/// A server's answer about the master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovered {
    /// Whether it is this server.
    pub is_master: bool,
    /// Address of the master.
    pub master: Option<String>,
    /// Its epoch.
    pub epoch: Option<u64>,
}

/// A server's answer to a request for capacity.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It decided on an amount of the resource. None: it refused.
    Grant(Option<f64>),
    /// It named another server, if it knows one.
    NotMaster(Option<String>),
}

impl Answer {
    /// Returns whether the server took itself for the master.
    pub fn is_grant(&self) -> bool {
        matches!(self, Self::Grant(_))
    }
}

/// A connection to one server, which is opened again when it breaks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Probe {
    channel: Channel,
    client: CapacityClient<Channel>,
}

impl Probe {
    /// Connects to a server, `host:port`.
    pub fn to(address: &str) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let endpoint = endpoint
            .connect_timeout(Duration::from_secs(1))
            .timeout(PATIENCE);
        let channel = endpoint.connect_lazy();
        Self {
            client: CapacityClient::new(channel.clone()),
            channel,
        }
    }

    /// Asks for the master.
    ///
    /// # Errors
    ///
    /// If there is no answer.
    pub async fn discover(&self) -> Result<Discovered, tonic::Status> {
        let answer = self.client.clone().discovery(DiscoveryRequest {}).await?;
        let answer = answer.into_inner();
        let Mastership {
            master_address,
            epoch,
        } = answer.mastership;
        Ok(Discovered {
            is_master: answer.is_master,
            master: master_address.filter(|address| !address.is_empty()),
            epoch,
        })
    }

    /// Asks for capacity, as a client that reports its lease.
    ///
    /// # Errors
    ///
    /// If there is no answer.
    pub async fn ask(
        &self,
        client: &str,
        resource: &str,
        wants: f64,
        has: Option<f64>,
    ) -> Result<Answer, tonic::Status> {
        let request = GetCapacityRequest {
            incarnation: None,
            client_id: client.to_owned(),
            resource: vec![ResourceRequest {
                budget: None,
                resource_id: resource.to_owned(),
                priority: 0,
                has: has.map(lease),
                wants,
            }],
            sequence: None,
        };
        let answer = self.client.clone().get_capacity(request).await?;
        let answer = answer.into_inner();
        let granted = answer.response.first().map(|given| given.gets.capacity);
        Ok(read(answer.mastership, granted))
    }

    /// Opens the stream of a child server, and sends its first message.
    pub async fn stream(&self, child: &str, resource: &str) -> Child {
        let (messages, outgoing) = mpsc::channel(1_000);
        let request = GetServerCapacityRequest {
            server_id: child.to_owned(),
            resource: vec![ServerCapacityResourceRequest {
                resource_id: resource.to_owned(),
                wants: vec![PriorityBandAggregate {
                    num_clients: 1,
                    wants: 1.0,
                    ..PriorityBandAggregate::default()
                }],
                ..ServerCapacityResourceRequest::default()
            }],
            ..GetServerCapacityRequest::default()
        };
        messages.send(request.clone()).await.unwrap();
        let mut client = CapacityStreamClient::new(self.channel.clone());
        let answers = client.stream_server_capacity(ReceiverStream::new(outgoing));
        Child {
            request,
            messages,
            answers: answers.await.unwrap().into_inner(),
        }
    }
}

/// A child server on a stream.
#[derive(Debug)]
pub struct Child {
    request: GetServerCapacityRequest,
    messages: mpsc::Sender<GetServerCapacityRequest>,
    answers: Streaming<GetServerCapacityResponse>,
}

impl Child {
    /// Sends its request again.
    pub async fn send(&self) {
        self.messages.send(self.request.clone()).await.unwrap();
    }

    /// Returns the next message. None: the stream has ended.
    pub async fn next(&mut self) -> Option<Answer> {
        let answer = tokio::time::timeout(PATIENCE, self.answers.message());
        let answer = answer.await.unwrap().ok().flatten()?;
        let granted = answer.response.first().map(|given| given.gets.capacity);
        Some(read(answer.mastership, granted))
    }
}

/// Returns a lease that lasts for a while.
fn lease(capacity: f64) -> Lease {
    Lease {
        granted_by: None,
        expiry_time: 0,
        refresh_interval: 1,
        capacity,
        expires_in_ms: Some(5_000),
        refresh_in_ms: None,
    }
}

fn read(mastership: Option<Mastership>, granted: Option<f64>) -> Answer {
    match mastership {
        Some(mastership) => {
            Answer::NotMaster(mastership.master_address.filter(|it| !it.is_empty()))
        }
        None => Answer::Grant(granted),
    }
}

/// Meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The server claims to be the master.
    Claim,
    /// The server grants.
    Grant,
    /// The server names another one.
    NotMaster,
}

/// An answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// Number of the server.
    pub server: usize,
    /// Mastership of the answer. None: none, or unknown.
    pub epoch: Option<u64>,
    /// Its meaning.
    pub shows: Shows,
    /// Time of the request.
    pub sent: Instant,
    /// Time of the answer.
    pub received: Instant,
}

impl fmt::Debug for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            server,
            epoch,
            shows,
            ..
        } = self;
        let (sent, received) = (self.sent.elapsed(), self.received.elapsed());
        write!(
            f,
            "{shows:?} of {server} by {epoch:?}, asked {sent:.3?} and received {received:.3?} ago"
        )
    }
}

/// All answers, in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Answers of different servers may be out of order.
    pub observations: Vec<Observation>,
}

impl Record {
    /// Checks that no answers prove two masters at the same time.
    ///
    /// # Errors
    ///
    /// The proof.
    pub fn check(&self) -> Result<(), String> {
        let by_master = |observation: &&Observation| {
            observation.shows != Shows::NotMaster && observation.epoch.is_some()
        };
        let mut by_arrival: Vec<&Observation> =
            self.observations.iter().filter(by_master).collect();
        let mut by_question = by_arrival.clone();
        by_arrival.sort_by_key(|observation| observation.received);
        by_question.sort_by_key(|observation| observation.sent);
        let mut arrived = by_arrival.into_iter().peekable();
        let mut newest: Option<&Observation> = None;
        for observation in by_question {
            while let Some(before) = arrived.next_if(|it| it.received <= observation.sent) {
                newest = newest.max_by_epoch(before);
            }
            let Some(newest) = newest else { continue };
            if observation.epoch < newest.epoch {
                return Err(format!("{observation:?}, and before it: {newest:?}"));
            }
            if observation.epoch == newest.epoch && observation.server != newest.server {
                return Err(format!(
                    "{observation:?}, and by the same epoch: {newest:?}"
                ));
            }
        }
        Ok(())
    }

    /// Returns the first grant that arrived after a moment, from any server but one.
    pub fn first_grant(&self, after: Instant, but: Option<usize>) -> Option<Observation> {
        let grants = self.observations.iter().filter(|observation| {
            observation.shows == Shows::Grant
                && observation.received > after
                && Some(observation.server) != but
        });
        grants
            .min_by_key(|observation| observation.received)
            .copied()
    }

    /// Returns all epochs of answers of a master.
    pub fn epochs(&self) -> BTreeSet<u64> {
        self.observations
            .iter()
            .filter_map(|observation| observation.epoch)
            .collect()
    }

    /// Returns an answer of a master to a request that was sent after a moment, if there is one.
    pub fn master_since(&self, after: Instant) -> Option<Observation> {
        let mut observation = self.observations.iter();
        observation
            .find(|observation| observation.shows != Shows::NotMaster && observation.sent > after)
            .copied()
    }
}

trait MaxByEpoch<'a> {
    fn max_by_epoch(self, other: &'a Observation) -> Self;
}

impl<'a> MaxByEpoch<'a> for Option<&'a Observation> {
    fn max_by_epoch(self, other: &'a Observation) -> Self {
        self.filter(|newest| newest.epoch >= other.epoch)
            .or(Some(other))
    }
}

/// A watcher that asks all servers of a node until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    record: Arc<Mutex<Record>>,
    _asking: JoinSet<()>,
}

/// Pause between two questions to a server.
const PAUSE: Duration = Duration::from_millis(3);

impl Watcher {
    /// Starts to ask for a resource.
    pub fn start(addresses: &[String], resource: &'static str) -> Self {
        let record = Arc::<Mutex<Record>>::default();
        let mut asking = JoinSet::new();
        for (server, address) in addresses.iter().enumerate() {
            let (probe, record) = (Probe::to(address), Arc::clone(&record));
            asking.spawn(async move {
                loop {
                    // Asks an unreachable server again.
                    let _ = watch(server, &probe, resource, &record).await;
                    tokio::time::sleep(PAUSE).await;
                }
            });
        }
        Self {
            record,
            _asking: asking,
        }
    }

    /// Reads the observations so far.
    pub fn read<T>(&self, look: impl FnOnce(&Record) -> T) -> T {
        look(&locked(&self.record))
    }

    /// Fails if two masters have decided at the same time.
    pub fn assert_one_master(&self, when: &str) {
        if let Err(proof) = self.read(Record::check) {
            panic!("{when}, two masters: {proof}");
        }
    }

    /// Waits for a grant observed after a moment, by any server but one.
    pub async fn grant(&self, after: Instant, but: Option<usize>) -> Observation {
        let mut looks = tokio::time::interval(Duration::from_millis(10));
        loop {
            looks.tick().await;
            if let Some(grant) = self.read(|record| record.first_grant(after, but)) {
                return grant;
            }
            assert!(after.elapsed() < PATIENCE, "no server grants");
        }
    }
}

fn locked(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks a server until it does not answer.
async fn watch(
    server: usize,
    probe: &Probe,
    resource: &str,
    record: &Mutex<Record>,
) -> Result<(), tonic::Status> {
    let client = format!("watcher-{server}");
    let (mut granted, mut before) = (None::<Observation>, None);
    loop {
        let sent = Instant::now();
        let discovered = probe.discover().await?;
        let epoch = discovered.epoch.filter(|_| discovered.is_master);
        let observation = Observation {
            server,
            epoch,
            shows: if discovered.is_master {
                Shows::Claim
            } else {
                Shows::NotMaster
            },
            sent,
            received: Instant::now(),
        };
        if let Some(granted) = granted.take() {
            // If the mastership is the same before and after, it was the same in between. If it had ended afterwards,
            // the answer belongs to the one before.
            let epoch = before.filter(|_| epoch.is_none() || epoch == before);
            locked(record)
                .observations
                .push(Observation { epoch, ..granted });
        }
        locked(record).observations.push(observation);
        before = epoch;
        let sent = Instant::now();
        let answer = probe.ask(&client, resource, 1.0, Some(1.0)).await?;
        let (shows, received) = (Shows::Grant, Instant::now());
        let observation = Observation {
            server,
            epoch: None,
            shows,
            sent,
            received,
        };
        if answer.is_grant() {
            granted = Some(observation);
        } else {
            let shows = Shows::NotMaster;
            locked(record).observations.push(Observation {
                shows,
                ..observation
            });
        }
        tokio::time::sleep(PAUSE).await;
    }
}
