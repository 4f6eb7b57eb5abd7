//! What counts of what a single holder asks for: its wants up to what a client can have, and of a child
//! server no more clients than one can stand for. What is said beyond is not refused; it does not count.

use crate::admission::limits::Limits;
use crate::amount::Amount;
use crate::demand::bounded::DemandBounds;
use crate::id::HolderKind;
use crate::lease_table::Slot;
use crate::resource::Resource;
use crate::resource::ask::HolderAsk;
use crate::template::HolderBounds;
use crate::time::Time;

impl Resource {
    /// What of a request counts. None: all of it.
    pub(super) fn bounded_ask<'a>(
        &self,
        ask: &HolderAsk<'a>,
        limits: &Limits,
    ) -> Option<HolderAsk<'a>> {
        let HolderBounds {
            wants_max,
            subclients_max,
        } = self.policy.holder_bounds();
        let leases_max = || limits.leases_per_resource_max as f64;
        let bounds = DemandBounds {
            wants_max,
            subclients_max: subclients_max.map_or_else(leases_max, |most| most.get()),
        };
        Some(HolderAsk {
            demand: ask.demand.bounded(bounds)?,
            ..ask.clone()
        })
    }

    /// In learning mode: what counts of what a client says that it has, no more than a client can have, and
    /// never less than is reserved for it already. None: all of it.
    pub(super) fn bounded_report<'a>(
        &self,
        slot: Option<Slot>,
        ask: &HolderAsk<'a>,
        now: Time,
    ) -> Option<HolderAsk<'a>> {
        let most = self.policy.holder_bounds().wants_max?;
        if ask.holder().kind != HolderKind::Client || ask.in_use() <= most || !self.learns(now) {
            return None;
        }
        let own = slot.and_then(|slot| Some(self.ledger.get(slot)?.own()));
        Some(ask.with_reports_up_to(most.max(own.unwrap_or(Amount::ZERO))))
    }
}
