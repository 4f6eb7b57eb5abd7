//! The processes of a child server's node: decides which of several requests counts, and remembers the leases of former
//! processes. A client is one process, of which only the numbers matter here.
//!
//! The name of a node belongs to one process at a time. A process draws an [`Incarnation`] when it starts and numbers
//! its requests; numbers are compared within one incarnation only. A new incarnation is newer than all before it: the
//! process was restarted. A request of a replaced process is either late, with a number that was seen, or, with a
//! higher number, shows that both live. Then the first of the two keeps the name and the lease, and the later one is
//! refused, until the first stops asking.
//!
//! A child server's requests also carry the epoch of its mastership. A newer epoch is newer whatever the other fields
//! are; an older one, or an absent one after a present one, is out of order until the leases have ended and the name is
//! forgotten.

use crate::holders::Leases;
use crate::id::{Incarnation, MastershipId};
use crate::time::Time;

/// Number of former processes, and of earlier masterships, kept per name. A forgotten one counts as new, which is the
/// safe side.
const REMEMBERED_MAX: usize = 8;

/// How a request relates to earlier ones under its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precedence {
    /// It is the next one of the same process, or the first one of a newer mastership of its node.
    Next,
    /// It is not newer than the newest seen of the same process, or of an older epoch.
    OutOfOrder,
    /// A new incarnation: the process was restarted.
    Started,
    /// A late duplicate of a process that was replaced.
    Late,
    /// A process that was replaced, and lives: it was first.
    Returned,
    /// A process that came later than another one that lives.
    Refused,
    /// It has no number, and the holder numbers its requests.
    Unnumbered,
}

/// A process that had the name before, or wants it.
#[derive(Clone, Debug)]
struct PreviousProcess {
    process: Option<Incarnation>,
    /// The number of its newest request; 0 if it numbers none.
    sequence: u64,
    /// Another process was there first, and lives.
    refused: bool,
    /// Leases of a child server that may live, from the time at which another process took its name.
    had: Option<Box<Leases>>,
}

/// The history of a name before its present process.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessHistory {
    formers: Vec<PreviousProcess>,
    /// The masterships of the child's node.
    pub(crate) masterships: Masterships,
    /// The former process should ask again by then. None: no former process is waited for.
    expected_by: Option<Time>,
}

/// The sender of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The epoch of a child server's mastership of its node.
    pub epoch: Option<u64>,
    /// The process.
    pub process: Option<Incarnation>,
    /// The number of the request.
    pub sequence: Option<u64>,
}

/// The present process of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CurrentProcess<'a> {
    /// The epoch in its newest request.
    pub epoch: Option<u64>,
    /// The process.
    pub process: Option<Incarnation>,
    /// The number of its newest request; 0 if it numbers none.
    pub sequence: u64,
    /// Its newest request is not answered yet, and may be made again.
    pub pending: bool,
    /// It should have asked again before now.
    pub overdue: bool,
    /// Earlier processes of the name.
    pub past: Option<&'a ProcessHistory>,
}

impl CurrentProcess<'_> {
    /// Returns how a request relates to the present process and to earlier ones.
    pub(crate) fn precedence(&self, asks: Identity) -> Precedence {
        match (asks.epoch, self.epoch) {
            (Some(epoch), Some(known)) if epoch < known => return Precedence::OutOfOrder,
            (None, Some(_)) => return Precedence::OutOfOrder,
            (Some(epoch), Some(known)) if epoch > known => return Precedence::Next,
            // The node has an election now, and had none before.
            (Some(_), None) => return Precedence::Next,
            _ => {}
        }
        if asks.process == self.process {
            return match asks.sequence {
                None if self.sequence > 0 => Precedence::Unnumbered,
                None => Precedence::Next,
                Some(sequence) if sequence == self.sequence && self.pending => Precedence::Next,
                Some(sequence) if sequence <= self.sequence && self.sequence > 0 => {
                    Precedence::OutOfOrder
                }
                Some(_) => Precedence::Next,
            };
        }
        if asks.sequence.is_none() && self.sequence > 0 {
            return Precedence::Unnumbered;
        }
        let former = self.past.and_then(|past| past.former(asks.process));
        match (former, asks.sequence) {
            (None, _) => Precedence::Started,
            (Some(former), Some(sequence)) if sequence <= former.sequence => Precedence::Late,
            // The first one is silent: it may be gone.
            (Some(former), _) if former.refused && self.overdue => Precedence::Started,
            (Some(former), _) if former.refused => Precedence::Refused,
            (Some(_), _) => Precedence::Returned,
        }
    }
}

impl ProcessHistory {
    fn former(&self, process: Option<Incarnation>) -> Option<&PreviousProcess> {
        self.formers.iter().find(|former| former.process == process)
    }

    /// Adds a process that has lost the name.
    pub(crate) fn note_former(
        &mut self,
        process: Option<Incarnation>,
        sequence: u64,
        refused: bool,
    ) {
        self.forget_former(process);
        if self.formers.len() == REMEMBERED_MAX {
            self.formers.remove(0);
        }
        self.formers.push(PreviousProcess {
            process,
            sequence,
            refused,
            had: None,
        });
    }

    /// Records the leases of the process that lost the name last.
    pub(crate) fn note_had(&mut self, had: Leases) {
        if let Some(former) = self.formers.last_mut() {
            former.had = Some(Box::new(had));
        }
    }

    /// Drops the leases of former processes. These did not ask in time, so they count as gone, and their leases as
    /// those of the later process.
    pub(crate) fn forget_had(&mut self) {
        for former in &mut self.formers {
            former.had = None;
        }
    }

    /// Returns the leases that a child server had when another process took its name, without those that have ended.
    pub(crate) fn had(&self, process: Option<Incarnation>, now: Time) -> Option<Leases> {
        let mut had = self.former(process)?.had.as_deref()?.clone();
        had.expire(now).then_some(had)
    }

    /// Returns the child server process that lost the name last, with those of its leases that have not ended.
    pub(crate) fn last_had(&self, now: Time) -> Option<(Option<Incarnation>, Leases)> {
        let mut formers = self.formers.iter().rev();
        let process = formers.find(|it| !it.refused && it.had.is_some())?.process;
        Some((process, self.had(process, now)?))
    }

    /// Whether a process was refused the name.
    pub(crate) fn was_refused(&self, process: Option<Incarnation>) -> bool {
        self.former(process).is_some_and(|former| former.refused)
    }

    /// Marks the processes that took the name after `process` as refused: `process` came first and lives.
    pub(crate) fn refuse_later(&mut self, process: Option<Incarnation>) {
        let mut formers = self.formers.iter_mut();
        if formers.any(|former| former.process == process) {
            formers.for_each(|former| former.refused = true);
        }
    }

    /// Removes a process from the former ones: it has the name now.
    pub(crate) fn forget_former(&mut self, process: Option<Incarnation>) {
        self.formers.retain(|former| former.process != process);
    }

    /// Notes a request of a process that does not have the name.
    pub(crate) fn note_request(&mut self, process: Option<Incarnation>, sequence: Option<u64>) {
        let found = self.formers.iter_mut().find(|it| it.process == process);
        if let (Some(former), Some(sequence)) = (found, sequence) {
            former.sequence = former.sequence.max(sequence);
        }
    }

    /// The process that was refused the name last.
    pub(crate) fn refused(&self) -> Option<Incarnation> {
        let mut refused = self.formers.iter().rev().filter(|former| former.refused);
        refused.next()?.process
    }

    /// Notes that a new process was started. The former one, if it lives, asks by then.
    pub(crate) fn note_started(&mut self, expected_by: Time) {
        self.expected_by = Some(expected_by);
    }

    /// Returns the time by which the former process should ask again, if it is in the future.
    pub(crate) fn expected_by(&self, now: Time) -> Option<Time> {
        self.expected_by.filter(|by| *by > now)
    }

    /// Whether an answer has told the present process that no former process lives.
    pub(crate) fn former_counts_as_gone(&self) -> bool {
        self.expected_by.is_none()
    }

    /// Notes an answer to the present process, which says whether a former process may live.
    pub(crate) fn note_answer(&mut self, now: Time) {
        self.expected_by = self.expected_by(now);
    }
}

/// The masterships of a child server's node that have asked, and what the earlier ones may have
/// granted: it was cut from what they were granted until the present one first asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Masterships {
    current: Option<MastershipId>,
    earlier: Vec<MastershipId>,
    /// Leases granted before the present mastership first asked.
    before: Option<Leases>,
    /// This node was learning when the first of them asked: grants of others were never on its record.
    /// When we have learned, it is over; but what the present mastership has confirmed of it is not,
    /// and has nothing to do with grants of those that have asked.
    learned: bool,
}

impl Masterships {
    /// Notes a request by a mastership of the node. `granted`: the leases that the node had before it. `learning`: this
    /// server is in learning mode.
    pub(crate) fn note(
        &mut self,
        mastership: MastershipId,
        granted: Option<&Leases>,
        learning: bool,
    ) {
        if self.current == Some(mastership) {
            return;
        }
        if self.current.is_none() {
            self.learned = learning;
        }
        if let Some(current) = self.current.replace(mastership) {
            self.earlier.retain(|earlier| *earlier != current);
            if self.earlier.len() == REMEMBERED_MAX {
                self.earlier.remove(0);
            }
            self.earlier.push(current);
        }
        self.earlier.retain(|earlier| *earlier != mastership);
        self.before = granted.cloned();
    }

    /// The present one.
    pub(crate) fn current(&self) -> Option<MastershipId> {
        self.current
    }

    /// Returns the masterships whose grants are all on our record. None: all are.
    pub(crate) fn accounted(&self) -> Option<Vec<MastershipId>> {
        let heard = self.earlier.iter().chain(&self.current).copied();
        self.learned.then(|| heard.collect())
    }

    /// Whether the grants of an earlier mastership are on our record.
    pub(crate) fn is_accounted(&self, mastership: Option<MastershipId>) -> bool {
        !self.learned || mastership.is_none_or(|it| self.earlier.contains(&it))
    }

    /// Returns the leases by which earlier masterships may have handed out capacity, without those that have ended.
    /// None: no lease is left.
    pub(crate) fn inherited(&self, now: Time) -> Option<Leases> {
        let mut before = self.before.clone()?;
        before.expire(now).then_some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(bits: u64) -> Option<Incarnation> {
        Incarnation::new(bits)
    }

    fn identity(epoch: u64, bits: u64, sequence: u64) -> Identity {
        let some = |number: u64| Some(number).filter(|number| *number > 0);
        Identity {
            epoch: some(epoch),
            process: process(bits),
            sequence: some(sequence),
        }
    }

    /// Process 1 has sent 10 requests in epoch 3, process 2 was replaced after 20, process 4 was
    /// refused after 40.
    #[track_caller]
    fn check(epoch: u64, overdue: bool, asks: Identity, expected: Precedence) {
        let mut past = ProcessHistory::default();
        past.note_former(process(2), 20, false);
        past.note_former(process(4), 40, true);
        let known = CurrentProcess {
            epoch: Some(epoch).filter(|epoch| *epoch > 0),
            process: process(1),
            sequence: 10,
            pending: false,
            overdue,
            past: Some(&past),
        };
        assert_eq!(known.precedence(asks), expected, "{asks:?}");
    }

    #[test]
    fn numbers_count_within_one_process() {
        check(0, false, identity(0, 1, 11), Precedence::Next);
        check(0, false, identity(0, 1, 10), Precedence::OutOfOrder);
        check(0, false, identity(0, 1, 0), Precedence::Unnumbered);
        // A clock that went back over a restart, and one that is ages ahead.
        check(0, false, identity(0, 9, 3), Precedence::Started);
        check(0, false, identity(0, 9, u64::MAX), Precedence::Started);
        check(0, false, identity(0, 9, 0), Precedence::Unnumbered);
        check(0, false, identity(0, 0, 3), Precedence::Started);
    }

    #[test]
    fn a_request_of_a_replaced_process_is_late_or_shows_that_it_lives() {
        check(0, false, identity(0, 2, 20), Precedence::Late);
        check(0, false, identity(0, 2, 21), Precedence::Returned);
        check(0, true, identity(0, 2, 21), Precedence::Returned);
        check(0, false, identity(0, 4, 40), Precedence::Late);
        check(0, false, identity(0, 4, 41), Precedence::Refused);
        check(0, true, identity(0, 4, 41), Precedence::Started);
    }

    #[test]
    fn an_epoch_is_newer_whatever_else_is_said_and_none_is_older_than_any() {
        check(3, false, identity(4, 9, 1), Precedence::Next);
        check(3, false, identity(4, 2, 1), Precedence::Next);
        check(3, false, identity(2, 1, 11), Precedence::OutOfOrder);
        check(3, false, identity(0, 1, 11), Precedence::OutOfOrder);
        check(3, false, identity(3, 1, 11), Precedence::Next);
        check(0, false, identity(1, 1, 1), Precedence::Next);
    }

    #[test]
    fn a_process_that_never_numbers_its_requests_is_always_heard() {
        let known = CurrentProcess {
            epoch: None,
            process: None,
            sequence: 0,
            pending: false,
            overdue: false,
            past: None,
        };
        assert_eq!(known.precedence(identity(0, 0, 0)), Precedence::Next);
        assert_eq!(known.precedence(identity(0, 0, 1)), Precedence::Next);
        assert_eq!(known.precedence(identity(0, 1, 1)), Precedence::Started);
    }

    #[test]
    fn masterships_that_were_heard_are_accounted_for_by_a_parent_that_learned() {
        let id = MastershipId::new;
        let mut learned = Masterships::default();
        learned.note(id(1), None, true);
        assert_eq!(learned.accounted(), Some(vec![id(1)]));
        assert!(!learned.is_accounted(Some(id(1))), "it speaks for itself");
        learned.note(id(2), None, true);
        assert!(learned.is_accounted(Some(id(1))));
        assert!(learned.is_accounted(None));
        assert!(!learned.is_accounted(Some(id(9))));
        // Nor are others when learning is over.
        learned.note(id(2), None, false);
        assert!(!learned.is_accounted(Some(id(9))));
        assert_eq!(learned.accounted(), Some(vec![id(1), id(2)]));
        let mut known = Masterships::default();
        known.note(id(1), None, false);
        known.note(id(2), None, true);
        assert_eq!(known.accounted(), None, "all it had was granted by us");
    }
}
