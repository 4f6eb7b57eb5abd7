//! Events of the replica, in the log.

use doorward_door::refusals::Refusals;
use doorward_engine::messages::{NodeEvent, RefusalReason};
use doorward_pages::numbers::span;
use doorward_session::time::millis;
use tracing::{debug, error, info, warn};

use crate::clock;

/// Logs an event in one line. Events that any new client can cause are logged for debugging only, or once a minute for
/// each name, and for few names.
pub(super) fn log(event: &NodeEvent, conflicts: &Refusals) {
    match event {
        NodeEvent::TermEnded { epoch } => error!(
            epoch,
            "mastership could not be confirmed in time, and is over: nothing is granted until it is \
             won again; is etcd reachable?"
        ),
        NodeEvent::ResourceAdded { resource, template } => {
            debug!(%resource, template, "resource added");
        }
        NodeEvent::RefusedByParent { resource, reason } => {
            let reason = refusal(*reason);
            warn!(%resource, reason, "the parent refuses it; its leases run down");
        }
        NodeEvent::InvalidParentAnswer { resource, problem } => {
            warn!(%resource, problem, "the parent's answer makes no sense and is passed over");
        }
        NodeEvent::Cycle { ancestors } => error!(
            path = ancestors.join(" → "),
            "this server's capacity would come from itself, by way of its parent; what the parent \
             says is passed over; check --node and --parent of the servers on this way"
        ),
        NodeEvent::CycleRefused(cycle) => error!(%cycle, "a child server is refused"),
        NodeEvent::CycleEnded => info!("this server is its own ancestor no more"),
        NodeEvent::ResourceDropped { resource } => debug!(%resource, "resource dropped"),
        NodeEvent::LearningBegan { resource, left } => {
            let lasts = span(millis(*left));
            info!(%resource, lasts, "learning mode began: holders keep what they say they have, newcomers wait");
        }
        NodeEvent::LearningEnded { resource } => info!(%resource, "learning mode ended"),
        NodeEvent::CapacityBelowReserved {
            resource,
            capacity,
            reserved,
        } => warn!(
            %resource,
            capacity,
            reserved,
            "capacity is below what is out; nothing new is granted until it fits"
        ),
        NodeEvent::TwoProcesses { resource, holder } => {
            if let Some(conflicts) = conflicts.note(&holder.to_string(), clock::wall()) {
                error!(
                    %resource,
                    %holder,
                    conflicts,
                    "two live processes ask under one name; give each a name of its own, or stop one"
                );
            }
        }
        NodeEvent::BudgetUnknown { resource } => warn!(
            %resource,
            "it is not known what was given of this budget: nothing is given before its next window, unless \
             `doorward learning end` says that nobody holds any"
        ),
        NodeEvent::WallClockDoubted { by } => error!(
            by = span(millis(*by)),
            "the wall clock jumped; windows of budgets go on without the jump: set the clock right, or \
             restart this server if it is right now"
        ),
        NodeEvent::TemplateGone { resource } => {
            warn!(%resource, "its template is gone; its leases run down");
        }
    }
}

/// Returns the reason of a refusal for operators. The engine's own text is for clients.
pub(crate) fn refusal(reason: RefusalReason) -> String {
    match reason {
        RefusalReason::UnknownResource => {
            "no template of the root matches it; add one there".to_owned()
        }
        RefusalReason::RefusedByParent => {
            "see why on the parent's status page and in its log; two servers may have the same --node, \
             or the parent is at a limit"
                .to_owned()
        }
        other => other.to_string(),
    }
}
