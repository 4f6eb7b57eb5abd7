//! A token bucket in one 64-bit word, for many threads without a lock.
//!
//! Use it where one limit stands on the way of every request. It answers what [`TokenBucket`] and [`Gcra`] answer,
//! field by field. The word holds a theoretical arrival time, as GCRA does: if time goes back, or two threads read
//! their clocks in another order than they come, it sees a little less, never more.
//!
//! # What the word says
//!
//! The upper 8 bits are a tag that names the settings in force. The lower 56 bits say when the bucket is full again, in
//! drops ([`crate::flow`]) since a base that belongs to the settings. A take reads the word, reads the settings,
//! and replaces the word if it still is the same. Settings change only while the word is *parked* (its lower bits are
//! all ones), and come with another tag. So a take that read half of the old settings and half of the new ones finds
//! another word, and begins again. (It would not if the settings changed 256 times meanwhile and the bucket were as
//! full as before to the drop; then one take is judged by a mixture.)
//!
//! What 56 bits cannot say is kept exactly, behind a lock, while the word stays parked: a rate so uneven or a burst so
//! large that there are more than 2⁵³ drops in it, a debt of more than 2⁵⁴ drops, a rate of 0. So every bucket is
//! counted exactly, also over years: once the base is too far away, one take moves it.
//!
//! A change of limit keeps the ratio to the drop. What is left over of a drop is lost once the word has it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::decision::{Decision, Reason, Standing};
use crate::flow::Flow;
use crate::gcra::Gcra;
use crate::level::Level;
use crate::moment::Moment;
use crate::token_bucket::TokenBucket;
use crate::units::Units;

/// A token bucket that threads share.
#[derive(Debug)]
pub struct AtomicBucket {
    word: AtomicU64,
    settings: Settings,
    parked: Mutex<Parked>,
}

/// How the word is to be read. Written only while it is parked, by who has the lock.
#[derive(Debug, Default)]
struct Settings {
    /// From when the word counts, in nanoseconds since the origin.
    base: AtomicI64,
    /// How many nanoseconds after the base it can say.
    span: AtomicU64,
    /// Drops a nanosecond.
    drops: AtomicU64,
    /// Drops a part of a unit.
    part: AtomicU64,
    /// Parts of a unit that fit.
    size: AtomicU64,
    /// Drops that fit.
    full: AtomicU64,
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

/// The settings as one thread has read them.
#[derive(Clone, Copy)]
struct View {
    base: i64,
    span: u64,
    drops: u64,
    part: u64,
    size: u64,
    full: u64,
}

const PAYLOAD_BITS: u32 = 56;
/// The lower bits of a word that says: ask who has the lock.
const PARKED: u64 = (1 << PAYLOAD_BITS) - 1;
/// The most drops that fit in a bucket of which the word is to say how full it is.
const FULL_MAX: u64 = 1 << 53;
/// The most drops that the word says are missing, and the most between its base and now. Both together are below
/// [`PARKED`].
const MISSING_MAX: u64 = 1 << 54;

/// What an operation does to a bucket of which so much is missing: what is missing then, if that changes, and what
/// comes of it. None if the word cannot say it.
type Step<R> = Option<(Option<u64>, R)>;

/// What comes of a take, by settings that belong together. What to answer is reckoned when that is certain: it costs
/// two divisions, and who only asks whether it is allowed pays for none.
#[derive(Clone, Copy)]
enum Outcome {
    /// So many drops are missing after it.
    Taken(u64),
    /// So many drops are short of it.
    Short(u64),
    /// It never fits.
    AboveLimit,
}

impl AtomicBucket {
    /// A full bucket.
    pub fn new(bucket: TokenBucket) -> Self {
        Self {
            word: AtomicU64::new(PARKED),
            settings: Settings::default(),
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
        match self.step(now, |view, missing| view.take(missing, cost)) {
            Some((view, outcome)) => view.decision(outcome),
            None => self.parked(|parked| parked.level.take(parked.bucket.flow(), cost, now)),
        }
    }

    /// What a take would answer. A peek of 0 only looks.
    #[inline]
    pub fn peek(&self, cost: Units, now: Moment) -> Decision {
        let look = self.step(now, |view, missing| {
            let (_, outcome) = view.take(missing, cost)?;
            Some((None, outcome))
        });
        match look {
            Some((view, outcome)) => view.decision(outcome),
            None => self.parked(|parked| parked.level.peek(parked.bucket.flow(), cost, now)),
        }
    }

    /// How the bucket stands, also when it refuses.
    pub fn standing(&self, now: Moment) -> Standing {
        match self.step(now, |_, missing| Some((None, missing))) {
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
            let drops = u64::try_from(cost.parts()).ok()?.checked_mul(view.part)?;
            let missing = missing.checked_add(drops)?;
            (missing <= MISSING_MAX).then_some((Some(missing), ()))
        };
        if self.step(now, step).is_none() {
            self.parked(|parked| parked.level.charge(parked.bucket.flow(), cost, now));
        }
    }

    /// Gives back so much. What is more than full is lost.
    pub fn refund(&self, cost: Units, now: Moment) {
        if cost == Units::ZERO {
            return;
        }
        let step = |view: View, missing: u64| {
            let drops = u64::try_from(cost.parts()).ok()?.checked_mul(view.part)?;
            Some((Some(missing.saturating_sub(drops)), ()))
        };
        if self.step(now, step).is_none() {
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
        match self.step(now, |_, missing| Some((None, missing == 0))) {
            Some((_, fresh)) => fresh,
            None => self.parked(|parked| parked.level.is_full(parked.bucket.flow(), now)),
        }
    }

    /// What is agreed.
    pub fn algorithm(&self) -> TokenBucket {
        self.lock().bucket
    }

    /// Does one operation on the word. None if the word is parked, or cannot say what comes of it.
    #[inline]
    fn step<R>(
        &self,
        now: Moment,
        mut step: impl FnMut(View, u64) -> Step<R>,
    ) -> Option<(View, R)> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if word & PARKED == PARKED {
                return None;
            }
            let view = self.settings.read();
            // Who reads a setting of a later tag sees below that the word has changed.
            fence(Ordering::Acquire);
            let since = now.nanos().wrapping_sub(view.base).cast_unsigned();
            // Also if `now` is before the base, or the sum overflows.
            if now.nanos() < view.base || since > view.span {
                return None;
            }
            // Settings that do not belong together may overflow: nothing comes of it.
            let now_drops = since.wrapping_mul(view.drops);
            let missing = (word & PARKED).saturating_sub(now_drops);
            let (next, answer) = step(view, missing)?;
            let Some(missing) = next else {
                let seen = self.word.load(Ordering::Acquire);
                if seen >> PAYLOAD_BITS == word >> PAYLOAD_BITS {
                    return Some((view, answer));
                }
                word = seen;
                continue;
            };
            let payload = now_drops.wrapping_add(missing) & PARKED;
            let next = (word & !PARKED) | payload;
            let replaced =
                self.word
                    .compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire);
            match replaced {
                Ok(_) => return Some((view, answer)),
                Err(seen) => word = seen,
            }
        }
    }

    /// Does one operation behind the lock, and lets the word speak again if it can.
    #[cold]
    fn parked<R>(&self, operation: impl FnOnce(&mut Parked) -> R) -> R {
        let mut parked = self.lock();
        let word = self.word.fetch_or(PARKED, Ordering::AcqRel);
        if let (payload @ 0..PARKED, Some(base)) = (word & PARKED, parked.base) {
            parked.level = Level::missing_at(i128::from(payload), base);
        }
        let answer = operation(&mut parked);
        self.unpark(&mut parked, word >> PAYLOAD_BITS);
        answer
    }

    /// Lets the word speak again, if 56 bits can say how full the bucket is.
    fn unpark(&self, parked: &mut Parked, tag: u64) {
        let Some(mut view) = View::of(parked.bucket.flow()) else {
            return;
        };
        let (missing, at) = parked.level.as_set();
        let missing = match u64::try_from(missing) {
            Ok(missing @ 0..=MISSING_MAX) => missing,
            _ => return,
        };
        let mut tag = tag;
        if parked.base != Some(at) {
            // What the settings say from here on must not be seen together with the former word.
            fence(Ordering::Release);
            view.base = at.nanos();
            self.settings.write(view);
            parked.base = Some(at);
            tag = tag.wrapping_add(1);
        }
        self.word
            .store((tag << PAYLOAD_BITS) | missing, Ordering::Release);
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

impl Settings {
    #[inline]
    fn read(&self) -> View {
        View {
            base: self.base.load(Ordering::Relaxed),
            span: self.span.load(Ordering::Relaxed),
            drops: self.drops.load(Ordering::Relaxed),
            part: self.part.load(Ordering::Relaxed),
            size: self.size.load(Ordering::Relaxed),
            full: self.full.load(Ordering::Relaxed),
        }
    }

    fn write(&self, view: View) {
        self.base.store(view.base, Ordering::Relaxed);
        self.span.store(view.span, Ordering::Relaxed);
        self.drops.store(view.drops, Ordering::Relaxed);
        self.part.store(view.part, Ordering::Relaxed);
        self.size.store(view.size, Ordering::Relaxed);
        self.full.store(view.full, Ordering::Relaxed);
    }
}

impl View {
    /// The settings of a bucket, if a word can say how full it is. The base is still to be set.
    fn of(flow: &Flow) -> Option<Self> {
        let full = u64::try_from(flow.full()).ok()?;
        let drops = flow.drops();
        if full > FULL_MAX || drops == 0 {
            return None;
        }
        Some(Self {
            base: 0,
            span: MISSING_MAX / drops,
            drops,
            part: flow.part(),
            size: u64::try_from(flow.size().parts()).ok()?,
            full,
        })
    }

    #[inline]
    fn take(self, missing: u64, cost: Units) -> Step<Outcome> {
        let parts = match u64::try_from(cost.parts()) {
            Ok(parts) if parts <= self.size => parts,
            _ => return Some((None, Outcome::AboveLimit)),
        };
        // A cost that fits is at most FULL_MAX drops.
        let missing = missing.wrapping_add(parts.wrapping_mul(self.part));
        if missing > self.full {
            return Some((None, Outcome::Short(missing - self.full)));
        }
        Some(((parts > 0).then_some(missing), Outcome::Taken(missing)))
    }

    #[inline]
    fn decision(self, outcome: Outcome) -> Decision {
        match outcome {
            Outcome::Taken(missing) => Decision::Allowed(self.standing(missing).allowed()),
            Outcome::Short(drops) => Decision::After(self.span_of(drops)),
            Outcome::AboveLimit => Decision::Never(Reason::CostAboveLimit),
        }
    }

    #[inline]
    fn standing(self, missing: u64) -> Standing {
        Standing {
            remaining: self.remaining(missing),
            reset: self.span_of(missing),
        }
    }

    #[inline]
    fn remaining(self, missing: u64) -> Units {
        let there = self.full.saturating_sub(missing) / self.part.max(1);
        Units::from_parts(u128::from(there))
    }

    /// How long until so many drops have come in.
    #[inline]
    fn span_of(self, drops: u64) -> Duration {
        Duration::from_nanos(drops.div_ceil(self.drops.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(burst: u64, rate: &str) -> TokenBucket {
        TokenBucket::new(burst, rate.parse().unwrap()).unwrap()
    }

    /// Or a take that had read the former settings could not see that they are others.
    #[test]
    fn other_settings_have_another_tag() {
        let (word, now) = (AtomicBucket::new(bucket(10, "10/s")), Moment::ORIGIN);
        let tag = || word.word.load(Ordering::Relaxed) >> PAYLOAD_BITS;
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
