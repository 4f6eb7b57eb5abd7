//! The things that callers brought to one resource: bytes of holders, and priorities that the template does not name.

use std::collections::{BTreeMap, BTreeSet};

use crate::admission::weight::{self, counted};
use crate::admission::{AdmissionGate, CallerSlot, Charge, Full};
use crate::claims::{Bands, Demand};
use crate::holders::Holding;
use crate::id::HolderKind;

/// Priorities of child servers for each priority of clients: a child server asks on behalf of many clients.
const CHILDREN_PRIORITIES_FACTOR: usize = 64;

/// One caller may bring this part of the priorities, so that it cannot use them up.
const PART_OF_ONE_CALLER: usize = 4;

/// The origin of a priority: a kind of holder, of a caller.
pub(super) type Brings = (HolderKind, CallerSlot);

/// The things that callers brought to one resource.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Priorities that the template did not name when they came, with their origin. Absent: there are none.
    #[expect(clippy::box_collection, reason = "without it, it takes one word")]
    priorities: Option<Box<BTreeMap<i64, Brings>>>,
    /// Takes the changes of bytes since the last call.
    charges: Vec<Charge>,
    /// Points of all demand curves.
    points: u32,
    /// Names of holders that are not kept in place.
    name_bytes: u32,
}

impl Arrivals {
    /// Checks that `more` new priorities may be brought. `named` are those of the template.
    ///
    /// # Errors
    ///
    /// The limit is reached.
    pub(super) fn admit_priorities(
        &mut self,
        by: Brings,
        more: usize,
        bands: &Bands,
        named: &BTreeMap<i64, f64>,
        gate: &mut AdmissionGate<'_>,
    ) -> Result<(), Full> {
        let brought = self.priorities.get_or_insert_default();
        let (kind, caller) = by;
        let max = gate.limits.priorities_max;
        let (has, max) = match kind {
            HolderKind::Client => {
                let named = named.keys().filter(|band| bands.get(**band).is_some());
                let by_children = brought
                    .iter()
                    .filter(|(_, (kind, _))| *kind != HolderKind::Client)
                    .filter(|(band, _)| bands.get(**band).is_some());
                let others = named.count() + by_children.count();
                (bands.len().saturating_sub(others), max)
            }
            HolderKind::Server => (bands.len(), max * CHILDREN_PRIORITIES_FACTOR),
        };
        if caller != CallerSlot::NOBODY {
            let mine = brought.values().filter(|it| **it == by).count();
            gate.admit_priorities(mine, more, max.div_ceil(PART_OF_ONE_CALLER))?;
        }
        gate.admit_priorities(has, more, max)
    }

    /// Forgets the callers of priorities that have no holders any more. `bands` are all priorities with holders.
    pub(super) fn forget_priorities(&mut self, bands: &Bands) {
        if let Some(brought) = &mut self.priorities {
            brought.retain(|band, _| bands.get(*band).is_some());
        }
    }

    /// Notes that `by` brought these priorities.
    pub(super) fn note_priorities(&mut self, new: &BTreeSet<i64>, by: Brings) {
        if !new.is_empty() {
            let brought = self.priorities.get_or_insert_default();
            brought.extend(new.iter().map(|band| (*band, by)));
        }
    }

    /// Notes a new holder.
    pub(super) fn note_came(&mut self, holding: &Holding) {
        self.name_bytes += name_bytes(holding);
        self.points += points(&holding.demand);
        self.charge(holding, 0, bytes_of(holding));
    }

    /// Notes that a holder is gone.
    pub(super) fn note_gone(&mut self, gone: &Holding) {
        self.name_bytes -= name_bytes(gone);
        self.points -= points(&gone.demand);
        self.charge(gone, bytes_of(gone), 0);
    }

    /// Notes that a holder's demand changes.
    pub(super) fn note_demand(&mut self, holding: &Holding, after: &Demand) {
        if holding.kind == HolderKind::Server {
            self.points = self.points + points(after) - points(&holding.demand);
            let bytes = holder_bytes(holding.name.as_str(), after);
            self.charge(holding, bytes_of(holding), bytes);
        }
    }

    fn charge(&mut self, holding: &Holding, before: usize, after: usize) {
        if before != after && holding.caller != CallerSlot::NOBODY {
            self.charges.push(Charge {
                caller: holding.caller,
                before,
                after,
            });
        }
    }

    /// Whether there are charges.
    pub(super) fn has_charges(&self) -> bool {
        !self.charges.is_empty()
    }

    /// Takes the changes of bytes since the last call.
    pub(super) fn take_charges(&mut self) -> Vec<Charge> {
        std::mem::take(&mut self.charges)
    }

    /// Points of all demand curves.
    pub(super) fn points(&self) -> u32 {
        self.points
    }

    /// Bytes of the names of holders that are not kept in place.
    pub(super) fn name_bytes(&self) -> u32 {
        self.name_bytes
    }

    /// Asserts that what is counted is there. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub(super) fn assert_consistent<'a>(&self, holders: impl Iterator<Item = &'a Holding>) {
        let of = |it: &Holding| (points(&it.demand), name_bytes(it));
        let sums = holders
            .map(of)
            .fold((0, 0), |(points, names), (more, name)| {
                (points + more, names + name)
            });
        assert_eq!((self.points, self.name_bytes), sums, "points and names");
        assert!(self.charges.is_empty(), "uncounted charges");
    }
}

/// Bytes that a holder of that name brings with that demand.
pub(super) fn holder_bytes(name: &str, demand: &Demand) -> usize {
    match demand {
        Demand::Client { .. } => weight::client_bytes(name),
        Demand::Server(demand) => weight::child_bytes(name, demand.points(), demand.bands().len()),
    }
}

/// Bytes that a holder has brought.
pub(super) fn bytes_of(holding: &Holding) -> usize {
    holder_bytes(holding.name.as_str(), &holding.demand)
}

/// Points of the curves of a demand.
fn points(demand: &Demand) -> u32 {
    match demand {
        Demand::Client { .. } => 0,
        Demand::Server(demand) => counted(demand.points()),
    }
}

/// Bytes of a holder's name if it is not kept in place: a few hundred.
fn name_bytes(holding: &Holding) -> u32 {
    counted(weight::name_bytes(holding.name.as_str()))
}
