//! How soon clients are back: from when one without a lease could reach its server again to its next
//! lease.
//!
//! It counts who found no server, and whose lease had ended when there was one again. The time begins
//! when both are so: it has no lease, and its server is there. Whose lease outlasted the outage lost
//! nothing, and does not count.

use std::time::Duration;

use doorward_engine::time::Time;

use crate::checker::Watched;
use crate::planted;
use crate::recording::Checker;

#[derive(Debug)]
pub(super) struct Comebacks {
    settled_after: Time,
    /// In seconds.
    took: Vec<f32>,
    /// The longest, and when it ended.
    pub(super) longest: (Duration, Time),
    /// Who was not back at the end.
    pub(super) missing: usize,
}

impl Comebacks {
    pub(super) fn new(settled_after: Time) -> Self {
        Self {
            settled_after,
            took: Vec::new(),
            longest: (Duration::ZERO, Time::ZERO),
            missing: 0,
        }
    }

    /// A client has a lease again, as it could since then.
    pub(super) fn note(&mut self, since: Time, now: Time) {
        if now < self.settled_after {
            return;
        }
        let (since, now) = planted::seen(Checker::Comeback, since, now);
        let took = now.since(since.max(self.settled_after));
        self.took.push(took.as_secs_f32());
        if took > self.longest.0 {
            self.longest = (took, now);
        }
    }

    /// A client has none when all is over, though it could since then. It counts with the time it had.
    pub(super) fn note_missing(&mut self, since: Time, now: Time) {
        self.missing += 1;
        self.note(since, now);
    }

    /// How many there were.
    pub(super) fn count(&self) -> usize {
        self.took.len()
    }

    /// In seconds; 0 if there was none.
    pub(super) fn median(&self) -> f64 {
        let mut took = self.took.clone();
        let middle = took.len() / 2;
        if took.is_empty() {
            return 0.0;
        }
        let (_, median, _) = took.select_nth_unstable_by(middle, f32::total_cmp);
        f64::from(*median)
    }
}

impl Watched {
    /// A client that had lost its server, and its lease, has one again, as it could since then.
    pub(crate) fn note_comeback(&mut self, since: Time, now: Time) {
        self.comebacks.note(since, now);
    }

    /// It has none when all is over.
    pub(crate) fn note_not_back(&mut self, since: Time, now: Time) {
        self.comebacks.note_missing(since, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comeback_lasts_from_when_it_is_possible() {
        let at = Time::from_secs;
        let mut comebacks = Comebacks::new(at(10));
        comebacks.note(at(1), at(9));
        assert_eq!((comebacks.count(), comebacks.median()), (0, 0.0));
        comebacks.note(at(5), at(11));
        comebacks.note(at(20), at(23));
        comebacks.note_missing(at(20), at(30));
        assert_eq!((comebacks.count(), comebacks.median()), (3, 3.0));
        assert_eq!(comebacks.longest, (Duration::from_secs(10), at(30)));
        assert_eq!(comebacks.missing, 1);
    }
}
