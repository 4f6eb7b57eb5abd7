//! The way up: how a server below the root asks its parent.
//!
//! What to ask and when, and what an answer does, the engine knows ([`doorward_engine::node`]);
//! this carries it. It prefers a stream, on which a change travels as it happens. A parent that
//! does not know streams is polled; so is one whose streams break at once, for a while. Addresses
//! are tried in turn, with a backoff; a server that is not the master says where it is.
//!
//! A stream begins with a message even if there is nothing to ask: the parent learns who is there,
//! and the child whether it is the master, and which nodes are above.

mod unanswered;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::id::HolderName;
use doorward_engine::node::Node;
use doorward_engine::request::server::GetServerCapacity;
use doorward_engine::resource::upstream::Pace;
use doorward_proto::doorman as wire;
use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_proto::doorward::v1::capacity_stream_client::CapacityStreamClient;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status as RpcStatus, Streaming};
use tracing::{debug, info, warn};

use crate::clock;
use crate::node_handle::NodeHandle;
use crate::rpc::MESSAGE_BYTES_MAX;
use crate::rpc::convert::tree::{self, Answer};
use crate::status::{Board, ParentLink, ParentNews};
use crate::upstream::unanswered::Unanswered;

/// How the parent is reached.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its servers, `host:port`; at least one.
    pub addresses: Vec<String>,
    /// How long changes are gathered before they go up.
    pub round: Duration,
    /// How long changes are gathered that may matter little, and how often a parent without
    /// streams is asked at most.
    pub slow_round: Duration,
}

/// How long to try to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// An answer that takes longer will not come.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a parent is polled whose stream broke soon after it was opened. Twice as long each time,
/// up to the second.
const POLL_LENGTH: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(300));

/// A stream that broke sooner than this may not work at all.
const STREAM_WORKS: Duration = Duration::from_secs(10);

/// Redirects that are followed at once, one after the other.
const REDIRECTS_MAX: u32 = 5;

/// Backoff between attempts: from the first to the second, with full jitter. The second is well
/// below the length of a lease.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// Requests on a stream of which something is not answered, at most. What is due beyond waits.
const UNANSWERED_MAX: usize = 8;

/// Messages on their way into a stream, at most. Of one request there are more than one only if it
/// is very large.
const OUTGOING_MAX: usize = 128;

/// How long nobody may have looked whether this server still is the master of its node.
const MASTERSHIP_CHECK: Duration = Duration::from_secs(1);

/// How a problem begins that is a refusal of this server as a child: it is its own ancestor, say.
const REFUSES: &str = "FailedPrecondition";

/// Why a connection to the parent ended.
#[derive(Debug)]
enum End {
    /// The server is not the master; where that is, if it says so.
    NotMaster(Option<String>),
    /// It knows no streams.
    NoStreams,
    /// A stream broke before it had shown that it works; why.
    StreamBroken(String),
    /// There is no connection, or it broke; why.
    Broken(String),
    /// It is time to try a stream again.
    TryStream,
    /// This server is not the master of its node any more.
    Resigned,
}

/// Asks the parent.
pub struct Upstream {
    config: Config,
    node: Arc<NodeHandle>,
    board: Arc<Board>,
    address: String,
    /// Which of the configured addresses comes next.
    turn: usize,
    redirects: u32,
    failures: u32,
    /// Until when the parent is polled, since streams do not work, and for how long next time.
    poll_until: Option<Instant>,
    poll_length: Duration,
    /// What the log was last told of the link: it hears of every change once.
    told: Option<ParentLink>,
    /// Whether that was because the parent refuses us.
    told_refuses: bool,
    streams_told: bool,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Upstream {
    /// Whoever asks the parent for the node of `board`. Tells the board at once that there is one.
    pub fn new(config: Config, board: Arc<Board>) -> Self {
        let upstream = Self {
            address: config.addresses.first().cloned().unwrap_or_default(),
            config,
            node: Arc::clone(board.node()),
            board,
            turn: 0,
            redirects: 0,
            failures: 0,
            poll_until: None,
            poll_length: POLL_LENGTH.0,
            told: None,
            told_refuses: false,
            streams_told: false,
        };
        upstream.post(ParentLink::Down, None);
        upstream
    }

    /// Asks for ever: spawn it.
    pub async fn run(mut self) {
        loop {
            self.wait_for_mastership().await;
            let end = self.ask().await;
            self.node.change(Node::handle_upstream_lost);
            match end {
                _ if !self.is_master() => self.post(ParentLink::Down, None),
                End::Resigned => {}
                End::NoStreams => self.poll_for(POLL_LENGTH.1, "it knows no streams"),
                End::StreamBroken(problem) => {
                    self.poll_for(self.poll_length, &problem);
                    self.poll_length = (2 * self.poll_length).min(POLL_LENGTH.1);
                }
                End::TryStream => self.poll_until = None,
                End::NotMaster(address) => self.redirect(address).await,
                End::Broken(problem) => self.fail(&problem).await,
            }
        }
    }

    /// Connects and asks, in the one way or the other, until that ends.
    async fn ask(&mut self) -> End {
        let polls = self.poll_until.is_some_and(|until| until > Instant::now());
        if polls {
            // No pings: each call has its own timeout, and servers of the old kind end connections
            // that ping them often.
            return match self.connect(|endpoint| endpoint).await {
                Ok(channel) => self.poll(channel).await,
                Err(problem) => End::Broken(problem),
            };
        }
        let with_pings = |endpoint: Endpoint| {
            endpoint
                .http2_keep_alive_interval(Duration::from_secs(5))
                .keep_alive_timeout(Duration::from_secs(5))
                .keep_alive_while_idle(true)
        };
        let channel = match self.connect(with_pings).await {
            Ok(channel) => channel,
            Err(problem) => return End::Broken(problem),
        };
        let began = Instant::now();
        let end = self.stream(channel).await;
        let works = began.elapsed() >= STREAM_WORKS;
        if works {
            self.poll_length = POLL_LENGTH.0;
            self.streams_told = false;
        }
        match end {
            End::Broken(problem) if !works => End::StreamBroken(problem),
            end => end,
        }
    }

    fn is_master(&self) -> bool {
        self.node.read(|node, now| node.mastership(now).is_master())
    }

    async fn wait_for_mastership(&self) {
        while !self.is_master() {
            // Becoming master moves what is due, or another second passes.
            let _moved = tokio::time::timeout(MASTERSHIP_CHECK, self.node.upstream_moved()).await;
        }
    }

    async fn connect(&self, set_up: impl FnOnce(Endpoint) -> Endpoint) -> Result<Channel, String> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address))
            .map_err(|error| format!("{} is no address: {error}", self.address))?;
        let endpoint = set_up(endpoint.connect_timeout(CONNECT_TIMEOUT).tcp_nodelay(true));
        tokio::time::timeout(CONNECT_TIMEOUT, endpoint.connect())
            .await
            .map_err(|_| format!("no connection within {CONNECT_TIMEOUT:?}"))?
            .map_err(|error| innermost(&error))
    }

    /// Asks on a stream until it ends.
    async fn stream(&mut self, channel: Channel) -> End {
        let mut client = CapacityStreamClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let (requests, outgoing) = mpsc::channel(OUTGOING_MAX);
        let opening = client.stream_server_capacity(ReceiverStream::new(outgoing));
        let answers = match tokio::time::timeout(ANSWER_TIMEOUT, opening).await {
            Ok(Ok(answers)) => answers.into_inner(),
            Ok(Err(status)) if status.code() == Code::Unimplemented => return End::NoStreams,
            Ok(Err(status)) => return End::Broken(told_by(&status)),
            Err(_) => return End::Broken(format!("no stream within {ANSWER_TIMEOUT:?}")),
        };
        self.set_pace(self.config.round);
        self.converse(&requests, answers).await
    }

    async fn converse(
        &mut self,
        requests: &mpsc::Sender<wire::GetServerCapacityRequest>,
        mut answers: Streaming<wire::GetServerCapacityResponse>,
    ) -> End {
        let mut unanswered = Unanswered::default();
        let mut next = self.due().or_else(|| self.greeting());
        let mut well = false;
        loop {
            while let Some(request) = next {
                unanswered.note_sent(&request, Instant::now());
                for message in tree::get_server_capacity_requests(&request, clock::wall()) {
                    if requests.try_send(message).is_err() {
                        return End::Broken("the stream takes no more requests".to_owned());
                    }
                }
                next = self.due_unless_full(&unanswered);
            }
            let late = unanswered.since().map(|since| since + ANSWER_TIMEOUT);
            tokio::select! {
                answer = answers.message() => {
                    let response = match answer {
                        Ok(Some(response)) => response,
                        Ok(None) => return End::Broken("the parent ended the stream".to_owned()),
                        Err(status) if status.code() == Code::Unimplemented => {
                            return End::NoStreams;
                        }
                        Err(status) => return End::Broken(told_by(&status)),
                    };
                    if let Some(mastership) = response.mastership {
                        return End::NotMaster(mastership.master_address);
                    }
                    let answer = tree::parents_answer(response, clock::wall());
                    unanswered.note_answer(&answer, Instant::now());
                    self.apply(answer);
                    if !std::mem::replace(&mut well, true) {
                        self.succeed(ParentLink::Stream);
                    }
                }
                () = self.next_request(), if unanswered.len() < UNANSWERED_MAX => {}
                () = until(late) => {
                    return End::Broken(format!("no answer on the stream within {ANSWER_TIMEOUT:?}"));
                }
            }
            if !self.is_master() {
                return End::Resigned;
            }
            next = self.due_unless_full(&unanswered);
        }
    }

    /// Asks by calls, until the connection breaks or it is time to try a stream.
    async fn poll(&mut self, channel: Channel) -> End {
        let mut client = CapacityClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        self.set_pace(self.config.slow_round);
        let mut well = false;
        loop {
            while let Some(request) = self.due() {
                let sent_at = clock::wall();
                let mut whole = wire::GetServerCapacityResponse::default();
                for message in tree::get_server_capacity_requests(&request, sent_at) {
                    let call = client.get_server_capacity(message);
                    let response = match tokio::time::timeout(ANSWER_TIMEOUT, call).await {
                        Ok(Ok(response)) => response.into_inner(),
                        Ok(Err(status)) => return End::Broken(told_by(&status)),
                        Err(_) => {
                            return End::Broken(format!("no answer within {ANSWER_TIMEOUT:?}"));
                        }
                    };
                    if let Some(mastership) = response.mastership {
                        return End::NotMaster(mastership.master_address);
                    }
                    whole.response.extend(response.response);
                    whole.refused.extend(response.refused);
                    whole.ancestor = response.ancestor;
                }
                let mut answer = tree::parents_answer(whole, sent_at);
                tree::refuse_unanswered(&request, &mut answer);
                self.apply(answer);
                if !std::mem::replace(&mut well, true) {
                    self.succeed(ParentLink::Poll);
                }
            }
            let is_idle = self
                .node
                .read(|node, _| node.poll_upstream_timeout().is_none());
            if is_idle && !std::mem::replace(&mut well, true) {
                // There is nothing to ask: what is known of the parent is that it is there.
                self.succeed(ParentLink::Poll);
            }
            tokio::select! {
                () = self.next_request() => {}
                () = until(self.poll_until) => return End::TryStream,
            }
            if !self.is_master() {
                return End::Resigned;
            }
        }
    }

    /// What is to be asked now.
    fn due(&self) -> Option<GetServerCapacity> {
        let micros = u64::try_from(clock::wall().as_micros()).unwrap_or(u64::MAX);
        self.node
            .change(|node, now| node.poll_upstream_request(micros, now))
    }

    fn due_unless_full(&self, unanswered: &Unanswered) -> Option<GetServerCapacity> {
        (unanswered.len() < UNANSWERED_MAX)
            .then(|| self.due())
            .flatten()
    }

    /// What a stream begins with if there is nothing to ask.
    fn greeting(&self) -> Option<GetServerCapacity> {
        Some(GetServerCapacity {
            server: HolderName::new(self.board.node_name()).ok()?,
            epoch: self.node.read(|node, now| node.mastership(now).epoch()),
            sequence: None,
            height: 1,
            asks: Vec::new(),
        })
    }

    /// Waits until something is to be asked, or may be, or a while has passed.
    async fn next_request(&self) {
        let at = self.node.read(|node, _| node.poll_upstream_timeout());
        let at = at.map(|at| self.node.clock().instant(at));
        tokio::select! {
            () = until(at) => {}
            () = self.node.upstream_moved() => {}
            () = tokio::time::sleep(MASTERSHIP_CHECK) => {}
        }
    }

    fn apply(&self, answer: Answer) {
        self.node.change(|node, now| {
            node.handle_upstream_reply(&answer.reply, now);
            for (resource, problem) in answer.nonsense {
                node.handle_upstream_nonsense(&resource, problem, now);
            }
        });
        self.node.note_answered();
    }

    fn set_pace(&self, round: Duration) {
        let slow = self.config.slow_round.max(round);
        self.node
            .change(|node, _| node.handle_upstream_pace(Pace { round, slow }));
    }

    fn succeed(&mut self, link: ParentLink) {
        self.failures = 0;
        self.redirects = 0;
        if self.told.replace(link) != Some(link) {
            info!(
                parent = self.address,
                link = link.as_str(),
                "the parent answers"
            );
        }
        self.post(link, None);
    }

    /// From now on the parent is polled, for a while.
    fn poll_for(&mut self, length: Duration, problem: &str) {
        if std::mem::replace(&mut self.streams_told, true) {
            debug!(parent = self.address, problem, "the parent is still polled");
        } else {
            info!(
                parent = self.address,
                problem, "a stream to the parent does not work; it is polled"
            );
        }
        self.poll_until = Some(Instant::now() + length);
    }

    async fn redirect(&mut self, address: Option<String>) {
        self.redirects += 1;
        match address.filter(|address| !address.is_empty()) {
            Some(_) if self.redirects > REDIRECTS_MAX => {
                self.fail("its servers send us from one to the other").await;
            }
            Some(address) => {
                debug!(
                    from = self.address,
                    to = address,
                    "the parent's master is elsewhere"
                );
                self.address = address;
            }
            None => self.fail("it is not the master and knows of none").await,
        }
    }

    /// Tells whoever looks, and waits before the next address is tried.
    async fn fail(&mut self, problem: &str) {
        let is_told = self.told.replace(ParentLink::Down) == Some(ParentLink::Down);
        // That it cannot be reached and that it refuses us are different things to mend.
        let refuses = problem.starts_with(REFUSES);
        let is_other = std::mem::replace(&mut self.told_refuses, refuses) != refuses;
        if is_told && !(is_other && refuses) {
            debug!(
                parent = self.address,
                problem, "the parent still cannot be asked"
            );
        } else {
            warn!(
                parent = self.address,
                problem, "the parent cannot be asked; leases run on until they expire"
            );
        }
        self.post(ParentLink::Down, Some(problem.to_owned()));
        // Where it leads next time, may be somewhere else.
        self.redirects = 0;
        self.turn = self.turn.wrapping_add(1);
        let addresses = &self.config.addresses;
        if let Some(next) = addresses.get(self.turn % addresses.len().max(1)) {
            self.address.clone_from(next);
        }
        self.failures = self.failures.saturating_add(1);
        // The other addresses are tried at once.
        let others = u32::try_from(addresses.len().saturating_sub(1)).unwrap_or(u32::MAX);
        if let Some(waits) = self.failures.checked_sub(others.saturating_add(1)) {
            let (first, last) = BACKOFF;
            let most = first.saturating_mul(1 << waits.min(10)).min(last);
            tokio::time::sleep(clock::some_of(most)).await;
        }
    }

    fn post(&self, link: ParentLink, problem: Option<String>) {
        self.board.post_parent(ParentNews {
            addresses: self.config.addresses.clone(),
            address: self.address.clone(),
            link,
            since: clock::wall(),
            problem,
        });
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What a status says, for people.
fn told_by(status: &RpcStatus) -> String {
    let source = std::error::Error::source(status);
    match source {
        Some(source) => format!("{:?}: {}", status.code(), innermost(source)),
        None => format!("{:?}: {}", status.code(), status.message()),
    }
}

/// The innermost cause: "connection refused" stands there.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
