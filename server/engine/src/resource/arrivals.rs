//! Who brought what of one resource: priorities that its template does not name, points of demand curves, long names;
//! and who came and went since that was last asked, for the books of the node.

use std::collections::{BTreeMap, BTreeSet};

use crate::admission::weight::{self, counted};
use crate::admission::{AdmissionGate, CallerSlot, HolderChange, points_of};
use crate::bands::Bands;
use crate::demand::Demand;
use crate::id::HolderKind;
use crate::lease_table::Holding;
use crate::limit::Limit;
use crate::request::RefusalReason;

/// How many times as many priorities child servers may bring together as clients may.
const CHILDREN_PRIORITIES_FACTOR: usize = 64;

/// Priorities that the child servers of one caller may bring: those of one child, which may be 1,000.
const CHILDREN_PRIORITIES_PER_CALLER: usize = 1_024;

/// Who brings something: what kind of holder, of which caller.
pub(super) type Brings = (HolderKind, CallerSlot);

/// What a resource knows of who brought what.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Who brought which priority, that the template did not name then. Absent: nobody has brought any.
    #[expect(clippy::box_collection, reason = "without it, it takes one word")]
    priorities: Option<Box<BTreeMap<i64, Brings>>>,
    /// What came and went since that was last asked.
    changes: Vec<HolderChange>,
    /// Points of all demand curves.
    points: u32,
    /// Names of holders that are not kept in place.
    name_bytes: u32,
}

impl Arrivals {
    /// Whether so many priorities more may be brought, of which nobody has any. `named` are those of the
    /// template.
    ///
    /// # Errors
    ///
    /// What is full.
    pub(super) fn admit_priorities(
        &mut self,
        by: Brings,
        more: usize,
        bands: &Bands,
        named: &BTreeMap<i64, f64>,
        gate: &mut AdmissionGate<'_>,
    ) -> Result<(), RefusalReason> {
        let brought = self.priorities.get_or_insert_default();
        let (kind, caller) = by;
        let (has, most, of_one) = match kind {
            HolderKind::Client => {
                let named = named.keys().filter(|band| bands.get(**band).is_some());
                let by_children = brought
                    .iter()
                    .filter(|(_, (kind, _))| *kind != HolderKind::Client)
                    .filter(|(band, _)| bands.get(**band).is_some());
                let others = bands
                    .len()
                    .saturating_sub(named.count() + by_children.count());
                let of_one = gate.limits.priorities_per_caller_max;
                (others, gate.limits.priorities_max, of_one)
            }
            HolderKind::Server => (
                bands.len(),
                gate.limits.priorities_max * CHILDREN_PRIORITIES_FACTOR,
                CHILDREN_PRIORITIES_PER_CALLER,
            ),
        };
        let mine = brought.values().filter(|it| **it == by).count();
        if caller != CallerSlot::NOBODY {
            gate.admit_priorities(Limit::PrioritiesPerCaller, mine, more, of_one)?;
        }
        gate.admit_priorities(Limit::Priorities, has, more, most)?;
        gate.admit_bands(more)
    }

    /// Forgets who brought the priorities that nobody has any more. `bands` are all that somebody has.
    pub(super) fn forget_priorities(&mut self, bands: &Bands) {
        if let Some(brought) = &mut self.priorities {
            brought.retain(|band, _| bands.get(*band).is_some());
        }
    }

    /// These priorities were let in.
    pub(super) fn note_priorities(&mut self, new: &BTreeSet<i64>, by: Brings) {
        if !new.is_empty() {
            let brought = self.priorities.get_or_insert_default();
            brought.extend(new.iter().map(|band| (*band, by)));
        }
    }

    /// A holder was put in.
    pub(super) fn note_came(&mut self, holding: &Holding) {
        self.name_bytes += name_bytes(holding);
        let change = match holding.kind {
            HolderKind::Client => HolderChange::ClientCame(holding.caller),
            HolderKind::Server => {
                let points = points_of(&holding.demand);
                self.points += counted(points);
                HolderChange::ChildCame(holding.name.clone(), holding.caller, points)
            }
        };
        self.changes.push(change);
    }

    /// A holder was taken out.
    pub(super) fn note_gone(&mut self, gone: &Holding) {
        self.name_bytes -= name_bytes(gone);
        let change = match gone.kind {
            HolderKind::Client => HolderChange::ClientGone(gone.caller),
            HolderKind::Server => {
                let points = points_of(&gone.demand);
                self.points -= counted(points);
                HolderChange::ChildGone(gone.name.clone(), gone.caller, points)
            }
        };
        self.changes.push(change);
    }

    /// A holder asks for something else than before.
    pub(super) fn note_demand(&mut self, caller: CallerSlot, before: &Demand, after: &Demand) {
        let (before, after) = (points_of(before), points_of(after));
        if before != after {
            self.points = self.points + counted(after) - counted(before);
            self.changes
                .push(HolderChange::Points(caller, before, after));
        }
    }

    /// Whether anybody came or went since that was last asked.
    pub(super) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Who came and went since that was last asked.
    pub(super) fn take_changes(&mut self) -> Vec<HolderChange> {
        std::mem::take(&mut self.changes)
    }

    /// Points of all demand curves.
    pub(super) fn points(&self) -> u32 {
        self.points
    }

    /// What names of holders take that are not kept in place.
    pub(super) fn name_bytes(&self) -> u32 {
        self.name_bytes
    }

    /// Asserts that what is counted is there. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub(super) fn assert_consistent<'a>(&self, holders: impl Iterator<Item = &'a Holding>) {
        let of = |it: &Holding| (counted(points_of(&it.demand)), name_bytes(it));
        let sums = holders
            .map(of)
            .fold((0, 0), |(points, names), (more, name)| {
                (points + more, names + name)
            });
        assert_eq!((self.points, self.name_bytes), sums, "points and names");
        assert!(self.changes.is_empty(), "changes that nobody has counted");
    }
}

/// What a holder's name takes if it is not kept in place: a few hundred bytes.
fn name_bytes(holding: &Holding) -> u32 {
    counted(weight::name_bytes(holding.name.as_str()))
}
