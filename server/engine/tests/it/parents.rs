//! One template for all resources, and a parent with enough capacity for all, for tests and
//! benches.

use std::time::Duration;

use doorward_engine::division::ParentTerms;
use doorward_engine::messages::{
    GetServerCapacity, GetServerCapacityReply, ServerAsk, ServerLease,
};
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};

/// Lease length.
pub(crate) const LEASE: Duration = Duration::from_secs(600);

/// Returns one template for all resources without a `/` in their ids.
pub(crate) fn templates(kind: AlgorithmKind, capacity: f64) -> Templates {
    Templates::parse(&[template_of(kind, capacity)]).unwrap()
}

/// Returns that template.
pub(crate) fn template_of(kind: AlgorithmKind, capacity: f64) -> TemplateSpec {
    TemplateSpec {
        identifier_glob: Some("*".to_owned()),
        capacity: Some(capacity),
        kind: Some(kind),
        lease_length: Some(LEASE),
        refresh_interval: Some(Duration::from_secs(5)),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    }
}

/// Returns the answer of a parent that grants all wants, with this algorithm.
pub(crate) fn answer(request: &GetServerCapacity, kind: AlgorithmKind) -> GetServerCapacityReply {
    let templates = templates(kind, 1.0);
    let lease = |ask: &ServerAsk| ServerLease {
        budget: None,
        resource: ask.resource.clone(),
        capacity: ask.demand.wants(),
        expires_in: LEASE,
        refresh_in: Duration::from_secs(5),
        algorithm: Some((*templates.find(&ask.resource).unwrap().algorithm).clone()),
        terms: ParentTerms {
            share: ask.demand.wants(),
            inherited_for: Some(Duration::ZERO),
            ..ParentTerms::default()
        },
        granted_by: None,
        sequence: request.sequence,
        decided: Some(true),
    };
    GetServerCapacityReply {
        leases: request.asks.iter().map(lease).collect(),
        ..GetServerCapacityReply::default()
    }
}
