//! Builds the start of a run: the tree, the clients and the watched resources.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::time::Time;
use doorward_session::address::Address;
use doorward_session::master_finder::MasterFinder;
use doorward_trace::Row;

use crate::checker::Watched;
use crate::recording::{NodeInfo, Recording, ResourceRecording};
use crate::scenario::{Demand, DemandPlayer, Usage};
use crate::world::{ClientProcess, Place, ServerSlot, Use, World, chance_of};

impl World<'_> {
    /// Builds the tree.
    pub(super) fn build_tree(&mut self) {
        let nodes = &self.scenario.nodes;
        // The scenario's reader has checked them.
        let links = self.scenario.network.resolve(nodes).unwrap_or_default();
        for ((number, node), links) in (0..).zip(nodes).zip(links) {
            let parent = node.parent.map(|parent| parent as u32);
            let above = parent.map(|parent| &self.places[parent]);
            let level = above.map_or(0, |above| above.level + 1);
            let slots = 0..node.candidates.max(1);
            // They are `node-3-0:1`, `node-3-1:1` and so on.
            let address = |slot| Address::parse(&format!("node-{number}-{slot}:1")).ok();
            let addresses: Arc<[Address]> = slots.clone().filter_map(address).collect();
            self.places.push(Place {
                number,
                name: node.name.clone(),
                parent,
                level,
                slots: slots.map(|_| ServerSlot::default()).collect(),
                published: Arc::clone(&addresses),
                addresses,
                parents: above.map_or_else(Arc::default, |it| Arc::clone(&it.published)),
                links,
                ..Place::default()
            });
            if let Some(parent) = parent {
                self.places[parent].children.push(number);
            }
        }
        // Elections are over before the run begins, from the root down.
        self.etcd.is_quick = true;
        for place in self.places.numbers() {
            for slot in self.places[place].slots.numbers() {
                self.start_server(place, slot);
            }
            while let Some((_, action)) = self.events.next(Time::ZERO) {
                action(self);
            }
        }
        self.etcd.is_quick = false;
    }

    /// Creates the clients.
    pub(super) fn spawn_clients(&mut self) {
        let scenario = self.scenario;
        let settled_after = Time::ZERO + scenario.settled_after.0;
        for (number, group) in (0..).zip(&scenario.clients) {
            let watch = |usage: &Usage| self.watch(&usage.resource, settled_after);
            let resources: Vec<u32> = group.usages().map(watch).collect();
            let places = group.places(&scenario.nodes).unwrap_or_default();
            let first = self.clients.len();
            let (count, start_within) = (group.count.0, group.start_within.0);
            for index in 0..count {
                let Some(place) = places.get(index % places.len().max(1)) else {
                    continue;
                };
                let Ok(name) = HolderName::new(&group.client_name(index)) else {
                    continue;
                };
                let (place, client) = (*place as u32, self.clients.len());
                let usages = (0..).zip(group.usages().zip(&resources));
                let uses = usages.map(|(which, (usage, resource))| {
                    let account = self.watched[*resource].join(usage.priority, place);
                    let chance = chance_of(&self.chance, client, which);
                    Use::new(usage, *resource, account, DemandPlayer::new(index, chance))
                });
                let uses = uses.collect();
                let there = &mut self.places[place];
                there.clients += 1;
                let finder = MasterFinder::new(Arc::clone(&there.published));
                let process = ClientProcess::new(number, place, uses, finder, name);
                let client = self.clients.push(process);
                self.wakes.push(None);
                let part = index as f64 / count.max(1) as f64;
                let starts = Time::ZERO + start_within.mul_f64(part);
                self.act(starts, move |world| {
                    world.clients[client].is_due = true;
                    world.start_client(client);
                });
            }
            if let Demand::Trace(trace) = &group.first.demand {
                let begins = trace.rows.first().map_or(Duration::ZERO, Row::at);
                self.act(Time::ZERO + begins, move |world| {
                    world.follow_trace(number, first, 0);
                });
            }
        }
    }

    /// Returns the number of a resource among the watched ones.
    fn watch(&mut self, resource: &ResourceId, settled_after: Time) -> u32 {
        if let Some(known) = self.watched.iter().position(|w| w.resource == *resource) {
            return known as u32;
        }
        // The scenario's reader has checked that every resource has a template at the start.
        if let Some(template) = self.templates.find(resource).map(Arc::clone) {
            let mut watched = Watched::new(resource.clone(), &template, settled_after);
            let levels = self.places.iter().map(|place| place.level + 1);
            watched.immediate.levels = levels.max().unwrap_or(1) as u32;
            self.watched.push(watched);
        }
        self.watched.len() - 1
    }

    /// Fills in the head of the recording.
    pub(super) fn describe(&mut self) {
        let scenario = self.scenario;
        let nodes = self.places.iter().map(|place| NodeInfo {
            name: place.name.clone(),
            parent: place.parent.map(|parent| parent as usize),
            level: place.level,
            clients: place.clients,
            ..NodeInfo::default()
        });
        let resources = self.watched.iter().map(|watched| ResourceRecording {
            resource: watched.resource.to_string(),
            algorithm: watched.algorithm.kind.as_str().to_owned(),
            lease_length_s: Some(watched.algorithm.lease_length.as_secs_f64()),
            ..ResourceRecording::default()
        });
        self.recording = Recording {
            scenario: scenario.name.clone(),
            description: scenario.description.clone(),
            seed: scenario.seed,
            duration_s: scenario.duration.0.as_secs_f64(),
            sample_every_s: scenario.sample_every.0.as_secs_f64(),
            settled_after_s: scenario.settled_after.0.as_secs_f64(),
            nodes: nodes.collect(),
            clients: self.clients.len() as usize,
            resources: resources.collect(),
            ..Recording::default()
        };
        self.choose_shown();
    }
}
