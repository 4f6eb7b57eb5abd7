//! Tally of many calls: their latencies, grants, and failures.

use std::time::Duration;

use crate::latencies::Latencies;
use crate::population::Outcome;
use crate::wire::Failure;

/// Tally of one asker, or of all together.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Latencies of calls that were granted in full.
    pub(crate) latencies: Latencies,
    /// Latencies of the others, which are no evidence about grants.
    pub(crate) failed: Latencies,
    /// Answers of the calls.
    pub(crate) outcome: Outcome,
    /// Number of calls that were sent and count, with any result.
    pub(crate) calls: u64,
    /// Number of calls that the server refused, even during the warm-up.
    pub(crate) refused: u64,
    /// Number of calls that the server refused without a time.
    pub(crate) refused_for_ever: u64,
    /// Number of calls without an answer.
    pub(crate) broken: u64,
    /// Text of the first failure.
    pub(crate) first_failure: Option<String>,
}

impl Tally {
    /// Records the end of a call. It counts if it took place within the measured time.
    pub(crate) fn note(&mut self, ended: &Result<Outcome, Failure>, took: Option<Duration>) {
        if let Some(took) = took {
            self.calls += 1;
            let succeeded = matches!(ended, Ok(outcome) if outcome.is_complete());
            let latencies = if succeeded {
                &mut self.latencies
            } else {
                &mut self.failed
            };
            latencies.note(took);
        }
        match ended {
            Ok(outcome) if took.is_some() => self.outcome.add(outcome.clone()),
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

    /// Adds another tally.
    pub(crate) fn add(&mut self, other: Self) {
        self.latencies.add(other.latencies);
        self.failed.add(other.failed);
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

/// Checks that failures are counted, and are not among the latencies of grants.
pub(crate) fn check() {
    let second = Some(Duration::from_secs(1));
    let granted = Outcome {
        granted: 1,
        ..Outcome::default()
    };
    let refused_by_node = Outcome {
        refused: 1,
        refused_for_ever: 1,
        ..Outcome::default()
    };
    let refused = |comes_back_in| Failure::Refused {
        code: 8,
        comes_back_in,
        message: String::new(),
    };
    let mut tally = Tally::default();
    tally.note(&Ok(granted.clone()), Some(Duration::from_millis(1)));
    tally.note(&Ok(refused_by_node), second);
    tally.note(&Err(refused(second)), second);
    tally.note(&Err(refused(None)), second);
    tally.note(&Err(Failure::Broken(String::new())), second);
    // During the warm-up.
    tally.note(&Ok(granted), None);
    assert_eq!((tally.calls, tally.refused, tally.broken), (5, 2, 1));
    assert_eq!((tally.refused_for_ever, tally.outcome.granted), (1, 1));
    let mut all = Tally::default();
    all.add(tally);
    let (latencies, failed) = (all.latencies.sorted(), all.failed.sorted());
    assert_eq!((latencies.count(), failed.count()), (1, 4));
    assert_eq!(latencies.max(), Duration::from_millis(1));
}
