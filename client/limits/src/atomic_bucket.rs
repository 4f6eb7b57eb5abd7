//! A token bucket in one 64-bit word, for many threads without a lock.
//!
//! Use it where every request passes one limit. Its answers equal those of [`TokenBucket`] and [`Gcra`], field by
//! field. The word holds a theoretical arrival time, as in GCRA. If time goes back, or two threads use their clock
//! readings in another order, the bucket shows a little less, never more.
//!
//! After a large step back, the level looks like a deep debt, at a time before the latest change. Then the base of the
//! word moves, behind the lock, so that time goes on from there.
//!
//! The [word](crate::word) counts exactly. A lock protects exact numbers for states that do not fit the word. This also
//! works over years: when its base is too far away, one take moves it.
//!
//! A change of limit keeps the ratio, rounded to a drop. The word does not keep the rest of a drop.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::decision::{Answer, Decision, Standing};
use crate::gcra::Gcra;
use crate::key::Key;
use crate::level::Level;
use crate::limit::{self, Act, Held, Limit};
use crate::moment::Moment;
use crate::timeline::Timeline;
use crate::token_bucket::{TokenBucket, TokenBucketState};
use crate::units::Units;
use crate::word::{MISSING_MAX, Outcome, ParkedWord, View, Word};

/// A token bucket that threads share.
#[derive(Debug)]
pub struct AtomicBucket {
    word: Word,
    parked: Mutex<Parked>,
}

/// State behind the lock.
#[derive(Debug)]
struct Parked {
    bucket: TokenBucket,
    /// Level of the bucket, if the word is parked.
    level: Level,
    /// Start of the word's count, if it has ever counted by these settings.
    base: Option<Moment>,
    times: Timeline,
}

impl AtomicBucket {
    /// Creates a full bucket.
    pub fn new(bucket: TokenBucket) -> Self {
        Self {
            word: Word::parked(),
            parked: Mutex::new(Parked {
                bucket,
                level: Level::FULL,
                base: None,
                times: Timeline::START,
            }),
        }
    }

    /// Creates an empty bucket, for limits that must not begin with a burst.
    pub fn empty(bucket: TokenBucket, now: Moment) -> Self {
        let empty = Self::new(bucket);
        let mut parked = empty.lock();
        parked.level = Level::empty(bucket.flow(), now);
        drop(parked);
        empty
    }

    /// Takes `cost` if it is available.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "constant costs and unused parts of an answer cost nothing then"
    )]
    pub fn take(&self, cost: Units, now: Moment) -> Decision {
        let take = |view: View, missing| {
            let outcome = view.take(missing, cost);
            let next = match outcome {
                Outcome::Taken(missing) if cost > Units::ZERO => Some(missing),
                _ => None,
            };
            Some((next, outcome))
        };
        let say = |view: View, outcome| Some(view.decision(outcome));
        match self.word.step_then(now, take, say) {
            Some(decision) => decision,
            None => self.parked(now, |parked, now| {
                parked.level.take(parked.bucket.flow(), cost, now)
            }),
        }
    }

    /// Returns the answer that a take would get. A peek of 0 only looks.
    #[inline]
    pub fn peek(&self, cost: Units, now: Moment) -> Decision {
        let look = self
            .word
            .step(now, |view, missing| Some((None, view.take(missing, cost))));
        match look {
            Some((view, outcome)) => view.decision(outcome),
            None => self.parked(now, |parked, now| {
                parked.level.peek(parked.bucket.flow(), cost, now)
            }),
        }
    }

    /// Returns the standing of the bucket, even if it refuses.
    pub fn standing(&self, now: Moment) -> Standing {
        match self.word.step(now, |_, missing| Some((None, missing))) {
            Some((view, missing)) => view.standing(missing),
            None => self.parked(now, |parked, now| {
                parked.level.standing(parked.bucket.flow(), now)
            }),
        }
    }

    /// Takes `cost`, available or not.
    pub fn charge(&self, cost: Units, now: Moment) {
        if cost == Units::ZERO {
            return;
        }
        let step = |view: View, missing: u64| {
            let drops = view.in_drops(cost)?;
            let missing = missing.checked_add(drops)?;
            (missing <= MISSING_MAX).then_some((Some(missing), ()))
        };
        if self.word.step(now, step).is_none() {
            self.parked(now, |parked, now| {
                parked.level.charge(parked.bucket.flow(), cost, now)
            });
        }
    }

    /// Gives back `cost`. Any amount above full is lost.
    pub fn refund(&self, cost: Units, now: Moment) {
        if cost == Units::ZERO {
            return;
        }
        let step = |view: View, missing: u64| {
            let drops = view.in_drops(cost)?;
            Some((Some(missing.saturating_sub(drops)), ()))
        };
        if self.word.step(now, step).is_none() {
            self.parked(now, |parked, now| {
                parked.level.refund(parked.bucket.flow(), cost, now)
            });
        }
    }

    /// Sets another limit. The available part keeps its ratio, so nothing bursts.
    pub fn set_limit(&self, next: TokenBucket, now: Moment) {
        self.parked(now, |parked, now| {
            parked.level.change(parked.bucket.flow(), next.flow(), now);
            parked.bucket = next;
            parked.base = None;
        });
    }

    /// Returns whether everything is available.
    pub fn is_fresh(&self, now: Moment) -> bool {
        match self.word.step(now, |_, missing| Some((None, missing == 0))) {
            Some((_, fresh)) => fresh,
            None => self.parked(now, |parked, now| {
                parked.level.is_full(parked.bucket.flow(), now)
            }),
        }
    }

    /// Returns the settings.
    pub fn algorithm(&self) -> TokenBucket {
        self.lock().bucket
    }

    /// Does one operation behind the lock.
    #[cold]
    #[inline(never)]
    fn parked<R>(&self, clock: Moment, operation: impl FnOnce(&mut Parked, Moment) -> R) -> R {
        let mut held = self.park(clock);
        let now = held.now;
        operation(&mut held.parked, now)
    }

    /// Locks and parks the bucket. The word is active again when the result is dropped, if possible.
    fn park(&self, clock: Moment) -> HeldBucket<'_> {
        let mut parked = self.lock();
        let word = self.word.park();
        if let (Some(missing), Some(base)) = (word.missing, parked.base) {
            parked.level = Level::missing_at(i128::from(missing), base);
        }
        let (bucket, before) = (parked.bucket, parked.times.clock(Moment::ORIGIN));
        parked.times.see(self.word.latest());
        let now = parked.times.pass(&bucket, clock);
        if parked.times.clock(Moment::ORIGIN) != before {
            // The clock was set back: the word counts from another time of it.
            parked.base = None;
        }
        self.word.set_latest(parked.times.latest());
        HeldBucket {
            bucket: self,
            parked,
            word,
            now,
        }
    }

    /// Activates the word again, if 56 bits can hold the level.
    fn unpark(&self, parked: &mut Parked, word: ParkedWord) {
        let Some(view) = View::of(parked.bucket.flow()) else {
            return;
        };
        let (missing, at) = parked.level.as_set();
        let missing = match u64::try_from(missing) {
            Ok(missing @ 0..=MISSING_MAX) => missing,
            _ => return,
        };
        if parked.base == Some(at) {
            self.word.speak_on(word, missing);
        } else {
            parked.base = Some(at);
            let base = parked.times.clock(at);
            self.word.speak_by(view.from(base, u64::MAX), word, missing);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Parked> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bucket behind its lock.
struct HeldBucket<'a> {
    bucket: &'a AtomicBucket,
    parked: MutexGuard<'a, Parked>,
    word: ParkedWord,
    now: Moment,
}

impl Drop for HeldBucket<'_> {
    fn drop(&mut self) {
        self.bucket.unpark(&mut self.parked, self.word);
    }
}

impl Held for HeldBucket<'_> {
    fn act(&mut self, act: Act, _key: Key, cost: Units) -> Answer {
        let mut state = TokenBucketState(self.parked.level.clone());
        let answer = limit::act(&self.parked.bucket, &mut state, act, cost, self.now);
        self.parked.level = state.0;
        answer
    }
}

impl Limit for AtomicBucket {
    #[inline]
    fn take(&self, cost: Units, now: Moment) -> Decision {
        self.take(cost, now)
    }

    #[inline]
    fn peek(&self, cost: Units, now: Moment) -> Decision {
        self.peek(cost, now)
    }

    fn standing(&self, now: Moment) -> Standing {
        self.standing(now)
    }

    fn charge(&self, cost: Units, now: Moment) {
        self.charge(cost, now);
    }

    fn refund(&self, cost: Units, now: Moment) {
        self.refund(cost, now);
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn hold(&self, _keys: &[Key], now: Moment) -> Box<dyn Held + '_> {
        Box::new(self.park(now))
    }
}

impl From<TokenBucket> for AtomicBucket {
    fn from(bucket: TokenBucket) -> Self {
        Self::new(bucket)
    }
}

impl From<Gcra> for AtomicBucket {
    fn from(gcra: Gcra) -> Self {
        Self::new(gcra.into())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn bucket(burst: u64, rate: &str) -> TokenBucket {
        TokenBucket::new(burst, rate.parse().unwrap()).unwrap()
    }

    /// Otherwise a take that had read the previous settings could not notice the change.
    #[test]
    fn other_settings_have_another_tag() {
        let (word, now) = (AtomicBucket::new(bucket(10, "10/s")), Moment::ORIGIN);
        let tag = || word.word.tag();
        assert!(word.take(Units::ONE, now).is_allowed());
        let first = tag();
        word.charge(Units::ONE, now);
        assert_eq!(tag(), first, "the same settings");
        word.set_limit(bucket(20, "10/s"), now);
        let second = tag();
        assert_ne!(second, first, "another limit");
        // This is too long after the base for the word.
        let later = now.after(Duration::from_secs(10 * 365 * 86_400));
        assert!(word.take(Units::ONE, later).is_allowed());
        assert_ne!(tag(), second, "another base");
    }
}
