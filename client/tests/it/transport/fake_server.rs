//! A scripted server on a real socket, for behaviour that real servers do not have.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use doorward_proto::doorman;
use doorward_proto::doorman::capacity_server::{Capacity, CapacityServer};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// Answer to a call of GetCapacity.
pub type Answer = Result<doorman::GetCapacityResponse, Status>;

/// A call that arrived.
#[derive(Debug)]
pub enum Seen {
    Discovery,
    Get(doorman::GetCapacityRequest),
    Release(doorman::ReleaseCapacityRequest),
}

type Script = Arc<Mutex<VecDeque<Answer>>>;

struct Service {
    /// First answers of Discovery, in turn.
    busy: Mutex<VecDeque<Status>>,
    discovery: Option<doorman::DiscoveryResponse>,
    script: Script,
    seen: mpsc::UnboundedSender<Seen>,
}

/// A running server. It stops when it is dropped.
pub struct FakeServer {
    pub address: String,
    seen: mpsc::UnboundedReceiver<Seen>,
    _stop: oneshot::Sender<()>,
}

/// Returns an address without a server.
pub struct Reserved(TcpListener);

impl Reserved {
    pub fn address(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }

    /// Does the same as [`FakeServer::start`], at an address.
    pub fn start(
        self,
        discovery: Option<doorman::DiscoveryResponse>,
        answers: impl IntoIterator<Item = Answer>,
    ) -> FakeServer {
        FakeServer::serve(self.0, [], discovery, answers)
    }
}

impl FakeServer {
    /// Starts a server that claims to be the master and answers requests in turn; the last answer
    /// stays.
    pub async fn master(answers: impl IntoIterator<Item = Answer>) -> Self {
        let discovery = doorman::DiscoveryResponse {
            mastership: doorman::Mastership::default(),
            is_master: true,
        };
        Self::start(Some(discovery), answers).await
    }

    /// Starts a server with an answer to Discovery, or one that does not know this call.
    pub async fn start(
        discovery: Option<doorman::DiscoveryResponse>,
        answers: impl IntoIterator<Item = Answer>,
    ) -> Self {
        Self::reserve().await.start(discovery, answers)
    }

    /// Returns an address for a later server.
    pub async fn reserve() -> Reserved {
        Reserved(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    /// Starts a master that first answers a number of Discovery calls by a status.
    pub async fn busy_at_first(
        busy: impl IntoIterator<Item = Status>,
        answers: impl IntoIterator<Item = Answer>,
    ) -> Self {
        let listener = Self::reserve().await.0;
        Self::serve(listener, busy, Some(discovery(true, None, 0)), answers)
    }

    fn serve(
        listener: TcpListener,
        busy: impl IntoIterator<Item = Status>,
        discovery: Option<doorman::DiscoveryResponse>,
        answers: impl IntoIterator<Item = Answer>,
    ) -> Self {
        let address = listener.local_addr().unwrap().to_string();
        let (sender, seen) = mpsc::unbounded_channel();
        let script: Script = Arc::new(Mutex::new(answers.into_iter().collect()));
        let service = Service {
            busy: Mutex::new(busy.into_iter().collect()),
            discovery,
            script,
            seen: sender,
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tonic::transport::Server::builder()
            .add_service(CapacityServer::new(service))
            .serve_with_incoming_shutdown(TcpListenerStream::new(listener), async {
                let _ = stopped.await;
            });
        tokio::spawn(server);
        Self {
            address,
            seen,
            _stop: stop,
        }
    }

    /// Returns the number of calls since the last look.
    pub fn asked(&mut self) -> usize {
        std::iter::from_fn(|| self.seen.try_recv().ok()).count()
    }

    /// Returns the next request for capacity.
    pub async fn next_get(&mut self) -> doorman::GetCapacityRequest {
        loop {
            if let Seen::Get(request) = self.seen.recv().await.unwrap() {
                return request;
            }
        }
    }

    /// Returns the releases since the last look, and drops everything else.
    pub fn releases(&mut self) -> Vec<doorman::ReleaseCapacityRequest> {
        let mut releases = Vec::new();
        while let Ok(seen) = self.seen.try_recv() {
            if let Seen::Release(request) = seen {
                releases.push(request);
            }
        }
        releases
    }

    /// Returns the next release.
    pub async fn next_release(&mut self) -> doorman::ReleaseCapacityRequest {
        loop {
            if let Seen::Release(request) = self.seen.recv().await.unwrap() {
                return request;
            }
        }
    }
}

#[tonic::async_trait]
impl Capacity for Service {
    async fn discovery(
        &self,
        _: Request<doorman::DiscoveryRequest>,
    ) -> Result<Response<doorman::DiscoveryResponse>, Status> {
        let _ = self.seen.send(Seen::Discovery);
        if let Some(status) = self.busy.lock().unwrap().pop_front() {
            return Err(status);
        }
        let answer = self.discovery.clone().map(Response::new);
        answer.ok_or_else(|| Status::unimplemented("too old"))
    }

    async fn get_capacity(
        &self,
        request: Request<doorman::GetCapacityRequest>,
    ) -> Result<Response<doorman::GetCapacityResponse>, Status> {
        let _ = self.seen.send(Seen::Get(request.into_inner()));
        let mut script = self.script.lock().unwrap();
        let answer = match script.len() {
            0 | 1 => script
                .front()
                .cloned()
                .unwrap_or_else(|| Err(Status::unavailable("silent"))),
            _ => script.pop_front().unwrap(),
        };
        answer.map(Response::new)
    }

    async fn get_server_capacity(
        &self,
        _: Request<doorman::GetServerCapacityRequest>,
    ) -> Result<Response<doorman::GetServerCapacityResponse>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn release_capacity(
        &self,
        request: Request<doorman::ReleaseCapacityRequest>,
    ) -> Result<Response<doorman::ReleaseCapacityResponse>, Status> {
        let _ = self.seen.send(Seen::Release(request.into_inner()));
        Ok(Response::new(doorman::ReleaseCapacityResponse::default()))
    }
}

/// Returns the master and its epoch; the server itself if `master` is not an address.
pub fn discovery(is_master: bool, address: Option<&str>, epoch: u64) -> doorman::DiscoveryResponse {
    doorman::DiscoveryResponse {
        is_master,
        mastership: doorman::Mastership {
            master_address: address.map(str::to_owned),
            epoch: (epoch > 0).then_some(epoch),
        },
    }
}

/// Returns a lease of 60 s on `r`, with a refresh interval in milliseconds.
pub fn lease(capacity: f64, refresh_in_ms: u64) -> Answer {
    granted(doorman::Lease {
        granted_by: None,
        expiry_time: 0,
        refresh_interval: 1,
        capacity,
        expires_in_ms: Some(60_000),
        refresh_in_ms: Some(refresh_in_ms),
    })
}

/// Returns an answer with that lease on `r`.
pub fn granted(gets: doorman::Lease) -> Answer {
    Ok(doorman::GetCapacityResponse {
        response: vec![doorman::ResourceResponse {
            budget: None,
            limited_by: None,
            learning_for_ms: None,
            decided: None,
            sequence: None,
            resource_id: "r".to_owned(),
            gets,
            safe_capacity: Some(3.0),
        }],
        ..doorman::GetCapacityResponse::default()
    })
}

/// Returns a refusal because of overload, with the trailer's time.
pub fn busy(code: tonic::Code, pushback: &str) -> Status {
    let mut trailers = tonic::metadata::MetadataMap::new();
    trailers.insert("grpc-retry-pushback-ms", pushback.parse().unwrap());
    Status::with_metadata(code, "too busy", trailers)
}

/// Returns a refusal of `r` for a reason.
pub fn refused(reason: doorman::refusal::Reason) -> Answer {
    Ok(doorman::GetCapacityResponse {
        refused: vec![doorman::Refusal {
            retry_in_ms: None,
            resource_id: Some("r".to_owned()),
            reason: Some(reason.into()),
            message: Some("because".to_owned()),
        }],
        ..doorman::GetCapacityResponse::default()
    })
}

/// Returns the same answer, with more about the lease on `r`.
pub fn with(mut answer: Answer, more: impl Fn(&mut doorman::ResourceResponse)) -> Answer {
    if let Ok(response) = &mut answer {
        response.response.iter_mut().for_each(more);
    }
    answer
}

/// Returns "not the master", perhaps with the master's address.
pub fn redirect(master_address: Option<&str>) -> Answer {
    Ok(doorman::GetCapacityResponse {
        mastership: Some(doorman::Mastership {
            master_address: master_address.map(str::to_owned),
            epoch: None,
        }),
        ..doorman::GetCapacityResponse::default()
    })
}
