//! The state machine of a server node.
//!
//! Its methods come in four kinds: getters; `handle_*` (a request or an event in, at a time; the
//! answer out); `poll_*` (what the node wants done, or has to tell); and `snapshot`s (read-only
//! views for pages, metrics and tests). The contract: one mutation, then drain the `poll_*`; time
//! never runs backwards.
//!
//! Below the root, what there is to share is leased from a parent ([`upstream`]); a holder may be a
//! client or a child server ([`children`]).
//!
//! Only a master decides anything; *not the master* is an [`Outcome`], not an error. What is known
//! of leases is dropped whenever mastership is won or lost.

mod admission;
pub mod ancestry;
pub mod children;
mod config;
mod conflicts;
pub mod event;
pub mod learning;
pub mod mastership;
mod spans;
pub mod upstream;

pub use config::Config;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::admission::weight::{self, Weight};
use crate::admission::{Admission, CallerSlot, From, Gate, TemplateSlot};
use crate::amount::Amount;
use crate::claim::Claim;
use crate::demand::Demand;
use crate::id::{HolderId, Incarnation, MastershipId, ResourceId};
use crate::node::children::Children;
use crate::node::conflicts::Conflicts;
use crate::node::event::Event;
use crate::node::mastership::{Mastership, Outcome};
use crate::node::upstream::NodeUpstream;
use crate::request::{
    Ask, GetCapacity, GetCapacityReply, Lease, Refusal, RefusalReason, ReleaseCapacity, Released,
};
use crate::resource::Resource;
use crate::resource::ask::{Answer, AnswerKind, HolderAsk};
use crate::snapshot::{Conflict, Counters, LeaseSnapshot, NodeSnapshot, ResourceSnapshot};
use crate::template::Templates;
use crate::time::Time;

/// When the node wants [`Node::handle_timeout`] called, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout {
    /// At that time or soon after.
    pub at: Time,
    /// What is due then.
    pub reason: TimeoutReason,
}

/// What is due at a [`Timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutReason {
    /// A lease may have ended.
    LeaseExpiry,
    /// A resource's learning mode ends.
    LearningEnd,
    /// Mastership ends, unless it is confirmed before.
    TermEnd,
}

/// Events kept for [`Node::poll_event`]; the oldest are dropped if nobody asks.
const EVENTS_MAX: usize = 4096;

/// Steps of taking out ended leases in one [`Node::handle_timeout`].
const EXPIRIES_PER_TIMEOUT: usize = 1024;

/// A resource, and its entry among the timeouts.
#[derive(Debug)]
struct Entry {
    resource: Resource,
    scheduled: Option<(Time, bool)>,
    upstream_scheduled: Option<Time>,
    template: TemplateSlot,
    /// Who brought it.
    caller: CallerSlot,
    /// What it weighed when that was last counted.
    weighed: Weight,
}

/// The state machine of a server node. See the [module](self).
#[derive(Debug)]
pub struct Node {
    config: Config,
    templates: Templates,
    mastership: Mastership,
    /// No earlier master of the node has decided anything since then.
    vacant_since: Time,
    /// The longest lease that was out then by templates other than those in force. What a
    /// predecessor granted by templates that were in force here, and are not any more, counts, too.
    longer_leases: Duration,
    /// Until when leases may last by templates that gave longer ones than those in force, as far as
    /// this server knew before this mastership, or granted them itself.
    former_leases_until: Time,
    /// The mastership of this server that ended last because its time was over, and when that was.
    ended: Option<(u64, Time)>,
    /// When mastership ends by itself.
    valid_until: Option<Time>,
    masterships: u64,
    mastership_id: MastershipId,
    conflicts: Conflicts,
    resources: BTreeMap<ResourceId, Entry>,
    admission: Admission,
    /// The next timeout of every resource that has one; true is for the end of learning mode.
    timeouts: BTreeSet<(Time, bool, ResourceId)>,
    upstream: NodeUpstream,
    children: Children,
    events: VecDeque<Event>,
    counters: Counters,
}

impl Node {
    /// A node that knows of no master yet.
    pub fn new(config: Config, templates: Templates) -> Self {
        Self {
            mastership_id: MastershipId::of(config.incarnation, 0),
            admission: Admission::new(config.seed, templates.len()),
            conflicts: Conflicts::default(),
            config,
            templates,
            mastership: Mastership::Unknown,
            vacant_since: Time::ZERO,
            longer_leases: Duration::ZERO,
            former_leases_until: Time::ZERO,
            ended: None,
            valid_until: None,
            masterships: 0,
            resources: BTreeMap::new(),
            timeouts: BTreeSet::new(),
            upstream: NodeUpstream::default(),
            children: Children::default(),
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// A node that knows nothing of what this one has granted, but how long that may last at most: for
    /// a shell that cannot trust this one any more. It is another process to everybody else.
    pub fn anew(&self, incarnation: Incarnation) -> Self {
        let config = Config {
            incarnation,
            ..self.config.clone()
        };
        let mut node = Self::new(config, self.templates.clone());
        node.former_leases_until = self.known_leases_until();
        node
    }

    /// New templates are in force from now on, also for the leases that are out: each is changed
    /// when its holder asks next.
    ///
    /// A root that is learning goes on for as long as leases of its predecessors may last, also if
    /// these give shorter ones.
    pub fn handle_templates(&mut self, templates: Templates, now: Time) {
        self.end_term_if_over(now);
        if !self.config.has_parent && self.mastership.is_master() {
            let outlasts = self.templates.outlasts(&templates);
            let learned = self.templates.learning_outlasts(&templates);
            self.longer_leases = self.longer_leases.max(learned);
            let lasts = self.config.clock_tolerance.report(outlasts);
            self.former_leases_until = self.former_leases_until.max(now + lasts);
        }
        self.admission.handle_templates(&self.templates, &templates);
        self.templates = templates;
        let ids: Vec<ResourceId> = self.resources.keys().cloned().collect();
        for id in ids {
            let found = self.templates.find_with_position(&id);
            let of = found.map_or(TemplateSlot::NONE, |(position, _)| {
                TemplateSlot::of(position)
            });
            let template = found.map(|(_, template)| Arc::clone(template));
            let Some(entry) = self.resources.get_mut(&id) else {
                continue;
            };
            entry.template = of;
            self.admission
                .note_resource_of(of, entry.weighed.leases + entry.weighed.curves);
            let resource = &mut entry.resource;
            let had_source = resource.has_source();
            resource.handle_template(template, self.longer_leases, now);
            let over = resource.overcommitted();
            if had_source && !resource.has_source() {
                self.tell(Event::TemplateGone {
                    resource: id.clone(),
                });
            } else if let Some((capacity, reserved)) = over {
                self.tell(Event::CapacityBelowReserved {
                    resource: id.clone(),
                    capacity,
                    reserved,
                });
            }
            self.settle(&id);
        }
    }

    /// A client asks for capacity. Every ask is answered by a lease or refused by name, each on its
    /// own; a refused ask changes nothing.
    pub fn handle_get_capacity(
        &mut self,
        request: &GetCapacity,
        now: Time,
    ) -> Outcome<GetCapacityReply> {
        if let Err(mastership) = self.check_master(now) {
            self.counters.redirected += 1;
            return Outcome::NotMaster(mastership);
        }
        let holder = HolderId::client(request.client.clone());
        let mut reply = GetCapacityReply {
            leases: Vec::with_capacity(request.asks.len()),
            refused: Vec::new(),
        };
        let mut seen = BTreeSet::new();
        for ask in &request.asks {
            let answer = if request.asks.len() > 1 && !seen.insert(&ask.resource) {
                Err(RefusalReason::Duplicate)
            } else {
                self.handle_ask(&holder, request, ask, now)
            };
            match answer {
                Ok(lease) => reply.leases.push(lease),
                Err(reason) => {
                    self.counters.refused += 1;
                    reply.refused.push(Refusal {
                        resource: ask.resource.clone(),
                        reason,
                    });
                }
            }
        }
        Outcome::Served(reply)
    }

    /// A client gives back what it holds. Says of each resource, in the order of the request, what
    /// became of it.
    pub fn handle_release_capacity(
        &mut self,
        request: &ReleaseCapacity,
        now: Time,
    ) -> Outcome<Vec<Released>> {
        if let Err(mastership) = self.check_master(now) {
            self.counters.redirected += 1;
            return Outcome::NotMaster(mastership);
        }
        let holder = HolderId::client(request.client.clone());
        let caller = self.admission.find_caller(request.caller);
        let mut results = Vec::with_capacity(request.resources.len());
        for id in &request.resources {
            let Some(Entry { resource, .. }) = self.resources.get_mut(id) else {
                results.push(Released::NotThere);
                continue;
            };
            let (process, sequence) = (request.incarnation, request.sequence);
            let result = resource.handle_release(&holder, process, sequence, caller, now);
            match result {
                Released::Freed => self.counters.released += 1,
                Released::OutOfOrder => self.counters.out_of_order += 1,
                Released::UnlessHeard(_) | Released::NotThere => {}
            }
            results.push(result);
            self.settle(id);
        }
        Outcome::Served(results)
    }

    /// The time of [`Node::poll_timeout`] has come. Does a bounded amount of work; more may be due
    /// at once.
    pub fn handle_timeout(&mut self, now: Time) {
        self.end_term_if_over(now);
        let mut steps_left = EXPIRIES_PER_TIMEOUT;
        while steps_left > 0 {
            let Some((at, _, id)) = self.timeouts.first() else {
                return;
            };
            if *at > now {
                return;
            }
            let id = id.clone();
            let Some(Entry { resource, .. }) = self.resources.get_mut(&id) else {
                // Every entry belongs to a resource; not looping for ever is what matters here.
                self.timeouts.pop_first();
                continue;
            };
            let steps = steps_left.min(64);
            steps_left -= steps;
            if resource.handle_timeout(steps, now) {
                self.tell(Event::LearningEnded {
                    resource: id.clone(),
                });
            }
            self.settle(&id);
        }
    }

    /// When to call [`Node::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Timeout> {
        let of_resources = self.timeouts.first().map(|(at, learning, _)| Timeout {
            at: *at,
            reason: if *learning {
                TimeoutReason::LearningEnd
            } else {
                TimeoutReason::LeaseExpiry
            },
        });
        let of_term = self.valid_until.map(|at| Timeout {
            at,
            reason: TimeoutReason::TermEnd,
        });
        [of_term, of_resources]
            .into_iter()
            .flatten()
            .min_by_key(|timeout| timeout.at)
    }

    /// What happened since the last call, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The templates in force.
    pub fn templates(&self) -> &Templates {
        &self.templates
    }

    /// A view of the node without its leases. O(resources).
    pub fn snapshot(&self, now: Time) -> NodeSnapshot {
        NodeSnapshot {
            resources: self
                .resources
                .values()
                .map(|entry| entry.resource.snapshot(now))
                .collect(),
            conflicts: self.conflicts(now).cloned().collect(),
            counters: self.counters,
        }
    }

    /// Names under which two live processes ask, as far as that was seen lately.
    pub fn conflicts(&self, now: Time) -> impl Iterator<Item = &Conflict> {
        self.conflicts.shown(now)
    }

    /// A view of one resource that has holders.
    pub fn resource_snapshot(&self, resource: &ResourceId, now: Time) -> Option<ResourceSnapshot> {
        self.resources
            .get(resource)
            .map(|entry| entry.resource.snapshot(now))
    }

    /// Up to `max` leases of one resource, sorted by holder if those are all.
    pub fn lease_snapshots(
        &self,
        resource: &ResourceId,
        max: usize,
        now: Time,
    ) -> Vec<LeaseSnapshot> {
        let entry = self.resources.get(resource);
        let mut leases =
            entry.map_or_else(Vec::new, |entry| entry.resource.lease_snapshots(max, now));
        leases.sort_by(|a, b| a.holder.cmp(&b.holder));
        leases
    }

    /// Bytes of memory behind all resources. O(leases); what is bounded is an estimate that costs nothing.
    pub fn memory_bytes(&self) -> usize {
        self.resources
            .values()
            .map(|entry| entry.resource.memory_bytes())
            .sum()
    }

    /// Asserts that every kept sum is what its parts add up to. O(leases), for tests.
    ///
    /// # Panics
    ///
    /// If one is not.
    pub fn assert_consistent(&self) {
        for (
            id,
            Entry {
                resource,
                scheduled,
                upstream_scheduled,
                weighed,
                ..
            },
        ) in &self.resources
        {
            let due = resource.upstream_due(self.upstream.pace());
            assert_eq!(*upstream_scheduled, due, "when to ask the parent for {id}");
            resource.assert_consistent();
            assert_eq!(*weighed, resource.weight(), "what {id} weighs");
            assert!(
                !resource.is_empty(),
                "{id} has no holders and is still there"
            );
            assert!(
                scheduled.is_some() || upstream_scheduled.is_some() || self.config.has_parent,
                "{id} has leases that will end, and no timeout"
            );
            assert_eq!(*scheduled, resource.next_timeout(), "the timeout of {id}");
        }
        self.assert_counted();
        let scheduled = self.resources.iter().filter_map(|(id, entry)| {
            entry
                .scheduled
                .map(|(time, learning)| (time, learning, id.clone()))
        });
        assert_eq!(
            scheduled.collect::<BTreeSet<_>>(),
            self.timeouts,
            "timeouts"
        );
    }

    fn handle_ask(
        &mut self,
        holder: &HolderId,
        request: &GetCapacity,
        ask: &Ask,
        now: Time,
    ) -> Result<Lease, RefusalReason> {
        let id = &ask.resource;
        if !self.resources.contains_key(id) {
            self.add_resource(id, From::Client(request.caller), now)?;
        }
        let Some(Entry {
            resource, template, ..
        }) = self.resources.get_mut(id)
        else {
            return Err(RefusalReason::UnknownResource);
        };
        let holder_ask = HolderAsk {
            holder,
            incarnation: request.incarnation,
            sequence: request.sequence,
            demand: Demand::Client {
                priority: ask.priority,
                claim: Claim::of_client(ask.wants),
            },
            has: ask.has.map(|has| self.config.clock_tolerance.has(has)),
            outstanding: None,
            told_of: &[],
            unheard: Amount::ZERO,
            report: None,
            floor: self.config.refresh_floor,
            caller: CallerSlot::NOBODY,
        };
        let mut gate = Gate {
            admission: &mut self.admission,
            limits: &self.config.limits,
            caller: request.caller,
            template: *template,
        };
        let answer = resource.handle_ask(&holder_ask, &mut gate, now);
        self.settle(id);
        let answer = answer?;
        self.count(&answer);
        Ok(self.config.clock_tolerance.lease(Lease {
            resource: id.clone(),
            capacity: answer.lease.capacity,
            expires_in: answer.lease.expires_at.since(now),
            refresh_in: answer.refresh_in,
            safe_capacity: Some(answer.safe_capacity),
            granted_by: Some(self.mastership_id),
            limited_by: answer.limited_by,
            learning_for: answer.learning_for,
            decided: answer.decided,
        }))
    }

    fn count(&mut self, answer: &Answer) {
        match answer.kind {
            AnswerKind::Decided => self.counters.decisions += 1,
            AnswerKind::TooEarly => self.counters.too_early += 1,
            AnswerKind::OutOfOrder => self.counters.out_of_order += 1,
        }
    }

    /// After a resource has changed: puts it in its place among the timeouts, or forgets it if
    /// nobody holds anything of it.
    fn settle(&mut self, id: &ResourceId) {
        let Some(entry) = self.resources.get_mut(id) else {
            return;
        };
        self.counters.expired += entry.resource.take_expired();
        let weight = entry.resource.weight();
        let changes = entry.resource.take_changes();
        if weight != entry.weighed || !changes.is_empty() {
            let before = std::mem::replace(&mut entry.weighed, weight);
            self.admission
                .note_changes(changes, before, weight, entry.template);
        }
        let conflict = entry.resource.take_conflict();
        let gone = entry.resource.is_empty();
        let (template, caller) = (entry.template, entry.caller);
        let next = if gone {
            None
        } else {
            entry.resource.next_timeout()
        };
        if entry.resource.take_unsettled() {
            self.children.note_unsettled(id, &entry.resource);
        }
        let ask = if gone {
            None
        } else {
            entry.resource.upstream_due(self.upstream.pace())
        };
        let ask_before = std::mem::replace(&mut entry.upstream_scheduled, ask);
        self.upstream.reschedule(id, ask_before, ask);
        let before = std::mem::replace(&mut entry.scheduled, next);
        if next != before {
            if let Some((time, learning)) = before {
                self.timeouts.remove(&(time, learning, id.clone()));
            }
            if let Some((time, learning)) = next {
                self.timeouts.insert((time, learning, id.clone()));
            }
        }
        if let Some(conflict) = conflict {
            self.counters.conflicts += 1;
            let holder = conflict.holder.clone();
            if self.conflicts.note(conflict) {
                self.tell(Event::TwoProcesses {
                    resource: id.clone(),
                    holder,
                });
            }
        }
        if gone {
            self.resources.remove(id);
            self.admission
                .note_resource_gone(caller, template, weight::name_bytes(id.as_str()));
            self.tell(Event::ResourceDropped {
                resource: id.clone(),
            });
        }
    }

    fn tell(&mut self, event: Event) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
