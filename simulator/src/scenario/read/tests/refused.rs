//! What is invalid, and what is said about it.

mod clients;
mod faults;
mod listed;
mod settings;
mod usages;

use std::fs;

use proptest::prelude::*;

use super::*;

/// What is wrong with a text: the file first, `s.yaml` left out.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let text = text.replace("SHARED", SHARED);
    let error = parse(&text).expect_err("there are problems").to_string();
    let found: Vec<&str> = error
        .lines()
        .map(|line| line.strip_prefix("s.yaml:").unwrap_or(line))
        .collect();
    assert_eq!(found, expected, "in:\n{text}");
}

type Table = [(&'static str, &'static [&'static str])];

#[test]
fn what_is_no_scenario_is_refused() {
    let table: &Table = &[
        (
            "",
            &["1:1: is empty; a scenario has at least templates and clients"],
        ),
        (
            "5",
            &["1:1: is 5; give a map, as in {templates: {…}, clients: […]}"],
        ),
        (
            "[]",
            &["1:1: is a list; give a map, as in {templates: {…}, clients: […]}"],
        ),
        (
            "{}",
            &[
                "1:1: templates: is missing; give templates, as in {resources: […]}, or the name of a template file",
                "1:1: clients: is missing; give a list of those who ask, as in [{count: 10, wants: 5}]",
            ],
        ),
        ("a: [", &["1:4: is no YAML: unclosed bracket '['"]),
        (
            "a: 1\n---\nb: 2",
            &["3:1: a second document starts here; put everything into one"],
        ),
        (
            "clients: [{wants: 1}]",
            &[
                "1:1: templates: is missing; give templates, as in {resources: […]}, or the name of a template file",
            ],
        ),
        (
            "templates: good.yaml",
            &[
                "1:1: clients: is missing; give a list of those who ask, as in [{count: 10, wants: 5}]",
            ],
        ),
        (
            "templates: good.yaml\nclients: []",
            &["2:10: clients: is empty; give at least one group, as in [{count: 10, wants: 5}]"],
        ),
        (
            "templates: good.yaml\nclients: 5",
            &["2:10: clients: is 5; give a list, as in [{count: 10, wants: 5}]"],
        ),
    ];
    for (text, expected) in table {
        check(text, expected);
    }
}

#[test]
fn what_is_wrong_with_templates_is_reported_as_elsewhere() {
    let table: &Table = &[
        (
            "templates: 5\nclients: [{wants: 1}]",
            &[
                "1:12: templates: is 5; give templates, as in {resources: […]}, or the name of a template file",
            ],
        ),
        (
            "templates: nowhere.yaml\nclients: [{wants: 1}]",
            &[
                r#"1:12: templates: is "nowhere.yaml", which cannot be read: it is not in the library"#,
            ],
        ),
        (
            "templates: bad.yaml\nclients: [{wants: -1}]",
            &[
                "2:19: clients.wants: is -1, which is negative; give a finite number that is not negative",
                r#"bad.yaml:2:3: template 1 ("a"): algorithm: is missing; say how the capacity is shared"#,
                r#"bad.yaml:3:13: template 1 ("a"): capacity: is "many"; give a number"#,
            ],
        ),
        (
            "templates: {resource: []}\nclients: [{wants: 1}]",
            &[
                r#"1:12: templates: has no "resources"; a document starts with "resources:" and a list of templates"#,
                "1:13: templates.resource: is unknown; did you mean resources?",
            ],
        ),
        (
            "templates: {resources: [{identifier_glob: a, capacity: x}]}\nclients: [{wants: 1}]",
            &[
                r#"1:25: template 1 ("a"): algorithm: is missing; say how the capacity is shared"#,
                r#"1:56: template 1 ("a"): capacity: is "x"; give a number"#,
            ],
        ),
        (
            "templates: {resources: []}\nclients: [{wants: 1}]",
            &["2:11: clients.resource: is missing; give what they ask for"],
        ),
        (
            "templates: {resources: []}\nclients: [{wants: 1, resource: a}]",
            &["2:32: clients.resource: there are no templates; give one for it"],
        ),
        (
            "templates: good.yaml\nclients: [{wants: 1}]",
            &[
                "2:11: clients.resource: is missing; give what they ask for; there are templates for db/*",
            ],
        ),
        (
            "templates: good.yaml\nclients: [{wants: 1, resource: db}]",
            &[r#"2:32: clients.resource: no template is for "db"; there are templates for db/*"#],
        ),
    ];
    for (text, expected) in table {
        check(text, expected);
    }
}

#[test]
fn everything_wrong_is_reported_at_once_and_in_order() {
    let text = "duration: 0s
templates: bad.yaml
tree: {root: {children: [a, a]}}
clients:
- {count: 0, wants: many, at: nowhere}
- {name: b, wants: {walk: {start: -1, evry: 2s}}}
network: {loss: 2}
faults:
- {at: 5s, kill: nowhere, for: [2s, 1s]}
limits: {overshot: 0}
";
    check(
        text,
        &[
            "1:11: duration: is \"0s\"; give at least 1ms",
            "3:29: tree.root.children.a: there are two nodes \"a\"; rename one",
            "5:3: clients.name: is missing; give each of several groups a name",
            "5:11: clients.count: is 0; give a whole number from 1 to 5000000",
            "5:21: clients.wants: is \"many\"; give a number, or how it changes, as in {walk: {start: 15}}",
            "6:35: clients.wants.walk.start: is -1, which is negative; give a finite number that is not negative",
            "6:39: clients.wants.walk.evry: is unknown; did you mean every?",
            "7:17: network.loss: is 2; give a number from 0 to 1",
            "9:32: faults.for: goes backwards; give the shorter one first",
            "10:10: limits.overshot: is unknown; did you mean overshoot?",
            "bad.yaml:2:3: template 1 (\"a\"): algorithm: is missing; say how the capacity is shared",
            "bad.yaml:3:13: template 1 (\"a\"): capacity: is \"many\"; give a number",
        ],
    );
}

#[test]
fn what_cannot_be_read_makes_nothing_else_wrong() {
    let text = "SHAREDtree: {root: {children: [a, a]}}
duration: long
sample_every: 20m
settled_after: 30m
clients: [{wants: {spike: {base: 1, peak: 2, at: 20m, for: 1s}}, at: somewhere, count: some}]
faults: [{at: 20m, kill: somewhere}, {at: 1s, crash: {clients: 9}}]
";
    let twice = "2:29: tree.root.children.a: there are two nodes \"a\"; rename one";
    let long = "3:11: duration: is \"long\"; give seconds, or a duration such as 15s or 2m";
    let some = "6:88: clients.count: is \"some\"; give a whole number from 1 to 5000000";
    check(text, &[twice, long, some]);
}

#[test]
fn a_file_that_cannot_be_read_is_reported() {
    let error = Scenario::read(Path::new("not/there.yaml")).unwrap_err();
    let error = error.to_string();
    let expected = "not/there.yaml:1:1: cannot be read: No such file";
    assert!(error.starts_with(expected), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latin.yaml");
    fs::write(&path, b"name: a\ndescription: \xe9t\xe9\n").unwrap();
    let error = Scenario::read(&path).unwrap_err().to_string();
    assert!(
        error.ends_with(":2:1: is not UTF-8 text; save it as UTF-8"),
        "{error}"
    );
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

/// Whatever is refused is refused for a reason.
fn check_reason(text: &str) {
    if let Err(error) = parse(text) {
        assert!(!error.files.is_empty(), "in:\n{text}");
        assert!(error.files.iter().all(|file| !file.problems.is_empty()));
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        check_reason(&text);
    }

    #[test]
    fn no_text_that_is_nearly_a_scenario_makes_it_panic(
        text in "(tree|clients|faults|wants|walk|trace|root|children|at|every|one_of|kill|for|: |[0-9a-z.]|\n- |\n  |\n|\\{|\\}|\\[|\\]|,){0,60}",
    ) {
        check_reason(&format!("{SHARED}{text}"));
        check_reason(&format!("{SHARED}clients: [{{wants: 1}}]\nfaults: [{{{text}}}]"));
    }

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
