//! `status --limits`: what a server takes on at most, and how full that is.

use doorward_proto::admin::v1::LimitStatus;
use doorward_proto::admin::v1::limit_status::Unit;

use crate::fake_server::{Asked, FakeServer, Master, Play};
use crate::status::busy;
use crate::{check_exit, check_failure, json, printed, run, stdout};

fn limit(name: &str, unit: Unit, used: Option<u64>, max: u64, refused: u64) -> LimitStatus {
    LimitStatus {
        name: name.to_owned(),
        description: name.replace('_', " "),
        flag: format!("--{}-max", name.replace('_', "-")),
        unit: unit.into(),
        used,
        max: Some(max),
        refused_count: refused,
    }
}

fn bounded() -> Play {
    Play {
        limits: vec![
            limit("connections", Unit::Count, Some(37), 100, 0),
            limit("patience", Unit::Millis, None, 2_500, 0),
            limit("calls", Unit::PerSecond, Some(1), 20_000, 17),
            limit("memory", Unit::Bytes, Some(900 << 20), 1_000 << 20, 0),
            limit("leases", Unit::Count, Some(4_000), 4_000, 1_204),
        ],
        ..busy()
    }
}

#[test]
fn each_limit_is_shown_beside_its_use_and_those_to_look_at_are_marked() {
    let server = FakeServer::start(bounded());
    let said = printed(&server.address, &["status", "--limits"]);
    let table: Vec<String> = said.lines().skip(5).map(str::to_owned).collect();
    assert_eq!(
        table,
        [
            "      limit           used     bound  share  refused  flag",
            "      connections       37       100   37 %        0  --connections-max",
            "      patience           -     2.5 s      -        0  --patience-max",
            "!     calls            1/s   20000/s   <1 %       17  --calls-max",
            "!     memory       900 MiB  1000 MiB   90 %        0  --memory-max",
            "FULL  leases          4000      4000  100 %     1204  --leases-max",
        ]
    );
    assert!(!said.contains('\u{1b}'));
    let painted = run(
        &server.address,
        &["status", "--limits", "--color", "always"],
    );
    assert!(stdout(&painted).contains("\u{1b}["));
    let asked = server.asked();
    let Some(Asked::Status(request)) = asked.first() else {
        panic!("no status among {asked:?}");
    };
    assert!(request.limits && request.without_resources);
}

#[test]
fn limits_for_programs_have_a_stable_shape_and_no_resources_beside_them() {
    let server = FakeServer::start(Play {
        limits: vec![LimitStatus {
            max: None,
            ..limit("memory_bytes", Unit::Bytes, Some(7), 0, 3)
        }],
        ..busy()
    });
    let output = run(&server.address, &["status", "--limits", "--output", "json"]);
    check_exit(&output, 0);
    let expected = serde_json::json!([{
        "name": "memory_bytes", "description": "memory bytes", "flag": "--memory-bytes-max", "unit": "bytes",
        "used": 7, "max": null, "refused_count": 3,
    }]);
    assert_eq!(json(&output)["limits"], expected);
    assert_eq!(json(&output)["resources"], serde_json::json!([]));
}

#[test]
fn status_has_a_line_about_limits_that_are_reached_and_none_if_all_is_well() {
    let server = FakeServer::start(bounded());
    let said = printed(&server.address, &["status"]);
    let line = "limits: leases-max is FULL, has refused 1204; memory-max is nearly full; calls-max has \
                refused 17 (refusals since the start); doorward status --limits lists all\n";
    assert!(said.contains(line), "{said}");
    assert!(said.contains("db/reads"));
    let well = FakeServer::start(Play {
        limits: vec![limit("connections", Unit::Count, Some(37), 100, 0)],
        ..busy()
    });
    let output = run(&well.address, &["status"]);
    assert!(!stdout(&output).contains("limits"), "{}", stdout(&output));
}

#[test]
fn a_server_of_an_earlier_version_does_not_say_its_limits() {
    let server = FakeServer::start(busy());
    let output = run(&server.address, &["status", "--limits"]);
    check_failure(
        &output,
        1,
        "fake 1.2.3 does not say its limits; it may be an older server",
    );
    assert_eq!(stdout(&output), "");
    check_exit(&run(&server.address, &["status"]), 0);
}

#[test]
fn limits_are_those_of_the_master_unless_they_are_asked_for_here() {
    let master = FakeServer::start(bounded());
    let standby = FakeServer::start(Play {
        master: Master::At(master.address.clone()),
        limits: vec![limit("http_connections", Unit::Count, Some(1), 10, 0)],
        ..Play::default()
    });
    let output = run(&standby.address, &["status", "--limits"]);
    assert!(
        stdout(&output).contains("--leases-max"),
        "{}",
        stdout(&output)
    );
    let said = printed(&standby.address, &["status", "--limits", "--here"]);
    let expected = "http connections     1     10   10 %        0  --http-connections-max\n";
    assert!(said.ends_with(expected), "{said}");
}

#[test]
fn limits_are_of_a_server_and_not_of_a_resource() {
    let server = FakeServer::start(bounded());
    let output = run(&server.address, &["status", "--limits", "db/reads"]);
    check_exit(&output, 2);
    assert!(server.asked().is_empty());
}
