//! What came of many calls: how long they took, what they were granted, and what went wrong.

use std::time::Duration;

use crate::latencies::Latencies;
use crate::population::Outcome;
use crate::wire::Failure;

/// The books of one who asks, and of all together.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// How long calls took that were granted all that they asked for.
    pub(crate) latencies: Latencies,
    /// How long the others took: how fast a server fails says nothing of how fast it grants.
    pub(crate) failed: Latencies,
    /// What calls were answered.
    pub(crate) outcome: Outcome,
    /// Calls that were sent and count, whatever came of them.
    pub(crate) calls: u64,
    /// Calls that the server refused, also before anything counts.
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

    /// All of another one, too.
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

/// Failures are counted, and are not among the latencies of what was granted.
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
    // Before anything counts.
    tally.note(&Ok(granted), None);
    assert_eq!((tally.calls, tally.refused, tally.broken), (5, 2, 1));
    assert_eq!((tally.refused_for_ever, tally.outcome.granted), (1, 1));
    let mut all = Tally::default();
    all.add(tally);
    let (latencies, failed) = (all.latencies.sorted(), all.failed.sorted());
    assert_eq!((latencies.count(), failed.count()), (1, 4));
    assert_eq!(latencies.max(), Duration::from_millis(1));
}
