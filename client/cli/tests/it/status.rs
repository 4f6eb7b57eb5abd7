//! `status`: tables for people, a stable shape for programs.

use doorward_proto::admin::v1::{
    ConflictStatus, LeaseStatus, ResourceStatus, RuleDecisions, States, TemplateMatch,
    TemplateStatus,
};

use crate::fake_server::{Asked, FakeServer, Master, Play};
use crate::{check_exit, check_failure, json, nowhere, printed, run, stdout};

pub(crate) fn busy() -> Play {
    let lease = |holder: &str, kind: &str, granted| LeaseStatus {
        holder: holder.to_owned(),
        kind: kind.to_owned(),
        priority: 0,
        subclients: 1.0,
        wants: 80.0,
        share: 50.0,
        granted,
        reserved: granted,
        expires_in_ms: 59_900,
        refresh_interval_ms: 5_000,
        why: "fair share".to_owned(),
        wants_more: false,
    };
    let resource = ResourceStatus {
        resource_id: "db/reads".to_owned(),
        template: Some("db/*".to_owned()),
        description: "Reads a second.".to_owned(),
        algorithm: Some("FAIR_SHARE".to_owned()),
        capacity: 100.0,
        safe_capacity: Some(-1.0),
        wants: 160.0,
        granted: 70.5,
        reserved: 100.0,
        leases_count: 2,
        waiting_count: 1,
        learning_remaining_ms: Some(12_000),
        lease_length_ms: 60_000,
        refresh_interval_ms: 5_000,
        leases: vec![lease("a", "client", 50.0), lease("leaf", "server", 20.5)],
        clients_count: 3,
        ..ResourceStatus::default()
    };
    Play {
        resources: vec![resource],
        ..Play::default()
    }
}

#[test]
fn status_shows_the_server_and_a_row_for_every_resource() {
    let server = FakeServer::start(busy());
    let said = printed(&server.address, &["status"]);
    assert_eq!(
        said,
        "fake 1.2.3: master, epoch 7, up for 1m 5s\n\
         no parent: this is the root\n\
         1 template from templates.yaml\n\
         \n\
         resource  algorithm   capacity  wants  granted  reserved  clients  waiting  state\n\
         db/reads  FAIR_SHARE       100    160     70.5       100        3        1  \
         learning for 12s\n"
    );
}

#[test]
fn status_of_a_resource_lists_its_leases_and_why_they_are_what_they_are() {
    let server = FakeServer::start(busy());
    let text = printed(&server.address, &["status", "db/reads"]);
    let listed: Vec<&str> = text.lines().skip(7).collect();
    assert_eq!(
        listed,
        [
            "db/reads: Reads a second.",
            "holder       priority  wants  share  granted  reserved  expires in  why",
            "a                   0     80     50       50        50       59.9s  fair share",
            "server leaf         0     80     50     20.5      20.5       59.9s  fair share",
        ]
    );
    let output = run(&server.address, &["status", "db/reads", "--leases", "1"]);
    assert!(stdout(&output).ends_with("and 1 more; --leases lists more\n"));
    let most: Vec<u32> = server.asked().iter().filter_map(leases_max).collect();
    assert_eq!(most, [100, 1]);
}

fn leases_max(asked: &Asked) -> Option<u32> {
    match asked {
        Asked::Status(request) => Some(request.leases_max),
        _ => None,
    }
}

#[test]
fn status_for_programs_has_a_stable_shape() {
    let server = FakeServer::start(busy());
    let output = run(&server.address, &["status", "db/reads", "--output", "json"]);
    let lease = |holder: &str, kind: &str, granted: f64| {
        serde_json::json!({
            "holder": holder, "kind": kind, "priority": 0, "subclients": 1.0, "wants": 80.0,
            "share": 50.0, "granted": granted, "reserved": granted, "expires_in_ms": 59_900,
            "refresh_interval_ms": 5_000, "why": "fair share", "wants_more": false,
        })
    };
    let resource = serde_json::json!({
        "resource_id": "db/reads", "template": "db/*", "description": "Reads a second.",
        "algorithm": "FAIR_SHARE", "capacity": 100.0, "safe_capacity": -1.0, "wants": 160.0,
        "granted": 70.5, "reserved": 100.0, "leases_count": 2, "clients_count": 3,
        "waiting_count": 1, "clients_below_floor": null, "unreported": 0.0, "unreported_remaining_ms": null, "learning_remaining_ms": 12_000, "learning": null,
        "lease_length_ms": 60_000, "refresh_interval_ms": 5_000, "own_lease": null,
        "children_count": 0, "children": [], "budget": null,
        "leases": [lease("a", "client", 50.0), lease("leaf", "server", 20.5)],
    });
    let mut status = json(&output);
    assert_eq!(status["resources"].take(), serde_json::json!([resource]));
    let expected = serde_json::json!({
        "schema_version": 1, "node": "fake", "version": "1.2.3", "is_master": true,
        "master_address": server.address, "master_pages_address": null, "pages_address": null, "epoch": 7,
        "unready": null,
        "uptime_ms": 65_000, "templates_source": "templates.yaml", "templates_count": 1,
        "templates_problem": null, "learning_remaining_ms": null, "states": null, "etcd": null,
        "parent": null, "ancestors": [], "is_in_cycle": false, "conflicts": [], "limits": [],
        "resources_count": null, "leases_count": null, "clients_count": null, "waiting_count": null,
        "resources": null, "template_match": null, "next_token": null, "rules": [],
        "rules_problem": null, "rule_decisions": [], "tls_problem": null, "is_exposed": false,
        "address": server.address, "children": [], "templates": [],
    });
    assert_eq!(status, expected);
}

#[test]
fn status_shows_which_rules_refuse() {
    let decisions = |rule: &str, refused_count, refused_age_ms| RuleDecisions {
        domain: "api".to_owned(),
        rule: rule.to_owned(),
        allowed_count: 1_234_567,
        waited_count: 2,
        shadow_count: 3,
        refused_count,
        refused_age_ms,
    };
    let server = FakeServer::start(Play {
        rule_decisions: vec![
            decisions("api.user", 40, Some(1_500)),
            decisions("unmatched", 4, Some(90_000)),
            decisions("api.path", 0, None),
        ],
        ..busy()
    });
    let said = printed(&server.address, &["status"]);
    let listed: Vec<&str> = said.lines().skip(4).take(5).collect();
    assert_eq!(
        listed,
        [
            "rule              allowed  waited  shadow  refused  last refusal",
            "api.user        1,234,567       2       3       40      1.5s ago",
            "api: unmatched  1,234,567       2       3        4    1m 30s ago",
            "api.path        1,234,567       2       3        0",
            "",
        ]
    );
    let of_one = printed(&server.address, &["status", "db/reads"]);
    assert!(!of_one.contains("api.user"), "{of_one}");
}

#[test]
fn status_names_two_live_processes_of_one_name() {
    for (kind, outcome) in [
        ("server", "the later one is refused"),
        ("client", "each has a share of its own"),
    ] {
        let server = FakeServer::start(Play {
            conflicts: vec![ConflictStatus {
                holder: "eu".to_owned(),
                kind: kind.to_owned(),
                age_ms: 5_000,
            }],
            ..busy()
        });
        let said = printed(&server.address, &["status"]);
        let expected = format!("TWO LIVE PROCESSES ask as the {kind} eu, seen 5s ago: {outcome}");
        assert!(said.contains(&expected), "{said}");
        let output = run(&server.address, &["status", "--output", "json"]);
        let expected = serde_json::json!([{"holder": "eu", "kind": kind, "age_ms": 5_000}]);
        assert_eq!(json(&output)["conflicts"], expected);
    }
}

#[test]
fn a_resource_nobody_holds_is_one() {
    let server = FakeServer::start(Play::default());
    let output = run(&server.address, &["status", "db/reads"]);
    check_failure(&output, 1, "no leases of db/reads are out");
    let said = printed(&server.address, &["status"]);
    assert!(said.ends_with("no leases are out\n"));
}

#[test]
fn a_name_that_nobody_holds_suggests_near_ones() {
    let server = FakeServer::start(busy());
    let output = run(&server.address, &["status", "db/raeds"]);
    check_failure(
        &output,
        1,
        "no leases of db/raeds are out; did you mean db/reads?",
    );
    assert!(!stdout(&output).contains("db/raeds"), "said once");
    let output = run(&server.address, &["status", "web"]);
    check_failure(&output, 1, "no leases of web are out\n");
}

#[test]
fn a_name_without_a_template_is_said_to_have_none_and_a_template_that_nobody_uses_is_named() {
    let says = |glob: Option<&str>| {
        let template_match = TemplateMatch {
            glob: glob.map(str::to_owned),
        };
        let server = FakeServer::start(Play {
            template_match: Some(template_match),
            ..busy()
        });
        run(&server.address, &["status", "web/a"])
    };
    check_failure(
        &says(None),
        1,
        "no leases of web/a are out. No template matches it: requests for it are refused until one is \
         added\n",
    );
    check_failure(
        &says(Some("web/*")),
        1,
        "A client that asks for it may get some: the template \"web/*\" matches it\n",
    );
}

#[test]
fn status_is_the_masters_unless_it_is_asked_for_here() {
    let master = FakeServer::start(busy());
    let standby = FakeServer::with(|play| play.master = Master::At(master.address.clone()));
    assert!(stdout(&run(&standby.address, &["status"])).contains("db/reads"));
    let said = printed(&standby.address, &["status", "--here"]);
    let not_master = format!("not the master, which is at {}", master.address);
    assert!(said.contains(&not_master), "{said}");
    let output = run(&standby.address, &["status", "db/reads", "--here"]);
    check_failure(&output, 1, "here; the master is at");
}

#[test]
fn a_standby_whose_master_is_gone_can_still_be_looked_at() {
    let standby = FakeServer::with(|play| play.master = Master::At(nowhere()));
    let output = run(&standby.address, &["status"]);
    check_failure(&output, 3, "--here shows the server that was asked");
    check_exit(&run(&standby.address, &["status", "--here"]), 0);
}

#[test]
fn learning_mode_is_shown_though_nobody_holds_anything() {
    let server = FakeServer::with(|play| play.learning_remaining_ms = Some(41_000));
    let said = printed(&server.address, &["status"]);
    let learning = "learning mode: for up to 41s more, a client without a lease gets nothing\n";
    assert!(said.contains(learning), "{said}");
    let output = run(&server.address, &["status", "--output", "json"]);
    assert_eq!(json(&output)["learning_remaining_ms"], 41_000);
}

#[test]
fn the_states_of_the_servers_machines_stand_in_a_line_if_it_reports_them() {
    let root = States {
        child_streams: [("open".to_owned(), 0)].into(),
        learning: "started".to_owned(),
        ..States::default()
    };
    let elected = States {
        parent_session: Some("streaming".to_owned()),
        election: Some("master".to_owned()),
        child_streams: [("open".to_owned(), 2), ("stalled".to_owned(), 1)].into(),
        learning: "over".to_owned(),
    };
    for (states, line, machine) in [
        (
            root,
            "states: learning started, no child streams\n",
            serde_json::json!({
                "parent_session": null, "election": null, "child_streams": {"open": 0},
                "learning": "started",
            }),
        ),
        (
            elected,
            "states: parent session streaming, election master, learning over, child streams 2 open \
             and 1 stalled\n",
            serde_json::json!({
                "parent_session": "streaming", "election": "master",
                "child_streams": {"open": 2, "stalled": 1}, "learning": "over",
            }),
        ),
    ] {
        let server = FakeServer::start(Play {
            states: Some(states),
            ..busy()
        });
        let output = run(&server.address, &["status"]);
        assert!(stdout(&output).contains(line), "{}", stdout(&output));
        let output = run(&server.address, &["status", "--output", "json"]);
        assert_eq!(json(&output)["states"], machine);
    }
}

#[test]
fn a_server_with_many_resources_is_asked_for_page_after_page_and_waited_for() {
    let resources: Vec<_> = (0..7)
        .map(|number| ResourceStatus {
            resource_id: format!("r{number}"),
            ..ResourceStatus::default()
        })
        .collect();
    let server = FakeServer::start(Play {
        resources: resources.clone(),
        page: Some(3),
        busy_pages: true,
        ..Play::default()
    });
    let output = run(&server.address, &["status", "--output", "json"]);
    check_exit(&output, 0);
    let status = json(&output);
    let ids = status["resources"].as_array().unwrap().iter();
    let ids: Vec<_> = ids.map(|it| it["resource_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["r0", "r1", "r2", "r3", "r4", "r5", "r6"]);
    assert_eq!(status["next_token"], serde_json::Value::Null);
    let asked: Vec<_> = server.asked().iter().filter_map(token).collect();
    assert_eq!(asked, ["", "r2", "r2", "r5", "r5"]);
}

fn token(asked: &Asked) -> Option<String> {
    match asked {
        Asked::Status(request) => Some(request.token.clone()),
        _ => None,
    }
}

#[test]
fn the_templates_in_force_are_listed_wherever_the_server_has_them_from() {
    let server = FakeServer::with(|play| {
        play.templates = vec![TemplateStatus {
            identifier_glob: "db/*".to_owned(),
            capacity: 100.0,
            safe_capacity: Some(-1.0),
            wants_max: Some(30.0),
            share_floor: Some(2.0),
            kind: "PRIORITY_BANDS".to_owned(),
            lease_length_ms: 60_000,
            refresh_interval_ms: 5_000,
            learning_mode_duration_ms: 60_000,
            parameters: [("min_share.1".to_owned(), "0.2".to_owned())].into(),
            ..TemplateStatus::default()
        }];
    });
    let said = printed(&server.address, &["status", "--templates"]);
    assert!(
        said.ends_with(
            "\n\
             glob  algorithm                capacity       safe  lease  refresh  learning\n\
             db/*  PRIORITY_BANDS  100 (30 a client)  unlimited     1m       5s        1m\n"
        ),
        "{said}"
    );
    let names = printed(&server.address, &["status", "--templates", "-o", "name"]);
    assert_eq!(names, "db/*\n");
    let older = FakeServer::start(Play::default());
    let output = run(&older.address, &["status", "--templates"]);
    check_failure(&output, 1, "does not say its templates");
}
