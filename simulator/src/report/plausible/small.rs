//! A recording of one node and two clients, with names that need escaping.

use crate::recording::{
    Checker, ClientFigures, ClientSample, ClientSeries, Figures, Mark, MarkKind, NodeInfo,
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
