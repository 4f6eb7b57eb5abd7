//! A server, a history and documents whose every text holds what steers a terminal: none of it comes through.

use std::process::Output;

use doorward_proto::admin::v1 as admin;
use doorward_proto::doorman;
use doorward_proto::doorman::refusal::Reason;
use serde_json::Value;

use crate::fake_server::{FakeServer, Master, Play};
use crate::run;

/// Clears the screen, rings, goes back, ends the line, turns the direction, hides, and is an 8-bit escape.
const EVIL: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\r\nFAKE\u{8}\u{202e}gpj\u{200b}\u{9b}31m";

/// Every byte of the output that is not ours is visible, and there are some of theirs.
#[track_caller]
fn check_visible(output: &Output, what: &str) {
    let mut all = output.stdout.clone();
    all.extend_from_slice(&output.stderr);
    let text = String::from_utf8(all).unwrap();
    let hidden = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(hidden), "{what}: {text:?}");
    let forged = text.lines().any(|line| line.starts_with("FAKE"));
    assert!(!forged, "{what} forges a line: {text}");
    assert!(text.contains("202e"), "{what} shows nothing of it: {text}");
}

fn evil(name: &str) -> String {
    format!("{name}{EVIL}")
}

fn resource() -> admin::ResourceStatus {
    admin::ResourceStatus {
        resource_id: "db".to_owned(),
        template: Some(evil("*")),
        description: evil("about"),
        algorithm: Some(evil("FAIR_SHARE")),
        learning: Some(evil("learning")),
        capacity: 10.0,
        wants: 20.0,
        granted: 5.0,
        leases_count: 3,
        clients_count: 2,
        children_count: 1,
        own_lease: Some(admin::OwnLeaseStatus {
            refusal: Some(evil("no")),
            ..Default::default()
        }),
        leases: vec![admin::LeaseStatus {
            holder: evil("ann"),
            kind: evil("client"),
            why: evil("because"),
            ..Default::default()
        }],
        children: vec![admin::ChildStatus {
            child: evil("eu"),
            why: evil("because"),
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn play() -> Play {
    Play {
        tail: EVIL,
        resources: vec![
            resource(),
            admin::ResourceStatus {
                resource_id: evil("db"),
                ..resource()
            },
        ],
        conflicts: vec![admin::ConflictStatus {
            holder: evil("bob"),
            kind: evil("client"),
            age_ms: 1,
        }],
        rule_decisions: ["unmatched", EVIL]
            .map(|rule| admin::RuleDecisions {
                domain: evil("api"),
                rule: rule.to_owned(),
                ..Default::default()
            })
            .into(),
        parent: Some(admin::ParentStatus {
            addresses: vec![evil("p:1")],
            address: evil("p:1"),
            link: evil("down"),
            link_age_ms: 1,
            problem: Some(evil("away")),
        }),
        ancestors: vec![evil("root"), evil("above")],
        is_in_cycle: true,
        ..Play::default()
    }
}

#[test]
fn a_status_shows_what_cannot_be_seen() {
    let server = FakeServer::start(play());
    for arguments in [
        &["status"][..],
        &["status", "--here"],
        &["status", "--limits"],
        &["status", "db", "--leases", "9"],
        &["status", "nobody-has-it"],
        &["status", "dbx"],
    ] {
        for colour in ["never", "always"] {
            let mut with_colour = arguments.to_vec();
            with_colour.extend(["--color", colour]);
            let mut output = run(&server.address, &with_colour);
            if colour == "always" {
                output.stdout = without_colours(&output.stdout);
                output.stderr = without_colours(&output.stderr);
            }
            check_visible(&output, &with_colour.join(" "));
        }
        let mut as_json = arguments.to_vec();
        as_json.extend(["--output", "json"]);
        let output = run(&server.address, &as_json);
        check_visible(&output, &as_json.join(" "));
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(status["node"], evil("fake"), "JSON says the same");
    }
}

/// Without what the program paints with.
fn without_colours(text: &[u8]) -> Vec<u8> {
    let mut text = String::from_utf8(text.to_vec()).unwrap();
    for code in [
        "0", "1", "2", "22", "31", "32", "33", "39", "38;5;1", "38;5;2", "38;5;3",
    ] {
        text = text.replace(&format!("\u{1b}[{code}m"), "");
    }
    text.into_bytes()
}

#[test]
fn a_table_stays_one_whose_rows_are_resources() {
    let server = FakeServer::start(Play { tail: "", ..play() });
    let output = run(&server.address, &["status"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("resource"))
        .collect();
    let column = rows[0].find("algorithm").unwrap();
    for row in rows.iter().filter(|row| row.starts_with("db")) {
        assert_eq!(row.find("FAIR_SHARE"), Some(column), "{text}");
    }
}

#[test]
fn refusals_and_failures_show_what_cannot_be_seen() {
    let refused = Play {
        refused: Some((Reason::TooMany, "no")),
        ..play()
    };
    let server = FakeServer::start(refused);
    for arguments in [
        &["get", "r", "5"][..],
        &["get", "r", "5", "--output", "json"],
        &["watch", "r", "5", "--for", "1s"],
        &["watch", "r", "5", "--for", "1s", "--output", "json"],
    ] {
        check_visible(&run(&server.address, arguments), &arguments.join(" "));
    }
    for code in [tonic::Code::Internal, tonic::Code::PermissionDenied] {
        let server = FakeServer::start(Play {
            failing: Some(code),
            ..play()
        });
        for arguments in [
            &["get", "r", "5"][..],
            &["release", "ann", "r"],
            &["status"],
            &["watch", "r", "5", "--for", "1s", "--timeout", "1s"],
        ] {
            check_visible(&run(&server.address, arguments), &arguments.join(" "));
        }
    }
}

#[test]
fn a_master_at_no_address_is_shown_so_that_it_can_be_seen() {
    let server = FakeServer::start(Play {
        master: Master::At(evil("m:1")),
        ..play()
    });
    for arguments in [
        &["get", "r", "5"][..],
        &["release", "ann", "r"],
        &["status"],
        &["status", "--here"],
        &["watch", "r", "5", "--for", "1s", "--timeout", "1s"],
    ] {
        check_visible(&run(&server.address, arguments), &arguments.join(" "));
    }
}

#[tokio::test]
async fn documents_and_their_history_show_what_cannot_be_seen() {
    let etcd = doorward_tests::etcd::Etcd::start().await;
    let endpoint = etcd.endpoint(0);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    // The same text in a YAML string.
    let evil_yaml = "\\e\\a\\u202egpj\\u200b\\u009b31m";
    let document = |capacity: u32| {
        format!(
            "# raw: \u{202e}gpj\u{200b}\nresources:\n- identifier_glob: \"a{evil_yaml}\"\n  description: \
             \"d{evil_yaml}\"\n  capacity: {capacity}\n  algorithm: {{kind: FAIR_SHARE, lease_length: 60, \
             refresh_interval: 5}}\n"
        )
    };
    let play = |resources| Play {
        resources,
        ..play()
    };
    let server = FakeServer::start(play(vec![resource()]));
    let templates_of = |arguments: &[&str]| {
        let mut all = vec!["templates", "--etcd-endpoints", &endpoint];
        all.extend(arguments);
        run(&server.address, &all)
    };
    for (number, capacity) in [10, 20].into_iter().enumerate() {
        let new = at(&format!("new{number}.yaml"));
        std::fs::write(&new, document(capacity)).unwrap();
        let (who, why) = (evil("ann").replace('\0', ""), evil("why"));
        let apply = [
            "apply", &new, "--yes", "--force", "--who", &who, "--why", &why,
        ];
        let output = templates_of(&apply);
        check_visible(&output, "apply");
        assert!(output.status.success(), "{output:?}");
    }
    // If the output is no terminal, it is the document as it was written.
    let shown = templates_of(&["show"]);
    assert_eq!(shown.stdout, document(20).into_bytes());
    check_visible(
        &Output {
            stdout: Vec::new(),
            ..shown
        },
        "show",
    );
    let broken = at("broken.yaml");
    std::fs::write(&broken, format!("resources: [{{\"x{evil_yaml}\": 1}}]")).unwrap();
    let changed = at("changed.yaml");
    std::fs::write(&changed, document(30)).unwrap();
    for arguments in [
        &["show", "--output", "json"][..],
        &["history"],
        &["history", "--output", "json"],
        &["diff", &changed],
        &["diff", &changed, "--output", "json"],
        &["check"],
        &["check", &changed],
        &["check", &changed, "--output", "json"],
        &["check", &broken],
        &["rollback", "1", "--yes", "--force"],
    ] {
        let output = templates_of(arguments);
        check_visible(&output, &arguments.join(" "));
    }
}

#[test]
fn a_lease_of_nonsense_is_shown_and_breaks_nothing() {
    for capacity in [f64::NAN, f64::NEG_INFINITY, -1.5, 1e300] {
        let server = FakeServer::start(Play {
            capacity,
            limited_by: Some(doorman::LimitedBy::Others),
            refresh_in_ms: u64::MAX,
            ..Play::default()
        });
        for arguments in [&["get", "r", "5"][..], &["watch", "r", "5", "--for", "1s"]] {
            let output = run(&server.address, arguments);
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(
                !said.contains("panicked"),
                "{capacity} {arguments:?}: {said}"
            );
            assert!(output.status.code().is_some(), "{capacity} {arguments:?}");
        }
    }
}
