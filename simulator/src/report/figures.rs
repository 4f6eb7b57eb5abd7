//! The figures of a resource: what they are called, what they mean, and which way is better.

use crate::recording::Figures;
use doorward_pages::numbers::{measured, percent, points, seconds};

/// What a number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// In the resource's own unit.
    Amount,
    /// Of a whole, shown in percent.
    Part,
    /// What is missing to a whole, shown in points of percent.
    Points,
    /// Of time.
    Seconds,
    /// Things.
    Count,
    /// Events per client and minute.
    PerMinute,
}

impl Unit {
    /// A value, with its unit where it has one.
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::Part => percent(value),
            Self::Points => points(value),
            Self::Seconds => seconds(value),
            Self::Amount | Self::Count => measured(value),
            Self::PerMinute => format!("{} /min", measured(value)),
        }
    }
}

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    Higher,
    Lower,
    /// Below the whole it does not matter, above it lower is better.
    LowerAboveOne,
    /// It only shows what was measured.
    Neither,
}

/// One figure.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    /// What it says, for somebody who reads it for the first time.
    pub(super) about: &'static str,
    pub(super) unit: Unit,
    pub(super) better: Better,
    pub(super) get: fn(&Figures) -> f64,
}

impl Figure {
    pub(super) fn show(&self, figures: &Figures) -> String {
        self.unit.show((self.get)(figures))
    }

    /// How good a value is: the smaller, the better. None if it does not matter.
    pub(super) fn cost(&self, value: f64) -> Option<f64> {
        match self.better {
            Better::Higher => Some(-value),
            Better::Lower => Some(value),
            Better::LowerAboveOne => Some(value.max(1.0)),
            Better::Neither => None,
        }
    }

    /// Whether a value is one that an operator should look at whatever the limits say.
    pub(super) fn is_alarming(&self, value: f64) -> bool {
        self.better == Better::LowerAboveOne && value > 1.0 + 1e-9
    }
}

/// All of them, the most important first.
pub(super) const FIGURES: [Figure; 19] = [
    Figure {
        name: "utilisation",
        about: "Of what could be used (the smaller of demand and capacity), the mean part that was \
                granted to clients that could use it, at no time more than all. 100 % is the best.",
        unit: Unit::Part,
        better: Better::Higher,
        get: |figures| figures.utilisation,
    },
    Figure {
        name: "demand met",
        about: "Of all that clients wanted, the part that was granted to them. What is missing was \
                not there, or had not arrived yet.",
        unit: Unit::Part,
        better: Better::Higher,
        get: |figures| figures.demand_met,
    },
    Figure {
        name: "clients short",
        about: "Of all the time in which clients wanted something, the part in which they had less \
                than they wanted. 0 % if there is enough for all.",
        unit: Unit::Part,
        better: Better::Lower,
        get: |figures| figures.clients_short,
    },
    Figure {
        name: "demand above capacity",
        about: "The part of the time in which more was wanted than there was: then somebody goes \
                short whatever Doorward does.",
        unit: Unit::Part,
        better: Better::Neither,
        get: |figures| figures.scarce,
    },
    Figure {
        name: "granted of capacity",
        about: "The mean part of the capacity that was granted, at no time more than all. Low if \
                little is wanted.",
        unit: Unit::Part,
        better: Better::Neither,
        get: |figures| figures.granted_of_capacity,
    },
    Figure {
        name: "peak of capacity",
        about: "The most that was granted at any instant of the whole run, as a part of the \
                capacity then. Above 100 % more could be used by leases than there is.",
        unit: Unit::Part,
        better: Better::LowerAboveOne,
        get: |figures| figures.peak_of_capacity,
    },
    Figure {
        name: "peak with fallback",
        about: "The same, and what clients used without a lease besides: what the resource had to \
                bear at most.",
        unit: Unit::Part,
        better: Better::LowerAboveOne,
        get: |figures| figures.peak_with_fallback,
    },
    Figure {
        name: "peak in safe mode",
        about: "The most that clients used in safe mode at any instant of the whole run, as a part of \
                the capacity then. It is no part of the peak of capacity, nor of an overshoot.",
        unit: Unit::Part,
        better: Better::Neither,
        get: |figures| figures.peak_of_safe_use,
    },
    Figure {
        name: "overshoot for",
        about: "For how long more was granted than there is, all times of the whole run together.",
        unit: Unit::Seconds,
        better: Better::Lower,
        get: |figures| figures.overshoot_s,
    },
    Figure {
        name: "unfairness",
        about: "The mean distance of clients from what the ideal would give them (one server that \
                knows everything at once), as a part of what could be used. 0 % is the best.",
        unit: Unit::Part,
        better: Better::Lower,
        get: |figures| figures.unfairness,
    },
    Figure {
        name: "not at rest",
        about: "The part of the time in which clients were further from the ideal than 1 % of what \
                could be used, for whatever reason.",
        unit: Unit::Part,
        better: Better::Lower,
        get: |figures| figures.restless,
    },
    Figure {
        name: "convergence, longest",
        about: "From a change of demand or capacity, by more than a twentieth of the capacity at one \
                instant, until all are within 1 % of what could be used from the ideal: the longest. \
                What changes before that belongs to it, and what was not over at the end counts with \
                the time it had.",
        unit: Unit::Seconds,
        better: Better::Lower,
        get: |figures| figures.convergence_max_s,
    },
    Figure {
        name: "convergence, mean",
        about: "The mean of these times.",
        unit: Unit::Seconds,
        better: Better::Lower,
        get: |figures| figures.convergence_mean_s,
    },
    Figure {
        name: "demand changes",
        about: "Changes of demand or capacity after which convergence was measured; those that \
                overlap are one. With none, the two times above say nothing.",
        unit: Unit::Count,
        better: Better::Neither,
        get: |figures| {
            #[expect(clippy::cast_precision_loss, reason = "a count of changes")]
            let shifts = figures.shifts as f64;
            shifts
        },
    },
    Figure {
        name: "starvation, longest",
        about: "The longest time that a client had nothing though it wanted something and there \
                was something for it.",
        unit: Unit::Seconds,
        better: Better::Lower,
        get: |figures| figures.starvation_max_s,
    },
    Figure {
        name: "oscillation",
        about: "How often per minute a client's grant turned, up after down or down after up, \
                while nobody's demand changed.",
        unit: Unit::PerMinute,
        better: Better::Lower,
        get: |figures| figures.oscillation_per_minute,
    },
    Figure {
        name: "comeback, longest",
        about: "Of clients that had lost their server, and their lease: from when they could have one \
                again to when they had it, the longest. Who was not back at the end counts with the \
                time it had.",
        unit: Unit::Seconds,
        better: Better::Lower,
        get: |figures| figures.comeback_max_s,
    },
    Figure {
        name: "comeback, median",
        about: "The median of these times.",
        unit: Unit::Seconds,
        better: Better::Lower,
        get: |figures| figures.comeback_median_s,
    },
    Figure {
        name: "not back",
        about: "Clients that had lost their server, and were without a lease at the end.",
        unit: Unit::Count,
        better: Better::Lower,
        get: |figures| {
            #[expect(clippy::cast_precision_loss, reason = "a count of clients")]
            let clients = figures.not_back as f64;
            clients
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_carry_their_unit() {
        assert_eq!(Unit::Part.show(0.95), "95 %");
        assert_eq!(Unit::Seconds.show(90.0), "1 min 30 s");
        assert_eq!(Unit::PerMinute.show(0.25), "0.25 /min");
        assert_eq!(Unit::Count.show(1200.0), "1,200");
    }

    #[test]
    fn a_peak_below_the_capacity_is_as_good_as_any_other() {
        let peak = FIGURES
            .iter()
            .find(|figure| figure.name == "peak of capacity");
        let peak = peak.unwrap();
        assert_eq!(peak.cost(0.5), peak.cost(1.0));
        assert!(peak.cost(1.1) > peak.cost(1.0));
        assert!(peak.is_alarming(1.001) && !peak.is_alarming(1.0));
    }
}
