//! A real run in the books of the checkers, so that it and its simulation are measured by the same code.
//!
//! Whoever runs real servers and clients looks at the clients as often as it can, and reports what each
//! wants and may use at that moment. What happened between two looks counts as if it had happened at the
//! second one: with looks every few milliseconds that is less than a message takes.

use std::time::Duration;

use doorward_client::capacity::{Capacity, Source};
use doorward_engine::template::Template;
use doorward_engine::time::Time;

use crate::checker::Watched;
use crate::recording::Figures;
use crate::scenario::ClientGroup;

/// One resource of a real run. All times count from its start and never go back.
#[derive(Debug)]
pub struct RealRun {
    watched: Watched,
    now: Time,
    /// By client: what it wants.
    wants: Vec<f64>,
}

impl RealRun {
    /// The clients of a group, which want nothing yet. Averages are taken from `settled_after` on.
    pub fn new(group: &ClientGroup, template: &Template, settled_after: Duration) -> Self {
        let settled_after = Time::ZERO + settled_after;
        let mut watched = Watched::new(group.first.resource.clone(), template, settled_after);
        for _ in 0..group.count {
            // Nothing is asked of single nodes here.
            watched.join(group.first.priority, 0);
        }
        Self {
            watched,
            now: Time::ZERO,
            wants: vec![0.0; group.count],
        }
    }

    /// A client wants that much from now on.
    pub fn handle_wants(&mut self, client: usize, wants: f64, now: Duration) {
        self.pass(now);
        if let Some(before) = self.wants.get_mut(client) {
            *before = wants;
            self.watched.note_wants(client, wants, self.now);
        }
    }

    /// What a client may use now, and where that comes from.
    pub fn handle_capacity(
        &mut self,
        client: usize,
        capacity: Capacity,
        source: Source,
        now: Duration,
    ) {
        self.pass(now);
        if let Some(wants) = self.wants.get(client) {
            let (lease, fallback) = by_source(capacity, source, *wants);
            self.watched.note_usable(client, lease, fallback, self.now);
        }
    }

    /// Looks how far all are from the ideal, as a simulation does about every `sample_every`.
    pub fn handle_look(&mut self, now: Duration) {
        self.pass(now);
        self.watched.look_at_all(self.now);
        self.watched.settle(self.now);
    }

    /// It is over: averages and extremes, as a recording has them of a simulation.
    pub fn finish(mut self, now: Duration) -> Figures {
        self.pass(now);
        self.watched.finish(self.now);
        self.watched.figures()
    }

    fn pass(&mut self, now: Duration) {
        self.now = self.now.max(Time::ZERO + now);
    }
}

/// What a client that wants so much may use by a lease, and what it uses besides.
pub(crate) fn by_source(capacity: Capacity, source: Source, wants: f64) -> (f64, f64) {
    let capacity = match capacity {
        Capacity::Limited(capacity) => capacity,
        Capacity::Unlimited => wants,
    };
    match source {
        Source::Lease => (capacity, 0.0),
        Source::Mode => (0.0, capacity.min(wants)),
    }
}
