//! Admission of newcomers to a resource: a holder without a lease, a priority without holders, a curve that grows. A
//! holder with a lease keeps and refreshes it, whatever is full: a child server whose curve may not grow is served by
//! its former curve.
//!
//! A priority that the template names (`min_share`) may always be used. Clients can bring a few other priorities
//! altogether, and one caller fewer, so that no caller can use them up. A child's priorities come from many clients.
//! These must not suffer from requests of one of them, or of another child's clients. The child itself limits their
//! number.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::admission::weight::{BAND_BYTES, Weight};
use crate::admission::{AdmissionGate, CallerSlot, Charge, Full};
use crate::claims::{Bands, Demand};
use crate::holders::Slot;
use crate::id::HolderKind;
use crate::messages::RefusalReason;
use crate::resource::Resource;
use crate::resource::arrivals::{Brings, bytes_of, holder_bytes};
use crate::resource::ask::{Admitted, HolderAsk};
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
        let lasts = slot.and_then(|slot| self.ledger.get(slot)).map(|holding| {
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
        let known = slot.and_then(|slot| self.ledger.get(slot));
        if kind == HolderKind::Client
            && known.is_some_and(|it| it.demand.priority() == ask.demand.priority())
        {
            // There is nothing that it could bring.
            return Ok(Admitted::AsAsked);
        }
        let new = self.new_priorities(&ask.demand);
        let known = known.map(|it| (it.caller, bytes_of(it)));
        let mut bytes = holder_bytes(ask.holder().name.as_str(), &ask.demand);
        if kind == HolderKind::Client {
            // The bytes of a child server have its priorities in them.
            bytes += new.len() * BAND_BYTES;
        }
        let Some((caller, bytes_before)) = known else {
            if !new.is_empty() {
                let caller = gate.enter(now);
                self.admit_priorities((kind, caller), new.len(), gate)?;
            }
            let holders = self.ledger.table().len();
            let caller = gate.admit_holder(kind, bytes, holders, now)?;
            self.ledger.arrivals.note_priorities(&new, (kind, caller));
            return Ok(Admitted::New(caller));
        };
        let more = bytes.saturating_sub(bytes_before);
        let fits = if new.is_empty() {
            Ok(())
        } else {
            self.admit_priorities((kind, caller), new.len(), gate)
        };
        let fits = fits.and_then(|()| match more {
            0 => Ok(()),
            more => gate.admit_bytes(caller, more),
        });
        match (fits, kind) {
            (Ok(()), _) => {
                self.ledger.arrivals.note_priorities(&new, (kind, caller));
                Ok(Admitted::AsAsked)
            }
            (Err(full), HolderKind::Client) => Err(full.into()),
            // It asks on behalf of many: none of them is to lose anything.
            (Err(_), HolderKind::Server) => Ok(Admitted::WithoutGrowth),
        }
    }

    /// The priorities of a demand that no holder has, and the template does not name. If the algorithm does not look at them,
    /// the usual one is always there.
    fn new_priorities(&self, demand: &Demand) -> BTreeSet<i64> {
        let algorithm = self.policy.algorithm();
        let usual = (!algorithm.kind.has_bands()).then_some(Bands::USUAL);
        let is_new = |band: &i64| {
            let is_named = algorithm.min_shares.contains_key(band);
            !is_named && usual != Some(*band) && self.ledger.bands().get(*band).is_none()
        };
        demand.bands().filter(is_new).collect()
    }

    fn admit_priorities(
        &mut self,
        by: Brings,
        more: usize,
        gate: &mut AdmissionGate<'_>,
    ) -> Result<(), Full> {
        let named = &self.policy.algorithm().min_shares;
        self.ledger.admit_priorities(by, more, named, gate)
    }

    /// Changes of the bytes of callers since that was last asked.
    pub(crate) fn take_charges(&mut self) -> Vec<Charge> {
        self.ledger.take_charges()
    }

    /// Bytes of each holder, by the caller that brought it. For assertions.
    pub(crate) fn brought(&self) -> impl Iterator<Item = (CallerSlot, usize)> {
        let holders = self.ledger.table().iter();
        holders.map(|holding| (holding.caller, bytes_of(holding)))
    }

    /// Returns the weight in memory.
    pub(crate) fn weight(&self) -> Weight {
        self.ledger.weight()
    }
}
