//! Marks of resources between the node and the candidate: their forms in the engine and in etcd.

use doorward_engine::node::Node;
use doorward_engine::node::marks::{FoundMarks, Mark};
use doorward_engine::node::mastership::Term;
use doorward_engine::time::Time;
use doorward_session::candidate::Candidate;

/// Begins or goes on with a mastership that keeps marks.
pub(crate) fn begin(candidate: &mut Candidate, node: &mut Node, term: Term, now: Time) {
    let found = candidate.take_found_marks();
    let found = FoundMarks {
        is_complete: found.is_some(),
        marks: found.unwrap_or_default(),
    };
    let is_unknown = !found.is_complete;
    if node.handle_marked_term(term, found, now) && is_unknown {
        candidate.forget_marks();
    }
}

/// Begins to write what is due.
pub(crate) fn write(candidate: &mut Candidate, node: &mut Node, now: Time) {
    if let Some(batch) = node.poll_mark_writes(now) {
        let changes = batch.writes.iter();
        let changes = changes.map(|(id, mark)| (id.as_str().into(), mark.map(Mark::stored)));
        candidate.write_marks(changes.collect(), batch.count, batch.unmarked_for, now);
    }
}
