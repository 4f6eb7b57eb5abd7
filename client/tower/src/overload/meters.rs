//! Metrics of overload control, through the `metrics` facade. All have the label `service`.
//!
//! - `doorward_overload_requests_total{tier, outcome}`: the outcomes are `admitted`, `full`, `pushed_out` and `too_late`.
//! - `doorward_overload_waited_total{tier}`: admitted requests that had to wait.
//! - `doorward_overload_limit`, `doorward_overload_in_flight`: requests at once.
//! - `doorward_overload_waiting{tier}`: requests in the queue.
//! - `doorward_overload_predicted_cost`, `doorward_overload_cost`: histograms in units of the service.

use doorward_throttle::{Admission, Criticality, Reason, Refusal, Throttler};
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

/// Outcomes of a request.
const OUTCOMES: [(&str, Option<Reason>); 4] = [
    ("admitted", None),
    ("full", Some(Reason::Full)),
    ("pushed_out", Some(Reason::PushedOut)),
    ("too_late", Some(Reason::TooLate)),
];

pub(super) struct Meters {
    requests: [[Counter; OUTCOMES.len()]; Criticality::ALL.len()],
    waited: [Counter; Criticality::ALL.len()],
    waiting: [Gauge; Criticality::ALL.len()],
    limit: Gauge,
    in_flight: Gauge,
    predicted_cost: Histogram,
    cost: Histogram,
}

impl Meters {
    pub(super) fn new(service: &str) -> Self {
        let service = || service.to_owned();
        let requests = |tier: Criticality, outcome| {
            let tier = tier.name();
            counter!("doorward_overload_requests_total", "service" => service(), "tier" => tier, "outcome" => outcome)
        };
        let waited = |tier: Criticality| counter!("doorward_overload_waited_total", "service" => service(), "tier" => tier.name());
        let waiting = |tier: Criticality| gauge!("doorward_overload_waiting", "service" => service(), "tier" => tier.name());
        Self {
            requests: Criticality::ALL
                .map(|tier| OUTCOMES.map(|(outcome, _)| requests(tier, outcome))),
            waited: Criticality::ALL.map(waited),
            waiting: Criticality::ALL.map(waiting),
            limit: gauge!("doorward_overload_limit", "service" => service()),
            in_flight: gauge!("doorward_overload_in_flight", "service" => service()),
            predicted_cost: histogram!("doorward_overload_predicted_cost", "service" => service()),
            cost: histogram!("doorward_overload_cost", "service" => service()),
        }
    }

    /// Counts the decision about a request.
    pub(super) fn count(&self, tier: Criticality, refusal: Option<&Refusal>) {
        let reason = refusal.map(|refusal| refusal.reason);
        let outcome = OUTCOMES.iter().position(|(_, it)| *it == reason);
        let counters = self.requests.get(tier as usize);
        if let Some(counter) = counters.and_then(|counters| counters.get(outcome?)) {
            counter.increment(1);
        }
    }

    /// Counts a request that was admitted after a wait.
    pub(super) fn count_waited(&self, tier: Criticality) {
        if let Some(counter) = self.waited.get(tier as usize) {
            counter.increment(1);
        }
    }

    /// Shows the state of the throttler.
    pub(super) fn show<W>(&self, throttler: &Throttler<W>) {
        self.limit.set(f64::from(throttler.limit()));
        self.in_flight.set(f64::from(throttler.in_flight()));
        for (tier, gauge) in Criticality::ALL.into_iter().zip(&self.waiting) {
            gauge.set(throttler.waiting(tier) as f64);
        }
    }

    /// Records the costs of a request that has ended.
    pub(super) fn costs(&self, admission: &Admission, cost: f64) {
        self.predicted_cost.record(admission.predicted_cost());
        self.cost.record(cost);
    }
}
