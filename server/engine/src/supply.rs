//! What there is to share of a resource, and until when.

use std::sync::Arc;
use std::time::Duration;

use crate::amount::Amount;
use crate::id::MastershipId;
use crate::planted::{self, Bug};
use crate::rounding::SHORTFALL;
use crate::template::{HolderBounds, SafeCapacity};
use crate::time::Time;

/// The capacity a server may hand out.
#[derive(Clone, Debug, PartialEq)]
pub struct Supply {
    /// So much in total.
    pub capacity: Amount,
    /// When the server's own lease on it ends; no lease it gives lasts longer. Absent at the root,
    /// whose capacity is its own.
    pub expires_at: Option<Time>,
    /// What only a parent can tell. Absent at the root, and without a lease.
    pub terms: Option<Arc<ParentTerms>>,
    /// Until when a server above is in learning mode, at most, as far as the parent says so.
    pub learning_until: Option<Time>,
}

/// What a parent tells of the tree as a whole, with the capacity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParentTerms {
    /// What the server should have once others have shrunk; not below the capacity.
    pub share: Amount,
    /// PRIORITY_BANDS: how the capacity splits over the bands, by rising priority. Empty: the
    /// parent does not say.
    pub bands: Vec<(i64, Amount)>,
    /// STATIC: capacity per client. PROPORTIONAL_SHARE: the equal share of a client.
    pub per_client: Option<Amount>,
    /// The parent is in learning mode, and does not know yet how the whole is divided.
    pub learning: bool,
    /// For how long it still is, at most, from when it answered. Absent: it is not, or does not say.
    pub learning_for: Option<Duration>,
    /// The most that may be out below us, as far as the parent knows. Absent: it does not say.
    pub reserved: Option<Amount>,
    /// How long leases last that are out below us, as far as the parent knows.
    pub reserved_for: Option<Duration>,
    /// How long leases last that the parent granted to our node before it got the request that it
    /// answers, or, if it learns, what it does not know of: nothing that our predecessor handed out lasts
    /// longer. Zero: it had granted nothing that is not over. Absent: it does not say.
    pub inherited_for: Option<Duration>,
    /// The most that may be in use of what earlier masterships of our node handed out. Absent: the
    /// parent does not say; it may be all that we are granted.
    pub inherited: Option<Amount>,
    /// Of which masterships of our node that is; what others handed out comes on top of it. Empty: of
    /// all.
    pub accounted: Vec<MastershipId>,
    /// Another process of our node may live, and would be heard within this time. Absent: there is none.
    pub predecessor_for: Option<Duration>,
    /// What a client in safe mode falls back to.
    pub safe_capacity: Option<SafeCapacity>,
    /// That is the template's own word. If not, it is the capacity divided by the number of clients.
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

    /// What a parent's answer says, that came now.
    pub(crate) fn of_parent(
        capacity: Amount,
        expires_at: Time,
        mut terms: ParentTerms,
        now: Time,
    ) -> Self {
        // What bands are guaranteed together is no more than there is.
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

    /// The same as [`Supply::of_parent`], after this one. What we may have no more of, we may have for as long as
    /// that was promised before: but not by what another mastership of the parent promised, of which the one
    /// that answers may believe less. And a parent that learns does not know how the whole is divided: what
    /// was known of that stays.
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

    /// Whether more is to come once others have shrunk.
    pub(crate) fn expects_more(&self) -> bool {
        self.terms
            .as_ref()
            .is_some_and(|terms| terms.share.get() > self.capacity.get() * (1.0 + SHORTFALL))
    }

    /// Whether more may be out than there is: leases from before the capacity shrank are not over.
    pub(crate) fn runs_down(&self) -> bool {
        let reserved = self.terms.as_ref().and_then(|terms| terms.reserved);
        let is_forgotten = planted::is(Bug::RunsDownForgotten);
        reserved.is_some_and(|reserved| reserved > self.capacity && !is_forgotten)
    }

    /// What a parent says of capacity per client.
    pub fn per_client(&self) -> Option<f64> {
        Some(self.terms.as_ref()?.per_client?.get())
    }

    /// What a parent guarantees the band of that priority. None: no parent says anything of bands.
    pub(crate) fn guarantee(&self, priority: i64) -> Option<f64> {
        let bands = &self.terms.as_ref()?.bands;
        if bands.is_empty() {
            return None;
        }
        let found = bands.iter().find(|(band, _)| *band == priority);
        Some(found.map_or(0.0, |(_, amount)| amount.get()))
    }
}
