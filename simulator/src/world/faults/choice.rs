//! Chooses the nodes and clients that a fault affects, at random where the scenario leaves a
//! choice.

use crate::scenario::fault::{ClientChoice, NodeChoice};
use crate::world::World;

impl World<'_> {
    pub(super) fn choose(&mut self, choice: &NodeChoice) -> u32 {
        let many = self.places.len() as usize;
        let place = match choice {
            NodeChoice::Node(place) => *place,
            NodeChoice::Any => self.fault_rng.below(many),
            NodeChoice::AnyBelowRoot if many > 1 => 1 + self.fault_rng.below(many - 1),
            NodeChoice::AnyBelowRoot => 0,
            NodeChoice::AnyOf(places) => {
                let chosen = self.fault_rng.below(places.len());
                places.get(chosen).copied().unwrap_or_default()
            }
        };
        place as u32
    }

    /// Chooses distinct clients at random; consecutive ones if it takes more than half.
    pub(in crate::world) fn choose_clients(&mut self, choice: &ClientChoice) -> Vec<u32> {
        if choice.groups.is_some() || choice.nodes.is_some() {
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
        let clients = self.clients.enumerate();
        let mut meant: Vec<u32> = clients
            .filter(|(_, client)| {
                let (group, place) = (client.group as usize, client.place as usize);
                let is_in = |meant: &Option<Vec<usize>>, number: usize| {
                    meant.as_ref().is_none_or(|meant| meant.contains(&number))
                };
                is_in(&choice.groups, group) && is_in(&choice.nodes, place)
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
