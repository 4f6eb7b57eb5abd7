//! Chooses the nodes and clients that a fault affects, at random where the scenario leaves a
//! choice.

use crate::scenario::fault::{ClientChoice, NodeChoice};
use crate::world::World;

impl World<'_> {
    pub(super) fn choose(&mut self, choice: &NodeChoice) -> u32 {
        let nodes = &self.scenario.nodes;
        let place = choice.only(nodes).or_else(|| {
            let places = choice.places(nodes).unwrap_or_default();
            places.get(self.fault_rng.below(places.len())).copied()
        });
        place.unwrap_or_default() as u32
    }

    /// Chooses distinct clients at random; consecutive ones if it takes more than half.
    pub(in crate::world) fn choose_clients(&mut self, choice: &ClientChoice) -> Vec<u32> {
        if choice.group.is_some() || choice.nodes.is_some() {
            return self.choose_among(choice);
        }
        let all = self.clients.len() as usize;
        let many = choice.count.min(all);
        if many * 2 > all {
            let first = self.fault_rng.below(all);
            let consecutive = (0..many).map(|n| ((first + n) % all) as u32);
            return consecutive.collect();
        }
        let mut chosen: Vec<u32> = Vec::with_capacity(many);
        while chosen.len() < many {
            let client = self.fault_rng.below(all) as u32;
            if !chosen.contains(&client) {
                chosen.push(client);
            }
        }
        chosen
    }

    /// Chooses distinct clients at random, among those of the given groups and nodes.
    fn choose_among(&mut self, choice: &ClientChoice) -> Vec<u32> {
        let places = choice.places(&self.scenario.nodes).unwrap_or_default();
        let groups = self
            .scenario
            .clients
            .iter()
            .map(|group| choice.is_of(group));
        let groups: Vec<bool> = groups.collect();
        let clients = self.clients.enumerate();
        let mut meant: Vec<u32> = clients
            .filter(|(_, client)| {
                let (group, place) = (client.group as usize, client.place as usize);
                groups.get(group) == Some(&true)
                    && places.as_ref().is_none_or(|places| places.contains(&place))
            })
            .map(|(number, _)| number)
            .collect();
        let many = choice.count.min(meant.len());
        for place in 0..many {
            let other = place + self.fault_rng.below(meant.len() - place);
            meant.swap(place, other);
        }
        meant.truncate(many);
        meant
    }

    pub(super) fn name_of(&self, place: u32) -> String {
        self.places[place].name.clone()
    }

    pub(in crate::world) fn names_of(&self, clients: &[u32]) -> String {
        match clients {
            [] => "no client".to_owned(),
            [only] => self.clients[*only].name.to_string(),
            many => format!("each of {} clients", many.len()),
        }
    }
}
