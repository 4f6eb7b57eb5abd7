//! The capacity of a resource that a server may grant, and until when.

use std::sync::Arc;
use std::time::Duration;

use crate::amount::Amount;
use crate::id::MastershipId;
use crate::rounding::SHORTFALL;
use crate::template::{HolderBounds, SafeCapacity};
use crate::time::Time;

/// The capacity that a server may grant.
#[derive(Clone, Debug, PartialEq)]
pub struct Supply {
    /// The total.
    pub capacity: Amount,
    /// When the server's own lease ends; no lease that it grants lasts longer. Absent at the root.
    pub expires_at: Option<Time>,
    /// What only a parent knows. Absent at the root, and without a lease.
    pub terms: Option<Arc<ParentTerms>>,
    /// Until when a server above is in learning mode, at most. Absent: none is, or the parent does not send it.
    pub learning_until: Option<Time>,
}

/// What a parent sends about the tree as a whole, with the capacity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParentTerms {
    /// What the server should have once others have shrunk; not below the capacity.
    pub share: Amount,
    /// PRIORITY_BANDS: how the capacity splits over the bands, by rising priority. Empty: not sent.
    pub bands: Vec<(i64, Amount)>,
    /// STATIC: capacity per client. PROPORTIONAL_SHARE: the equal share of a client.
    pub per_client: Option<Amount>,
    /// The parent is in learning mode, and does not know yet how the whole is divided.
    pub learning: bool,
    /// For how long it still is, at most, from when it answered. Absent: it is not, or does not send it.
    pub learning_for: Option<Duration>,
    /// The most that may be in use below this server, as far as the parent knows. Absent: not sent.
    pub reserved: Option<Amount>,
    /// How long the leases below this server last, as far as the parent knows.
    pub reserved_for: Option<Duration>,
    /// How long the leases last that the parent had granted to this node before the request that it answers, or, if it
    /// learns, how long leases may last that it does not know: no lease of a predecessor lasts longer. Zero: none is
    /// left. Absent: not sent.
    pub inherited_for: Option<Duration>,
    /// The most that may be in use from earlier masterships of this node. Absent: not sent; it may be the whole capacity.
    pub inherited: Option<Amount>,
    /// The masterships of this node that it covers; leases of other masterships are added to it. Empty: all.
    pub accounted: Vec<MastershipId>,
    /// Another process of this node may live; if so, it will ask within this time. Absent: there is none.
    pub predecessor_for: Option<Duration>,
    /// What a client in safe mode falls back to.
    pub safe_capacity: Option<SafeCapacity>,
    /// It is set in the template. If false, it is the capacity divided by the number of clients.
    pub safe_is_static: bool,
    /// What counts of what a single holder says, in the whole tree. Absent in it: the template does not
    /// say, or the parent does not.
    pub holder_bounds: HolderBounds,
}

impl Supply {
    /// Nothing to share.
    pub const NONE: Self = Self {
        capacity: Amount::ZERO,
        expires_at: None,
        terms: None,
        learning_until: None,
    };

    /// The root's: what the template says.
    pub const fn of_root(capacity: Amount) -> Self {
        Self {
            capacity,
            expires_at: None,
            terms: None,
            learning_until: None,
        }
    }

    /// The supply by a parent's answer that came now.
    pub(crate) fn of_parent(
        capacity: Amount,
        expires_at: Time,
        mut terms: ParentTerms,
        now: Time,
    ) -> Self {
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

    /// The same as [`Supply::of_parent`], after this one. If the capacity is not larger, the earlier expiry counts if it
    /// is later, unless another mastership of the parent granted it, which may have believed more. A parent that learns
    /// does not know how the whole is divided, so the last known division stays.
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
        Self::of_parent(capacity, expires_at, terms, now)
    }

    /// Whether more will come once others have shrunk.
    pub(crate) fn expects_more(&self) -> bool {
        self.terms
            .as_ref()
            .is_some_and(|terms| terms.share.get() > self.capacity.get() * (1.0 + SHORTFALL))
    }

    /// Whether more may be in use than the capacity: leases from before it shrank have not ended.
    pub(crate) fn runs_down(&self) -> bool {
        let reserved = self.terms.as_ref().and_then(|terms| terms.reserved);
        reserved.is_some_and(|reserved| reserved > self.capacity)
    }

    /// The capacity per client that a parent sent.
    pub fn per_client(&self) -> Option<f64> {
        Some(self.terms.as_ref()?.per_client?.get())
    }

    /// What a parent guarantees the band of that priority. None: it sent no bands.
    pub(crate) fn guarantee(&self, priority: i64) -> Option<f64> {
        let bands = &self.terms.as_ref()?.bands;
        if bands.is_empty() {
            return None;
        }
        let found = bands.iter().find(|(band, _)| *band == priority);
        Some(found.map_or(0.0, |(_, amount)| amount.get()))
    }
}
