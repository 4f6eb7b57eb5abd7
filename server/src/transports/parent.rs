//! The connection of a server below the root to its parent.
//!
//! The replica ([`doorward_replica`]) decides what to ask, which server, and how. This module is the transport: it
//! executes the replica's tasks, and passes on what happens.
//!
//! - `link` connects, calls and streams;
//! - `addresses` follows the addresses of the parent;
//! - `rival` tries the parent's other servers while one does not answer;
//! - the state of the parent becomes part of the server's state.

mod addresses;
mod link;
mod rival;

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::node::mastership::Mastership;
use doorward_etcd::config::is_loopback;
use doorward_etcd::error::innermost;
use doorward_replica::{FromParent, ParentConfig, Replica, ToParent};
use doorward_session::address::Address;
use doorward_session::close_reason::ConnectionEnd;
use doorward_session::parent_session::{
    CONNECT_TIMEOUT, ConnectionNumber, ParentFailure, ParentReport, PollReason, Transport,
};
use doorward_session::visible;
use doorward_tls::dialer::Dialer;
use smol_str::SmolStr;
use tokio::sync::{mpsc, watch};
use tonic::Status as RpcStatus;
use tracing::{debug, error, info, warn};

use crate::clock;
use crate::replica_handle::ReplicaHandle;
use crate::rpc::convert::server_capacity;
use crate::rpc::{closed, cycle};
use crate::status::{ParentLink, ParentNews, ServerState};
pub use crate::transports::parent::addresses::ParentSource;
use crate::transports::parent::addresses::{Addresses, Known};
use crate::transports::parent::link::{Link, LinkEnd};
use crate::transports::parent::rival::Rival;

/// Configuration of the way to the parent.
#[derive(Clone, Debug)]
pub struct ParentTransportConfig {
    /// Addresses of its servers.
    pub servers: ParentSource,
    /// Time for which changes are gathered before they go up.
    pub round: Duration,
    /// Time for which minor changes are gathered, and the shortest interval between two requests to a parent without
    /// streams.
    pub slow_round: Duration,
}

impl ParentTransportConfig {
    /// Returns the configuration of the replica's link. Addresses in etcd come later.
    pub fn replica(&self) -> ParentConfig {
        ParentConfig {
            addresses: self.servers.known_at_start(),
            round: self.round,
            slow_round: self.slow_round,
        }
    }
}

/// The transport to the parent.
pub struct ParentTransport {
    servers: ParentSource,
    dialer: Dialer,
    node: Arc<ReplicaHandle>,
    state: Arc<ServerState>,
    addresses: Addresses,
    /// Tasks of the replica, each with the trace that it belongs to.
    tasks: mpsc::UnboundedReceiver<(ToParent, Option<String>)>,
    masterships: watch::Receiver<(u64, Mastership)>,
    /// Number of the connection that events are reported for.
    connection: ConnectionNumber,
    /// Whether the parent is on this machine, as far as its address tells.
    is_near: bool,
    link: Link,
    /// Finds the first other server that answers while the one on the link does not.
    rival: Rival,
    /// Text of the last failure, for people.
    heard: Option<String>,
    /// Statement of the parent that another process of this node was there first. It is shown as long as the parent
    /// refuses every request.
    duplicate_process: Option<String>,
    /// Kind of link to the parent, for pages and status.
    reported: ParentLink,
}

impl ParentTransport {
    /// Returns the transport for the replica of `state`, which connects by `dialer`, and notes in the state that there is
    /// a parent. Must be called within a tokio runtime.
    pub fn new(config: ParentTransportConfig, dialer: Dialer, state: Arc<ServerState>) -> Self {
        let node = Arc::clone(state.node());
        let mut upstream = Self {
            addresses: Addresses::new(config.servers.clone()),
            servers: config.servers,
            dialer,
            tasks: node.parent_tasks(),
            masterships: node.masterships(),
            node,
            state,
            connection: ConnectionNumber::default(),
            is_near: false,
            link: Link::Idle,
            rival: rival::none(),
            heard: None,
            duplicate_process: None,
            reported: ParentLink::Idle,
        };
        upstream.show(ParentLink::Idle, None);
        upstream
    }

    /// Serves the replica. Runs for ever: spawn it.
    pub async fn run(mut self) {
        let known = self.addresses.first().await;
        self.pass_on_addresses(known);
        loop {
            self.show_mastership();
            tokio::select! {
                // An event of a connection that the replica has left is of no use.
                biased;
                Some((task, trace)) = self.tasks.recv() => self.execute(task, trace.as_deref()),
                event = self.link.next() => self.hear(event),
                rival = &mut self.rival => {
                    self.rival = rival::none();
                    self.node.input(|replica, now| replica.handle_parent_rival(&rival, now));
                }
                () = self.addresses.changed() => {
                    if let Some(known) = self.addresses.newest() {
                        self.pass_on_addresses(known);
                    }
                }
                Ok(()) = self.masterships.changed() => {}
            }
            // Nothing more is read from the parent before all that it sent is handled.
            let is_done = |replica: &Replica| !replica.has_parent_work();
            self.node.work_until(is_done).await;
        }
    }

    /// Shows whether this server asks at all.
    fn show_mastership(&mut self) {
        let is_master = self.node.read(|node, now| node.mastership(now).is_master());
        if is_master == (self.reported == ParentLink::Idle) {
            self.heard = None;
            let link = match is_master {
                true => ParentLink::Down,
                false => ParentLink::Idle,
            };
            self.show(link, None);
        }
    }

    fn pass_on_addresses(&self, (known, named): Known) {
        self.node
            .input(|replica, now| replica.handle_parent_addresses(known, named, now));
    }

    /// Executes a task of the replica.
    fn execute(&mut self, task: ToParent, trace: Option<&str>) {
        match task {
            ToParent::Connect {
                connection,
                to,
                transport,
                rivals,
            } => {
                self.connection = connection;
                self.is_near = is_loopback(to.as_str());
                self.link = Link::connect(&self.dialer, &to, transport, CONNECT_TIMEOUT);
                self.rival = rival::find(self.dialer.clone(), rivals);
            }
            ToParent::Discover => self.link.discover(),
            ToParent::Open => self.link.open(),
            ToParent::Send(mut request) => {
                request.address = self.own_address();
                if !self.link.send(&request, trace) {
                    let problem = "the stream takes no more requests";
                    self.close(problem, ConnectionEnd::TakesNoMore);
                }
            }
            ToParent::Call(mut request) => {
                request.address = self.own_address();
                self.link.call(request);
            }
            ToParent::Close => {
                self.link = Link::Idle;
                self.rival = rival::none();
            }
            ToParent::Report(report) => self.report(report),
        }
    }

    /// Returns the address of this server for others. None: it means any host, or this machine while the parent is on
    /// another one, so it leads nowhere.
    fn own_address(&self) -> Option<SmolStr> {
        let address = self.state.address();
        let socket = address.parse::<SocketAddr>();
        let is_any = socket.is_ok_and(|it| it.ip().is_unspecified());
        let is_elsewhere = is_loopback(address) && !self.is_near;
        (!is_any && !is_elsewhere).then(|| address.into())
    }

    /// Passes an event of the link to the replica.
    fn hear(&mut self, event: Result<FromParent, LinkEnd>) {
        match event {
            Ok(event) => {
                if matches!(event, FromParent::Discovered(_)) {
                    self.rival = rival::none();
                }
                self.pass_on(event);
            }
            Err(LinkEnd::Unreachable(problem)) => self.close(&problem, ConnectionEnd::Unreachable),
            Err(LinkEnd::Ended) => self.close("the parent ended the stream", ConnectionEnd::Failed),
            Err(LinkEnd::Failed(status)) => self.hear_failure(&status),
        }
    }

    fn pass_on(&self, event: FromParent) {
        self.node
            .input(|replica, _| replica.handle_parent(self.connection, event));
    }

    fn close(&mut self, problem: &str, end: ConnectionEnd) {
        self.heard = Some(match self.dialer.refusal() {
            Some(alert) => format!("{problem}; the parent refuses our certificate: {alert}"),
            None => problem.to_owned(),
        });
        self.pass_on(FromParent::Closed(end));
    }

    /// Notes that a call or the stream failed.
    fn hear_failure(&mut self, status: &RpcStatus) {
        if let Some(answer) = cycle::heard(status) {
            let answer = server_capacity::parents_answer(answer, clock::wall());
            self.pass_on(FromParent::Cycle(answer.reply.ancestors));
        }
        self.close(&problem_of(status), closed::heard(status));
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
                let is_second = self.node.read_replica(|replica, now| {
                    let session = replica.parent_session();
                    session.is_some_and(|session| session.is_second(now))
                });
                self.duplicate_process.take_if(|_| !is_second);
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
        let address = |replica: &Replica, _| replica.parent_session()?.address().cloned();
        let asked = self.node.read_replica(address);
        self.name_of(asked)
    }

    /// Returns an address as text, or the configured ones if no server was asked yet.
    fn name_of(&self, address: Option<Address>) -> String {
        let asked = address.map(|address| address.to_string());
        asked.unwrap_or_else(|| self.servers.configured().join(", "))
    }

    fn show(&mut self, link: ParentLink, problem: Option<String>) {
        self.reported = link;
        self.state.set_parent(ParentNews {
            addresses: self.servers.configured(),
            address: self.address(),
            link,
            since: clock::wall(),
            problem,
        });
    }
}

/// Returns the text of a gRPC status, with every character visible.
fn problem_of(status: &RpcStatus) -> String {
    let source = status.source().map(innermost);
    let text = source.as_deref().unwrap_or(status.message());
    format!("{:?}: {}", status.code(), visible::cut(text))
}
