//! Shares by terms that are not in force: what a change would give each holder, before it is made.
//!
//! A plan divides the present demand by other terms. [`Node::leases_from`](crate::node::Node::leases_from) has the demand
//! of each holder, a few at a time, so a plan holds nothing up: it puts all demands in ([`Plan::add`]), divides
//! ([`Plan::divide`]), and then says what each demand gets. At the root, the terms are those of a template. Below it, they
//! are those of a lease that the parent plans ([`PlannedDivision::lease_for`]), so a change is planned level by level as
//! it would come into force.

use std::borrow::Cow;
use std::sync::Arc;

use crate::amount::Amount;
use crate::claims::demand::DemandBounds;
use crate::claims::{Bands, Demand};
use crate::division::{self, ParentTerms, Reason, Rule, Supply};
use crate::id::ResourceId;
use crate::messages::ServerLease;
use crate::templates::{Algorithm, HolderBounds, Template};
use crate::time::Time;

/// Terms for dividing a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    algorithm: Arc<Algorithm>,
    bounds: HolderBounds,
    supply: Supply,
}

impl Terms {
    /// Returns the terms of a template, at the root.
    pub fn of_template(template: &Template) -> Self {
        Self {
            algorithm: Arc::clone(&template.algorithm),
            bounds: template.holder_bounds,
            supply: Supply::of_root(template.capacity),
        }
    }

    /// Returns the terms of a lease from a parent. None: it has no algorithm, so the parent plans nothing.
    pub fn of_lease(lease: ServerLease) -> Option<Self> {
        let (now, bounds) = (Time::ZERO, lease.terms.holder_bounds);
        let ends = now + lease.expires_in;
        Some(Self {
            algorithm: lease.algorithm?.into(),
            bounds,
            supply: Supply::NONE.followed_by(lease.capacity, ends, lease.terms, true, now),
        })
    }

    /// Capacity to divide.
    pub fn capacity(&self) -> f64 {
        self.supply.capacity.get()
    }

    /// The rule that divides it.
    pub fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// Returns the part of a demand that counts by these terms.
    fn counted<'a>(&self, demand: &'a Demand) -> Cow<'a, Demand> {
        let HolderBounds {
            wants_max,
            subclients_max,
        } = self.bounds;
        let bounds = DemandBounds {
            wants_max,
            subclients_max: subclients_max.map_or(f64::INFINITY, |most| most.get()),
        };
        let counts = demand.bounded(bounds);
        counts.map_or(Cow::Borrowed(demand), Cow::Owned)
    }
}

/// A plan for one resource that does not know all demand yet.
#[derive(Debug)]
pub struct Plan {
    terms: Terms,
    bands: Bands,
}

impl Plan {
    /// A plan without demand.
    pub fn new(terms: Terms) -> Self {
        let bands = Bands::default();
        Self { terms, bands }
    }

    /// Adds the demand of a holder. O(log n).
    pub fn add(&mut self, demand: &Demand) {
        self.bands.insert_all(&self.terms.counted(demand));
    }

    /// Divides the capacity among all added demand.
    pub fn divide(self) -> PlannedDivision {
        let Self { terms, bands } = self;
        let rule = division::solve_for_all(&terms.algorithm, &bands, &terms.supply);
        PlannedDivision { terms, rule }
    }
}

/// How planned terms divide a resource.
#[derive(Debug)]
pub struct PlannedDivision {
    terms: Terms,
    rule: Rule,
}

impl PlannedDivision {
    /// Returns the share of a holder whose demand was added.
    pub fn share_of(&self, demand: &Demand) -> Amount {
        self.rule.share_of(&self.terms.counted(demand))
    }

    /// Returns the number of clients of a demand that count: `subclients_max` bounds those of a child server. If it cuts
    /// the demand of a server's own children, that server will ask for less, which this plan does not know.
    pub fn counted_clients(&self, demand: &Demand) -> f64 {
        self.terms.counted(demand).clients()
    }

    /// Whether the terms let a holder of that demand want more, if it does.
    pub fn lets_grow(&self, demand: &Demand) -> bool {
        let HolderBounds {
            wants_max,
            subclients_max,
        } = self.terms.bounds;
        match demand {
            Demand::Client { claim, .. } => wants_max.is_none_or(|most| most > claim.wants),
            Demand::Server(demand) => subclients_max.is_none_or(|it| it.get() > demand.clients()),
        }
    }

    /// Returns the reason for that share.
    pub fn reason_for(&self, demand: &Demand) -> Reason {
        self.rule.reason_for(&self.terms.counted(demand))
    }

    /// Returns the lease of a child server whose demand was added, once all holders have their shares. None: the demand
    /// is a client's.
    pub fn lease_for(&self, resource: &ResourceId, demand: &Demand) -> Option<ServerLease> {
        let counted = self.terms.counted(demand);
        let Demand::Server(server) = &*counted else {
            return None;
        };
        let (capacity, algorithm) = (self.share_of(demand), &self.terms.algorithm);
        let bands = match algorithm.kind.has_bands() {
            true => self.rule.bands_of(server, capacity),
            false => Vec::new(),
        };
        Some(ServerLease {
            budget: None,
            resource: resource.clone(),
            capacity,
            expires_in: algorithm.lease_length,
            refresh_in: algorithm.refresh_interval,
            algorithm: Some(Algorithm::clone(algorithm)),
            terms: ParentTerms {
                share: capacity,
                bands,
                per_client: self.rule.per_client(),
                holder_bounds: self.terms.bounds,
                ..ParentTerms::default()
            },
            granted_by: None,
            sequence: None,
            decided: None,
        })
    }
}
