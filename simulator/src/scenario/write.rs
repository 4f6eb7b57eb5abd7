//! Writes scenarios as files: what `read` reads again as the same scenario, so that it plays the same
//! run, bit for bit. So a world that chance made up can be kept, whatever chance draws later.
//!
//! What a file says if it says nothing is not written, so that a small scenario is a small file.
//! What a file cannot say is refused, and named.

mod demand;
mod faults;
mod limiter;
mod templates;
mod tree;
mod yaml;

use std::error::Error;
use std::fmt;
use std::time::Duration;

use doorward_client::state::Mode;

use crate::scenario::demand::Demand;
use crate::scenario::usage::Usage;
use crate::scenario::write::yaml::Yaml;
use crate::scenario::{
    ClientGaps, ClientGroup, Latency, Limits, Link, Network, Scenario, Servers, WayUp,
};

/// A scenario has something in it that a file cannot say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotWrite {
    /// What that is.
    pub what: String,
}

impl fmt::Display for CannotWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a scenario file cannot say {}", self.what)
    }
}

impl Error for CannotWrite {}

impl CannotWrite {
    fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}

impl Scenario {
    /// The text of a file that plays the same run. Without a name, the file's is the scenario's.
    ///
    /// # Errors
    ///
    /// If there is something in it that a file cannot say.
    pub fn to_yaml(&self) -> Result<String, CannotWrite> {
        let mut out = Yaml::map();
        if !self.name.is_empty() {
            out.put("name", Yaml::text(&self.name));
        }
        if !self.description.is_empty() {
            out.put("description", Yaml::text(&self.description));
        }
        out.put("duration", Yaml::duration(self.duration));
        out.put("sample_every", Yaml::duration(self.sample_every));
        out.put("seed", Yaml::plain(self.seed));
        if self.settled_after != self.settled_by_default() {
            out.put("settled_after", Yaml::duration(self.settled_after));
        }
        if let Some(heal_at) = self.heal_at {
            out.put("heal_at", Yaml::duration(heal_at));
        }
        if !self.right_at.is_empty() {
            let times = self.right_at.iter().copied().map(Yaml::duration);
            out.put("right_at", Yaml::List(times.collect()));
        }
        if self.has_idle_faults() {
            out.put("idle_faults", Yaml::plain(true));
        }
        out.put("templates", templates::written(&self.templates));
        out.put("tree", tree::written(&self.nodes));
        let clients: Result<Vec<Yaml>, _> = self.clients.iter().map(|it| self.group(it)).collect();
        out.put("clients", Yaml::List(clients?));
        if self.network != Network::default() {
            out.put("network", self.network());
        }
        if self.servers != Servers::default() {
            out.put("servers", servers(&self.servers));
        }
        if self.client_gaps != ClientGaps::default() {
            let mut gaps = Yaml::map();
            gaps.put("early", Yaml::duration(self.client_gaps.early));
            gaps.put("news", Yaml::duration(self.client_gaps.news));
            out.put("client_gaps", gaps);
        }
        if !self.faults.is_empty() {
            let faults: Result<Vec<Yaml>, _> =
                self.faults.iter().map(|it| self.fault(it)).collect();
            out.put("faults", Yaml::List(faults?));
        }
        if self.limits != Limits::default() {
            out.put("limits", limits(&self.limits));
        }
        Ok(out.document())
    }

    fn name_of(&self, node: usize) -> Yaml {
        Yaml::text(self.nodes.get(node).map_or("", |node| node.name.as_str()))
    }

    /// The name of a node, or a list of names.
    fn names_of(&self, nodes: &[usize]) -> Yaml {
        match nodes {
            [only] => self.name_of(*only),
            many => Yaml::List(many.iter().map(|node| self.name_of(*node)).collect()),
        }
    }

    fn group(&self, group: &ClientGroup) -> Result<Yaml, CannotWrite> {
        let mut out = Yaml::map();
        match &group.first.demand {
            Demand::Trace(trace) => {
                let prefix = format!("{}/", group.name);
                if trace.clients.iter().all(|it| it.starts_with(&prefix)) {
                    out.put("name", Yaml::text(&group.name));
                }
            }
            _ => {
                out.put("name", Yaml::text(&group.name));
                if group.count != 1 {
                    out.put("count", Yaml::plain(group.count));
                }
            }
        }
        if group.nodes != self.leaves() {
            out.put("at", self.names_of(&group.nodes));
        }
        out.extend(usage(&group.first)?);
        let template = self.templates.find(&group.first.resource);
        let refresh = template.map(|template| template.algorithm.refresh_interval);
        if group.start_within != refresh.unwrap_or_default().min(self.duration) {
            out.put("start_within", Yaml::duration(group.start_within));
        }
        if !group.also.is_empty() {
            let also: Result<Vec<Yaml>, _> = group.also.iter().map(usage).collect();
            out.put("also", Yaml::List(also?));
        }
        Ok(out)
    }

    fn network(&self) -> Yaml {
        let network = &self.network;
        let mut out = Yaml::map();
        out.put("clients", link(&network.clients));
        out.put("servers", link(&network.servers));
        let mut links = Vec::new();
        for (node, way) in &network.at {
            let mut one = Yaml::map();
            one.put("at", self.name_of(*node));
            one.extend(link(way));
            links.push(one);
        }
        for (node, way) in &network.above {
            // The root has no parent, and no way to it.
            let parent = self.nodes.get(*node).and_then(|node| node.parent);
            let Some(parent) = parent else { continue };
            let ends = [parent, *node].map(|end| self.name_of(end));
            let mut one = Yaml::map();
            one.put("between", Yaml::List(ends.into()));
            one.extend(link(way));
            links.push(one);
        }
        if !links.is_empty() {
            out.put("links", Yaml::List(links));
        }
        out
    }
}

/// What clients use of a resource.
fn usage(usage: &Usage) -> Result<Yaml, CannotWrite> {
    let mut out = Yaml::map();
    out.put("resource", Yaml::text(usage.resource.as_str()));
    if usage.priority != 0 {
        out.put("priority", Yaml::plain(usage.priority));
    }
    match usage.mode {
        Mode::Safe => {}
        Mode::Pessimistic => out.put("mode", Yaml::plain("pessimistic")),
        Mode::Optimistic => out.put("mode", Yaml::plain("optimistic")),
    }
    out.put("wants", demand::written(&usage.demand)?);
    if let Some(limiter) = &usage.limiter {
        out.put("limiter", limiter::written(limiter));
    }
    Ok(out)
}

/// All that there is to say of a link.
fn link(link: &Link) -> Yaml {
    let mut out = Yaml::map();
    out.put(
        "latency",
        match link.latency {
            Latency::Constant(span) => Yaml::duration(span),
            Latency::Uniform(least, most) => Yaml::span((least, most)),
            Latency::Exponential { least, mean } => {
                let mut latency = Yaml::map();
                latency.put("least", Yaml::duration(least));
                latency.put("mean", Yaml::duration(mean));
                latency
            }
        },
    );
    out.put("loss", Yaml::plain(link.loss));
    out.put("duplication", Yaml::plain(link.duplication));
    out
}

fn servers(servers: &Servers) -> Yaml {
    let mut out = Yaml::map();
    out.put("refresh_floor", Yaml::duration(servers.refresh_floor));
    out.put("push_round", Yaml::duration(servers.push_round));
    let way_up = match servers.way_up {
        WayUp::Stream => "stream",
        WayUp::Poll => "poll",
    };
    out.put("way_up", Yaml::plain(way_up));
    out.put("election", Yaml::span(servers.election));
    out
}

fn limits(limits: &Limits) -> Yaml {
    let seconds = |limit: Option<Duration>| limit.map(Yaml::duration);
    let amount = |limit: Option<f64>| limit.map(Yaml::plain);
    let mut out = Yaml::map();
    for (key, limit) in [
        ("overshoot", amount(limits.overshoot_max)),
        ("nesting", amount(limits.nesting_max)),
        ("mastership", amount(limits.mastership_max)),
        ("rest", amount(limits.rest_max)),
        ("unfairness", amount(limits.unfairness_max)),
        ("utilisation", amount(limits.utilisation_min)),
        ("convergence", seconds(limits.convergence_max)),
        ("starvation", seconds(limits.starvation_max)),
        ("oscillation", amount(limits.oscillation_max)),
        ("comeback", seconds(limits.comeback_max)),
        ("not_back", amount(limits.not_back_max)),
        ("safe_use", amount(limits.safe_use_max)),
        ("requests", amount(limits.requests_max)),
    ] {
        if let Some(limit) = limit {
            out.put(key, limit);
        }
    }
    out
}
