//! How full a bucket is, in one 64-bit word that threads replace without a lock.
//!
//! The upper 8 bits are a tag that names the settings in force. The lower 56 bits say when the bucket is full again, in
//! drops ([`crate::flow`]) since a base that belongs to the settings. A take reads the word, reads the settings,
//! and replaces the word if it still is the same. Settings change only while the word is *parked* (its lower bits are
//! all ones), and come with another tag. So a take that read half of the old settings and half of the new ones finds
//! another word, and begins again. (It would not if the settings changed 256 times meanwhile and the bucket were as
//! full as before to the drop; then one take is judged by a mixture.)
//!
//! What 56 bits cannot say is kept exactly, behind a lock of the owner's, while the word stays parked: a rate so uneven
//! or a burst so large that there are more than 2⁵³ drops in it, a debt of more than 2⁵⁴ drops, a rate of 0. Whoever
//! parks the word and writes settings has that lock.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};
use std::time::Duration;

use crate::decision::{Decision, Reason, Standing};
use crate::flow::Flow;
use crate::moment::Moment;
use crate::units::Units;

/// When a bucket is full again, and how that is to be read.
#[derive(Debug)]
pub(crate) struct Word {
    word: AtomicU64,
    settings: Settings,
}

/// How the word is to be read. Written only while it is parked, by who has the lock.
#[derive(Debug, Default)]
struct Settings {
    /// From when the word counts, in nanoseconds since the origin.
    base: AtomicI64,
    /// How many nanoseconds after the base it can say, or may.
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

/// The settings as one thread has read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) base: i64,
    pub(crate) span: u64,
    pub(crate) drops: u64,
    pub(crate) part: u64,
    pub(crate) size: u64,
    pub(crate) full: u64,
}

/// A word that does not speak any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParkedWord {
    tag: u64,
    /// What was missing at its base, in drops. None: it was parked before.
    pub(crate) missing: Option<u64>,
}

const PAYLOAD_BITS: u32 = 56;
/// The lower bits of a word that says: ask who has the lock.
const PARKED: u64 = (1 << PAYLOAD_BITS) - 1;
/// The most drops that fit in a bucket of which the word is to say how full it is.
const FULL_MAX: u64 = 1 << 53;
/// The most drops that the word says are missing, and the most between its base and now. Both together are below
/// [`PARKED`].
pub(crate) const MISSING_MAX: u64 = 1 << 54;

/// What an operation does to a bucket of which so much is missing: what is missing then, if that changes, and what
/// comes of it. None if the word cannot say it.
pub(crate) type Step<R> = Option<(Option<u64>, R)>;

/// What comes of a take, by settings that belong together. What to answer is reckoned when that is certain: it costs
/// two divisions, and who only asks whether it is allowed pays for none.
#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    /// So many drops are missing after it.
    Taken(u64),
    /// So many drops are short of it.
    Short(u64),
    /// It never fits.
    AboveLimit,
}

impl Word {
    /// A word that is parked.
    pub(crate) fn parked() -> Self {
        Self {
            word: AtomicU64::new(PARKED),
            settings: Settings::default(),
        }
    }

    /// Does one operation on the word. None if the word is parked, or cannot say what comes of it.
    #[inline]
    pub(crate) fn step<R>(
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

    /// It speaks no more. For who has the lock.
    pub(crate) fn park(&self) -> ParkedWord {
        let word = self.word.fetch_or(PARKED, Ordering::AcqRel);
        let missing = word & PARKED;
        ParkedWord {
            tag: word >> PAYLOAD_BITS,
            missing: (missing < PARKED).then_some(missing),
        }
    }

    /// It speaks again, by other settings.
    pub(crate) fn speak_by(&self, view: View, parked: ParkedWord, missing: u64) {
        // What the settings say from here on must not be seen together with the former word.
        fence(Ordering::Release);
        self.settings.write(view);
        self.speak(parked.tag.wrapping_add(1), missing);
    }

    /// It speaks again, by the settings that it had.
    pub(crate) fn speak_on(&self, parked: ParkedWord, missing: u64) {
        self.speak(parked.tag, missing);
    }

    fn speak(&self, tag: u64, missing: u64) {
        debug_assert!(missing < PARKED, "more than a word can say");
        self.word
            .store((tag << PAYLOAD_BITS) | missing, Ordering::Release);
    }

    #[cfg(test)]
    pub(crate) fn tag(&self) -> u64 {
        self.word.load(Ordering::Relaxed) >> PAYLOAD_BITS
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
    /// Everything passes: no cost is worth a drop.
    pub(crate) const UNLIMITED: Self = Self {
        base: 0,
        span: MISSING_MAX,
        drops: 1,
        part: 0,
        size: u64::MAX,
        full: 0,
    };

    /// The settings of a bucket, if a word can say how full it is. The base is still to be set.
    pub(crate) fn of(flow: &Flow) -> Option<Self> {
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
    pub(crate) fn take(self, missing: u64, cost: Units) -> Outcome {
        let parts = match u64::try_from(cost.parts()) {
            Ok(parts) if parts <= self.size => parts,
            _ => return Outcome::AboveLimit,
        };
        // A cost that fits is at most FULL_MAX drops.
        let missing = missing.wrapping_add(parts.wrapping_mul(self.part));
        if missing > self.full {
            Outcome::Short(missing - self.full)
        } else {
            Outcome::Taken(missing)
        }
    }

    /// So much in drops, if they can be counted.
    pub(crate) fn in_drops(self, cost: Units) -> Option<u64> {
        u64::try_from(cost.parts()).ok()?.checked_mul(self.part)
    }

    #[inline]
    pub(crate) fn decision(self, outcome: Outcome) -> Decision {
        match outcome {
            Outcome::Taken(missing) => Decision::Allowed(self.standing(missing).allowed()),
            Outcome::Short(drops) => Decision::After(Duration::from_nanos(self.nanos_for(drops))),
            Outcome::AboveLimit => Decision::Never(Reason::CostAboveLimit),
        }
    }

    #[inline]
    pub(crate) fn standing(self, missing: u64) -> Standing {
        Standing {
            remaining: self.remaining(missing),
            reset: Duration::from_nanos(self.nanos_for(missing)),
        }
    }

    #[inline]
    fn remaining(self, missing: u64) -> Units {
        let there = self.full.saturating_sub(missing) / self.part.max(1);
        Units::from_parts(u128::from(there))
    }

    /// How long until so many drops have come in.
    #[inline]
    pub(crate) fn nanos_for(self, drops: u64) -> u64 {
        drops.div_ceil(self.drops.max(1))
    }
}
