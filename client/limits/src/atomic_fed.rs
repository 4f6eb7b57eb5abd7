//! A bucket that a lease feeds, in one 64-bit word, for many threads without a lock.
//!
//! Its answers equal those of [`FedBucket`]. It keeps a `FedBucket` behind a lock for cases that do not fit a
//! [word](crate::word): the supply changes, by a call or by itself; there is no supply; a cost is above the burst; a
//! rate is so uneven that 56 bits do not hold its drops. Then the word is parked, the exact bucket decides, and the
//! word becomes active again if possible.
//!
//! **The end of the supply** is part of the word's settings, so every take checks it. A take after the end, however
//! late, is decided behind the lock.
//!
//! **A fast clock may be behind.** A caller may use a clock that is cheap to read and shows a little less than the time
//! ([`AtomicFedBucket::take_at_once`]). The bucket knows its largest delay, and sends the caller to the lock for that
//! long before the end, to read the time again. If a clock is ahead, the supply comes earlier, but not more in total.
//!
//! If time goes back, or two threads use their clock readings in another order, the bucket shows a little less, never
//! more.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::decision::Decision;
use crate::fed::{FedBucket, Feed, Supply};
use crate::moment::Moment;
use crate::units::Units;
use crate::word::{MISSING_MAX, Outcome, ParkedWord, View, Word};

/// A bucket that a lease feeds and that threads share.
#[derive(Debug)]
pub struct AtomicFedBucket {
    word: Word,
    /// Largest delay of a fast clock, in nanoseconds.
    behind: u64,
    parked: Mutex<Parked>,
}

/// State behind the lock.
#[derive(Debug)]
struct Parked {
    /// The supply; if the word is parked, also the level.
    bucket: FedBucket,
    /// Last settings of the word, and the time at which the supply changes by itself.
    spoke: Option<(View, Option<Moment>)>,
}

impl AtomicFedBucket {
    /// Creates an empty bucket without supply. `behind` is the largest delay of a clock for
    /// [`AtomicFedBucket::take_at_once`].
    pub fn new(now: Moment, behind: Duration) -> Self {
        Self {
            word: Word::parked(),
            behind: u64::try_from(behind.as_nanos()).unwrap_or(u64::MAX),
            parked: Mutex::new(Parked {
                bucket: FedBucket::new(now),
                spoke: None,
            }),
        }
    }

    /// Sets another supply. Once this has returned, nothing is taken by the previous one.
    pub fn feed(&self, feed: Feed, now: Moment) {
        self.parked(|bucket| bucket.feed(feed, now));
    }

    /// Sets the supply that follows by itself, while a request for `cost` waits. Units that have come in for that
    /// request stay, even above the burst.
    pub fn turn(&self, feed: Feed, cost: Units, now: Moment) {
        self.parked(|bucket| bucket.turn_to(feed, cost, now));
    }

    /// Takes `cost` if it is available.
    #[inline]
    pub fn take(&self, cost: Units, now: Moment) -> Decision {
        match self.take_at_once(cost, now) {
            Some(decision) => decision,
            None => self.parked(|bucket| bucket.take(cost, now)),
        }
    }

    /// Takes `cost` if it is available, or refuses. None: only the lock can decide, with a better clock.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "constant costs and unused parts of an answer cost nothing then"
    )]
    pub fn take_at_once(&self, cost: Units, now: Moment) -> Option<Decision> {
        let take = |view: View, missing| {
            let outcome = view.take(missing, cost);
            match outcome {
                // Written even if nothing is taken: a look at a full bucket drops the amount above it.
                Outcome::Taken(missing) => Some((Some(missing), outcome)),
                Outcome::Short(_) => Some((None, outcome)),
                // The bucket must fill up to the cost.
                Outcome::AboveLimit => None,
            }
        };
        self.word.step_then(now, take, |view, outcome| {
            if let Outcome::Short(drops) = outcome {
                // After that time the supply may be another one. The check is a product of at most MISSING_MAX: a
                // quotient would slow callers that only need to know whether they are allowed.
                let since = now.nanos().wrapping_sub(view.base).cast_unsigned();
                if drops > (view.span - since) * view.drops {
                    return None;
                }
            }
            Some(view.decision(outcome))
        })
    }

    /// Returns the answer that a take would get.
    pub fn peek(&self, cost: Units, now: Moment) -> Decision {
        self.parked(|bucket| bucket.peek(cost, now))
    }

    /// Does one operation behind the lock, and activates the word again if possible.
    #[cold]
    fn parked<R>(&self, operation: impl FnOnce(&mut FedBucket) -> R) -> R {
        let mut parked = self.lock();
        let word = self.word.park();
        if let (Some(missing), Some((view, _))) = (word.missing, parked.spoke) {
            let base = Moment::from_nanos(view.base);
            parked.bucket.set_missing(i128::from(missing), base);
        }
        let answer = operation(&mut parked.bucket);
        self.unpark(&mut parked, word);
        answer
    }

    /// Activates the word again, if 56 bits can hold the level.
    fn unpark(&self, parked: &mut Parked, word: ParkedWord) {
        let feed = parked.bucket.fed();
        let turn = feed.then.map(|(turn, _)| turn);
        let view = match feed.supply {
            Supply::Unlimited => Some(View::UNLIMITED),
            Supply::Limited(bucket) => View::of(bucket.flow()),
        };
        let (missing, at) = parked.bucket.missing();
        let (Some(view), Ok(missing @ 0..=MISSING_MAX)) = (view, u64::try_from(missing)) else {
            return;
        };
        if let Some((spoke, to)) = parked.spoke {
            // Usually the supply is the same, and so are the settings.
            let since = at.nanos().wrapping_sub(spoke.base).cast_unsigned();
            let is_same = spoke.is_alike(view);
            if is_same && to == turn && at.nanos() >= spoke.base && since <= spoke.span {
                self.word.speak_on(word, missing + since * spoke.drops);
                return;
            }
        }
        let left = turn.map_or(u64::MAX, |turn| turn.nanos_since(at));
        // Up to the moment before the end, by a clock that may be behind.
        let Some(left) = left.checked_sub(self.behind.saturating_add(1)) else {
            return;
        };
        let view = view.from(at, left);
        parked.spoke = Some((view, turn));
        self.word.speak_by(view, word, missing);
    }

    fn lock(&self) -> MutexGuard<'_, Parked> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
