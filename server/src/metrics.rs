//! Metrics for Prometheus, in either of its two text formats ([`mod@format`]).
//!
//! Every time series has a label `node`. Counters of the process are kept here and in its state; the node is read at
//! each scrape, a few resources at a time. The number of time series is bounded. Resources beyond [`RESOURCES_MAX`], in the
//! order of their ids, are left out and counted in `doorward_resources_not_listed`. Calls of unknown methods share the
//! method `other`. `docs/metrics.md` names every metric.

pub mod calls;
mod edge;
mod election;
mod families;
pub mod format;
pub mod leases;
mod limits;
mod security;
mod sessions;

use std::fmt;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::messages::{Counters, ResourceSnapshot};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tonic::Code;

use crate::limits::ServerLimit;
use crate::logs;
use crate::metrics::calls::CallMetrics;
use crate::metrics::families::{Column, Families, flag, float, metrics};
use crate::metrics::format::Format;
use crate::status::ServerState;

/// Largest number of resources with time series of their own.
pub const RESOURCES_MAX: usize = 1_000;

/// Metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    pub(crate) registry: Registry,
    calls: CallMetrics,
}

impl Metrics {
    /// Returns the metrics of a server. They read the node and the rest from its state.
    pub fn new(state: &Arc<ServerState>) -> Self {
        let node = ("node".into(), state.node_name().to_owned().into());
        let mut registry = Registry::with_prefix_and_labels("doorward", iter::once(node));
        let help = "The version of the server";
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", help, version);
        let calls = CallMetrics::register(&mut registry);
        let help = "Resources in requests that were refused because they were malformed";
        registry.register("asks_malformed", help, state.asks_malformed.clone());
        let help = "Versions of the templates read, by whether they came into force";
        let (loads, loaded) = (&state.template_loads, &state.templates_loaded);
        registry.register("template_loads", help, loads.clone());
        let help = "When the templates in force were read, since the Unix epoch";
        registry.register("templates_loaded_timestamp_seconds", help, loaded.clone());
        let times = state.node().lock_times();
        let help = "How long the lock of the node was held, each time";
        registry.register("node_lock_held_seconds", help, times.held.clone());
        let help = "How long the lock of the node was waited for, each time";
        registry.register("node_lock_wait_seconds", help, times.waited.clone());
        registry.register_collector(Box::new(NodeCollector(Arc::clone(state))));
        for outcome in ["ok", "failed"] {
            let _ = loads.get_or_create(&[("outcome", outcome)]);
        }
        Self { registry, calls }
    }

    /// Notes an answered call of one of all [methods](crate::methods::ALL), or of any other one.
    pub fn observe_call(&self, method: Option<usize>, code: Code, took: Duration) {
        self.calls.observe(method, code, took);
    }

    /// Returns all metrics as text.
    ///
    /// # Errors
    ///
    /// If a metric cannot be written, which is a bug.
    pub fn render(&self, format: Format) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(format.of_open_metrics(text))
    }
}

/// Reads the node at each scrape.
#[derive(Debug)]
struct NodeCollector(Arc<ServerState>);

impl Collector for NodeCollector {
    fn encode(&self, encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let (state, families) = (&*self.0, &mut Families::new(encoder));
        let listed: Vec<_> = state.snapshots_after(None, RESOURCES_MAX).collect();
        let totals = state.totals();
        let (counted, is_master, templates, memory) = state.node().look(|node, now| {
            (
                node.counters(),
                node.mastership(now).is_master(),
                node.templates().len(),
                // An estimate by weights: an exact count would walk all leases.
                node.lease_memory_bytes(),
            )
        });
        let refused = state.templates_problem.borrow().is_some();
        let resources = totals.resources;
        for (name, help, value) in metrics! {
            /// 1 if this server is the master of its node
            "is_master": flag(is_master);
            /// 1 if the newest version of the templates was refused
            "templates_refused": flag(refused);
            /// Templates in force
            "templates": float(templates);
            /// Resources with leases out
            "resources": float(resources);
            /// Resources without time series of their own, since there are too many
            "resources_not_listed": float(resources.saturating_sub(RESOURCES_MAX));
            /// Memory behind all resources and leases, by their weights
            "lease_memory_bytes": float(memory);
        } {
            families.gauge(name, help, value)?;
        }
        election::write(state, families)?;
        edge::write(state, families)?;
        security::write(state, families)?;
        limits::write(state, families)?;
        sessions::write(state, &totals, families)?;
        let others = metrics! {
            /// Log lines dropped because standard error was not read in time
            "log_lines_dropped": logs::queue::dropped_lines();
            /// GetCapacity calls refused with a time to come back, since too many were in progress
            "calls_refused": state.limits().of(ServerLimit::Calls).refused();
        };
        for (name, help, value) in counters(counted).into_iter().chain(others) {
            families.counter(name, help, value)?;
        }
        leases::write_parent(state, &totals, &listed, families)?;
        leases::write_children(state, &totals, &listed, families)?;
        for (name, help, value_of) in RESOURCE_GAUGES {
            let rows = listed.iter().map(|resource| {
                let labels = [("resource", resource.resource.as_str())];
                (labels, value_of(resource))
            });
            families.gauges(name, help, rows)?;
        }
        let budgets = listed.iter().filter_map(|resource| {
            let labels = [("resource", resource.resource.as_str())];
            Some((labels, resource.budget.as_ref()?.used as f64))
        });
        let help = "Amount that holders of a budget say they used in its window";
        families.gauges("budget_used", help, budgets)?;
        Ok(())
    }
}

const RESOURCE_GAUGES: [Column<ResourceSnapshot>; 11] = metrics! {
    /// What there is to share, in the resource's own unit
    "resource_capacity": |resource| resource.capacity;
    /// Sum of what holders want
    "resource_wants": |resource| resource.wants;
    /// Sum of what the newest leases say
    "resource_granted": |resource| resource.granted;
    /// Sum of the most that may be in use
    "resource_reserved": |resource| resource.reserved;
    /// Leases out
    "resource_leases": |resource| float(resource.leases);
    /// Clients served, those of child servers included
    "resource_clients": |resource| resource.clients;
    /// Clients whose share is below share_floor of the template, and below their wants; 0 also without a floor
    "resource_clients_below_floor": |resource| resource.below_floor.unwrap_or(0.0);
    /// Holders that get less than their share until others have shrunk
    "resource_waiting": |resource| float(resource.waiting);
    /// How long learning mode still lasts; 0: it is over
    "resource_learning_remaining_seconds": |resource| resource.learning_remaining.map_or(0.0, |left| left.as_secs_f64());
    /// Capacity that holders may use which have not reported since the master changed
    "resource_unreported": |resource| resource.unreported;
    /// Amount that all leases together never exceed, as the next master of the root reads it; 0: none, or no bound
    "resource_mark": |resource| resource.mark.unwrap_or(0.0);
};

fn counters(counters: Counters) -> [(&'static str, &'static str, u64); 8] {
    metrics! {
        /// Asks that were decided
        "decisions": counters.decisions;
        /// Asks answered with the current lease since they came faster than the floor
        "asks_too_early": counters.too_early;
        /// Asks and releases older than the newest seen
        "asks_out_of_order": counters.out_of_order;
        /// Asks that were refused
        "asks_refused": counters.refused;
        /// Leases released
        "leases_released": counters.released;
        /// Leases expired
        "leases_expired": counters.expired;
        /// Requests answered with where the master is
        "requests_redirected": counters.redirected;
        /// Requests that showed two live processes of one name
        "name_conflicts": counters.conflicts;
    }
}
