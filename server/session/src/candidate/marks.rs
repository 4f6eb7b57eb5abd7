//! The marks of a root's resources in etcd: what a new master finds, and how the present one writes them.
//!
//! A new master reads all marks after it has won the key, so that no write of a predecessor comes after that. These
//! marks count if the last master wrote them: the head has the epoch of the last term. Otherwise it learns, and begins
//! anew without any mark.
//!
//! Writes form a chain, one at a time. Each transaction writes the head, and compares the revision at which the one
//! before wrote it. If an answer is lost, the same transaction is sent again: only one of both can succeed. If it fails,
//! the head that it reads tells whether the first one had succeeded. So a late request changes nothing. Each one also
//! compares the master's key, so that nothing is written after a successor has won.

use std::sync::Arc;
use std::time::Duration;

use doorward_time::marks::{MarksByResource, StoredMark};
use smol_str::SmolStr;

use super::report::LossReason;
use super::step::{Awaited, Stage};
use super::store::{
    Compare, EtcdKey, EtcdRequest, MarkRecord, MarksHead, Op, OpAnswer, OpId, StoredMarks, Txn,
    TxnAnswer, TxnStep, Value,
};
use super::term::whole_millis;
use super::transactions::{CreatedKey, is_ours};
use super::{Candidate, CandidateAction};
use crate::time::Time;

/// Name of a write.
pub const WRITE_MARKS: &str = "write marks";

/// Time before a write is sent again.
const RETRY: Duration = Duration::from_millis(100);

/// Marks of a mastership in etcd.
#[derive(Clone, Debug)]
pub(super) struct MarkChain {
    /// The marks at the beginning, until the node takes them. None: no mark counts.
    found: Option<MarksByResource>,
    /// The head in etcd, and the revision at which it was written.
    head: MarksHead,
    head_modified: u64,
    /// Whether the next write removes all marks first.
    resets: bool,
    writing: Option<Writing>,
}

/// A write that etcd has not confirmed.
#[derive(Clone, Debug)]
struct Writing {
    state: Sending,
    txn: Txn,
    head: MarksHead,
    /// Whether the node still waits for it.
    is_awaited: bool,
}

/// The state of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// It is in flight.
    Sent(OpId),
    /// It failed, and is sent again then.
    Failed(Time),
}

impl MarkChain {
    /// Begins with what was found. `last_epoch`: the epoch of the last master. None: that is unknown.
    pub(super) fn new(found: StoredMarks, last_epoch: Option<u64>) -> Self {
        let head = found.head.unwrap_or_default();
        let is_of_last = found.head.is_some() && last_epoch == Some(head.epoch);
        let is_whole = head.count == found.marks.len() as u64 && !found.has_unreadable;
        let counts = is_of_last && is_whole && head.unmarked.is_zero();
        Self {
            head,
            head_modified: found.head_modified,
            resets: !counts,
            writing: None,
            found: counts.then_some(found.marks),
        }
    }
}

impl Candidate {
    /// Takes the marks that the last master left. None: they are unknown, or taken already.
    pub fn take_found_marks(&mut self) -> Option<MarksByResource> {
        self.marks.as_mut()?.found.take()
    }

    /// Whether this server keeps marks, as the master of a root.
    pub fn keeps_marks(&self) -> bool {
        self.marks.is_some()
    }

    /// Notes that the node has forgotten its marks. The next write removes all of them.
    pub fn forget_marks(&mut self) {
        if let Some(marks) = &mut self.marks {
            marks.resets = true;
            if let Some(writing) = &mut marks.writing {
                writing.is_awaited = false;
            }
        }
    }

    /// Whether marks can be written now: the mastership is confirmed, and no write is under way.
    pub fn can_write_marks(&self) -> bool {
        let is_confirmed = self.phase.held().is_some_and(|it| it.valid_until.is_some());
        is_confirmed && self.marks.as_ref().is_some_and(|it| it.writing.is_none())
    }

    /// Writes or removes marks of resources, after which there are `count`. `unmarked`: how long resources without a mark
    /// may have leases. [`CandidateAction::MarksWritten`] follows.
    pub fn write_marks(
        &mut self,
        changes: Vec<(SmolStr, Option<StoredMark>)>,
        count: u64,
        unmarked: Duration,
        now: Time,
    ) {
        let (Some(held), Some(lease)) = (self.phase.held(), self.phase.seat().map(|it| it.lease))
        else {
            return;
        };
        let mut when = is_ours(held.created, lease.id);
        let epoch = held.created.epoch();
        let Some(marks) = self.marks.as_mut().filter(|it| it.writing.is_none()) else {
            return;
        };
        when.push(Compare::Modified(EtcdKey::MarksHead, marks.head_modified));
        let head = MarksHead {
            epoch,
            write: marks.head.write + 1,
            count,
            unmarked: whole_millis(unmarked),
        };
        let mut then = Vec::with_capacity(changes.len() + 2);
        if std::mem::take(&mut marks.resets) {
            // etcd refuses a transaction that removes and writes the same key.
            debug_assert!(changes.is_empty(), "the first write has no marks");
            then.push(TxnStep::DeleteMarks);
        }
        let step = |(resource, mark): (SmolStr, Option<StoredMark>)| {
            let key = EtcdKey::Mark(resource);
            let Some((amount, longest)) = mark else {
                return TxnStep::Delete(key);
            };
            // No lease outlasts its mark by a rounding.
            let longest = whole_millis(longest);
            TxnStep::Put(key, Value::Mark(MarkRecord { amount, longest }), None)
        };
        then.extend(changes.into_iter().map(step));
        let value = Value::MarksHead(head);
        then.push(TxnStep::Put(EtcdKey::MarksHead, value, None));
        marks.writing = Some(Writing {
            state: Sending::Failed(now),
            txn: Txn {
                when,
                then,
                or_else: vec![TxnStep::Get(EtcdKey::MarksHead)],
            },
            head,
            is_awaited: true,
        });
        self.send_marks(now);
    }

    /// Sends the write again, if that is due.
    pub(super) fn send_marks(&mut self, now: Time) {
        let within = self.config.call_timeout();
        let is_due =
            |writing: &&mut Writing| matches!(writing.state, Sending::Failed(at) if at <= now);
        let writing = self.marks.as_mut().and_then(|it| it.writing.as_mut());
        let Some(writing) = writing.filter(is_due) else {
            return;
        };
        self.asked += 1;
        let id = OpId(self.asked);
        writing.state = Sending::Sent(id);
        let op = Op::Transact(WRITE_MARKS, writing.txn.clone());
        self.actions
            .push_back(CandidateAction::AskBeside(EtcdRequest { id, op, within }));
    }

    /// Returns when to send the write again.
    pub(super) fn marks_due(&self) -> Option<Time> {
        match self.marks.as_ref()?.writing.as_ref()?.state {
            Sending::Failed(at) => Some(at),
            Sending::Sent(_) => None,
        }
    }

    /// Takes the answer to a write. Returns whether it was one.
    pub(super) fn take_marks_answer(&mut self, id: OpId, answer: &OpAnswer, now: Time) -> bool {
        let Some(marks) = &mut self.marks else {
            return false;
        };
        let writing = marks.writing.as_mut();
        let Some(writing) = writing.filter(|it| it.state == Sending::Sent(id)) else {
            return false;
        };
        let answer = match answer {
            OpAnswer::Transacted(answer) => answer,
            OpAnswer::Refused => {
                self.are_marks_refused = true;
                self.lose(LossReason::MarksRefused);
                self.poke(now);
                return true;
            }
            _ => {
                writing.state = Sending::Failed(now + RETRY);
                return true;
            }
        };
        let Some(modified) = written_at(answer, &writing.head) else {
            // The key is not ours any more, or the head was written by hand. The next mastership reads all of it again.
            self.lose(LossReason::MarksChanged);
            self.poke(now);
            return true;
        };
        marks.head_modified = modified;
        marks.head = writing.head;
        self.terms.note_marks_written(writing.head.write);
        if writing.is_awaited {
            self.actions.push_back(CandidateAction::MarksWritten);
        }
        marks.writing = None;
        true
    }

    /// Takes the marks that were read. None: there are more to read, and the key stays meanwhile.
    pub(super) fn take_marks(
        &mut self,
        found: Option<Arc<StoredMarks>>,
        created: CreatedKey,
        won: Time,
        now: Time,
    ) -> Option<Stage> {
        let Some(found) = found.map(Arc::unwrap_or_clone) else {
            return Some(Stage::Confirm);
        };
        let written = found.head.map_or(0, |head| head.write);
        self.terms.note_marks_found(written);
        let last_epoch = self.terms.last_epoch();
        self.marks = (!found.is_refused).then(|| MarkChain::new(found, last_epoch));
        self.win_with_marks(created, won, now)
    }

    /// Asks for all marks, because this server has won the key.
    pub(super) fn read_marks(&mut self, created: CreatedKey, now: Time) -> Option<Stage> {
        if std::mem::take(&mut self.are_marks_refused) {
            return self.win_with_marks(created, now, now);
        }
        let lease = self.renewed_lease(now)?;
        let op = Op::ReadMarks {
            lease: lease.id,
            won: created.revision,
            until: lease.next_renewal(),
        };
        self.ask(op, Awaited::Marks { created, won: now }, now)
    }
}

/// Returns the revision at which a head was written, by the answer to its transaction or one before. None: it was not
/// written, and never will be.
fn written_at(answer: &TxnAnswer, head: &MarksHead) -> Option<u64> {
    if answer.succeeded {
        return Some(answer.revision);
    }
    let found = answer.found.as_ref()?;
    (found.value == Value::MarksHead(*head)).then_some(found.modified)
}
