//! Chooses the nodes and clients that a fault affects, at random where the scenario leaves a
//! choice.

use crate::scenario::fault::{ClientChoice, NodeChoice};
use crate::world::{ClientProcess, World};

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
    pub(crate) fn choose_clients(&mut self, choice: &ClientChoice) -> Vec<u32> {
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
        let groups = self.scenario.clients.iter();
        let groups: Vec<bool> = groups.map(|group| choice.is_of(group)).collect();
        let is_meant = |client: &ClientProcess<'_>| {
            let place = client.place as usize;
            groups.get(client.group as usize) == Some(&true)
                && places.as_ref().is_none_or(|places| places.contains(&place))
        };
        let clients = self.clients.enumerate();
        let meant = clients.filter(|(_, client)| is_meant(client));
        let mut meant: Vec<u32> = meant.map(|(number, _)| number).collect();
        let many = choice.count.min(meant.len());
        for place in 0..many {
            let other = place + self.fault_rng.below(meant.len() - place);
            meant.swap(place, other);
        }
        meant.truncate(many);
        meant
    }

    pub(crate) fn names_of(&self, clients: &[u32]) -> String {
        match clients {
            [] => "no client".to_owned(),
            [only] => self.clients[*only].name.to_string(),
            many => format!("each of {} clients", many.len()),
        }
    }
}
