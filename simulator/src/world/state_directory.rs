//! State directories of servers without an election.

use std::time::Duration;

use doorward_engine::node::marks::{FoundMarks, MarkWrites, MarksByResource};

use crate::world::World;
use crate::world::message::ServerId;

/// Longest time that a disk takes for a write.
const WRITE_MAX: Duration = Duration::from_millis(20);

/// The files of a node.
#[derive(Debug, Default)]
pub(super) struct StateDirectory {
    /// Number of processes that have opened it. Zero: there is none.
    starts: u64,
    found: FoundMarks,
}

impl StateDirectory {
    /// Notes that another process opens it.
    pub(super) fn open(&mut self) {
        self.starts += 1;
    }

    pub(super) fn starts(&self) -> Option<u64> {
        Some(self.starts).filter(|starts| *starts > 0)
    }

    /// Returns the marks of the last process, if there is a directory.
    pub(super) fn found(&self) -> Option<FoundMarks> {
        self.starts().map(|_| self.found.clone())
    }

    fn write(&mut self, batch: MarkWrites) {
        self.found.is_complete = batch.unmarked_for.is_zero();
        for (resource, mark) in batch.writes {
            match mark {
                Some(mark) => self.found.marks.insert(resource.as_str(), mark.stored()),
                None => _ = self.found.marks.remove(resource.as_str()),
            }
        }
        if batch.count == 0 {
            self.found.marks = MarksByResource::default();
        }
    }
}

impl World<'_> {
    /// Writes marks of a server. They are on the disk at once, or when the server hears of it.
    pub(super) fn write_marks(&mut self, id: ServerId, number: u64, batch: MarkWrites) {
        let at = self.now + self.chance.duration(Duration::ZERO, WRITE_MAX);
        let mut late = Some(batch);
        if let Some(batch) = late.take_if(|_| self.chance.happens(0.5)) {
            self.places[id.place].state.write(batch);
        }
        self.act(at, move |world| {
            if world.server_of(id).is_none() {
                return;
            }
            if let Some(batch) = late {
                world.places[id.place].state.write(batch);
            }
            world.input(id, |replica, now| replica.handle_marks_written(number, now));
        });
    }
}
