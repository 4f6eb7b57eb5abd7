//! The claims that go and those that come when another demand of a child server takes the place of one.
//!
//! A child whose clients have many priorities has thousands of claims: too many to change them all while everybody waits.
//! So the changes are an iterator, which is left where it is and gone on with later.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::bands::{ClaimChange, band_of};
use crate::claim::Claim;
use crate::demand::{BandDemand, ServerDemand};
use crate::template::AlgorithmKind;

/// The changes that are still to be made, band by band. Of bands that are the same, nothing changes: most priorities
/// change seldom, and each has dozens of claims.
#[derive(Debug)]
pub(crate) struct ClaimChanges {
    kind: AlgorithmKind,
    before: Arc<ServerDemand>,
    after: Arc<ServerDemand>,
    /// The next band of each.
    next: [usize; 2],
    of_band: std::vec::IntoIter<ClaimChange>,
}

impl ClaimChanges {
    /// All that takes the claims of the one to those of the other, by an algorithm of that kind.
    pub(crate) fn new(
        before: Arc<ServerDemand>,
        after: Arc<ServerDemand>,
        kind: AlgorithmKind,
    ) -> Self {
        Self {
            kind,
            before,
            after,
            next: [0; 2],
            of_band: Vec::new().into_iter(),
        }
    }

    /// Whether there are any left.
    pub(crate) fn has_next(&mut self) -> bool {
        while self.of_band.len() == 0 {
            if !self.next_band() {
                return false;
            }
        }
        true
    }

    /// How many more claims come than go. O(claims), for tests.
    pub(crate) fn growth(&self) -> isize {
        let rest = Self {
            kind: self.kind,
            before: Arc::clone(&self.before),
            after: Arc::clone(&self.after),
            next: self.next,
            of_band: self.of_band.clone(),
        };
        rest.map(|change| match change {
            ClaimChange::Goes(..) => -1,
            ClaimChange::Comes(..) => 1,
        })
        .sum()
    }

    /// Goes on to the next priority that either has. Returns whether there was one.
    fn next_band(&mut self) -> bool {
        let [at_before, at_after] = self.next;
        let (before, after) = (
            self.before.bands.get(at_before),
            self.after.bands.get(at_after),
        );
        let order = match (before, after) {
            (Some(before), Some(after)) => before.priority.cmp(&after.priority),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return false,
        };
        let before = before.filter(|_| order.is_le());
        let after = after.filter(|_| order.is_ge());
        self.next = [
            at_before + usize::from(before.is_some()),
            at_after + usize::from(after.is_some()),
        ];
        let stay = before.zip(after);
        if stay.is_none_or(|(before, after)| !before.has_claims_of(after)) {
            let mut changes = Vec::new();
            let kind = self.kind;
            // In between there is too much of it rather than nothing: the level is too low, not too high.
            add_claims(&mut changes, after, kind, ClaimChange::Comes);
            add_claims(&mut changes, before, kind, ClaimChange::Goes);
            self.of_band = changes.into_iter();
        }
        true
    }
}

/// Adds the claims of a band.
fn add_claims(
    changes: &mut Vec<ClaimChange>,
    band: Option<&BandDemand>,
    kind: AlgorithmKind,
    change: impl Fn(i64, Claim) -> ClaimChange,
) {
    if let Some(band) = band {
        let number = band_of(kind, band.priority);
        band.for_each_claim(|claim| changes.push(change(number, claim)));
    }
}

impl Iterator for ClaimChanges {
    type Item = ClaimChange;

    fn next(&mut self) -> Option<ClaimChange> {
        self.has_next().then(|| self.of_band.next())?
    }
}

#[cfg(test)]
mod tests;
