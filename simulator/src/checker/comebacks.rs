//! How soon clients come back: the time from the moment at which a client without a lease could
//! reach its server again to its next lease.
//!
//! Only a client counts that found no server and whose lease ended before the server was back. The
//! time starts when both hold: the client has no lease, and its server is up. A client whose lease
//! outlasted the outage lost nothing and does not count.

use std::time::Duration;

use doorward_engine::time::Time;

use crate::checker::extreme::Extreme;

#[derive(Debug, Default)]
pub(crate) struct Comebacks {
    pub(super) settled_after: Time,
    /// Time of each comeback, in seconds.
    pub(super) took: Vec<f32>,
    /// Longest comeback, and when it ended.
    pub(super) longest: Extreme<Duration>,
    /// Clients that were not back at the end.
    pub(super) missing: usize,
}

impl Comebacks {
    /// Notes that a client that lost its server and its lease has a lease again. It could have had
    /// one since `since`.
    pub(crate) fn note(&mut self, since: Time, now: Time) {
        if now < self.settled_after {
            return;
        }
        let took = now.since(since.max(self.settled_after));
        self.took.push(took.as_secs_f32());
        self.longest.note(took, now);
    }

    /// Notes that a client has no lease at the end of the run, although it could since `since`. The
    /// time so far counts.
    pub(crate) fn note_missing(&mut self, since: Time, now: Time) {
        self.missing += 1;
        self.note(since, now);
    }

    /// Returns the median in seconds; 0 without comebacks.
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
