//! Samples and clients' figures for the recording, and the schedule of the checkers' looks.

use std::time::Duration;

use doorward_engine::messages::ResourceSnapshot;
use doorward_engine::time::Time;

use crate::checker::Watched;
use crate::recording::{
    CLIENT_FIGURES_MAX, ClientFigures, ClientSample, ClientSeries, ClientSpread, NodeSample,
};
use crate::world::{CLIENTS_SHOWN, ClientProcess, Place, World};

/// Interval between checks for rest after a shift.
const SETTLE: Duration = Duration::from_millis(100);

impl World<'_> {
    /// Chooses the clients that the recording shows one by one: for each resource, spread over all.
    pub(super) fn choose_shown(&mut self) {
        for (resource, recorded) in (0..).zip(&mut self.recording.resources) {
            let users = self.clients.enumerate();
            let users = users.filter(|(_, client)| client.use_of(resource).is_some());
            let all: Vec<(u32, &ClientProcess<'_>)> = users.collect();
            let step = all.len().div_ceil(CLIENTS_SHOWN).max(1);
            let shown = all.into_iter().step_by(step);
            let series = shown.clone().map(|(_, client)| ClientSeries {
                client: client.name.to_string(),
                node: self.places[client.place].name.clone(),
                samples: Vec::new(),
            });
            recorded.clients.extend(series);
            self.shown.push(shown.map(|(number, _)| number).collect());
        }
    }

    /// Takes a sample of everything.
    pub(super) fn sample(&mut self) {
        let now = self.now;
        self.check_nesting();
        for resource in self.watched.numbers() {
            let nodes = self.sample_nodes(resource);
            let watched = &mut self.watched[resource];
            let (mut sample, ideal) = watched.sample(now);
            sample.nodes = nodes;
            let of_clients = self.shown[resource].iter().filter_map(|number| {
                let account = self.clients[*number].use_of(resource)?.account;
                let (wish, granted, fallback) = watched.of_client(account);
                Some(ClientSample {
                    wants: wish.wants,
                    granted,
                    fallback,
                    ideal: ideal.share(wish),
                })
            });
            if let Some(recorded) = self.recording.resources.get_mut(resource as usize) {
                for (series, sample) in recorded.clients.iter_mut().zip(of_clients) {
                    series.samples.push(sample);
                }
                recorded.samples.push(sample);
            }
        }
        let next = now + self.scenario.sample_every.0;
        self.act(next, |world| world.sample());
    }

    fn sample_nodes(&self, resource: u32) -> Vec<NodeSample> {
        let watched = &self.watched[resource];
        let of_place = |place: &Place| {
            let Some(master) = place.master(self.now) else {
                return NodeSample::default();
            };
            let local = place.clock.shows(self.now);
            let snapshot = master.node().resource_snapshot(&watched.resource, local);
            let found = snapshot.as_ref();
            let amount = |of: fn(&ResourceSnapshot) -> f64| found.map_or(0.0, of);
            NodeSample {
                has: amount(|it| it.capacity),
                wants: amount(|it| it.wants),
                granted: amount(|it| it.granted),
                reserved: amount(|it| it.reserved),
                is_up: !master.is_frozen(self.now),
                is_learning: found.is_some_and(|it| it.learning_remaining.is_some()),
            }
        };
        self.places.iter().map(of_place).collect()
    }

    /// Measures the distance of all clients from the ideal.
    fn look(&mut self, number: u32) {
        let all = self.watched.iter_mut();
        all.for_each(|it| it.look_at_all(self.now));
        self.look_later(number + 1);
    }

    /// Schedules the look of that number: one for every sample, at a varying time between two samples. Demand may
    /// change in step with samples, and a look right before or after each change would say nothing
    /// about the time in between.
    pub(super) fn look_later(&mut self, number: u32) {
        /// The fractional parts of multiples of the golden ratio are spread evenly, however many
        /// there are.
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let part = (f64::from(number) * GOLDEN + 0.5).fract();
        let every = self.scenario.sample_every.0;
        let at = Time::ZERO + every * number + every.mul_f64(part);
        self.act(at, move |world| world.look(number));
    }

    /// Checks whether clients are at rest after a shift.
    pub(super) fn settle(&mut self) {
        let all = self.watched.iter_mut();
        all.for_each(|it| it.settle(self.now));
        self.is_settling = false;
        self.settle_later();
    }

    /// Schedules a check for rest, if clients are restless and none is scheduled.
    pub(super) fn settle_later(&mut self) {
        if !self.is_settling && self.watched.iter().any(Watched::is_restless) {
            self.is_settling = true;
            self.act(self.now + SETTLE, |world| world.settle());
        }
    }

    /// Records the figures of clients, the largest shortage first.
    pub(super) fn describe_shortages(&mut self) {
        for (resource, watched) in self.watched.enumerate() {
            let clients = self.clients.iter();
            let clients = clients.filter_map(|client| Some((client, client.use_of(resource)?)));
            let shown = clients.map(|(client, it)| (client, watched.figures_of(it.account)));
            let mut shown: Vec<_> = shown.filter(|(_, it)| it.wanted > 0.0).collect();
            let spread = ClientSpread::of(shown.iter().map(|(_, figures)| figures));
            let missing = |figures: &ClientFigures| figures.wanted - figures.got;
            // A stable sort keeps equal shortages in order.
            shown.sort_by(|(_, a), (_, b)| missing(b).total_cmp(&missing(a)));
            shown.truncate(CLIENT_FIGURES_MAX);
            let named = shown.into_iter().map(|(client, figures)| ClientFigures {
                client: client.name.to_string(),
                node: self.places[client.place].name.clone(),
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
