//! Some events concern every resource: other templates, a parent that was lost, another pace. They reach the resources
//! one by one.
//!
//! A node may have a hundred thousand resources, and changing all of them at once would hold up every request
//! meanwhile. So each event gets a number, and each resource keeps the number of the last one that it has applied. It
//! applies the rest before any other change ([`Node::bring_up_to_date`]), or else at its turn in the sweep. The sweep
//! is due at once, and each [`Node::handle_timeout`] is the turn of one resource ([`Node::sweep_next`]).

use std::time::Duration;

use crate::admission::TemplateSlot;
use crate::id::ResourceId;
use crate::messages::RefusalReason;
use crate::node::Node;
use crate::node::learning::UnknownLeases;
use crate::node::resources::ResourceSlot;
use crate::time::Time;

/// Generation for all resources, and how far the sweep has come.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// The number of the last news.
    generation: Generation,
    /// The last news that was other templates.
    templates: Generation,
    /// The last news that was a parent that was lost.
    lost: Generation,
    /// The last news that was another process of this node, with a newer start.
    newer_start: Generation,
    /// The last news that was an operator's word on learning mode, and that word.
    learning: (Generation, UnknownLeases),
    /// The longest leases of predecessors, as known when there were other templates.
    longer_leases: Duration,
    /// None: all resources have heard.
    under_way: Option<UnderWay>,
    /// Numbers of templates that are in force no more. Resources may belong to them that have not heard yet.
    gone: Vec<TemplateSlot>,
}

/// Number of the last news that a resource has applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Generation(u32);

#[derive(Debug)]
struct UnderWay {
    since: Time,
    /// The last resource whose turn it was.
    after: Option<ResourceId>,
}

/// Resources that hear at once, before the others are due.
const AT_ONCE: usize = 8;

impl Sweep {
    /// The last news, which a new resource has applied.
    pub(super) fn generation(&self) -> Generation {
        self.generation
    }

    /// The longest leases of predecessors, as known when there were other templates.
    pub(super) fn longer_leases(&self) -> Duration {
        self.longer_leases
    }

    /// The time since which the sweep is under way.
    pub(super) fn due(&self) -> Option<Time> {
        self.under_way.as_ref().map(|it| it.since)
    }

    /// Ends the sweep, because all resources are gone.
    pub(super) fn forget(&mut self) {
        self.under_way = None;
        self.gone.clear();
    }

    fn begin(&mut self, now: Time) -> Generation {
        self.generation.0 += 1;
        self.under_way = Some(UnderWay {
            since: now,
            after: None,
        });
        self.generation
    }
}

impl Node {
    /// Begins a sweep for other templates. Templates with the numbers in `gone` are no longer in force.
    pub(super) fn begin_sweep_of_templates(&mut self, gone: Vec<TemplateSlot>, now: Time) {
        self.sweep.templates = self.sweep.begin(now);
        self.sweep.longer_leases = self.longer_leases;
        self.sweep.gone.extend(gone);
    }

    /// The connection to the parent broke.
    pub(super) fn begin_sweep_of_lost_parent(&mut self, now: Time) {
        self.sweep.lost = self.sweep.begin(now);
    }

    /// The parent knows a newer start of this node.
    pub(super) fn begin_sweep_of_newer_start(&mut self, now: Time) {
        self.sweep.newer_start = self.sweep.begin(now);
    }

    /// An operator has said something about leases of earlier masters.
    pub(super) fn begin_sweep_of_unknown_leases(&mut self, leases: UnknownLeases, now: Time) {
        self.sweep.learning = (self.sweep.begin(now), leases);
    }

    /// Makes every resource compute its timers anew.
    pub(super) fn begin_sweep(&mut self, now: Time) {
        self.sweep.begin(now);
    }

    /// Whether every resource has heard of the templates in force, and of whatever else concerns all. Until then,
    /// snapshots show some as they were decided about last.
    pub fn is_swept(&self) -> bool {
        self.sweep.under_way.is_none()
    }

    /// Makes a resource apply all news, before it changes in any other way.
    pub(super) fn bring_up_to_date(&mut self, id: &ResourceId, now: Time) {
        if self.sweep.under_way.is_some()
            && let Some(slot) = self.resources.find(id)
        {
            self.visit(slot, now);
        }
    }

    /// The same of what is in a slot.
    pub(super) fn bring_slot_up_to_date(&mut self, slot: ResourceSlot, now: Time) {
        if self.sweep.under_way.is_some() {
            self.visit(slot, now);
        }
    }

    /// Lets a few resources hear at once: of few, all.
    pub(super) fn sweep_some(&mut self, now: Time) {
        for _ in 0..AT_ONCE {
            self.sweep_next(now);
        }
    }

    /// Lets the next resource hear of what concerns all.
    pub(super) fn sweep_next(&mut self, now: Time) {
        let Some(under_way) = &mut self.sweep.under_way else {
            return;
        };
        let next = self.resources.after(under_way.after.as_ref()).next();
        if let Some((id, _)) = next {
            let id = id.clone();
            under_way.after = Some(id.clone());
            self.bring_up_to_date(&id, now);
        } else if let Some(gone) = self.sweep.gone.pop() {
            // All have heard: none belongs to templates any more that are not in force.
            self.admission.forget_template(gone);
        } else {
            self.sweep.under_way = None;
        }
    }

    fn visit(&mut self, slot: ResourceSlot, now: Time) {
        let news = self.sweep.generation;
        let Some(entry) = self.resources.at_mut(slot) else {
            return;
        };
        let heard = std::mem::replace(&mut entry.heard, news);
        if heard == news {
            return;
        }
        if heard < self.sweep.lost {
            entry.resource.handle_upstream_lost(now);
        }
        if heard < self.sweep.newer_start {
            let reason = RefusalReason::AnotherProcess(Duration::ZERO);
            entry.resource.handle_upstream_refusal(reason, now);
        }
        if heard < self.sweep.templates {
            self.apply_template(slot, now);
        }
        let (said, leases) = self.sweep.learning;
        if heard < said {
            self.tell_unknown_leases(slot, leases, now);
        }
        self.settle_at(slot, now);
    }
}
