//! Why a lease is no larger, in words for people and for programs. An older server does not say: then
//! nothing is shown.

use std::time::Duration;

use doorward::{Holding, LimitedBy, Source};
use doorward_pages::numbers::typed_span as span;
use serde::Serialize;

use crate::granted::{amount_of, millis};

/// Advice that is printed once to a user who waits for learning mode.
pub(crate) const LEARNING_ADVICE: &str = "\
learning mode: a new master does not know which leases are out, so for one lease length it only confirms the leases
that clients report. It ends by itself: wait. If no client held a lease before, or if more than the capacity may be
in use for one lease length, `doorward learning end` at the root ends it now";

/// Why a lease is no larger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Explanation {
    /// Absent: the server does not say, or there is no lease.
    pub(crate) limited_by: Option<LimitedBy>,
    /// Rest of learning mode, of the server or of one above it.
    pub(crate) learning_for: Option<Duration>,
}

impl Explanation {
    pub(crate) fn of_holding(holding: &Holding) -> Self {
        Self {
            limited_by: holding.limited_by,
            learning_for: holding.learning_for,
        }
    }

    /// For people. None: it is all that is wanted, or that is not known.
    pub(crate) fn words(self) -> Option<String> {
        let limit = self.limited_by.filter(|limit| *limit != LimitedBy::Wants)?;
        let left = self.learning_for.filter(|_| limit.is_learning());
        let left = left.map_or_else(String::new, |left| {
            format!(", at most {} left", seconds(left))
        });
        Some(format!("{limit}{left}"))
    }

    /// Whether it is because a server does not know yet what there is to give.
    pub(crate) fn is_learning(self) -> bool {
        self.limited_by.is_some_and(LimitedBy::is_learning)
    }

    /// As JSON has it.
    pub(crate) fn word(self) -> Option<&'static str> {
        self.limited_by.map(|limit| match limit {
            LimitedBy::Wants => "wants",
            LimitedBy::Share => "share",
            LimitedBy::Others => "others",
            LimitedBy::Learning => "learning",
            LimitedBy::ParentLearning => "parent_learning",
            LimitedBy::CapacityLowered => "capacity_lowered",
            LimitedBy::Parent => "parent",
        })
    }

    /// Returns the rest of learning mode, in milliseconds.
    pub(crate) fn learning_for_ms(self) -> Option<u64> {
        self.learning_for.map(millis)
    }
}

/// Holding of a client of the library, for programs. Its field names are an interface.
#[derive(Serialize)]
pub(crate) struct HoldingOutput<'a> {
    pub(crate) resource: &'a str,
    pub(crate) wants: f64,
    /// -1: no limit.
    pub(crate) capacity: f64,
    /// `lease` or `mode`.
    source: &'static str,
    /// Rest of the lease. Absent: there is none.
    pub(crate) expires_in_ms: Option<u64>,
    /// Why the lease is no larger, as of `get`. Absent: there is none, or the server does not say.
    limited_by: Option<&'static str>,
    /// Rest of learning mode, of the server or of one above it.
    learning_for_ms: Option<u64>,
    /// Problem, if there is one.
    pub(crate) problem: Option<String>,
}

impl<'a> HoldingOutput<'a> {
    pub(crate) fn new(
        resource: &'a str,
        wants: f64,
        holding: &Holding,
        problem: Option<String>,
    ) -> Self {
        let why = Explanation::of_holding(holding);
        Self {
            resource,
            wants,
            capacity: amount_of(holding.capacity),
            source: match holding.source {
                Source::Lease => "lease",
                Source::Mode => "mode",
            },
            expires_in_ms: holding.remaining.map(millis),
            limited_by: why.word(),
            learning_for_ms: why.learning_for_ms(),
            problem,
        }
    }
}

/// Returns a time in whole seconds, rounded up.
fn seconds(left: Duration) -> String {
    let whole = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    if whole < 120 {
        format!("{whole} s")
    } else {
        span(Duration::from_secs(whole))
    }
}

#[cfg(test)]
mod tests;
