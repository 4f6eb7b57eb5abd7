//! Metrics of leases between servers. A server below the root has those of the link to its parent and of its own
//! leases; every server has those of the leases of child servers.
//!
//! Their number is bounded like that of resources. Resources without time series of their own have none here. Child
//! servers beyond [`CHILDREN_MAX`], in the order of resources and then names, are left out.

use std::fmt;

use doorward_engine::messages::{LeaseSnapshot, ResourceSnapshot, UpstreamSnapshot};
use doorward_engine::node::pages::Totals;

use crate::metrics::families::{Column, Families, flag, float, metrics};
use crate::status::{ParentLink, ServerState};

/// Largest number of child servers with time series of their own. A child server counts once for each resource.
pub const CHILDREN_MAX: usize = 1_000;

pub(super) fn write_parent(
    state: &ServerState,
    totals: &Totals,
    listed: &[ResourceSnapshot],
    families: &mut Families<'_>,
) -> fmt::Result {
    let Some(parent) = state.parent.borrow().clone() else {
        return Ok(());
    };
    let help = "1 for the link by which the parent is reached now, and for idle if this server does \
                not ask since it is not the master; it is out of reach if all are 0";
    let links = [ParentLink::Idle, ParentLink::Poll, ParentLink::Stream];
    let rows = links.map(|link| ([("link", link.as_str())], flag(parent.link == link)));
    families.gauges("parent_connected", help, rows)?;
    let help = "1 if this node is its own ancestor, by which nothing can be leased";
    families.gauge("is_in_cycle", help, flag(state.is_in_cycle()))?;
    let refused = float(totals.refused_by_parent);
    let help = "Resources that the parent refuses";
    families.gauge("parent_resources_refused", help, refused)?;
    let help = "How often the epoch of the parent's master was forgotten for a lower one, because the last \
                lease was over";
    let node = state.node();
    let status = node.read_replica(|replica, _| replica.parent_status());
    let forgotten = status.map_or(0, |status| status.epochs_forgotten);
    families.counter("parent_masterships_forgotten", help, forgotten)?;
    for (name, help, value_of) in OWN_LEASE_GAUGES {
        let rows = listed.iter().filter_map(|resource| {
            let labels = [("resource", resource.resource.as_str())];
            Some((labels, value_of(resource.upstream.as_ref()?)))
        });
        families.gauges(name, help, rows)?;
    }
    Ok(())
}

pub(super) fn write_children(
    state: &ServerState,
    totals: &Totals,
    listed: &[ResourceSnapshot],
    families: &mut Families<'_>,
) -> fmt::Result {
    let mut children: Vec<(&str, LeaseSnapshot)> = Vec::new();
    for resource in listed {
        let max = resource.children.min(CHILDREN_MAX - children.len());
        if max > 0 {
            let leases = state.leases(&resource.resource, max, "").into_iter();
            // Child servers come first. Some may have gone since they were counted; then clients follow.
            let leases = leases.map(|(lease, _)| lease);
            let leases = leases.filter(|lease| lease.child.is_some());
            children.extend(leases.map(|lease| (resource.resource.as_str(), lease)));
        }
    }
    let help = "Leases of child servers; a child counts once for each resource";
    families.gauge("children", help, float(totals.children))?;
    let help = "Leases of child servers without time series of their own, since there are too many";
    let not_listed = totals.children.saturating_sub(children.len());
    families.gauge("children_not_listed", help, float(not_listed))?;
    for (name, help, value_of) in CHILD_GAUGES {
        let rows = children.iter().filter_map(|(resource, lease)| {
            let child = lease.holder.name.as_str();
            Some((
                [("resource", *resource), ("child", child)],
                value_of(lease)?,
            ))
        });
        families.gauges(name, help, rows)?;
    }
    Ok(())
}

/// Gauges of the server's own lease on every resource.
const OWN_LEASE_GAUGES: [Column<UpstreamSnapshot>; 2] = metrics! {
    /// How long the server's own lease still lasts; 0: there is none
    "parent_lease_remaining_seconds": |lease| lease.expires_in.map_or(0.0, |left| left.as_secs_f64());
    /// What the server should have by its own lease once others have shrunk, in the resource's own unit
    "parent_share": |lease| lease.share;
};

/// Gauges of every child server on every resource. None: the child does not report it.
const CHILD_GAUGES: [Column<LeaseSnapshot, Option<f64>>; 6] = metrics! {
    /// Sum of what the clients below a child server want, in the resource's own unit
    "child_wants": |lease| Some(lease.wants());
    /// What the newest lease of a child server says, in the resource's own unit
    "child_granted": |lease| Some(lease.granted);
    /// The most that a child server may be using, in the resource's own unit
    "child_reserved": |lease| Some(lease.reserved);
    /// The most that may be in use below a child server, as it reports, in the resource's own unit; absent: it is a
    /// Doorman server and does not report it
    "child_outstanding": |lease| lease.child.as_ref()?.outstanding;
    /// Clients below a child server
    "child_clients": |lease| Some(lease.demand.clients());
    /// 1 if a child server is in learning mode itself
    "child_learning": |lease| lease.child.as_ref().map(|child| flag(child.learning));
};
