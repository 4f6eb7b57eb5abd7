//! What counts of what a single holder asks for: its wants up to what a client can have, and of a child
//! server no more clients than one can stand for. What is said beyond is not refused; it does not count.

use crate::admission::limits::Limits;
use crate::amount::Amount;
use crate::demand::bounded::DemandBounds;
use crate::id::HolderKind;
use crate::lease_table::Slot;
use crate::resource::Resource;
use crate::resource::ask::HolderAsk;
use crate::supply::Told;
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
        } = self.holder_bounds;
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
    pub(super) fn bounded_word<'a>(
        &self,
        slot: Option<Slot>,
        ask: &HolderAsk<'a>,
        now: Time,
    ) -> Option<HolderAsk<'a>> {
        let most = self.holder_bounds.wants_max?;
        if ask.holder.kind != HolderKind::Client || ask.word() <= most || !self.learns(now) {
            return None;
        }
        let own = slot.and_then(|slot| Some(self.table.get(slot)?.own()));
        Some(ask.with_words_up_to(most.max(own.unwrap_or(Amount::ZERO))))
    }

    /// What a parent says of it counts. One that does not even say how to divide leaves it to our own
    /// template.
    pub(super) fn note_bounds_told(&mut self, told: &Told, tells_algorithm: bool) {
        let own = self.template.as_ref().filter(|_| !tells_algorithm);
        self.holder_bounds = own.map_or(told.holder_bounds, |own| own.holder_bounds);
    }
}
