//! What is seen of a resource, when it is looked at: sums, leases, and why they are as they are.

use std::time::Duration;

use crate::algorithm::{Bound, Reason, Rule, Why};
use crate::amount::Amount;
use crate::demand::Demand;
use crate::id::HolderKind;
use crate::lease_table::Holding;
use crate::request::{LimitedBy, RefusalReason};
use crate::resource::Resource;
use crate::rounding::SHORTFALL;
use crate::snapshot::{ChildSnapshot, LeaseSnapshot, ResourceSnapshot};
use crate::time::Time;

impl Resource {
    /// What is known of it now.
    pub(crate) fn snapshot(&self, now: Time) -> ResourceSnapshot {
        let template = self.policy.template();
        ResourceSnapshot {
            resource: self.id.clone(),
            template: template.map(|template| template.identifier_glob.clone()),
            description: template
                .map(|template| template.description.clone())
                .unwrap_or_default(),
            algorithm: self.policy.algorithm().clone(),
            capacity: self.supply.capacity.get(),
            safe_capacity: Some(self.safe_capacity(now)),
            wants: self.ledger.table().wants().rounded_down(),
            granted: self.ledger.table().granted().rounded_down(),
            reserved: self.ledger.table().reserved().rounded_down(),
            leases: self.ledger.table().len(),
            children: self.ledger.children().len(),
            clients: self.ledger.clients(),
            waiting: self.ledger.table().waiting(),
            learning_remaining: self.learning_remaining(now),
            upstream: self
                .upstream
                .as_ref()
                .map(|upstream| upstream.snapshot(&self.policy, &self.supply, now)),
        }
    }

    /// How many child servers and clients it serves, and how many holders wait for others to shrink.
    pub(crate) fn counts(&self) -> (usize, f64, usize) {
        let (children, waiting) = (self.ledger.children().len(), self.ledger.table().waiting());
        (children, self.ledger.clients(), waiting)
    }

    /// Whether the parent refuses it.
    pub(crate) fn is_refused_by_parent(&self, now: Time) -> bool {
        let upstream = self.upstream.as_ref();
        upstream.is_some_and(|upstream| upstream.lease.refused(now).is_some())
    }

    /// Up to `max` leases, those of child servers first.
    pub(crate) fn lease_snapshots(&self, max: usize, now: Time) -> Vec<LeaseSnapshot> {
        let children = self
            .ledger
            .children()
            .values()
            .filter_map(|slot| self.ledger.get(*slot));
        let clients = self
            .ledger
            .table()
            .iter()
            .filter(|holding| holding.holder.kind == HolderKind::Client);
        // Once for all, so that rows agree with each other and with the sums.
        let rule = self.rule_for_all();
        let all = children.chain(clients).take(max);
        all.map(|holding| {
            let (share, why) = self.share_now(holding, &rule, now);
            snapshot_of(holding, share, why)
        })
        .collect()
    }

    /// The leases of child servers.
    pub(crate) fn child_snapshots(&self, now: Time) -> Vec<LeaseSnapshot> {
        self.lease_snapshots(self.ledger.children().len(), now)
    }

    /// What a holder should have now, and why what it has is that much: by what others ask for now, not
    /// by what they asked for when it was decided about.
    fn share_now(&self, holding: &Holding, rule: &Rule, now: Time) -> (Amount, Why) {
        let refused = self.upstream.as_ref().and_then(|up| up.lease.refused(now));
        if !self.has_source() || refused == Some(RefusalReason::UnknownResource) {
            let (reason, bound) = (Reason::TemplateGone, Bound::Share);
            return (Amount::ZERO, Why { reason, bound });
        }
        let decided = holding.why.reason;
        let confirms = self.learning_remaining(now).is_some() && !self.may_grant_growth(now);
        if holding.pending || confirms || matches!(decided, Reason::Learning | Reason::ChildLearns)
        {
            return (holding.share, holding.why);
        }
        let share = rule.share_of(&holding.demand);
        let reason = share.reason;
        let share = self.prospect(&holding.demand, share);
        let granted = holding.newest().capacity.get();
        let rounding = SHORTFALL * share.get().max(self.supply.capacity.get());
        let missing = share.get() - granted;
        let bound = if missing.abs() <= rounding {
            Bound::Share
        } else if missing < 0.0 {
            Bound::ShrinksNext
        } else if !self.policy.algorithm().kind.promises_total() {
            Bound::NotAskedYet
        } else if self.overcommitted().is_some() {
            Bound::CapacityLowered
        } else if self.room_beside_others(holding.own()).get() + rounding >= share.get() {
            Bound::NotAskedYet
        } else {
            Bound::OthersHold
        };
        (share, Why { reason, bound })
    }

    /// Why a holder's newest lease is no larger.
    pub(super) fn limited_by(&self, holding: &Holding, now: Time) -> LimitedBy {
        if holding.newest().capacity >= holding.demand.wants() {
            return if holding.wants_more {
                LimitedBy::Share
            } else {
                LimitedBy::Wants
            };
        }
        if self.learning_remaining(now).is_some() {
            return LimitedBy::Learning;
        }
        if self.supply.terms.as_ref().is_some_and(|told| told.learning) {
            return LimitedBy::ParentLearning;
        }
        match holding.why.bound {
            _ if self.parent_is_behind() => LimitedBy::Parent,
            Bound::CapacityLowered => LimitedBy::CapacityLowered,
            Bound::OthersHold => LimitedBy::Others,
            _ if self.supply.expects_more() => LimitedBy::Others,
            Bound::Share
            | Bound::SaysItHas
            | Bound::LearningLeft
            | Bound::NotAskedYet
            | Bound::ShrinksNext => LimitedBy::Share,
        }
    }

    /// Whether it learns only because leases may be out that are longer than those of the algorithm in
    /// force. None: it is not in learning mode, or only as long as a server above is.
    pub(crate) fn learns_for_longer_leases(&self, now: Time) -> Option<bool> {
        self.learning_remaining(now)?;
        let usual = self.policy.algorithm().learns_for(Duration::ZERO);
        let usual = self.beginning.clock_tolerance.report(usual);
        let is_over = self.beginning.vacant_since + usual <= now;
        match &self.upstream {
            None => Some(is_over),
            Some(_) if is_over && self.learns_above(now) => None,
            // The parent's books show how long leases of its predecessor last.
            Some(_) => Some(false),
        }
    }

    /// Whether a server above is in learning mode.
    pub(crate) fn learns_above(&self, now: Time) -> bool {
        self.supply.learning_until.is_some_and(|until| until > now)
    }

    /// How long learning mode still lasts at most, here or above.
    pub(super) fn learning_for(&self, now: Time) -> Option<Duration> {
        let above = self.supply.learning_until.filter(|until| *until > now);
        self.learning_remaining(now)
            .max(above.map(|until| until.since(now)))
    }
}

fn snapshot_of(holding: &Holding, share: Amount, why: Why) -> LeaseSnapshot {
    LeaseSnapshot {
        holder: holding.holder.clone(),
        priority: holding.demand.priority(),
        subclients: holding.demand.clients(),
        wants: holding.demand.wants().get(),
        share: share.get(),
        granted: holding.newest().capacity.get(),
        reserved: holding.reserved().get(),
        expires_at: holding.newest().expires_at,
        reserved_until: holding.reserved_until(),
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
