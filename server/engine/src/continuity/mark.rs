//! The mark of a resource: an amount that all its unexpired leases together never exceed, and the longest of them.
//!
//! A master of the root keeps it in etcd. Its successor reads how much may be in use; holders say later who has it. So a
//! new master grants the rest at once. No lease is granted above the confirmed mark, and none is longer. While a write
//! is under way, etcd may have the former value or the new one, and the smaller of both counts.
//!
//! A mark rises before a grant needs it: it covers what all holders want, as far as the capacity allows. It moves in
//! steps of a 64th of the capacity, and falls once it has been two steps too high for a second. So a resource in steady
//! state writes nothing. No mark is the same as a mark of 0.

use std::time::Duration;

use doorward_time::marks::StoredMark;

use crate::amount::Amount;
use crate::time::Time;

/// Number of steps from zero to the capacity, at least.
const STEPS: f64 = 64.0;

/// Time for which a mark is too high before it falls.
const FALLS_AFTER: Duration = Duration::from_secs(1);

/// Difference of two lengths of leases for which a mark need not change.
const LENGTH_ROUNDING: Duration = Duration::from_millis(1);

/// The mark of a resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Largest sum of all leases. None: any amount.
    pub amount: Option<Amount>,
    /// Longest remaining time of any of them.
    pub longest: Duration,
}

impl Mark {
    /// Returns a mark by the form in which a store has it. An invalid amount is any amount.
    pub fn of((amount, longest): StoredMark) -> Self {
        Self {
            amount: amount.and_then(|amount| Amount::new(amount).ok()),
            longest,
        }
    }

    /// Returns the form in which a store has it.
    pub fn stored(self) -> StoredMark {
        (self.amount.map(Amount::get), self.longest)
    }

    fn bound(&self) -> f64 {
        self.amount.map_or(f64::INFINITY, Amount::get)
    }

    fn covers(&self, other: &Self) -> bool {
        self.bound() >= other.bound() && self.longest >= other.longest
    }
}

/// A resource as it is now, as far as its mark depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkNeeds {
    /// Amount that leases may have in use now, or once all wants that fit are granted.
    pub(crate) expected: Amount,
    /// The capacity.
    pub(crate) capacity: Amount,
    /// Whether any amount may be in use: nothing promises a total, or what predecessors granted is unknown.
    pub(crate) is_unbounded: bool,
    /// Whether nothing can be in use.
    pub(crate) is_unused: bool,
    /// When that is so, if nothing changes.
    pub(crate) unused_at: Option<Time>,
    /// Length of leases that are granted from now on.
    pub(crate) lease_length: Duration,
    /// Longest remaining time of leases.
    pub(crate) lasts: Duration,
}

impl MarkNeeds {
    /// Returns the largest power of two that is no more than a 64th of the capacity.
    fn step(&self) -> f64 {
        // The exponent alone. Without any capacity, nothing is rounded.
        let step =
            f64::from_bits((self.capacity.get() / STEPS).to_bits() & f64::INFINITY.to_bits());
        step.max(f64::MIN_POSITIVE)
    }

    /// Returns the mark to write now.
    fn mark(&self) -> Option<Mark> {
        if self.is_unused {
            return None;
        }
        let step = self.step();
        let rounded = Amount::from_computed((self.expected.get() / step).ceil() * step);
        let amount = rounded.min(self.capacity).max(self.expected);
        Some(Mark {
            amount: Some(amount).filter(|_| !self.is_unbounded),
            longest: self.lease_length.max(self.lasts),
        })
    }
}

/// When to write a mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MarkDue {
    /// Only a change can make it necessary, or a write is under way.
    #[default]
    Never,
    /// Now.
    Now,
    /// At that time, if nothing changes.
    At(Time),
}

/// The mark of a resource in etcd, as its master knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeptMark {
    /// The value in etcd. None: there is none.
    stored: Option<Mark>,
    /// The value that is being written.
    sent: Option<Option<Mark>>,
    due: MarkDue,
    /// End of the leases of predecessors: until then, the mark is not removed.
    inherited_until: Time,
}

impl KeptMark {
    /// Returns a mark that was found. `inherited_until`: the end of the leases of predecessors.
    pub(crate) fn found(stored: Option<Mark>, inherited_until: Time) -> Self {
        Self {
            stored,
            inherited_until,
            ..Self::default()
        }
    }

    /// Returns the end of the leases of predecessors, if they have not ended.
    pub(crate) fn inherited_until(&self, now: Time) -> Option<Time> {
        Some(self.inherited_until).filter(|until| *until > now)
    }

    /// Largest sum of leases that may be granted. None: any.
    pub(crate) fn limit(&self) -> Option<Amount> {
        let of = |mark: Option<Mark>| mark.map_or(Some(Amount::ZERO), |it| it.amount);
        smaller(of(self.stored), self.sent.and_then(of))
    }

    /// Longest lease that may be granted.
    pub(crate) fn longest(&self) -> Duration {
        let of = |mark: Option<Mark>| mark.map_or(Duration::ZERO, |it| it.longest);
        of(self.stored).min(self.sent.map_or(Duration::MAX, of))
    }

    /// Returns the amount in etcd, for status. None: there is no mark, or it has no bound.
    pub(crate) fn shown(&self) -> Option<f64> {
        Some(self.stored?.amount?.get())
    }

    /// Whether there is none in etcd, and none is being written.
    pub(crate) fn is_gone(&self) -> bool {
        self.stored.is_none() && self.sent.is_none()
    }

    /// When to write it.
    pub(crate) fn due(&self) -> MarkDue {
        self.due
    }

    /// Time to look at it again.
    pub(crate) fn due_at(&self) -> Option<Time> {
        match self.due {
            MarkDue::At(at) => Some(at),
            MarkDue::Never | MarkDue::Now => None,
        }
    }

    /// Decides when to write it, after a change of the resource or at the time that was decided before.
    pub(crate) fn update(&mut self, needs: &MarkNeeds, now: Time) {
        let falls_at = match self.due {
            MarkDue::At(at) => at,
            MarkDue::Never | MarkDue::Now => now + FALLS_AFTER,
        };
        self.due = match (self.stored, needs.mark()) {
            _ if self.sent.is_some() => MarkDue::Never,
            (None, Some(_)) => MarkDue::Now,
            (Some(stored), Some(needed)) if !stored.covers(&needed) => MarkDue::Now,
            (Some(stored), needed)
                if Some(stored) != needed && is_too_high(stored, needed, needs) =>
            {
                match falls_at > now {
                    true => MarkDue::At(falls_at),
                    false => MarkDue::Now,
                }
            }
            _ => needs.unused_at.map_or(MarkDue::Never, MarkDue::At),
        };
    }

    /// Begins a write. Returns the value, and whether there is one in etcd.
    pub(crate) fn send(&mut self, needs: &MarkNeeds) -> (Option<Mark>, bool) {
        debug_assert!(self.sent.is_none(), "one write of a mark at a time");
        let mark = needs.mark();
        self.sent = Some(mark);
        self.due = MarkDue::Never;
        (mark, self.stored.is_some())
    }

    /// Notes that etcd has confirmed the write.
    pub(crate) fn note_written(&mut self) {
        if let Some(sent) = self.sent.take() {
            self.stored = sent;
        }
    }
}

/// Returns the smaller limit. None: there is none.
pub(crate) fn smaller(one: Option<Amount>, other: Option<Amount>) -> Option<Amount> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

/// Whether a mark can fall. A longer lease length falls once no lease is that long any more.
fn is_too_high(stored: Mark, needed: Option<Mark>, needs: &MarkNeeds) -> bool {
    let Some(needed) = needed else {
        return true;
    };
    let (before, after) = (stored.bound(), needed.bound());
    let amount_falls = before > after && before >= after + 2.0 * needs.step();
    let outlasts = stored.longest > needs.lease_length + LENGTH_ROUNDING;
    amount_falls || outlasts && needs.lasts <= needs.lease_length
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    const NOW: Time = Time::from_secs(100);

    fn needs(expected: f64) -> MarkNeeds {
        MarkNeeds {
            expected: Amount::new(expected).unwrap(),
            capacity: Amount::new(100.0).unwrap(),
            is_unbounded: false,
            is_unused: false,
            unused_at: None,
            lease_length: Duration::from_secs(60),
            lasts: Duration::from_secs(60),
        }
    }

    fn mark(amount: f64) -> Mark {
        Mark {
            amount: Some(Amount::new(amount).unwrap()),
            longest: Duration::from_secs(60),
        }
    }

    #[track_caller]
    fn check(stored: Option<Mark>, needs: MarkNeeds, due: MarkDue, written: Option<Mark>) {
        let mut kept = KeptMark::found(stored, Time::ZERO);
        kept.update(&needs, NOW);
        assert_eq!(kept.due(), due);
        if due != MarkDue::Never {
            assert_eq!(kept.send(&needs), (written, stored.is_some()));
        }
    }

    #[test]
    fn it_rises_at_once_and_falls_after_a_while() {
        let later = MarkDue::At(NOW + FALLS_AFTER);
        let unbounded = Mark {
            amount: None,
            ..mark(0.0)
        };
        let unused = MarkNeeds {
            is_unused: true,
            ..needs(0.0)
        };
        let longer = MarkNeeds {
            lease_length: Duration::from_secs(90),
            ..needs(40.0)
        };
        let of_longer = Mark {
            longest: Duration::from_secs(90),
            ..mark(40.0)
        };
        let any = MarkNeeds {
            is_unbounded: true,
            ..needs(5.0)
        };
        let run_down = MarkNeeds {
            capacity: Amount::ZERO,
            ..needs(5.0)
        };
        let inherited = MarkNeeds {
            unused_at: Some(NOW + Duration::from_secs(100)),
            ..needs(5.0)
        };
        for (stored, needs, due, written) in [
            // A step is 1, the largest power of two up to 100/64.
            (None, needs(10.2), MarkDue::Now, Some(mark(11.0))),
            (Some(mark(11.0)), needs(10.2), MarkDue::Never, None),
            (
                Some(mark(11.0)),
                needs(11.5),
                MarkDue::Now,
                Some(mark(12.0)),
            ),
            (Some(mark(11.0)), needs(9.5), MarkDue::Never, None),
            (Some(mark(11.0)), needs(9.0), later, Some(mark(9.0))),
            // More than the capacity only while that is in use.
            (
                Some(mark(90.0)),
                needs(99.9),
                MarkDue::Now,
                Some(mark(100.0)),
            ),
            (Some(mark(150.0)), needs(120.0), later, Some(mark(120.0))),
            (Some(mark(11.0)), unused, later, None),
            (None, unused, MarkDue::Never, None),
            (Some(mark(40.0)), longer, MarkDue::Now, Some(of_longer)),
            (Some(of_longer), needs(40.0), later, Some(mark(40.0))),
            (Some(mark(11.0)), any, MarkDue::Now, Some(unbounded)),
            (Some(unbounded), any, MarkDue::Never, None),
            (Some(unbounded), needs(5.0), later, Some(mark(5.0))),
            // While leases run down after the capacity was set to 0, it is not written again and again.
            (Some(mark(5.0)), run_down, MarkDue::Never, None),
            // Leases of predecessors last until then.
            (
                Some(mark(5.0)),
                inherited,
                MarkDue::At(NOW + Duration::from_secs(100)),
                Some(mark(5.0)),
            ),
        ] {
            check(stored, needs, due, written);
        }
    }

    #[test]
    fn a_longer_lease_length_stays_while_a_lease_is_that_long() {
        let stored = Mark {
            longest: Duration::from_secs(90),
            ..mark(40.0)
        };
        let lasting = MarkNeeds {
            lasts: Duration::from_secs(80),
            ..needs(40.0)
        };
        check(Some(stored), lasting, MarkDue::Never, None);
    }

    fn limit(kept: &KeptMark) -> Option<f64> {
        Some(kept.limit()?.get())
    }

    #[test]
    fn the_smaller_of_two_possible_values_counts() {
        let mut kept = KeptMark::found(Some(mark(40.0)), Time::ZERO);
        assert_eq!(limit(&kept), Some(40.0));
        kept.update(&needs(60.0), NOW);
        kept.send(&needs(60.0));
        assert_eq!(limit(&kept), Some(40.0));
        kept.note_written();
        assert_eq!(limit(&kept), Some(60.0));
        kept.send(&needs(20.0));
        assert_eq!(limit(&kept), Some(20.0));
        kept.note_written();
        let unbounded = MarkNeeds {
            is_unbounded: true,
            ..needs(20.0)
        };
        kept.send(&unbounded);
        assert_eq!(limit(&kept), Some(20.0));
        kept.note_written();
        assert_eq!(limit(&kept), None);
        assert_eq!(KeptMark::default().longest(), Duration::ZERO);
    }

    #[test]
    fn a_mark_that_is_needed_again_does_not_fall() {
        let mut kept = KeptMark::found(Some(mark(40.0)), Time::ZERO);
        kept.update(&needs(9.0), NOW);
        kept.update(&needs(9.0), NOW + FALLS_AFTER / 2);
        assert_eq!(kept.due(), MarkDue::At(NOW + FALLS_AFTER));
        kept.update(&needs(39.0), NOW + FALLS_AFTER / 2);
        assert_eq!(kept.due(), MarkDue::Never);
        kept.update(&needs(9.0), NOW + FALLS_AFTER);
        assert_eq!(kept.due(), MarkDue::At(NOW + 2 * FALLS_AFTER));
        kept.update(&needs(9.0), NOW + 2 * FALLS_AFTER);
        assert_eq!(kept.due(), MarkDue::Now);
    }
}
