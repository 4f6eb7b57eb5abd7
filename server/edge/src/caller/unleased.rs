//! An identity's part of what this process admits before its first lease of a resource: as much as each other identity
//! has, so that one that asks more takes nothing from others. Pure.

use std::time::Duration;

use doorward::time::Time;

use super::RETRY_IN;

/// Amount of a rule for all callers.
#[derive(Clone, Copy, Debug)]
pub struct Whole {
    /// In a second.
    pub rate: f64,
    /// At once, after a rest.
    pub at_once: f64,
    /// Cost of a usual request.
    pub usual: f64,
    /// Part of it that this process admits before its first lease.
    pub part: f64,
}

impl Whole {
    /// Returns the largest cost of an identity among others, and its largest debt: what its own rate pays in the time of
    /// the whole amount, or a quarter of that amount or a usual request if it is more. So one request takes no window from the others.
    pub(super) fn most(self, own_rate: f64) -> f64 {
        let pays = own_rate * self.at_once / self.rate;
        pays.max(self.at_once / 4.0).max(self.usual).ceil()
    }
}

/// An identity's part.
#[derive(Debug, Default)]
pub(super) struct UnleasedPart {
    /// Time until which its part has paid (GCRA).
    pub(super) paid_until: Time,
}

impl UnleasedPart {
    /// Takes a cost, or returns the time until that is possible. A cost above the part passes after a rest, up to a bound.
    pub(super) fn take(
        &mut self,
        all: Whole,
        identities: u32,
        cost: f64,
        now: Time,
    ) -> Result<(), Duration> {
        // Alone, all that this process admits is its own.
        if identities <= 1 {
            return Ok(());
        }
        let own_rate = all.rate / f64::from(identities);
        if cost > all.most(own_rate) {
            return Err(RETRY_IN);
        }
        let seconds = |amount: f64| Duration::try_from_secs_f64(amount).unwrap_or(Duration::MAX);
        let lasts = seconds(cost / (own_rate * all.part));
        let (ahead, at_once) = (self.paid_until.since(now), seconds(all.at_once / all.rate));
        let wait = ahead.saturating_add(lasts).saturating_sub(at_once);
        if !ahead.is_zero() && !wait.is_zero() {
            return Err(wait.min(ahead));
        }
        self.paid_until = self.paid_until.max(now) + lasts;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_among_others_has_as_much_as_each() {
        let all = Whole {
            rate: 300.0,
            at_once: 300.0,
            usual: 1.0,
            part: 1.0,
        };
        let start = Time::from_secs(60);
        let passes = |identities: u32, every: Duration| {
            let mut part = UnleasedPart::default();
            let calls = 0..(10_000_000 / every.as_micros()) as u32;
            let taken = calls.map(|call| part.take(all, identities, 1.0, start + every * call));
            taken.filter(Result::is_ok).count()
        };
        let millis = Duration::from_millis;
        assert_eq!(passes(1, millis(1)), 10_000);
        // Ten seconds, and one at once.
        for (identities, most) in [(2, 11 * 150), (3, 11 * 100)] {
            let passes = passes(identities, millis(1));
            assert!((most - 2..=most).contains(&passes), "{passes} of {most}");
        }
        assert_eq!(passes(2, millis(10)), 1_000, "less than its part");
    }

    #[test]
    fn a_large_cost_passes_after_a_rest() {
        let all = Whole {
            rate: 1.0,
            at_once: 20.0,
            usual: 1.0,
            part: 1.0,
        };
        let (mut part, start) = (UnleasedPart::default(), Time::from_secs(60));
        assert_eq!(part.take(all, 8, 5.0, start), Ok(()));
        let wait = part.take(all, 8, 5.0, start).unwrap_err();
        assert_eq!(wait, Duration::from_secs(40));
        assert_eq!(part.take(all, 8, 5.0, start + wait), Ok(()));
        let later = start + wait * 3;
        assert_eq!(part.take(all, 8, 6.0, later), Err(RETRY_IN), "a quarter");
        assert_eq!(part.take(all, 2, 10.0, later), Ok(()), "its part");
        assert_eq!(part.take(all, 1, 20.0, later), Ok(()), "alone");
    }
}
