//! One resource: turns the shares of its algorithm into leases that never add up to too much.
//!
//! `Resource` owns its parts, and calls them: [`holders`], the leases and wants of each holder; [`policy`], the
//! algorithm and its source; [`Supply`], the capacity to divide; [`Recovery`], what is known of earlier masterships, until
//! that is over; [`pace`], the time of a holder's next request; and, below the root, [`parent`], its own lease.
//!
//! A request becomes a lease in [`admit`] (may it come?), [`ask`] (what counts of it?), [`decide`] and [`grant`].
//! [`lowering`] keeps leases when the capacity is lowered. [`marking`] keeps the mark of a root, and [`pending`] lets holders
//! wait for it, or for the parent. [`pushing`] finds the
//! client to push to. [`processes`] handles several processes of one name. `safe` computes the capacity of clients in safe mode, and [`view`] the
//! status. This file handles templates and time.

mod admit;
pub mod ask;
mod child_answer;
mod decide;
mod grant;
mod holders;
mod lowering;
pub(crate) mod marking;
pub(crate) mod pace;
pub mod parent;
mod parent_lease;
mod pending;
mod policy;
mod processes;
mod pushing;
pub(crate) mod retry;
mod safe;
mod view;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use crate::admission::Charge;
use crate::continuity::mark::KeptMark;
use crate::continuity::{Ends, MastershipStart, Recovery, Situation};
use crate::division::{self, Supply};
use crate::id::ResourceId;
use crate::messages::Conflict;
use crate::resource::holders::Holders;
use crate::resource::lowering::Lowerings;
use crate::resource::marking::Predecessors;
use crate::resource::pace::Pace;
use crate::resource::parent::Parent;
use crate::resource::policy::Policy;
use crate::templates::{Algorithm, Template};
use crate::time::Time;

/// Number of scheduled leases that one request checks. The timer does the rest. Until then, ended leases count as in
/// use, which is the safe side.
const EXPIRIES_PER_REQUEST: usize = 32;

/// Number of scheduled leases that one timeout checks. If there are more, the timer is due again at once.
const EXPIRIES_PER_TIMEOUT: usize = 256;

/// A resource with holders, or about to have one. A request of many resources waits for the memory of each, so what
/// every request reads comes first and stands together, here, in its [holders](Holders) and in their
/// [table](crate::holders::LeaseTable).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Resource {
    id: ResourceId,
    policy: Policy,
    supply: Supply,
    /// Knowledge of earlier masterships. None: all their leases are over.
    recovery: Option<Box<Recovery>>,
    /// Its mark in etcd. None: this server keeps none.
    mark: Option<Box<KeptMark>>,
    /// Whether recovery began by a record of the last process, which nothing else keeps.
    is_recorded: bool,
    /// The source of the supply, below the root.
    parent: Option<Box<Parent>>,
    holders: Holders,
    start: MastershipStart,
    lowering: Lowerings,
    pace: Pace,
}

/// Values that are not needed any more, and may be large. To drop a million leases takes a good part of a second.
pub(crate) type Garbage = Vec<Box<dyn Any + Send>>;

/// Effects of changes of a resource on its node.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Number of holders whose last lease has ended.
    pub(crate) expired: u32,
    /// Changes of the bytes of callers.
    pub(crate) charges: Vec<Charge>,
    /// Whether something has changed that may change the shares of child servers.
    pub(crate) is_unsettled: bool,
    /// The last conflict of two live processes under one name.
    pub(crate) conflict: Option<Box<Conflict>>,
    /// Values to be dropped elsewhere.
    pub(crate) waste: Garbage,
}

impl Effects {
    /// Whether there are none.
    pub(crate) fn is_none(&self) -> bool {
        self.expired == 0
            && self.charges.is_empty()
            && !self.is_unsettled
            && self.conflict.is_none()
            && self.waste.is_empty()
    }
}

impl Resource {
    /// A resource of the root, without holders yet.
    pub(crate) fn of_root(
        id: ResourceId,
        template: Arc<Template>,
        start: MastershipStart,
        predecessors: Predecessors,
        seed: u64,
        now: Time,
    ) -> Self {
        let supply = Supply::of_root(template.capacity);
        let policy = Policy::of_root(template);
        let mut resource = Self::new(id, policy, supply, start, seed);
        resource.inherit(predecessors, now);
        resource
    }

    /// A resource without holders yet, which is leased from a parent. The template is
    /// for Doorman parents, which do not send an algorithm.
    pub(crate) fn of_parent(
        id: ResourceId,
        template: Option<Arc<Template>>,
        start: MastershipStart,
        seed: u64,
    ) -> Self {
        let start = MastershipStart {
            // The parent sends how long leases last that it granted.
            longer_leases: Duration::ZERO,
            ..start
        };
        let policy = Policy::of_parent(template);
        let mut resource = Self::new(id, policy, Supply::NONE, start, seed);
        resource.parent = Some(Box::new(Parent::new()));
        resource.recovery = Some(Box::default());
        resource
    }

    fn new(
        id: ResourceId,
        policy: Policy,
        supply: Supply,
        start: MastershipStart,
        seed: u64,
    ) -> Self {
        Self {
            id,
            policy,
            supply,
            parent: None,
            holders: Holders::new(seed),
            start,
            recovery: None,
            mark: None,
            is_recorded: false,
            lowering: Lowerings::default(),
            pace: Pace::new(seed),
        }
    }

    /// Its id.
    pub(crate) fn id(&self) -> &ResourceId {
        &self.id
    }

    /// Whether nothing is lost by forgetting it: it has no holders and no mark, and the parent needs no further request.
    /// Only this knows of recorded leases.
    pub(crate) fn is_empty(&self) -> bool {
        let recovery = self.recovery.as_ref();
        let is_bounded = recovery.is_some_and(|it| self.is_recorded || it.is_bounded());
        self.holders.table.is_empty()
            && !self.has_mark()
            && !is_bounded
            && self
                .parent
                .as_ref()
                .is_none_or(|it| it.lease.is_settled(it.has_leftover(&self.supply)))
    }

    /// Whether the capacity has a source: a template or a parent.
    pub(crate) fn has_source(&self) -> bool {
        self.policy.is_in_force()
    }

    /// Returns the capacity and Σ reserved, if the algorithm keeps to the capacity and Σ reserved exceeds it.
    pub(crate) fn overcommitted(&self) -> Option<(f64, f64)> {
        let (capacity, reserved) = (self.supply.capacity, self.holders.table.reserved());
        let exceeds = self.policy.promises_total() && reserved.exceeds(capacity);
        exceeds.then(|| (capacity.get(), reserved.rounded_down()))
    }

    /// Puts a template in force. None: the template is gone. Below the root it counts only until a parent sends an
    /// algorithm. At the root, `longer_leases` is the longest lease of predecessors by templates other than those in
    /// force.
    pub(crate) fn handle_template(
        &mut self,
        template: Option<Arc<Template>>,
        longer_leases: Duration,
        now: Time,
    ) {
        // While the template was removed, nothing was lowered: no holder was cut.
        self.holders.table.note_changed();
        let was_overcommitted = self.policy.is_in_force() && self.overcommitted().is_some();
        let capacity = template.as_ref().map(|template| template.capacity);
        let algorithm = self.policy.change_template(template);
        if self.parent.is_some() {
            if let Some(algorithm) = algorithm {
                self.set_algorithm(algorithm, now);
            }
            return;
        }
        let (Some(capacity), Some(algorithm)) = (capacity, algorithm) else {
            // Leases run down, and no request is granted anything new.
            self.set_supply(Supply::NONE);
            return;
        };
        self.start.longer_leases = longer_leases;
        self.set_algorithm(algorithm, now);
        self.change_supply(Supply::of_root(capacity), was_overcommitted);
        self.learn_if_lowered();
    }

    /// Takes out some leases that have ended, and ends learning mode and the server's own lease. Returns whether
    /// learning mode ended. If there is more to do, that is due at once.
    pub(crate) fn handle_timeout(&mut self, now: Time) -> bool {
        self.stop_waiting(now);
        self.expire(EXPIRIES_PER_TIMEOUT, now);
        if self.supply.expires_at.is_some_and(|end| end <= now) {
            self.set_supply(Supply::NONE);
        }
        let nobody = self.holders.table.is_empty();
        if let Some(upstream) = self.parent.as_mut().filter(|_| nobody) {
            upstream.lease.forget_refusal(now);
        }
        let is_due = self.recovery.as_ref().is_some_and(|it| it.is_due(now));
        let learned = is_due && self.learns();
        if is_due {
            self.end_recovery();
        }
        learned
    }

    /// Effects of changes since they were last taken.
    pub(crate) fn effects(&self) -> &Effects {
        &self.holders.effects
    }

    /// Takes the effects of changes since the last call.
    pub(crate) fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.holders.effects)
    }

    /// Whether it has had so many holders that dropping it takes long.
    pub(crate) fn has_had_many(&self) -> bool {
        self.holders.table.has_had_many()
    }

    /// When the server's own lease ends. None: it has none, or is the root's.
    pub(crate) fn own_lease_ends(&self) -> Option<Time> {
        self.supply.expires_at
    }

    /// Levels of servers from this one down, as far as this resource's holders tell.
    pub(crate) fn height(&self) -> u32 {
        let heights = self.holders.children().values().filter_map(|slot| {
            let report = self.holders.table.get(*slot)?.report.as_ref()?;
            Some(report.height)
        });
        1 + heights.max().unwrap_or(0)
    }

    /// Asserts that all sums are what their parts add up to. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If one is not.
    pub(crate) fn assert_consistent(&self) {
        self.holders.assert_consistent(self.recovery.as_deref());
        assert_eq!(
            self.recovery.as_ref().map(|it| it.ends) == Some(Ends::Undecided),
            !self.policy.is_answered(),
            "the parent's first answer decides both"
        );
    }

    /// Divides by another algorithm from now on.
    fn set_algorithm(&mut self, algorithm: Arc<Algorithm>, now: Time) {
        self.holders.table.note_changed();
        let before = self.policy.replace_algorithm(algorithm);
        if before.kind != self.policy.algorithm().kind {
            // Below the root, the next request tells the parent which of its answers was understood.
            self.holders.note_demand_changed();
            if let Some(streaming) = &mut self.holders.streaming {
                streaming.misplace_all();
            }
        }
        // Below the root, and if a mark is known, the lease lengths of predecessors do not change any more.
        let is_fixed = match self.parent {
            Some(_) => self.policy.algorithm().learns(),
            None => self.recovery.is_some() && !self.learns() && self.policy.promises_total(),
        };
        let ends = Ends::after_change(
            self.recovery.as_ref().map(|recovery| recovery.ends),
            before.kind.promises_total(),
            is_fixed,
            self.start.ends_anew(self.policy.algorithm(), now),
        );
        match ends {
            Some(ends) => self.recovery.get_or_insert_default().ends = ends,
            None => self.end_recovery(),
        }
        self.holders.note_unsettled();
    }

    fn end_recovery(&mut self) {
        self.holders.table.note_changed();
        if let Some(recovery) = self.recovery.take() {
            self.holders.effects.waste.push(recovery);
        }
        self.holders.note_unsettled();
    }

    /// Returns the remaining time of learning mode. A root that knows the mark of its predecessor does not learn.
    pub(crate) fn learning_remaining(&self, now: Time) -> Option<Duration> {
        self.recovery_remaining(now).filter(|_| self.learns())
    }

    fn learns(&self) -> bool {
        self.recovery.as_ref().is_some_and(|it| !it.is_bounded())
    }

    /// Returns the time for which leases of predecessors may last.
    pub(crate) fn recovery_remaining(&self, now: Time) -> Option<Duration> {
        self.recovery.as_ref()?.remaining(now)
    }

    /// Returns the state on which recovery depends.
    fn situation(&self, now: Time) -> Situation<'_> {
        Situation {
            is_root: self.parent.is_none(),
            supply: &self.supply,
            algorithm: self.policy.algorithm(),
            bounds: self.policy.holder_bounds(),
            length_max: self.mark.as_ref().map_or(Duration::MAX, |it| it.longest()),
            start: &self.start,
            table: &self.holders.table,
            now,
        }
    }

    /// Asks recovery, unless it is over.
    fn in_recovery<T>(
        &self,
        now: Time,
        ask: impl FnOnce(&Recovery, &Situation<'_>) -> T,
    ) -> Option<T> {
        let recovery = self.recovery.as_deref()?;
        Some(ask(recovery, &self.situation(now)))
    }

    /// Changes recovery, unless it is over.
    fn tell_recovery<T>(
        &mut self,
        now: Time,
        tell: impl FnOnce(&mut Recovery, &Situation<'_>) -> T,
    ) -> Option<T> {
        let mut recovery = self.recovery.take()?;
        let told = tell(&mut recovery, &self.situation(now));
        self.recovery = Some(recovery);
        Some(told)
    }

    /// Stops to wait for reports of predecessors' holders, if the time for that is over.
    fn stop_waiting(&mut self, now: Time) {
        if let Some(recovery) = &mut self.recovery
            && recovery.stop_waiting(now)
        {
            self.holders.table.note_changed();
            self.holders.note_unsettled();
        }
    }

    /// Takes out up to `most` leases that have ended ([`Holders::expire`]).
    fn expire(&mut self, most: usize, now: Time) -> usize {
        self.holders.expire(most, self.recovery.as_deref_mut(), now)
    }

    fn set_supply(&mut self, supply: Supply) {
        let was_overcommitted = self.overcommitted().is_some();
        self.change_supply(supply, was_overcommitted);
    }

    fn change_supply(&mut self, supply: Supply, was_overcommitted: bool) {
        self.holders.table.note_changed();
        let lowered = supply.capacity < self.supply.capacity;
        if supply != self.supply {
            self.holders.note_unsettled();
        }
        self.supply = supply;
        // While leases still shrink after an earlier lowering, only a further lowering changes the amounts that holders
        // may keep.
        if self.overcommitted().is_some() && (lowered || !was_overcommitted) {
            let (algorithm, bands) = (self.policy.algorithm(), &self.holders.claims);
            let rule = division::solve_for_all(algorithm, bands, &self.supply);
            self.lowering.add(&rule, !was_overcommitted);
        }
    }
}

impl Resource {
    /// Returns when [`Resource::handle_timeout`] is due.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let due = [
            // When to look for ended leases of holders. It may be too early, if the next one was renewed meanwhile.
            self.holders.table.next_expiry(),
            // When to stop to wait for reports, or to end learning mode: what predecessors granted is over.
            self.recovery.as_ref().and_then(|it| it.next_change()),
            // When to lower the mark.
            self.mark.as_ref().and_then(|it| it.due_at()),
            // When to stop granting, since the own lease from the parent has ended.
            self.supply.expires_at,
            // When to drop a refusal of the parent, if the resource has no holders any more.
            self.parent
                .as_ref()
                .filter(|_| self.holders.table.is_empty())
                .and_then(|it| it.lease.refused_until()),
        ];
        due.into_iter().flatten().min()
    }
}
