//! State directories of servers without an election.

use std::time::Duration;

use doorward_engine::node::marks::{FoundMarks, MarkWrites, MarksByResource};

use crate::world::{ServerId, World};

/// Longest time that a disk takes for a write.
const WRITE_MAX: Duration = Duration::from_millis(20);

/// The files of a node.
#[derive(Debug, Default)]
pub(super) struct StateDirectory {
    /// Number of processes that have opened it.
    pub(super) starts: u64,
    /// Marks of the last process.
    pub(super) found: FoundMarks,
}

impl World<'_> {
    /// Writes marks of a server. They are on the disk at once, or when the server hears of it.
    pub(super) fn write_marks(&mut self, id: ServerId, number: u64, batch: MarkWrites) {
        let at = self.now + self.chance.duration(Duration::ZERO, WRITE_MAX);
        let mut late = Some(batch);
        let at_once = late.take_if(|_| self.chance.happens(0.5));
        self.write_to_disk(id, at_once);
        self.act(at, move |world| {
            if world.server_of(id).is_some() {
                world.write_to_disk(id, late);
                world.input(id, |replica, now| replica.handle_marks_written(number, now));
            }
        });
    }

    fn write_to_disk(&mut self, id: ServerId, batch: Option<MarkWrites>) {
        let state = self.places[id.place].state.as_mut();
        let Some((StateDirectory { found, .. }, batch)) = state.zip(batch) else {
            return;
        };
        found.is_complete = batch.unmarked_for.is_zero();
        for (resource, mark) in batch.writes {
            match mark {
                Some(mark) => found.marks.insert(resource.as_str(), mark.stored()),
                None => _ = found.marks.remove(resource.as_str()),
            }
        }
        if batch.count == 0 {
            found.marks = MarksByResource::default();
        }
    }
}
