//! The way up: a server below the root asks its parent.
//!
//! The engine ([`doorward_engine::node`]) knows the requests, their times and the effect of answers. The session
//! ([`doorward_session::parent_session`]) knows the server to ask and the transport. This module executes their
//! actions:
//!
//! - `link` connects, calls and streams;
//! - `body` carries requests and answers between the node and the parent;
//! - `addresses` follows the addresses of the parent;
//! - the state of the parent goes to the board.

mod addresses;
mod body;
mod link;
mod problem;
mod rival;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::node::Node;
use doorward_proto::doorman as wire;
use doorward_session::address::Address;
use doorward_session::close_reason::ConnectionEnd;
use doorward_session::parent_session::{
    CONNECT_TIMEOUT, ConnectionNumber, Disposition, ParentAction, ParentFailure, ParentReport,
    ParentSession, PollReason, Reply, STATES, Transport,
};
use doorward_session::time::Time;
use tonic::Status as RpcStatus;
use tracing::{debug, error, info, warn};

use crate::clock;
use crate::node_handle::NodeHandle;
use crate::rpc::closed;
use crate::rpc::convert::server_capacity;
use crate::status::sessions::Machine;
use crate::status::{Board, ParentLink, ParentNews};
use crate::upstream::addresses::Addresses;
use crate::upstream::link::{Link, LinkEvent};
use crate::upstream::problem::problem_of;
use crate::upstream::rival::Rival;

pub use crate::upstream::addresses::ParentSource;

/// Configuration of the way to the parent.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// Addresses of its servers.
    pub servers: ParentSource,
    /// Time for which changes are gathered before they go up.
    pub round: Duration,
    /// Time for which minor changes are gathered, and the shortest interval between two requests to a parent without
    /// streams.
    pub slow_round: Duration,
}

/// Longest time between two checks that this server still is the master of its node.
const MASTERSHIP_CHECK: Duration = Duration::from_secs(1);

/// Asks the parent.
pub struct Upstream {
    config: UpstreamConfig,
    node: Arc<NodeHandle>,
    board: Arc<Board>,
    addresses: Addresses,
    session: ParentSession,
    /// Number of the connection that events are reported for.
    connection: ConnectionNumber,
    link: Link,
    /// Finds the first other server that answers while the one on the link does not.
    rival: Rival,
    /// Text of the last failure, for people.
    heard: Option<String>,
    /// Present problem, for pages and status.
    problem: Option<String>,
    /// Statement of the parent that another process of this node was there first. It is shown as long as the parent
    /// refuses every request.
    duplicate_process: Option<String>,
    /// Kind of link to the parent, for pages and status.
    reported: ParentLink,
    /// The state of the session that was posted last.
    shown: &'static str,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("session", &self.session)
            .field("link", &self.link)
            .finish_non_exhaustive()
    }
}

impl Upstream {
    /// Returns the part that asks the parent for the node of `board`, and posts on the board that there is a parent.
    /// Must be called within a tokio runtime.
    pub fn new(config: UpstreamConfig, board: Arc<Board>) -> Self {
        let addresses = Addresses::new(config.servers.clone());
        let mut upstream = Self {
            session: ParentSession::new(addresses.given()),
            addresses,
            config,
            node: Arc::clone(board.node()),
            board,
            connection: ConnectionNumber::default(),
            link: Link::Idle,
            rival: rival::none(),
            heard: None,
            problem: None,
            duplicate_process: None,
            reported: ParentLink::Idle,
            shown: "",
        };
        upstream.post();
        upstream.show_state();
        upstream
    }

    /// Asks the parent. Runs for ever: spawn it.
    pub async fn run(mut self) {
        self.addresses.ready().await;
        self.hear_of_addresses();
        loop {
            self.look_at_node();
            self.drain().await;
            self.show_state();
            self.wait().await;
        }
    }

    /// Waits for the next event, and passes it to the session.
    async fn wait(&mut self) {
        let clock = self.node.clock();
        let timeout = self.session.poll_timeout();
        let due = self.session.may_ask().then(|| self.next_due()).flatten();
        let late = async {
            match timeout {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let due = async {
            match due {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        if !self.session.is_unanswered() {
            self.rival = rival::none();
        }
        tokio::select! {
            heard = self.link.next() => self.hear(heard).await,
            rival = &mut self.rival => {
                self.rival = rival::none();
                self.session.handle_rival(&rival, clock::chance(), self.now());
            }
            () = late => self.session.handle_timeout(clock::chance(), self.now()),
            // The loop in `run` looks at the node.
            () = due => {}
            // A new mastership may move the due time. Otherwise another second passes.
            () = self.node.upstream_moved() => {}
            () = tokio::time::sleep(MASTERSHIP_CHECK) => {}
            () = self.addresses.changed() => self.hear_of_addresses(),
        }
    }

    fn now(&self) -> Time {
        self.node.clock().now()
    }

    /// Tells the session whether this server is the master of its node, and whether a request is due.
    fn look_at_node(&mut self) {
        let is_master = self.node.read(|node, now| node.mastership(now).is_master());
        let now = self.now();
        self.session
            .handle_mastership(is_master, clock::chance(), now);
        if is_master == (self.reported == ParentLink::Idle) {
            self.heard = None;
            self.show(
                match is_master {
                    true => ParentLink::Down,
                    false => ParentLink::Idle,
                },
                None,
            );
        }
        let at = self.next_due();
        let clock = self.node.clock();
        if at.is_some_and(|at| at <= clock.now()) {
            self.session.handle_due();
        }
    }

    /// Posts the state of the session if it has changed.
    fn show_state(&mut self) {
        let state = self.session.state();
        if std::mem::replace(&mut self.shown, state) != state {
            let machine = Machine::new(state, &STATES, |name| name);
            self.board.sessions().post_parent(machine);
        }
    }

    fn next_due(&self) -> Option<Time> {
        self.node.read(|node, _| node.poll_upstream_timeout())
    }

    fn hear_of_addresses(&mut self) {
        if let Some((known, named)) = self.addresses.newest() {
            let now = self.now();
            self.session
                .handle_addresses(known, named, clock::chance(), now);
        }
    }

    async fn hear(&mut self, heard: LinkEvent) {
        let (on, chance, now) = (self.connection, clock::chance(), self.now());
        match heard {
            LinkEvent::Connected => self.session.handle_connected(on, now),
            LinkEvent::Unreachable(problem) => {
                self.heard = Some(problem);
                self.session
                    .handle_closed(on, ConnectionEnd::Unreachable, chance, now);
            }
            LinkEvent::Discovered(answer) => {
                let named = body::mastership(answer.is_master, &answer.mastership);
                let leases_last = self.leases_last().await;
                let now = self.now();
                self.session
                    .handle_discovered(on, named, leases_last, chance, now);
            }
            LinkEvent::Opened => self.session.handle_opened(on, now),
            LinkEvent::Received(response) => self.on_push(response).await,
            LinkEvent::Progress => self.session.handle_progress(on, now),
            LinkEvent::Answered(request, answer) => {
                let reply = Reply {
                    call: Some(request.sequence.unwrap_or_default()),
                    ..Reply::default()
                };
                let verdict = self
                    .session
                    .handle_reply(on, &reply, Duration::ZERO, chance, now);
                if verdict == Disposition::Keep {
                    self.apply(answer).await;
                    self.note_answered();
                }
            }
            LinkEvent::NotMaster(call, mastership) => {
                self.hear_not_master(Some(call), &mastership).await;
            }
            LinkEvent::Ended => {
                self.heard = Some("the parent ended the stream".to_owned());
                self.session
                    .handle_closed(on, ConnectionEnd::Failed, chance, now);
            }
            LinkEvent::Failed(status) => self.hear_failure(&status),
        }
    }

    /// Takes a message of the parent on the stream.
    async fn on_push(&mut self, response: wire::GetServerCapacityResponse) {
        if let Some(mastership) = &response.mastership {
            return self.hear_not_master(None, mastership).await;
        }
        let answer = server_capacity::parents_answer(response, clock::wall());
        let reply = Reply {
            answered: &body::answered(&answer),
            ..Reply::default()
        };
        let (on, chance, now) = (self.connection, clock::chance(), self.now());
        let verdict = self
            .session
            .handle_reply(on, &reply, Duration::ZERO, chance, now);
        if verdict == Disposition::Keep {
            self.apply(answer).await;
            self.note_answered();
        }
    }

    async fn hear_not_master(&mut self, call: Option<u64>, mastership: &wire::Mastership) {
        let reply = Reply {
            call,
            not_master: Some(body::mastership(false, mastership)),
            answered: &[],
        };
        let leases_last = self.leases_last().await;
        let (on, chance, now) = (self.connection, clock::chance(), self.now());
        let verdict = self
            .session
            .handle_reply(on, &reply, leases_last, chance, now);
        debug_assert_eq!(verdict, Disposition::Drop);
    }

    /// Notes that a call or the stream failed.
    fn hear_failure(&mut self, status: &RpcStatus) {
        self.hear_of_cycle(status);
        self.heard = Some(problem_of(status));
        let (on, chance, now) = (self.connection, clock::chance(), self.now());
        self.session
            .handle_closed(on, closed::heard(status), chance, now);
    }

    /// Executes all actions of the session.
    async fn drain(&mut self) {
        while let Some(action) = self.session.poll_action() {
            match action {
                ParentAction::Connect {
                    connection,
                    to,
                    transport,
                } => {
                    self.connection = connection;
                    self.link = Link::connect(&to, transport, CONNECT_TIMEOUT);
                    self.rival = rival::find(self.session.rivals());
                }
                ParentAction::Discover => self.link.discover(),
                ParentAction::Open => self.link.open(),
                ParentAction::SetPace(transport) => self.set_pace(transport),
                ParentAction::Send { is_hello } => self.send(is_hello).await,
                ParentAction::Call => self.call().await,
                ParentAction::Close => {
                    self.link = Link::Idle;
                    self.node.change(Node::handle_upstream_lost);
                }
                ParentAction::Report(report) => self.report(report),
            }
        }
    }

    async fn send(&mut self, is_hello: bool) {
        let due = self.due().await;
        let greeting = || is_hello.then(|| self.greeting()).flatten();
        let Some(request) = due.or_else(greeting) else {
            return;
        };
        let now = self.now();
        let sequence = request.sequence.unwrap_or_default();
        self.session
            .handle_sent(sequence, body::numbers(&request), now);
        if !self.link.send(&request) {
            self.heard = Some("the stream takes no more requests".to_owned());
            let (on, chance) = (self.connection, clock::chance());
            self.session
                .handle_closed(on, ConnectionEnd::TakesNoMore, chance, now);
            return;
        }
        if self
            .next_due()
            .is_some_and(|at| at <= self.node.clock().now())
        {
            self.session.handle_due();
        }
    }

    async fn call(&mut self) {
        let Some(request) = self.due().await else {
            if self.next_due().is_none() {
                // No request is due. The session only notes that the parent is there.
                self.session.handle_nothing_due();
            }
            if self.session.answers().is_some() {
                self.note_answered();
            }
            return;
        };
        let now = self.now();
        let sequence = request.sequence.unwrap_or_default();
        self.session
            .handle_sent(sequence, body::numbers(&request), now);
        self.link.call(request);
    }

    fn report(&mut self, report: ParentReport) {
        match report {
            ParentReport::Answers { transport, is_news } => {
                let link = match transport {
                    Transport::Stream => ParentLink::Stream,
                    Transport::Calls => ParentLink::Poll,
                };
                if is_news {
                    let parent = self.address();
                    info!(parent, link = link.as_str(), "the parent answers");
                }
                if !self.session.is_second(self.now()) {
                    self.duplicate_process = None;
                }
                self.show(link, self.duplicate_process.clone());
            }
            ParentReport::Polls {
                parent,
                why,
                failure,
                is_news,
            } => {
                let problem = self.problem_of(&failure);
                self.report_polled(&self.name_of(parent), why, problem, is_news);
            }
            ParentReport::Redirected { from, to } => {
                debug!(%from, %to, "the parent's master is elsewhere");
            }
            ParentReport::Replaced { parent, is_news } => {
                let parent = self.name_of(parent);
                let problem = self.heard.take().unwrap_or_default();
                if is_news {
                    warn!(parent, problem, "the parent ended the stream");
                } else {
                    debug!(parent, problem, "the parent ended the stream again");
                }
                self.show(ParentLink::Down, Some(problem));
            }
            ParentReport::Down {
                parent,
                failure,
                is_news,
            } => {
                let parent = self.name_of(parent);
                let problem = self.problem_of(&failure);
                if is_news {
                    warn!(
                        parent,
                        problem, "the parent cannot be asked; leases run on until they expire"
                    );
                } else {
                    debug!(parent, problem, "the parent still cannot be asked");
                }
                self.show(ParentLink::Down, Some(problem));
            }
            ParentReport::EpochForgotten { forgotten, epoch } => {
                warn!(
                    epoch,
                    forgotten,
                    "the parent's masterships have begun again: was its etcd wiped, or restored?"
                );
                self.board.count_parent_mastership_forgotten();
            }
        }
    }

    fn report_polled(&mut self, parent: &str, why: PollReason, problem: String, is_news: bool) {
        match (why, is_news) {
            (PollReason::AnotherProcess, true) => error!(
                parent,
                problem,
                "another process of this node was there first: this one is refused what it asks for"
            ),
            (_, true) => info!(
                parent,
                problem, "a stream to the parent does not work; it is polled"
            ),
            (_, false) => debug!(parent, problem, "the parent is still polled"),
        }
        if why == PollReason::AnotherProcess {
            self.duplicate_process = Some(problem);
        }
    }

    /// Returns the text of a failure, for people.
    fn problem_of(&mut self, failure: &ParentFailure) -> String {
        let heard = self.heard.take();
        match failure {
            ParentFailure::Closed(_) => heard.unwrap_or_else(|| failure.to_string()),
            ParentFailure::NoAddress => self.addresses.nobody(),
            ParentFailure::TimedOut { .. } | ParentFailure::Flood | ParentFailure::DeadEnd(_) => {
                failure.to_string()
            }
        }
    }

    /// Returns the address of the server that is asked, or the configured ones before the first one is known.
    fn address(&self) -> String {
        self.name_of(self.session.address().cloned())
    }

    /// Returns an address as text, or the configured ones if no server was asked yet.
    fn name_of(&self, address: Option<Address>) -> String {
        let asked = address.map(|address| address.to_string());
        asked.unwrap_or_else(|| self.config.servers.configured().join(", "))
    }

    fn show(&mut self, link: ParentLink, problem: Option<String>) {
        self.reported = link;
        self.problem = problem;
        self.post();
    }

    fn post(&self) {
        self.board.post_parent(ParentNews {
            addresses: self.config.servers.configured(),
            address: self.address(),
            link: self.reported,
            since: clock::wall(),
            problem: self.problem.clone(),
        });
    }
}
