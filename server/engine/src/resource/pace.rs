//! How often a holder gets a decision, and when it is to come back.
//!
//! The floor keeps holders from being decided about faster than once in so long, whatever they send. Three
//! pass it: who acknowledges a shrink, once for each; who comes back when it was invited to; and who wants
//! something else, a few times in a row and then once a floor.

use std::time::Duration;

use crate::amount::Amount;
use crate::lease_table::{Holding, Slot};
use crate::refresh;
use crate::resource::Resource;
use crate::resource::ask::{Answer, AnswerKind, HolderAsk};
use crate::time::Time;

/// Number of times that a holder may say at once, faster than the floor, that it wants something else. Demand
/// comes in bursts: something begins, and its extent shows within a second or two.
const EARLY_NEWS_MAX: u32 = 4;

/// The floor of a holder that has nothing because the parent has not said yet how much there is.
const PROVISIONAL_FLOOR: Duration = Duration::from_secs(1);

impl Resource {
    /// Whether a request that came faster than the floor wants something else than the one before,
    /// and its holder may say so: so many times at once, and then once a floor.
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

    /// A request that came faster than the floor gets the current lease, and hears when its new
    /// wants will count.
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

    /// How often a holder refreshes, if nothing is awaited.
    pub(super) fn interval_of(&self, holding: &Holding, floor: Duration) -> Duration {
        match &holding.report {
            None => self.policy.algorithm().refresh_interval.min(INTERVAL_MAX),
            // Servers are few, and what they learn late, all below them learn late.
            Some(report) => {
                let decay = self
                    .policy
                    .algorithm()
                    .decay_factor
                    .powi(i32::try_from(report.height.min(HEIGHT_MAX)).unwrap_or_default());
                // As floats, which cannot overflow: the height is reported by the child.
                let seconds = self.policy.algorithm().refresh_interval.as_secs_f64() * decay;
                let interval = Duration::from_secs_f64(seconds.min(INTERVAL_MAX.as_secs_f64()));
                interval
                    .max(INTERVAL_MIN)
                    .max(floor + floor / 16)
                    .min(INTERVAL_MAX)
            }
        }
    }

    /// A holder was decided about. Returns when it is to come back.
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

    /// When a holder that was just decided for should come back. `grew`: it wants more than it did.
    /// `waited`: it was invited after so long, and nothing came of it.
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
        // Below the root, who waits for it may be anywhere in the tree.
        let awaited = holding.own() > newest.capacity && (self.upstream.is_some() || others_want());
        // What it wants goes up to the parent now, or the answer to it comes down.
        let more_comes = self.upstream.is_some() && (grew || self.supply.expects_more());
        // On a stream, both sides send changes at once.
        let streams = holding.report.as_ref().is_some_and(|report| report.streams);
        // In learning mode, holders say that they have more than there is: who has less than its part waits
        // for those who have more.
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
                // The root knows when learning ends; nothing changes before. A parent may answer at any time.
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

/// When a holder comes back, and why then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) refresh_in: Duration,
    /// Before its refresh interval is over: it waits for others, or others wait for it. The floor is not
    /// for a holder that comes when it was asked to.
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

/// The highest tree that refresh intervals are computed for.
const HEIGHT_MAX: u32 = 32;

/// The shortest refresh interval of a child server.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// The longest, should an operator have it grow with the height.
const INTERVAL_MAX: Duration = refresh::REFRESH_IN_MAX;

/// What a holder had and wanted, to see what came of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) wants: Amount,
    has: Amount,
    share: Amount,
    /// Its refresh interval, if it was invited to come early.
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

    /// Its refresh interval, if it was invited to come early.
    pub(super) fn invited_after(&self) -> Option<Duration> {
        self.invited_after
    }

    /// Its refresh interval, if it was invited to come early in vain.
    pub(super) fn waited_for(&self, after: Self) -> Option<Duration> {
        let is_same =
            self.wants == after.wants && self.has == after.has && self.share == after.share;
        self.invited_after.filter(|_| is_same)
    }
}
