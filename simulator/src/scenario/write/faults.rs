//! What goes wrong, and when.

use doorward_engine::id::ResourceId;

use crate::scenario::Scenario;
use crate::scenario::fault::{
    ClientChoice, ClockChoice, Event, Fault, NodeChoice, Servers, Side, Span, ToEtcd, When,
};
use crate::scenario::write::yaml::Yaml;
use crate::scenario::write::{CannotWrite, templates};

impl Scenario {
    /// Whether something that happens concerns nobody, or fewer than it says: files have to say that
    /// this is no mistake.
    pub(super) fn has_idle_faults(&self) -> bool {
        let mut events = self.faults.iter().flat_map(|fault| &fault.choices);
        events.any(|(_, event)| self.is_idle(event))
    }

    fn is_idle(&self, event: &Event) -> bool {
        match event {
            Event::Depose { node }
            | Event::Isolate { node, .. }
            | Event::EtcdLink { node, .. }
            | Event::RedirectLoop { node, .. }
            | Event::StaleAddresses { node, .. } => {
                let of = node.only().and_then(|node| self.nodes.get(node));
                of.is_some_and(|node| node.candidates == 1)
            }
            Event::Partition { node, from, .. } => node.only() == Some(0) && *from == Side::Parent,
            Event::Twin {
                of: ClockChoice::Node(node),
                ..
            } => {
                let of = node.only().and_then(|node| self.nodes.get(node));
                of.is_some_and(|node| node.parent.is_none() || node.candidates > 1)
            }
            _ => event.clients().is_some_and(|clients| {
                clients.count == 0 || clients.count > clients.number_of(&self.clients)
            }),
        }
    }

    pub(super) fn fault(&self, fault: &Fault) -> Result<Yaml, CannotWrite> {
        let mut out = Yaml::map();
        let period = |out: &mut Yaml, from, until: Option<_>| {
            out.put("from", Yaml::duration(from));
            if let Some(until) = until {
                out.put("until", Yaml::duration(until));
            }
        };
        match fault.when {
            When::At(at) => out.put("at", Yaml::duration(at)),
            When::Every {
                interval,
                from,
                until,
            } => {
                out.put("every", Yaml::duration(interval));
                period(&mut out, from, until);
            }
            When::Random {
                per_hour,
                from,
                until,
            } => {
                out.put("per_hour", Yaml::plain(per_hour));
                period(&mut out, from, until);
            }
        }
        if let [(1.0, event)] = fault.choices.as_slice() {
            out.extend(self.event(event)?);
            return Ok(out);
        }
        let mut choices = Vec::new();
        for (weight, event) in &fault.choices {
            let mut one = Yaml::map();
            one.put("weight", Yaml::plain(weight));
            one.extend(self.event(event)?);
            choices.push(one);
        }
        out.put("one_of", Yaml::List(choices));
        Ok(out)
    }

    fn event(&self, event: &Event) -> Result<Yaml, CannotWrite> {
        let mut out = Yaml::map();
        match event {
            Event::Kill { .. }
            | Event::Restart { .. }
            | Event::Stop { .. }
            | Event::Elect { .. }
            | Event::Depose { .. }
            | Event::Freeze { .. }
            | Event::Isolate { .. }
            | Event::EtcdLink { .. }
            | Event::RedirectLoop { .. }
            | Event::StaleAddresses { .. }
            | Event::Partition { .. } => self.event_of_node(&mut out, event),
            Event::Etcd { back: None, length } => {
                out.put("etcd", Yaml::plain("wiped"));
                lasts(&mut out, *length);
            }
            Event::Etcd {
                back: Some(back),
                length,
            } => {
                out.put("etcd", Yaml::plain("restored"));
                out.put("back", Yaml::span(*back));
                lasts(&mut out, *length);
            }
            Event::Elections { take, length } => {
                out.put("elections", Yaml::span(*take));
                lasts(&mut out, *length);
            }
            Event::Drift { clock, speed } => {
                out.put("drift", self.clock(clock)?);
                out.put("speed", Yaml::plain(speed));
            }
            Event::Jump { clock, by } => {
                out.put("jump", self.clock(clock)?);
                out.put("by", Yaml::duration(*by));
            }
            Event::Edit { templates } => out.put("edit", templates::written(templates)),
            Event::Twin { of, length } => {
                out.put("twin", self.clock(of)?);
                lasts(&mut out, Some(*length));
            }
            Event::Crash { .. }
            | Event::Leave { .. }
            | Event::Close { .. }
            | Event::Surge { .. }
            | Event::Demand { .. } => self.event_of_clients(&mut out, event)?,
        }
        Ok(out)
    }

    /// What clients do.
    fn event_of_clients(&self, out: &mut Yaml, event: &Event) -> Result<(), CannotWrite> {
        match event {
            Event::Crash { clients, length } => {
                out.put("crash", self.some_clients(clients)?);
                lasts(out, *length);
            }
            Event::Leave { clients, length } => {
                out.put("leave", self.some_clients(clients)?);
                lasts(out, *length);
            }
            Event::Close {
                clients,
                resource,
                length,
            } => {
                out.put("close", self.some_clients(clients)?);
                of_resource(out, resource.as_ref());
                lasts(out, *length);
            }
            Event::Surge {
                clients,
                by,
                resource,
            } => {
                out.put("surge", self.some_clients(clients)?);
                out.put("by", Yaml::plain(by));
                of_resource(out, resource.as_ref());
            }
            Event::Demand {
                clients,
                wants,
                resource,
            } => {
                out.put("demand", self.some_clients(clients)?);
                out.put("wants", Yaml::plain(wants));
                of_resource(out, resource.as_ref());
            }
            _ => {}
        }
        Ok(())
    }

    /// What happens to a node.
    fn event_of_node(&self, out: &mut Yaml, event: &Event) {
        let (name, node, length) = match event {
            Event::Kill { node, length } => ("kill", node, *length),
            Event::Restart { node, length } => ("restart", node, Some(*length)),
            Event::Stop { node, length } => ("stop", node, Some(*length)),
            Event::Elect { node } => ("elect", node, None),
            Event::Depose { node } => ("depose", node, None),
            Event::Freeze { node, length } => ("freeze", node, Some(*length)),
            Event::Isolate { node, length, .. } => ("isolate", node, Some(*length)),
            Event::EtcdLink { node, length, .. } => ("etcd_link", node, Some(*length)),
            Event::RedirectLoop { node, length } => ("redirect_loop", node, Some(*length)),
            Event::StaleAddresses { node, length } => ("stale_addresses", node, Some(*length)),
            Event::Partition { node, length, .. } => ("partition", node, Some(*length)),
            _ => return,
        };
        out.put(name, self.node(node));
        match event {
            Event::Isolate { servers, way, .. } => {
                match servers {
                    Servers::Master => {}
                    Servers::Others => out.put("servers", Yaml::plain("others")),
                    Servers::Some => out.put("servers", Yaml::plain("some")),
                    Servers::All => out.put("servers", Yaml::plain("all")),
                }
                match way {
                    ToEtcd::Both => {}
                    ToEtcd::There => out.put("way", Yaml::plain("there")),
                    ToEtcd::Back => out.put("way", Yaml::plain("back")),
                }
            }
            Event::EtcdLink { loss, late, .. } => {
                out.put("loss", Yaml::plain(loss));
                out.put("late", Yaml::span(*late));
            }
            Event::Partition { from, .. } => match from {
                Side::All => {}
                Side::Parent => out.put("side", Yaml::plain("parent")),
                Side::Below => out.put("side", Yaml::plain("below")),
            },
            _ => {}
        }
        lasts(out, length);
    }

    fn node(&self, choice: &NodeChoice) -> Yaml {
        match choice {
            NodeChoice::Node(node) => self.name_of(*node),
            NodeChoice::Any => Yaml::plain("any"),
            NodeChoice::AnyBelowRoot => Yaml::plain("below_root"),
            // A list, also of one: chance chooses from lists.
            NodeChoice::AnyOf(nodes) => {
                Yaml::List(nodes.iter().map(|node| self.name_of(*node)).collect())
            }
        }
    }

    fn clock(&self, choice: &ClockChoice) -> Result<Yaml, CannotWrite> {
        match choice {
            ClockChoice::Node(node) => Ok(self.node(node)),
            ClockChoice::Clients(clients) => self.some_clients(clients),
        }
    }

    fn some_clients(&self, choice: &ClientChoice) -> Result<Yaml, CannotWrite> {
        let mut out = Yaml::map();
        out.put("clients", Yaml::plain(choice.count));
        if let Some(groups) = &choice.groups {
            let of = |group: &usize| self.clients.get(*group).map(|group| group.name.as_str());
            let mut names: Vec<&str> = groups.iter().filter_map(of).collect();
            names.dedup();
            let [name] = names.as_slice() else {
                return Err(CannotWrite::new("clients of several groups, or of none"));
            };
            out.put("of", Yaml::text(name));
        }
        if let Some(nodes) = &choice.nodes {
            out.put("at", self.names_of(nodes));
        }
        Ok(out)
    }
}

/// Which of their resources is meant, if it is not the first.
fn of_resource(out: &mut Yaml, resource: Option<&ResourceId>) {
    if let Some(resource) = resource {
        out.put("resource", Yaml::text(resource.as_str()));
    }
}

/// For how long, if it is not for good.
fn lasts(out: &mut Yaml, length: Option<Span>) {
    if let Some(length) = length {
        out.put("for", Yaml::span(length));
    }
}
