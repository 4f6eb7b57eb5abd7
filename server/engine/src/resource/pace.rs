//! Refresh intervals of a holder, and the floor between its decisions.
//!
//! The floor is the shortest time between two decisions for a holder, whatever it sends. Three kinds of requests pass
//! it: the acknowledgement of a shrink, once for each; a request at the time of an invitation; and changed wants, a few
//! times in a row and then once a floor.

use std::time::Duration;

use crate::amount::Amount;
use crate::holders::{Holding, Slot};
use crate::resource::ask::{Answer, AnswerKind, HolderAsk};
use crate::resource::{Resource, refresh};
use crate::time::Time;

/// Largest number of changes of wants in a row, earlier than the floor. Demand comes in bursts: it starts to grow, and
/// its size shows within a second or two.
const EARLY_NEWS_MAX: u32 = 4;

/// Floor of a holder without a lease whose server waits for the parent.
const PROVISIONAL_FLOOR: Duration = Duration::from_secs(1);

impl Resource {
    /// Whether a request earlier than the floor changes the wants, and its holder may do so: a number of times in a
    /// row, and then once a floor.
    pub(super) fn take_early_news(&mut self, slot: Slot, ask: &HolderAsk<'_>, now: Time) -> bool {
        let Some(holding) = self.ledger.get(slot) else {
            return false;
        };
        if holding.demand == ask.demand {
            return false;
        }
        let saved_up = ask.floor * (EARLY_NEWS_MAX - 1);
        if holding.news_paid_until.since(now) > saved_up {
            return false;
        }
        self.ledger.note(slot, |holding| {
            holding.news_paid_until = holding.news_paid_until.max(now) + ask.floor;
        });
        true
    }

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
        self.ledger.note(slot, |holding| {
            let planned_in = holding.refresh_at.since(now);
            if holding.invited {
                refresh_in = refresh_in.min(planned_in);
            }
            holding.sequence = ask.sequence.unwrap_or(holding.sequence);
            holding.incarnation = ask.incarnation;
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
        Answer {
            decided: is_same,
            ..self.current(slot, refresh_in, AnswerKind::TooEarly, now)
        }
    }

    /// Returns the refresh interval of a holder without an early invitation.
    pub(super) fn interval_of(&self, holding: &Holding, floor: Duration) -> Duration {
        match &holding.report {
            None => self.policy.algorithm().refresh_interval.min(INTERVAL_MAX),
            // There are few servers, and a late answer to one is late for all below it.
            Some(report) => {
                let decay = self
                    .policy
                    .algorithm()
                    .decay_factor
                    .powi(i32::try_from(report.height.min(HEIGHT_MAX)).unwrap_or_default());
                // Floats cannot overflow here, although the child reports any height.
                let seconds = self.policy.algorithm().refresh_interval.as_secs_f64() * decay;
                let interval = Duration::from_secs_f64(seconds.min(INTERVAL_MAX.as_secs_f64()));
                interval
                    .max(INTERVAL_MIN)
                    .max(floor + floor / 16)
                    .min(INTERVAL_MAX)
            }
        }
    }

    /// Notes a decision for a holder. Returns the time until its next request.
    pub(super) fn plan(
        &mut self,
        slot: Slot,
        grew: bool,
        waited: Option<Duration>,
        floor: Duration,
        now: Time,
    ) -> Duration {
        let planned = self.plan_refresh(slot, grew, waited, floor, now);
        self.ledger.note(slot, |holding| {
            holding.decided_at = now;
            holding.refresh_at = now + planned.refresh_in;
            holding.invited = planned.invited;
        });
        planned.refresh_in
    }

    /// Returns when a holder should come back after a decision. `grew`: it wants more than before. `waited`: the time
    /// after which it was invited in vain.
    pub(super) fn plan_refresh(
        &mut self,
        slot: Slot,
        grew: bool,
        waited: Option<Duration>,
        floor: Duration,
        now: Time,
    ) -> Planned {
        let Some(holding) = self.ledger.get(slot) else {
            return Planned::at_leisure(self.policy.algorithm().refresh_interval);
        };
        let interval = self.interval_of(holding, floor);
        let newest = holding.newest();
        let wanting = newest.capacity < holding.demand.wants();
        let table = self.ledger.table();
        let others_want = || table.waiting() > 0 || table.wants() > table.granted();
        // Below the root, a holder anywhere in the tree may wait for it.
        let awaited = holding.own() > newest.capacity && (self.upstream.is_some() || others_want());
        // Its wants go up to the parent now, or the answer to them comes down.
        let more_comes = self.upstream.is_some() && (grew || self.supply.expects_more());
        // On a stream, both sides send changes at once.
        let streams = holding.report.as_ref().is_some_and(|report| report.streams);
        // In learning mode, reports may add up to more than the capacity. A holder with less than its part waits for
        // those with more.
        let planned = match self.learning_remaining(now) {
            Some(_)
                if self.confirmed_level(now).is_some()
                    && (holding.waits || awaited && table.waiting() > 0) =>
            {
                let refresh_in = self.invitations.soon(interval, floor, waited, now);
                Planned::soon(refresh_in, interval)
            }
            _ if streams => Planned::at_leisure(interval),
            Some(remaining) if wanting && !(more_comes && self.may_grant_growth(now)) => {
                let ends = self.invitations.after_learning(interval, floor, remaining);
                // At the root, nothing changes before learning ends. A parent may answer at any time.
                if newest.capacity.is_zero() && self.upstream.is_some() {
                    let floor = floor.max(PROVISIONAL_FLOOR);
                    let soon = self.invitations.soon(interval, floor, waited, now);
                    Planned::soon(if soon < remaining { soon } else { ends }, interval)
                } else {
                    Planned::at_leisure(ends)
                }
            }
            _ if holding.waits || wanting && more_comes || awaited => {
                let refresh_in = self.invitations.soon(interval, floor, waited, now);
                Planned::soon(refresh_in, interval)
            }
            _ if newest.capacity.is_zero() && self.limited_by(holding, now).is_provisional() => {
                let floor = floor.max(PROVISIONAL_FLOOR);
                let refresh_in = self.invitations.soon(interval, floor, waited, now);
                Planned::soon(refresh_in, interval)
            }
            _ => Planned::at_leisure(interval),
        };
        Planned {
            refresh_in: refresh::within_lease(planned.refresh_in, newest.expires_at.since(now)),
            ..planned
        }
    }
}

/// Time until a holder comes back, and whether it was invited early.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) refresh_in: Duration,
    /// The holder comes before its refresh interval is over: it waits for others, or others wait for it. The floor does
    /// not apply to a holder that comes when it was invited.
    pub(super) invited: bool,
}

impl Planned {
    const fn at_leisure(refresh_in: Duration) -> Self {
        Self {
            refresh_in,
            invited: false,
        }
    }

    fn soon(refresh_in: Duration, interval: Duration) -> Self {
        Self {
            refresh_in,
            invited: refresh_in < interval,
        }
    }
}

/// Largest height that a refresh interval is computed for.
const HEIGHT_MAX: u32 = 32;

/// The shortest refresh interval of a child server.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Longest refresh interval, for a decay factor that makes it grow with the height.
const INTERVAL_MAX: Duration = refresh::REFRESH_IN_MAX;

/// State of a holder before a request, to compare with the state after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) wants: Amount,
    has: Amount,
    share: Amount,
    /// Refresh interval of an early invitation.
    invited_after: Option<Duration>,
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

    /// Returns the refresh interval of an early invitation.
    pub(super) fn invited_after(&self) -> Option<Duration> {
        self.invited_after
    }

    /// Returns the refresh interval of an early invitation that was in vain.
    pub(super) fn waited_for(&self, after: Self) -> Option<Duration> {
        let is_same =
            self.wants == after.wants && self.has == after.has && self.share == after.share;
        self.invited_after.filter(|_| is_same)
    }
}
