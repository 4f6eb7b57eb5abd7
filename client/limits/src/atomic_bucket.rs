//! A token bucket in one 64-bit word, for many threads without a lock.
//!
//! Use it where one limit stands on the way of every request. It answers what [`TokenBucket`] and [`Gcra`] answer,
//! field by field. The word holds a theoretical arrival time, as GCRA does: if time goes back, or two threads read
//! their clocks in another order than they come, it sees a little less, never more.
//!
//! The [word](crate::word) counts exactly, and what it cannot say is kept exactly behind a lock, also over years: once its
//! base is too far away, one take moves it.
//!
//! A change of limit keeps the ratio to the drop. What is left over of a drop is lost once the word has it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::decision::{Decision, Standing};
use crate::gcra::Gcra;
use crate::level::Level;
use crate::moment::Moment;
use crate::token_bucket::TokenBucket;
use crate::units::Units;
use crate::word::{MISSING_MAX, Outcome, ParkedWord, View, Word};

/// A token bucket that threads share.
#[derive(Debug)]
pub struct AtomicBucket {
    word: Word,
    parked: Mutex<Parked>,
}

/// What is kept behind the lock.
#[derive(Debug)]
struct Parked {
    bucket: TokenBucket,
    /// How full the bucket is, if the word is parked.
    level: Level,
    /// From when the word counts, if it has ever counted by these settings.
    base: Option<Moment>,
}

impl AtomicBucket {
    /// A full bucket.
    pub fn new(bucket: TokenBucket) -> Self {
        Self {
            word: Word::parked(),
            parked: Mutex::new(Parked {
                bucket,
                level: Level::FULL,
                base: None,
            }),
        }
    }

    /// An empty bucket, for what must not begin with a burst.
    pub fn empty(bucket: TokenBucket, now: Moment) -> Self {
        let empty = Self::new(bucket);
        let mut parked = empty.lock();
        parked.level = Level::empty(bucket.flow(), now);
        drop(parked);
        empty
    }

    /// Takes so much if it is there.
    #[inline]
    pub fn take(&self, cost: Units, now: Moment) -> Decision {
        let take = self.word.step(now, |view, missing| {
            let outcome = view.take(missing, cost);
            let next = match outcome {
                Outcome::Taken(missing) if cost > Units::ZERO => Some(missing),
                _ => None,
            };
            Some((next, outcome))
        });
        match take {
            Some((view, outcome)) => view.decision(outcome),
            None => self.parked(|parked| parked.level.take(parked.bucket.flow(), cost, now)),
        }
    }

    /// What a take would answer. A peek of 0 only looks.
    #[inline]
    pub fn peek(&self, cost: Units, now: Moment) -> Decision {
        let look = self
            .word
            .step(now, |view, missing| Some((None, view.take(missing, cost))));
        match look {
            Some((view, outcome)) => view.decision(outcome),
            None => self.parked(|parked| parked.level.peek(parked.bucket.flow(), cost, now)),
        }
    }

    /// How the bucket stands, also when it refuses.
    pub fn standing(&self, now: Moment) -> Standing {
        match self.word.step(now, |_, missing| Some((None, missing))) {
            Some((view, missing)) => view.standing(missing),
            None => self.parked(|parked| parked.level.standing(parked.bucket.flow(), now)),
        }
    }

    /// Takes so much whether or not it is there.
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
            self.parked(|parked| parked.level.charge(parked.bucket.flow(), cost, now));
        }
    }

    /// Gives back so much. What is more than full is lost.
    pub fn refund(&self, cost: Units, now: Moment) {
        if cost == Units::ZERO {
            return;
        }
        let step = |view: View, missing: u64| {
            let drops = view.in_drops(cost)?;
            Some((Some(missing.saturating_sub(drops)), ()))
        };
        if self.word.step(now, step).is_none() {
            self.parked(|parked| parked.level.refund(parked.bucket.flow(), cost, now));
        }
    }

    /// Another limit from now on. What is available keeps its ratio, so nothing bursts.
    pub fn set_limit(&self, next: TokenBucket, now: Moment) {
        self.parked(|parked| {
            parked.level.change(parked.bucket.flow(), next.flow(), now);
            parked.bucket = next;
            parked.base = None;
        });
    }

    /// Whether all is available.
    pub fn is_fresh(&self, now: Moment) -> bool {
        match self.word.step(now, |_, missing| Some((None, missing == 0))) {
            Some((_, fresh)) => fresh,
            None => self.parked(|parked| parked.level.is_full(parked.bucket.flow(), now)),
        }
    }

    /// What is agreed.
    pub fn algorithm(&self) -> TokenBucket {
        self.lock().bucket
    }

    /// Does one operation behind the lock, and lets the word speak again if it can.
    #[cold]
    fn parked<R>(&self, operation: impl FnOnce(&mut Parked) -> R) -> R {
        let mut parked = self.lock();
        let word = self.word.park();
        if let (Some(missing), Some(base)) = (word.missing, parked.base) {
            parked.level = Level::missing_at(i128::from(missing), base);
        }
        let answer = operation(&mut parked);
        self.unpark(&mut parked, word);
        answer
    }

    /// Lets the word speak again, if 56 bits can say how full the bucket is.
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
            self.word.speak_by(view.from(at, u64::MAX), word, missing);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Parked> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Or a take that had read the former settings could not see that they are others.
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
        // So long after the base that the word cannot say it.
        let later = now.after(Duration::from_secs(10 * 365 * 86_400));
        assert!(word.take(Units::ONE, later).is_allowed());
        assert_ne!(tag(), second, "another base");
    }
}
