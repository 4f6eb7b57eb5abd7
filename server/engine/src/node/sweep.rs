//! What concerns every resource reaches them one by one: other templates, a parent that was lost, another pace.
//!
//! A node may have a hundred thousand resources, and changing all of them at once would hold up every request
//! meanwhile. So there is a number for what happened last, and each resource knows up to which number it has heard.
//! It hears of the rest before anything else happens to it ([`Node::bring_up_to_date`]), and if nothing does, when
//! it is its turn: that is due at once, and each [`Node::handle_timeout`] does a part ([`Node::sweep_some`]).

use std::time::Duration;

use crate::admission::TemplateSlot;
use crate::id::ResourceId;
use crate::node::Node;
use crate::node::parts::{STEPS_PER_PART, STEPS_PER_RESOURCE};
use crate::node::resources::ResourceSlot;
use crate::time::Time;

/// What happened that concerns every resource, and how far that has got around.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// The number of what happened last.
    news: News,
    /// The last news that was other templates.
    templates: News,
    /// The last news that was a parent that was lost.
    lost: News,
    /// The longest leases of predecessors, as known when there were other templates.
    longer_leases: Duration,
    /// None: everybody has heard.
    under_way: Option<UnderWay>,
    /// Numbers of templates that are in force no more. Resources may belong to them that have not heard yet.
    gone: Vec<Vec<TemplateSlot>>,
}

/// Up to which number a resource has heard what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct News(u32);

#[derive(Debug)]
struct UnderWay {
    since: Time,
    /// The last resource whose turn it was.
    after: Option<ResourceId>,
}

/// Steps that one [`Node::handle_timeout`] spends on turns, but for what the last of them costs: half of its
/// [part](super::parts), so that what else is due is done beside it. A turn costs as much as any resource that is
/// changed, and a step for each claim that is put elsewhere and each glob that is tried.
const STEPS_MAX: usize = STEPS_PER_PART / 2;

/// Turns that take all of these steps, each of which takes as little as it can. Only if there are fewer left is it over.
const TURNS_MAX: usize = STEPS_MAX.div_ceil(STEPS_PER_RESOURCE);

impl Sweep {
    /// What somebody has heard who begins now.
    pub(super) fn news(&self) -> News {
        self.news
    }

    /// The longest leases of predecessors, as known when there were other templates.
    pub(super) fn longer_leases(&self) -> Duration {
        self.longer_leases
    }

    /// Since when there is something to do.
    pub(super) fn due(&self) -> Option<Time> {
        self.under_way.as_ref().map(|it| it.since)
    }

    /// There are no resources any more.
    pub(super) fn forget(&mut self) {
        self.under_way = None;
        self.gone.clear();
    }

    fn begin(&mut self, now: Time) -> News {
        self.news.0 += 1;
        self.under_way = Some(UnderWay {
            since: now,
            after: None,
        });
        self.news
    }
}

impl Node {
    /// There are other templates; those of these numbers are in force no more.
    pub(super) fn begin_sweep_of_templates(&mut self, gone: Vec<TemplateSlot>, now: Time) {
        self.sweep.templates = self.sweep.begin(now);
        self.sweep.longer_leases = self.longer_leases;
        self.sweep.gone.push(gone);
    }

    /// The connection to the parent broke.
    pub(super) fn begin_sweep_of_lost_parent(&mut self, now: Time) {
        self.sweep.lost = self.sweep.begin(now);
    }

    /// What is due at a resource is to be settled anew.
    pub(super) fn begin_sweep(&mut self, now: Time) {
        self.sweep.begin(now);
    }

    /// Whether every resource has heard of the templates in force, and of whatever else concerns all. Until then,
    /// snapshots show some as they were decided about last.
    pub fn is_swept(&self) -> bool {
        self.sweep.under_way.is_none()
    }

    /// Before anything happens to a resource: it hears of what concerns every resource.
    pub(super) fn bring_up_to_date(&mut self, id: &ResourceId, now: Time) {
        if self.sweep.under_way.is_some() {
            let spent = self.visit(id, now);
            self.note_steps(spent);
        }
    }

    /// The same of what is in a slot.
    pub(super) fn bring_slot_up_to_date(&mut self, slot: ResourceSlot, now: Time) {
        if self.sweep.under_way.is_some() {
            let spent = self.visit_at(slot, now);
            self.note_steps(spent);
        }
    }

    /// Lets some resources hear of what concerns all. Bounded.
    pub(super) fn sweep_some(&mut self, now: Time) {
        let Some(under_way) = &self.sweep.under_way else {
            return;
        };
        // Those that have heard already cost next to nothing, but are looked at.
        let after = under_way.after.clone();
        let turns = self.resources.after(after.as_ref()).take(TURNS_MAX);
        let ids: Vec<ResourceId> = turns.map(|(id, _)| id.clone()).collect();
        let mut spent = 0;
        for id in ids {
            if spent >= STEPS_MAX {
                return;
            }
            let turn = self.visit(&id, now);
            self.note_steps(turn);
            spent += turn;
            if let Some(under_way) = &mut self.sweep.under_way {
                under_way.after = Some(id);
            }
        }
        if spent < STEPS_MAX && self.forget_templates(STEPS_MAX - spent) {
            self.sweep.under_way = None;
        }
    }

    /// It is the turn of a resource. Returns what that cost.
    fn visit(&mut self, id: &ResourceId, now: Time) -> usize {
        let slot = self.resources.find(id);
        slot.map_or(STEPS_PER_RESOURCE, |slot| self.visit_at(slot, now))
    }

    fn visit_at(&mut self, slot: ResourceSlot, now: Time) -> usize {
        let news = self.sweep.news;
        let Some(entry) = self.resources.at_mut(slot) else {
            return STEPS_PER_RESOURCE;
        };
        let heard = std::mem::replace(&mut entry.heard, news);
        if heard == news {
            return STEPS_PER_RESOURCE;
        }
        let mut spent = STEPS_PER_RESOURCE;
        if heard < self.sweep.lost {
            entry.resource.handle_upstream_lost(now);
        }
        if heard < self.sweep.templates {
            spent += self.apply_template(slot, now);
        }
        self.settle_at(slot);
        spent
    }

    /// All have heard: nobody belongs to templates any more that are not in force. Returns whether that is done.
    fn forget_templates(&mut self, steps: usize) -> bool {
        for _ in 0..steps {
            let Some(gone) = self.sweep.gone.last_mut() else {
                return true;
            };
            match gone.pop() {
                Some(slot) => self.admission.forget_template(slot),
                None => drop(self.sweep.gone.pop()),
            }
        }
        self.sweep.gone.is_empty()
    }
}
