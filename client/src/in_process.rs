//! A client in the process of its server, without a network: messages of its state as those of the engine, and back.

use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::id::{HolderName, Incarnation, MastershipId, ResourceId};
use doorward_engine::messages::{
    self, GetCapacity, GetCapacityReply, RefusalReason, ReleaseCapacity,
};
use doorward_engine::templates::SafeCapacity;

use crate::capacity::Capacity;
use crate::state::{
    Ask, Granted, Has, LimitedBy, RefusalKind, Refused, Release, Request, Response,
};

/// Returns a request. Leaves out asks that no node would take.
pub fn request(name: &HolderName, incarnation: Incarnation, request: &Request) -> GetCapacity {
    GetCapacity {
        client: name.clone(),
        incarnation: Some(incarnation),
        caller: None,
        sequence: Some(request.sequence),
        asks: request.asks.iter().filter_map(ask).collect(),
    }
}

/// Returns a release. Leaves out ids that no node would take.
pub fn release(name: &HolderName, incarnation: Incarnation, release: &Release) -> ReleaseCapacity {
    let resources = release.resources.iter();
    ReleaseCapacity {
        client: name.clone(),
        incarnation: Some(incarnation),
        caller: None,
        sequence: Some(release.sequence),
        resources: resources
            .filter_map(|id| ResourceId::new(id).ok())
            .collect(),
        words: std::collections::BTreeMap::new(),
    }
}

fn ask(ask: &Ask) -> Option<messages::Ask> {
    let has = |has: Has| {
        Some(messages::Has {
            capacity: Amount::new(has.capacity).ok()?,
            expires_in: Some(has.expires_in),
            granted_by: has.granted_by.map(MastershipId::new),
        })
    };
    Some(messages::Ask {
        resource: ResourceId::new(&ask.resource).ok()?,
        priority: ask.priority,
        weight: Subclients::ONE,
        wants: Amount::new(ask.wants).ok()?,
        has: ask.has.and_then(has),
        budget: ask.budget,
    })
}

/// Returns an answer.
pub fn response(reply: &GetCapacityReply) -> Response {
    let granted = reply.leases.iter().map(|lease| Granted {
        resource: lease.resource.to_string(),
        capacity: lease.capacity.get(),
        expires_in: lease.expires_in,
        refresh_in: lease.refresh_in,
        granted_by: lease.granted_by.map(MastershipId::get),
        limited_by: Some(limited_by(lease.limited_by)),
        learning_for: lease.learning_for,
        decided: Some(lease.decided),
        sequence: lease.sequence,
        budget: lease.budget,
        safe_capacity: lease.safe_capacity.map(|safe| match safe {
            SafeCapacity::Unlimited => Capacity::Unlimited,
            SafeCapacity::Limited(amount) => Capacity::Limited(amount.get()),
        }),
    });
    let refused = reply.refused.iter().map(|refused| Refused {
        resource: refused.resource.to_string(),
        kind: match refused.reason {
            RefusalReason::UnknownResource => RefusalKind::Unknown,
            RefusalReason::NotReady => RefusalKind::NotReady,
            _ => RefusalKind::Other,
        },
        message: refused.reason.to_string(),
        retry_in: refused.retry_in,
    });
    Response {
        granted: granted.collect(),
        refused: refused.collect(),
    }
}

fn limited_by(limit: messages::LimitedBy) -> LimitedBy {
    match limit {
        messages::LimitedBy::Wants => LimitedBy::Wants,
        messages::LimitedBy::Share => LimitedBy::Share,
        messages::LimitedBy::Others => LimitedBy::Others,
        messages::LimitedBy::Learning => LimitedBy::Learning,
        messages::LimitedBy::ParentLearning => LimitedBy::ParentLearning,
        messages::LimitedBy::CapacityLowered => LimitedBy::CapacityLowered,
        messages::LimitedBy::Parent => LimitedBy::Parent,
    }
}
