//! What is measured, and when.

use std::collections::HashMap;
use std::time::Duration;

use crate::recording::{ClientSample, ClientSeries, NodeSample};
use crate::world::World;
use crate::world::event::What;

/// How often somebody looks whether all is at rest after a shift.
pub(super) const SETTLE: Duration = Duration::from_millis(100);

impl World<'_> {
    /// The names of those that are shown one by one.
    pub(super) fn describe_shown(&mut self) {
        for (resource, shown) in self.shown.iter().enumerate() {
            let series = shown.iter().filter_map(|number| {
                let client = self.clients.get(*number as usize)?;
                let place = self.places.get(client.place as usize)?;
                Some(ClientSeries {
                    client: client.name.to_string(),
                    node: place.name.to_string(),
                    samples: Vec::new(),
                })
            });
            if let Some(recorded) = self.recording.resources.get_mut(resource) {
                recorded.clients = series.collect();
            }
        }
    }

    /// Measures everything.
    pub(super) fn sample(&mut self) {
        let now = self.now;
        for resource in 0..self.watched.len() {
            self.look_at_nesting(resource);
            let nodes = self.sample_nodes(resource);
            let Some(watched) = self.watched.get_mut(resource) else {
                continue;
            };
            let (mut sample, ideal) = watched.sample(now);
            sample.nodes = nodes;
            let shown = self.shown.get(resource).map_or(&[][..], Vec::as_slice);
            let of_clients = shown.iter().filter_map(|number| {
                let account = self.clients.get(*number as usize)?.account as usize;
                let (wish, granted, fallback) = watched.of_client(account);
                Some(ClientSample {
                    wants: wish.wants,
                    granted,
                    fallback,
                    ideal: ideal.share(wish),
                })
            });
            let of_clients: Vec<ClientSample> = of_clients.collect();
            if let Some(recorded) = self.recording.resources.get_mut(resource) {
                for (series, sample) in recorded.clients.iter_mut().zip(of_clients) {
                    series.samples.push(sample);
                }
                recorded.samples.push(sample);
            }
        }
        let next = now + self.scenario.sample_every;
        self.events.put(next, What::Sample);
    }

    fn sample_nodes(&self, resource: usize) -> Vec<NodeSample> {
        let Some(watched) = self.watched.get(resource) else {
            return Vec::new();
        };
        let of_place = |place: &crate::world::place::Place| {
            let Some(master) = &place.master else {
                return NodeSample::default();
            };
            let local = place.clock.shows(self.now);
            let is_up = !master.is_frozen(self.now);
            match master.node.resource_snapshot(&watched.resource, local) {
                Some(snapshot) => NodeSample {
                    has: snapshot.capacity,
                    wants: snapshot.wants,
                    granted: snapshot.granted,
                    reserved: snapshot.reserved,
                    is_up,
                    is_learning: snapshot.learning_remaining.is_some(),
                },
                None => NodeSample {
                    is_up,
                    ..NodeSample::default()
                },
            }
        };
        self.places.iter().map(of_place).collect()
    }

    /// What is used below a node, against the most that may be, by the books of its parent.
    fn look_at_nesting(&mut self, resource: usize) {
        let Some(watched) = self.watched.get(resource) else {
            return;
        };
        let mut used = vec![0.0; self.places.len()];
        for client in &self.clients {
            if client.resource as usize == resource
                && let Some(used) = used.get_mut(client.place as usize)
            {
                *used += watched.of_client(client.account as usize).1;
            }
        }
        // Parents stand before their children: from the leaves up.
        for number in (1..self.places.len()).rev() {
            let parent = self.places.get(number).and_then(|place| place.parent);
            let below = used.get(number).copied().unwrap_or_default();
            if let Some(used) = parent.and_then(|parent| used.get_mut(parent as usize)) {
                *used += below;
            }
        }
        let mut found = Vec::new();
        let parents = self.places.iter().filter(|it| !it.children.is_empty());
        for place in parents {
            let master = place.master.as_ref().filter(|it| !it.is_frozen(self.now));
            let Some(master) = master else { continue };
            let local = place.clock.shows(self.now);
            let snapshot = master.node.resource_snapshot(&watched.resource, local);
            // A server that learns, or has not heard of its own parent yet, does not know what is
            // out.
            let Some(snapshot) = snapshot else { continue };
            let has_lease = snapshot
                .upstream
                .as_ref()
                .is_none_or(|lease| lease.expires_in.is_some());
            if snapshot.learning_remaining.is_some() || !has_lease {
                continue;
            }
            let books: HashMap<String, f64> = master
                .node
                .child_snapshots(&watched.resource)
                .into_iter()
                .map(|child| (child.holder.name.to_string(), child.reserved))
                .collect();
            for child in &place.children {
                let Some(below) = self.places.get(*child as usize) else {
                    continue;
                };
                let reserved = books.get(below.name.as_str()).copied().unwrap_or_default();
                let used = used.get(*child as usize).copied().unwrap_or_default();
                found.push((used, reserved));
            }
        }
        let now = self.now;
        if let Some(watched) = self.watched.get_mut(resource) {
            for (used, reserved) in found {
                watched.note_nesting(used, reserved, now);
            }
        }
    }

    /// Looks whether all is at rest after a shift.
    pub(super) fn settle(&mut self) {
        let now = self.now;
        let mut is_restless = false;
        for watched in &mut self.watched {
            watched.settle(now);
            is_restless |= watched.is_restless();
        }
        self.is_settling = is_restless;
        if is_restless {
            self.events.put(now + SETTLE, What::Settle);
        }
    }
}
