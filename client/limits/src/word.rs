//! Level of a bucket, in one 64-bit word that threads replace without a lock.
//!
//! The upper 8 bits are a tag of the settings in force. The lower 56 bits are the time at which the bucket is full
//! again, in drops ([`crate::flow`]) since a base that belongs to the settings. A take reads the word, reads the
//! settings, and replaces the word if it is unchanged. Settings change only while the word is *parked* (its lower bits
//! are all ones), and get another tag. So a take that read a mixture of old and new settings finds another word, and
//! starts again. (The exception: the settings changed 256 times in between, and the level is the same to the drop. Then
//! one take is decided by a mixture.)
//!
//! States that do not fit 56 bits are kept exactly, behind the owner's lock, while the word stays parked: a rate so
//! uneven or a burst so large that it has more than 2⁵³ drops, a debt of more than 2⁵⁴ drops, a rate of 0. A thread
//! needs that lock to park the word and to write settings.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};
use std::time::Duration;

use crate::decision::{Decision, Reason, Standing};
use crate::flow::Flow;
use crate::moment::Moment;
use crate::units::Units;

/// Time at which a bucket is full again, and the settings to read it by. It fills exactly the unit that processors
/// exchange.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Word {
    word: AtomicU64,
    /// Latest time of a change, in nanoseconds since the origin.
    latest: AtomicI64,
    settings: Settings,
}

/// Settings of the word. The holder of the lock writes them while the word is parked.
#[derive(Debug, Default)]
struct Settings {
    /// Base of the word's count, in nanoseconds since the origin.
    base: AtomicI64,
    /// Largest number of nanoseconds after the base that the word can or may represent.
    span: AtomicU64,
    /// Drops per nanosecond.
    drops: AtomicU64,
    /// 2⁶⁴ divided by that, rounded down: a multiplication is cheaper than a division.
    inverse: AtomicU64,
    /// Drops per part of a unit.
    part: AtomicU64,
    /// Size in parts of a unit.
    size: AtomicU64,
}

/// Settings as one thread has read them.
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

/// A word that is parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParkedWord {
    tag: u64,
    /// Missing drops at its base. None: it was already parked.
    pub(crate) missing: Option<u64>,
}

const PAYLOAD_BITS: u32 = 56;
/// The lower bits of a parked word: the caller must use the lock.
const PARKED: u64 = (1 << PAYLOAD_BITS) - 1;
/// Largest size in drops of a bucket whose level fits the word.
const FULL_MAX: u64 = 1 << 53;
/// Largest number of missing drops in the word, and largest number of drops between its base and now. Their sum is
/// below [`PARKED`].
pub(crate) const MISSING_MAX: u64 = 1 << 54;

/// Effect of an operation on a bucket: the new missing amount, if it changes, and the result. None if the word cannot
/// hold it.
pub(crate) type Step<R> = Option<(Option<u64>, R)>;

/// Result of a take by consistent settings. The answer is computed later, once the result is certain: it costs two
/// divisions, which a caller that only needs the permission does not pay.
#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    /// Missing drops after the take.
    Taken(u64),
    /// Number of drops that the bucket is short of.
    Short(u64),
    /// The cost is above the size.
    AboveLimit,
}

impl Word {
    /// Creates a parked word.
    pub(crate) fn parked() -> Self {
        Self {
            word: AtomicU64::new(PARKED),
            latest: AtomicI64::new(i64::MIN),
            settings: Settings::default(),
        }
    }

    /// Does one operation on the word. None if the word is parked, or cannot hold the result.
    #[inline]
    pub(crate) fn step<R>(
        &self,
        now: Moment,
        step: impl FnMut(View, u64) -> Step<R>,
    ) -> Option<(View, R)> {
        self.step_then(now, step, |view, answer| Some((view, answer)))
    }

    /// Does the same, and makes an answer of the result.
    ///
    /// It is one inlined loop that makes the answer where its result is known. Through a call or a value in between,
    /// all parts of the answer would be computed and written, although a caller may use only one.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "constant costs and unused parts of an answer cost nothing then"
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
            // A thread that reads a setting of a later tag sees below that the word has changed.
            fence(Ordering::Acquire);
            let since = now.nanos().wrapping_sub(view.base).cast_unsigned();
            // Also if `now` is before the base, or the sum overflows.
            if now.nanos() < view.base || since > view.span {
                return None;
            }
            // Inconsistent settings may overflow; their result is not used.
            let now_drops = since.wrapping_mul(view.drops);
            let missing = (word & PARKED).saturating_sub(now_drops);
            // A deep debt, or a clock that was set back.
            if missing >> 3 > view.full && now < self.latest() {
                return None;
            }
            let (next, answer) = step(view, missing)?;
            let Some(missing) = next else {
                // The word may have been parked meanwhile, with other settings or another tag.
                if self.word.load(Ordering::Acquire) == word {
                    return say(view, answer);
                }
                continue;
            };
            // A load after the exchange would wait for it.
            let latest = self.latest();
            let payload = now_drops.wrapping_add(missing) & PARKED;
            let next = (word & !PARKED) | payload;
            let (both, read) = (Ordering::AcqRel, Ordering::Relaxed);
            let replaced = self.word.compare_exchange_weak(word, next, both, read);
            if replaced.is_ok() {
                if now > latest {
                    self.set_latest(now);
                }
                return say(view, answer);
            }
        }
    }

    /// Returns the latest time of a change.
    #[inline]
    pub(crate) fn latest(&self) -> Moment {
        Moment::from_nanos(self.latest.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn set_latest(&self, now: Moment) {
        self.latest.store(now.nanos(), Ordering::Relaxed);
    }

    /// Parks the word; the caller holds the lock.
    pub(crate) fn park(&self) -> ParkedWord {
        let word = self.word.fetch_or(PARKED, Ordering::AcqRel);
        let missing = word & PARKED;
        ParkedWord {
            tag: word >> PAYLOAD_BITS,
            missing: (missing < PARKED).then_some(missing),
        }
    }

    /// Activates the word with other settings.
    pub(crate) fn speak_by(&self, view: View, parked: ParkedWord, missing: u64) {
        // No thread sees the new settings together with the previous word.
        fence(Ordering::Release);
        self.settings.write(view);
        self.speak(parked.tag.wrapping_add(1), missing);
    }

    /// Activates the word with its present settings.
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
        let part = self.part.load(Ordering::Relaxed);
        let size = self.size.load(Ordering::Relaxed);
        View {
            base: self.base.load(Ordering::Relaxed),
            span: self.span.load(Ordering::Relaxed),
            drops: self.drops.load(Ordering::Relaxed),
            inverse: self.inverse.load(Ordering::Relaxed),
            part,
            size,
            full: size.wrapping_mul(part),
        }
    }

    fn write(&self, view: View) {
        self.base.store(view.base, Ordering::Relaxed);
        self.span.store(view.span, Ordering::Relaxed);
        self.drops.store(view.drops, Ordering::Relaxed);
        self.inverse.store(view.inverse, Ordering::Relaxed);
        self.part.store(view.part, Ordering::Relaxed);
        self.size.store(view.size, Ordering::Relaxed);
    }
}

impl View {
    /// Returns the longest period, in nanoseconds, of a rate by which the word can hold the level of a bucket of that
    /// size.
    pub(crate) fn period_max(size: Units) -> u64 {
        u64::try_from(u128::from(FULL_MAX) / size.parts().max(1)).unwrap_or(u64::MAX)
    }

    /// No limit: no cost takes a drop.
    pub(crate) const UNLIMITED: Self = Self {
        base: 0,
        span: MISSING_MAX,
        drops: 1,
        inverse: u64::MAX,
        part: 0,
        size: u64::MAX,
        full: 0,
    };

    /// Returns the settings of a bucket, if the word can hold its level. The caller sets the base.
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

    /// Converts a cost to drops, if the number fits.
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
            debt: Units::from_parts(u128::from(
                missing.saturating_sub(self.full).div_ceil(self.part.max(1)),
            )),
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

    /// Returns the time in which a number of drops comes in; the word can hold that number.
    #[inline]
    pub(crate) fn nanos_for(self, drops: u64) -> u64 {
        // Rounded up. The product is at most one below the quotient.
        let drops = drops.wrapping_add(self.drops.wrapping_sub(1));
        let nanos = ((u128::from(drops) * u128::from(self.inverse)) >> 64) as u64;
        let rest = drops.wrapping_sub(nanos.wrapping_mul(self.drops));
        nanos.wrapping_add(u64::from(rest >= self.drops))
    }

    /// Returns these settings with a base and a longest time to obey them.
    pub(crate) fn from(self, base: Moment, nanos: u64) -> Self {
        Self {
            base: base.nanos(),
            span: self.span.min(nanos),
            ..self
        }
    }

    /// Returns whether both read a word in the same way, apart from the base and the time to obey them.
    pub(crate) fn is_alike(self, other: Self) -> bool {
        let bare = |it: Self| it.from(Moment::ORIGIN, 0);
        bare(self) == bare(other)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Another thread changes the settings between two looks of a thread that refuses: it refuses by the new ones.
    #[test]
    fn nothing_is_refused_by_settings_that_are_over() {
        let word = Word::parked();
        let settings = |size| View {
            size,
            part: 1,
            full: size,
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
        // The same if the settings are still being written.
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
