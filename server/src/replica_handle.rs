//! The replica in a process: behind a lock, on the real clock.
//!
//! The lock is taken for pure calls, for a millisecond or two at most, and never across an await. After each change,
//! the replica's tasks go to their [transports], its events go to the log, and the timer learns if the next timeout has
//! moved forward.
//!
//! If the engine ever panics, its sums can no longer be trusted. The node is then started anew, as if the process had
//! been restarted: it forgets its leases, and learns them from the holders in learning mode. That costs a learning
//! period, but grants nothing beyond the capacity.

mod disposal;
pub(crate) mod events;
mod holds;
mod lock;
mod pushes;
mod transports;

use std::iter;
use std::sync::Arc;
use std::task::Poll;

use doorward_door::refusals::Refusals;
use doorward_engine::messages::{ClientLease, GetCapacity, GetCapacityReply};
use doorward_engine::node::Node;
use doorward_engine::node::asking::Answers;
use doorward_engine::node::marks::MarkWrites;
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::reload::PreparedTemplates;
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;
use doorward_replica::{CallNumber, ClientAnswer, Replica, ReplicaConfig, ToChild, ToEtcd};
use doorward_session::candidate::CandidateConfig;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tracing::error;

use crate::clock::{self, Clock};
use crate::limits::{ServerLimit, ServerLimits};
use crate::otel;
pub use crate::replica_handle::lock::LockTimes;
use crate::replica_handle::lock::NodeLock;
pub use crate::replica_handle::pushes::PushStream;
use crate::replica_handle::transports::{CausedTask, Transports};

/// A replica on the real clock, shared by all parts of the process.
#[derive(Debug)]
pub struct ReplicaHandle {
    lock: NodeLock,
    clock: Clock,
    /// Wakes the timer: the next timeout is earlier than it knows.
    timeout_moved: Notify,
    /// Master of the node, as the node knows it.
    mastership: watch::Sender<NumberedMastership>,
    limits: Arc<ServerLimits>,
    /// Names of two live processes.
    conflicts: Refusals,
}

/// Data behind the lock.
#[derive(Debug)]
struct Shared {
    replica: Replica,
    transports: Transports,
    /// When the timer wakes. None: when it is notified.
    wakes_at: Option<Time>,
}

/// A mastership, and its number.
type NumberedMastership = (u64, Mastership);

impl ReplicaHandle {
    /// Returns a server that knows no master yet.
    pub fn new(config: impl Into<ReplicaConfig>, templates: Templates, clock: Clock) -> Self {
        let config = config.into();
        let limits = ServerLimits::default();
        limits.set_of_node(&config.node.limits);
        let shared = Shared {
            replica: Replica::new(config, templates),
            transports: Transports::default(),
            wakes_at: None,
        };
        Self {
            limits: Arc::new(limits),
            lock: NodeLock::new(shared, clock),
            clock,
            timeout_moved: Notify::new(),
            mastership: watch::Sender::new((0, Mastership::Unknown)),
            conflicts: Refusals::default(),
        }
    }

    /// Returns the clock of the node.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the limits of the server with their refusals, and the use that [`ReplicaHandle::set_load`] has set.
    pub fn limits(&self) -> &Arc<ServerLimits> {
        &self.limits
    }

    /// Sets the use of the node's limits in [`ReplicaHandle::limits`]. The caller gives the number of holders of the
    /// largest resource.
    pub fn set_load(&self, leases_per_resource: usize) {
        self.lock.let_others_go_first();
        let (load, children) =
            self.read_replica(|replica, _| (replica.node().load(), replica.children_count()));
        self.limits.set_used_by_node(&load, leases_per_resource);
        let children = u64::try_from(children).unwrap_or(u64::MAX);
        self.limits.of(ServerLimit::ChildServers).set_used(children);
    }

    /// Returns how long threads held and awaited the lock of the node.
    pub fn lock_times(&self) -> &LockTimes {
        &self.lock.times
    }

    /// Returns the number of threads that wait for the lock of the node now.
    pub fn waiting(&self) -> u32 {
        self.lock.waiting()
    }

    /// Reads the node.
    pub fn read<T>(&self, look: impl FnOnce(&Node, Time) -> T) -> T {
        self.read_replica(|replica, now| look(replica.node(), now))
    }

    /// Returns the present mastership of the node.
    pub fn mastership(&self) -> Mastership {
        self.read(|node, now| node.mastership(now).clone())
    }

    /// Reads the replica.
    pub fn read_replica<T>(&self, look: impl FnOnce(&Replica, Time) -> T) -> T {
        self.hold(|shared, now| look(&shared.replica, now))
    }

    /// Reads the node as one of many small steps on a thread of its own. Waiting threads go first.
    pub fn look<T>(&self, look: impl FnOnce(&Node, Time) -> T) -> T {
        self.lock.let_others_go_first();
        self.read(look)
    }

    /// Changes the node.
    pub fn change<T>(&self, change: impl FnOnce(&mut Node, Time) -> T) -> T {
        self.input(|replica, now| replica.change(change, now))
    }

    /// Gives the replica an input. The timer's task does the work that follows; a caller that waits for it calls
    /// [`ReplicaHandle::work_until`].
    pub fn input<T>(&self, input: impl FnOnce(&mut Replica, Time) -> T) -> T {
        self.change_shared(|shared, now| input(&mut shared.replica, now))
    }

    /// Changes the replica, and passes on its outputs and events.
    fn change_shared<T>(&self, change: impl FnOnce(&mut Shared, Time) -> T) -> T {
        let mut events = Vec::new();
        let mut refused = None;
        let (answer, moved, mastership, garbage) = self.hold(|shared, now| {
            let masterships_before = shared.replica.masterships();
            let refusals_before = shared.replica.node().refused_by_limits();
            let refused_before = *shared.replica.node().refused_by_limit();
            let answer = change(shared, now);
            let Shared {
                replica,
                transports,
                wakes_at,
            } = shared;
            if replica.node().refused_by_limits() != refusals_before {
                refused = Some((refused_before, *replica.node().refused_by_limit(), now));
            }
            transports.pass_on(replica);
            events.extend(iter::from_fn(|| replica.poll_event()));
            let due = replica.poll_timeout();
            let moved = due.is_some_and(|due| wakes_at.is_none_or(|at| due < at));
            if moved {
                *wakes_at = due;
            }
            let masterships = replica.masterships();
            let mastership = (masterships != masterships_before)
                .then(|| (masterships, replica.node().mastership(now).clone()));
            let garbage: Vec<_> = iter::from_fn(|| replica.poll_garbage()).collect();
            (answer, moved, mastership, garbage)
        });
        if let Some((before, after, now)) = refused {
            let since_start = now.since(Time::ZERO);
            self.limits.refuse_by_node(&before, &after, since_start);
        }
        garbage.into_iter().for_each(disposal::dispose);
        if let Some(mastership) = mastership {
            self.announce_mastership(mastership);
        }
        if moved {
            self.timeout_moved.notify_one();
        }
        for event in events {
            events::log(&event, &self.conflicts);
        }
        answer
    }

    /// Answers the next ask of a client. If the call has to wait for the parent, returns the future of its answer.
    pub fn answer_client_next(
        self: &Arc<Self>,
        request: &GetCapacity,
        answers: &mut Answers<ClientLease>,
    ) -> Poll<Asked> {
        self.hold_shared(|shared, now| self.ask(shared, request, answers, now))
    }

    /// Answers all asks of a client that remain. None: the node was started anew, and has forgotten the call.
    pub async fn answer_client(
        self: &Arc<Self>,
        request: &GetCapacity,
        answers: &mut Answers<ClientLease>,
    ) -> Option<Outcome<GetCapacityReply>> {
        let asked = self.finish_shared(|shared, now| self.ask(shared, request, answers, now));
        match asked.await {
            Asked::Final(outcome) => Some(outcome),
            Asked::Waits(waiting) => waiting.answer().await,
        }
    }

    fn ask(
        self: &Arc<Self>,
        shared: &mut Shared,
        request: &GetCapacity,
        answers: &mut Answers<ClientLease>,
        now: Time,
    ) -> Poll<Asked> {
        let answer = shared.replica.answer_client_next(request, answers, now);
        answer.map(|answer| match answer {
            ClientAnswer::Final(outcome) => Asked::Final(outcome),
            ClientAnswer::Waits(number) => {
                let (sender, answer) = oneshot::channel();
                shared.transports.calls.insert(number, sender);
                shared.transports.cause = otel::current().map(|trace| (number, trace));
                let node = Arc::clone(self);
                Asked::Waits(WaitingAnswer {
                    node,
                    number,
                    answer,
                })
            }
        })
    }

    /// Opens a stream for a child server. Returns its number and its tasks.
    pub fn open_stream(&self) -> (u64, mpsc::UnboundedReceiver<ToChild>) {
        let (sender, tasks) = mpsc::unbounded_channel();
        let number = self.change_shared(|shared, now| {
            let number = shared.replica.handle_stream_opened(now);
            shared.transports.streams.insert(number, sender);
            number
        });
        (number, tasks)
    }

    /// Notes that a child closed its stream, or that the stream broke.
    pub fn close_stream(&self, number: u64) {
        self.change_shared(|shared, _| {
            shared.transports.streams.remove(&number);
            shared.replica.change_streams(|it| it.handle_gone(number));
        });
    }

    /// Returns the tasks for the connection to the parent, from now on.
    pub fn parent_tasks(&self) -> mpsc::UnboundedReceiver<CausedTask> {
        let (sender, tasks) = mpsc::unbounded_channel();
        self.change_shared(|shared, _| shared.transports.parent = Some(sender));
        tasks
    }

    /// Returns the marks for the state directory, from now on.
    pub fn mark_writes(&self) -> mpsc::UnboundedReceiver<(u64, MarkWrites)> {
        let (sender, writes) = mpsc::unbounded_channel();
        self.change_shared(|shared, _| shared.transports.marks = Some(sender));
        writes
    }

    /// Takes part in an election. Returns the tasks for the connection to etcd.
    pub fn take_part(&self, config: CandidateConfig) -> mpsc::UnboundedReceiver<ToEtcd> {
        let (sender, tasks) = mpsc::unbounded_channel();
        self.change_shared(|shared, now| {
            shared.transports.etcd = Some(sender);
            shared.replica.handle_election(config, now);
        });
        tasks
    }

    /// Brings templates into force as soon as the election lets them. Ends when every resource has them, or never if
    /// this server stops before.
    pub async fn apply_templates(&self, prepared: PreparedTemplates) {
        let (sender, applied) = oneshot::channel();
        self.change_shared(|shared, now| {
            let number = shared.replica.handle_templates(prepared, now);
            shared.transports.templates.push((number, sender));
        });
        if applied.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn announce_mastership(&self, mastership: NumberedMastership) {
        // The lock may be released by now: another change may have been faster.
        self.mastership.send_if_modified(|seen| {
            let is_news = mastership.0 > seen.0;
            if is_news {
                *seen = mastership;
            }
            is_news
        });
    }

    /// Returns a receiver of the node's masterships. They change by an election, or by the clock.
    pub fn masterships(&self) -> watch::Receiver<(u64, Mastership)> {
        self.mastership.subscribe()
    }

    /// Does the work of the replica whenever it is due. Runs for ever: spawn it.
    pub async fn run_timer(self: Arc<Self>) {
        loop {
            let next = self.finish_shared(|shared, now| {
                let work = self.advance(shared, now);
                work.map(|()| {
                    shared.wakes_at = shared.replica.poll_timeout();
                    shared.wakes_at
                })
            });
            let at = next.await;
            tokio::select! {
                () = self.clock.sleep_until(at.unwrap_or(Time::ZERO)), if at.is_some() => {}
                () = self.timeout_moved.notified() => {}
            }
        }
    }

    /// Takes the lock. Starts the node anew, if the engine panicked during a change.
    fn hold<T>(&self, work: impl FnOnce(&mut Shared, Time) -> T) -> T {
        self.lock.hold(|shared| self.start_anew(shared), work)
    }

    fn start_anew(&self, shared: &mut Shared) {
        error!("the engine panicked: its leases are forgotten and learned from their holders");
        let now = self.clock.now();
        let replica = &mut shared.replica;
        let former = replica.restart(clock::incarnation(), now);
        disposal::dispose(Box::new(former));
        let present = replica.node().mastership(now).clone();
        let mastership = (replica.masterships(), present);
        // The clients of calls that waited ask again.
        shared.transports.calls.clear();
        self.announce_mastership(mastership);
        shared.wakes_at = Some(Time::ZERO);
        self.timeout_moved.notify_one();
    }
}

/// Answer to a client, as far as it is known at once.
#[derive(Debug)]
pub enum Asked {
    /// The answer.
    Final(Outcome<GetCapacityReply>),
    /// The call waits for the parent.
    Waits(WaitingAnswer),
}

/// A call that waits for the parent. If it is dropped, its client has left.
#[derive(Debug)]
pub struct WaitingAnswer {
    node: Arc<ReplicaHandle>,
    number: CallNumber,
    answer: oneshot::Receiver<Outcome<GetCapacityReply>>,
}

impl WaitingAnswer {
    /// Waits for the answer. None: the node was started anew, and has forgotten the call.
    pub async fn answer(mut self) -> Option<Outcome<GetCapacityReply>> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for WaitingAnswer {
    fn drop(&mut self) {
        if !self.answer.is_terminated() {
            let number = self.number;
            self.node.change_shared(|shared, _| {
                shared.transports.calls.remove(&number);
                shared.replica.handle_client_gone(number);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    use doorward_engine::amount::Amount;
    use doorward_engine::claims::Subclients;
    use doorward_engine::id::{HolderName, ResourceId};
    use doorward_engine::messages::Ask;
    use doorward_engine::node::Config;
    use doorward_engine::templates::{AlgorithmKind, TemplateSpec};

    use super::*;

    #[tokio::test]
    async fn a_lease_that_ends_is_forgotten_without_anybody_asking() {
        let templates = Templates::parse(&[TemplateSpec {
            identifier_glob: Some("r".to_owned()),
            capacity: Some(1.0),
            kind: Some(AlgorithmKind::FairShare),
            lease_length: Some(Duration::from_millis(20)),
            refresh_interval: Some(Duration::from_millis(10)),
            learning_mode_duration: Some(Duration::ZERO),
            ..TemplateSpec::default()
        }])
        .expect("valid");
        let handle = Arc::new(ReplicaHandle::new(
            Config::default(),
            templates,
            Clock::start(),
        ));
        let timer = tokio::spawn(Arc::clone(&handle).run_timer());
        // The timer has nothing to wait for until the first lease.
        tokio::task::yield_now().await;
        let request = GetCapacity {
            caller: None,
            incarnation: None,
            client: HolderName::new("a").expect("a name"),
            sequence: None,
            asks: vec![Ask {
                budget: None,
                resource: ResourceId::new("r").expect("an id"),
                priority: 0,
                weight: Subclients::ONE,
                wants: Amount::new(1.0).expect("an amount"),
                has: None,
            }],
        };
        handle.change(|node, now| {
            node.handle_mastership(Mastership::Master { epoch: Some(1) }, now);
            node.handle_get_capacity(&request, now)
        });
        while handle.read(|node, _| node.resources_count() > 0) {
            tokio::task::yield_now().await;
        }
        assert_eq!(handle.read(|node, _| node.counters().expired), 1);
        timer.abort();
    }

    #[test]
    fn a_panic_of_the_engine_starts_the_node_anew_and_keeps_its_mastership() {
        let handle = ReplicaHandle::new(Config::default(), Templates::default(), Clock::start());
        let master = Mastership::Master { epoch: Some(7) };
        for epoch in 1..=5 {
            let other = Mastership::Master { epoch: Some(epoch) };
            handle.change(|node, now| node.handle_mastership(other, now));
        }
        handle.change(|node, now| node.handle_mastership(master.clone(), now));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            handle.change(|_, _| panic!("a bug in the engine"))
        }));
        assert!(panicked.is_err());
        assert_eq!(
            handle.read(|node, now| node.mastership(now).clone()),
            master
        );
        handle.change(Node::handle_timeout);
        // Receivers of masterships still get news.
        let mut seen = handle.masterships();
        assert_eq!(seen.borrow_and_update().1, master);
        handle.change(|node, now| node.handle_mastership(Mastership::Unknown, now));
        assert!(seen.has_changed().expect("it lives"));
        assert_eq!(seen.borrow().1, Mastership::Unknown);
    }
}
