//! Which newcomers a resource takes on: a holder without a lease, a priority that nobody has, a curve that
//! grows. Who has a lease keeps it, whatever is full, and refreshes it: a child server whose curve may not
//! grow is served by the one it had.
//!
//! A priority that the template names (`min_share`) may always be used. Of the others, a client's are few
//! altogether, and fewer of one caller, so that none can use them up. A child's are those of many clients,
//! who are not to suffer from what one of them, or another child's, asks; its own server has seen to it that
//! they are not too many.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::admission::weight::Weight;
use crate::admission::{CallerSlot, Change, Gate, points_of};
use crate::demand::Demand;
use crate::id::HolderKind;
use crate::lease_table::{Holding, Slot};
use crate::limit::Limit;
use crate::request::RefusalReason;
use crate::resource::Resource;
use crate::resource::ask::HolderAsk;
use crate::time::Time;

/// How many times as many priorities child servers may bring together as clients may.
const CHILDREN_PRIORITIES_FACTOR: usize = 64;

/// Priorities that the child servers of one caller may bring: those of one child, which may be 1,000.
const CHILDREN_PRIORITIES_PER_CALLER: usize = 1_024;

/// A lease that lasts for longer, and for more than half of its length, may be refreshed later.
const PUT_OFF_MIN: Duration = Duration::from_secs(12);

/// What a resource knows of who brought what.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Who brought which priority, that the template did not name then.
    priorities: BTreeMap<i64, (HolderKind, CallerSlot)>,
    /// What came and went since that was last asked.
    changes: Vec<Change>,
    /// Points of all demand curves.
    points: usize,
}

/// What is let in of a request.
#[derive(Debug)]
pub(super) enum Admitted<'a> {
    /// What is asked.
    AsAsked,
    /// A new holder.
    New(HolderAsk<'a>),
    /// The request, but for more demand than before.
    WithoutGrowth(HolderAsk<'a>),
}

impl Resource {
    /// A client's request takes one of those that there may be of its template. If there are too many, new
    /// holders are refused; and others as long as their lease lasts for long: they come back in time.
    pub(super) fn admit_request(
        &self,
        slot: Option<Slot>,
        ask: &HolderAsk<'_>,
        gate: &mut Gate<'_>,
        now: Time,
    ) -> Result<(), RefusalReason> {
        // Child servers are few, and ask on behalf of many.
        if ask.holder.kind == HolderKind::Server {
            return Ok(());
        }
        let Err(wait) = gate.take_request(now) else {
            return Ok(());
        };
        let lasts = slot.and_then(|slot| self.table.get(slot)).map(|holding| {
            let until = holding.newest().expires_at;
            until.since(now)
        });
        let enough = (self.algorithm.lease_length / 2).max(PUT_OFF_MIN + wait);
        if lasts.is_some_and(|lasts| lasts <= enough) {
            return Ok(());
        }
        Err(gate.too_many_requests(wait))
    }

    /// What is let in of a request.
    ///
    /// # Errors
    ///
    /// What is full, and when to come back; nothing is changed then.
    pub(super) fn admit<'a>(
        &mut self,
        slot: Option<Slot>,
        ask: &HolderAsk<'a>,
        gate: &mut Gate<'_>,
        now: Time,
    ) -> Result<Admitted<'a>, RefusalReason> {
        let new = self.new_priorities(&ask.demand);
        let known = slot.and_then(|slot| self.table.get(slot));
        let known = known.map(|holding| (holding.caller, holding.demand.clone()));
        let kind = ask.holder.kind;
        let Some((caller, before)) = known else {
            if !new.is_empty() {
                let caller = gate.enter(now);
                self.admit_priorities(kind, caller, new.len(), gate)?;
            }
            let holders = self.table.len();
            let caller = gate.admit_lease(ask.holder, &ask.demand, holders, now)?;
            self.note_priorities(&new, kind, caller);
            return Ok(Admitted::New(HolderAsk {
                caller,
                ..ask.clone()
            }));
        };
        let more = points_of(&ask.demand).saturating_sub(points_of(&before));
        let fits = if new.is_empty() {
            Ok(())
        } else {
            self.admit_priorities(kind, caller, new.len(), gate)
        };
        let fits = fits.and_then(|()| match more {
            0 => Ok(()),
            more => gate.admit_growth(caller, more),
        });
        match (fits, kind) {
            (Ok(()), _) => {
                self.note_priorities(&new, kind, caller);
                Ok(Admitted::AsAsked)
            }
            (Err(reason), HolderKind::Client) => Err(reason),
            // It asks on behalf of many: none of them is to lose anything.
            (Err(_), HolderKind::Server) => Ok(Admitted::WithoutGrowth(HolderAsk {
                demand: before,
                ..ask.clone()
            })),
        }
    }

    /// The priorities of a demand that nobody has, and the template does not name.
    fn new_priorities(&self, demand: &Demand) -> BTreeSet<i64> {
        let kind = self.algorithm.kind;
        if !kind.has_bands() {
            return BTreeSet::new();
        }
        let named = &self.algorithm.min_shares;
        demand
            .bands(kind)
            .filter(|band| self.bands.get(*band).is_none() && !named.contains_key(band))
            .collect()
    }

    fn admit_priorities(
        &mut self,
        kind: HolderKind,
        caller: CallerSlot,
        more: usize,
        gate: &mut Gate<'_>,
    ) -> Result<(), RefusalReason> {
        let bands = &self.bands;
        let brought = &mut self.arrivals.priorities;
        brought.retain(|band, _| bands.get(*band).is_some());
        let (has, most, of_one) = match kind {
            HolderKind::Client => {
                let named = self.algorithm.min_shares.keys();
                let named = named.filter(|band| bands.get(**band).is_some()).count();
                let by_children = brought
                    .values()
                    .filter(|(kind, _)| *kind != HolderKind::Client);
                let others = bands.len().saturating_sub(named + by_children.count());
                let of_one = gate.limits.priorities_per_caller_max;
                (others, gate.limits.priorities_max, of_one)
            }
            HolderKind::Server => (
                bands.len(),
                gate.limits.priorities_max * CHILDREN_PRIORITIES_FACTOR,
                CHILDREN_PRIORITIES_PER_CALLER,
            ),
        };
        let mine = brought.values().filter(|by| **by == (kind, caller)).count();
        if caller != CallerSlot::NOBODY {
            gate.admit_priorities(Limit::PrioritiesPerCaller, mine, more, of_one)?;
        }
        gate.admit_priorities(Limit::Priorities, has, more, most)?;
        gate.admit_bands(more)
    }

    fn note_priorities(&mut self, new: &BTreeSet<i64>, kind: HolderKind, caller: CallerSlot) {
        let brought = new.iter().map(|band| (*band, (kind, caller)));
        self.arrivals.priorities.extend(brought);
    }

    /// A holder was put in.
    pub(super) fn note_came(&mut self, ask: &HolderAsk<'_>) {
        let change = match ask.holder.kind {
            HolderKind::Client => Change::ClientCame(ask.caller),
            HolderKind::Server => {
                let points = points_of(&ask.demand);
                self.arrivals.points += points;
                Change::ChildCame(ask.holder.name.clone(), ask.caller, points)
            }
        };
        self.arrivals.changes.push(change);
    }

    /// A holder was taken out.
    pub(super) fn note_gone(&mut self, gone: &Holding) {
        let change = match gone.holder.kind {
            HolderKind::Client => Change::ClientGone(gone.caller),
            HolderKind::Server => {
                let points = points_of(&gone.demand);
                self.arrivals.points -= points;
                Change::ChildGone(gone.holder.name.clone(), gone.caller, points)
            }
        };
        self.arrivals.changes.push(change);
    }

    /// A holder asks for something else than before.
    pub(super) fn note_demand(&mut self, caller: CallerSlot, before: &Demand, after: &Demand) {
        let (before, after) = (points_of(before), points_of(after));
        if before != after {
            self.arrivals.points = self.arrivals.points + after - before;
            self.arrivals
                .changes
                .push(Change::Points(caller, before, after));
        }
    }

    /// Which holders came and went since that was last asked.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.arrivals.changes)
    }

    /// What takes memory.
    pub fn weight(&self) -> Weight {
        Weight {
            leases: self.table.len() - self.children.len(),
            curves: self.children.len(),
            points: self.arrivals.points,
            bands: self.bands.len().saturating_sub(1),
            name_bytes: self.table.name_bytes(),
        }
    }

    /// How many holders there are.
    pub fn holders(&self) -> usize {
        self.table.len()
    }

    /// Asserts that what is counted is there. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub(super) fn assert_counted(&self) {
        let points: usize = self.table.iter().map(|it| points_of(&it.demand)).sum();
        assert_eq!(self.arrivals.points, points, "points of curves");
        assert!(self.arrivals.changes.is_empty(), "changes nobody was told");
    }
}
