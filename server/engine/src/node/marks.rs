//! The marks of a root's resources, which a successor of this master reads ([`crate::continuity::mark`]).
//!
//! The shell keeps them in a store of the node. It hands in the marks that it found when the mastership begins. From
//! then on it takes writes, one batch at a time, and says when a batch is confirmed. A batch that is not confirmed may be
//! in the store or not.

use std::collections::BTreeSet;
use std::time::Duration;

pub use doorward_time::marks::{MarksByResource, StoredMark};

pub use crate::continuity::mark::Mark;
use crate::id::ResourceId;
use crate::node::Node;
use crate::node::learning::UnknownLeases;
use crate::node::mastership::{Mastership, Term};
use crate::resource::marking::Predecessors;
use crate::templates::window::{Period, Window};
use crate::time::Time;

/// Marks in one batch, at most. A transaction of etcd has 128 operations.
const BATCH_MAX: usize = 100;

/// Marks that a new master finds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundMarks {
    /// By resource.
    pub marks: MarksByResource,
    /// Whether resources without a mark have no leases. If not, there are no marks that count.
    pub is_complete: bool,
}

/// A batch of writes.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkWrites {
    /// Marks by resource. None: the mark is removed. Empty: the mastership has begun.
    pub writes: Vec<(ResourceId, Option<Mark>)>,
    /// Number of marks in the store after this batch. 0: what else it has does not count.
    pub count: u64,
    /// Time for which resources without a mark may have leases of earlier masters. Zero: they have none.
    pub unmarked_for: Duration,
}

/// The marks of this mastership.
#[derive(Debug)]
pub(super) struct NodeMarks {
    /// Marks of resources without a request since.
    found: MarksByResource,
    /// Time after which all leases of those have ended.
    found_until: Time,
    is_complete: bool,
    /// Whether this mastership keeps marks, too.
    is_kept: bool,
    /// Number of marks in the store, once all batches are there.
    count: u64,
    /// Resources whose marks are to be written.
    due: BTreeSet<ResourceId>,
    /// Whether the store knows that this mastership has begun.
    is_begun: bool,
    /// End of learning mode by the last write. None: that write says that it is over.
    unmarked_until: Option<Time>,
    /// Resources of the batch that is being written.
    in_flight: Option<Vec<ResourceId>>,
    /// Number of confirmed batches.
    written: u64,
}

impl NodeMarks {
    /// Takes what is known of a new resource.
    pub(super) fn take_found(&mut self, id: &ResourceId) -> Predecessors {
        let mark = self.found.remove(id.as_str()).map(Mark::of);
        match (self.is_complete, self.is_kept) {
            (true, true) => Predecessors::Marked(mark),
            (true, false) => Predecessors::Recorded(mark),
            (false, is_kept) => Predecessors::Unknown {
                kept: is_kept.then_some(mark),
            },
        }
    }

    /// Takes the marks of a budget out. Returns the newest window that has one, or the present one, and the starts of those
    /// before it. None: this mastership keeps no marks.
    pub(super) fn take_budget(
        &mut self,
        id: &ResourceId,
        period: Period,
        present: Window,
    ) -> Option<((Window, u64), BTreeSet<i64>)> {
        let (mut newest, mut before) = ((present, 0), BTreeSet::new());
        for (start, amount) in self.found.take_budget(id.as_str()) {
            let is_new = start >= newest.0.start;
            if is_new {
                // It may begin late, after one of another length.
                let window = period.at(start);
                newest = (Window { start, ..window }, amount as u64);
            } else {
                before.insert(start);
            }
        }
        self.is_kept.then_some((newest, before))
    }

    /// Takes an operator's word. The store hears it at once.
    pub(super) fn handle_unknown_leases(&mut self, leases: UnknownLeases, now: Time) {
        self.is_complete = leases == UnknownLeases::AreNone;
        self.unmarked_until = Some(now);
    }

    /// Whether resources without a mark have no leases of earlier masters.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Notes a resource whose mark is to be written.
    pub(super) fn note_due(&mut self, id: &ResourceId) {
        self.due.insert(id.clone());
    }

    fn has_work(&self, now: Time) -> bool {
        let is_old = self.found.has_leases() && self.found_until <= now;
        let is_news = !self.is_begun || self.has_learned(now);
        self.is_kept && self.in_flight.is_none() && (is_news || !self.due.is_empty() || is_old)
    }

    /// Whether learning mode is over, and the store does not know that.
    fn has_learned(&self, now: Time) -> bool {
        self.unmarked_until.is_some_and(|until| until <= now)
    }
}

impl Node {
    /// Mastership was won in an election, or confirmed by it, as in [`Node::handle_term`]. This server keeps marks, and
    /// has found these. Returns whether it is a new mastership; if not, what was found does not count.
    pub fn handle_marked_term(&mut self, term: Term, found: FoundMarks, now: Time) -> bool {
        let before = self.masterships;
        self.handle_term(term, now);
        if self.masterships == before || !self.mastership.is_master() {
            return false;
        }
        self.begin_marks(found);
        true
    }

    /// Makes this server the master for ever, as the only one of its node. It keeps marks, and has found those of the
    /// last process.
    pub fn handle_alone(&mut self, found: FoundMarks, now: Time) {
        self.handle_mastership(Mastership::Master { epoch: None }, now);
        self.begin_marks(found);
    }

    /// Notes what the last process had granted, by a record of its own in place of marks, as a server becomes the only one
    /// of its node. It keeps no marks. An amount above the capacity counts as the capacity.
    pub fn handle_recorded(&mut self, marks: MarksByResource) {
        let is_complete = true;
        self.begin_marks(FoundMarks { marks, is_complete });
        if let Some(marks) = &mut self.marks {
            marks.is_kept = false;
        }
    }

    fn begin_marks(&mut self, found: FoundMarks) {
        self.marks = Some(Box::new(NodeMarks {
            found_until: self.mastership_start().end_of(found.marks.longest()),
            count: found.marks.len() as u64,
            found: found.marks,
            is_complete: found.is_complete,
            is_kept: true,
            due: BTreeSet::new(),
            is_begun: false,
            unmarked_until: None,
            in_flight: None,
            written: 0,
        }));
    }

    /// Whether there are marks to write now.
    pub fn has_marks_to_write(&self, now: Time) -> bool {
        self.marks.as_ref().is_some_and(|marks| marks.has_work(now))
    }

    /// Number of confirmed batches of this mastership.
    pub fn marks_written(&self) -> u64 {
        self.marks.as_ref().map_or(0, |marks| marks.written)
    }

    /// When there is something to write although nothing changes.
    pub fn marks_due(&self) -> Option<Time> {
        let marks = self.marks.as_ref();
        let marks = marks.filter(|it| it.is_kept && it.in_flight.is_none())?;
        let found = Some(marks.found_until).filter(|_| marks.found.has_leases());
        [found, marks.unmarked_until].into_iter().flatten().min()
    }

    /// Returns the next batch of marks to write, unless one is being written.
    pub fn poll_mark_writes(&mut self, now: Time) -> Option<MarkWrites> {
        let marks = self.marks.as_mut().filter(|marks| marks.has_work(now))?;
        let mut writes = Vec::new();
        let is_first = !std::mem::replace(&mut marks.is_begun, true);
        let has_learned = marks.has_learned(now);
        while !is_first && writes.len() < BATCH_MAX {
            let Some(resource) = marks.due.pop_first() else {
                break;
            };
            let entry = self.resources.get_mut(&resource);
            let sent = match entry {
                Some(entry) => entry.resource.send_mark(now),
                None => self.budgets.send_mark(&resource),
            };
            if let Some((mark, was_there)) = sent {
                marks.count += u64::from(mark.is_some());
                marks.count = marks.count.saturating_sub(u64::from(was_there));
                writes.push((resource, mark));
            }
        }
        while !is_first && writes.len() < BATCH_MAX && marks.found_until <= now {
            let Some(resource) = marks.found.pop() else {
                break;
            };
            marks.count = marks.count.saturating_sub(1);
            writes.extend(ResourceId::new(&resource).ok().map(|id| (id, None)));
        }
        if writes.is_empty() && !is_first && !has_learned {
            return None;
        }
        marks.in_flight = Some(writes.iter().map(|(id, _)| id.clone()).collect());
        let count = marks.count;
        let learns_for = self.learning_remaining(now);
        if let Some(marks) = &mut self.marks {
            marks.unmarked_until = learns_for.map(|lasts| now + lasts);
        }
        let unmarked_for = learns_for.unwrap_or_default();
        Some(MarkWrites {
            writes,
            count,
            unmarked_for: self.config.clock_tolerance.report(unmarked_for),
        })
    }

    /// Notes that the last batch is in the store.
    pub fn handle_marks_written(&mut self, now: Time) {
        let Some(marks) = &mut self.marks else {
            return;
        };
        let Some(in_flight) = marks.in_flight.take() else {
            return;
        };
        marks.written += 1;
        for id in in_flight {
            if let Some(slot) = self.resources.find(&id) {
                if let Some(entry) = self.resources.at_mut(slot) {
                    entry.resource.note_mark_written();
                }
                self.settle_at(slot, now);
            } else {
                self.note_budget_mark_written(&id, now);
            }
        }
    }
}
