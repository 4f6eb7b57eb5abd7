//! Why a lease is no larger, in words for people and for programs. An older server does not say: then
//! nothing is shown.

use std::time::Duration;

use doorward::LimitedBy;
use doorward_pages::numbers::typed_span as span;

/// Advice that is printed once to a user who waits for learning mode.
pub(crate) const LEARNING_ADVICE: &str = "\
learning mode: a new master does not know which leases are out, so for one lease length it only confirms the leases
that clients report. It ends by itself: wait. If no client held a lease before, or if more than the capacity may be
in use for one lease length, `doorward learning end` at the root ends it now";

/// Returns the reason why there is no more, in words. None: there is no more wanted, or the reason is not known.
pub(crate) fn words(
    limited_by: Option<LimitedBy>,
    learning_for: Option<Duration>,
) -> Option<String> {
    let limit = limited_by.filter(|limit| *limit != LimitedBy::Wants)?;
    let left = learning_for.filter(|_| limit.is_learning());
    let left = left.map(|left| format!(", at most {} left", seconds(left)));
    Some(format!("{limit}{}", left.unwrap_or_default()))
}

/// For programs. The words are an interface.
pub(crate) const fn word(limited_by: LimitedBy) -> &'static str {
    match limited_by {
        LimitedBy::Wants => "wants",
        LimitedBy::Share => "share",
        LimitedBy::Others => "others",
        LimitedBy::Learning => "learning",
        LimitedBy::ParentLearning => "parent_learning",
        LimitedBy::CapacityLowered => "capacity_lowered",
        LimitedBy::Parent => "parent",
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
