//! Builds the start of a run: the tree, the clients and the watched resources.

use std::sync::Arc;

use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::time::Time;
use doorward_session::master_finder::MasterFinder;

use crate::checker::Watched;
use crate::recording::{NodeInfo, Recording, ResourceRecording};
use crate::scenario::ClientGroup;
use crate::scenario::demand::demand_player::DemandPlayer;
use crate::world::agenda::EventKind;
use crate::world::clock::LocalClock;
use crate::world::etcd::EtcdConnection;
use crate::world::load::RequestCounts;
use crate::world::place::{Place, ServerSlot};
use crate::world::uses::{Use, chance_of};
use crate::world::{CLIENTS_SHOWN, ClientProcess, World, addresses_of};

impl World<'_> {
    /// Builds the tree.
    pub(super) fn build_tree(&mut self) {
        for (number, node) in self.scenario.nodes.iter().enumerate() {
            let parent = node.parent.and_then(|parent| u32::try_from(parent).ok());
            let above = node.parent.and_then(|parent| self.places.get(parent));
            let level = above.map_or(0, |above| above.level + 1);
            // The scenario's reader has checked the name.
            let Ok(name) = HolderName::new(&node.name) else {
                continue;
            };
            let addresses = addresses_of(number, node.candidates);
            self.places.push(Place {
                name,
                parent,
                children: Vec::new(),
                level,
                clients: 0,
                servers: Vec::new(),
                slots: vec![
                    ServerSlot {
                        down_until: Time::ZERO,
                        way: EtcdConnection::OPEN,
                    };
                    node.candidates.max(1) as usize
                ],
                starts: 0,
                unable_until: Time::ZERO,
                published: Arc::clone(&addresses),
                addresses,
                redirect_loop_until: Time::ZERO,
                stale_until: Time::ZERO,
                parents: above.map_or_else(Arc::default, |it| Arc::clone(&it.published)),
                cut_above_until: Time::ZERO,
                cut_below_until: Time::ZERO,
                clock: LocalClock::TRUE,
                wake_at: None,
                up_since: Time::ZERO,
                load: RequestCounts::default(),
            });
            if let (Some(parent), Ok(number)) = (parent, u32::try_from(number))
                && let Some(parent) = self.places.get_mut(parent as usize)
            {
                parent.children.push(number);
            }
        }
        // Elections are over before the run begins, from the root down.
        self.etcd.is_quick = true;
        for place in 0..self.places.len() as u32 {
            let slots = self.place(place).map_or(0, |place| place.slots.len());
            for slot in 0..slots as u32 {
                self.start_server(place, slot);
            }
            while let Some((_, what)) = self.events.next(Time::ZERO) {
                self.play(what);
            }
        }
        self.etcd.is_quick = false;
    }

    /// Creates the clients.
    pub(super) fn spawn_clients(&mut self) {
        let scenario = self.scenario;
        let settled_after = Time::ZERO + scenario.settled_after;
        for (number, group) in scenario.clients.iter().enumerate() {
            let watch = |usage| self.watch(usage, settled_after);
            let resources = group.usages().map(|it| &it.resource).map(watch);
            let resources: Vec<usize> = resources.collect();
            let first = self.clients.len();
            let (count, start_within) = (group.count, group.start_within);
            for index in 0..count {
                let Some(place) = group.nodes.get(index % group.nodes.len().max(1)) else {
                    continue;
                };
                let Ok(name) = HolderName::new(&group.client_name(index)) else {
                    continue;
                };
                let client = self.clients.len() as u32;
                let Some(uses) = self.uses_of(group, &resources, *place, (client, index)) else {
                    continue;
                };
                let Some(there) = self.places.get_mut(*place) else {
                    continue;
                };
                there.clients += 1;
                let known = Arc::clone(&there.published);
                let (group, place) = (number as u32, *place as u32);
                let finder = MasterFinder::new(known);
                self.clients
                    .push(ClientProcess::new(group, place, uses, finder, name));
                self.wakes.push(None);
                let part = index as f64 / count.max(1) as f64;
                let starts = Time::ZERO + start_within.mul_f64(part);
                self.events.put(starts, EventKind::Start(client));
            }
            self.open_trace(number, first);
        }
        self.choose_shown();
    }

    /// Creates the use of all resources by one client, from its number among all clients and its
    /// index in its group.
    fn uses_of(
        &mut self,
        group: &ClientGroup,
        resources: &[usize],
        place: usize,
        (client, index): (u32, usize),
    ) -> Option<Vec<Use>> {
        let mut uses = Vec::new();
        for (which, (usage, resource)) in group.usages().zip(resources).enumerate() {
            let watched = self.watched.get_mut(*resource)?;
            let account = watched.join(usage.priority, place as u32);
            let chance = chance_of(&self.chance, client, which);
            let player = DemandPlayer::new(index, chance);
            uses.push(Use::new(*resource as u32, account as u32, player));
        }
        Some(uses)
    }

    /// Returns the number of a resource among the watched ones.
    fn watch(&mut self, resource: &ResourceId, settled_after: Time) -> usize {
        let known = self.watched.iter().position(|w| w.resource == *resource);
        if let Some(known) = known {
            return known;
        }
        // The scenario's reader has checked that every resource has a template at the start.
        if let Some(template) = self.templates.find(resource).map(Arc::clone) {
            let mut watched = Watched::new(resource.clone(), &template, settled_after);
            let levels = self.places.iter().map(|place| place.level + 1);
            watched.note_levels(levels.max().unwrap_or(1) as u32);
            self.watched.push(watched);
        }
        self.watched.len().saturating_sub(1)
    }

    /// Chooses the clients to show for each resource, spread over all.
    fn choose_shown(&mut self) {
        for resource in 0..self.watched.len() {
            let of = |(number, client): (usize, &ClientProcess)| {
                client.use_of(resource).map(|_| number as u32)
            };
            let all: Vec<u32> = self.clients.iter().enumerate().filter_map(of).collect();
            let step = all.len().div_ceil(CLIENTS_SHOWN).max(1);
            self.shown.push(all.into_iter().step_by(step).collect());
        }
    }

    /// Fills in the head of the recording.
    pub(super) fn describe(&mut self) {
        let scenario = self.scenario;
        self.recording = Recording {
            scenario: scenario.name.clone(),
            description: scenario.description.clone(),
            seed: scenario.seed,
            duration_s: scenario.duration.as_secs_f64(),
            sample_every_s: scenario.sample_every.as_secs_f64(),
            settled_after_s: scenario.settled_after.as_secs_f64(),
            nodes: self
                .places
                .iter()
                .map(|place| NodeInfo {
                    name: place.name.to_string(),
                    parent: place.parent.map(|parent| parent as usize),
                    level: place.level,
                    clients: place.clients,
                    ..NodeInfo::default()
                })
                .collect(),
            clients: self.clients.len(),
            resources: self
                .watched
                .iter()
                .map(|watched| ResourceRecording {
                    resource: watched.resource.to_string(),
                    algorithm: watched.algorithm.kind.as_str().to_owned(),
                    lease_length_s: Some(watched.algorithm.lease_length.as_secs_f64()),
                    ..ResourceRecording::default()
                })
                .collect(),
            ..Recording::default()
        };
        self.describe_shown();
    }
}
