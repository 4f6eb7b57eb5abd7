//! A bucket that a lease feeds, for many threads. A take is one atomic exchange, and a refusal writes nothing.
//!
//! Its answers equal those of [`FedBucket`]. Its level is in a [cell](crate::cell) that threads share. A `FedBucket`
//! decides, behind a lock, where the supply changes, by a call or by itself, where there is none, and where a request
//! waits for more than the burst.
//!
//! **A fast clock may be behind.** A caller may use a clock that is cheap to read and shows a little less than the time
//! ([`AtomicFedBucket::take_at_once`]). The bucket knows its largest delay, and sends the caller to the lock for that
//! long before the end, to read the time again. If a clock is ahead, the supply comes earlier, but not more in total.
//!
//! If time goes back, or two threads use their clock readings in another order, no time has passed. A take is always
//! inlined, so that constant costs and unused parts of an answer cost nothing.

use std::hint;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::cell::{ATTEMPTS, Cell};
use crate::decision::Decision;
use crate::fed::{FedBucket, Feed};
use crate::flow::{Flow, Short};
use crate::level::Level;
use crate::lock::lock;
use crate::moment::Moment;
use crate::units::Units;

/// A bucket that a lease feeds and that threads share.
#[derive(Debug)]
pub struct AtomicFedBucket {
    cell: Cell,
    /// End of the supply for readers of a fast clock, in nanoseconds since the origin; the earliest time if there is no
    /// supply. Written while the cell is closed.
    ends: AtomicI64,
    /// Largest delay of a fast clock, in nanoseconds.
    behind: u64,
    feed: Mutex<Feed>,
}

/// Time until a cost comes in. It fits a register, so the compiler drops its computation where no caller reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait(u64);

impl From<Wait> for Duration {
    #[inline]
    fn from(wait: Wait) -> Self {
        Self::from_nanos(wait.0)
    }
}

/// Another thread has written meanwhile.
struct Changed;

impl AtomicFedBucket {
    /// Creates an empty bucket without supply. `behind` is the largest delay of a clock for
    /// [`AtomicFedBucket::take_at_once`].
    pub fn new(now: Moment, behind: Duration) -> Self {
        Self {
            cell: Cell::new(Flow::NOTHING, Level::empty(&Flow::NOTHING, now)),
            ends: AtomicI64::new(i64::MIN),
            behind: u64::try_from(behind.as_nanos()).unwrap_or(u64::MAX),
            feed: Mutex::new(Feed::NOTHING),
        }
    }

    /// Sets another supply. Once this has returned, nothing is taken by the previous one.
    pub fn feed(&self, feed: Feed, now: Moment) {
        self.held(|bucket| bucket.feed(feed, now));
    }

    /// Sets the supply that follows by itself, while a request for `cost` waits. Units that have come in for that
    /// request stay, even above the burst.
    pub fn turn(&self, feed: Feed, cost: Units, now: Moment) {
        self.held(|bucket| bucket.turn_to(feed, cost, now));
    }

    /// Takes `cost` if it is available.
    pub fn take(&self, cost: Units, now: Moment) -> Decision {
        self.held(|bucket| bucket.take(cost, now))
    }

    /// Takes `cost` if it is available, or refuses, without a lock. None: only the lock can decide, with a better clock.
    ///
    /// # Errors
    ///
    /// [`Wait`], after which the same request passes if nothing else happens, and not a nanosecond earlier.
    #[inline(always)]
    pub fn take_at_once(&self, cost: Units, now: Moment) -> Option<Result<(), Wait>> {
        match self.attempt(cost, now) {
            Ok(answer) => answer,
            Err(Changed) => self.take_again(cost, now),
        }
    }

    #[cold]
    fn take_again(&self, cost: Units, now: Moment) -> Option<Result<(), Wait>> {
        for _ in 0..ATTEMPTS {
            match self.attempt(cost, now) {
                Ok(answer) => return answer,
                Err(Changed) => hint::spin_loop(),
            }
        }
        None
    }

    #[inline(always)]
    fn attempt(&self, cost: Units, now: Moment) -> Result<Option<Result<(), Wait>>, Changed> {
        let look = self.cell.look().ok_or(Changed)?;
        let (flow, mut level) = (look.flow, look.level);
        let ends = Moment::from_nanos(self.ends.load(Ordering::Relaxed));
        if now >= ends || level.missing < 0 {
            return Ok(None);
        }
        let (next, short) = match flow.take(level.missing(&flow, now), cost) {
            Ok(missing) => {
                level.set(missing, now);
                (Some(level), None)
            }
            // The amount comes in before the end.
            Err(Short::By(drops))
                if drops <= flow.in_nanos(ends.nanos_since(now.max(look.level.at))) =>
            {
                (None, Some(drops))
            }
            Err(_) => return Ok(None),
        };
        if !self.cell.decide(&look, next) {
            return Err(Changed);
        }
        Ok(Some(short.map_or(Ok(()), |drops| {
            let nanos = flow.nanos_for(drops).and_then(|it| u64::try_from(it).ok());
            // The end is a moment, so the time until then is one of nanoseconds.
            let nanos = nanos.unwrap_or(u64::MAX);
            let behind = look.level.at.nanos_since(now);
            Err(Wait(nanos.saturating_add(behind)))
        })))
    }

    /// Returns the answer that a take would get.
    pub fn peek(&self, cost: Units, now: Moment) -> Decision {
        self.held(|bucket| bucket.peek(cost, now))
    }

    /// Takes `cost` even if it is not available, while a request for `waiting` waits.
    pub fn charge(&self, cost: Units, waiting: Units, now: Moment) {
        self.held(|bucket| bucket.charge(cost, waiting, now));
    }

    /// Gives back `cost`, up to the burst, or to the cost of a waiting request.
    pub fn refund(&self, cost: Units, waiting: Units, now: Moment) {
        self.held(|bucket| bucket.refund(cost, waiting, now));
    }

    /// Does one operation behind the lock.
    #[cold]
    fn held<R>(&self, operation: impl FnOnce(&mut FedBucket) -> R) -> R {
        let mut feed = lock(&self.feed);
        let (_, level) = self.cell.close();
        let mut bucket = FedBucket { feed: *feed, level };
        let answer = operation(&mut bucket);
        *feed = bucket.feed;
        let flow = feed.supply.flow();
        // Up to the end by a clock that may be behind.
        let ends = match feed.then {
            _ if flow.drops == 0 && flow != Flow::UNLIMITED => i64::MIN,
            Some((turn, _)) => turn.nanos().saturating_sub_unsigned(self.behind),
            None => i64::MAX,
        };
        self.ends.store(ends, Ordering::Relaxed);
        self.cell.open(&flow, bucket.level);
        answer
    }
}
