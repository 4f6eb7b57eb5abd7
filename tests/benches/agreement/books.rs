//! Books of a real run, so that the same code measures it and its simulation.
//!
//! The caller runs real servers and clients. It looks at the clients as often as it can, and
//! reports what each wants and may use. A change between two looks counts from the second one. With
//! a look every few milliseconds the error is less than the time of a message.

use std::time::Duration;

use doorward::capacity::{Capacity, Source};
use doorward_engine::templates::Template;
use doorward_engine::time::Time;
use doorward_simulator::checker::{Watched, by_source};
use doorward_simulator::recording::Figures;
use doorward_simulator::scenario::ClientGroup;

/// Books of one resource of a real run. All times count from its start and never go back.
#[derive(Debug)]
pub(crate) struct RealRun {
    watched: Watched,
    now: Time,
    /// Wants of each client.
    wants: Vec<f64>,
}

impl RealRun {
    /// Creates the books for a group of clients that want nothing yet. Averages count from
    /// `settled_after` on.
    pub(crate) fn new(group: &ClientGroup, template: &Template, settled_after: Duration) -> Self {
        let settled_after = Time::ZERO + settled_after;
        let mut watched = Watched::new(group.first.resource.clone(), template, settled_after);
        for _ in 0..group.count.0 {
            // A real run does not judge single nodes.
            watched.join(group.first.priority, 0);
        }
        Self {
            watched,
            now: Time::ZERO,
            wants: vec![0.0; group.count.0],
        }
    }

    /// Notes what a client wants from now on.
    pub(crate) fn handle_wants(&mut self, client: usize, wants: f64, now: Duration) {
        self.pass(now);
        self.wants[client] = wants;
        self.watched.note_wants(client as u32, wants, self.now);
    }

    /// Notes what a client may use now, and its source.
    pub(crate) fn handle_capacity(
        &mut self,
        client: usize,
        capacity: Capacity,
        source: Source,
        now: Duration,
    ) {
        self.pass(now);
        let (lease, fallback) = by_source(capacity, source, self.wants[client]);
        self.watched
            .note_usable(client as u32, lease, fallback, self.now);
    }

    /// Measures the distance of all clients from the ideal, as a simulation does about every
    /// `sample_every`.
    pub(crate) fn handle_look(&mut self, now: Duration) {
        self.pass(now);
        self.watched.look_at_all(self.now);
        self.watched.settle(self.now);
    }

    /// Ends the run, and returns averages and extremes as in the recording of a simulation.
    pub(crate) fn finish(mut self, now: Duration) -> Figures {
        self.pass(now);
        self.watched.finish(self.now);
        self.watched.figures()
    }

    fn pass(&mut self, now: Duration) {
        self.now = self.now.max(Time::ZERO + now);
    }
}
