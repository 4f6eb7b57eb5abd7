//! Which charts there are, and on which scale.

use super::*;
use crate::report::plausible;

/// What a page has of a chart is data that its script can read.
fn check_data(drawn: &str) {
    let data = drawn.split_once("json\">").unwrap().1;
    let data = data.strip_suffix("</script></div>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let times = data["times"].as_array().unwrap().len();
    for series in data["series"].as_array().unwrap() {
        assert_eq!(series["values"].as_array().unwrap().len(), times);
    }
}

#[test]
fn levels_share_their_scale_and_add_up() {
    let recording = plausible::day();
    let resource = &recording.resources[0];
    let section = Section::new(&recording, resource, "x", "bands");
    assert_eq!(section.levels.len(), 3);
    let scales: Vec<f64> = section.levels.iter().map(|level| level.at_least).collect();
    assert!(
        scales
            .iter()
            .all(|scale| *scale == scales[0] && *scale > 0.0)
    );
    let sample = &resource.samples[100];
    let expected: f64 = sample.nodes[1..4].iter().map(|node| node.has).sum();
    assert!((section.levels[1].series[2].values[100] - expected).abs() < 1e-9);
    assert_eq!(section.levels[1].title, "Level 1: eu, us, asia");
    assert_eq!(section.levels[2].title, "Level 2: 9 nodes");
}

#[test]
fn whoever_lacks_most_is_shown_first_and_wants_do_not_flatten_grants() {
    let mut recording = plausible::small();
    for sample in &mut recording.resources[0].clients[1].samples {
        sample.wants = 1_000.0;
    }
    let section = Section::new(&recording, &recording.resources[0], "x", "bands");
    let titles: Vec<&str> = section.clients.iter().map(|c| c.title.as_str()).collect();
    assert_eq!(titles, ["b'\" at <one>", "a at <one>"]);
    // At best each gets 5.
    assert!(section.clients.iter().all(|chart| chart.at_least <= 12.5));
}

#[test]
fn of_ten_thousand_nodes_the_first_have_charts() {
    let recording = plausible::tree(&[1, 99, 9_900], 20, 60.0, 10.0);
    let section = Section::new(&recording, &recording.resources[0], "x", "bands");
    assert_eq!(section.nodes.len(), NODES_MAX);
    assert_eq!(section.levels.len(), 3);
}

#[test]
fn without_capacity_or_samples_there_are_empty_charts() {
    let mut recording = plausible::small();
    for sample in &mut recording.resources[0].samples {
        sample.capacity = 0.0;
        sample.usable = 0.0;
    }
    for samples in [usize::MAX, 1, 0] {
        recording.resources[0].samples.truncate(samples);
        let section = Section::new(&recording, &recording.resources[0], "x", "bands");
        for chart in [section.whole, section.overshoot, section.fairness] {
            let drawn = chart.in_page();
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
            check_data(&drawn);
        }
    }
}
