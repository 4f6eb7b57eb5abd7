//! The node in a process: behind a lock, on the real clock.
//!
//! The lock is taken for pure calls of the engine, for a millisecond or two at most, and never across an await. After
//! each change of the node, its events go to the log, and the timer learns if the next timeout has moved forward.
//!
//! If the engine ever panics, its sums can no longer be trusted. The node is then started anew, as if the process had
//! been restarted: it forgets its leases, and learns them from the holders in learning mode. That costs a learning
//! period, but grants nothing beyond the capacity.

mod disposal;
mod holds;
mod lock;

use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use doorward_engine::messages::NodeEvent;
use doorward_engine::node::mastership::{Mastership, Term};
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;
use tokio::sync::{Notify, watch};
use tracing::{debug, error, info, warn};

use crate::clock::{self, Clock};
use crate::limits::ServerLimits;
use crate::node_handle::lock::{Held, NodeLock};
pub use crate::node_handle::lock::{LockTimes, Spans, SpansSeen};
use crate::status::learning;
use crate::status::model::refusal;

/// A node on the real clock, shared by everyone in the process.
#[derive(Debug)]
pub struct NodeHandle {
    lock: NodeLock,
    clock: Clock,
    /// Wakes the timer: the next timeout is earlier than it knows.
    timeout_moved: Notify,
    /// Wakes the task that asks the parent: its next request is due earlier than it knows.
    upstream_moved: Notify,
    /// Tells that grants of child servers may change.
    unsettled: Notify,
    /// Counts the parent's answers.
    answered: watch::Sender<u64>,
    /// Number of masterships of the nodes before the last restart.
    masterships_before: AtomicU64,
    /// Master of the node, as the node knows it.
    mastership: watch::Sender<NumberedMastership>,
    limits: Arc<ServerLimits>,
}

/// A mastership, and its number.
type NumberedMastership = (u64, Mastership);

impl NodeHandle {
    /// Returns a node that knows no master yet.
    pub fn new(config: Config, templates: Templates, clock: Clock) -> Self {
        let limits = ServerLimits::default();
        limits.set_of_node(&config.limits);
        Self {
            limits: Arc::new(limits),
            lock: NodeLock::new(Node::new(config, templates), clock),
            clock,
            timeout_moved: Notify::new(),
            upstream_moved: Notify::new(),
            unsettled: Notify::new(),
            answered: watch::Sender::new(0),
            masterships_before: AtomicU64::new(0),
            mastership: watch::Sender::new((0, Mastership::Unknown)),
        }
    }

    /// Returns the clock of the node.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the limits of the server with their refusals. The node's use is that of the last call of
    /// [`NodeHandle::post_load`].
    pub fn limits(&self) -> &Arc<ServerLimits> {
        &self.limits
    }

    /// Sets the use of the node's limits in [`NodeHandle::limits`]. The caller gives the number of holders of the
    /// largest resource.
    pub fn post_load(&self, leases_per_resource: usize) {
        let load = self.look(|node, _| node.load());
        self.limits.set_used_by_node(&load, leases_per_resource);
    }

    /// Returns how long threads held the lock of the node, and waited for it.
    pub fn lock_times(&self) -> &LockTimes {
        self.lock.times()
    }

    /// Returns the number of threads that wait for the lock of the node now.
    pub fn waiting(&self) -> u32 {
        self.lock.waiting()
    }

    /// Reads the node.
    pub fn read<T>(&self, look: impl FnOnce(&Node, Time) -> T) -> T {
        let node = self.lock();
        let now = node.now();
        look(&node, now)
    }

    /// Reads the node as one of many small steps on a thread of its own. Waiting threads go first.
    pub fn look<T>(&self, look: impl FnOnce(&Node, Time) -> T) -> T {
        self.lock.let_others_go_first();
        self.read(look)
    }

    /// Changes the node, and passes on its events.
    pub fn change<T>(&self, change: impl FnOnce(&mut Node, Time) -> T) -> T {
        let mut events = Vec::new();
        let mut refused = None;
        let (answer, moved, upstream_moved, unsettled, mastership, garbage) = {
            let mut node = self.lock();
            let before = node.poll_timeout();
            let upstream_before = node.poll_upstream_timeout();
            let masterships_before = self.count_masterships(&node);
            let now = node.now();
            let refusals_before = node.refused_by_limits();
            let refused_before = *node.refused_by_limit();
            let answer = change(&mut node, now);
            if node.refused_by_limits() != refusals_before {
                refused = Some((refused_before, *node.refused_by_limit(), now));
            }
            let after = node.poll_timeout();
            while let Some(event) = node.poll_event() {
                events.push(event);
            }
            let moved = is_earlier(after, before);
            let upstream_moved = is_earlier(node.poll_upstream_timeout(), upstream_before);
            let masterships = self.count_masterships(&node);
            let mastership = (masterships != masterships_before)
                .then(|| (masterships, node.mastership(now).clone()));
            let unsettled = node.has_pushes();
            let garbage: Vec<_> = iter::from_fn(|| node.poll_garbage()).collect();
            (
                answer,
                moved,
                upstream_moved,
                unsettled,
                mastership,
                garbage,
            )
        };
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
        if upstream_moved {
            self.upstream_moved.notify_one();
        }
        if unsettled {
            self.unsettled.notify_one();
        }
        for event in events {
            log(&event);
        }
        answer
    }

    /// Returns the number of masterships so far, of this server or another, known or unknown. It grows with every
    /// change of mastership.
    pub fn masterships_count(&self) -> u64 {
        self.count_masterships(&self.lock())
    }

    fn count_masterships(&self, node: &Node) -> u64 {
        self.masterships_before.load(Ordering::Relaxed) + node.masterships()
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
        // The task that asks the parent has to begin or to end.
        self.upstream_moved.notify_one();
    }

    /// Waits until the parent may have to be asked earlier than before. Cancel safe.
    pub async fn upstream_moved(&self) {
        self.upstream_moved.notified().await;
    }

    /// Waits until child servers may get something else. Cancel safe.
    pub async fn unsettled(&self) {
        self.unsettled.notified().await;
    }

    /// Counts an answer of the parent, so that waiting tasks may ask again.
    pub fn note_answered(&self) {
        self.answered.send_modify(|count| *count += 1);
    }

    /// Returns the number of the parent's answers.
    pub fn answered(&self) -> u64 {
        *self.answered.borrow()
    }

    /// Returns a receiver that counts the parent's answers from now on.
    pub fn answers(&self) -> watch::Receiver<u64> {
        self.answered.subscribe()
    }

    /// Returns a receiver that counts the parent's answers. Every answer after the first `answered` is news.
    pub fn answers_since(&self, answered: u64) -> watch::Receiver<u64> {
        let mut answers = self.answered.subscribe();
        if *answers.borrow_and_update() != answered {
            answers.mark_changed();
        }
        answers
    }

    /// Returns a receiver of the node's masterships. They change by an election, or by the clock.
    pub fn masterships(&self) -> watch::Receiver<(u64, Mastership)> {
        self.mastership.subscribe()
    }

    /// Calls the node whenever one of its timeouts is due. Runs for ever: spawn it.
    pub async fn run_timer(self: Arc<Self>) {
        loop {
            let next = self.finish(|node, now| match node.poll_timeout() {
                Some(at) if at <= now => {
                    node.handle_timeout(now);
                    Poll::Pending
                }
                later => Poll::Ready(later),
            });
            match next.await {
                Some(at) => {
                    tokio::select! {
                        () = self.clock.sleep_until(at) => {}
                        () = self.timeout_moved.notified() => {}
                    }
                }
                None => self.timeout_moved.notified().await,
            }
        }
    }

    fn lock(&self) -> Held<'_> {
        self.lock.take(|poisoned| self.restart(poisoned))
    }

    /// Starts the node anew, after the engine panicked during a change.
    fn restart<'a>(&'a self, poisoned: PoisonError<MutexGuard<'a, Node>>) -> MutexGuard<'a, Node> {
        let mut node = poisoned.into_inner();
        error!("the engine panicked: its leases are forgotten and learned from their holders");
        let now = self.clock.now();
        let mastership = node.mastership(now).clone();
        let valid_until = node.valid_until();
        let masterships = self.count_masterships(&node) + 1;
        let anew = node.restarted(clock::incarnation());
        let former = std::mem::replace(&mut *node, anew);
        disposal::dispose(Box::new(former));
        // The new node counts masterships from the beginning. The sum must grow, so that receivers see another
        // mastership.
        self.masterships_before
            .store(masterships, Ordering::Relaxed);
        match (&mastership, valid_until) {
            (Mastership::Master { epoch: Some(epoch) }, Some(valid_until)) => {
                let term = Term {
                    epoch: *epoch,
                    vacant_since: Some(now),
                    // The node knows by itself how long its own leases may last.
                    longer_leases: Duration::ZERO,
                    valid_until,
                };
                node.handle_term(term, now)
            }
            _ => node.handle_mastership(mastership, now),
        }
        self.lock.clear_poison();
        // Streams of child servers belong to the former node, so they must be opened anew.
        self.announce_mastership((self.count_masterships(&node), node.mastership(now).clone()));
        node
    }
}

fn is_earlier(after: Option<Time>, before: Option<Time>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => after < before,
        (None, after) => after.is_some(),
        (Some(_), None) => false,
    }
}

/// Logs an event in one line. Events that any new client can cause are logged for debugging only.
pub(crate) fn log(event: &NodeEvent) {
    match event {
        NodeEvent::TermEnded { epoch } => error!(
            epoch,
            "mastership could not be confirmed in time, and is over: nothing is granted until it is \
             won again; is etcd reachable?"
        ),
        NodeEvent::ResourceAdded { resource, template } => {
            debug!(%resource, template, "resource added");
        }
        NodeEvent::RefusedByParent { resource, reason } => {
            let reason = refusal(*reason);
            warn!(%resource, reason, "the parent refuses it; its leases run down");
        }
        NodeEvent::InvalidParentAnswer { resource, problem } => {
            warn!(%resource, problem, "the parent's answer makes no sense and is passed over");
        }
        NodeEvent::Cycle { ancestors } => error!(
            path = ancestors.join(" → "),
            "this server's capacity would come from itself, by way of its parent; what the parent \
             says is passed over; check --node and --parent of the servers on this way"
        ),
        NodeEvent::CycleRefused(cycle) => error!(%cycle, "a child server is refused"),
        NodeEvent::CycleEnded => info!("this server is its own ancestor no more"),
        NodeEvent::ResourceDropped { resource } => debug!(%resource, "resource dropped"),
        NodeEvent::LearningBegan { resource, left } => learning::log_beginning(resource, *left),
        NodeEvent::LearningEnded { resource } => info!(%resource, "learning mode ended"),
        NodeEvent::CapacityBelowReserved {
            resource,
            capacity,
            reserved,
        } => warn!(
            %resource,
            capacity,
            reserved,
            "capacity is below what is out; nothing new is granted until it fits"
        ),
        NodeEvent::TwoProcesses { resource, holder } => error!(
            %resource,
            %holder,
            "two live processes ask under one name; give each a name of its own, or stop one"
        ),
        NodeEvent::TemplateGone { resource } => {
            warn!(%resource, "its template is gone; its leases run down");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use doorward_engine::amount::Amount;
    use doorward_engine::id::{HolderName, ResourceId};
    use doorward_engine::messages::{Ask, GetCapacity};
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
        let handle = Arc::new(NodeHandle::new(
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
                resource: ResourceId::new("r").expect("an id"),
                priority: 0,
                wants: Amount::new(1.0).expect("an amount"),
                has: None,
            }],
        };
        handle.change(|node, now| {
            node.handle_mastership(Mastership::Master { epoch: Some(1) }, now);
            node.handle_get_capacity(&request, now)
        });
        while handle.read(|node, now| !node.snapshot(now).resources.is_empty()) {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            handle.read(|node, now| node.snapshot(now).counters.expired),
            1
        );
        timer.abort();
    }

    #[test]
    fn a_panic_of_the_engine_starts_the_node_anew_and_keeps_its_mastership() {
        let handle = NodeHandle::new(Config::default(), Templates::default(), Clock::start());
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
