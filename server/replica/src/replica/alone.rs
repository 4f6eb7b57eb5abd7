//! The only server of a node: the master for ever, with marks in a state directory.

use std::task::Poll;

use doorward_engine::node::Node;
use doorward_engine::node::marks::FoundMarks;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::time::Time;

use super::Replica;
use crate::output::Output;

impl Replica {
    /// Makes this server the master for ever, because it is the only one of its node. `found`: the marks of its last
    /// process. Absent: it keeps none.
    pub fn handle_alone(&mut self, found: Option<FoundMarks>, now: Time) {
        self.keeps_marks = found.is_some();
        let alone = Mastership::Master { epoch: None };
        let begin = |node: &mut Node, now| match found {
            Some(found) => node.handle_alone(found, now),
            None => node.handle_mastership(alone, now),
        };
        self.change(begin, now);
        self.is_busy = true;
    }

    /// Notes that the state directory has the marks of that number. A number from before a restart of the node changes nothing.
    pub fn handle_marks_written(&mut self, number: u64, now: Time) {
        if number == self.masterships_before {
            self.change(Node::handle_marks_written, now);
        }
        self.is_busy = true;
    }

    /// Begins to write marks to the state directory.
    pub(super) fn write_marks(&mut self, now: Time) -> Poll<()> {
        let Some(batch) = self.node.poll_mark_writes(now) else {
            return Poll::Ready(());
        };
        self.outputs
            .push_back(Output::Marks(self.masterships_before, batch));
        Poll::Pending
    }

    /// Returns when there are marks to write.
    pub(super) fn marks_due(&self) -> Option<Time> {
        let election = self.election.as_ref();
        if !self.keeps_marks && !election.is_some_and(|it| it.candidate.can_write_marks()) {
            return None;
        }
        match self.node.has_marks_to_write(Time::ZERO) {
            true => Some(Time::ZERO),
            false => self.node.marks_due(),
        }
    }
}
