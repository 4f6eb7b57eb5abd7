//! What is valid, and what becomes of it.

mod faults;
mod listed;
mod usages;

use doorward_client::state::Mode;

use super::*;
use crate::scenario::demand::{Demand, Diurnal};
use crate::scenario::{Latency, ParentProtocol};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[track_caller]
fn read(text: &str) -> Scenario {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// What one client wants.
#[track_caller]
fn wants(demand: &str) -> Demand {
    let scenario = read(&format!("{SHARED}clients: [{{wants: {demand}}}]"));
    scenario.clients.into_iter().next().unwrap().first.demand
}

fn names(scenario: &Scenario) -> Vec<&str> {
    scenario
        .nodes
        .iter()
        .map(|node| node.name.as_str())
        .collect()
}

#[test]
fn what_is_absent_has_a_default() {
    let scenario = read(&format!("{SHARED}clients: [{{wants: 5}}]"));
    assert_eq!(scenario.name, "s");
    assert_eq!(scenario.description, "");
    assert_eq!((scenario.seed, scenario.duration), (1, s(600)));
    assert_eq!(scenario.sample_every, s(5));
    assert_eq!(scenario.settled_after, s(90), "learning, and 30 s");
    assert_eq!(names(&scenario), ["root"]);
    let root = &scenario.nodes[0];
    assert_eq!((root.parent, root.candidates), (None, 1));
    let group = &scenario.clients[0];
    assert_eq!(group.client_name(0), "client");
    assert_eq!((group.count, group.nodes.as_slice()), (1, &[0][..]));
    assert_eq!(group.first.resource.as_str(), "shared");
    assert_eq!((group.first.priority, group.first.mode), (0, Mode::Safe));
    assert_eq!(group.first.demand, Demand::Constant(5.0));
    assert_eq!(group.start_within, s(5), "the refresh interval");
    let (least, most) = (Duration::from_millis(1), Duration::from_millis(5));
    for link in [scenario.network.clients, scenario.network.servers] {
        assert_eq!(link.latency, Latency::Uniform(least, most));
        assert_eq!((link.loss, link.duplication), (0.0, 0.0));
    }
    assert_eq!(scenario.servers.refresh_floor, s(1));
    assert_eq!(scenario.servers.push_round, Duration::from_millis(50));
    assert_eq!(scenario.servers.parent_protocol, ParentProtocol::Stream);
    assert_eq!(scenario.servers.election, (s(10), s(10)));
    let gaps = doorward_client::state::ClientConfig::default();
    assert_eq!(scenario.client_gaps.early, gaps.early_gap);
    assert_eq!(scenario.client_gaps.news, gaps.news_gap);
    assert!(scenario.faults.is_empty());
    assert_eq!(scenario.limits, crate::scenario::Limits::default());
}

#[test]
fn short_simulations_are_sampled_and_judged_as_well() {
    let scenario = read(&format!("{SHARED}duration: 2s\nclients: [{{wants: 5}}]"));
    assert_eq!(scenario.sample_every, s(2));
    assert_eq!(scenario.settled_after, s(1));
    assert_eq!(scenario.clients[0].start_within, s(2));
}

#[test]
fn everything_may_be_said() {
    let scenario = read(&format!(
        "name: all-of-it
description: >-
  In a
  few lines.
duration: 1h
seed: 7
sample_every: 2.5
settled_after: 2m
{SHARED}
clients: [{{name: app, count: 3, at: root, resource: shared, priority: -1, mode: optimistic,
  wants: 1, start_within: 0}}]
network:
  loss: 0.5
  clients: {{latency: [1ms, 20ms], duplication: 0.1}}
  servers: {{latency: {{least: 1ms, mean: 5ms}}, loss: 0}}
servers: {{refresh_floor: 0s, push_round: 100ms, way_up: poll, election: [1s, 2s]}}
client_gaps: {{early: 3s, news: 0.5}}
limits: {{overshoot: 0, nesting: 0.1, unfairness: 0.2, utilisation: 0.99, convergence: 16s,
  starvation: 60, oscillation: 2, comeback: 7s, not_back: 3, safe_use: 1.5}}
"
    ));
    assert_eq!(scenario.name, "all-of-it");
    assert_eq!(scenario.description, "In a few lines.");
    assert_eq!((scenario.seed, scenario.duration), (7, s(3600)));
    assert_eq!(scenario.sample_every, Duration::from_millis(2_500));
    assert_eq!(scenario.settled_after, s(120));
    let group = &scenario.clients[0];
    assert_eq!(group.client_name(2), "app-2");
    assert_eq!(
        (group.first.priority, group.first.mode),
        (-1, Mode::Optimistic)
    );
    assert_eq!(group.start_within, s(0));
    let millis = Duration::from_millis;
    let (clients, servers) = (scenario.network.clients, scenario.network.servers);
    assert_eq!(clients.latency, Latency::Uniform(millis(1), millis(20)));
    assert_eq!((clients.loss, clients.duplication), (0.5, 0.1));
    let expected = Latency::Exponential {
        least: millis(1),
        mean: millis(5),
    };
    assert_eq!(servers.latency, expected);
    assert_eq!((servers.loss, servers.duplication), (0.0, 0.0));
    assert_eq!(scenario.servers.parent_protocol, ParentProtocol::Poll);
    assert_eq!(scenario.servers.election, (s(1), s(2)));
    assert_eq!(scenario.limits.overshoot_max, Some(0.0));
    assert_eq!(scenario.limits.utilisation_min, Some(0.99));
    assert_eq!(scenario.limits.convergence_max, Some(s(16)));
    assert_eq!(scenario.limits.starvation_max, Some(s(60)));
    assert_eq!(scenario.limits.oscillation_max, Some(2.0));
    assert_eq!(scenario.limits.comeback_max, Some(s(7)));
    assert_eq!(scenario.limits.not_back_max, Some(3.0));
    assert_eq!(scenario.limits.safe_use_max, Some(1.5));
    let gaps = scenario.client_gaps;
    assert_eq!((gaps.early, gaps.news), (s(3), millis(500)));
    // What was said is what a file of it says.
    let again = read(&scenario.to_yaml().unwrap());
    assert_eq!((again.client_gaps, again.limits), (gaps, scenario.limits));
}

#[test]
fn nodes_are_multiplied_and_named_by_the_way_to_them() {
    let scenario = read(&format!(
        "{SHARED}
tree: {{root: {{candidates: 3, children: {{region: {{count: 2, children: {{leaf: {{count: 2}}, spare: }}}}, eu: {{children: [de, fr]}}}}}}}}
clients:
- {{name: a, wants: 1}}
- {{name: b, wants: 1, at: all}}
- {{name: c, wants: 1, at: region}}
- {{name: d, wants: 1, at: [de, region-2.spare, root]}}
- {{name: e, wants: 1, at: [de, region-2.leaf-1, leaf]}}
"
    ));
    assert_eq!(
        names(&scenario),
        [
            "root",
            "region-1",
            "region-1.leaf-1",
            "region-1.leaf-2",
            "region-1.spare",
            "region-2",
            "region-2.leaf-1",
            "region-2.leaf-2",
            "region-2.spare",
            "eu",
            "de",
            "fr"
        ]
    );
    let parents: Vec<Option<usize>> = scenario.nodes.iter().map(|node| node.parent).collect();
    let at = Some;
    assert_eq!(
        parents,
        [
            None,
            at(0),
            at(1),
            at(1),
            at(1),
            at(0),
            at(5),
            at(5),
            at(5),
            at(0),
            at(9),
            at(9)
        ]
    );
    let nodes: Vec<&[usize]> = scenario
        .clients
        .iter()
        .map(|g| g.nodes.as_slice())
        .collect();
    assert_eq!(nodes[0], [2, 3, 4, 6, 7, 8, 10, 11], "the leaves");
    assert_eq!(nodes[1], (0..12).collect::<Vec<_>>());
    assert_eq!(nodes[2], [1, 5]);
    assert_eq!(nodes[3], [10, 8, 0]);
    assert_eq!(nodes[4], [10, 6, 2, 3, 6, 7]);
}

#[test]
fn every_kind_of_demand_is_read() {
    assert_eq!(wants("{constant: 2.5}"), Demand::Constant(2.5));
    let step = Demand::Step {
        from: 1.0,
        to: 2.0,
        at: s(60),
    };
    assert_eq!(wants("{step: {from: 1, to: 2, at: 1m}}"), step);
    let ramp = Demand::Ramp {
        from: 1.0,
        to: 2.0,
        at: s(0),
        length: s(100),
        every: s(5),
    };
    assert_eq!(wants("{ramp: {from: 1, to: 2, at: 0, over: 100}}"), ramp);
    let sine = Demand::Sine {
        mean: 10.0,
        amplitude: 5.0,
        period: s(200),
        shift: 0.0,
        every: s(2),
    };
    assert_eq!(
        wants("{sine: {mean: 10, amplitude: 5, period: 200s}}"),
        sine
    );
    let day = |peak, period, shift| {
        Demand::Diurnal(Diurnal {
            least: 1.0,
            most: 9.0,
            peak,
            period,
            shift,
            every: period / 100,
        })
    };
    let hour = 3600;
    assert_eq!(
        wants("{diurnal: {least: 1, most: 9}}"),
        day(s(20 * hour), s(24 * hour), 0.0)
    );
    assert_eq!(
        wants("{diurnal: {least: 1, most: 9, period: 1h, peak: 30m, shift: 0.5}}"),
        day(s(hour / 2), s(hour), 0.5)
    );
    let spike = Demand::Spike {
        base: 1.0,
        peak: 9.0,
        at: s(60),
        length: s(30),
    };
    assert_eq!(wants("{spike: {base: 1, peak: 9, at: 60, for: 30}}"), spike);
    let walk = Demand::Walk {
        start: 15.0,
        factor: (0.9, 1.1),
        every: s(10),
    };
    assert_eq!(wants("{walk: {start: 15}}"), walk);
    assert_eq!(
        wants("{walk: {start: 15, factor: [0.9, 1.1], every: 10s}}"),
        walk
    );
    let on_off = Demand::OnOff {
        on: 5.0,
        off: 0.0,
        on_for: s(10),
        off_for: s(20),
    };
    assert_eq!(
        wants("{on_off: {peak: 5, on_for: 10, off_for: 20}}"),
        on_off
    );
    let crowd = Demand::FlashCrowd {
        base: 1.0,
        peak: 100.0,
        at: s(60),
        rise: s(10),
        half_life: s(60),
        every: s(1),
    };
    let text = "{flash_crowd: {base: 1, peak: 100, at: 60, rise: 10, half_life: 60}}";
    assert_eq!(wants(text), crowd);
}

#[test]
fn a_trace_brings_its_clients_along() {
    let scenario = read(&format!(
        "{SHARED}clients:
- {{name: first, wants: {{trace: {{file: traces/good.csv, speed: 2, scale: 3, repeat: 4}}}}}}
- {{wants: {{trace: good.csv}}}}
"
    ));
    let [first, second] = scenario.clients.as_slice() else {
        panic!("there are two groups");
    };
    assert_eq!((first.count, second.count), (2, 2));
    assert_eq!(first.client_name(1), "first/b");
    assert_eq!(second.client_name(1), "b");
    let Demand::Trace(trace) = &first.first.demand else {
        panic!("is no trace");
    };
    assert_eq!((trace.speed, trace.scale, trace.repeat), (2.0, 3.0, 4));
    assert_eq!(trace.length, s(60));
}

#[test]
fn templates_may_stand_in_a_file() {
    let text = "templates: good.yaml\nclients: [{resource: db/orders, wants: 1}]";
    assert_eq!(read(text).templates.len(), 1);
}

#[test]
fn single_links_may_be_different() {
    let scenario = read(&format!(
        "{SHARED}
tree: {{root: {{children: {{region: {{count: 2, children: {{leaf: {{count: 2}}}}}}}}}}}}
clients: [{{count: 8, wants: 1}}]
network:
  latency: 5ms
  clients: {{loss: 0.1}}
  links:
  - {{between: [root, region], latency: 80ms}}
  - {{between: [region-1.leaf-2, region-1], loss: 0.5}}
  - {{at: leaf, duplication: 0.2}}
  - {{at: region-2.leaf-1, latency: 1s, loss: 0}}
"
    ));
    let network = &scenario.network;
    let constant = |millis| Latency::Constant(Duration::from_millis(millis));
    let link = |latency, loss, duplication| crate::scenario::Link {
        latency,
        loss,
        duplication,
    };
    let [region_1, leaf_2, region_2, other] = [1, 3, 4, 5];
    assert_eq!(network.to_parent(region_1), link(constant(80), 0.0, 0.0));
    assert_eq!(network.to_parent(region_2), link(constant(80), 0.0, 0.0));
    assert_eq!(network.to_parent(leaf_2), link(constant(5), 0.5, 0.0));
    assert_eq!(network.to_parent(other), network.servers);
    assert_eq!(network.to_clients(leaf_2), link(constant(5), 0.1, 0.2));
    assert_eq!(network.to_clients(other), link(constant(1000), 0.0, 0.2));
    assert_eq!(network.to_clients(region_1), network.clients);
    assert_eq!(network.above.len(), 3);
}

#[test]
fn the_examples_of_the_reference_are_valid() {
    let docs = include_str!("../../../../../docs/simulator.md");
    let blocks = docs.split("```yaml\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("```").next());
    let mut examples = 0;
    for block in blocks {
        examples += 1;
        let templates = if block.contains("templates:") {
            ""
        } else {
            SHARED
        };
        let clients = "clients: [{wants: 1}]\n";
        let clients = if block.contains("clients:\n") {
            ""
        } else {
            clients
        };
        let scenario = read(&format!("{templates}{clients}{block}"));
        if block.contains("office") {
            let names = names(&scenario);
            for name in ["region-1", "region-2.leaf-3", "office", "downstairs"] {
                assert!(names.contains(&name), "{name} in {names:?}");
            }
        }
    }
    assert!(examples >= 3);
}

#[test]
fn a_scenario_is_named_for_its_file_if_for_nothing_else() {
    let text = format!("{SHARED}clients: [{{wants: 5}}]");
    for (file, expected) in [
        ("scenarios/five.yaml", "five"),
        ("my scenario.yaml", "my-scenario"),
        (".yaml", "scenario.yaml"),
        ("", "scenario"),
    ] {
        let scenario = Scenario::parse(&text, file, &BESIDE).unwrap();
        assert_eq!(scenario.name, expected, "{file:?}");
    }
}

#[test]
fn files_are_looked_for_from_where_the_scenario_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("here.yaml");
    std::fs::write(
        &path,
        format!("{SHARED}clients: [{{wants: {{trace: t.csv}}}}]"),
    )
    .unwrap();
    let trace = folder.path().join("t.csv");
    let error = Scenario::read(&path).unwrap_err().to_string();
    assert!(
        error.contains("t.csv: cannot be read: No such file"),
        "{error}"
    );
    std::fs::write(&trace, "time_s,client,wants\n0,a,1\n").unwrap();
    assert_eq!(Scenario::read(&path).unwrap().clients[0].count, 1);
}
