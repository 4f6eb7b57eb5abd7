//! Checks the promise of `shrink: immediate`.
//!
//! The server counts a shrunk grant with its new value at once. Until the holder learns of it,
//! clients may together use more than the capacity. The holder learns of it with its next refresh,
//! or its lease ends, at the latest one lease length later. A child server's surplus comes down one
//! lease length after that, level by level. So no excess lasts: over any span of one lease length
//! for each level, the sum of each client's minimum is at most the capacity.
//!
//! Spans follow one another. The allowance of a span is its maximum over the span.

use std::time::Duration;

use doorward_engine::time::Time;

use crate::checker::{Extreme, ROUNDING, Watched};
use crate::recording::part;

/// Present span.
#[derive(Debug, Default)]
pub(crate) struct Immediate {
    /// Levels from the root to the clients.
    pub(crate) levels: u32,
    since: Time,
    /// Longest lease length within the span.
    lease: Duration,
    /// Largest total allowed within the span; infinite if some moment had no promise.
    pub(super) allowed: f64,
    /// Smallest lease of each client within the span.
    least: Vec<f64>,
    /// Largest ratio of permanent use to the allowance, and the end of that span.
    pub(super) worst: Extreme<f64>,
}

impl Immediate {
    /// Notes a client's lease, before or after a change.
    pub(super) fn note(&mut self, client: u32, lease: f64) {
        if let Some(least) = self.least.get_mut(client as usize) {
            *least = least.min(lease);
        }
    }
}

impl Watched {
    /// Ends the span if it is over. Every change calls it first.
    pub(super) fn pass_span(&mut self, now: Time) {
        let lease = self.algorithm.lease_length;
        let allowed = match self.overshoot.is_kept() {
            true => self.overshoot.allowed(now),
            false => f64::INFINITY,
        };
        let span = &mut self.immediate;
        span.lease = span.lease.max(lease);
        span.allowed = span.allowed.max(allowed);
        if now < span.since + span.lease * (span.levels + 1) {
            return;
        }
        let used: f64 = span.least.iter().sum();
        let part = part(used, span.allowed, 0.0);
        if part > 1.0 + ROUNDING {
            span.worst.note(part, now);
        }
        (span.since, span.lease, span.allowed) = (now, lease, allowed);
        span.least.clear();
        // Without a promise the minima are not needed.
        if allowed.is_finite() {
            let leases = self.standings.iter().map(|it| it.lease.get());
            span.least.extend(leases);
        }
    }
}

#[cfg(test)]
mod tests {
    use doorward_engine::id::ResourceId;
    use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};

    use super::*;

    /// Plays one server with a capacity of 100 and leases of 60 s, so a span is two minutes. From
    /// one minute on two clients may use 60 each, the second for so many seconds. Returns the
    /// largest ratio of permanent use.
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
        watched.immediate.worst.value
    }

    #[test]
    fn an_excess_that_lasts_longer_than_a_span_is_found() {
        assert_eq!(
            worst("immediate", 119),
            0.0,
            "until its lease ends, and again"
        );
        assert_eq!(worst("immediate", 400), 1.2);
        assert_eq!(worst("acknowledged", 400), 0.0, "that is found at once");
    }
}
