//! Metrics of overload control, through the `metrics` facade. All have the label `service`.
//!
//! - `doorward_overload_requests_total{tier, outcome}`: the outcomes are `admitted`, `trial`, `full`, `pushed_out` and
//!   `too_late`. In shadow mode, they say what would have become of the requests.
//! - `doorward_overload_waited_total{tier}`: admitted requests that had to wait.
//! - `doorward_overload_no_lease_total{tier}`: admitted requests that the lease then refused.
//! - `doorward_overload_limit`, `doorward_overload_in_flight`: requests at once.
//! - `doorward_overload_state{state}`: 1 for the state of the limit, 0 for the others.
//! - `doorward_overload_usual_seconds`: the usual latency of all requests.
//! - `doorward_overload_waiting{tier}`: requests in the queue.
//! - `doorward_overload_predicted_cost`, `doorward_overload_cost`: histograms in units of the service.

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use crate::Refusal;
use crate::overload::{Admission, Criticality, Reason, Throttler};

/// Outcomes of a request.
const OUTCOMES: [(&str, Option<Reason>); 5] = [
    ("admitted", None),
    ("trial", None),
    ("full", Some(Reason::Full)),
    ("pushed_out", Some(Reason::PushedOut)),
    ("too_late", Some(Reason::TooLate)),
];

/// States of a limit.
const STATES: [&str; 3] = ["open", "falling", "steady"];

pub(super) struct Meters {
    requests: [[Counter; OUTCOMES.len()]; Criticality::ALL.len()],
    pub(super) waited: [Counter; Criticality::ALL.len()],
    pub(super) no_lease: [Counter; Criticality::ALL.len()],
    waiting: [Gauge; Criticality::ALL.len()],
    limit: Gauge,
    in_flight: Gauge,
    states: [Gauge; STATES.len()],
    usual: Gauge,
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
        let no_lease = |tier: Criticality| counter!("doorward_overload_no_lease_total", "service" => service(), "tier" => tier.name());
        let waiting = |tier: Criticality| gauge!("doorward_overload_waiting", "service" => service(), "tier" => tier.name());
        Self {
            requests: Criticality::ALL
                .map(|tier| OUTCOMES.map(|(outcome, _)| requests(tier, outcome))),
            waited: Criticality::ALL.map(waited),
            no_lease: Criticality::ALL.map(no_lease),
            waiting: Criticality::ALL.map(waiting),
            limit: gauge!("doorward_overload_limit", "service" => service()),
            in_flight: gauge!("doorward_overload_in_flight", "service" => service()),
            states: STATES.map(
                |state| gauge!("doorward_overload_state", "service" => service(), "state" => state),
            ),
            usual: gauge!("doorward_overload_usual_seconds", "service" => service()),
            predicted_cost: histogram!("doorward_overload_predicted_cost", "service" => service()),
            cost: histogram!("doorward_overload_cost", "service" => service()),
        }
    }

    /// Counts the decision about a request.
    pub(super) fn count(&self, tier: Criticality, decision: &Result<Admission, Refusal>) {
        let reason = match decision {
            Ok(admission) => admission.shadow(),
            Err(refusal) => refusal.overloaded(),
        };
        let is_trial = decision.as_ref().is_ok_and(Admission::is_trial);
        let name = is_trial.then_some("trial");
        let outcome = OUTCOMES
            .iter()
            .position(|(it, of)| name.map_or(*of == reason, |name| *it == name));
        let counters = self.requests.get(tier as usize);
        if let Some(counter) = counters.and_then(|counters| counters.get(outcome?)) {
            counter.increment(1);
        }
    }

    /// Shows the state of the throttler.
    pub(super) fn show<W>(&self, throttler: &Throttler<W>) {
        self.limit.set(f64::from(throttler.limit()));
        self.in_flight.set(f64::from(throttler.in_flight()));
        self.usual.set(throttler.usual_latency());
        for (state, gauge) in STATES.iter().zip(&self.states) {
            gauge.set(f64::from(u8::from(*state == throttler.state())));
        }
        for (tier, gauge) in Criticality::ALL.into_iter().zip(&self.waiting) {
            gauge.set(throttler.waiting(tier) as f64);
        }
    }

    /// Records the costs of a request that has ended.
    pub(super) fn costs(&self, predicted: f64, cost: f64) {
        self.predicted_cost.record(predicted);
        self.cost.record(cost);
    }
}

/// Counts a request of a tier.
pub(super) fn count_one(counters: &[Counter], tier: Criticality) {
    if let Some(counter) = counters.get(tier as usize) {
        counter.increment(1);
    }
}
