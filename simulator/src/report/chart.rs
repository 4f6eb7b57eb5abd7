//! Charts over time, as data that the script of pages draws (`doorward_pages`): lines, steps and areas over a
//! common axis of time, with what happened from outside behind them.
//!
//! A [`Chart`] says what is shown and not how it looks. Nothing may fail here: no samples, no capacity
//! or no number at all give an empty chart.

mod chart_bands;
pub(super) mod lanes;
mod thin;

use std::collections::BTreeMap;
use std::rc::Rc;

use doorward_pages::json_in_page;
use serde::Serialize;

use crate::report::figures::Unit;

pub(super) use chart_bands::ChartBands;

/// What is shown over time.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    /// Unique among the charts of a report; also the name of a picture that is saved.
    pub(super) id: String,
    pub(super) title: String,
    /// What is to be seen, for those who do not see it.
    pub(super) about: String,
    pub(super) unit: Unit,
    pub(super) size: ChartSize,
    /// Where the axis of time ends.
    pub(super) end_s: f64,
    /// When the values of all series were measured.
    pub(super) times: Rc<[f64]>,
    /// The first is drawn first.
    pub(super) series: Vec<Series>,
    /// A line across, and what stands at it.
    pub(super) limit: Option<(f64, String)>,
    /// The id of what stands behind the lines, in the page.
    pub(super) bands: Rc<str>,
    /// The axis goes up to here at least: so that charts have the same.
    pub(super) at_least: f64,
    /// No value needs the axis to go up further than here; what is above is drawn at the top.
    pub(super) cap: Option<f64>,
}

/// How large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChartSize {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
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

    /// What the script of pages calls it.
    const fn look(self) -> &'static str {
        match self {
            Self::Capacity | Self::Has => "whole",
            Self::Demand | Self::Wants => "want",
            Self::Granted => "got",
            Self::Used | Self::Ideal => "used",
            Self::Short => "short",
            Self::Reserved | Self::Learning => "held",
            Self::Fallback => "besides",
            Self::Unfair => "away",
            Self::Overshoot | Self::Down => "bad",
        }
    }

    /// The colour of its line, by the name that palettes have for it.
    const fn colour(self) -> &'static str {
        match self {
            Self::Capacity | Self::Has => "ink",
            Self::Demand | Self::Wants | Self::Short => "orange",
            Self::Granted | Self::Unfair => "blue",
            Self::Used | Self::Ideal => "teal",
            Self::Reserved | Self::Learning | Self::Fallback => "purple",
            Self::Overshoot | Self::Down => "red",
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

/// A chart as the script of pages takes it.
#[derive(Serialize)]
struct Data<'a> {
    id: &'a str,
    unit: &'static str,
    size: &'static str,
    end: f64,
    top: f64,
    times: Vec<f64>,
    series: Vec<SeriesData>,
    limit: Option<&'a (f64, String)>,
    bands: &'a str,
}

/// A series of it.
#[derive(Serialize)]
struct SeriesData {
    name: &'static str,
    look: &'static str,
    join: Join,
    values: Vec<Option<f64>>,
}

impl Chart {
    /// The chart as it stands in a page.
    pub(super) fn in_page(&self) -> String {
        let size = match self.size {
            ChartSize::Wide => "wide",
            ChartSize::Low => "low",
            ChartSize::Small => "small",
        };
        let data = serde_json::to_string(&self.data(size)).unwrap_or_default();
        format!(
            r#"<div class="chart {size}" id="{}" role="img" aria-label="{}"><script type="application/json">{}</script></div>"#,
            attribute(&self.id),
            attribute(&self.about),
            json_in_page(&data)
        )
    }

    fn data(&self, size: &'static str) -> Data<'_> {
        let kept = thin::kept(&self.times, &self.series, self.end_s);
        let pick = |values: &[f64]| -> Vec<Option<f64>> {
            let each = kept.iter().map(|index| values.get(*index).copied());
            each.map(|value| value.filter(|it| it.is_finite()).map(rounded))
                .collect()
        };
        let line = |series: &Series| SeriesData {
            name: series.look.name(),
            look: series.look.look(),
            join: series.look.join(),
            values: pick(&series.values),
        };
        // As legends have them.
        let mut order: Vec<&Series> = self.series.iter().collect();
        order.sort_by_key(|series| series.look);
        Data {
            id: &self.id,
            unit: match self.unit {
                Unit::Part => "part",
                Unit::Count => "count",
                _ => "amount",
            },
            size,
            end: self.end_s,
            top: rounded(self.most().max(self.at_least)),
            times: pick(&self.times).into_iter().flatten().collect(),
            series: order.into_iter().map(line).collect(),
            limit: self.limit.as_ref(),
            bands: &self.bands,
        }
    }
}

/// The keys of charts that have no legend of their own.
pub(super) fn keys_in_page(charts: &[Chart]) -> String {
    let series = charts.iter().flat_map(|chart| &chart.series);
    let looks: BTreeMap<Look, ()> = series.map(|series| (series.look, ())).collect();
    let key = |look: Look| {
        let (name, colour) = (look.name(), look.colour());
        format!(
            r#"<span class="key" data-name="{name}"><i class="swatch" style="color:var(--{colour})"></i>{name}</span>"#
        )
    };
    looks.into_keys().map(key).collect()
}

/// To six digits: nobody sees more of a line.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// A text as the value of an attribute.
pub(super) fn attribute(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
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
