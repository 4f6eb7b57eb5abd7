//! One resource: turns the shares of its algorithm into leases that never add up to too much.
//!
//! Its parts: [`ledger`], its holders and their leases; [`policy`], the algorithm that divides it; [`Supply`], the
//! capacity; [`learning_mode`]; and, below the root, [`parent_lease`], its lease from the parent.
//!
//! Its steps: [`decide`] turns a request into a lease; [`lowering`] keeps leases when the capacity is lowered;
//! [`repeat`] answers repeated requests without a decision; [`pending`] lets holders wait for the parent;
//! [`learned`](crate::continuity::learned) keeps reports of leases that other masterships granted; [`masterships`]
//! knows the earlier masterships of a child server's node; [`processes`] decides which of several processes has a name;
//! `safe` computes the capacity that clients use in safe mode; [`timer`] lists the times at which work is due;
//! [`aggregate`] sums the holders' demand for the parent. This file handles templates and time.

mod admit;
mod aggregate;
mod arrivals;
pub mod ask;
pub(crate) mod child_lease;
mod decide;
mod grant;
mod learning_mode;
mod ledger;
mod lowering;
mod masterships;
mod overclaimed;
mod pace;
pub(crate) mod parent_answer;
mod parent_lease;
pub mod parent_request;
mod pending;
mod policy;
mod processes;
pub(crate) mod refresh;
mod release;
mod repeat;
mod replaced;
pub(crate) mod retry;
mod safe;
pub(crate) mod timer;
mod view;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use crate::admission::weight::counted;
use crate::claims::Demand;
use crate::division::{self, Rule, Supply};
use crate::id::{MastershipId, ResourceId};
use crate::messages::Conflict;
use crate::resource::learning_mode::{LearningMode, Relearns};
use crate::resource::ledger::Ledger;
use crate::resource::lowering::Lowerings;
use crate::resource::parent_request::ParentFacts;
use crate::resource::policy::Policy;
use crate::resource::refresh::Invitations;
use crate::templates::{Algorithm, Template};
use crate::time::Time;
use doorward_time::tolerance::Tolerance;

/// Number of scheduled leases that one request checks. The timer does the rest. Until then, ended leases count as in
/// use, which is the safe side.
const EXPIRIES_PER_REQUEST: usize = 32;

/// Number of scheduled leases that one timeout checks. If there are more, the timer is due again at once.
const EXPIRIES_PER_TIMEOUT: usize = 256;

/// The beginning of the mastership in which a resource is decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    /// The mastership.
    pub(crate) mastership: MastershipId,
    /// No earlier master of the node has granted anything since then. None: no lease of it is left.
    pub(crate) vacant_since: Option<Time>,
    /// The longest of their leases by templates other than those in force. Zero: there are none.
    pub(crate) longer_leases: Duration,
    /// Largest error of the clock that measures them now.
    pub(crate) clock_tolerance: Tolerance,
}

/// Returns the end of leases of a given length that were granted before a node became vacant.
pub(crate) fn over_after(vacant_since: Option<Time>, lasts: Duration) -> Time {
    vacant_since.map_or(Time::ZERO, |since| since + lasts)
}

/// A resource with holders, or about to have one. A request of many resources waits for the memory of each, so what every
/// request reads comes first and stands together, here, in the [ledger](Ledger) and in its [table](crate::holders::LeaseTable).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Resource {
    id: ResourceId,
    policy: Policy,
    supply: Supply,
    learning: LearningMode,
    /// The source of the supply, below the root.
    upstream: Option<Box<ParentFacts>>,
    /// Holders whose last lease has ended since the last call of `take_expired`.
    expired: u32,
    ledger: Ledger,
    beginning: Beginning,
    /// The last conflict of two live processes under one name that is not reported yet.
    conflict: Option<Box<Conflict>>,
    lowering: Lowerings,
    invitations: Invitations,
}

/// Values that are not needed any more, and may be large. To drop a million leases takes a good part of a second.
pub(crate) type Garbage = Vec<Box<dyn Any + Send>>;

impl Resource {
    /// A resource of the root, without holders yet.
    pub(crate) fn of_root(
        id: ResourceId,
        template: Arc<Template>,
        beginning: Beginning,
        seed: u64,
        now: Time,
    ) -> Self {
        let supply = Supply::of_root(template.capacity);
        let policy = Policy::of_root(template);
        let mut resource = Self::new(id, policy, supply, beginning, seed);
        resource.learning = resource.learning_from(now);
        resource
    }

    /// A resource without holders yet, which is leased from a parent. The template is
    /// for Doorman parents, which do not send an algorithm.
    pub(crate) fn of_parent(
        id: ResourceId,
        template: Option<Arc<Template>>,
        beginning: Beginning,
        seed: u64,
    ) -> Self {
        let beginning = Beginning {
            // The parent sends how long leases last that it granted.
            longer_leases: Duration::ZERO,
            ..beginning
        };
        let policy = Policy::of_parent(template);
        let mut resource = Self::new(id, policy, Supply::NONE, beginning, seed);
        resource.upstream = Some(Box::new(ParentFacts::new()));
        resource.learning = LearningMode::Undecided;
        resource
    }

    fn new(
        id: ResourceId,
        policy: Policy,
        supply: Supply,
        beginning: Beginning,
        seed: u64,
    ) -> Self {
        Self {
            id,
            policy,
            supply,
            upstream: None,
            ledger: Ledger::new(seed),
            beginning,
            learning: LearningMode::Over,
            conflict: None,
            lowering: Lowerings::default(),
            invitations: Invitations::new(seed),
            expired: 0,
        }
    }

    /// Its id.
    pub(crate) fn id(&self) -> &ResourceId {
        &self.id
    }

    /// Whether nothing is lost by forgetting it: it has no holders, and the parent needs
    /// no further request.
    pub(crate) fn is_empty(&self) -> bool {
        self.ledger.is_empty()
            && self
                .upstream
                .as_ref()
                .is_none_or(|upstream| upstream.lease.is_settled(self.has_leftover()))
    }

    /// Whether the capacity has a source: a template or a parent.
    pub(crate) fn has_source(&self) -> bool {
        self.policy.is_in_force()
    }

    /// Returns the capacity and Σ reserved, if the algorithm keeps to the capacity and Σ reserved exceeds it.
    pub(crate) fn overcommitted(&self) -> Option<(f64, f64)> {
        self.is_overcommitted().then(|| {
            (
                self.supply.capacity.get(),
                self.ledger.table().reserved().rounded_down(),
            )
        })
    }

    /// Whether the algorithm keeps to the capacity and Σ reserved exceeds it.
    fn is_overcommitted(&self) -> bool {
        self.policy.algorithm().kind.promises_total()
            && self.ledger.table().reserved().exceeds(self.supply.capacity)
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
        self.ledger.note_changed();
        let was_overcommitted = self.policy.is_in_force() && self.overcommitted().is_some();
        let capacity = template.as_ref().map(|template| template.capacity);
        let algorithm = self.policy.change_template(template);
        if self.upstream.is_some() {
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
        self.beginning.longer_leases = longer_leases;
        self.set_algorithm(algorithm, now);
        self.change_supply(Supply::of_root(capacity), was_overcommitted);
    }

    /// Takes out some leases that have ended, and ends learning mode and the server's own lease. Returns whether learning
    /// mode ended. If there is more to do, that is due at once.
    pub(crate) fn handle_timeout(&mut self, now: Time) -> bool {
        self.expire(EXPIRIES_PER_TIMEOUT, now);
        if self.supply.expires_at.is_some_and(|end| end <= now) {
            self.set_supply(Supply::NONE);
        }
        let nobody = self.ledger.is_empty();
        if let Some(upstream) = self.upstream.as_mut().filter(|_| nobody) {
            upstream.lease.forget_refusal(now);
        }
        let learned = self.learning.is_due(now);
        if learned {
            self.end_learning();
        }
        learned
    }

    /// Values that may be large, and are to be dropped elsewhere.
    pub(crate) fn take_waste(&mut self) -> Garbage {
        self.ledger.take_waste()
    }

    /// Whether it has had so many holders that dropping it takes long.
    pub(crate) fn has_had_many(&self) -> bool {
        self.ledger.has_had_many()
    }

    /// Takes the number of holders whose last lease has ended since the last call.
    pub(crate) fn take_expired(&mut self) -> u64 {
        u64::from(std::mem::take(&mut self.expired))
    }

    /// Takes the last conflict of two live processes under one name since the last call.
    pub(crate) fn take_conflict(&mut self) -> Option<Box<Conflict>> {
        self.conflict.take()
    }

    /// Whether a `take_` method has something to return.
    pub(crate) fn has_untaken(&self) -> bool {
        self.expired > 0 || self.conflict.is_some() || self.ledger.has_untaken()
    }

    /// Takes whether something has changed since the last call that may change the shares of child servers.
    pub(crate) fn take_unsettled(&mut self) -> bool {
        self.ledger.take_unsettled()
    }

    /// When the server's own lease ends. None: it has none, or is the root's.
    pub(crate) fn own_lease_ends(&self) -> Option<Time> {
        self.supply.expires_at
    }

    /// Levels of servers from this one down, as far as this resource's holders tell.
    pub(crate) fn height(&self) -> u32 {
        let heights = self.ledger.children().values().filter_map(|slot| {
            let report = self.ledger.get(*slot)?.report.as_ref()?;
            Some(report.height)
        });
        1 + heights.max().unwrap_or(0)
    }

    /// Bytes of memory behind it.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.ledger.memory_bytes()
    }

    /// Asserts that all sums are what their parts add up to. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If one is not.
    pub(crate) fn assert_consistent(&self) {
        self.ledger.assert_consistent();
        assert_eq!(
            self.learning == LearningMode::Undecided,
            !self.policy.is_answered(),
            "the parent's first answer decides both"
        );
    }

    /// The division of the capacity, as far as it concerns that demand.
    fn rule_for(&self, demand: &Demand) -> Rule {
        let algorithm = self.policy.algorithm();
        division::solve(algorithm, self.ledger.bands(), &self.supply, demand)
    }

    /// The division of the capacity among all holders.
    fn rule_for_all(&self) -> Rule {
        let algorithm = self.policy.algorithm();
        division::solve_for_all(algorithm, self.ledger.bands(), &self.supply)
    }

    /// Divides by another algorithm from now on.
    fn set_algorithm(&mut self, algorithm: Algorithm, now: Time) {
        self.ledger.note_changed();
        let before = self.policy.replace_algorithm(algorithm);
        if before.kind != self.policy.algorithm().kind {
            // Below the root, the next request tells the parent which of its answers was understood.
            self.ledger.note_demand_changed();
        }
        let promised_total = before.kind.promises_total();
        let relearns = if !promised_total {
            Relearns::Anew
        } else if self.upstream.is_some() && self.policy.algorithm().learns() {
            Relearns::AsBefore
        } else {
            Relearns::NoLonger
        };
        let anew = self.learning_from(now);
        self.learning.change_algorithm(relearns, anew);
        // Below the root, the learning time is known only now.
        if self.upstream.is_none() && !self.learning.is_on() {
            self.ledger.forget_reported();
        }
        self.ledger.note_unsettled();
    }

    pub(super) fn end_learning(&mut self) {
        self.ledger.note_changed();
        self.learning.end();
        self.ledger.forget_reports();
        self.ledger.note_unsettled();
    }

    /// Learning mode by the algorithm in force, until leases of predecessors have ended.
    fn learning_from(&self, now: Time) -> LearningMode {
        let learns_for = self
            .policy
            .algorithm()
            .learns_for(self.beginning.longer_leases);
        let learns_for = self.beginning.clock_tolerance.report(learns_for);
        LearningMode::begun(over_after(self.beginning.vacant_since, learns_for), now)
    }

    /// Whether this server may not know all leases: it is in learning mode, or does not know yet how long learning mode
    /// lasts.
    fn is_learning(&self) -> bool {
        self.learning.is_on()
    }

    fn learning_remaining(&self, now: Time) -> Option<Duration> {
        self.learning.remaining(now)
    }

    /// Removes holders whose leases have ended, and checks up to `most` of them. Returns the number checked.
    fn expire(&mut self, most: usize, now: Time) -> usize {
        let (expired, looked_at) = self.ledger.expire(most, now);
        self.expired += counted(expired);
        looked_at
    }

    fn set_supply(&mut self, supply: Supply) {
        let was_overcommitted = self.overcommitted().is_some();
        self.change_supply(supply, was_overcommitted);
    }

    fn change_supply(&mut self, supply: Supply, was_overcommitted: bool) {
        self.ledger.note_changed();
        let lowered = supply.capacity < self.supply.capacity;
        if supply != self.supply {
            self.ledger.note_unsettled();
        }
        self.supply = supply;
        // While leases still shrink after an earlier lowering, only a further lowering changes the amounts that holders
        // may keep.
        if self.overcommitted().is_some() && (lowered || !was_overcommitted) {
            let rule = self.rule_for_all();
            self.lowering.add(&rule, !was_overcommitted);
        }
    }
}
