//! What was asked of the parent and is not answered yet.
//!
//! Of each resource at most one request is on its way, so every resource of a request waits for an
//! answer of its own. A parent that answers everything but one resource is found out as well: that
//! resource would not be asked for again as long as the stream lasts.

use std::collections::{BTreeSet, VecDeque};

use crate::parent_session::Answered;
use crate::planted::{self, Bug};
use crate::time::Time;

/// Requests on their way, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    requests: VecDeque<Sent>,
}

#[derive(Clone, Debug)]
struct Sent {
    sequence: u64,
    /// The resources that are not answered yet, by their numbers. Of a request about nothing, any answer is
    /// one.
    resources: BTreeSet<u64>,
    /// When it was sent, or the one before it was answered: a parent that is slow but answers one
    /// after the other is not stuck.
    since: Time,
}

impl InFlight {
    /// The request was sent, about these resources.
    pub(super) fn note_sent(
        &mut self,
        sequence: u64,
        resources: impl IntoIterator<Item = u64>,
        now: Time,
    ) {
        self.requests.push_back(Sent {
            sequence,
            resources: resources.into_iter().collect(),
            since: now,
        });
    }

    /// Requests of which something is not answered.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Since when the parent owes an answer.
    pub(super) fn since(&self) -> Option<Time> {
        self.requests.front().map(|sent| sent.since)
    }

    /// Part of a large request arrived: the rest has its time again.
    pub(super) fn note_progress(&mut self, now: Time) {
        if let Some(sent) = self.requests.front_mut() {
            sent.since = now;
        }
    }

    /// Whether that request is on its way.
    pub(super) fn awaits(&self, sequence: u64) -> bool {
        self.requests.iter().any(|sent| sent.sequence == sequence)
    }

    /// All is answered.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
    }

    /// The parent answered, or told something unasked.
    pub(super) fn note_answer(&mut self, answered: &[Answered], now: Time) {
        for answer in answered {
            // To an older request, it tells what changed before this one arrived.
            let sequence = answer.to.unwrap_or(u64::MAX);
            for sent in &mut self.requests {
                if sent.sequence <= sequence || planted::is(Bug::OlderAnswerCounts) {
                    sent.resources.remove(&answer.resource);
                }
            }
        }
        let oldest = self.requests.front().map(|sent| sent.sequence);
        self.requests.retain(|sent| !sent.resources.is_empty());
        if let Some(sent) = self.requests.front_mut()
            && Some(sent.sequence) != oldest
        {
            sent.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const A: u64 = 1;
    const B: u64 = 2;
    const C: u64 = 3;

    fn at(seconds: u64) -> Time {
        Time::after_origin(Duration::from_secs(seconds))
    }

    fn to(resource: u64, to: Option<u64>) -> Answered {
        Answered { resource, to }
    }

    #[test]
    fn a_request_is_answered_once_all_of_its_resources_are() {
        let mut in_flight = InFlight::default();
        in_flight.note_sent(5, [A, B, C], at(0));
        in_flight.note_answer(&[to(A, Some(5))], at(0));
        in_flight.note_answer(&[to(B, None)], at(0));
        assert_eq!(in_flight.since(), Some(at(0)));
        in_flight.note_answer(&[to(C, None)], at(0));
        assert_eq!((in_flight.since(), in_flight.len()), (None, 0));
    }

    #[test]
    fn what_is_told_unasked_answers_nothing() {
        let mut in_flight = InFlight::default();
        in_flight.note_sent(5, [A], at(0));
        for unasked in [to(A, Some(4)), to(B, None), to(B, Some(5))] {
            in_flight.note_answer(&[unasked], at(0));
        }
        assert_eq!(in_flight.len(), 1);
    }

    #[test]
    fn any_answer_is_one_to_a_request_about_nothing() {
        let mut in_flight = InFlight::default();
        in_flight.note_sent(5, [], at(0));
        assert_eq!(in_flight.since(), Some(at(0)));
        in_flight.note_answer(&[], at(0));
        assert_eq!(in_flight.since(), None);
    }

    #[test]
    fn the_parent_has_its_time_for_each_request() {
        let mut in_flight = InFlight::default();
        in_flight.note_sent(5, [A], at(0));
        in_flight.note_sent(6, [B], at(0));
        in_flight.note_answer(&[to(A, Some(5))], at(1));
        assert_eq!(in_flight.since(), Some(at(1)));
        // But answering other things does not excuse it.
        in_flight.note_sent(7, [A], at(1));
        in_flight.note_answer(&[to(A, Some(7))], at(2));
        assert_eq!(in_flight.since(), Some(at(1)));
    }
}
