//! Scenario files: the outcome of valid ones, and the messages of all others.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::scenario::clients::Connection;
use crate::scenario::demand::Demand;
use crate::scenario::forms::Amount;
use crate::scenario::{Limits, Link};

const SHARED: &str = "templates: {resources: [{identifier_glob: shared, capacity: 100, \
                      algorithm: {kind: FAIR_SHARE, lease_length: 60s, refresh_interval: 5s}}]}\n";

/// A trace and a template file, as if they stood beside the scenario; and some that are invalid.
const BESIDE: &str = "testdata/scenario-files";

const CASES: &str = "testdata/scenario-files.txt";

fn parse(text: &str) -> std::result::Result<Scenario, ScenarioError> {
    Scenario::parse(text, "s.yaml", Path::new(BESIDE))
}

#[track_caller]
fn read(text: &str) -> Scenario {
    parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the whole file of a case, and a view of the scenario: see the head of the cases.
fn file_of(kind: &str, snippet: &str) -> (String, fn(&Scenario) -> String) {
    let tree = "tree: {root: {children: {leaf: {count: 2}}}}";
    let clients = "clients: [{count: 10, wants: 1}]";
    match kind {
        "file" => (snippet.to_owned(), |it| {
            format!("{} clients", it.clients.len())
        }),
        "line" => (
            format!("{SHARED}clients: [{{wants: 1}}]\n{snippet}\n"),
            |it| {
                let Scenario {
                    network,
                    servers,
                    limits,
                    right_at,
                    ..
                } = it;
                let network = network.resolve(&it.nodes).unwrap();
                format!("{network:?} {servers:?} {limits:?} {right_at:?}")
            },
        ),
        "tree" => (
            format!("{SHARED}clients: [{{wants: 1}}]\ntree: {snippet}\n"),
            |it| {
                let one = |node: &Node| format!("{}<{:?}", node.name, node.parent);
                it.nodes.iter().map(one).collect::<Vec<_>>().join(" ")
            },
        ),
        "group" => (format!("{SHARED}{tree}\nclients:\n- {snippet}\n"), |it| {
            format!("{:?}", it.clients)
        }),
        "fault" => (
            format!("{SHARED}{tree}\n{clients}\nfaults:\n- {snippet}\n"),
            |it| format!("{:?}", it.faults),
        ),
        other => panic!("{other} is no kind of case"),
    }
}

/// To write the outcomes anew, set `DOORWARD_WRITE_CASES`.
#[test]
fn every_case_is_read_or_refused_as_its_file_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(CASES);
    let found = fs::read_to_string(&path).unwrap();
    let mut expected = String::new();
    for line in found.lines().filter(|line| !line.starts_with("    ")) {
        writeln!(expected, "{line}").unwrap();
        let Some((kind, snippet)) = line.split_once(' ').filter(|(kind, _)| *kind != "#") else {
            continue;
        };
        let snippet = snippet.replace("SHARED", SHARED).replace("\\n", "\n");
        let (text, shown) = file_of(kind, &snippet);
        let outcome = parse(&text).map_or_else(|error| error.to_string(), |it| shown(&it));
        for line in outcome.lines() {
            writeln!(
                expected,
                "    {}",
                line.replace("s.yaml:", "")
                    .replace("testdata/scenario-files/", "")
            )
            .unwrap();
        }
    }
    if std::env::var_os("DOORWARD_WRITE_CASES").is_some() {
        fs::write(&path, &expected).unwrap();
        return;
    }
    let differs = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
    assert_eq!(differs, None, "run this test with DOORWARD_WRITE_CASES=1");
    assert_eq!(found, expected);
}

#[test]
fn absent_keys_have_defaults() {
    let scenario = read(&format!("{SHARED}clients: [{{wants: 5}}]"));
    let s = Duration::from_secs;
    assert_eq!(
        (scenario.name.as_str(), scenario.description.as_str()),
        ("s", "")
    );
    assert_eq!((scenario.seed, scenario.duration.0), (1, s(600)));
    assert_eq!(scenario.sample_every.0, s(5));
    assert_eq!(scenario.settled_after.0, s(90), "learning, and 30 s");
    let group = &scenario.clients[0];
    assert_eq!(
        (group.count.0, group.places(&scenario.nodes)),
        (1, Ok(vec![0]))
    );
    assert_eq!(
        (group.client_name(0).as_str(), group.first.priority),
        ("client", 0)
    );
    assert_eq!(group.first.demand, Demand::Constant(Amount(5.0)));
    assert_eq!(group.start_within.0, s(5), "the refresh interval");
    let links = scenario.network.resolve(&scenario.nodes).unwrap();
    assert_eq!(links[0].parent, Link::default());
    assert_eq!(scenario.servers.parent_protocol, Connection::Stream);
    assert_eq!(scenario.limits, Limits::default());
    let short = read(&format!("{SHARED}duration: 2s\nclients: [{{wants: 5}}]"));
    assert_eq!((short.sample_every.0, short.settled_after.0), (s(2), s(1)));
    assert_eq!(short.clients[0].start_within.0, s(2));
}

#[test]
fn the_examples_of_the_guide_are_valid() {
    let docs = include_str!("../../../../docs/simulator.md");
    let blocks = docs.split("```yaml\n").skip(1);
    for block in blocks.filter_map(|rest| rest.split("```").next()) {
        let templates = if block.contains("templates:") {
            ""
        } else {
            SHARED
        };
        let clients = if block.contains("clients:\n") {
            ""
        } else {
            "clients: [{wants: 1}]\n"
        };
        read(&format!("{templates}{clients}{block}"));
    }
}

#[test]
fn a_trace_brings_its_clients_along() {
    let scenario = read(&format!(
        "{SHARED}clients:
- {{name: first, wants: {{trace: {{file: good.csv, speed: 2, scale: 3}}}}}}
- {{wants: {{trace: good.csv}}}}
"
    ));
    let names: Vec<String> = scenario
        .clients
        .iter()
        .map(|it| it.client_name(1))
        .collect();
    assert_eq!(names, ["first/b", "b"]);
    let Demand::Trace(trace) = &scenario.clients[0].first.demand else {
        panic!("is no trace");
    };
    assert_eq!((trace.speed.0, trace.scale.0), (2.0, 3.0));
    assert_eq!(trace.rows[1].time_s, 30.0);
}

#[test]
fn a_scenario_is_named_for_its_file_if_for_nothing_else() {
    let text = format!("{SHARED}clients: [{{wants: 5}}]");
    for (file, expected) in [
        ("scenarios/five.yaml", "five"),
        ("my scenario.yaml", "my scenario"),
        ("", ""),
    ] {
        let scenario = Scenario::parse(&text, file, Path::new(BESIDE)).unwrap();
        assert_eq!(scenario.name, expected, "{file:?}");
    }
}

#[test]
fn files_are_looked_for_from_where_the_scenario_is() {
    let error = Scenario::read(Path::new("not/there.yaml")).unwrap_err();
    let expected = "not/there.yaml: cannot be read: No such file";
    assert!(error.to_string().starts_with(expected), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("here.yaml");
    fs::write(&path, b"name: a\ndescription: \xe9t\xe9\n").unwrap();
    let error = Scenario::read(&path).unwrap_err().to_string();
    assert!(error.contains("here.yaml: cannot be read: "), "{error}");
    assert!(error.contains("UTF-8"), "{error}");
    let text = format!("{SHARED}clients: [{{wants: {{trace: t.csv}}}}]");
    fs::write(&path, text).unwrap();
    let error = Scenario::read(&path).unwrap_err().to_string();
    assert!(
        error.contains("t.csv: cannot be read: No such file"),
        "{error}"
    );
    fs::write(folder.path().join("t.csv"), "time_s,client,wants\n0,a,1\n").unwrap();
    assert_eq!(Scenario::read(&path).unwrap().clients[0].count.0, 1);
}

#[test]
fn hostile_scenarios_are_refused_in_no_time() {
    let deep = (0..200).fold(String::new(), |inner, _| {
        format!("{{a: {{count: 10000, children: {inner}}}}}").replace("children: }", "}")
    });
    let wide = format!("[{}]", "{at: 1s, kill: nowhere},".repeat(2_000));
    for text in [
        format!("{SHARED}clients: [{{wants: 1}}]\ntree: {{root: {{children: {deep}}}}}"),
        format!("{SHARED}clients: [{{wants: 1}}]\nfaults: {wide}"),
        "x".repeat(2 * 1024 * 1024),
    ] {
        assert!(parse(&text).is_err());
    }
}

/// Checks that a refusal has a reason.
fn check_reason(text: &str) {
    if let Err(error) = parse(text) {
        assert!(!error.to_string().is_empty(), "in:\n{text}");
    }
}

proptest! {
    #[test]
    fn keys_that_are_there_with_any_value_are_read_or_refused_for_a_reason(
        group in "(name|count|at|resource|priority|mode|wants|start_within): (1|a|root|shared|-1|\\[1\\]|safe|\\{walk: \\{start: (1|x)\\}\\}|\\{trace: (good|bad).csv\\}|)",
        event in "(kill|elect|freeze|partition|drift|jump|edit|crash|surge|demand): (root|any|1|\\{clients: 1\\}|good.yaml|)",
        beside in "(for|side|speed|by|wants|from|until|weight|one_of): (1|1s|parent|\\[1, 2\\]|)",
        time in "(at|every|per_hour): (1|1s|x|)",
        setting in "(duration|seed|name|tree|network|servers|limits|sample_every|settled_after): (1|5s|a|\\{a: \\}|\\{loss: 1\\}|\\{overshoot: 0\\}|)",
    ) {
        check_reason(&format!("{SHARED}clients: [{{{group}, wants: 1}}]\n{setting}\nfaults: [{{{time}, {event}, {beside}}}]"));
        check_reason(&format!("{SHARED}clients: [{{{group}}}]\nfaults: [{{{time}, one_of: [{{{event}, {beside}}}]}}]"));
    }
}
