//! Converts a server's reply to the client state's type, in place of the wire format.

use doorward_client::capacity::Capacity;
use doorward_client::state::{Granted, LimitedBy, RefusalKind, Refused, Response};
use doorward_engine::id::MastershipId;
use doorward_engine::messages::{self, GetCapacityReply, RefusalReason};
use doorward_engine::templates::SafeCapacity;

/// Converts a reply.
pub(super) fn response(reply: &GetCapacityReply) -> Response {
    let granted = reply.leases.iter().map(|lease| Granted {
        resource: lease.resource.to_string(),
        capacity: lease.capacity.get(),
        expires_in: lease.expires_in,
        refresh_in: lease.refresh_in,
        granted_by: lease.granted_by.map(MastershipId::get),
        limited_by: Some(limited_by(lease.limited_by)),
        learning_for: lease.learning_for,
        decided: Some(lease.decided),
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
