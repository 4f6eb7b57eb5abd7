//! A parent on a real socket that does as a test says, for behaviour that real servers do not show.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorward_proto::doorman;
use doorward_proto::doorman::capacity_server::{Capacity, CapacityServer};
use doorward_proto::doorward::v1::capacity_stream_server::{CapacityStream, CapacityStreamServer};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use crate::running::PATIENCE;

pub(crate) type Ask = doorman::GetServerCapacityRequest;
pub(crate) type Answer = Result<doorman::GetServerCapacityResponse, Status>;

/// Behaviour towards streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streams {
    Served,
    /// Answered with `UNIMPLEMENTED`.
    Unknown,
    /// Accepted, but not answered.
    Silent,
}

/// Way in which a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Call,
    Stream,
}

struct Behaviour {
    streams: Streams,
    /// None: the parent is so old that it does not know discovery.
    discovery: Option<doorman::DiscoveryResponse>,
    answer: Box<dyn FnMut(&Ask) -> Answer + Send>,
    /// The newest stream.
    open: Option<mpsc::Sender<Answer>>,
}

#[derive(Clone)]
struct Service {
    behaviour: Arc<Mutex<Behaviour>>,
    seen: mpsc::UnboundedSender<(Way, Ask)>,
    keeps_waiting: watch::Sender<bool>,
}

/// A running parent. It stops when dropped.
pub(crate) struct FakeParent {
    pub(crate) address: String,
    service: Service,
    seen: mpsc::UnboundedReceiver<(Way, Ask)>,
    _stop: oneshot::Sender<()>,
}

impl FakeParent {
    /// Starts a parent that grants every demand, up to 100.
    pub(crate) async fn start(streams: Streams) -> Self {
        Self::start_at("127.0.0.1:0", streams).await
    }

    pub(crate) async fn start_at(address: &str, streams: Streams) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, seen) = mpsc::unbounded_channel();
        let service = Service {
            behaviour: Arc::new(Mutex::new(Behaviour {
                streams,
                discovery: None,
                answer: Box::new(generous),
                open: None,
            })),
            seen: sender,
            keeps_waiting: watch::Sender::new(false),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tonic::transport::Server::builder()
            .add_service(CapacityServer::new(service.clone()))
            .add_service(CapacityStreamServer::new(service.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(async move {
            tokio::select! {
                _ = server => {}
                _ = stopped => {}
            }
        });
        Self {
            address,
            service,
            seen,
            _stop: stop,
        }
    }

    /// Sets the answer to all later requests.
    pub(crate) fn answer(&self, answer: impl FnMut(&Ask) -> Answer + Send + 'static) {
        self.service.behaviour.lock().unwrap().answer = Box::new(answer);
    }

    /// Sets the master that the parent reports, and its epoch. With the parent's own address, it reports itself.
    pub(crate) fn says_of_the_master(&self, address: Option<&str>, epoch: Option<u64>) {
        let discovery = doorman::DiscoveryResponse {
            is_master: address == Some(&self.address),
            mastership: doorman::Mastership {
                master_address: address.map(str::to_owned),
                epoch,
            },
        };
        self.service.behaviour.lock().unwrap().discovery = Some(discovery);
    }

    /// Sets whether all requests but greetings wait for their answer.
    pub(crate) fn keeps_waiting(&self, keeps_waiting: bool) {
        self.service.keeps_waiting.send_replace(keeps_waiting);
    }

    /// Sends an unasked message on the newest stream.
    pub(crate) async fn push(&self, answer: Answer) {
        let open = self.service.behaviour.lock().unwrap().open.clone();
        open.expect("a stream").send(answer).await.unwrap();
    }

    /// Stops the parent, and breaks the newest stream.
    pub(crate) async fn stop(self) {
        let open = self.service.behaviour.lock().unwrap().open.clone();
        drop(self);
        let broken = Err(Status::unavailable("it is gone"));
        open.expect("a stream").send(broken).await.unwrap();
    }

    /// Returns whether a child has a stream open.
    pub(crate) fn has_stream(&self) -> bool {
        let behaviour = self.service.behaviour.lock().unwrap();
        behaviour
            .open
            .as_ref()
            .is_some_and(|open| !open.is_closed())
    }

    /// Returns the next request, whatever it asks for.
    pub(crate) async fn next(&mut self) -> (Way, Ask) {
        let next = tokio::time::timeout(PATIENCE, self.seen.recv()).await;
        next.expect("a request").expect("it runs")
    }

    /// Returns the next request that asks for a resource.
    pub(crate) async fn next_ask(&mut self) -> (Way, Ask) {
        loop {
            let (way, ask) = self.next().await;
            if !ask.resource.is_empty() {
                return (way, ask);
            }
        }
    }

    /// Counts the requests for a resource since the last look, by their way.
    pub(crate) fn count_asks(&mut self) -> BTreeMap<&'static str, usize> {
        let mut count = BTreeMap::new();
        while let Ok((way, ask)) = self.seen.try_recv() {
            let way = match way {
                _ if ask.resource.is_empty() => "greetings",
                Way::Call => "calls",
                Way::Stream => "messages",
            };
            *count.entry(way).or_default() += 1;
        }
        count
    }
}

impl Service {
    async fn reply(&self, way: Way, ask: Ask) -> Answer {
        let is_greeting = ask.resource.is_empty();
        let answer = (self.behaviour.lock().unwrap().answer)(&ask);
        let _ = self.seen.send((way, ask));
        if !is_greeting {
            let mut keeps_waiting = self.keeps_waiting.subscribe();
            let over = keeps_waiting.wait_for(|it| !*it).await;
            over.expect("the sender is in `self`");
        }
        answer
    }
}

#[tonic::async_trait]
impl CapacityStream for Service {
    type StreamServerCapacityStream = Pin<Box<dyn Stream<Item = Answer> + Send>>;
    type StreamCapacityStream =
        Pin<Box<dyn Stream<Item = Result<doorman::GetCapacityResponse, Status>> + Send>>;

    async fn stream_capacity(
        &self,
        _: Request<Streaming<doorman::GetCapacityRequest>>,
    ) -> Result<Response<Self::StreamCapacityStream>, Status> {
        Err(Status::unimplemented("a parent without clients"))
    }

    async fn stream_server_capacity(
        &self,
        request: Request<Streaming<Ask>>,
    ) -> Result<Response<Self::StreamServerCapacityStream>, Status> {
        let mut requests = request.into_inner();
        let (sender, answers) = mpsc::channel(16);
        let streams = {
            let mut behaviour = self.behaviour.lock().unwrap();
            behaviour.open = Some(sender.clone());
            behaviour.streams
        };
        if streams == Streams::Unknown {
            return Err(Status::unimplemented("too old"));
        }
        let service = self.clone();
        tokio::spawn(async move {
            while let Some(Ok(ask)) = requests.next().await {
                if service.behaviour.lock().unwrap().streams == Streams::Silent {
                    let _ = service.seen.send((Way::Stream, ask));
                    continue;
                }
                let answer = service.reply(Way::Stream, ask).await;
                let ends = answer.is_err();
                if sender.send(answer).await.is_err() || ends {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(answers))))
    }
}

#[tonic::async_trait]
impl Capacity for Service {
    async fn get_server_capacity(
        &self,
        request: Request<Ask>,
    ) -> Result<Response<doorman::GetServerCapacityResponse>, Status> {
        let answer = self.reply(Way::Call, request.into_inner()).await;
        answer.map(Response::new)
    }

    async fn discovery(
        &self,
        _: Request<doorman::DiscoveryRequest>,
    ) -> Result<Response<doorman::DiscoveryResponse>, Status> {
        let discovery = self.behaviour.lock().unwrap().discovery.clone();
        let answer = discovery.map(Response::new);
        answer.ok_or_else(|| Status::unimplemented("too old"))
    }

    async fn get_capacity(
        &self,
        _: Request<doorman::GetCapacityRequest>,
    ) -> Result<Response<doorman::GetCapacityResponse>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn release_capacity(
        &self,
        _: Request<doorman::ReleaseCapacityRequest>,
    ) -> Result<Response<doorman::ReleaseCapacityResponse>, Status> {
        Err(Status::unimplemented("not here"))
    }
}

/// Grants every demand, up to 100.
pub(crate) fn generous(ask: &Ask) -> Answer {
    answer_each(ask, |asked| {
        asked
            .wants
            .iter()
            .map(|band| band.wants)
            .sum::<f64>()
            .min(100.0)
    })
}

/// Returns a lease of that capacity for each resource asked for.
pub(crate) fn answer_each(
    ask: &Ask,
    capacity: impl Fn(&doorman::ServerCapacityResourceRequest) -> f64,
) -> Answer {
    let lease = |asked| lease(ask, asked, capacity(asked));
    Ok(response(ask.resource.iter().map(lease).collect()))
}

pub(crate) fn response(
    response: Vec<doorman::ServerCapacityResourceResponse>,
) -> doorman::GetServerCapacityResponse {
    doorman::GetServerCapacityResponse {
        response,
        ancestor: vec!["root".to_owned()],
        ..doorman::GetServerCapacityResponse::default()
    }
}

/// Returns a lease of 60 s.
pub(crate) fn lease(
    ask: &Ask,
    asked: &doorman::ServerCapacityResourceRequest,
    capacity: f64,
) -> doorman::ServerCapacityResourceResponse {
    lease_for(Duration::from_secs(60), ask, asked, capacity)
}

/// Returns a lease of that length.
pub(crate) fn lease_for(
    lasts: Duration,
    ask: &Ask,
    asked: &doorman::ServerCapacityResourceRequest,
    capacity: f64,
) -> doorman::ServerCapacityResourceResponse {
    doorman::ServerCapacityResourceResponse {
        resource_id: asked.resource_id.clone(),
        gets: doorman::Lease {
            capacity,
            expires_in_ms: u64::try_from(lasts.as_millis()).ok(),
            refresh_in_ms: Some(20_000),
            ..doorman::Lease::default()
        },
        algorithm: Some(algorithm()),
        sequence: ask.sequence,
        ..doorman::ServerCapacityResourceResponse::default()
    }
}

fn algorithm() -> doorman::Algorithm {
    doorman::Algorithm {
        kind: doorman::algorithm::Kind::FairShare.into(),
        lease_length: 60,
        refresh_interval: 5,
        learning_mode_duration: Some(0),
        ..doorman::Algorithm::default()
    }
}

/// Refuses every resource asked for.
pub(crate) fn refuse(reason: doorman::refusal::Reason) -> impl Fn(&Ask) -> Answer {
    move |ask| {
        let refused = ask.resource.iter().map(|asked| doorman::Refusal {
            retry_in_ms: None,
            resource_id: Some(asked.resource_id.clone()),
            reason: Some(reason.into()),
            message: None,
        });
        Ok(doorman::GetServerCapacityResponse {
            refused: refused.collect(),
            ..response(Vec::new())
        })
    }
}

/// Answers that this server is not the master, and perhaps which server is.
pub(crate) fn redirect(master_address: Option<&str>) -> impl FnMut(&Ask) -> Answer + use<> {
    let mastership = doorman::Mastership {
        master_address: master_address.map(str::to_owned),
        epoch: None,
    };
    move |_| {
        Ok(doorman::GetServerCapacityResponse {
            mastership: Some(mastership.clone()),
            ..doorman::GetServerCapacityResponse::default()
        })
    }
}
