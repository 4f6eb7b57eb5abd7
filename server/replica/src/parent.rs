//! The link to the parent: what the session says ([`doorward_session::parent_session`]), applied to the node, and the
//! requests of the node.
//!
//! Events of the connection are handled one after the other. An answer may concern a thousand resources, and each step
//! handles one of them. The next event waits until the last step is done.

mod from_parent;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::messages::{GetServerCapacity, GetServerCapacityReply, NodeEvent};
use doorward_engine::node::Node;
use doorward_engine::node::upstream::{UpstreamAnswered, UpstreamRequest};
use doorward_engine::resource::parent::ParentPace;
use doorward_engine::time::Time;
use doorward_session::address::Address;
use doorward_session::close_reason::{CloseReason, ConnectionEnd};
use doorward_session::parent_session::{
    AnsweredResource, ConnectionNumber, Disposition, ParentAction, ParentReport, ParentSession,
    Reply, Transport,
};

use crate::config::ParentConfig;
use crate::output::{Output, ToParent};
pub use from_parent::FromParent;
use from_parent::{answered, master_info};

/// Number of resources whose leases are read in one step.
const RESOURCES_PER_STEP: usize = 128;

/// State of the link to the parent, for pages and readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParentStatus {
    /// Whether the parent has answered since the start, other than by a refusal of this server.
    pub has_answered: bool,
    /// Number of times that the epoch of the parent's master was forgotten for a lower one.
    pub epochs_forgotten: u64,
}

/// The link to the parent.
#[derive(Debug, Default)]
pub(crate) struct Parent {
    name: String,
    round: Duration,
    slow_round: Duration,
    pub(crate) session: ParentSession,
    /// Whether addresses were given, even if there are none.
    knows_addresses: bool,
    is_master: bool,
    events: VecDeque<(ConnectionNumber, FromParent)>,
    work: Option<Work>,
    /// Whether the parent is out of reach or refuses this server, as far as is known.
    pub(crate) is_down: bool,
    has_answered: bool,
    /// Whether the parent refuses this node as its own ancestor.
    pub(crate) is_refused_as_ancestor: bool,
    epochs_forgotten: u64,
    /// Number of answers that were applied.
    pub(crate) answers: u64,
    pub(crate) news: VecDeque<NodeEvent>,
}

/// Work in progress.
#[derive(Debug)]
enum Work {
    /// A request gets its resources.
    Request {
        begun: UpstreamRequest,
        transport: Transport,
        is_hello: bool,
    },
    /// A reply is applied.
    Reply {
        reply: GetServerCapacityReply,
        answered: UpstreamAnswered,
        invalid: Vec<(ResourceId, String)>,
    },
    /// The end of the last lease is looked up, before an event is handled that depends on it.
    LeasesEnd {
        on: ConnectionNumber,
        event: FromParent,
        last: Option<Time>,
        after: Option<ResourceId>,
    },
}

/// Surroundings of a step.
pub(crate) struct Step<'a> {
    pub(crate) node: &'a mut Node,
    pub(crate) outputs: &'a mut VecDeque<Output>,
    /// Random number, uniform in 0…1.
    pub(crate) chance: f64,
    pub(crate) now: Time,
    /// Wall clock, as time since the Unix epoch.
    pub(crate) wall: Duration,
}

impl Parent {
    /// Returns a link without a connection, for the node of that name.
    pub(crate) fn new(name: String, config: ParentConfig) -> Self {
        Self {
            name,
            round: config.round,
            slow_round: config.slow_round.max(config.round),
            knows_addresses: !config.addresses.is_empty(),
            session: ParentSession::new(config.addresses),
            ..Self::default()
        }
    }

    /// Returns the state for pages.
    pub(crate) fn status(&self) -> ParentStatus {
        ParentStatus {
            has_answered: self.has_answered,
            epochs_forgotten: self.epochs_forgotten,
        }
    }

    /// Whether an event is not handled yet, or an action not performed.
    pub(crate) fn has_work(&self) -> bool {
        self.work.is_some() || !self.events.is_empty() || self.session.has_actions()
    }

    /// Handles an event of a connection, after all earlier ones.
    pub(crate) fn handle(&mut self, on: ConnectionNumber, event: FromParent) {
        self.events.push_back((on, event));
    }

    /// Returns when a request or a timeout is due.
    pub(crate) fn poll_timeout(&self, node: &Node) -> Option<Time> {
        let ask = node.poll_upstream_timeout();
        let ask = ask.filter(|_| self.session.may_ask());
        ask.into_iter().chain(self.session.poll_timeout()).min()
    }

    /// Does the next step of the work that is due. Ready: nothing is due.
    pub(crate) fn advance(&mut self, step: &mut Step<'_>) -> Poll<()> {
        if let Some(work) = self.work.take() {
            self.work = self.go_on(work, step);
            return Poll::Pending;
        }
        if let Some(action) = self.session.poll_action() {
            self.act(action, step);
            return Poll::Pending;
        }
        if let Some((on, event)) = self.events.pop_front() {
            self.handle_event(on, event, step);
            return Poll::Pending;
        }
        let (node, now) = (&*step.node, step.now);
        if self.session.poll_timeout().is_some_and(|at| at <= now) {
            self.session.handle_timeout(step.chance, now);
            return Poll::Pending;
        }
        if self.session.may_ask() && node.poll_upstream_timeout().is_some_and(|at| at <= now) {
            self.session.handle_due();
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    fn handle_event(&mut self, on: ConnectionNumber, event: FromParent, step: &mut Step<'_>) {
        let (chance, now) = (step.chance, step.now);
        match event {
            FromParent::Connected => self.session.handle_connected(on, now),
            FromParent::Opened => self.session.handle_opened(on, now),
            FromParent::Progress => self.session.handle_progress(on, now),
            FromParent::Closed(end) => {
                if end == ConnectionEnd::ByParent(CloseReason::OlderMaster) {
                    step.node.handle_newer_start(now);
                }
                self.session.handle_closed(on, end, chance, now);
            }
            FromParent::Cycle(path) => self.handle_cycle(path, step),
            FromParent::Reply {
                call,
                reply,
                invalid,
            } => {
                let meta = Reply {
                    call,
                    not_master: None,
                    answered: &answered(&reply, &invalid),
                };
                let session = &mut self.session;
                let use_of = session.handle_reply(on, &meta, Duration::ZERO, chance, now);
                if use_of == Disposition::Keep {
                    self.work = Some(Work::Reply {
                        reply,
                        answered: UpstreamAnswered::default(),
                        invalid,
                    });
                }
            }
            event @ (FromParent::Discovered(_) | FromParent::NotMaster { .. }) => {
                self.work = Some(Work::LeasesEnd {
                    on,
                    event,
                    last: None,
                    after: None,
                });
            }
        }
    }

    /// Does one step of the work in progress. Returns the rest of it.
    fn go_on(&mut self, mut work: Work, step: &mut Step<'_>) -> Option<Work> {
        let (node, now) = (&mut *step.node, step.now);
        match &mut work {
            Work::Request {
                begun,
                transport,
                is_hello,
            } => match node.upstream_request_next(begun, now) {
                Poll::Pending => return Some(work),
                Poll::Ready(Some(request)) => self.send(request, *transport, step),
                Poll::Ready(None) => self.handle_nothing_due(*transport, *is_hello, step),
            },
            Work::Reply {
                reply,
                answered,
                invalid,
            } => {
                let Poll::Ready(is_applied) = node.upstream_reply_next(reply, answered, now) else {
                    return Some(work);
                };
                for (resource, problem) in invalid.drain(..).filter(|_| is_applied) {
                    node.handle_invalid_upstream_answer(&resource, problem, now);
                }
                self.answers += 1;
                self.note_answered(step);
            }
            Work::LeasesEnd {
                on,
                event,
                last,
                after,
            } => {
                let (end, next) =
                    node.upstream_leases_end_after(after.as_ref(), RESOURCES_PER_STEP, now);
                (*last, *after) = ((*last).max(end), next);
                if after.is_some() {
                    return Some(work);
                }
                let leases_last = last.map_or(Duration::ZERO, |end| end.since(now));
                self.handle_master_named(*on, event, leases_last, step);
            }
        }
        None
    }

    fn handle_master_named(
        &mut self,
        on: ConnectionNumber,
        event: &FromParent,
        leases_last: Duration,
        step: &Step<'_>,
    ) {
        let (chance, now) = (step.chance, step.now);
        match event {
            FromParent::Discovered(master) => {
                let master = master_info(master);
                self.session
                    .handle_discovered(on, master, leases_last, chance, now);
            }
            FromParent::NotMaster { call, master } => {
                let reply = Reply {
                    call: *call,
                    not_master: Some(master_info(master)),
                    answered: &[],
                };
                let session = &mut self.session;
                let use_of = session.handle_reply(on, &reply, leases_last, chance, now);
                debug_assert_eq!(use_of, Disposition::Drop);
            }
            _ => debug_assert!(false, "no other event waits for the end of the leases"),
        }
    }

    /// Performs an action of the session.
    fn act(&mut self, action: ParentAction, step: &mut Step<'_>) {
        let command = match action {
            ParentAction::Connect {
                connection,
                to,
                transport,
            } => ToParent::Connect {
                connection,
                to,
                transport,
                rivals: self.session.rivals(),
            },
            ParentAction::Discover => ToParent::Discover,
            ParentAction::Open => ToParent::Open,
            ParentAction::SetPace(transport) => return self.set_pace(transport, step),
            ParentAction::Send { is_hello } => {
                return self.begin_request(Transport::Stream, is_hello, step);
            }
            ParentAction::Call => return self.begin_request(Transport::Calls, false, step),
            ParentAction::Close => {
                step.node.handle_upstream_lost(step.now);
                ToParent::Close
            }
            ParentAction::Report(report) => {
                self.note_report(&report, step.now);
                ToParent::Report(report)
            }
        };
        step.outputs.push_back(Output::Parent(command));
    }

    /// Begins the request that is due, if there is one. `is_hello`: a stream needs a message in any case.
    fn begin_request(&mut self, transport: Transport, is_hello: bool, step: &mut Step<'_>) {
        let micros = u64::try_from(step.wall.as_micros()).unwrap_or(u64::MAX);
        match step.node.begin_upstream_request(micros, step.now) {
            None => self.handle_nothing_due(transport, is_hello, step),
            Some(begun) => {
                self.work = Some(Work::Request {
                    begun,
                    transport,
                    is_hello,
                });
            }
        }
    }

    fn send(&mut self, request: GetServerCapacity, transport: Transport, step: &mut Step<'_>) {
        let asks = request.asks.iter();
        let resources = asks.map(|ask| AnsweredResource::number_of(ask.resource.as_str()));
        let sequence = request.sequence.unwrap_or_default();
        self.session.handle_sent(sequence, resources, step.now);
        step.outputs.push_back(Output::Parent(match transport {
            Transport::Stream => ToParent::Send(request),
            Transport::Calls => ToParent::Call(request),
        }));
    }

    /// Greets the parent on a new stream, or notes that a parent that is polled need not be called.
    fn handle_nothing_due(&mut self, transport: Transport, is_hello: bool, step: &mut Step<'_>) {
        if transport == Transport::Stream {
            let greeting = is_hello.then(|| step.node.upstream_greeting(step.now));
            if let Some(greeting) = greeting.flatten() {
                self.send(greeting, transport, step);
            }
            return;
        }
        if step.node.poll_upstream_timeout().is_none() {
            self.session.handle_nothing_due();
        }
        if self.session.answers().is_some() {
            self.note_answered(step);
        }
    }

    /// Notes that the parent answers. A refusal of everything does not count: another process of this node was there
    /// first, or this node is its own ancestor.
    fn note_answered(&mut self, step: &mut Step<'_>) {
        if self.session.is_second(step.now) || step.node.is_in_cycle() {
            return;
        }
        self.has_answered = true;
        if std::mem::take(&mut self.is_refused_as_ancestor) {
            self.news.push_back(NodeEvent::CycleEnded);
        }
    }

    /// Notes that the parent refuses this node as its own ancestor. The nodes above this one on the path go to child
    /// servers, since one of them is on it.
    fn handle_cycle(&mut self, path: Vec<String>, step: &mut Step<'_>) {
        let Some(own) = path.iter().position(|node| *node == self.name) else {
            return;
        };
        let above = GetServerCapacityReply {
            ancestors: path.iter().take(own).cloned().collect(),
            ..GetServerCapacityReply::default()
        };
        if !std::mem::replace(&mut self.is_refused_as_ancestor, true) {
            self.news.push_back(NodeEvent::Cycle { ancestors: path });
        }
        step.node.handle_upstream_reply(&above, step.now);
        self.answers += 1;
    }

    /// Sets the time for which changes are gathered with this transport.
    fn set_pace(&self, transport: Transport, step: &mut Step<'_>) {
        let pace = ParentPace {
            round: match transport {
                Transport::Stream => self.round,
                Transport::Calls => self.slow_round,
            },
            slow: self.slow_round,
        };
        step.node.handle_upstream_pace(pace, step.now);
    }

    fn note_report(&mut self, report: &ParentReport, now: Time) {
        match report {
            ParentReport::Down { .. } | ParentReport::Replaced { .. } => self.is_down = true,
            ParentReport::Answers { .. } => self.is_down = self.session.is_second(now),
            ParentReport::EpochForgotten { .. } => self.epochs_forgotten += 1,
            ParentReport::Polls { .. } | ParentReport::Redirected { .. } => {}
        }
    }

    /// Notes that this server became the master of its node, or ceased to be.
    pub(crate) fn handle_mastership(&mut self, is_master: bool, chance: f64, now: Time) {
        self.is_master = is_master;
        self.is_down &= is_master;
        let asks = is_master && self.knows_addresses;
        self.session.handle_mastership(asks, chance, now);
    }

    /// Takes the addresses of the parent's servers, and the master that etcd names with its epoch.
    pub(crate) fn handle_addresses(
        &mut self,
        known: Arc<[Address]>,
        named: Option<(Address, u64)>,
        chance: f64,
        now: Time,
    ) {
        self.session.handle_addresses(known, named, chance, now);
        self.knows_addresses = true;
        self.session.handle_mastership(self.is_master, chance, now);
    }
}
