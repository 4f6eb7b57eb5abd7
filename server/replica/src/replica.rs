//! The replica: inputs, steps, outputs.
//!
//! **Contract of a driver.** After each input, and at the time of [`Replica::poll_timeout`], call [`Replica::advance`]
//! until it is ready, then take all outputs and events. Time never runs backwards. One step of `advance` handles one
//! resource at most, so a driver with a lock may give it back in between. Other inputs may come before `advance` is
//! ready.
//!
//! An input is a method here whose name begins with `handle_`; it takes notes, and leaves the work to the steps. Calls
//! of clients and releases need no session: they are changes of the node ([`Replica::change`]).

mod alone;

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use doorward_engine::id::{HolderId, Incarnation};
use doorward_engine::messages::{ClientLease, GetCapacity, GetCapacityReply, NodeEvent};
use doorward_engine::node::asking::Answers;
use doorward_engine::node::marks::FoundMarks;
use doorward_engine::node::mastership::{Mastership, Outcome, Term};
use doorward_engine::node::reload::PreparedTemplates;
use doorward_engine::node::{self, Node};
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;
use doorward_session::address::Address;
use doorward_session::candidate::standing::Standing;
use doorward_session::candidate::store::{OpAnswer, OpId, TreePlace};
use doorward_session::candidate::{Candidate, CandidateConfig};
use doorward_session::child_streams::{ChildStreams, StreamState, StreamsSnapshot};
use doorward_session::parent_session::{ConnectionNumber, ParentSession};

use crate::calls::Calls;
use crate::chance::Chance;
use crate::children::{ChildMessage, Children};
use crate::config::ReplicaConfig;
use crate::election::{self, Election};
use crate::output::{CallNumber, Output};
use crate::parent::{FromParent, Parent, ParentStatus, Step};

/// Answer to a client.
#[derive(Clone, Debug)]
pub enum ClientAnswer {
    /// The answer.
    Final(Outcome<GetCapacityReply>),
    /// The call waits for the parent. Its answer comes as [`Output::Call`].
    Waits(CallNumber),
}

/// One server of a node. See the [module](self).
#[derive(Debug)]
pub struct Replica {
    node: Node,
    parent: Option<Parent>,
    children: Children,
    calls: Calls,
    /// Absent: this server is the only one of its node, or does not take part yet.
    election: Option<Election>,
    /// Whether a state directory has the marks of the node.
    keeps_marks: bool,
    /// Number of the last templates that were handed in, and of the last that are in force.
    templates_given: u64,
    templates_applied: u64,
    /// Number of the last templates that every resource has.
    templates_swept: u64,
    chance: Chance,
    outputs: VecDeque<Output>,
    /// Number of masterships of the nodes before the last restart.
    masterships_before: u64,
    /// Mastership of the node that the sessions know of, by its number.
    mastership: u64,
    /// Number of answers of the parent, and of confirmed writes of marks, that the calls and the streams know of.
    answers: u64,
    ancestors: Vec<String>,
    /// Whether a step may be due since `advance` was last ready.
    is_busy: bool,
    /// Part that does the next step.
    turn: u8,
}

impl Replica {
    /// Returns a server that knows no master yet.
    pub fn new(config: ReplicaConfig, templates: Templates) -> Self {
        let node = node::Config {
            has_parent: config.parent.is_some(),
            ..config.node
        };
        let (name, seed) = (node.name.clone(), node.seed);
        let streams = ChildStreams::new(config.push_round);
        Self {
            node: Node::new(node, templates),
            parent: config.parent.map(|it| Parent::new(name.clone(), it)),
            children: Children::new(name, streams, config.stream_limits),
            calls: Calls::default(),
            election: None,
            keeps_marks: false,
            templates_given: 0,
            templates_applied: 0,
            templates_swept: 0,
            chance: Chance::new(seed),
            outputs: VecDeque::new(),
            masterships_before: 0,
            mastership: 0,
            answers: 0,
            ancestors: Vec::new(),
            is_busy: false,
            turn: 0,
        }
    }

    /// Returns the node.
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the number of masterships so far, of this server or another, known or unknown.
    pub const fn masterships(&self) -> u64 {
        self.masterships_before + self.node.masterships()
    }

    /// Returns the session with the parent. None: this is the root.
    pub fn parent_session(&self) -> Option<&ParentSession> {
        self.parent.as_ref().map(|parent| &parent.session)
    }

    /// Returns the state of the link to the parent. None: this is the root.
    pub fn parent_status(&self) -> Option<ParentStatus> {
        self.parent.as_ref().map(Parent::status)
    }

    /// Whether this node is its own ancestor, so that there is nothing to lease.
    pub fn is_in_cycle(&self) -> bool {
        let parent = self.parent.as_ref();
        parent.is_some_and(|it| it.is_refused_as_ancestor) || self.node.is_in_cycle()
    }

    /// Returns the streams of child servers, for pages.
    pub fn streams(&self) -> StreamsSnapshot {
        self.children.streams.snapshot()
    }

    /// Returns the candidate. None: this server takes part in no election.
    pub fn candidate(&self) -> Option<&Candidate> {
        self.election.as_ref().map(|election| &election.candidate)
    }

    /// Returns the standing of this server, as far as it takes part in an election.
    pub fn standing(&self) -> Option<&Standing> {
        self.election.as_ref().map(Election::standing)
    }

    /// Whether an event of the connection to the parent is not handled yet, or has tasks that are not among the outputs
    /// yet.
    pub fn has_parent_work(&self) -> bool {
        self.parent.as_ref().is_some_and(Parent::has_work)
    }

    /// Whether a message on a stream is not answered yet.
    pub fn is_answering(&self, stream: u64) -> bool {
        self.children.is_answering(stream)
    }

    /// Returns the number of child servers with an open stream.
    pub fn children_count(&self) -> usize {
        let streams = self.streams().streams.into_iter();
        let mut open = streams.filter(|it| it.0 == StreamState::Open);
        open.next().map_or(0, |it| it.1)
    }

    fn place(&self) -> TreePlace {
        election::place(&self.node, self.parent.is_some())
    }

    fn is_parent_down(&self) -> bool {
        self.parent.as_ref().is_some_and(|it| it.is_down)
    }

    // Inputs.

    /// Changes the node, by a call that no session needs to know of.
    pub fn change<T>(&mut self, change: impl FnOnce(&mut Node, Time) -> T, now: Time) -> T {
        let answer = change(&mut self.node, now);
        self.note_changes(now);
        answer
    }

    /// Answers the next ask of a client. If something is not ready, because the parent or etcd must answer, the call waits.
    pub fn answer_client_next(
        &mut self,
        request: &GetCapacity,
        answers: &mut Answers<ClientLease>,
        now: Time,
    ) -> Poll<ClientAnswer> {
        let decided = self.node.answer_client_next(request, answers, now);
        self.note_changes(now);
        decided.map(|outcome| match outcome {
            // It is useless to wait for a parent that is down.
            Outcome::Served(reply) if !reply.is_ready() && !self.is_parent_down() => {
                self.is_busy = true;
                ClientAnswer::Waits(self.calls.keep(request, reply, now))
            }
            outcome => ClientAnswer::Final(outcome),
        })
    }

    /// Notes that the client of a waiting call has left.
    pub fn handle_client_gone(&mut self, number: CallNumber) {
        self.calls.forget(number);
    }

    /// Takes the addresses of the parent's servers, in the order to try, and the master that etcd names with its epoch.
    pub fn handle_parent_addresses(
        &mut self,
        known: Arc<[Address]>,
        named: Option<(Address, u64)>,
        now: Time,
    ) {
        let chance = self.chance.draw();
        if let Some(parent) = &mut self.parent {
            parent.handle_addresses(known, named, chance, now);
            self.is_busy = true;
        }
    }

    /// Handles an event of the connection to the parent of that number.
    pub fn handle_parent(&mut self, on: ConnectionNumber, event: FromParent) {
        if let Some(parent) = &mut self.parent {
            parent.handle(on, event);
            self.is_busy = true;
        }
    }

    /// Notes that another server of the parent answered before the one that is asked.
    pub fn handle_parent_rival(&mut self, rival: &Address, now: Time) {
        let chance = self.chance.draw();
        if let Some(parent) = &mut self.parent {
            parent.session.handle_rival(rival, chance, now);
            self.is_busy = true;
        }
    }

    /// Notes a new stream of a child server. Returns its number.
    pub fn handle_stream_opened(&mut self, now: Time) -> u64 {
        self.is_busy = true;
        self.children.streams.handle_connected(now)
    }

    /// Handles a message on a stream. The driver reads the next message of the stream after the answer.
    pub fn handle_stream_message(&mut self, number: u64, message: ChildMessage, now: Time) {
        self.is_busy = true;
        let mastership = self.masterships();
        self.children
            .handle_message(number, message, &self.node, mastership, now);
    }

    /// Tells the streams of an event without a message: a child does not read its stream, or closed it, or this server
    /// stops.
    pub fn change_streams(&mut self, change: impl FnOnce(&mut ChildStreams)) {
        self.is_busy = true;
        change(&mut self.children.streams);
    }

    /// Notes that a client has opened or closed a stream. Its first request on the stream comes after that.
    pub fn handle_client_stream(&mut self, client: &HolderId, open: bool) {
        self.node.handle_client_stream(client, open);
    }

    /// Takes part in the election of the node from now on.
    pub fn handle_election(&mut self, config: CandidateConfig, now: Time) {
        self.election = Some(Election::new(config, self.place(), now));
        self.change_candidate(|_, _| {}, now);
    }

    /// Notes whether the keys can be followed, and when etcd last confirmed the present view.
    pub fn handle_etcd_contact(&mut self, seen_at: Time, is_away: bool, now: Time) {
        let place = self.place();
        let contact = |candidate: &mut Candidate, now| {
            candidate.handle_place(place, now);
            candidate.handle_contact(seen_at, is_away, now);
        };
        self.change_candidate(contact, now);
    }

    /// Takes the answer to a request to etcd.
    pub fn handle_etcd_answer(&mut self, id: OpId, answer: OpAnswer, now: Time) {
        let chance = self.chance.draw();
        let handle =
            |candidate: &mut Candidate, now| candidate.handle_answer(id, answer, chance, now);
        self.change_candidate(handle, now);
    }

    /// Takes new templates. They come into force as soon as the election lets them. Returns their number.
    pub fn handle_templates(&mut self, prepared: PreparedTemplates, now: Time) -> u64 {
        self.templates_given += 1;
        match &mut self.election {
            Some(election) if election.holds_templates() => {
                election.handle_templates(prepared, &self.node, now);
            }
            _ => {
                election::apply(prepared, &mut self.node, now);
                self.templates_applied += 1;
            }
        }
        self.change_candidate(|_, _| {}, now);
        self.templates_given
    }

    /// Changes the candidate, if this server takes part in an election.
    pub fn change_candidate(&mut self, change: impl FnOnce(&mut Candidate, Time), now: Time) {
        if let Some(election) = &mut self.election {
            change(&mut election.candidate, now);
            self.templates_applied += election.drain(&mut self.node, &mut self.outputs, now);
        }
        self.is_busy = true;
        self.note_changes(now);
    }

    /// Replaces the node by one that knows nothing of its grants except their latest end, because this one cannot be
    /// trusted any more. It keeps its mastership, and learns. Calls that waited are forgotten. Returns the former node.
    pub fn restart(&mut self, incarnation: Incarnation, now: Time) -> Node {
        let mastership = self.node.mastership(now).clone();
        let valid_until = self.node.valid_until();
        // Streams of child servers belong to the former node. They end, because the number of masterships grows.
        self.masterships_before = self.masterships() + 1;
        let restarted = self.node.restarted(incarnation);
        let former = std::mem::replace(&mut self.node, restarted);
        self.calls.forget_all();
        // The work that panicked must not be tried again.
        self.children.forget_work();
        match (&mastership, valid_until) {
            (Mastership::Master { epoch: Some(epoch) }, Some(valid_until)) => {
                let term = Term {
                    epoch: *epoch,
                    vacant_since: Some(now),
                    // The node knows by itself how long its own leases may last.
                    longer_leases: Duration::ZERO,
                    valid_until,
                };
                match &mut self.election {
                    Some(election) => election.begin_again(term, &mut self.node, now),
                    None => self.node.handle_term(term, now),
                }
            }
            _ if self.keeps_marks => self.node.handle_alone(FoundMarks::default(), now),
            _ => self.node.handle_mastership(mastership, now),
        }
        self.is_busy = true;
        self.note_changes(now);
        former
    }

    // Steps, outputs and timeouts.

    /// Does the next step of the work that is due. `wall` is the wall clock, as time since the Unix epoch. Ready:
    /// nothing is due.
    pub fn advance(&mut self, now: Time, wall: Duration) -> Poll<()> {
        let unix = i64::try_from(wall.as_millis()).unwrap_or(i64::MAX);
        self.node.handle_wall_clock(unix, now);
        const PARTS: u8 = 5;
        for _ in 0..PARTS {
            self.turn = (self.turn + 1) % PARTS;
            if self.step(self.turn, now, wall).is_pending() {
                self.note_changes(now);
                return Poll::Pending;
            }
        }
        self.is_busy = false;
        Poll::Ready(())
    }

    /// Does the next step of one part. All parts have their turn, so none waits for all work of another.
    fn step(&mut self, part: u8, now: Time, wall: Duration) -> Poll<()> {
        match part {
            0 => {
                if self.node.poll_timeout().is_none_or(|at| now < at) {
                    return Poll::Ready(());
                }
                self.node.handle_timeout(now);
                Poll::Pending
            }
            1 => match &mut self.parent {
                None => Poll::Ready(()),
                Some(parent) => parent.advance(&mut Step {
                    node: &mut self.node,
                    outputs: &mut self.outputs,
                    chance: self.chance.draw(),
                    now,
                    wall,
                }),
            },
            2 => self
                .children
                .advance(&mut self.node, &mut self.outputs, now, wall),
            3 => {
                let is_parent_down = self.is_parent_down();
                self.calls
                    .advance(&mut self.node, is_parent_down, &mut self.outputs, now)
            }
            _ if self.keeps_marks => self.write_marks(now),
            _ => {
                let election = self.election.as_mut();
                let writes = election.is_some_and(|it| it.write_marks(&mut self.node, now));
                let timeout = self.candidate().and_then(Candidate::poll_timeout);
                if !writes && timeout.is_none_or(|at| now < at) {
                    return Poll::Ready(());
                }
                self.change_candidate(Candidate::handle_timeout, now);
                Poll::Pending
            }
        }
    }

    /// Tells the sessions what has changed in the node, and in one another.
    fn note_changes(&mut self, now: Time) {
        if self.masterships() != self.mastership {
            self.mastership = self.masterships();
            self.children.streams.handle_mastership(self.mastership);
            let is_master = self.node.mastership(now).is_master();
            if let Some(parent) = &mut self.parent {
                parent.handle_mastership(is_master, self.chance.draw(), now);
            }
            self.is_busy = true;
        }
        let of_parent = self.parent.as_ref().map_or(0, |it| it.answers);
        let answers = of_parent + self.node.marks_written();
        if answers != self.answers {
            self.answers = answers;
            self.calls.handle_news();
            if self.node.ancestors() != self.ancestors {
                self.ancestors = self.node.ancestors().to_vec();
                let ancestors = self.ancestors.iter().map(String::as_str);
                self.children.streams.handle_ancestors(ancestors);
            }
            self.is_busy = true;
        }
        if self.templates_swept != self.templates_applied && self.node.is_swept() {
            self.templates_swept = self.templates_applied;
            let applied = Output::TemplatesApplied(self.templates_swept);
            self.outputs.push_back(applied);
        }
        self.children.handle_change(&self.node, now);
    }

    /// Returns the next task for the driver.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns the next event for the log.
    pub fn poll_event(&mut self) -> Option<NodeEvent> {
        let of_parent = self.parent.as_mut().and_then(|it| it.news.pop_front());
        of_parent.or_else(|| self.node.poll_event())
    }

    /// Returns the next large value to drop elsewhere: [`Node::poll_garbage`].
    pub fn poll_garbage(&mut self) -> Option<Box<dyn Any + Send>> {
        self.node.poll_garbage()
    }

    /// Returns the latest time to call [`Replica::advance`]. It may be in the past. None: not before the next input.
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.is_busy {
            return Some(Time::ZERO);
        }
        let parent = self.parent.as_ref();
        let parent = parent.and_then(|it| it.poll_timeout(&self.node));
        let timeouts = [
            self.node.poll_timeout(),
            parent,
            self.children.streams.poll_timeout(),
            self.calls.poll_timeout(),
            self.candidate().and_then(Candidate::poll_timeout),
            self.marks_due(),
        ];
        timeouts.into_iter().flatten().min()
    }
}
