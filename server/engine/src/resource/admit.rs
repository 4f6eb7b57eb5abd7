//! Admission of newcomers to a resource: a holder without a lease, a priority without holders, a curve that grows. A
//! holder with a lease keeps and refreshes it, whatever is full: a child server whose curve may not grow is served by
//! its former curve.
//!
//! A priority that the template names (`min_share`) may always be used. Clients can bring a few other priorities
//! altogether, and one caller fewer, so that no caller can use them up. A child's priorities come from many clients.
//! These must not suffer from requests of one of them, or of another child's clients. The child itself limits their
//! number.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::admission::weight::BAND_BYTES;
use crate::admission::{AdmissionGate, CallerSlot, Charge, Full, weight};
use crate::claims::{Bands, Demand};
use crate::holders::{HolderAsk, Holding, Slot};
use crate::id::HolderKind;
use crate::messages::RefusalReason;
use crate::resource::Resource;
use crate::resource::ask::Admitted;
use crate::time::Time;

/// A lease that lasts for longer, and for more than half of its length, may be refreshed later.
const PUT_OFF_MIN: Duration = Duration::from_secs(12);

impl Resource {
    /// Takes a token of the template for a client's request. If there is none, the request of a new holder is refused;
    /// that of a known holder only while its lease lasts for long, so that it comes back in time.
    pub(super) fn admit_request(
        &self,
        slot: Option<Slot>,
        ask: &HolderAsk<'_>,
        gate: &mut AdmissionGate<'_>,
        now: Time,
    ) -> Result<(), RefusalReason> {
        // Child servers are few, and ask on behalf of many.
        if ask.holder().kind == HolderKind::Server {
            return Ok(());
        }
        let Err(wait) = gate.take_request(now) else {
            return Ok(());
        };
        let lasts = slot
            .and_then(|slot| self.holders.table.get(slot))
            .map(|holding| {
                let until = holding.newest().expires_at;
                until.since(now)
            });
        let enough = (self.policy.algorithm().lease_length / 2).max(PUT_OFF_MIN + wait);
        if lasts.is_some_and(|lasts| lasts <= enough) {
            return Ok(());
        }
        Err(gate.too_many_requests(wait).into())
    }

    /// Decides which part of a request is let in.
    ///
    /// # Errors
    ///
    /// The limit that is reached, and when to come back; nothing is changed then.
    pub(super) fn admit(
        &mut self,
        slot: Option<Slot>,
        ask: &HolderAsk<'_>,
        gate: &mut AdmissionGate<'_>,
        now: Time,
    ) -> Result<Admitted, RefusalReason> {
        let kind = ask.holder().kind;
        let known = slot.and_then(|slot| self.holders.table.get(slot));
        if kind == HolderKind::Client
            && known.is_some_and(|it| it.demand.priority() == ask.demand.priority())
        {
            // There is nothing that it could bring.
            return Ok(Admitted::AsAsked);
        }
        let new = self
            .holders
            .new_priorities(&ask.demand, self.policy.algorithm());
        let named = &self.policy.algorithm().min_shares;
        let known = known.map(|it| (it.caller, bytes_of(it)));
        let mut bytes = holder_bytes(ask.holder().name.as_str(), &ask.demand);
        if kind == HolderKind::Client {
            // The bytes of a child server have its priorities in them.
            bytes += new.len() * BAND_BYTES;
        }
        let Some((caller, bytes_before)) = known else {
            if !new.is_empty() {
                let caller = gate.enter(now);
                let by = (kind, caller);
                let (arrivals, claims) = (&mut self.holders.arrivals, &self.holders.claims);
                arrivals.admit_priorities(by, new.len(), claims, named, gate)?;
            }
            let holders = self.holders.table.len();
            if kind == HolderKind::Client && gate.counts_clients() {
                let caller = gate.enter(now);
                self.holders.arrivals.admit_client_of(caller, gate)?;
            }
            let caller = gate.admit_holder(kind, bytes, holders, now)?;
            self.holders.arrivals.note_priorities(&new, (kind, caller));
            return Ok(Admitted::New(caller));
        };
        let more = bytes.saturating_sub(bytes_before);
        let (arrivals, claims) = (&mut self.holders.arrivals, &self.holders.claims);
        let fits = arrivals.admit_priorities((kind, caller), new.len(), claims, named, gate);
        let fits = fits.and_then(|()| gate.admit_bytes(caller, more));
        match (fits, kind) {
            (Ok(()), _) => {
                self.holders.arrivals.note_priorities(&new, (kind, caller));
                Ok(Admitted::AsAsked)
            }
            (Err(full), HolderKind::Client) => Err(full.into()),
            // It asks on behalf of many: none of them is to lose anything.
            (Err(_), HolderKind::Server) => Ok(Admitted::WithoutGrowth),
        }
    }

    /// Bytes of each holder, by the caller that brought it. For assertions.
    pub(crate) fn brought(&self) -> impl Iterator<Item = (CallerSlot, usize)> {
        let holders = self.holders.table.iter();
        holders.map(|holding| (holding.caller, bytes_of(holding)))
    }

    /// Bytes of all holders, as estimated.
    pub(crate) fn holder_bytes(&self) -> usize {
        self.holders.bytes()
    }
}

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
    /// Clients of each caller. Absent: they are not counted.
    #[expect(clippy::box_collection, reason = "without it, it takes one word")]
    clients: Option<Box<BTreeMap<CallerSlot, usize>>>,
    /// Bytes of all holders, without their priorities.
    bytes: usize,
}

impl Arrivals {
    /// Checks that `more` new priorities may be brought. `named` are those of the template, `bands` those with holders.
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
        if more == 0 {
            return Ok(());
        }
        let brought = self.priorities.get_or_insert_default();
        // Priorities without holders count no more.
        brought.retain(|band, _| bands.get(*band).is_some());
        let (kind, caller) = by;
        let max = gate.limits.priorities_max;
        let (has, max) = match kind {
            HolderKind::Client => {
                let named = named.keys().filter(|band| bands.get(**band).is_some());
                let by_children = brought
                    .values()
                    .filter(|(kind, _)| *kind != HolderKind::Client);
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

    /// Checks that a caller may bring one more client.
    ///
    /// # Errors
    ///
    /// The limit is reached.
    pub(super) fn admit_client_of(
        &mut self,
        caller: CallerSlot,
        gate: &mut AdmissionGate<'_>,
    ) -> Result<(), Full> {
        let clients = self.clients.get_or_insert_default();
        if caller == CallerSlot::NOBODY {
            return Ok(());
        }
        gate.admit_client(clients.get(&caller).copied().unwrap_or_default())
    }

    /// Changes the number of clients of a caller.
    fn count_client(&mut self, holding: &Holding, change: impl FnOnce(usize) -> usize) {
        let is_client = holding.kind() == HolderKind::Client;
        let Some(clients) = self.clients.as_mut().filter(|_| is_client) else {
            return;
        };
        let count = clients.entry(holding.caller).or_default();
        *count = change(*count);
        if *count == 0 {
            clients.remove(&holding.caller);
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
    pub(super) fn note_came(&mut self, holding: &Holding, charges: &mut Vec<Charge>) {
        self.bytes += own_bytes(holding.name.as_str(), &holding.demand);
        self.count_client(holding, |count| count + 1);
        charge(charges, holding, 0, bytes_of(holding));
    }

    /// Notes that a holder is gone.
    pub(super) fn note_gone(&mut self, gone: &Holding, charges: &mut Vec<Charge>) {
        self.bytes -= own_bytes(gone.name.as_str(), &gone.demand);
        self.count_client(gone, |count| count.saturating_sub(1));
        charge(charges, gone, bytes_of(gone), 0);
    }

    /// Notes that a holder's demand changes.
    pub(super) fn note_demand(
        &mut self,
        holding: &Holding,
        after: &Demand,
        charges: &mut Vec<Charge>,
    ) {
        if holding.kind() == HolderKind::Server {
            let name = holding.name.as_str();
            self.bytes = self.bytes + own_bytes(name, after) - own_bytes(name, &holding.demand);
            let bytes = holder_bytes(name, after);
            charge(charges, holding, bytes_of(holding), bytes);
        }
    }

    /// Bytes of all holders, without their priorities.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Asserts that what is counted is there. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub(super) fn assert_consistent<'a>(&self, holders: impl Iterator<Item = &'a Holding>) {
        let bytes = holders.map(|it| own_bytes(it.name.as_str(), &it.demand));
        assert_eq!(self.bytes, bytes.sum::<usize>(), "bytes of holders");
    }
}

fn charge(charges: &mut Vec<Charge>, holding: &Holding, before: usize, after: usize) {
    let caller = holding.caller;
    if before != after && caller != CallerSlot::NOBODY {
        charges.push(Charge {
            caller,
            before,
            after,
        });
    }
}

/// Bytes of a holder of that name with that demand, without its priorities.
fn own_bytes(name: &str, demand: &Demand) -> usize {
    match demand {
        Demand::Client { .. } => weight::client_bytes(name),
        Demand::Server(demand) => weight::child_bytes(name, demand.points()),
    }
}

/// Bytes that a holder of that name brings with that demand. Every priority but one counts, although other holders may
/// share it.
pub(super) fn holder_bytes(name: &str, demand: &Demand) -> usize {
    let bands = match demand {
        Demand::Client { .. } => 0,
        Demand::Server(demand) => demand.bands().len(),
    };
    own_bytes(name, demand) + weight::band_bytes(bands)
}

/// Bytes that a holder has brought.
pub(super) fn bytes_of(holding: &Holding) -> usize {
    holder_bytes(holding.name.as_str(), &holding.demand)
}
