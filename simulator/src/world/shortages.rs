//! Lists the clients that were short.

use crate::recording::{CLIENT_FIGURES_MAX, ClientFigures, ClientSpread};
use crate::world::World;

impl World<'_> {
    /// Records the figures of clients, the largest shortage first.
    pub(super) fn describe_shortages(&mut self) {
        for (resource, watched) in self.watched.enumerate() {
            let clients = self.clients.iter();
            let clients = clients.filter_map(|client| Some((client, client.use_of(resource)?)));
            let mut shown: Vec<_> = clients
                .map(|(client, it)| (client, watched.figures_of(it.account)))
                .filter(|(_, figures)| figures.wanted > 0.0)
                .collect();
            let spread = ClientSpread::of(shown.iter().map(|(_, figures)| figures));
            let missing = |figures: &ClientFigures| figures.wanted - figures.got;
            // A stable sort keeps equal shortages in order.
            shown.sort_by(|(_, a), (_, b)| missing(b).total_cmp(&missing(a)));
            shown.truncate(CLIENT_FIGURES_MAX);
            let named = shown.into_iter().map(|(client, figures)| ClientFigures {
                client: client.name.to_string(),
                node: self.places[client.place].name.to_string(),
                ..figures
            });
            let named = named.collect();
            if let Some(recorded) = self.recording.resources.get_mut(resource as usize) {
                recorded.client_figures = named;
                recorded.figures.spread = spread;
            }
        }
    }
}
