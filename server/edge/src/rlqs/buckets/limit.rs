//! The limit of a bucket: that of its rule.

use std::sync::Arc;
use std::time::Duration;

use doorward::rules::{OnFailure, Rule, Scope};
use doorward::time::Time;

use super::{Callers, HEADROOM, NEW_PART, SPAN_MIN, WANTS_LEAST, rate};
use crate::asker::{Asker, cut};
use crate::caller::{By, Caller};
use crate::ids;

/// Limit of a bucket.
#[derive(Clone, Debug)]
pub(super) enum Limit {
    /// None, or one that never refuses.
    None,
    /// No rule, in a domain that rejects such requests; or no leases for it.
    Rejected,
    /// By a part of the identity's lease.
    Leased(Leased),
}

/// A limit by a part of the lease of an identity.
#[derive(Clone, Debug)]
pub(super) struct Leased {
    pub(super) caller: Arc<Caller>,
    pub(super) resource: Arc<str>,
    /// Requests per second of the rule.
    pub(super) rate: f64,
    pub(super) on_failure: OnFailure,
    pub(super) scope: Scope,
    pub(super) processes: u32,
    weight: u32,
}

impl Limit {
    /// Returns whether it is by the same part.
    pub(super) fn is_of(&self, before: &Leased) -> bool {
        match self {
            Self::Leased(it) => {
                it.resource == before.resource && Arc::ptr_eq(&it.caller, &before.caller)
            }
            Self::None | Self::Rejected => false,
        }
    }
}

impl Leased {
    /// Returns the limit by a rule that counts. None: the identity can have no leases, or Envoy would need a rate of a
    /// budget.
    pub(super) fn of(
        domain: &str,
        asker: &Asker,
        descriptor: &str,
        rule: &Rule,
        callers: Callers<'_>,
    ) -> Option<Self> {
        let counted = rule.counted()?;
        let rank = rule.ranks.of(asker.name());
        Some(Self {
            caller: callers(rank.priority)?,
            resource: ids::resource(domain, descriptor).into(),
            rate: counted.rate.as_per_second(),
            on_failure: match rule.scope {
                Scope::Local => OnFailure::Safe,
                Scope::Shared => rule.on_failure,
                Scope::Budget => return None,
            },
            scope: rule.scope,
            processes: rule.processes,
            weight: rank.weight,
        })
    }

    /// Returns the wants after a report of `count` requests since `span`.
    pub(super) fn wants(&self, number: u64, demand: f64, count: u64, span: Duration) -> f64 {
        let wanted = self.caller.stream_wants(&self.resource, number);
        let wants = match () {
            () if span >= SPAN_MIN => demand * HEADROOM,
            () if wanted > 0.0 => wanted.max(rate(count, span.max(Duration::from_secs(1)))),
            () => (self.rate * NEW_PART).max(demand * HEADROOM),
        };
        match count {
            0 => wants,
            _ => wants.max(WANTS_LEAST),
        }
    }

    pub(super) fn by<'a>(&self, asker: &'a Asker) -> By<'a> {
        By {
            name: cut(asker.name()),
            weight: self.weight,
            is_safe: self.on_failure == OnFailure::Safe,
            whole: None,
        }
    }

    pub(super) fn end(&self, number: u64, is_told: bool, now: Time) {
        self.caller.end_stream(&self.resource, number, is_told, now);
    }
}
