//! The safe capacity: the amount that a client in safe mode may use after the end of its lease.
//!
//! The template sets it (*static*), or it is the capacity divided by the number of clients in the whole tree
//! (*dynamic*). All dynamic ones add up to at most the capacity, once every client has refreshed since the last one
//! joined. Therefore:
//!
//! - A parent of servers counts clients in steps, rounded up ([`in_steps`]), and pushes to its children when a step
//!   makes the safe capacity smaller. Without steps, every client that joins would cause a push to the whole tree.
//! - A child adds the clients that it has gained since it last asked.
//! - A server in learning mode does not know the number of clients, and sends 0.

use std::time::Duration;

use crate::amount::Amount;
use crate::claims::Subclients;
use crate::holders::{Holding, Slot};
use crate::resource::Resource;
use crate::resource::holders::Holders;
use crate::rounding::SHORTFALL;
use crate::templates::SafeCapacity;
use crate::time::Time;

/// Number of steps in each doubling of the number of clients. Below that number, each number is a step.
const STEPS_PER_DOUBLING: f64 = 32.0;

/// Exponent bits of an f64.
const EXPONENT_BITS: u64 = 0x7ff0_0000_0000_0000;

/// Rounds a number of clients up by at most a part in [`STEPS_PER_DOUBLING`].
fn in_steps(clients: f64) -> f64 {
    // The exponent's bits give the power of two below, the same on every machine.
    let parts = clients / STEPS_PER_DOUBLING;
    let step = f64::from_bits(parts.to_bits() & EXPONENT_BITS).max(1.0);
    (clients / step).ceil() * step
}

/// Returns a number to compare.
fn number(safe: SafeCapacity) -> f64 {
    match safe {
        SafeCapacity::Unlimited => f64::INFINITY,
        SafeCapacity::Limited(amount) => amount.get(),
    }
}

impl Resource {
    /// Returns the amount that a client in safe mode may use, if learning mode lasts for this time. Below the root, the
    /// parent's value counts.
    pub(super) fn safe_capacity(&self, learning_for: Option<Duration>) -> SafeCapacity {
        let terms = self.supply.terms.as_ref();
        let of_parent = terms.and_then(|terms| terms.safe_capacity);
        let template = self.policy.template();
        let of_template = template.and_then(|template| template.safe_capacity);
        match (of_parent, of_template) {
            (Some(safe), _) if self.safe_is_static() => safe,
            (None, Some(safe)) => safe,
            _ if learning_for.is_some() || self.supply.parent_learns() => {
                SafeCapacity::Limited(Amount::ZERO)
            }
            (Some(SafeCapacity::Unlimited), _) => SafeCapacity::Unlimited,
            (Some(SafeCapacity::Limited(each)), _) => {
                let heard = self.parent.as_ref().map_or(0.0, |it| it.clients_reported);
                let heard = heard.max(Subclients::ONE.get());
                let part = heard / self.holders.clients().max(heard);
                SafeCapacity::Limited(Amount::from_computed(each.get() * part))
            }
            (None, None) => {
                let clients = self.holders.clients().max(Subclients::ONE.get());
                let clients = if self.holders.children().is_empty() {
                    clients
                } else {
                    in_steps(clients)
                };
                SafeCapacity::Limited(Amount::from_computed(self.supply.capacity.get() / clients))
            }
        }
    }

    /// Whether a template sets it, here or at the root.
    pub(super) fn safe_is_static(&self) -> bool {
        match &self.supply.terms {
            Some(terms) if terms.safe_capacity.is_some() => terms.safe_is_static,
            _ => {
                let template = self.policy.template();
                template.is_some_and(|template| template.safe_capacity.is_some())
            }
        }
    }

    /// Whether the last safe capacity that a child server got is larger than the present one.
    pub(super) fn safe_fell(&self, holding: &Holding, now: Time) -> bool {
        let last = holding
            .report
            .as_ref()
            .and_then(|report| report.last_safe_capacity);
        let safe = number(self.safe_capacity(self.learning_for(now)));
        last.is_some_and(|last| safe < number(last) * (1.0 - SHORTFALL))
    }
}

impl Holders {
    /// Notes that a child server gets this with its newest lease.
    pub(super) fn note_safe_capacity(&mut self, slot: Slot, safe: SafeCapacity) {
        if self.children().is_empty() {
            return;
        }
        self.table.note(slot, |holding| {
            if let Some(report) = &mut holding.report {
                report.last_safe_capacity = Some(safe);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_clients_are_counted_one_by_one_and_many_in_steps() {
        let cases = [
            (1.0, 1.0),
            (2.0, 2.0),
            (2.5, 3.0),
            (63.0, 63.0),
            (64.0, 64.0),
            (65.0, 66.0),
            (127.0, 128.0),
            (1_000.0, 1_008.0),
            (1e6, 1_015_808.0),
        ];
        for (clients, counted) in cases {
            assert_eq!(in_steps(clients), counted, "{clients}");
        }
        for clients in 1..100_000_u32 {
            let (clients, counted) = (f64::from(clients), in_steps(f64::from(clients)));
            assert!(counted >= clients && counted <= clients * (1.0 + 1.0 / STEPS_PER_DOUBLING));
        }
    }
}
