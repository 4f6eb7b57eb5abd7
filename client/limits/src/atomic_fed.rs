//! A bucket that a lease feeds, in one 64-bit word, for many threads without a lock.
//!
//! It answers what [`FedBucket`] answers, which it keeps behind a lock for what a [word](crate::word) cannot say: what
//! comes in changes, now or by itself; nothing comes in; a cost above the burst; a rate so uneven that 56 bits do not
//! hold its drops. Then the word is parked, the exact bucket decides, and the word speaks again if it can.
//!
//! **The end of what comes in** is part of the settings by which the word is read, so every take looks at it: one that
//! comes after it, however late, is decided behind the lock.
//!
//! **A fast clock may be behind.** Who takes by a clock that is cheap to read and may show a little less than it
//! should ([`AtomicFedBucket::take_at_once`]) says by how much, and is sent to the lock for as long before the end:
//! there the time is to be read anew. If a clock shows more than it should, as much comes in earlier, and no more in
//! all.
//!
//! If time goes back, or two threads read their clocks in another order than they come, it sees a little less, never
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
    /// By so many nanoseconds may a fast clock be behind.
    behind: u64,
    parked: Mutex<Parked>,
}

/// What is kept behind the lock.
#[derive(Debug)]
struct Parked {
    /// How the bucket stands, if the word is parked; what comes in, in any case.
    bucket: FedBucket,
    /// How the word was read last, and when what comes in changes by itself.
    spoke: Option<(View, Option<Moment>)>,
}

impl AtomicFedBucket {
    /// An empty bucket into which nothing comes. A clock by which is taken at once may be so much behind.
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

    /// Something else comes in from now on. Nothing is taken by what came in before once this has returned.
    pub fn feed(&self, feed: Feed, now: Moment) {
        self.parked(|bucket| bucket.feed(feed, now));
    }

    /// The same by itself, while somebody wants so much: what has come in for that stays, also above the burst.
    pub fn turn(&self, feed: Feed, cost: Units, now: Moment) {
        self.parked(|bucket| bucket.turn_to(feed, cost, now));
    }

    /// Takes so much if it is there.
    #[inline]
    pub fn take(&self, cost: Units, now: Moment) -> Decision {
        match self.take_at_once(cost, now) {
            Some(decision) => decision,
            None => self.parked(|bucket| bucket.take(cost, now)),
        }
    }

    /// Takes so much if it is there, or says that it is not. None: that is not to be said without the lock, for which a
    /// better clock is to be read.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a constant cost, and the parts of an answer that nobody uses, cost nothing then"
    )]
    pub fn take_at_once(&self, cost: Units, now: Moment) -> Option<Decision> {
        let take = |view: View, missing| {
            let outcome = view.take(missing, cost);
            match outcome {
                // Also if nothing is taken: what is above a full bucket is lost to who looks.
                Outcome::Taken(missing) => Some((Some(missing), outcome)),
                Outcome::Short(_) => Some((None, outcome)),
                // The bucket fills up to it.
                Outcome::AboveLimit => None,
            }
        };
        self.word.step_then(now, take, |view, outcome| {
            if let Outcome::Short(drops) = outcome {
                // What comes in later than that may be something else. By a product, at most MISSING_MAX: a quotient would
                // cost who only asks whether it is allowed.
                let since = now.nanos().wrapping_sub(view.base).cast_unsigned();
                if drops > (view.span - since) * view.drops {
                    return None;
                }
            }
            Some(view.decision(outcome))
        })
    }

    /// What a take would answer.
    pub fn peek(&self, cost: Units, now: Moment) -> Decision {
        self.parked(|bucket| bucket.peek(cost, now))
    }

    /// Does one operation behind the lock, and lets the word speak again if it can.
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

    /// Lets the word speak again, if 56 bits can say how full the bucket is.
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
            // Mostly what comes in is the same, and so are the settings.
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
