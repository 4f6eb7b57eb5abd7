//! The grant of a holder: its share, as far as others leave room for it; in learning mode, the amount that it reports.

use std::borrow::Cow;

use crate::amount::Amount;
use crate::claims::Demand;
use crate::continuity::Recovery;
use crate::division::{self, Bound, DecidedBy, Grant, KnownWhy, Rule, Supply};
use crate::holders::{HolderAsk, Holding};
use crate::resource::Resource;
use crate::rounding::SHORTFALL;
use crate::time::Time;

impl Resource {
    /// Decides the grant of a known holder, whose claims are those of the ask. `lowered` is the amount that it may keep
    /// if the capacity was lowered since it last asked.
    pub(super) fn grant_known(
        &self,
        holding: &Holding,
        ask: &HolderAsk<'_>,
        lowered: Option<Amount>,
        now: Time,
    ) -> Grant {
        let (held, newest) = (holding.own(), holding.newest().capacity);
        let kept = lowered.map_or(newest, |kept| kept.min(held));
        self.grant(ask, held, without_apart(holding, kept), newest, now)
    }

    /// Decides the grant of a holder whose claims are in the index. It has `held` reserved and `newest` as its newest
    /// lease, and may keep `kept` if the capacity is lowered below the sum of the leases.
    pub(super) fn grant(
        &self,
        ask: &HolderAsk<'_>,
        held: Amount,
        kept: Amount,
        newest: Amount,
        now: Time,
    ) -> Grant {
        let lowered = self.overcommitted().is_some();
        let room = self.room_beside_others(held, self.grants_max());
        let room = if lowered { room.max(kept) } else { room };
        let confirmed = self.in_recovery(now, |it, s| it.confirm(s, ask, newest, room));
        let confirmed = confirmed.flatten();
        if let Some((confirmed, false)) = confirmed {
            return confirmed;
        }
        let share = self.division_for(&ask.demand).share_of(&ask.demand);
        let mut shared = self.grant_share(share, room, lowered, keeps(ask, held, newest, share));
        if shared.why.bound == Bound::Share {
            shared.why.bound = self.bound_of_share(share, &ask.demand);
        }
        // Reports come first; what is left then is free. At the root, that counts for child servers which know only a
        // part of their holders.
        let reports_first = self.parent.is_some() || !ask.acknowledges();
        match confirmed.filter(|_| reports_first) {
            Some((confirmed, _)) if confirmed.gets >= shared.gets => confirmed,
            _ => shared,
        }
    }

    /// Divides the capacity, as far as it concerns the holder with that demand.
    pub(super) fn division_for(&self, demand: &Demand) -> Rule {
        let (algorithm, bands) = (self.policy.algorithm(), &self.holders.claims);
        division::solve(algorithm, bands, &self.supply_to_divide(), demand)
    }

    /// Divides the capacity among all holders.
    pub(super) fn division(&self) -> Rule {
        let (algorithm, bands) = (self.policy.algorithm(), &self.holders.claims);
        division::solve_for_all(algorithm, bands, &self.supply_to_divide())
    }

    /// Returns why a holder that has its share has no more.
    pub(super) fn bound_of_share(&self, share: Amount, demand: &Demand) -> Bound {
        match share < demand.wants() && matches!(self.supply_to_divide(), Cow::Owned(_)) {
            true => Bound::Unreported,
            false => Bound::Share,
        }
    }

    /// Returns the supply to divide.
    fn supply_to_divide(&self) -> Cow<'_, Supply> {
        let supply = &self.supply;
        let recovery = self.recovery.as_ref();
        let recovery = recovery.filter(|_| self.policy.promises_total());
        let part = recovery.map(|it| it.divisible(supply.capacity));
        // Sums of reports are rounded.
        let most = supply.capacity.get() * (1.0 - SHORTFALL);
        match part.filter(|part| part.get() < most) {
            Some(capacity) => Cow::Owned(Supply {
                capacity,
                ..supply.clone()
            }),
            None => Cow::Borrowed(supply),
        }
    }

    /// Returns the amount that a holder gets once others have shrunk. This is its share; for a child server, its share
    /// of the capacity that this server expects, so that holders below it know that more is to come.
    pub(super) fn prospect(&self, demand: &Demand, share: Amount) -> Amount {
        let (Demand::Server(_), Some(terms), true) =
            (demand, &self.supply.terms, self.supply.expects_more())
        else {
            return share;
        };
        let algorithm = self.policy.algorithm();
        if algorithm.kind.has_bands() {
            // The split of the expected capacity over the bands is unknown; assume the present one.
            let wants = demand.wants();
            if self.supply.capacity.is_zero() {
                return wants;
            }
            let part = terms.share.get() / self.supply.capacity.get();
            let expected = Amount::from_computed(share.get() * part);
            return expected.min(wants).max(share);
        }
        let expected = Supply {
            capacity: terms.share,
            ..self.supply.clone()
        };
        let rule = division::solve(algorithm, &self.holders.claims, &expected, demand);
        rule.share_of(demand).max(share)
    }

    /// Returns the room for a holder beside the leases of others, reported or not, if all together get `most`. None: any
    /// amount.
    pub(super) fn room_beside_others(&self, held: Amount, most: Option<Amount>) -> Amount {
        let Some(most) = most else {
            return Amount::MAX;
        };
        let mut others = *self.holders.table.reserved();
        others.subtract(held);
        if let Some(recovery) = &self.recovery {
            others.add_sum(&recovery.unreported());
        }
        others.left_of(most)
    }

    /// Grants a share, bounded by leases of others, and not below `keeps`: the lease of a child server in learning
    /// mode, whose demand looks smaller than it is.
    fn grant_share(&self, share: Amount, room: Amount, lowered: bool, keeps: Amount) -> Grant {
        let (share, decided_by) = match keeps > share {
            true => (keeps, DecidedBy::ChildLearns),
            false => (share, DecidedBy::Division),
        };
        let gets = if self.policy.promises_total() || self.mark.is_some() {
            share.min(room)
        } else {
            share
        };
        let short = share.get() - gets.get();
        let rounding = SHORTFALL * share.get() + 0.1 * SHORTFALL * self.supply.capacity.get();
        let waits = short > rounding;
        let bound = match (waits, lowered) {
            (false, _) => Bound::Share,
            (true, true) => Bound::CapacityLowered,
            (true, false) => {
                let recovery = self.recovery.as_deref();
                recovery.map_or(Bound::OthersHold, Recovery::others_hold)
            }
        };
        Grant {
            share,
            gets,
            room,
            waits,
            cut_from: None,
            why: KnownWhy { decided_by, bound },
        }
    }
}

/// Returns the amount that a child server keeps above which a server is in learning mode: its share by the known demand
/// plus the unreported leases of its holders, which are at most what it has `held`; if it learns itself, at least its
/// newest lease.
fn keeps(ask: &HolderAsk<'_>, held: Amount, newest: Amount, share: Amount) -> Amount {
    let unreported = ask.without_demand().min(held);
    let keeps = Amount::from_computed(share.get() + unreported.get());
    match ask.acknowledges() {
        true => keeps,
        false => keeps.max(newest),
    }
}

/// Returns the part of `kept` that a holder may keep if the leases exceed the capacity: without the leases of other
/// processes under its name.
fn without_apart(holding: &Holding, kept: Amount) -> Amount {
    let leases = holding.leases();
    if !leases.has_apart() {
        return kept;
    }
    leases.apart_sum().left_of(kept)
}
