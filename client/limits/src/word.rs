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

/// When a bucket is full again, and how that is to be read: as much as processors exchange at once.
#[derive(Debug)]
#[repr(align(64))]
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
    /// 2⁶⁴ by that, rounded down: to multiply is cheaper than to divide.
    inverse: AtomicU64,
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
    inverse: u64,
    part: u64,
    size: u64,
    full: u64,
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
        step: impl FnMut(View, u64) -> Step<R>,
    ) -> Option<(View, R)> {
        self.step_then(now, step, |view, answer| Some((view, answer)))
    }

    /// The same, and what is to be said of it.
    ///
    /// One loop in place, and the answer made where it is known how it ended: through a call or a value in between, all
    /// parts of it would be reckoned and written, though whoever asks may look at one.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a constant cost, and the parts of an answer that nobody uses, cost nothing then"
    )]
    pub(crate) fn step_then<R, A>(
        &self,
        now: Moment,
        mut step: impl FnMut(View, u64) -> Step<R>,
        say: impl Fn(View, R) -> Option<A>,
    ) -> Option<A> {
        loop {
            let word = self.word.load(Ordering::Acquire);
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
                // It may have been parked meanwhile, and its settings be others, or have a tag that says so.
                if self.word.load(Ordering::Acquire) == word {
                    return say(view, answer);
                }
                continue;
            };
            let payload = now_drops.wrapping_add(missing) & PARKED;
            let next = (word & !PARKED) | payload;
            let (both, read) = (Ordering::AcqRel, Ordering::Relaxed);
            let replaced = self.word.compare_exchange_weak(word, next, both, read);
            if replaced.is_ok() {
                return say(view, answer);
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
        let parked = self.word.load(Ordering::Relaxed) & PARKED == PARKED;
        debug_assert!(parked, "what is taken now would be forgotten");
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
            inverse: self.inverse.load(Ordering::Relaxed),
            part: self.part.load(Ordering::Relaxed),
            size: self.size.load(Ordering::Relaxed),
            full: self.full.load(Ordering::Relaxed),
        }
    }

    fn write(&self, view: View) {
        self.base.store(view.base, Ordering::Relaxed);
        self.span.store(view.span, Ordering::Relaxed);
        self.drops.store(view.drops, Ordering::Relaxed);
        self.inverse.store(view.inverse, Ordering::Relaxed);
        self.part.store(view.part, Ordering::Relaxed);
        self.size.store(view.size, Ordering::Relaxed);
        self.full.store(view.full, Ordering::Relaxed);
    }
}

impl View {
    /// The longest period, in nanoseconds, of a rate by which a word can say how full a bucket of such a size is.
    pub(crate) fn period_max(size: Units) -> u64 {
        u64::try_from(u128::from(FULL_MAX) / size.parts().max(1)).unwrap_or(u64::MAX)
    }

    /// Everything passes: no cost is worth a drop.
    pub(crate) const UNLIMITED: Self = Self {
        base: 0,
        span: MISSING_MAX,
        drops: 1,
        inverse: u64::MAX,
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
            inverse: u64::MAX / drops,
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
        if self.part == 0 {
            return Units::MAX;
        }
        let there = self.full.saturating_sub(missing) / self.part;
        Units::from_parts(u128::from(there))
    }

    /// How long until so many drops have come in, at most as many as a word says.
    #[inline]
    pub(crate) fn nanos_for(self, drops: u64) -> u64 {
        // Rounded up. The product is at most one below the quotient.
        let drops = drops.wrapping_add(self.drops.wrapping_sub(1));
        let nanos = ((u128::from(drops) * u128::from(self.inverse)) >> 64) as u64;
        let rest = drops.wrapping_sub(nanos.wrapping_mul(self.drops));
        nanos.wrapping_add(u64::from(rest >= self.drops))
    }

    /// These settings from that moment on, to be obeyed for so long at most.
    pub(crate) fn from(self, base: Moment, nanos: u64) -> Self {
        Self {
            base: base.nanos(),
            span: self.span.min(nanos),
            ..self
        }
    }

    /// Whether both read a word alike, but for the base and how long they are obeyed.
    pub(crate) fn is_alike(self, other: Self) -> bool {
        let bare = |it: Self| it.from(Moment::ORIGIN, 0);
        bare(self) == bare(other)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Somebody else changes the settings between two looks of who refuses: it refuses by the new ones.
    #[test]
    fn nothing_is_refused_by_settings_that_are_over() {
        let word = Word::parked();
        let settings = |full| View {
            full,
            ..View::UNLIMITED
        };
        word.speak_by(settings(1), word.park(), 0);
        let mut looks = 0;
        let answer = word.step(Moment::ORIGIN, |view, _| {
            looks += 1;
            if looks == 1 {
                word.speak_by(settings(2), word.park(), 0);
            }
            Some((None, view.full))
        });
        assert_eq!(answer, Some((settings(2), 2)));
        assert_eq!(looks, 2);
        // The same if they are still being written.
        let answer = word.step(Moment::ORIGIN, |_, _| {
            word.park();
            Some((None, ()))
        });
        assert_eq!(answer, None);
    }

    proptest! {
        #[test]
        fn the_time_for_drops_is_that_of_a_division(
            shift in 0..62_u32, rate in any::<u64>(), missing in 0..=2 * MISSING_MAX, small in 0..56_u32,
        ) {
            let drops = (rate >> shift >> 1).clamp(1, 1 << 62);
            let view = View { drops, inverse: u64::MAX / drops, ..View::UNLIMITED };
            let missing = missing >> small;
            prop_assert_eq!(view.nanos_for(missing), missing.div_ceil(drops));
        }
    }
}
