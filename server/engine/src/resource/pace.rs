//! Refresh intervals of a holder, and the floor between its decisions.
//!
//! The floor is the shortest time between two decisions for a holder, whatever it sends. Three kinds of requests pass
//! it: the acknowledgement of a shrink, once for each; a request at the time of an invitation; and changed wants, a few
//! times in a row and then once a floor.

use std::time::Duration;

use crate::amount::Amount;
use crate::continuity::Outlook;
use crate::holders::{HolderAsk, Holding, Slot};
use crate::id::{HolderKind, split_mix};
use crate::resource::Resource;
use crate::resource::ask::{Answer, AnswerKind};
use crate::resource::holders::Holders;
use crate::templates::{Algorithm, REFRESH_IN_MAX};
use crate::time::Time;

/// Largest number of changes of wants in a row, earlier than the floor. Demand comes in bursts: it starts to grow, and
/// its size shows within a second or two.
const EARLY_NEWS_MAX: u32 = 4;

/// Floor of a holder without a lease whose server waits for the parent.
const PROVISIONAL_FLOOR: Duration = Duration::from_secs(1);

impl Holders {
    /// Whether a request earlier than the floor changes the wants, and its holder may do so: a number of times in a
    /// row, and then once a floor.
    pub(super) fn take_early_news(&mut self, slot: Slot, ask: &HolderAsk<'_>, now: Time) -> bool {
        let Some(holding) = self.table.get(slot) else {
            return false;
        };
        if holding.demand == ask.demand {
            return false;
        }
        let saved_up = ask.floor * (EARLY_NEWS_MAX - 1);
        if holding.news_paid_until.since(now) > saved_up {
            return false;
        }
        self.table.note(slot, |holding| {
            holding.news_paid_until = holding.news_paid_until.max(now) + ask.floor;
        });
        true
    }
}

impl Resource {
    /// Answers a request earlier than the floor with the current lease, and with the time at which its new wants will
    /// count.
    pub(super) fn answer_too_early(
        &mut self,
        slot: Slot,
        ask: &HolderAsk<'_>,
        floor_left: Duration,
        now: Time,
    ) -> Answer {
        let mut refresh_in = floor_left;
        let mut is_same = false;
        self.holders.table.note(slot, |holding| {
            let planned_in = holding.refresh_at.since(now);
            if holding.invited {
                refresh_in = refresh_in.min(planned_in);
            }
            holding.sequence = ask.sequence.unwrap_or(holding.sequence);
            holding.incarnation = ask.incarnation;
            holding.streams = ask.streams;
            if let Some(report) = &mut holding.report {
                report.asked_at = now;
                report.epoch = ask.epoch();
                report.learning = !ask.acknowledges();
            }
            is_same = holding.demand == ask.demand;
            if is_same {
                refresh_in = refresh_in.max(planned_in);
            } else {
                let paid_in = holding.news_paid_until.since(now);
                refresh_in =
                    refresh_in.min(paid_in.saturating_sub(ask.floor * (EARLY_NEWS_MAX - 1)));
            }
        });
        self.place(slot);
        Answer {
            decided: is_same,
            ..self.current(slot, refresh_in, AnswerKind::TooEarly, now)
        }
    }

    /// Notes a decision for a holder. Returns the time until its next request.
    pub(super) fn plan(
        &mut self,
        slot: Slot,
        ask: &HolderAsk<'_>,
        grew: bool,
        waited: Option<Duration>,
        now: Time,
    ) -> Duration {
        if ask.is_push && ask.holder().kind == HolderKind::Client {
            // It keeps to the time that the last answer named.
            let planned = self.holders.table.get(slot).map(|it| it.refresh_at);
            return planned.map_or(Duration::ZERO, |at| at.since(now));
        }
        let (refresh_in, invited) = self.plan_refresh(slot, grew, waited, ask.floor, now);
        self.holders.table.note(slot, |holding| {
            holding.refresh_at = now + refresh_in;
            // A push does not bring the holder's own next request nearer to the floor.
            if !ask.is_push {
                holding.decided_at = now;
                holding.invited = invited;
            }
        });
        refresh_in
    }

    /// Returns when a holder should come back after a decision, and whether it is invited to come before its refresh
    /// interval is over: it waits for others, or others wait for it. The floor does not apply to a holder that comes
    /// when it was invited. `grew`: it wants more than before. `waited`: the time after which it was invited in vain.
    fn plan_refresh(
        &mut self,
        slot: Slot,
        grew: bool,
        waited: Option<Duration>,
        floor: Duration,
        now: Time,
    ) -> (Duration, bool) {
        let Some(holding) = self.holders.table.get(slot) else {
            return (self.policy.algorithm().refresh_interval, false);
        };
        let mut interval = interval_of(self.policy.algorithm(), holding, floor);
        let newest = holding.newest();
        if holding.is_pushed() {
            // Changes come at once, so a refresh only keeps the lease.
            interval = interval
                .max(newest.expires_at.since(now) / HEARTBEATS)
                .min(INTERVAL_MAX);
        }
        let wanting = newest.capacity < holding.demand.wants();
        let table = &self.holders.table;
        let others_want = || table.waiting() > 0 || table.wants() > table.granted();
        // Below the root, a holder anywhere in the tree may wait for it.
        let awaited = holding.own() > newest.capacity && (self.parent.is_some() || others_want());
        // Its wants go up to the parent now, or the answer to them comes down.
        let more_comes = self.parent.is_some() && (grew || self.supply.expects_more());
        // On a stream, both sides send changes at once.
        let streams = holding.is_pushed() || holding.report.as_ref().is_some_and(|it| it.streams);
        // In learning mode, reports may add up to more than the capacity. A holder with less than its part waits for
        // those with more.
        let soon = |pace: &mut Pace, floor| (pace.soon(interval, floor, waited, now), true);
        let outlook = self.in_recovery(now, |recovery, s| recovery.outlook(s));
        let (refresh_in, is_early) = match outlook.flatten() {
            Some(outlook)
                if outlook.level.is_some() && (holding.waits || awaited && table.waiting() > 0) =>
            {
                soon(&mut self.pace, floor)
            }
            _ if streams => (interval, false),
            Some(Outlook {
                remaining, grows, ..
            }) if wanting && !(grows && (more_comes || self.parent.is_none())) => {
                let ends = self.pace.after_learning(interval, floor, remaining);
                // At the root, nothing changes before learning ends. A parent may answer at any time.
                if newest.capacity.is_zero() && self.parent.is_some() {
                    let floor = floor.max(PROVISIONAL_FLOOR);
                    let soon = self.pace.soon(interval, floor, waited, now);
                    (if soon < remaining { soon } else { ends }, true)
                } else {
                    (ends, false)
                }
            }
            _ if holding.waits || wanting && more_comes || awaited => soon(&mut self.pace, floor),
            _ if newest.capacity.is_zero() && self.limited_by(holding, now).is_provisional() => {
                soon(&mut self.pace, floor.max(PROVISIONAL_FLOOR))
            }
            _ => (interval, false),
        };
        let within = within_lease(refresh_in, newest.expires_at.since(now));
        (within, is_early && refresh_in < interval)
    }
}

/// Returns the refresh interval of a holder without an early invitation.
pub(super) fn interval_of(algorithm: &Algorithm, holding: &Holding, floor: Duration) -> Duration {
    let Some(report) = &holding.report else {
        return algorithm.refresh_interval.min(INTERVAL_MAX);
    };
    // There are few servers, and a late answer to one is late for all below it.
    let height = i32::try_from(report.height.min(HEIGHT_MAX)).unwrap_or_default();
    let decay = algorithm.decay_factor.powi(height);
    // Floats cannot overflow here, although the child reports any height.
    let seconds = algorithm.refresh_interval.as_secs_f64() * decay;
    let interval = Duration::from_secs_f64(seconds.min(INTERVAL_MAX.as_secs_f64()));
    let least = INTERVAL_MIN.max(floor + floor / 16);
    interval.max(least).min(INTERVAL_MAX)
}

/// Largest height that a refresh interval is computed for.
const HEIGHT_MAX: u32 = 32;

/// The shortest refresh interval of a child server.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Refreshes of a client with a stream in a lease length.
const HEARTBEATS: u32 = 3;

/// Returns the longest time between two requests of a live client with such a lease, on a stream or not.
pub(crate) fn longest_interval(refresh_interval: Duration, lease_length: Duration) -> Duration {
    refresh_interval
        .max(lease_length / HEARTBEATS)
        .min(INTERVAL_MAX)
}

/// Longest refresh interval, for a decay factor that makes it grow with the height.
const INTERVAL_MAX: Duration = REFRESH_IN_MAX;

/// State of a holder before a request, to compare with the state after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) wants: Amount,
    has: Amount,
    share: Amount,
    /// Refresh interval of an early invitation.
    pub(super) invited_after: Option<Duration>,
}

impl Before {
    pub(super) fn of(holding: &Holding) -> Self {
        let waited = holding.refresh_at.since(holding.decided_at);
        Self {
            wants: holding.demand.wants(),
            has: holding.newest().capacity,
            share: holding.share,
            invited_after: Some(waited).filter(|_| holding.invited),
        }
    }

    /// Returns the refresh interval of an early invitation that was in vain.
    pub(super) fn waited_for(&self, after: Self) -> Option<Duration> {
        let is_same =
            self.wants == after.wants && self.has == after.has && self.share == after.share;
        self.invited_after.filter(|_| is_same)
    }
}

// Without changes, holders get the template's refresh interval. But capacity moves from one holder to another only
// when both have asked: one confirms that it has shrunk, and the other takes the free capacity. So the server invites
// two kinds of holders back soon, spread over time: holders that wait, and holders whose confirmation others wait for.

/// Largest number of early refreshes a second that a server invites for one resource. While demand changes, most
/// holders of an overloaded resource wait or are waited for most of the time. This bound keeps a hundred thousand of
/// them from asking every second.
pub(crate) const EARLY_PER_SECOND_MAX: u32 = 2_000;

/// Part of the floor. The floor protects a server from holders that ask faster than their refresh interval. Invited
/// holders may be faster, because the server limits their number.
const FLOOR_PART: u32 = 8;

/// Part of the refresh interval. Capacity moves from one holder to another in two requests. With a small part of the
/// interval for each, leases follow demand that changes about as fast as holders refresh.
const INTERVAL_PART: u32 = 32;

/// Spreads refreshes over time, the same way each time for the same seed.
#[derive(Clone, Debug)]
struct Spread {
    seed: u64,
    /// Number of parts so far.
    drawn: u64,
}

impl Spread {
    /// Returns a part of `range`, uniformly.
    fn within(&mut self, range: Duration) -> Duration {
        self.drawn += 1;
        let bits = split_mix(self.seed, self.drawn);
        let nanos = (u128::from(bits) * range.as_nanos()) >> 64;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Invites holders back before their refresh interval is over, a limited number a second.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    spread: Spread,
    /// Time at which all invited holders would have come, one after the other as fast as they may.
    busy_until: Time,
}

impl Pace {
    /// Starts without invitations.
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            spread: Spread { seed, drawn: 0 },
            busy_until: Time::ZERO,
        }
    }

    /// Returns the refresh interval of a holder that waits, or is waited for: a small part of the usual interval, or of
    /// the floor. A holder that already `waited` in vain gets twice that time, up to a little above the floor, since it
    /// may wait for the lease of a holder that has ended. The interval is longer if many holders are invited already,
    /// and never longer than `interval`.
    pub(crate) fn soon(
        &mut self,
        interval: Duration,
        floor: Duration,
        waited: Option<Duration>,
        now: Time,
    ) -> Duration {
        let least = (floor / FLOOR_PART).max(interval / INTERVAL_PART);
        let most = least.max(floor + floor / 16);
        let base = waited.map_or(least, |waited| (2 * waited).clamp(least, most));
        let soon = base + self.spread.within(base / 4) + self.busy_until.since(now);
        if soon >= interval {
            return interval;
        }
        self.busy_until = self.busy_until.max(now) + Duration::from_secs(1) / EARLY_PER_SECOND_MAX;
        soon
    }

    /// Returns the refresh interval of a holder that gets less because of learning mode: until learning ends in
    /// `remaining`, plus a random part, so that holders do not come at once.
    pub(crate) fn after_learning(
        &mut self,
        interval: Duration,
        floor: Duration,
        remaining: Duration,
    ) -> Duration {
        let range = interval / 8 + floor / 4;
        interval.min((remaining + self.spread.within(range)).max(floor))
    }
}

/// Returns the interval, or a part of the `remaining` lease if that is shorter.
pub(crate) fn within_lease(interval: Duration, remaining: Duration) -> Duration {
    interval.min(remaining - remaining / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn soon_is_a_small_part_of_the_interval_and_not_beyond_it() {
        let mut invitations = Pace::new(7);
        for _ in 0..10_000 {
            let soon = invitations.soon(15 * SECOND, SECOND, None, Time::from_secs(100));
            assert!(soon > SECOND / 4 && soon <= 15 * SECOND, "{soon:?}");
        }
        let soon = invitations.soon(SECOND / 10, SECOND, None, Time::from_secs(200));
        assert_eq!(soon, SECOND / 10);
    }

    #[test]
    fn invitations_a_second_are_bounded() {
        let mut invitations = Pace::new(7);
        let (now, interval) = (Time::from_secs(100), 15 * SECOND);
        let mut in_second = [0_u32; 16];
        for _ in 0..100_000 {
            let soon = invitations.soon(interval, SECOND, None, now);
            if soon < interval {
                in_second[usize::try_from(soon.as_secs()).unwrap()] += 1;
            }
        }
        // A spread of a quarter of a second may move some of them into the next second.
        let most = EARLY_PER_SECOND_MAX + EARLY_PER_SECOND_MAX / 3;
        assert!(
            in_second.iter().all(|count| *count <= most),
            "{in_second:?}"
        );
        assert!(
            in_second[10] >= EARLY_PER_SECOND_MAX * 2 / 3,
            "{in_second:?}"
        );
    }

    #[test]
    fn a_refresh_always_comes_before_the_lease_ends() {
        for remaining in [Duration::from_nanos(10), SECOND / 1000, SECOND, 60 * SECOND] {
            assert!(within_lease(15 * SECOND, remaining) < remaining);
        }
        assert_eq!(within_lease(15 * SECOND, 60 * SECOND), 15 * SECOND);
    }

    #[test]
    fn the_same_seed_spreads_the_same_way() {
        let draw = |seed| {
            let mut spread = Spread { seed, drawn: 0 };
            [0; 5].map(|_| spread.within(SECOND))
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
