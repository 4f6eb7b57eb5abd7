//! One resource: turns the shares of its algorithm into leases that never add up to too much.
//!
//! [`decision`] is where a request becomes a lease, [`lowering`] what is kept when there is less,
//! [`pending`] who waits for the parent, [`learned`] what holders told of that others had granted,
//! [`masterships`] of what masterships a child server's node spoke before, [`processes`] who has a name
//! that several processes ask under; `safe` what clients fall back to in safe mode; [`upstream`] is the resource's own lease from
//! the parent, below the root; here is what else happens to a resource: templates and time.

mod admit;
pub mod ask;
pub mod decision;
pub mod grant;
mod holder_bounds;
pub mod learned;
pub mod lowering;
pub mod masterships;
mod overclaimed;
mod pace;
pub mod pending;
pub mod processes;
mod release;
pub mod reported;
mod safe;
pub mod upstream;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::algorithm;
use crate::bands::Bands;
use crate::demand::Demand;
use crate::id::{HolderKind, HolderName, MastershipId, ResourceId};
use crate::lease_table::{Expired, Holding, LeaseTable, Slot};
use crate::refresh::Invitations;
use crate::resource::admit::Arrivals;
use crate::resource::learned::Learned;
use crate::resource::lowering::Lowerings;
use crate::resource::reported::Reported;
use crate::resource::upstream::Upstream;
use crate::snapshot::Conflict;
use crate::supply::Supply;
use crate::template::{Algorithm, HolderBounds, Template};
use crate::time::Time;
use crate::tolerance::Tolerance;

/// Entries of ended leases looked at by one request. It never does more than this of others' work;
/// what is left is done by the timer, and until then counts as in use, which is the safe side.
const EXPIRIES_PER_REQUEST: usize = 32;

/// How a mastership of the node began, in which a resource is decided about.
#[derive(Clone, Copy, Debug)]
pub struct Beginning {
    /// Which.
    pub mastership: MastershipId,
    /// No earlier master of the node has granted anything since then.
    pub vacant_since: Time,
    /// The longest of their leases by templates other than those in force. Zero: there are none.
    pub longer_leases: Duration,
    /// By how much the clock may be wrong that they are counted on now.
    pub clock_tolerance: Tolerance,
}

/// A resource with holders, or about to have one.
#[derive(Debug)]
pub struct Resource {
    id: ResourceId,
    /// None: the template is gone and the leases run down, or there never was one, below the root.
    template: Option<Arc<Template>>,
    /// The algorithm in force, also while the template is gone.
    algorithm: Algorithm,
    /// What counts of what a single holder says; in force also while the template is gone.
    holder_bounds: HolderBounds,
    supply: Supply,
    /// Where the supply comes from, below the root.
    upstream: Option<Upstream>,
    bands: Bands,
    table: LeaseTable,
    /// The child servers among the holders.
    children: BTreeMap<HolderName, Slot>,
    beginning: Beginning,
    learning_until: Option<Time>,
    learned: Learned,
    reported: Reported,
    /// Two live processes under one name were seen, and nobody was told yet.
    conflict: Option<Conflict>,
    lowering: Lowerings,
    /// Clients that the parent has heard of, of those served here.
    clients_heard: f64,
    invitations: Invitations,
    expired: u64,
    arrivals: Arrivals,
    /// Grows whenever a claim comes, goes or changes.
    demand_version: u64,
    /// Something changed that may change what child servers should have.
    unsettled: bool,
}

impl Resource {
    /// A resource of the root that nobody holds yet.
    pub fn of_root(
        id: ResourceId,
        template: Arc<Template>,
        beginning: Beginning,
        seed: u64,
        now: Time,
    ) -> Self {
        let supply = Supply::of_root(template.capacity);
        let algorithm = template.algorithm.clone();
        let mut resource = Self::new(id, Some(template), algorithm, supply, beginning, seed);
        resource.learn(now);
        resource
    }

    /// A resource that nobody holds yet, and that is to be leased from a parent. The template is
    /// for parents of the old kind, which do not say how to divide it.
    pub fn of_parent(
        id: ResourceId,
        template: Option<Arc<Template>>,
        beginning: Beginning,
        seed: u64,
    ) -> Self {
        let algorithm = template
            .as_ref()
            .map_or_else(Algorithm::default, |template| template.algorithm.clone());
        let beginning = Beginning {
            // The parent tells how long leases last that it granted.
            longer_leases: Duration::ZERO,
            ..beginning
        };
        let mut resource = Self::new(id, template, algorithm, Supply::NONE, beginning, seed);
        resource.upstream = Some(Upstream::default());
        resource
    }

    fn new(
        id: ResourceId,
        template: Option<Arc<Template>>,
        algorithm: Algorithm,
        supply: Supply,
        beginning: Beginning,
        seed: u64,
    ) -> Self {
        let holder_bounds = template
            .as_ref()
            .map_or(HolderBounds::NONE, |template| template.holder_bounds);
        Self {
            id,
            template,
            algorithm,
            holder_bounds,
            supply,
            upstream: None,
            bands: Bands::default(),
            table: LeaseTable::new(seed),
            children: BTreeMap::new(),
            beginning,
            learning_until: None,
            learned: Learned::default(),
            reported: Reported::default(),
            conflict: None,
            lowering: Lowerings::default(),
            clients_heard: 0.0,
            invitations: Invitations::new(seed),
            expired: 0,
            arrivals: Arrivals::default(),
            demand_version: 0,
            unsettled: false,
        }
    }

    /// Its id.
    pub fn id(&self) -> &ResourceId {
        &self.id
    }

    /// Whether nothing is lost by forgetting it: nobody holds anything of it, and the parent need
    /// not be told so any more.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
            && self
                .upstream
                .as_ref()
                .is_none_or(|upstream| upstream.is_idle(&self.supply))
    }

    /// Whether what there is comes from somewhere: from a template, or from a parent.
    pub fn has_source(&self) -> bool {
        self.template.is_some() || self.upstream.is_some()
    }

    /// What there is to share, and Σ reserved, if that is more and more than may be.
    pub fn overcommitted(&self) -> Option<(f64, f64)> {
        let over = self.algorithm.kind.promises_total()
            && self.table.reserved().exceeds(self.supply.capacity);
        over.then(|| {
            (
                self.supply.capacity.get(),
                self.table.reserved().rounded_down(),
            )
        })
    }

    /// The template that is in force from now on; None: it is gone. Below the root it counts only
    /// as long as no parent says how to divide. At the root, `longer_leases` is the longest lease of
    /// predecessors by templates other than those in force.
    pub fn handle_template(
        &mut self,
        template: Option<Arc<Template>>,
        longer_leases: Duration,
        now: Time,
    ) {
        if let Some(upstream) = &self.upstream {
            if let (false, Some(template)) = (upstream.parent_tells_algorithm, &template) {
                self.set_algorithm(template.algorithm.clone(), now);
                self.holder_bounds = template.holder_bounds;
            }
            self.template = template;
            return;
        }
        let Some(template) = template else {
            // What is out runs down; nothing new is given, whatever comes.
            self.template = None;
            self.set_supply(Supply::NONE);
            return;
        };
        // A template that was gone had lowered nothing: nobody was cut meanwhile.
        let was_overcommitted = self.template.is_some() && self.overcommitted().is_some();
        let supply = Supply::of_root(template.capacity);
        self.beginning.longer_leases = longer_leases;
        self.set_algorithm(template.algorithm.clone(), now);
        self.holder_bounds = template.holder_bounds;
        self.template = Some(template);
        self.change_supply(supply, was_overcommitted);
    }

    /// Does up to `entries_max` steps of taking out ended leases, and ends learning mode and the
    /// server's own lease. Returns whether learning mode ended just now.
    pub fn handle_timeout(&mut self, entries_max: usize, now: Time) -> bool {
        self.expire(entries_max, now);
        if self.supply.expires_at.is_some_and(|end| end <= now) {
            self.set_supply(Supply::NONE);
        }
        let nobody = self.table.is_empty();
        if let Some(upstream) = self.upstream.as_mut().filter(|_| nobody) {
            upstream.forget_refusal(now);
        }
        let learned = self.learning_until.is_some_and(|until| until <= now);
        if learned {
            self.end_learning();
        }
        learned
    }

    /// How many holders' last leases have ended since this was last asked.
    pub fn take_expired(&mut self) -> u64 {
        std::mem::take(&mut self.expired)
    }

    /// Two live processes under one name, if that was seen since this was last asked.
    pub fn take_conflict(&mut self) -> Option<Conflict> {
        self.conflict.take()
    }

    /// Whether something changed since this was last asked that may change what child servers
    /// should have.
    pub fn take_unsettled(&mut self) -> bool {
        std::mem::take(&mut self.unsettled)
    }

    /// When [`Resource::handle_timeout`] is due, and whether for the end of learning mode.
    pub fn next_timeout(&self) -> Option<(Time, bool)> {
        let expiry = self.table.next_expiry().map(|time| (time, false));
        let own_expiry = self.supply.expires_at.map(|time| (time, false));
        let learning = self.learning_until.map(|time| (time, true));
        let refusal = self.upstream.as_ref().and_then(Upstream::refused_until);
        let refusal = refusal
            .filter(|_| self.table.is_empty())
            .map(|time| (time, false));
        [expiry, own_expiry, learning, refusal]
            .into_iter()
            .flatten()
            .min()
    }

    /// When the server's own lease ends. None: it has none, or is the root's.
    pub fn own_lease_ends(&self) -> Option<Time> {
        self.supply.expires_at
    }

    /// Levels of servers from this one down, as far as this resource's holders tell.
    pub fn height(&self) -> u32 {
        let heights = self.children.values().filter_map(|slot| {
            let report = self.table.get(*slot)?.report.as_ref()?;
            Some(report.height)
        });
        1 + heights.max().unwrap_or(0)
    }

    /// Bytes of memory behind it.
    pub fn memory_bytes(&self) -> usize {
        let claims = self.bands.memory_bytes() + self.reported.memory_bytes();
        size_of::<Self>() + self.table.memory_bytes() + claims
    }

    /// Asserts that all sums are what their parts add up to. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If one is not.
    pub fn assert_consistent(&self) {
        self.table.assert_consistent();
        self.assert_counted();
        let indexed: usize = self.bands.iter().map(|(_, index)| index.len()).sum();
        let mut claims = 0;
        let mut children = 0;
        for holding in self.table.iter() {
            holding
                .demand
                .for_each_claim(self.algorithm.kind, |_, _| claims += 1);
            children += usize::from(holding.holder.kind == HolderKind::Server);
        }
        assert_eq!(indexed, claims, "claims in the index");
        assert_eq!(self.children.len(), children, "child servers");
        let holders: BTreeSet<u64> = self
            .table
            .iter()
            .map(|it| self.key_of(&it.holder))
            .collect();
        self.reported
            .assert_consistent(|holder| holders.contains(&holder));
    }

    /// Clients served, those below child servers included.
    fn clients(&self) -> f64 {
        self.bands.total_subclients()
    }

    /// Divides by another algorithm from now on.
    fn set_algorithm(&mut self, algorithm: Algorithm, now: Time) {
        let rebanded = algorithm.kind != self.algorithm.kind;
        let promised_total = self.algorithm.kind.promises_total();
        let learned_until = self.learning_until;
        self.algorithm = algorithm;
        if rebanded {
            self.bands = Bands::default();
            let bands = &mut self.bands;
            for holding in self.table.iter() {
                holding
                    .demand
                    .for_each_claim(self.algorithm.kind, |band, claim| bands.insert(band, claim));
            }
            self.demand_version += 1;
        }
        self.learn(now);
        if promised_total && self.upstream.is_some() && self.algorithm.learns() {
            // How long leases last that a predecessor handed out does not change any more.
            self.learning_until = learned_until;
        } else if promised_total {
            // What was learned stays learned: a change may end learning mode, never start it.
            self.learning_until = self.learning_until.min(learned_until);
        }
        // Below the root, it is only now told for how long to learn.
        if self.upstream.is_none() && self.learning_until.is_none() {
            self.reported = Reported::default();
        }
        self.unsettled = true;
    }

    pub(super) fn end_learning(&mut self) {
        self.learning_until = None;
        self.learned.forget();
        self.reported = Reported::default();
        self.unsettled = true;
    }

    /// In learning mode until what predecessors granted is over.
    fn learn(&mut self, now: Time) {
        let learns_for = self.algorithm.learns_for(self.beginning.longer_leases);
        let learns_for = self.beginning.clock_tolerance.report(learns_for);
        let until = self.beginning.vacant_since + learns_for;
        self.learning_until = Some(until).filter(|until| *until > now);
    }

    fn learning_remaining(&self, now: Time) -> Option<Duration> {
        self.learning_until
            .filter(|until| *until > now)
            .map(|until| until.since(now))
    }

    fn set_supply(&mut self, supply: Supply) {
        let was_overcommitted = self.overcommitted().is_some();
        self.change_supply(supply, was_overcommitted);
    }

    fn change_supply(&mut self, supply: Supply, was_overcommitted: bool) {
        let lowered = supply.capacity < self.supply.capacity;
        self.unsettled |= supply != self.supply;
        self.supply = supply;
        // As long as an earlier lowering comes down, only a further one changes who may keep what.
        if self.overcommitted().is_some() && (lowered || !was_overcommitted) {
            let rule = algorithm::solve_for_all(&self.algorithm, &self.bands, &self.supply);
            self.lowering.add(&rule, !was_overcommitted);
        }
    }

    fn expire(&mut self, entries_max: usize, now: Time) {
        for _ in 0..entries_max {
            match self.table.expire_one(now) {
                Expired::NothingDue => break,
                Expired::Nobody => {}
                Expired::Holder(gone) => {
                    self.forget(&gone);
                    self.expired += 1;
                }
                Expired::Part => self.unsettled = true,
            }
        }
    }

    /// After a holder was taken out of the table.
    fn forget(&mut self, gone: &Holding) {
        self.remove_claims(&gone.demand);
        self.note_gone(gone);
        self.forget_word(&gone.holder);
        if self.upstream.is_some() {
            self.learned.note_gone(self.table.name_hash(&gone.holder));
        }
        if gone.holder.kind == HolderKind::Server {
            self.children.remove(&gone.holder.name);
        }
    }

    fn insert_claims(&mut self, demand: &Demand) {
        let bands = &mut self.bands;
        demand.for_each_claim(self.algorithm.kind, |band, claim| bands.insert(band, claim));
        self.demand_version += 1;
        self.unsettled = true;
    }

    fn remove_claims(&mut self, demand: &Demand) {
        let bands = &mut self.bands;
        demand.for_each_claim(self.algorithm.kind, |band, claim| bands.remove(band, claim));
        self.demand_version += 1;
        self.unsettled = true;
    }
}
