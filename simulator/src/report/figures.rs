//! The one list of figures: name, unit, meaning, and which way is better. The summary, the comparison and the page
//! all show this list.

use serde::Serialize;
use serde_json::Value;

use crate::recording::{Checker, MarkKind, ResourceRecording};
use doorward_pages::numbers::{measured, percent, points, seconds};

/// Unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unit {
    /// A part of a whole, shown in percent.
    Part,
    /// A missing part, shown in percentage points.
    Points,
    /// Time in seconds.
    Seconds,
    /// A plain number.
    Number,
    /// Events per client and minute.
    PerMinute,
}

impl Unit {
    /// Returns a value with its unit.
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::Part => percent(value),
            Self::Points => points(value),
            Self::Seconds => seconds(value),
            Self::Number => measured(value),
            Self::PerMinute => format!("{} /min", measured(value)),
        }
    }
}

/// Direction in which a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Better {
    Higher,
    Lower,
    /// Lower values are better above 1; below 1 all are equally good.
    LowerAboveOne,
    /// No value is better than another.
    Neither,
}

/// A text of this program.
type Text = &'static str;

/// One figure.
#[derive(Debug, Serialize)]
pub(super) struct Figure {
    /// Place of its value in the JSON of `Figures`, as a JSON pointer.
    pub(super) key: Text,
    pub(super) name: Text,
    pub(super) unit: Unit,
    pub(super) better: Better,
    /// Meaning, for a first reader.
    pub(super) about: Text,
}

impl Figure {
    /// Returns its value. No number: it was not measured.
    pub(super) fn of(&self, figures: &Value) -> f64 {
        let value = figures.pointer(self.key).and_then(Value::as_f64);
        value.unwrap_or(f64::NAN)
    }

    /// Returns how bad a value is. None: no value is better than another.
    pub(super) fn cost(&self, value: f64) -> Option<f64> {
        match self.better {
            Better::Higher => Some(-value),
            Better::Lower => Some(value),
            Better::LowerAboveOne => Some(value.max(1.0)),
            Better::Neither => None,
        }
    }

    /// Returns true if an operator should look at the value, whatever the limits are.
    pub(super) fn is_alarming(&self, value: f64) -> bool {
        self.better == Better::LowerAboveOne && value > 1.0 + 1e-9
    }
}

const fn figure(key: Text, name: Text, unit: Unit, better: Better, about: Text) -> Figure {
    Figure {
        key,
        name,
        unit,
        better,
        about,
    }
}

use Better::{Higher, Lower, LowerAboveOne, Neither};
use Unit::{Number, Part, PerMinute, Points, Seconds};

/// All figures, the most important first.
#[rustfmt::skip]
pub(super) const FIGURES: &[Figure] = &[
    figure("/utilisation", "utilisation", Part, Higher,
        "Mean part of the usable amount (the smaller of demand and capacity) that was granted to clients \
         that could use it. 100 % is best."),
    figure("/demand_met", "demand met", Part, Higher,
        "Part of all wants that was granted. The rest exceeded the capacity, or came too late."),
    figure("/spread/satisfaction/p50", "satisfaction, median", Part, Higher,
        "Satisfaction is the part of its wants that a client got on average. Half of the clients reach this value."),
    figure("/spread/satisfaction/p90", "satisfaction, p90", Part, Higher,
        "90 % of the clients reach this satisfaction."),
    figure("/spread/satisfaction/p99", "satisfaction, p99", Part, Higher,
        "99 % of the clients reach this satisfaction."),
    figure("/spread/satisfaction/worst", "satisfaction, worst", Part, Higher,
        "Satisfaction of the worst client."),
    figure("/spread/jain", "Jain's index", Number, Higher,
        "Jain's index of fairness (Jain, Chiu and Hawe, 1984): (Σx)² / (n · Σx²), where x is what a client got \
         divided by what the ideal would have given it. 1: all clients got the same part of their ideal \
         share; 1/n: one client got everything."),
    figure("/clients_short", "clients short", Part, Lower,
        "Part of the time in which clients had less than they wanted, over all clients. 0 % if there is \
         enough for all."),
    figure("/scarce", "demand above capacity", Part, Neither,
        "Part of the time in which demand exceeded the capacity. Clients are short then, whatever \
         Doorward does."),
    figure("/granted_of_capacity", "granted of capacity", Part, Neither,
        "Mean part of the capacity that was granted. It is low if demand is low."),
    figure("/peak_of_capacity", "peak of capacity", Part, LowerAboveOne,
        "Largest sum of leases at any instant of the whole run, as a part of the capacity at that instant. \
         Above 100 % clients could use more than the capacity."),
    figure("/peak_with_fallback", "peak with fallback", Part, LowerAboveOne,
        "The same peak with the use of clients that had no lease added: the largest load on the resource."),
    figure("/peak_of_safe_use", "peak in safe mode", Part, Neither,
        "Largest use in safe mode at any instant of the whole run, as a part of the capacity at that \
         instant. Peak of capacity and overshoot do not include it."),
    figure("/overshoot_s", "overshoot for", Seconds, Lower,
        "Total time of the whole run in which more was granted than the capacity."),
    figure("/unfairness", "unfairness", Part, Lower,
        "Mean distance of clients from their ideal shares, as a part of the usable amount. The ideal is one \
         server that knows all claims at once. 0 % is best."),
    figure("/restless", "not at rest", Part, Lower,
        "Part of the time with a distance from the ideal above 1 % of the usable amount."),
    figure("/convergence_max_s", "convergence, longest", Seconds, Lower,
        "Time from a change of demand or capacity (more than a twentieth of the capacity at one instant) \
         until the distance from the ideal is below 1 % of the usable amount: the longest. Changes in \
         between belong to it. A change that has not converged at the end counts with its time so far."),
    figure("/convergence_mean_s", "convergence, mean", Seconds, Lower,
        "Mean of these times."),
    figure("/shifts", "demand changes", Number, Neither,
        "Changes of demand or capacity after which convergence was measured; overlapping changes count \
         as one. Without any, the two times above mean nothing."),
    figure("/starvation_max_s", "starvation, longest", Seconds, Lower,
        "Longest time that a client had nothing, though it wanted something and capacity was free for it."),
    figure("/oscillation_per_minute", "oscillation", PerMinute, Lower,
        "Changes of direction of a client's grant (down after up, or up after down) while no demand changed."),
    figure("/comeback_max_s", "comeback, longest", Seconds, Lower,
        "For clients that lost their server and their lease: time from when they could get a lease again \
         until they had it. The longest. A client without a lease at the end counts with its time so far."),
    figure("/comeback_median_s", "comeback, median", Seconds, Lower,
        "Median of these times."),
    figure("/not_back", "not back", Number, Lower,
        "Clients that lost their server and had no lease at the end."),
];

/// Losses of utilisation by the reason for which clients waited, in the order in which a change of demand meets them.
#[rustfmt::skip]
pub(super) const WAITS: &[Figure] = &[
    figure("/waits/gap", "client's gap", Points, Neither,
        "The client sent a request a moment ago, and keeps its own gap before the next one."),
    figure("/waits/answer", "answer under way", Points, Neither,
        "The client's request or the answer is under way."),
    figure("/waits/floor", "refresh floor", Points, Neither,
        "The server decided about the client a moment ago, and answered without a new decision."),
    figure("/waits/others", "others to shrink", Points, Neither,
        "Other clients hold the amount, and give it up at their next refresh or when their leases end."),
    figure("/waits/share", "share", Points, Neither,
        "The server told the client that it has its share. Other clients want less since then; the client \
         learns that at its next refresh."),
    figure("/waits/learning", "learning mode", Points, Neither,
        "The client's server, or one above it, is in learning mode."),
    figure("/waits/refused", "refusal or parent", Points, Neither,
        "The client's server has no lease from its parent yet, or refuses."),
    figure("/waits/no_server", "no server", Points, Neither,
        "No server answers; the client waits and tries again."),
];

/// Returns the values of all figures of a resource, as JSON.
pub(super) fn values(resource: &ResourceRecording) -> Value {
    serde_json::to_value(&resource.figures).unwrap_or_default()
}

/// Figures with their values.
pub(super) type Values = Vec<(&'static Figure, f64)>;

/// Returns figures of a resource with their values.
pub(super) fn with_values(figures: &'static [Figure], resource: &ResourceRecording) -> Values {
    let values = values(resource);
    let figures = figures.iter();
    figures.map(|figure| (figure, figure.of(&values))).collect()
}

/// Returns true if the loss is large enough to be shown.
pub(super) fn is_shown(lost: f64) -> bool {
    lost >= 5e-7
}

/// Returns the unit of a checker's value, and what it measures.
#[rustfmt::skip]
pub(super) const fn about(checker: Checker) -> (Unit, &'static str) {
    match checker {
        Checker::Overshoot => (Part, "Largest excess of leases over the capacity, as a part of it."),
        Checker::Nesting => (Part, "Largest possible use below a node beyond what its parent had reserved for it."),
        Checker::Fairness => (Part, "Mean distance from the ideal, of the usable amount."),
        Checker::Utilisation => (Part, "Mean part of the usable amount that was used."),
        Checker::Convergence => (Seconds, "Longest time from a change of demand or capacity to the ideal."),
        Checker::Starvation => (Seconds, "Longest time that a client had nothing although capacity was free for it."),
        Checker::Oscillation => (PerMinute, "Changes of direction of a client's grant while no demand changed."),
        Checker::Mastership => (Number, "Grants by servers that were not the master."),
        Checker::SettledFairness => (Part, "Distance from the ideal at the times at which all clients must have their shares."),
        Checker::Comeback => (Seconds, "Longest time from when a client without a lease could reach its server again to its next lease."),
        Checker::NotBack => (Number, "Clients that lost their server and had no lease at the end."),
        Checker::SafeUse => (Part, "Largest use of all clients in safe mode at once, as a part of the capacity, once each had heard its safe capacity."),
        Checker::Requests => (Number, "Most requests that one client sent within a second."),
    }
}

/// Returns the words of a limit's side.
pub(super) const fn bound(checker: Checker) -> &'static str {
    match checker.is_at_least() {
        true => "at least",
        false => "at most",
    }
}

/// Returns all that the page knows besides recordings, as JSON.
pub(super) fn vocabulary() -> Value {
    let checkers = Checker::ALL.map(|checker| {
        let ((unit, about), bound) = (about(checker), bound(checker));
        serde_json::json!({ "name": checker.as_str(), "unit": unit, "bound": bound, "about": about })
    });
    let kinds = MarkKind::ALL.map(|kind| (kind.as_str(), kind.nature()));
    let kinds = std::collections::BTreeMap::from(kinds);
    serde_json::json!({ "figures": FIGURES, "waits": WAITS, "checkers": checkers, "kinds": kinds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::played;

    #[test]
    fn every_figure_of_the_list_is_in_a_recording() {
        let run = played();
        let figures = serde_json::to_value(&run.resources[0].figures).unwrap();
        for figure in FIGURES.iter().chain(WAITS) {
            assert!(figure.of(&figures).is_finite(), "{}", figure.key);
        }
        let lost: f64 = WAITS.iter().map(|wait| wait.of(&figures)).sum();
        let missing = 1.0 - run.resources[0].figures.utilisation;
        assert!((lost - missing).abs() < 1e-9, "{lost}, not {missing}");
    }

    #[test]
    fn values_carry_their_unit() {
        assert_eq!(Part.show(0.95), "95 %");
        assert_eq!(Seconds.show(90.0), "1 min 30 s");
        assert_eq!(PerMinute.show(0.25), "0.25 /min");
        assert_eq!(Number.show(1200.0), "1,200");
    }

    #[test]
    fn a_peak_below_the_capacity_is_as_good_as_any_other() {
        let peak = FIGURES.iter().find(|it| it.name == "peak of capacity");
        let peak = peak.unwrap();
        assert_eq!(peak.cost(0.5), peak.cost(1.0));
        assert!(peak.cost(1.1) > peak.cost(1.0));
        assert!(peak.is_alarming(1.001) && !peak.is_alarming(1.0));
    }
}
