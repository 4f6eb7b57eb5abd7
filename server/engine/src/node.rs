//! The state machine of a server node.
//!
//! Its methods come in four kinds: getters; `handle_*` (a request or an event in, at a time; the
//! answer out); `poll_*` (what the node wants done, or reports); and `snapshot`s (read-only
//! views for pages, metrics and tests). The contract: one mutation, then drain the `poll_*`; time
//! never runs backwards.
//!
//! A message may name a thousand resources. A method whose name ends in `_next` handles one of them, and is called
//! until it is ready. In between, the shell may give its lock back, and other calls may come. Each resource is asked
//! for and answered by itself, so a request of many resources is the same as one request for each of them. `handle_*`
//! and `poll_*` of such a message make all of these calls.
//!
//! Below the root, what there is to share is leased from a parent ([`upstream`]); a holder may be a
//! client or a child server ([`children`]).
//!
//! Only a master decides anything; *not the master* is an [`Outcome`](mastership::Outcome), not an error. A node
//! drops all knowledge of leases whenever mastership is won or lost.

pub mod asking;
pub mod budgets;
pub mod child_servers;
pub mod children;
mod entry;
pub mod learning;
pub mod marks;
pub mod mastership;
pub mod pages;
pub mod reload;
mod resources;
mod sweep;
pub mod upstream;

use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::task::Poll;
use std::time::Duration;

use crate::admission::Admission;
use crate::admission::limits::Limits;
use crate::budget::Budget;
use crate::claims::POINTS_MAX;
use crate::id::{Incarnation, MastershipId, ResourceId};
use crate::messages::{Counters, NodeEvent, ResourceSnapshot};
use crate::node::budgets::Budgets;
use crate::node::children::Children;
use crate::node::entry::{Conflicts, Entry};
use crate::node::marks::NodeMarks;
use crate::node::mastership::Mastership;
use crate::node::reload::ActiveTemplates;
use crate::node::resources::{ResourceSlot, Resources};
use crate::node::sweep::Sweep;
use crate::node::upstream::NodeUpstream;
use crate::resource::Garbage;
use crate::resource::retry::Retries;
use crate::templates::Templates;
use crate::time::Time;
use crate::time::tolerance::Tolerance;

/// Events kept for [`Node::poll_event`]; the oldest are dropped if it is not called.
const EVENTS_MAX: usize = 4096;

/// Values kept for [`Node::poll_garbage`]; further ones are dropped at once if it is not called.
const GARBAGE_MAX: usize = 64;

/// The state machine of a server node. See the [module](self).
#[derive(Debug)]
pub struct Node {
    config: Config,
    active_templates: ActiveTemplates,
    /// Work that concerns every resource.
    sweep: Sweep,
    mastership: Mastership,
    /// No earlier master of the node has decided anything since then. None: no lease of it is left.
    vacant_since: Option<Time>,
    /// The longest lease that templates no longer in force may have given by then. It includes grants of a predecessor
    /// under templates that were in force here before.
    longer_leases: Duration,
    /// Latest end of leases under earlier templates with longer leases, as far as this server knew them before this
    /// mastership, or granted them itself.
    former_leases_until: Time,
    /// The marks of its resources. None: this server keeps none.
    marks: Option<Box<NodeMarks>>,
    /// The mastership of this server that ended last because its time was over, and when that was.
    ended: Option<(u64, Time)>,
    /// When mastership ends by itself.
    valid_until: Option<Time>,
    masterships: u64,
    mastership_id: MastershipId,
    conflicts: Conflicts,
    resources: Resources,
    budgets: Budgets,
    admission: Admission,
    retries: Retries,
    /// The next timeout of every resource that has one.
    timeouts: BTreeSet<(Time, ResourceSlot)>,
    upstream: NodeUpstream,
    children: Children,
    events: VecDeque<NodeEvent>,
    garbage: Garbage,
    counters: Counters,
}

impl Node {
    /// A node that knows of no master yet.
    pub fn new(config: Config, templates: Templates) -> Self {
        Self::with_templates(config, ActiveTemplates::first(templates))
    }

    fn with_templates(config: Config, active_templates: ActiveTemplates) -> Self {
        Self {
            mastership_id: MastershipId::of(config.incarnation, 0),
            admission: Admission::new(config.seed),
            retries: Retries::new(config.seed),
            conflicts: Conflicts::default(),
            resources: Resources::new(config.seed),
            budgets: Budgets::default(),
            config,
            active_templates,
            sweep: Sweep::default(),
            mastership: Mastership::Unknown,
            vacant_since: None,
            longer_leases: Duration::ZERO,
            former_leases_until: Time::ZERO,
            marks: None,
            ended: None,
            valid_until: None,
            masterships: 0,
            timeouts: BTreeSet::new(),
            upstream: NodeUpstream::default(),
            children: Children::default(),
            events: VecDeque::new(),
            garbage: Garbage::new(),
            counters: Counters::default(),
        }
    }

    /// Returns a node that knows nothing of this one's grants except their latest end, for a shell that cannot trust
    /// this node any more. Other nodes see it as another process.
    pub fn restarted(&self, incarnation: Incarnation) -> Self {
        let config = Config {
            incarnation,
            ..self.config.clone()
        };
        let mut node = Self::with_templates(config, self.active_templates.clone());
        node.former_leases_until = self.known_leases_until();
        node
    }

    /// Handles one due resource, and one that has not heard yet of what concerns all. More may be due at the same time.
    pub fn handle_timeout(&mut self, now: Time) {
        self.end_term_if_over(now);
        self.sweep_next(now);
        if self.handle_budget_timeout(now) {
            return;
        }
        let Some(&first) = self.timeouts.first().filter(|(at, _)| *at <= now) else {
            return;
        };
        let (_, slot) = first;
        self.bring_slot_up_to_date(slot, now);
        let Some(Entry { resource, .. }) = self.resources.at_mut(slot) else {
            // It had no holders when it heard what concerns all.
            self.timeouts.remove(&first);
            return;
        };
        if resource.handle_timeout(now) {
            let resource = resource.id().clone();
            self.push_event(NodeEvent::LearningEnded { resource });
        }
        self.settle_at(slot, now);
    }

    /// Returns when to call [`Node::handle_timeout`] next, or a little later: for a resource, for the end of the term,
    /// or for a sweep over all resources.
    pub fn poll_timeout(&self) -> Option<Time> {
        let of_resources = self.timeouts.first().map(|(at, _)| *at);
        let of_budgets = self.budgets.next_timeout();
        let due = [of_resources, of_budgets, self.valid_until, self.sweep.due()];
        due.into_iter().flatten().min()
    }

    /// Returns the oldest event that was not returned yet.
    pub fn poll_event(&mut self) -> Option<NodeEvent> {
        self.events.pop_front()
    }

    /// Returns a large value that the node does not need any more. Its driver drops it where no request waits for that.
    pub fn poll_garbage(&mut self) -> Option<Box<dyn Any + Send>> {
        self.garbage.pop()
    }

    /// Leaves a value to [`Node::poll_garbage`].
    fn discard(&mut self, value: Box<dyn Any + Send>) {
        if self.garbage.len() < GARBAGE_MAX {
            self.garbage.push(value);
        }
    }

    /// A view of one resource that has holders.
    pub fn resource_snapshot(&self, resource: &ResourceId, now: Time) -> Option<ResourceSnapshot> {
        let budget = self.budgets.get(resource);
        let entry = self.resources.get(resource);
        entry
            .map(|entry| entry.resource.snapshot(now))
            .or_else(|| Some(budget?.snapshot(self.budgets.clock_at(now), now)))
    }

    /// Asserts that every kept sum is what its parts add up to. O(leases), for tests.
    ///
    /// # Panics
    ///
    /// If one is not.
    pub fn assert_consistent(&self) {
        let (pace, has_parent) = (self.upstream.pace(), self.config.has_parent);
        for entry in self.resources.values() {
            let has_heard = entry.heard == self.sweep.generation();
            assert!(has_heard || !self.is_swept(), "{}", entry.resource.id());
            entry.assert_consistent(pace, has_parent, has_heard);
        }
        self.assert_counted();
        self.budgets.after(None).for_each(Budget::assert_consistent);
        self.resources.assert_consistent();
        let scheduled = self
            .resources
            .slots()
            .filter_map(|slot| Some((self.resources.at(slot)?.scheduled?, slot)));
        assert_eq!(
            scheduled.collect::<BTreeSet<_>>(),
            self.timeouts,
            "timeouts"
        );
    }

    fn push_event(&mut self, event: NodeEvent) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

/// Calls a method for one resource after the other, until it is ready.
fn to_end<T>(mut next: impl FnMut() -> Poll<T>) -> T {
    loop {
        if let Poll::Ready(answer) = next() {
            return answer;
        }
    }
}

/// How a node is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// The node's name; unique in the tree.
    pub name: String,
    /// Whether capacity is leased from a parent. If not, this is the root, and templates say what
    /// there is.
    pub has_parent: bool,
    /// Identity of this process, drawn anew at each start.
    pub incarnation: Incarnation,
    /// Number of this start of a server without an election, for its parent: its epoch. Absent: not known.
    pub starts: Option<u64>,
    /// The only chance the engine is handed: it keys hashing and spreads refreshes.
    pub seed: u64,
    /// Requests of one holder for one resource that come faster than this get their current lease
    /// again, without a new decision. Zero: every request is decided.
    pub refresh_floor: Duration,
    /// Largest error of the node's clock.
    pub clock_tolerance: Tolerance,
    /// Limits on resources, leases and requests.
    pub limits: Limits,
    /// Points of the demand curve of fewer than [`FEW`](crate::claims::FEW) holders of a resource.
    pub few_points: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "root".to_owned(),
            has_parent: false,
            incarnation: Incarnation::FIRST,
            starts: None,
            seed: 0,
            refresh_floor: Duration::from_secs(1),
            clock_tolerance: Tolerance::default(),
            limits: Limits::default(),
            few_points: POINTS_MAX,
        }
    }
}
