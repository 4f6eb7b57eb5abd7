//! One service with one document, asked in order.

use std::time::Duration;

use doorward::rules::{Decision, Descriptor, Entry, Limiter, Rules};
use doorward_limits::Moment;

/// A limiter with the domain `shop`.
pub(crate) struct Story {
    pub(crate) limiter: Limiter,
    pub(crate) now: Moment,
}

/// Reads a document; panics with its problems.
pub(crate) fn rules(text: &str) -> Rules {
    Rules::load(&[("shop.yaml", text)]).unwrap_or_else(|problems| panic!("{problems:?}"))
}

impl Story {
    pub(crate) fn new(text: &str) -> Self {
        let limiter = Limiter::new(rules(text), 1_000, [1, 2]);
        Self {
            limiter,
            now: Moment::ORIGIN,
        }
    }

    /// Moves the time on.
    pub(crate) fn advance(&mut self, span: Duration) {
        self.now = self.now.after(span);
    }

    /// Asks with one descriptor for each key and value.
    pub(crate) fn ask(&self, pairs: &[(&str, &str)], hits: Option<u64>) -> Decision {
        let entries = pairs.iter().map(|(key, value)| {
            let value = Some(value.as_bytes());
            [Entry { key, value }]
        });
        let entries: Vec<_> = entries.collect();
        let descriptors = entries.iter().map(|entries| Descriptor {
            entries,
            hits: None,
        });
        let descriptors: Vec<_> = descriptors.collect();
        self.limiter.decide("shop", &descriptors, hits, self.now)
    }

    /// Asks for one user.
    pub(crate) fn user(&self, name: &str) -> Decision {
        self.ask(&[("user", name)], None)
    }
}
