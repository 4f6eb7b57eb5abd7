//! Metrics of leases between servers. A server below the root has those of the link to its parent and of its own
//! leases; every server has those of the leases of child servers.
//!
//! Their number is bounded like that of resources. Resources without time series of their own have none here. Child
//! servers beyond [`CHILDREN_MAX`], in the order of resources and then names, are left out.

use std::fmt;
use std::thread::yield_now;

use doorward_engine::messages::{LeaseSnapshot, ResourceSnapshot, UpstreamSnapshot};
use doorward_engine::node::pages::Totals;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::metrics::float;
use crate::status::{ParentLink, ServerState};

/// Largest number of child servers with time series of their own. A child server counts once for each resource.
pub const CHILDREN_MAX: usize = 1_000;

/// Writes all of them. `listed` are the resources that have time series of their own.
pub(super) fn encode(
    state: &ServerState,
    totals: &Totals,
    listed: &[ResourceSnapshot],
    encoder: &mut DescriptorEncoder,
) -> Result<(), fmt::Error> {
    encode_parent(state, totals, listed, encoder)?;
    encode_children(state, totals, listed, encoder)
}

fn encode_parent(
    state: &ServerState,
    totals: &Totals,
    listed: &[ResourceSnapshot],
    encoder: &mut DescriptorEncoder,
) -> Result<(), fmt::Error> {
    let Some(parent) = state.parent_news() else {
        return Ok(());
    };
    let help = "1 for the link by which the parent is reached now, and for idle if this server does \
                not ask since it is not the master; it is out of reach if all are 0";
    let mut family =
        encoder.encode_descriptor("parent_connected", help, None, MetricType::Gauge)?;
    for link in [ParentLink::Idle, ParentLink::Poll, ParentLink::Stream] {
        let gauge = ConstGauge::new(flag(parent.link == link));
        gauge.encode(family.encode_family(&[("link", link.as_str())])?)?;
    }
    for (name, help, value) in [
        (
            "is_in_cycle",
            "1 if this node is its own ancestor, by which nothing can be leased",
            flag(state.is_in_cycle()),
        ),
        (
            "parent_resources_refused",
            "Resources that the parent refuses",
            float(totals.refused_by_parent),
        ),
    ] {
        let gauge = ConstGauge::new(value);
        gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
    }
    let forgotten = ConstCounter::new(state.parent_masterships_forgotten());
    forgotten.encode(encoder.encode_descriptor(
        "parent_masterships_forgotten",
        "How often the epoch of the parent's master was forgotten for a lower one, because the last \
         lease was over",
        None,
        MetricType::Counter,
    )?)?;
    for (name, help, value_of) in OWN_LEASE_GAUGES {
        if listed.iter().all(|resource| resource.upstream.is_none()) {
            break;
        }
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        yield_now();
        for resource in listed {
            if let Some(lease) = &resource.upstream {
                let labels = [("resource", resource.resource.as_str())];
                let gauge = ConstGauge::new(value_of(lease));
                gauge.encode(family.encode_family(&labels)?)?;
            }
        }
    }
    Ok(())
}

fn encode_children(
    state: &ServerState,
    totals: &Totals,
    listed: &[ResourceSnapshot],
    encoder: &mut DescriptorEncoder,
) -> Result<(), fmt::Error> {
    let mut children: Vec<(&str, LeaseSnapshot)> = Vec::new();
    for resource in listed {
        let max = resource.children.min(CHILDREN_MAX - children.len());
        if max > 0 {
            let leases = state.leases(&resource.resource, max).into_iter();
            // Child servers come first. Some may have gone since they were counted; then clients follow.
            let leases = leases.map(|(lease, _)| lease);
            let leases = leases.filter(|lease| lease.child.is_some());
            children.extend(leases.map(|lease| (resource.resource.as_str(), lease)));
        }
    }
    for (name, help, value) in [
        (
            "children",
            "Leases of child servers; a child counts once for each resource",
            float(totals.children),
        ),
        (
            "children_not_listed",
            "Leases of child servers without time series of their own, since there are too many",
            float(totals.children.saturating_sub(children.len())),
        ),
    ] {
        let gauge = ConstGauge::new(value);
        gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
    }
    for (name, help, value_of) in CHILD_GAUGES {
        // Without a time series, a family would consist of its help only.
        if children.iter().all(|(_, lease)| value_of(lease).is_none()) {
            continue;
        }
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        yield_now();
        for (resource, lease) in &children {
            if let Some(value) = value_of(lease) {
                let labels = [
                    ("resource", *resource),
                    ("child", lease.holder.name.as_str()),
                ];
                ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
            }
        }
    }
    Ok(())
}

/// A gauge of the server's own lease on every resource: its name, its help, and its value.
type OwnLeaseGauge = (&'static str, &'static str, fn(&UpstreamSnapshot) -> f64);

const OWN_LEASE_GAUGES: [OwnLeaseGauge; 2] = [
    (
        "parent_lease_remaining_seconds",
        "How long the server's own lease still lasts; 0: there is none",
        |lease| lease.expires_in.map_or(0.0, |left| left.as_secs_f64()),
    ),
    (
        "parent_share",
        "What the server should have by its own lease once others have shrunk, in the resource's \
         own unit",
        |lease| lease.share,
    ),
];

/// A gauge of every child server on every resource: its name, its help, and its value. None: the child does not report
/// it.
type ChildGauge = (
    &'static str,
    &'static str,
    fn(&LeaseSnapshot) -> Option<f64>,
);

const CHILD_GAUGES: [ChildGauge; 6] = [
    (
        "child_wants",
        "Sum of what the clients below a child server want, in the resource's own unit",
        |lease| Some(lease.wants),
    ),
    (
        "child_granted",
        "What the newest lease of a child server says, in the resource's own unit",
        |lease| Some(lease.granted),
    ),
    (
        "child_reserved",
        "The most that a child server may be using, in the resource's own unit",
        |lease| Some(lease.reserved),
    ),
    (
        "child_outstanding",
        "The most that may be in use below a child server, as it reports, in the resource's own unit; absent: it \
         is a Doorman server and does not report it",
        |lease| lease.child.as_ref()?.outstanding,
    ),
    ("child_clients", "Clients below a child server", |lease| {
        Some(lease.subclients)
    }),
    (
        "child_learning",
        "1 if a child server is in learning mode itself",
        |lease| lease.child.as_ref().map(|child| flag(child.learning)),
    ),
];

fn flag(value: bool) -> f64 {
    f64::from(u8::from(value))
}
