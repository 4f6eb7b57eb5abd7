//! The charts of parts of the whole: levels of the tree, nodes, clients.

use std::collections::HashMap;

use crate::recording::{ClientSample, ClientSeries, NodeInfo, NodeSample};
use crate::report::chart::{Chart, ChartSize, Look, Series, align};
use crate::report::charts::{NODES_MAX, SharedByCharts};
use crate::report::figures::Unit;
use doorward_pages::numbers::several;

/// Up to so many nodes of a level are named.
const NAMED_MAX: usize = 4;
/// If one client gets more than this many times what a usual one gets, they have no common scale.
const SPREAD_MAX: f64 = 12.0;
/// Of what a client wants, up to this many times what it gets at best is shown.
const WANTS_SHOWN_MAX: f64 = 2.5;

impl SharedByCharts<'_> {
    /// How many nodes are down, and how many learn.
    pub(super) fn serving(&self) -> Option<Chart> {
        let counted = |counts: fn(&NodeSample) -> bool| {
            let samples = self.resource.samples.iter();
            samples
                .map(|sample| count(sample.nodes.iter().filter(|node| counts(node)).count()))
                .collect::<Vec<f64>>()
        };
        let down = counted(|node| !node.is_up);
        let learning = counted(|node| node.is_up && node.is_learning);
        if down.iter().chain(&learning).all(|value| *value <= 0.0) {
            return None;
        }
        let series = vec![
            Series {
                look: Look::Down,
                values: down,
            },
            Series {
                look: Look::Learning,
                values: learning,
            },
        ];
        let title = "Nodes without a master, or learning".to_owned();
        let mut chart = self.chart("serving", title, ChartSize::Low, series);
        chart.unit = Unit::Count;
        Some(chart)
    }

    pub(super) fn levels(&self, nodes: &[NodeInfo]) -> Vec<Chart> {
        let last = nodes.iter().map(|node| node.level).max();
        let Some(last) = last.filter(|_| nodes.len() > 1) else {
            return Vec::new();
        };
        let mut charts: Vec<Chart> = (0..=last).map(|level| self.level(nodes, level)).collect();
        align(charts.iter_mut());
        charts
    }

    fn level(&self, nodes: &[NodeInfo], level: usize) -> Chart {
        let members: Vec<usize> = (0..nodes.len())
            .filter(|index| nodes.get(*index).is_some_and(|node| node.level == level))
            .collect();
        let sum = |get: fn(&NodeSample) -> f64| -> Vec<f64> {
            let samples = self.resource.samples.iter();
            samples
                .map(|sample| {
                    let members = members.iter().filter_map(|index| sample.nodes.get(*index));
                    members.map(get).sum()
                })
                .collect()
        };
        let who = match members.len() {
            0..=NAMED_MAX => {
                let members = members.iter().filter_map(|index| nodes.get(*index));
                let names: Vec<&str> = members.map(|node| node.name.as_str()).collect();
                names.join(", ")
            }
            many => several(many, "node", "nodes"),
        };
        let series = node_series(sum);
        let title = format!("Level {level}: {who}");
        self.chart(&format!("level-{level}"), title, ChartSize::Low, series)
    }

    pub(super) fn nodes(&self, nodes: &[NodeInfo]) -> Vec<Chart> {
        if nodes.len() < 2 {
            return Vec::new();
        }
        let shown = nodes.iter().enumerate().take(NODES_MAX);
        shown
            .map(|(index, node)| {
                let series = node_series(|get| {
                    let samples = self.resource.samples.iter();
                    samples
                        .map(|sample| sample.nodes.get(index).map_or(f64::NAN, get))
                        .collect()
                });
                let name = format!("node-{index}");
                self.chart(&name, node.name.clone(), ChartSize::Small, series)
            })
            .collect()
    }

    /// Also whether they have a common scale.
    pub(super) fn clients(&self) -> (Vec<Chart>, bool) {
        // Those to whom most is missing first.
        let worst = self.resource.client_figures.iter().enumerate();
        let worst: HashMap<&str, usize> = worst
            .map(|(place, figures)| (figures.client.as_str(), place))
            .collect();
        let place =
            |client: &ClientSeries| *worst.get(client.client.as_str()).unwrap_or(&usize::MAX);
        let mut clients: Vec<_> = self.resource.clients.iter().enumerate().collect();
        clients.sort_by_key(|(_, client)| place(client));
        let clients = clients.into_iter();
        let mut charts: Vec<Chart> = clients
            .map(|(index, client)| {
                let series = |look, get: fn(&ClientSample) -> f64| Series {
                    look,
                    values: client.samples.iter().map(get).collect(),
                };
                // What is granted should lie on the ideal: below it, that shows where it does not.
                let mut all = vec![
                    series(Look::Ideal, |sample| sample.ideal),
                    series(Look::Granted, |sample| sample.granted),
                    series(Look::Wants, |sample| sample.wants),
                ];
                if client.samples.iter().any(|sample| sample.fallback > 0.0) {
                    all.push(series(Look::Fallback, |sample| sample.fallback));
                }
                let title = match client.node.is_empty() {
                    true => client.client.clone(),
                    false => format!("{} at {}", client.client, client.node),
                };
                let mut chart =
                    self.chart(&format!("client-{index}"), title, ChartSize::Small, all);
                // Whoever wants many times what it can get would flatten what it gets to nothing.
                let most = |get: fn(&ClientSample) -> f64| {
                    client.samples.iter().map(get).fold(0.0, f64::max)
                };
                let got = most(|sample| sample.granted.max(sample.ideal).max(sample.fallback));
                chart.cap = (got > 0.0).then_some(got * WANTS_SHOWN_MAX);
                chart
            })
            .collect();
        let mut most: Vec<f64> = charts.iter().map(Chart::most).collect();
        most.sort_by(f64::total_cmp);
        let middle = most.get(most.len() / 2).copied().unwrap_or(0.0);
        let shares_scale = most.last().is_none_or(|most| *most <= middle * SPREAD_MAX);
        if shares_scale {
            align(charts.iter_mut());
        }
        (charts, shares_scale)
    }
}

/// What nodes have and hand out.
fn node_series(values: impl Fn(fn(&NodeSample) -> f64) -> Vec<f64>) -> Vec<Series> {
    let series = |look, get: fn(&NodeSample) -> f64| Series {
        look,
        values: values(get),
    };
    vec![
        series(Look::Granted, |node| node.granted),
        series(Look::Reserved, |node| node.reserved),
        series(Look::Has, |node| node.has),
    ]
}

fn count(value: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a count of nodes")]
    let value = value as f64;
    value
}
