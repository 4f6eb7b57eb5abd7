//! What is promised with `shrink: immediate`.
//!
//! A shrunk grant counts at once as its new value, so while its holder has not heard of it, more may be used
//! than there is: by what that holder is to give up. It hears of that with its next refresh, or its lease ends,
//! a lease length later at the latest; what a child server gives up comes down below it a lease length after
//! that, level by level. So what is too much never lasts: of any span of a lease length for each level, the
//! least that each client could use in it adds up to no more than there was.
//!
//! Spans follow one another. What was allowed in one is the most that was at any time in it.

use std::time::Duration;

use doorward_engine::time::Time;

use crate::checker::{ROUNDING, Watched};

/// The present span.
#[derive(Debug)]
pub(super) struct Immediate {
    /// How many levels there are, from the root to the clients.
    levels: u32,
    since: Time,
    /// The longest lease of it.
    lease: Duration,
    /// The most that was allowed in it; infinite if for a moment nothing was promised.
    allowed: f64,
    /// The least that each client could use in it.
    least: Vec<f64>,
    /// The largest part of what was allowed that was always used, and the end of that span.
    pub(super) worst: (f64, Time),
}

impl Immediate {
    pub(super) fn new() -> Self {
        Self {
            levels: 1,
            since: Time::ZERO,
            lease: Duration::ZERO,
            allowed: f64::INFINITY,
            least: Vec::new(),
            worst: (0.0, Time::ZERO),
        }
    }

    /// A client could use so much until now, or can from now on.
    pub(super) fn note(&mut self, client: usize, lease: f64) {
        if let Some(least) = self.least.get_mut(client) {
            *least = least.min(lease);
        }
    }

    fn length(&self) -> Duration {
        self.lease * (self.levels + 1)
    }
}

impl Watched {
    /// There are so many levels of servers.
    pub(crate) fn note_levels(&mut self, levels: u32) {
        self.immediate.levels = levels;
    }

    /// Before anything changes: a span may be over.
    pub(super) fn pass_span(&mut self, now: Time) {
        let lease = self.algorithm.lease_length;
        let allowed = match self.overshoot.is_kept() {
            true => self.overshoot.allowed(now),
            false => f64::INFINITY,
        };
        let span = &mut self.immediate;
        span.lease = span.lease.max(lease);
        span.allowed = span.allowed.max(allowed);
        if now < span.since + span.length() {
            return;
        }
        let used: f64 = span.least.iter().sum();
        let part = match span.allowed > 0.0 {
            true => used / span.allowed,
            false => 0.0,
        };
        if part > 1.0 + ROUNDING && part > span.worst.0 {
            span.worst = (part, now);
        }
        (span.since, span.lease, span.allowed) = (now, lease, allowed);
        span.least.clear();
        // Elsewhere it is of no use.
        if allowed.is_finite() {
            let leases = self.standings.iter().map(|it| it.lease.get());
            span.least.extend(leases);
        }
    }
}

#[cfg(test)]
mod tests {
    use doorward_engine::id::ResourceId;
    use doorward_engine::template::{AlgorithmKind, TemplateSpec, Templates};

    use super::*;

    /// A capacity of 100, leases of 60 s, one server: a span is two minutes. Two clients may use 60 each from a
    /// minute on, one of them for so many seconds. Returns the largest part that was always used.
    fn worst(shrink: &str, seconds: u64) -> f64 {
        let templates = Templates::parse(&[TemplateSpec {
            identifier_glob: Some("shared".to_owned()),
            capacity: Some(100.0),
            kind: Some(AlgorithmKind::FairShare),
            lease_length: Some(Duration::from_secs(60)),
            refresh_interval: Some(Duration::from_secs(5)),
            parameters: vec![("shrink".to_owned(), Some(shrink.to_owned()))],
            ..TemplateSpec::default()
        }])
        .unwrap();
        let resource = ResourceId::new("shared").unwrap();
        let template = templates.find(&resource).unwrap();
        let mut watched = Watched::new(resource, template, Time::ZERO);
        watched.join(0, 0);
        watched.join(0, 0);
        for second in 0..720 {
            let now = Time::from_secs(second);
            watched.sample(now);
            let uses = |is: bool| if is { 60.0 } else { 0.0 };
            watched.note_usable(0, uses(second >= 60), 0.0, now);
            let second = second.saturating_sub(60);
            watched.note_usable(1, uses(second > 0 && second <= seconds), 0.0, now);
        }
        watched.immediate.worst.0
    }

    #[test]
    fn what_is_too_much_for_longer_than_it_takes_to_hear_of_less_is_found() {
        assert_eq!(
            worst("immediate", 119),
            0.0,
            "until its lease ends, and again"
        );
        assert_eq!(worst("immediate", 400), 1.2);
        assert_eq!(worst("acknowledged", 400), 0.0, "that is found at once");
    }
}
