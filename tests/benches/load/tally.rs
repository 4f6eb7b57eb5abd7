//! What came of many calls: how long they took, what they were granted, and what went wrong.

use std::time::Duration;

use crate::latencies::Latencies;
use crate::population::Outcome;
use crate::wire::Failure;

/// The books of one who asks, and of all together.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// How long calls took, those that failed too.
    pub(crate) latencies: Latencies,
    /// What calls were answered.
    pub(crate) outcome: Outcome,
    /// Calls that were sent.
    pub(crate) calls: u64,
    /// Calls that the server refused.
    pub(crate) refused: u64,
    /// Calls that the server refused without a time to come back.
    pub(crate) refused_for_ever: u64,
    /// Calls that got no answer.
    pub(crate) broken: u64,
    /// What went wrong first.
    pub(crate) first_failure: Option<String>,
}

impl Tally {
    /// A call has ended. It counts if it took place within what is measured.
    pub(crate) fn note(&mut self, ended: &Result<Outcome, Failure>, took: Option<Duration>) {
        if let Some(took) = took {
            self.calls += 1;
            self.latencies.note(took);
        }
        match ended {
            Ok(outcome) if took.is_some() => self.outcome.add(*outcome),
            Ok(_) => {}
            Err(failure) => {
                match failure {
                    Failure::Refused { comes_back_in, .. } => {
                        self.refused += 1;
                        self.refused_for_ever += u64::from(comes_back_in.is_none());
                    }
                    Failure::Reset(_) | Failure::Broken(_) => self.broken += 1,
                }
                self.first_failure
                    .get_or_insert_with(|| failure.to_string());
            }
        }
    }

    /// All of another one, too.
    pub(crate) fn add(&mut self, other: Self) {
        self.latencies.add(other.latencies);
        self.outcome.add(other.outcome);
        self.calls += other.calls;
        self.refused += other.refused;
        self.refused_for_ever += other.refused_for_ever;
        self.broken += other.broken;
        if self.first_failure.is_none() {
            self.first_failure = other.first_failure;
        }
    }
}
