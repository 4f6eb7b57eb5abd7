//! The way up: how a server below the root asks its parent.
//!
//! What to ask and when, and what an answer does, the engine knows ([`doorward_engine::node`]);
//! this carries it. It prefers a stream, on which a change travels as it happens. A parent that
//! does not know streams is polled; so is one whose streams keep breaking, for a while. Addresses
//! are tried in turn, with a backoff; a server that is not the master says where it is.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

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

/// How long a parent is polled whose stream broke soon after it was opened.
const POLL_LENGTH: Duration = Duration::from_secs(30);

/// A stream that broke sooner than this may not work at all.
const STREAM_WORKS: Duration = Duration::from_secs(10);

/// Redirects that are followed without an answer of a master between them.
const REDIRECTS_MAX: u32 = 5;

/// Backoff between attempts: from the first to the second, with full jitter.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(15));

/// Why a connection to the parent ended.
#[derive(Debug)]
enum End {
    /// The server is not the master; where that is, if it says so.
    NotMaster(Option<String>),
    /// It knows no streams.
    NoStreams,
    /// It broke; why.
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
    /// What the log was last told: it hears of a trouble once.
    reported: bool,
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
            reported: false,
        };
        upstream.post(ParentLink::Down, None);
        upstream
    }

    /// Asks for ever: spawn it.
    pub async fn run(mut self) {
        let mut poll_until: Option<Instant> = None;
        loop {
            self.wait_for_mastership().await;
            let streams = poll_until.is_none_or(|until| until <= Instant::now());
            let began = Instant::now();
            let end = match self.connect().await {
                Ok(channel) if streams => self.stream(channel).await,
                Ok(channel) => self.poll(channel, poll_until).await,
                Err(problem) => End::Broken(problem),
            };
            self.node.change(Node::handle_upstream_lost);
            match end {
                End::NoStreams => {
                    info!(
                        parent = self.address,
                        "the parent knows no streams; it is polled"
                    );
                    // For as long as the connection lasts, at least.
                    poll_until = Some(Instant::now() + 10 * POLL_LENGTH);
                }
                End::TryStream => poll_until = None,
                End::Resigned => self.post(ParentLink::Down, None),
                End::NotMaster(address) => self.redirect(address).await,
                End::Broken(problem) => {
                    if streams && began.elapsed() < STREAM_WORKS && self.failures == 0 {
                        poll_until = Some(Instant::now() + POLL_LENGTH);
                    }
                    self.fail(&problem).await;
                }
            }
        }
    }

    async fn wait_for_mastership(&self) {
        while !self.node.read(|node, _| node.mastership().is_master()) {
            // A change of mastership moves what is due, or another second passes.
            let _moved =
                tokio::time::timeout(Duration::from_secs(1), self.node.upstream_moved()).await;
        }
    }

    async fn connect(&self) -> Result<Channel, String> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address))
            .map_err(|error| format!("{} is no address: {error}", self.address))?;
        let endpoint = endpoint
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(Duration::from_secs(5))
            .keep_alive_timeout(Duration::from_secs(5))
            .keep_alive_while_idle(true)
            .tcp_nodelay(true);
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
        let (requests, outgoing) = mpsc::channel(16);
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
        // What was asked and not answered yet: its sequence, and when it was sent.
        let mut unanswered: VecDeque<(u64, Instant)> = VecDeque::new();
        let mut well = false;
        loop {
            while let Some(request) = self.due() {
                unanswered.push_back((request.sequence.unwrap_or_default(), Instant::now()));
                let message = tree::get_server_capacity_request(&request, clock::wall());
                if requests.try_send(message).is_err() {
                    return End::Broken("the stream takes no more requests".to_owned());
                }
            }
            let late = unanswered.front().map(|(_, sent)| *sent + ANSWER_TIMEOUT);
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
                    forget_answered(&mut unanswered, &answer);
                    self.apply(answer);
                    if !std::mem::replace(&mut well, true) {
                        self.succeed(ParentLink::Stream);
                    }
                }
                () = self.next_request() => {}
                () = until(late) => {
                    return End::Broken(format!("no answer on the stream within {ANSWER_TIMEOUT:?}"));
                }
            }
            if !self.node.read(|node, _| node.mastership().is_master()) {
                return End::Resigned;
            }
        }
    }

    /// Asks by calls, until the connection breaks or it is time to try a stream.
    async fn poll(&mut self, channel: Channel, poll_until: Option<Instant>) -> End {
        let mut client = CapacityClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        self.set_pace(self.config.slow_round);
        let mut well = false;
        loop {
            while let Some(request) = self.due() {
                let sent_at = clock::wall();
                let message = tree::get_server_capacity_request(&request, sent_at);
                let call = client.get_server_capacity(message);
                let response = match tokio::time::timeout(ANSWER_TIMEOUT, call).await {
                    Ok(Ok(response)) => response.into_inner(),
                    Ok(Err(status)) => return End::Broken(told_by(&status)),
                    Err(_) => return End::Broken(format!("no answer within {ANSWER_TIMEOUT:?}")),
                };
                if let Some(mastership) = response.mastership {
                    return End::NotMaster(mastership.master_address);
                }
                let mut answer = tree::parents_answer(response, sent_at);
                tree::refuse_unanswered(&request, &mut answer);
                self.apply(answer);
                if !std::mem::replace(&mut well, true) {
                    self.succeed(ParentLink::Poll);
                }
            }
            tokio::select! {
                () = self.next_request() => {}
                () = until(poll_until) => return End::TryStream,
            }
            if !self.node.read(|node, _| node.mastership().is_master()) {
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

    /// Waits until something is to be asked, or may be.
    async fn next_request(&self) {
        let at = self.node.read(|node, _| node.poll_upstream_timeout());
        let at = at.map(|at| self.node.clock().instant(at));
        tokio::select! {
            () = until(at) => {}
            () = self.node.upstream_moved() => {}
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
        self.node.change(|node, now| {
            node.handle_upstream_lost(now);
            node.handle_upstream_pace(Pace { round, slow });
        });
    }

    fn succeed(&mut self, link: ParentLink) {
        self.failures = 0;
        self.redirects = 0;
        if std::mem::take(&mut self.reported) {
            info!(parent = self.address, "the parent answers again");
        } else {
            info!(
                parent = self.address,
                link = link.as_str(),
                "the parent answers"
            );
        }
        self.post(link, None);
    }

    async fn redirect(&mut self, address: Option<String>) {
        self.redirects += 1;
        match address.filter(|address| !address.is_empty() && self.redirects <= REDIRECTS_MAX) {
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
        if !std::mem::replace(&mut self.reported, true) {
            warn!(
                parent = self.address,
                problem, "the parent cannot be asked; leases run on until they expire"
            );
        } else {
            debug!(
                parent = self.address,
                problem, "the parent still cannot be asked"
            );
        }
        self.post(ParentLink::Down, Some(problem.to_owned()));
        self.turn += 1;
        let addresses = &self.config.addresses;
        if let Some(next) = addresses.get(self.turn % addresses.len().max(1)) {
            self.address.clone_from(next);
        }
        let (first, last) = BACKOFF;
        let most = first.saturating_mul(1 << self.failures.min(10)).min(last);
        self.failures += 1;
        // The other addresses are tried at once.
        if self.turn.is_multiple_of(addresses.len().max(1)) || self.failures > 1 {
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

/// Takes out what the answer is to, and everything before it.
fn forget_answered(unanswered: &mut VecDeque<(u64, Instant)>, answer: &Answer) {
    let newest = answer
        .reply
        .leases
        .iter()
        .filter_map(|lease| lease.sequence);
    match newest.max() {
        Some(newest) => unanswered.retain(|(sequence, _)| *sequence > newest),
        // Refusals do not say; but they are only sent when asked.
        None => {
            unanswered.pop_front();
        }
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
