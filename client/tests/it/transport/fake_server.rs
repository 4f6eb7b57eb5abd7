//! A server that answers as it is told, on a real socket: for what real servers do not do.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use doorward_proto::doorman;
use doorward_proto::doorman::capacity_server::{Capacity, CapacityServer};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// What a call of GetCapacity is answered.
pub type Answer = Result<doorman::GetCapacityResponse, Status>;

/// Something that was asked.
#[derive(Debug)]
pub enum Seen {
    Discovery,
    Get(doorman::GetCapacityRequest),
    Release(doorman::ReleaseCapacityRequest),
}

type Script = Arc<Mutex<VecDeque<Answer>>>;

struct Service {
    /// What Discovery is answered first, by turns.
    busy: Mutex<VecDeque<Status>>,
    discovery: Option<doorman::DiscoveryResponse>,
    script: Script,
    seen: mpsc::UnboundedSender<Seen>,
}

/// A running one. Stops when dropped.
pub struct FakeServer {
    pub address: String,
    seen: mpsc::UnboundedReceiver<Seen>,
    _stop: oneshot::Sender<()>,
}

/// An address that nobody serves yet.
pub struct Reserved(TcpListener);

impl Reserved {
    pub fn address(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }

    /// As [`FakeServer::start`], there.
    pub fn start(
        self,
        discovery: Option<doorman::DiscoveryResponse>,
        answers: impl IntoIterator<Item = Answer>,
    ) -> FakeServer {
        FakeServer::serve(self.0, [], discovery, answers)
    }
}

impl FakeServer {
    /// One that says it is the master, and answers requests by turns; the last answer stays.
    pub async fn master(answers: impl IntoIterator<Item = Answer>) -> Self {
        let discovery = doorman::DiscoveryResponse {
            mastership: doorman::Mastership::default(),
            is_master: true,
        };
        Self::start(Some(discovery), answers).await
    }

    /// One with an answer to Discovery, or so old that it knows of no such thing.
    pub async fn start(
        discovery: Option<doorman::DiscoveryResponse>,
        answers: impl IntoIterator<Item = Answer>,
    ) -> Self {
        Self::reserve().await.start(discovery, answers)
    }

    /// An address that is to be served.
    pub async fn reserve() -> Reserved {
        Reserved(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    /// A master that answers Discovery by a status so many times.
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

    /// Waits until it was asked so often who the master is.
    pub async fn discoveries(&mut self, count: usize) {
        let mut seen = 0;
        while seen < count {
            if let Seen::Discovery = self.seen.recv().await.unwrap() {
                seen += 1;
            }
        }
    }

    /// How often it was asked for anything since this was looked at last.
    pub fn asked(&mut self) -> usize {
        std::iter::from_fn(|| self.seen.try_recv().ok()).count()
    }

    /// The next request for capacity that comes.
    pub async fn next_get(&mut self) -> doorman::GetCapacityRequest {
        loop {
            if let Seen::Get(request) = self.seen.recv().await.unwrap() {
                return request;
            }
        }
    }

    /// The releases that have come since this was looked at last, or anything else.
    pub fn releases(&mut self) -> Vec<doorman::ReleaseCapacityRequest> {
        let mut releases = Vec::new();
        while let Ok(seen) = self.seen.try_recv() {
            if let Seen::Release(request) = seen {
                releases.push(request);
            }
        }
        releases
    }

    /// The next release that comes.
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

/// Who the master is, of which epoch; itself if that is no address.
pub fn discovery(is_master: bool, address: Option<&str>, epoch: u64) -> doorman::DiscoveryResponse {
    doorman::DiscoveryResponse {
        is_master,
        mastership: doorman::Mastership {
            master_address: address.map(str::to_owned),
            epoch: (epoch > 0).then_some(epoch),
        },
    }
}

/// A lease of 60 s on `r`, refreshed after so many milliseconds.
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

/// An answer with that lease on `r`.
pub fn granted(gets: doorman::Lease) -> Answer {
    Ok(doorman::GetCapacityResponse {
        response: vec![doorman::ResourceResponse {
            limited_by: None,
            learning_for_ms: None,
            decided: None,
            resource_id: "r".to_owned(),
            gets,
            safe_capacity: Some(3.0),
        }],
        ..doorman::GetCapacityResponse::default()
    })
}

/// Too busy, with what the trailer says of when to come back.
pub fn busy(code: tonic::Code, pushback: &str) -> Status {
    let mut trailers = tonic::metadata::MetadataMap::new();
    trailers.insert("grpc-retry-pushback-ms", pushback.parse().unwrap());
    Status::with_metadata(code, "too busy", trailers)
}

/// `r` got no lease, for that reason.
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

/// The same answer, with more about the lease on `r`.
pub fn with(mut answer: Answer, more: impl Fn(&mut doorman::ResourceResponse)) -> Answer {
    if let Ok(response) = &mut answer {
        response.response.iter_mut().for_each(more);
    }
    answer
}

/// "Not the master", and perhaps who is.
pub fn redirect(master_address: Option<&str>) -> Answer {
    Ok(doorman::GetCapacityResponse {
        mastership: Some(doorman::Mastership {
            master_address: master_address.map(str::to_owned),
            epoch: None,
        }),
        ..doorman::GetCapacityResponse::default()
    })
}
