//! Status of a resource: sums, leases, and reasons.

use std::time::Duration;

use crate::amount::Amount;
use crate::claims::Demand;
use crate::continuity::{Outlook, Recovery};
use crate::division::{Bound, DecidedBy, Reason, Rule, Why};
use crate::holders::Holding;
use crate::id::{HolderId, HolderKind, HolderName};
use crate::messages::{
    ChildSnapshot, LeaseSnapshot, LeasesFrom, LimitedBy, RefusalReason, ResourceSnapshot, Totals,
};
use crate::resource::Resource;
use crate::rounding::SHORTFALL;
use crate::time::Time;

impl Resource {
    /// Returns the state of the resource now.
    pub(crate) fn snapshot(&self, now: Time) -> ResourceSnapshot {
        let algorithm = self.policy.algorithm();
        let recovery = self.recovery.as_ref();
        ResourceSnapshot {
            resource: self.id.clone(),
            template: self.policy.template().cloned(),
            kind: algorithm.kind,
            shrink: algorithm.shrink,
            lease_length: algorithm.lease_length,
            refresh_interval: algorithm.refresh_interval,
            capacity: self.supply.capacity.get(),
            safe_capacity: (self.parent.is_none() || self.supply.terms.is_some())
                .then(|| self.safe_capacity(self.learning_for(now))),
            wants: self.holders.table.wants().rounded_down(),
            granted: self.holders.table.granted().rounded_down(),
            reserved: self.holders.table.reserved().rounded_down(),
            leases: self.holders.table.len(),
            children: self.holders.children().len(),
            clients: self.holders.clients(),
            waiting: self.holders.table.waiting(),
            below_floor: self.clients_below_floor(),
            learning_remaining: self.learning_remaining(now),
            grows: self.outlook(now).is_some_and(|outlook| outlook.grows),
            unreported: recovery.map_or(0.0, |it| it.unreported().rounded_up().get()),
            unreported_for: self.recovery_remaining(now).filter(|_| !self.learns()),
            mark: self.mark.as_ref().and_then(|mark| mark.shown()),
            budget: None,
            upstream: self
                .parent
                .as_ref()
                .map(|upstream| upstream.snapshot(&self.policy, &self.supply, now)),
        }
    }

    /// Adds this resource to the sums over all of a node.
    pub(crate) fn add_to(&self, totals: &mut Totals, now: Time) {
        let table = &self.holders.table;
        totals.resources += 1;
        totals.leases += table.len();
        totals.children += self.holders.children().len();
        totals.clients += self.holders.clients();
        totals.waiting += table.waiting();
        totals.leases_per_resource = totals.leases_per_resource.max(table.len());
        totals.refused_by_parent += usize::from(self.refused(now).is_some());
        totals.learns |= self.learning_remaining(now).is_some();
        totals.learns_above |= self.supply.learning_until.is_some_and(|until| until > now);
    }

    /// Returns leases from that place on, in up to `max` places, and the place for the next call: those whose holder's
    /// name contains a text.
    pub(crate) fn leases_from(
        &self,
        from: &LeasesFrom,
        holder: &str,
        max: usize,
        now: Time,
    ) -> (Vec<LeaseSnapshot>, Option<LeasesFrom>) {
        let table = &self.holders.table;
        let rule = self.division();
        let view = |holding: &Holding| {
            let (share, why) = self.share_now(holding, &rule, now);
            snapshot_of(holding, share, why)
        };
        let is_wanted = |holding: &&Holding| holding.name.as_str().contains(holder);
        let (mut seen, mut looked_at) = (Vec::new(), 0);
        if *from == LeasesFrom::Start {
            // Among a million names with the text, the one that is the text is found at once.
            let whole = HolderName::new(holder).ok();
            let whole = whole.map(|name| HolderId::client(name, None));
            let slot = whole.and_then(|holder| table.newest_of_name(&holder));
            seen.extend(slot.and_then(|slot| table.get(slot)).map(view));
        }
        let place = match from {
            LeasesFrom::Place(place) => *place,
            LeasesFrom::Start | LeasesFrom::After(_) => {
                let after = match from {
                    LeasesFrom::After(name) => Some(name),
                    LeasesFrom::Start | LeasesFrom::Place(_) => None,
                };
                let mut last = None;
                for (name, slot) in self.children_after(after).take(max) {
                    seen.extend(table.get(slot).filter(is_wanted).map(view));
                    last = Some(name);
                    looked_at += 1;
                }
                if looked_at >= max
                    && let Some(last) = last
                {
                    return (seen, Some(LeasesFrom::After(last.clone())));
                }
                0
            }
        };
        let end = place.saturating_add(max - looked_at).min(table.places());
        let clients = table
            .in_places(place..end)
            .filter(|holding| holding.kind() == HolderKind::Client)
            .filter(is_wanted);
        seen.extend(clients.map(view));
        let next = Some(LeasesFrom::Place(end)).filter(|_| end < table.places());
        (seen, next)
    }

    /// Returns a holder's share now, and the reason for its grant. The share follows the present
    /// demand of all holders, not their demand when the holder was decided.
    fn share_now(&self, holding: &Holding, rule: &Rule, now: Time) -> (Amount, Why) {
        if !self.has_source() || self.refused(now) == Some(RefusalReason::UnknownResource) {
            let (reason, bound) = (Reason::TemplateGone, Bound::Share);
            return (Amount::ZERO, Why { reason, bound });
        }
        let reason = rule.reason_for(&holding.demand);
        let share = self.prospect(&holding.demand, rule.share_of(&holding.demand));
        let granted = holding.newest().capacity.get();
        let rounding = SHORTFALL * share.get().max(self.supply.capacity.get());
        let outlook = self.outlook(now);
        // While it learns, a holder keeps what it reports, also beyond its share.
        let learnt = outlook.is_some_and(|outlook| {
            !outlook.grows
                || holding.why.decided_by == DecidedBy::Learning && granted > share.get() + rounding
        });
        let waits_for_mark = self.parent.is_none() && holding.pending;
        if holding.pending
            || learnt
            || matches!(
                holding.why.decided_by,
                DecidedBy::ChildLearns | DecidedBy::Replaced
            )
        {
            // The present division is shown only if it explains the earlier decision.
            let division = Some(reason).filter(|_| share == holding.share);
            let mut why = holding.why.shown(division);
            if waits_for_mark && why.reason == Reason::WaitsForParent {
                why.reason = Reason::WaitsForMark;
            }
            return (holding.share, why);
        }
        let missing = share.get() - granted;
        let has_room = |most| {
            let room = self.room_beside_others(holding.own(), most);
            room.get() + rounding >= share.get()
        };
        let bound = if missing.abs() <= rounding {
            self.bound_of_share(share, &holding.demand)
        } else if missing < 0.0 {
            Bound::ShrinksNext
        } else if !self.policy.promises_total() {
            Bound::NotAskedYet
        } else if self.overcommitted().is_some() {
            Bound::CapacityLowered
        } else if has_room(self.grants_max()) {
            Bound::NotAskedYet
        } else if has_room(self.promised()) {
            Bound::MarkRises
        } else {
            let recovery = self.recovery.as_deref();
            recovery.map_or(Bound::OthersHold, Recovery::others_hold)
        };
        (share, Why { reason, bound })
    }

    /// Returns the reason why a holder's newest lease is no larger.
    pub(super) fn limited_by(&self, holding: &Holding, now: Time) -> LimitedBy {
        if holding.newest().capacity >= holding.demand.wants() {
            return if holding.wants_more {
                LimitedBy::Share
            } else {
                LimitedBy::Wants
            };
        }
        let outlook = self.outlook(now);
        if self.learns() && outlook.is_some_and(|outlook| !outlook.grows) {
            return LimitedBy::Learning;
        }
        if self.supply.parent_learns() {
            return LimitedBy::ParentLearning;
        }
        let (parent, demand) = (self.parent.as_ref(), self.holders.demand_version());
        match holding.why.bound {
            _ if parent.is_some_and(|it| it.is_behind(demand)) => LimitedBy::Parent,
            Bound::CapacityLowered => LimitedBy::CapacityLowered,
            Bound::OthersHold | Bound::Unreported => LimitedBy::Others,
            // What it reports is all that others leave, or its share.
            Bound::SaysItHas | Bound::LearningLeft if outlook.is_some() => {
                let rule = self.division_for(&holding.demand);
                let share = rule.share_of(&holding.demand).get() * (1.0 - SHORTFALL);
                match share > holding.newest().capacity.get() {
                    true => LimitedBy::Others,
                    false => LimitedBy::Share,
                }
            }
            _ if self.supply.expects_more() => LimitedBy::Others,
            _ => LimitedBy::Share,
        }
    }

    /// Returns the prospects of holders while predecessors' leases may last.
    fn outlook(&self, now: Time) -> Option<Outlook> {
        self.in_recovery(now, |recovery, s| recovery.outlook(s))?
    }

    /// Returns the number of clients whose shares are below the floor of the template. None: it names none.
    fn clients_below_floor(&self) -> Option<f64> {
        let floor = self.policy.template()?.share_floor?;
        let rule = self.division();
        Some(rule.clients_below(floor.get(), &self.holders.claims))
    }

    /// Returns the longest time until learning mode ends, here or above.
    pub(super) fn learning_for(&self, now: Time) -> Option<Duration> {
        let above = self.supply.learning_until.filter(|until| *until > now);
        self.learning_remaining(now)
            .max(above.map(|until| until.since(now)))
    }
}

fn snapshot_of(holding: &Holding, share: Amount, why: Why) -> LeaseSnapshot {
    LeaseSnapshot {
        holder: holding.holder(),
        demand: holding.demand.clone(),
        wants_more: holding.wants_more,
        share: share.get(),
        granted: holding.newest().capacity.get(),
        reserved: holding.reserved().get(),
        expires_at: holding.newest().expires_at,
        reserved_until: holding.leases().last_expiry(),
        refresh_interval: holding.refresh_at.since(holding.decided_at),
        why,
        child: holding.report.as_ref().map(|report| ChildSnapshot {
            height: report.height,
            learning: report.learning,
            has: report.has.map(Amount::get),
            outstanding: report.outstanding.map(Amount::get),
            curve_points: match &holding.demand {
                Demand::Client { .. } => 0,
                Demand::Server(demand) => demand.points(),
            },
        }),
    }
}
