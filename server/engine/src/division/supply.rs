//! The capacity of a resource that a server may grant, and until when.

use std::sync::Arc;
use std::time::Duration;

use crate::amount::Amount;
use crate::id::MastershipId;
use crate::rounding::SHORTFALL;
use crate::templates::{HolderBounds, SafeCapacity};
use crate::time::Time;

/// The capacity that a server may grant.
#[derive(Clone, Debug, PartialEq)]
pub struct Supply {
    /// The total.
    pub capacity: Amount,
    /// End of the server's own lease. No lease that it grants lasts longer. Absent at the root.
    pub expires_at: Option<Time>,
    /// Terms from the parent. Absent at the root, and without a lease.
    pub terms: Option<Arc<ParentTerms>>,
    /// Latest end of learning mode in a server above. Absent: no server learns, or the parent does not send it.
    pub learning_until: Option<Time>,
}

/// Terms that a parent sends with the capacity, about the tree as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParentTerms {
    /// Share of this server once other servers have shrunk. Not below the capacity.
    pub share: Amount,
    /// PRIORITY_BANDS: part of the capacity for each band, by rising priority. Empty: not sent.
    pub bands: Vec<(i64, Amount)>,
    /// STATIC: capacity per client. PROPORTIONAL_SHARE: equal share of a client.
    pub per_client: Option<Amount>,
    /// Whether the parent is in learning mode. If so, it does not know the division of the whole yet.
    pub learning: bool,
    /// Longest time until its learning mode ends, from its answer. Absent: it is not learning, or does not send it.
    pub learning_for: Option<Duration>,
    /// Most that may be in use below this server, as far as the parent knows. Absent: not sent.
    pub reserved: Option<Amount>,
    /// Remaining time of the leases below this server, as far as the parent knows.
    pub reserved_for: Option<Duration>,
    /// Remaining time of the leases that the parent granted to this node before the answered request. A parent that
    /// learns counts leases that it may not know. No lease of a predecessor lasts longer. Zero: none is left. Absent:
    /// not sent.
    pub inherited_for: Option<Duration>,
    /// Most that may be in use from earlier masterships of this node. Absent: not sent; it may be the whole capacity.
    pub inherited: Option<Amount>,
    /// Masterships of this node that `inherited` covers. Leases of other masterships are added to it. Empty: all.
    pub accounted: Vec<MastershipId>,
    /// Time within which another process of this node asks, if it lives. Absent: there is none.
    pub predecessor_for: Option<Duration>,
    /// Capacity of a client in safe mode.
    pub safe_capacity: Option<SafeCapacity>,
    /// Whether the template sets it. If false, it is the capacity divided by the number of clients.
    pub safe_is_static: bool,
    /// Bounds for the statements of a single holder, in the whole tree. Absent values: the template or the parent does
    /// not set them.
    pub holder_bounds: HolderBounds,
}

impl Supply {
    /// No capacity.
    pub const NONE: Self = Self {
        capacity: Amount::ZERO,
        expires_at: None,
        terms: None,
        learning_until: None,
    };

    /// Returns the supply of the root: the template's capacity.
    pub const fn of_root(capacity: Amount) -> Self {
        Self {
            capacity,
            ..Self::NONE
        }
    }

    /// Returns the supply of a parent's answer that follows this supply. If the capacity is not larger, the later
    /// expiry counts. An expiry from another mastership of the parent does not count, since that one may have assumed
    /// more capacity. A parent that learns does not know the division of the whole, so the last known division stays.
    pub(crate) fn followed_by(
        &self,
        capacity: Amount,
        expires_at: Time,
        mut terms: ParentTerms,
        is_same_granter: bool,
        now: Time,
    ) -> Self {
        let promised = self.expires_at.filter(|_| is_same_granter);
        let promised = promised.filter(|_| capacity <= self.capacity);
        let expires_at = promised.map_or(expires_at, |until| expires_at.max(until));
        if let (true, Some(before)) = (terms.learning, &self.terms) {
            terms.bands.clone_from(&before.bands);
            terms.per_client = before.per_client;
        }
        // All guarantees together must not exceed the capacity.
        let guaranteed: f64 = terms.bands.iter().map(|(_, amount)| amount.get()).sum();
        if guaranteed > capacity.get() {
            for (_, amount) in &mut terms.bands {
                *amount = Amount::from_computed(amount.get() * (capacity.get() / guaranteed));
            }
        }
        terms.share = terms.share.max(capacity);
        Self {
            capacity,
            expires_at: Some(expires_at),
            learning_until: terms
                .learning_for
                .filter(|_| terms.learning)
                .map(|remaining| now + remaining),
            terms: Some(Arc::new(terms)),
        }
    }

    /// Returns the end of a lease of that length that is granted now.
    pub(crate) fn lease_end(&self, length: Duration, now: Time) -> Time {
        let end = now + length;
        self.expires_at.map_or(end, |own| end.min(own))
    }

    /// Whether the capacity will grow once other servers have shrunk.
    pub(crate) fn expects_more(&self) -> bool {
        self.terms
            .as_ref()
            .is_some_and(|terms| terms.share.get() > self.capacity.get() * (1.0 + SHORTFALL))
    }

    /// Whether the parent is in learning mode.
    pub(crate) fn parent_learns(&self) -> bool {
        self.terms.as_ref().is_some_and(|terms| terms.learning)
    }

    /// Whether more than the capacity may be in use, because leases from before it shrank have not ended.
    pub(crate) fn runs_down(&self) -> bool {
        let reserved = self.terms.as_ref().and_then(|terms| terms.reserved);
        reserved.is_some_and(|reserved| reserved > self.capacity)
    }

    /// Returns the capacity per client that the parent sent.
    pub fn per_client(&self) -> Option<f64> {
        Some(self.terms.as_ref()?.per_client?.get())
    }

    /// Returns the guarantee of the parent for the band of that priority, or nothing if it sent no bands.
    pub(crate) fn guarantee(&self, priority: i64) -> Option<f64> {
        let bands = &self.terms.as_ref()?.bands;
        if bands.is_empty() {
            return None;
        }
        let found = bands.iter().find(|(band, _)| *band == priority);
        Some(found.map_or(0.0, |(_, amount)| amount.get()))
    }
}
