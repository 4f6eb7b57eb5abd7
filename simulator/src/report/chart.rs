//! Charts over time, as SVG, drawn here: lines, steps and areas over a common axis of time, with what
//! happened from outside behind them.
//!
//! A [`Chart`] says what is shown and not how it looks; a [`Picture`] is drawn, and can stand in a
//! page or in a file of its own. Colour is never the only difference: lines differ by their dashes
//! too. Nothing may fail here: no samples, no capacity or no number at all give an empty chart.

mod bands;
mod draw;
mod lanes;
mod legend;
mod picture;
mod scale;
mod style;
mod thin;
mod xml;

use std::rc::Rc;

use crate::report::figures::Unit;

pub(super) use bands::Bands;
pub(super) use lanes::Lanes;
pub(super) use legend::keys_in_page;
pub(super) use picture::{Picture, sheet};
pub(super) use style::{colours, css};

/// What is shown over time.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    /// Unique among the charts of a report; also the name of a file.
    pub(super) id: String,
    pub(super) title: String,
    /// What is to be seen, for those who do not see it.
    pub(super) about: String,
    pub(super) unit: Unit,
    pub(super) size: Size,
    /// Where the axis of time ends.
    pub(super) end_s: f64,
    /// When the values of all series were measured.
    pub(super) times: Rc<[f64]>,
    /// The first is drawn first.
    pub(super) series: Vec<Series>,
    /// A line across, and what stands at it.
    pub(super) limit: Option<(f64, String)>,
    pub(super) bands: Rc<Bands>,
    /// The axis goes up to here at least: so that charts have the same.
    pub(super) at_least: f64,
    /// No value needs the axis to go up further than here; what is above is drawn at the top.
    pub(super) cap: Option<f64>,
}

/// How large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// Across the page.
    Wide,
    /// Across the page, and not so high.
    Low,
    /// Several beside each other.
    Small,
}

/// Values over time.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) look: Look,
    /// As many as there are times. What is no number is a gap.
    pub(super) values: Vec<f64>,
}

/// What a line means, and so how it looks, the same in all charts. In the order of legends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Look {
    Capacity,
    Has,
    Demand,
    Wants,
    Granted,
    Used,
    Reserved,
    Ideal,
    Fallback,
    Unfair,
    Overshoot,
    Short,
    Down,
    Learning,
}

/// How the points of a line are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Join {
    /// Straight from one to the next.
    Line,
    /// A value holds until the next.
    Step,
    /// A line, with what is below it filled.
    Area,
}

impl Look {
    /// What it is called in a legend.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::Has => "has",
            Self::Demand => "demand",
            Self::Wants => "wants",
            Self::Granted => "granted",
            Self::Used => "used",
            Self::Reserved => "reserved",
            Self::Ideal => "ideal",
            Self::Fallback => "used without a lease",
            Self::Unfair => "away from the ideal",
            Self::Overshoot => "above the capacity",
            Self::Short => "clients with less than they want",
            Self::Down => "down",
            Self::Learning => "learning",
        }
    }

    /// Its class in the style sheet.
    const fn class(self) -> &'static str {
        match self {
            Self::Capacity | Self::Has => "s-whole",
            Self::Demand | Self::Wants => "s-want",
            Self::Granted => "s-got",
            Self::Used | Self::Ideal => "s-used",
            Self::Short => "s-short",
            Self::Reserved | Self::Learning => "s-held",
            Self::Fallback => "s-besides",
            Self::Unfair => "s-away",
            Self::Overshoot | Self::Down => "s-bad",
        }
    }

    const fn join(self) -> Join {
        match self {
            Self::Capacity | Self::Has | Self::Wants | Self::Learning => Join::Step,
            Self::Granted | Self::Unfair | Self::Overshoot | Self::Short | Self::Down => Join::Area,
            _ => Join::Line,
        }
    }
}

impl Chart {
    /// The largest value that has to be seen.
    pub(super) fn most(&self) -> f64 {
        self.largest().min(self.cap.unwrap_or(f64::INFINITY))
    }

    /// The largest value.
    fn largest(&self) -> f64 {
        let values = self.series.iter().flat_map(|series| series.values.iter());
        let limit = self.limit.iter().map(|(limit, _)| limit);
        values
            .chain(limit)
            .copied()
            .filter(|value| value.is_finite())
            .fold(0.0, f64::max)
    }
}

/// Charts with the same axes, so that they can be compared.
pub(super) fn align<'a>(charts: impl Iterator<Item = &'a mut Chart>) {
    let mut charts: Vec<&mut Chart> = charts.collect();
    let most = charts.iter().map(|chart| chart.most()).fold(0.0, f64::max);
    let end = charts.iter().map(|chart| chart.end_s).fold(0.0, f64::max);
    for chart in &mut charts {
        chart.at_least = most;
        chart.end_s = end;
    }
}
