//! The place where the masters of a root keep their marks, as etcd does for real ones.

use std::time::Duration;

use doorward_engine::node::Node;
use doorward_engine::node::marks::{FoundMarks, MarkWrites};
use doorward_engine::node::mastership::Term;
use doorward_engine::time::Time;

/// The marks of a node.
#[derive(Clone, Debug, Default)]
pub struct MarkStore {
    found: FoundMarks,
    /// Epoch of the last master.
    pub epoch: u64,
    /// A write whose result its master does not know.
    pub writing: Option<MarkWrites>,
    /// Number of marks that were written or removed.
    pub writes: usize,
}

impl MarkStore {
    /// Begins a mastership. `last`: the epoch of the last master, if no other can have been.
    pub fn begin(&mut self, node: &mut Node, term: Term, last: Option<u64>, now: Time) {
        self.writing = None;
        let is_of_last = self.found.is_complete && last == Some(self.epoch);
        if !is_of_last {
            self.found = FoundMarks::default();
        }
        assert!(node.handle_marked_term(term, self.found.clone(), now));
        self.epoch = term.epoch;
        // Until it writes, no successor counts on what it found.
        self.found.is_complete = false;
    }

    /// Takes the next batch, unless one is being written.
    pub fn take(&mut self, node: &mut Node, now: Time) {
        if self.writing.is_none() {
            self.writing = node.poll_mark_writes(now);
        }
    }

    /// Executes the batch that is being written. It does no harm a second time.
    pub fn execute(&mut self) {
        let Some(batch) = &self.writing else {
            return;
        };
        self.found.is_complete = batch.unmarked_for == Duration::ZERO;
        for (resource, mark) in &batch.writes {
            self.writes += 1;
            match mark {
                Some(mark) => self.found.marks.insert(resource.as_str(), mark.stored()),
                None => _ = self.found.marks.remove(resource.as_str()),
            }
        }
        assert_eq!(self.found.marks.len() as u64, batch.count);
    }

    /// Confirms the batch to its master.
    pub fn confirm(&mut self, node: &mut Node, now: Time) {
        if self.writing.take().is_some() {
            node.handle_marks_written(now);
        }
    }

    /// Writes all that is due.
    pub fn write_all(&mut self, node: &mut Node, now: Time) {
        self.take(node, now);
        while self.writing.is_some() {
            self.execute();
            self.confirm(node, now);
            self.take(node, now);
        }
    }

    /// Returns a line for each mark.
    pub fn show(&self) -> String {
        let marks = self.found.marks.iter();
        let marks = marks.map(|(id, (amount, longest))| match amount {
            Some(amount) => format!("mark of {id}: {amount}, leases up to {longest:?}\n"),
            None => format!("mark of {id}: any amount, leases up to {longest:?}\n"),
        });
        marks.collect()
    }
}
