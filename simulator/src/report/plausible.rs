//! For tests: recordings as a simulation might make them, without one. They are the same each time.
//! What they show (surges, deaths of masters, learning modes) has the shape it has in truth, and no
//! more.

use crate::recording::{
    Checker, ClientFigures, ClientSample, ClientSeries, Figures, Mark, MarkKind, Nature, NodeInfo,
    NodeSample, Recording, ResourceRecording, Sample, Verdict, Waits, Work,
};

/// A few samples of one resource at one node, with a name that needs escaping.
pub(crate) fn small() -> Recording {
    let verdict = |checker, value, limit, holds| Verdict {
        checker,
        resource: "requests".to_owned(),
        value,
        limit,
        holds,
        at_s: Some(40.0),
        detail: String::new(),
    };
    let mut unfair = verdict(Checker::Fairness, 0.125, Some(0.1), false);
    unfair.detail =
        "client \"a\" had 2 of 5 for most of a minute after node <one> was killed".to_owned();
    Recording {
        scenario: "small & <simple>".to_owned(),
        description: "One server, two clients; somebody's \"test\".".to_owned(),
        command: String::new(),
        seed: 7,
        duration_s: 60.0,
        sample_every_s: 10.0,
        settled_after_s: 20.0,
        nodes: vec![NodeInfo {
            name: "<one>".to_owned(),
            parent: None,
            level: 0,
            clients: 2,
            requests_most: 40,
            requests_most_at_s: 43.0,
        }],
        clients: 2,
        resources: vec![small_resource()],
        marks: vec![Mark {
            at_s: 30.0,
            until_s: Some(42.0),
            kind: MarkKind::Kill,
            text: "<one> is killed & back after 12 s".to_owned(),
        }],
        verdicts: vec![
            verdict(Checker::Overshoot, 0.0, Some(0.0), true),
            unfair,
            verdict(Checker::Utilisation, 0.955, Some(0.9), true),
            verdict(Checker::Starvation, 1.5, None, true),
        ],
        work: Work {
            refreshes: 1_234,
            messages: 2_500,
            lost: 25,
            events: 5_000,
        },
        trace_hash: "0123456789abcdef".to_owned(),
    }
}

fn small_resource() -> ResourceRecording {
    let times = [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0];
    let granted = [0.0, 8.0, 10.0, 10.0, 6.0, 9.5, 10.0];
    let samples = times
        .into_iter()
        .zip(granted)
        .map(|(at_s, granted)| Sample {
            at_s,
            capacity: 10.0,
            demand: 12.0,
            granted,
            fallback: 0.0,
            safe: 0.0,
            used: granted,
            usable: 10.0,
            peak: granted,
            unfair: (10.0 - granted) / 2.0,
            holders: 2,
            wanting: 2,
            short: usize::from(granted < 10.0) + 1,
            nodes: vec![NodeSample {
                has: 10.0,
                wants: 12.0,
                granted,
                reserved: granted,
                is_up: !(30.0..=42.0).contains(&at_s),
                is_learning: at_s < 10.0,
            }],
        });
    let client = |name: &str, part: f64, wants| ClientSeries {
        client: name.to_owned(),
        node: "<one>".to_owned(),
        samples: granted
            .into_iter()
            .map(|granted| ClientSample {
                wants,
                granted: granted * part,
                fallback: 0.0,
                ideal: 5.0,
            })
            .collect(),
    };
    let figures = |name: &str, wanted, got, short| ClientFigures {
        client: name.to_owned(),
        node: "<one>".to_owned(),
        wanted,
        got,
        ideal: 5.0,
        short,
    };
    ResourceRecording {
        resource: "requests".to_owned(),
        algorithm: "FAIR_SHARE".to_owned(),
        lease_length_s: Some(20.0),
        samples: samples.collect(),
        clients: vec![client("a", 0.5, 5.0), client("b'\"", 0.5, 7.0)],
        figures: Figures {
            utilisation: 0.955,
            demand_met: 0.7917,
            clients_short: 0.75,
            scarce: 1.0,
            granted_of_capacity: 0.955,
            peak_of_capacity: 1.0,
            peak_with_fallback: 1.2,
            peak_of_safe_use: 0.2,
            overshoot_s: 0.0,
            unfairness: 0.125,
            restless: 0.25,
            shifts: 1,
            convergence_max_s: 8.0,
            convergence_mean_s: 8.0,
            unfinished_s: 0.0,
            starvation_max_s: 1.5,
            oscillation_per_minute: 0.25,
            comebacks: 2,
            comeback_median_s: 1.2,
            comeback_max_s: 2.5,
            not_back: 0,
            waits: Waits {
                gap: 0.005,
                answer: 0.000_01,
                others: 0.014_99,
                no_server: 0.025,
                ..Waits::NONE
            },
        },
        client_figures: vec![
            figures("b'\"", 7.0, 4.55, 1.0),
            figures("a", 5.0, 4.55, 0.5),
        ],
    }
}

/// An hour of a tree of three levels with two resources: demand that comes and goes, masters that
/// are killed, a partition, a surge, an edit.
pub(crate) fn day() -> Recording {
    tree(&[1, 3, 9], 45, 3_600.0, 5.0)
}

/// A tree with so many nodes at each level.
pub(crate) fn tree(levels: &[usize], clients: usize, duration_s: f64, every_s: f64) -> Recording {
    let nodes = nodes(levels, clients);
    let marks = marks(duration_s, &nodes);
    let resources = vec![
        resource(
            "eu/requests",
            "FAIR_SHARE",
            1_000.0,
            (&nodes, clients),
            &marks,
            (duration_s, every_s),
        ),
        resource(
            "exports",
            "PRIORITY_BANDS",
            40.0,
            (&nodes, clients),
            &marks,
            (duration_s, every_s),
        ),
    ];
    let verdicts = resources.iter().flat_map(verdicts).collect();
    Recording {
        scenario: "three-levels".to_owned(),
        description: "A region loses its master while a third of the clients want five times as \
                      much; then the operator lowers the capacity."
            .to_owned(),
        command: String::new(),
        seed: 20_260_412,
        duration_s,
        sample_every_s: every_s,
        settled_after_s: 120.0,
        clients,
        nodes,
        resources,
        marks,
        verdicts,
        work: Work {
            refreshes: 182_410,
            messages: 401_223,
            lost: 1_893,
            events: 1_204_888,
        },
        trace_hash: "9f3c1a77e0b2d645".to_owned(),
    }
}

fn nodes(levels: &[usize], clients: usize) -> Vec<NodeInfo> {
    let mut nodes: Vec<NodeInfo> = Vec::new();
    let leaves = levels.last().copied().unwrap_or(0).max(1);
    let mut above = 0..0;
    for (level, count) in levels.iter().copied().enumerate() {
        let first = nodes.len();
        for number in 0..count {
            let parent = (!above.is_empty()).then(|| above.start + number * above.len() / count);
            let name = match (level, parent.and_then(|parent| nodes.get(parent))) {
                (0, _) | (_, None) => "root".to_owned(),
                (1, _) => ["eu", "us", "asia"]
                    .get(number)
                    .map_or_else(|| format!("region-{number}"), |name| (*name).to_owned()),
                (_, Some(parent)) => format!("{}-{number}", parent.name),
            };
            let is_leaf = level + 1 == levels.len();
            nodes.push(NodeInfo {
                name,
                parent,
                level,
                clients: if is_leaf { clients / leaves } else { 0 },
                requests_most: number as u64 + 20,
                requests_most_at_s: 0.0,
            });
        }
        above = first..nodes.len();
    }
    nodes
}

fn marks(duration_s: f64, nodes: &[NodeInfo]) -> Vec<Mark> {
    let name = |index: usize| nodes.get(index).map_or("root", |node| node.name.as_str());
    let mark = |part: f64, lasts: Option<f64>, kind: MarkKind, text: String| Mark {
        at_s: (part * duration_s).floor(),
        until_s: lasts.map(|lasts| (part * duration_s).floor() + lasts * duration_s / 3_600.0),
        kind,
        text,
    };
    vec![
        mark(
            0.15,
            None,
            MarkKind::Demand,
            "15 clients want 5 times as much".to_owned(),
        ),
        mark(
            0.25,
            Some(32.0),
            MarkKind::Kill,
            format!("{} loses its master; elected after 32 s", name(1)),
        ),
        mark(
            0.38,
            Some(240.0),
            MarkKind::Partition,
            format!("{} is cut off from its parent", name(2)),
        ),
        mark(
            0.45,
            Some(20.0),
            MarkKind::Crash,
            "4 clients stop without a word".to_owned(),
        ),
        mark(
            0.5,
            None,
            MarkKind::Edit,
            "the capacity of eu/requests is lowered by a quarter".to_owned(),
        ),
        mark(
            0.62,
            Some(90.0),
            MarkKind::Freeze,
            format!("{} stands still", name(0)),
        ),
        mark(
            0.62,
            None,
            MarkKind::Demand,
            "15 clients want what they wanted before".to_owned(),
        ),
        mark(
            0.75,
            Some(25.0),
            MarkKind::Kill,
            format!("{} loses its master", name(0)),
        ),
        mark(
            0.76,
            Some(45.0),
            MarkKind::Kill,
            format!("{} loses its master", name(3)),
        ),
        mark(
            0.9,
            None,
            MarkKind::Clock,
            format!("the clock of {} jumps ahead by 2 s", name(4)),
        ),
    ]
}

/// A number between 0 and 1 that looks like chance and is none.
fn noise(seed: usize) -> f64 {
    let mut x = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    x ^= x >> 31;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 29;
    (x % 10_000) as f64 / 10_000.0
}

fn resource(
    id: &str,
    algorithm: &str,
    capacity: f64,
    (nodes, clients): (&[NodeInfo], usize),
    marks: &[Mark],
    (duration_s, every_s): (f64, f64),
) -> ResourceRecording {
    let steps = (duration_s / every_s) as usize + 1;
    let leaves = nodes.iter().filter(|node| node.clients > 0).count().max(1);
    let mut samples: Vec<Sample> = Vec::with_capacity(steps);
    let mut shown: Vec<ClientSeries> = (0..clients.min(50))
        .map(|number| ClientSeries {
            client: format!("web-{number}"),
            node: nodes[nodes.len() - leaves + number % leaves].name.clone(),
            samples: Vec::with_capacity(steps),
        })
        .collect();
    let mut granted_before = 0.0;
    for step in 0..steps {
        let at_s = step as f64 * every_s;
        let part = at_s / duration_s;
        let capacity = if part > 0.5 {
            capacity * 0.75
        } else {
            capacity
        };
        let surge = if (0.15..0.62).contains(&part) {
            1.9
        } else {
            1.0
        };
        let wave = 1.0 + 0.3 * (part * 9.0).sin();
        let demand = capacity * (0.75 * surge * wave + 0.03 * noise(step));
        let hurt = marks.iter().any(|mark| {
            let until = mark.until_s.unwrap_or(mark.at_s + 20.0);
            mark.at_s <= at_s && at_s < until && mark.kind.nature() == Nature::Fault
        });
        let ideal: f64 = demand.min(capacity);
        let aim: f64 = ideal * if hurt { 0.82 } else { 1.0 };
        let granted: f64 = granted_before + (aim - granted_before) * 0.35;
        granted_before = granted;
        let over = if (0.5..0.515).contains(&part) {
            1.06
        } else {
            1.0
        };
        let peak = (granted * over).max(granted);
        let share = |node: &NodeInfo| match node.level {
            0 => 1.0,
            level => 1.0 / nodes.iter().filter(|other| other.level == level).count() as f64,
        };
        let shares: Vec<f64> = {
            let mut by_level: Vec<f64> = Vec::new();
            nodes
                .iter()
                .map(|node| {
                    if by_level.len() <= node.level {
                        by_level.resize(node.level + 1, share(node));
                    }
                    by_level[node.level]
                })
                .collect()
        };
        samples.push(Sample {
            at_s,
            capacity,
            demand,
            granted: granted * over,
            fallback: if hurt { capacity * 0.04 } else { 0.0 },
            safe: if hurt { capacity * 0.03 } else { 0.0 },
            used: granted.min(demand) * 0.99,
            usable: ideal,
            peak: peak * (1.0 + 0.002 * noise(step + 7)),
            unfair: (ideal - granted).abs() / 2.0 + ideal * 0.004 * noise(step + 99),
            holders: clients,
            wanting: clients,
            short: if hurt { clients } else { clients / 5 },
            nodes: nodes
                .iter()
                .zip(&shares)
                .enumerate()
                .map(|(index, (node, share))| {
                    let own = share * (1.0 + 0.25 * (noise(index) - 0.5));
                    let is_killed = marks.iter().any(|mark| {
                        mark.kind == MarkKind::Kill
                            && mark.text.split(' ').next() == Some(node.name.as_str())
                            && (mark.at_s..mark.until_s.unwrap_or(0.0)).contains(&at_s)
                    });
                    NodeSample {
                        has: if node.level == 0 {
                            capacity
                        } else {
                            granted * own * 1.04
                        },
                        wants: demand * own,
                        granted: if is_killed { 0.0 } else { granted * own },
                        reserved: if is_killed { 0.0 } else { granted * own * 1.02 },
                        is_up: !is_killed,
                        is_learning: at_s < 60.0,
                    }
                })
                .collect(),
        });
        for (number, series) in shown.iter_mut().enumerate() {
            let wants = demand / clients as f64 * (0.4 + 1.2 * noise(number));
            let fair = ideal / clients as f64 * (0.5 + noise(number));
            let is_away = marks.iter().any(|mark| {
                mark.kind == MarkKind::Crash
                    && number < 4
                    && (mark.at_s..mark.until_s.unwrap_or(0.0)).contains(&at_s)
            });
            series.samples.push(ClientSample {
                wants: if is_away { 0.0 } else { wants },
                granted: if is_away {
                    0.0
                } else {
                    wants.min(fair) * granted / ideal.max(1e-9)
                },
                fallback: if hurt && number % 7 == 3 {
                    wants * 0.3
                } else {
                    0.0
                },
                ideal: if is_away { 0.0 } else { wants.min(fair) },
            });
        }
    }
    ResourceRecording {
        resource: id.to_owned(),
        algorithm: algorithm.to_owned(),
        lease_length_s: Some(60.0),
        samples,
        client_figures: client_figures(&shown),
        clients: shown,
        figures: Figures {
            utilisation: 0.9713,
            demand_met: 0.8125,
            clients_short: 0.4375,
            scarce: 0.5,
            granted_of_capacity: 0.8641,
            peak_of_capacity: if id == "exports" { 1.0 } else { 1.0617 },
            peak_with_fallback: 1.0938,
            peak_of_safe_use: 0.0301,
            overshoot_s: if id == "exports" { 0.0 } else { 48.0 },
            unfairness: 0.0231,
            restless: 0.0625,
            shifts: 14,
            convergence_max_s: 41.5,
            convergence_mean_s: 13.25,
            unfinished_s: 0.0,
            starvation_max_s: 0.0,
            oscillation_per_minute: 0.018,
            comebacks: 31,
            comeback_median_s: 1.9,
            comeback_max_s: 4.75,
            not_back: 0,
            waits: Waits {
                answer: 0.0007,
                share: 0.004,
                learning: 0.016,
                no_server: 0.008,
                ..Waits::NONE
            },
        },
    }
}

/// Those that are shown, worst first.
fn client_figures(shown: &[ClientSeries]) -> Vec<ClientFigures> {
    let mut figures: Vec<ClientFigures> = shown
        .iter()
        .map(|series| {
            let mean = |of: fn(&ClientSample) -> f64| {
                series.samples.iter().map(of).sum::<f64>() / series.samples.len().max(1) as f64
            };
            ClientFigures {
                client: series.client.clone(),
                node: series.node.clone(),
                wanted: mean(|sample| sample.wants),
                got: mean(|sample| sample.wants.min(sample.granted)),
                ideal: mean(|sample| sample.ideal),
                short: mean(|sample| f64::from(u8::from(sample.granted < sample.wants))),
            }
        })
        .collect();
    figures.sort_by(|a, b| (b.wanted - b.got).total_cmp(&(a.wanted - a.got)));
    figures
}

fn verdicts(resource: &ResourceRecording) -> Vec<Verdict> {
    let verdict =
        |checker: Checker, value: f64, limit: Option<f64>, at_s: Option<f64>, detail: &str| {
            Verdict {
                checker,
                resource: resource.resource.clone(),
                value,
                limit,
                holds: limit.is_none_or(|limit| checker.bound().holds(value, limit)),
                at_s,
                detail: detail.to_owned(),
            }
        };
    let over = resource.figures.peak_of_capacity - 1.0;
    vec![
        verdict(
            Checker::Overshoot,
            over,
            Some(0.0),
            Some(1_805.0),
            "granted 796.3 of 750: leases from before the capacity was lowered run out one by one",
        ),
        verdict(
            Checker::Nesting,
            0.0,
            Some(0.0),
            None,
            "no node handed out more than it had",
        ),
        verdict(
            Checker::Fairness,
            resource.figures.unfairness,
            Some(0.05),
            Some(905.0),
            "worst while eu had no master",
        ),
        verdict(
            Checker::Utilisation,
            resource.figures.utilisation,
            Some(0.95),
            Some(2_240.0),
            "lowest while root stood still",
        ),
        verdict(
            Checker::Convergence,
            resource.figures.convergence_max_s,
            Some(60.0),
            Some(540.0),
            "after 15 clients wanted 5 times as much",
        ),
        verdict(Checker::Starvation, 0.0, None, None, ""),
        verdict(Checker::Oscillation, 0.018, Some(0.1), None, ""),
    ]
}
