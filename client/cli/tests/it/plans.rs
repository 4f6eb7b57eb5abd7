//! Plans of changes, as the command line asks for them and shows them.

use std::process::Output;
use std::time::Duration;

use doorward_proto::admin::v1::{ChildServerStatus, PlannedChild, PlannedHolder, PlannedResource};
use doorward_tests::etcd::Etcd;
use serde_json::Value;
use tokio::time::Instant;

use crate::fake_server::{FakeServer, Play};
use crate::templates::{KEY, apply, document, on_stdin, templates};
use crate::{check_exit, check_failure, doorward, stderr, stdout};

/// Three clients of a resource, of which one keeps what it has.
pub(crate) fn planned() -> Play {
    let client = |name: &str, wants, granted, planned| PlannedHolder {
        holder: name.to_owned(),
        wants,
        granted,
        planned,
        why: "fair share: everyone gets at most 20 per client".to_owned(),
    };
    let resource = PlannedResource {
        resource_id: "db/reads".to_owned(),
        template: Some("db/*".to_owned()),
        planned_template: Some("db/*".to_owned()),
        algorithm: "FAIR_SHARE".to_owned(),
        planned_algorithm: Some("FAIR_SHARE".to_owned()),
        capacity: 100.0,
        planned_capacity: Some(50.0),
        wants: 170.0,
        granted: 100.0,
        reserved: 100.0,
        planned: 50.0,
        clients_count: 3,
        losing_count: 2,
        lost: 50.0,
        same_count: 1,
        losing: vec![client("b", 80.0, 45.0, 20.0), client("c", 80.0, 45.0, 20.0)],
        shrinks_in_ms: Some(4_000),
        shrinks_max_ms: Some(59_000),
        ..PlannedResource::default()
    };
    Play {
        plan: vec![resource],
        templates_source: "etcd:/doorward/templates".to_owned(),
        ..Play::default()
    }
}

/// Runs `templates` with a server at hand.
fn with_server(etcd: &Etcd, server: &FakeServer, arguments: &[&str], document: &str) -> Output {
    let mut command = doorward();
    command.args(["templates", "--etcd-endpoints", &etcd.endpoint(0)]);
    command.args(["--server", &server.address]).args(arguments);
    command.write_stdin(document).output().unwrap()
}

#[tokio::test]
async fn who_loses_is_named_if_a_server_answers() {
    let etcd = Etcd::start().await;
    apply(&etcd, &document(100), &[]);
    let server = FakeServer::start(planned());
    let output = with_server(&etcd, &server, &["diff", "-"], &document(50));
    check_exit(&output, 1);
    let said = stdout(&output);
    let expected = "\
in use at fake (templates from etcd:/doorward/templates):
  db/reads  capacity 100 → 50  wants 170  granted 100 → 50  reserved 100  clients 3
    3 clients: losing 2, gaining 0, unchanged 1
    this holds within 4s; at the latest in 59s, when the last lease that shrinks has ended
    client  at    wants  has  gets  why
    b       fake     80   45    20  fair share: everyone gets at most 20 per client
    c       fake     80   45    20  fair share: everyone gets at most 20 per client
";
    assert!(said.ends_with(expected), "{said}");
    let found = ["diff", "-", "--resource", "db/reads", "--client", "nobody"];
    let said = stdout(&with_server(&etcd, &server, &found, &document(50)));
    assert!(
        said.ends_with("    no client has \"nobody\" in its name\n"),
        "{said}"
    );
    let shown = with_server(&etcd, &server, &["diff", "-", "-o", "json"], &document(50));
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let resource = &shown["resources"][0];
    assert_eq!(
        (&resource["losing_count"], &resource["same_count"]),
        (&2.into(), &1.into())
    );
    assert_eq!(resource["losing"][0]["planned"], 20.0);
    assert_eq!(resource["holds_max_ms"], 59_000);
}

/// Servers of a tree that say what they want about each other.
#[tokio::test]
async fn clients_below_child_servers_are_named_and_what_is_not_known_is_said() {
    let etcd = Etcd::start().await;
    apply(&etcd, &document(100), &[]);
    let child = |name: &str, address: Option<&str>| PlannedChild {
        child: name.to_owned(),
        clients_count: 3.0,
        wants: 80.0,
        granted: 50.0,
        planned: 25.0,
        lease: vec![1],
        counted_clients: 1.0,
        address: address.map(str::to_owned),
        ..PlannedChild::default()
    };
    let leaf = FakeServer::start(Play {
        node: "leaf",
        ..planned()
    });
    // It names the leaf again, as a child of its own, and a resource that it was not asked about.
    let region = FakeServer::with(|play| {
        let mut plan = planned().plan;
        plan[0].children = vec![child("again", Some(&leaf.address))];
        let mut other = plan[0].clone();
        other.resource_id = "not/asked".to_owned();
        plan[0].losing[0].holder = "x\n\u{1b}[2Jy".to_owned();
        play.plan = vec![plan.remove(0), other];
        play.node = "eu";
    });
    let older = FakeServer::with(|play| play.old = true);
    let root = FakeServer::with(|play| {
        let mut plan = planned();
        plan.plan[0].children = vec![
            child("eu", Some(&region.address)),
            child("leaf", Some(&leaf.address)),
            child("older", Some(&older.address)),
            child("nowhere", None),
        ];
        plan.plan[0].planned_template = Some("db/re*".to_owned());
        *play = plan;
    });
    let said = stdout(&with_server(&etcd, &root, &["diff", "-"], &document(50)));
    assert!(
        said.contains("9 of 3 clients: losing 6, gaining 0, unchanged 3"),
        "{said}"
    );
    for part in [
        "takes the template \"db/re*\" instead of \"db/*\"",
        r"x\u{a}\u{1b}[2Jy  eu ",
        "b                 fake ",
        "c                 leaf ",
        "the clients of older are not known: ",
        "does not know this call; it may be an older server",
        "the clients of nowhere are not known: address unknown: it is of an earlier release",
        "the clients of again are not known: the node leaf is at its address",
        "subclients_max: not all clients count; below eu, too, so all amounts are estimates",
        "eu             1 of 3     80   50    25",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("not/asked"), "{said}");
}

#[tokio::test]
async fn a_root_of_an_earlier_release_makes_no_plan_but_is_asked_what_it_reads() {
    let etcd = Etcd::start().await;
    apply(&etcd, &document(100), &[]);
    let root = FakeServer::with(|play| play.plans_nothing = true);
    let output = with_server(&etcd, &root, &["apply", "-", "--yes"], &document(50));
    check_failure(&output, 2, "does not read etcd:/doorward/templates");
    assert!(stdout(&output).contains("only texts are compared; "));
    let root = FakeServer::with(|play| {
        play.plans_nothing = true;
        play.templates_source = "etcd:/doorward/templates".to_owned();
    });
    check_exit(
        &with_server(&etcd, &root, &["apply", "-", "--yes"], &document(50)),
        0,
    );
}

#[tokio::test]
async fn what_no_server_reads_is_written_only_by_force() {
    let etcd = Etcd::start().await;
    apply(&etcd, &document(100), &[]);
    for (source, is_other) in [
        ("built-in examples", true),
        ("etcd:/other", true),
        ("t.yaml", true),
        ("etcd:/doorward/templates", false),
    ] {
        let server = FakeServer::with(|play| play.templates_source = source.to_owned());
        let run = |arguments: &[&str]| with_server(&etcd, &server, arguments, &document(50));
        let said = stdout(&run(&["diff", "-"]));
        let who = format!("fake (templates from {source})");
        assert!(said.ends_with(&format!("nothing is in use at {who}\n")));
        let other = format!(
            "{who} does not read etcd:/doorward/templates: a change here changes nothing there. Change \
             {source}"
        );
        assert_eq!(said.contains(&other), is_other, "{said}");
        if is_other {
            check_failure(&run(&["apply", "-", "--yes"]), 2, &other);
            check_failure(&run(&["history"]), 1, &other);
            assert_eq!(etcd.get(KEY).await, Some(document(100)));
        } else {
            check_exit(&run(&["history"]), 0);
            check_exit(&run(&["apply", "-", "--yes"]), 0);
        }
    }
    let server = FakeServer::start(Play::default());
    let forced = ["apply", "-", "--yes", "--force"];
    check_exit(&with_server(&etcd, &server, &forced, &document(70)), 0);
    assert_eq!(etcd.get(KEY).await, Some(document(70)));
}

#[tokio::test]
async fn a_template_whose_clients_are_not_known_goes_only_by_force() {
    let etcd = Etcd::start().await;
    let two = document(100) + &document(100).replace("db/*", "a").split_off(22);
    apply(&etcd, &two, &[]);
    let gone = FakeServer::with(|play| {
        play.templates_source = "etcd:/doorward/templates".to_owned();
        play.children = vec![ChildServerStatus {
            child: "eu".to_owned(),
            ..ChildServerStatus::default()
        }];
    });
    let silent = FakeServer::with(|play| play.silent = true);
    let start = Instant::now();
    for (server, why) in [
        (&gone, "eu is gone: its clients are not known"),
        (&silent, "no server says who holds leases"),
    ] {
        let run = |command: &str| {
            let arguments = [command, "-", "--timeout", "300ms"];
            with_server(&etcd, server, &arguments, &document(100))
        };
        let output = run("diff");
        let said = stdout(&output);
        let warning = format!(
            "warning: resources: the template \"a\" goes, and its clients may be refused: {why}"
        );
        assert!(said.contains(&warning), "{said}");
        let output = run("check");
        check_exit(&output, 0);
        let said = stderr(&output);
        assert!(
            said.contains(&warning) && said.contains("needs --force"),
            "{said}"
        );
        let forced = ["apply", "-", "--yes", "--timeout", "300ms"];
        check_failure(&with_server(&etcd, server, &forced, &document(100)), 2, why);
        // Another change may go on.
        check_exit(
            &with_server(&etcd, server, &forced, &two.replace("100", "90")),
            0,
        );
        check_exit(&with_server(&etcd, server, &forced, &two), 0);
    }
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "--timeout bounds a plan"
    );
    let said = stdout(&with_server(
        &etcd,
        &gone,
        &["diff", "-"],
        &two.replace("100", "90"),
    ));
    assert!(
        said.contains("\neu is gone: its clients are not known\n"),
        "{said}"
    );
}

#[tokio::test]
async fn a_version_that_is_not_expected_is_not_replaced() {
    let etcd = Etcd::start().await;
    apply(&etcd, &document(500), &["--expect", "0"]);
    let first = ["apply", "-", "--yes", "--expect", "0"];
    let output = on_stdin(&etcd, &first, &document(100));
    check_exit(&output, 0);
    assert_eq!(
        stdout(&output),
        "nothing was written: etcd:/doorward/templates has a document already\n"
    );
    apply(&etcd, &document(250), &["--expect", "1"]);
    let stale = ["apply", "-", "--yes", "--expect", "1"];
    let output = on_stdin(&etcd, &stale, &document(100));
    check_failure(&output, 1, "revision 2 is in force, and not revision 1");
    check_failure(
        &templates(&etcd, &["rollback", "1", "--yes", "--expect", "1"]),
        1,
        "revision 2",
    );
    assert_eq!(etcd.get(KEY).await, Some(document(250)));
}
