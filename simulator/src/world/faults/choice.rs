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

    /// Chooses distinct clients at random, of the given groups and nodes; consecutive ones if it takes more than half.
    pub(crate) fn choose_clients(&mut self, choice: &ClientChoice) -> Vec<u32> {
        let scenario = self.scenario;
        let places = choice.places(&scenario.nodes).unwrap_or_default();
        let is_meant = |client: &ClientProcess<'_>| {
            let group = scenario.clients.get(client.group as usize);
            let place = client.place as usize;
            group.is_some_and(|group| choice.is_of(group))
                && places.as_ref().is_none_or(|places| places.contains(&place))
        };
        let meant = self.clients.enumerate().filter(|(_, it)| is_meant(it));
        let meant: Vec<u32> = meant.map(|(number, _)| number).collect();
        let (all, many) = (meant.len(), choice.count.min(meant.len()));
        let mut chosen: Vec<usize> = Vec::with_capacity(many);
        if many * 2 > all {
            let first = self.fault_rng.below(all);
            chosen.extend((0..many).map(|n| (first + n) % all));
        }
        while chosen.len() < many {
            let client = self.fault_rng.below(all);
            if !chosen.contains(&client) {
                chosen.push(client);
            }
        }
        let chosen = chosen.into_iter();
        chosen.filter_map(|it| meant.get(it).copied()).collect()
    }

    pub(crate) fn names_of(&self, clients: &[u32]) -> String {
        match clients {
            [] => "no client".to_owned(),
            [only] => self.clients[*only].name.to_string(),
            many => format!("each of {} clients", many.len()),
        }
    }
}
