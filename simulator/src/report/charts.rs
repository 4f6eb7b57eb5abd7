//! Which charts a recording has. Each resource has the same ones, and all share the axis of time.

mod parts;

use std::rc::Rc;

use crate::recording::{Checker, Recording, ResourceRecording, Sample};
use crate::report::chart::{Chart, ChartBands, ChartSize, Look, Series, lanes};
use crate::report::figures::Unit;
use doorward_pages::numbers::percent;

/// Nodes that have a chart each.
pub(super) const NODES_MAX: usize = 24;

/// The charts of a resource.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// Capacity, demand, granted, used.
    pub(super) whole: Chart,
    /// How many clients have less than they want; none if nobody ever had.
    pub(super) short: Option<Chart>,
    /// How much more was granted than there is.
    pub(super) overshoot: Chart,
    /// How far clients were from the ideal.
    pub(super) fairness: Chart,
    /// Nodes that are down or learning; none if there never was one.
    pub(super) serving: Option<Chart>,
    /// What each level of the tree has and hands out, the root first. They share their scale.
    pub(super) levels: Vec<Chart>,
    /// The first nodes, each on its own scale.
    pub(super) nodes: Vec<Chart>,
    /// Clients, and whether they share their scale.
    pub(super) clients: Vec<Chart>,
    pub(super) clients_share_scale: bool,
}

/// What all charts of a section have in common.
struct SharedByCharts<'a> {
    /// Before the names of its charts.
    prefix: &'a str,
    resource: &'a ResourceRecording,
    end_s: f64,
    times: Rc<[f64]>,
    bands: Rc<str>,
}

impl Section {
    /// The names of all its charts begin with the prefix; `bands` is the id of what stands behind their lines.
    pub(super) fn new(
        recording: &Recording,
        resource: &ResourceRecording,
        prefix: &str,
        bands: &str,
    ) -> Self {
        let common = SharedByCharts {
            prefix,
            resource,
            end_s: end(recording),
            times: resource.samples.iter().map(|sample| sample.at_s).collect(),
            bands: bands.into(),
        };
        let (clients, clients_share_scale) = common.clients();
        Self {
            whole: common.whole(),
            short: common.short(),
            overshoot: common.overshoot(limit_of(recording, resource, Checker::Overshoot)),
            fairness: common.fairness(limit_of(recording, resource, Checker::Fairness)),
            serving: common.serving(),
            levels: common.levels(&recording.nodes),
            nodes: common.nodes(&recording.nodes),
            clients,
            clients_share_scale,
        }
    }
}

/// What happened from outside, as it stands in a page; none if nothing did.
pub(super) fn happenings(recording: &Recording, end_s: f64) -> Option<String> {
    (!recording.marks.is_empty()).then(|| lanes::in_page(&recording.marks, end_s))
}

/// What stands behind the lines of all charts, as it stands in a page.
pub(super) fn bands_in_page(recording: &Recording, id: &str) -> String {
    let bands = ChartBands::new(&recording.marks, recording.settled_after_s, end(recording));
    let data = serde_json::to_string(&bands).unwrap_or_default();
    let data = doorward_pages::json_in_page(&data);
    format!(r#"<script type="application/json" id="{id}">{data}</script>"#)
}

/// Where the axis of time ends: a run that was played to its end has nothing later.
pub(super) fn end(recording: &Recording) -> f64 {
    let last = recording.resources.iter().filter_map(|r| r.samples.last());
    let last = last.map(|sample| sample.at_s).fold(0.0, f64::max);
    recording.duration_s.max(last)
}

fn limit_of(recording: &Recording, resource: &ResourceRecording, checker: Checker) -> Option<f64> {
    let mut verdicts = recording.verdicts.iter();
    let found = verdicts.find(|v| v.checker == checker && v.resource == resource.resource);
    found.and_then(|verdict| verdict.limit)
}

impl SharedByCharts<'_> {
    fn chart(&self, name: &str, title: String, size: ChartSize, series: Vec<Series>) -> Chart {
        Chart {
            id: format!("{}.{name}", self.prefix),
            about: format!("{title}, over time."),
            title,
            unit: Unit::Amount,
            size,
            end_s: self.end_s,
            times: Rc::clone(&self.times),
            series,
            limit: None,
            bands: Rc::clone(&self.bands),
            at_least: 0.0,
            cap: None,
        }
    }

    fn series(&self, look: Look, value: impl Fn(&Sample) -> f64) -> Series {
        Series {
            look,
            values: self.resource.samples.iter().map(value).collect(),
        }
    }

    fn whole(&self) -> Chart {
        // What is used is mostly what is granted: below it, it shows where it is not.
        let mut series = vec![
            self.series(Look::Used, |sample| sample.used),
            self.series(Look::Granted, |sample| sample.granted),
            self.series(Look::Demand, |sample| sample.demand),
            self.series(Look::Capacity, |sample| sample.capacity),
        ];
        if self.resource.samples.iter().any(|s| s.fallback > 0.0) {
            series.push(self.series(Look::Fallback, |sample| sample.fallback));
        }
        let title = "Demand and what is granted".to_owned();
        let mut chart = self.chart("capacity", title, ChartSize::Wide, series);
        chart.about = format!(
            "Demand for {}, its capacity, what is granted and what is used, over time.",
            self.resource.resource
        );
        chart
    }

    fn short(&self) -> Option<Chart> {
        let samples = &self.resource.samples;
        if samples.iter().all(|sample| sample.short == 0) {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of clients")]
        let part = |sample: &Sample| match sample.wanting {
            0 => f64::NAN,
            wanting => sample.short as f64 / wanting as f64,
        };
        let series = vec![self.series(Look::Short, part)];
        let title = "Clients with less than they want".to_owned();
        let mut chart = self.chart("short", title, ChartSize::Low, series);
        chart.unit = Unit::Part;
        Some(chart)
    }

    fn overshoot(&self, limit: Option<f64>) -> Chart {
        // Of no capacity nothing is a part: there the line has a gap.
        let above = |sample: &Sample| match sample.capacity > 0.0 {
            true => (sample.peak / sample.capacity - 1.0).max(0.0),
            false => f64::NAN,
        };
        let series = vec![self.series(Look::Overshoot, above)];
        let title = "Granted above the capacity".to_owned();
        let mut chart = self.chart("overshoot", title, ChartSize::Low, series);
        chart.unit = Unit::Part;
        chart.limit = limit
            .filter(|limit| *limit > 0.0)
            .map(|limit| (limit, format!("limit {}", percent(limit))));
        chart
    }

    fn fairness(&self, limit: Option<f64>) -> Chart {
        let away = |sample: &Sample| match sample.usable > 0.0 {
            true => sample.unfair / sample.usable,
            false => f64::NAN,
        };
        let series = vec![self.series(Look::Unfair, away)];
        let title = "Distance from the ideal".to_owned();
        let mut chart = self.chart("fairness", title, ChartSize::Low, series);
        chart.unit = Unit::Part;
        chart.limit = limit
            .filter(|limit| *limit > 0.0)
            .map(|limit| (limit, format!("limit of the mean {}", percent(limit))));
        chart
    }
}

#[cfg(test)]
mod tests;
