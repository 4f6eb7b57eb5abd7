//! An operator's word on learning mode, for what no server can know: the first start of a tree, or an etcd that was
//! restored from a backup.

use std::time::Duration;

use crate::id::ResourceId;
use crate::messages::NodeEvent;
use crate::node::Node;
use crate::node::resources::ResourceSlot;
use crate::time::Time;

/// Leases of earlier masters that holders have not reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownLeases {
    /// There may be some: the root learns, for as long as after an election.
    MayExist,
    /// There are none: learning mode ends.
    #[default]
    AreNone,
}

/// Reason why an operator's word changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearningRefusal {
    /// The server is not the master.
    NotMaster,
    /// It has a parent, which knows the leases of its predecessors.
    BelowRoot,
    /// The resource has no holder.
    UnknownResource,
}

impl Node {
    /// Takes the word for one resource, or all of them, also those without a holder. O(1); for all, each resource hears
    /// it in the sweep.
    ///
    /// # Errors
    ///
    /// If it changes nothing.
    pub fn handle_unknown_leases(
        &mut self,
        leases: UnknownLeases,
        only: Option<&ResourceId>,
        now: Time,
    ) -> Result<(), LearningRefusal> {
        self.end_term_if_over(now);
        if !self.mastership.is_master() {
            return Err(LearningRefusal::NotMaster);
        }
        if leases == UnknownLeases::MayExist && self.config.has_parent {
            return Err(LearningRefusal::BelowRoot);
        }
        let is_unknown = leases == UnknownLeases::MayExist;
        if self.set_unknown_budgets(only, is_unknown, now) {
            return Ok(());
        }
        if let Some(id) = only {
            let slot = self.resources.find(id);
            let slot = slot.ok_or(LearningRefusal::UnknownResource)?;
            self.bring_slot_up_to_date(slot, now);
            self.tell_unknown_leases(slot, leases, now);
            self.settle_at(slot, now);
            return Ok(());
        }
        match leases {
            UnknownLeases::MayExist => self.vacant_since = Some(now),
            UnknownLeases::AreNone => {
                self.vacant_since = None;
                self.longer_leases = Duration::ZERO;
            }
        }
        if let Some(marks) = &mut self.marks {
            marks.handle_unknown_leases(leases, now);
        }
        self.begin_sweep_of_unknown_leases(leases, now);
        self.sweep_some(now);
        Ok(())
    }

    /// Tells a resource.
    pub(super) fn tell_unknown_leases(
        &mut self,
        slot: ResourceSlot,
        leases: UnknownLeases,
        now: Time,
    ) {
        let Some(entry) = self.resources.at_mut(slot) else {
            return;
        };
        let resource = entry.resource.id().clone();
        match leases {
            UnknownLeases::MayExist => {
                if let Some(left) = entry.resource.begin_learning(now) {
                    self.push_event(NodeEvent::LearningBegan { resource, left });
                }
            }
            UnknownLeases::AreNone => {
                if entry.resource.end_learning() {
                    self.push_event(NodeEvent::LearningEnded { resource });
                }
            }
        }
    }
}
