//! `get`, `watch` and `release`: what becomes of a lease.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use doorward_proto::doorman::LimitedBy;
use doorward_proto::doorman::refusal::Reason;
use doorward_proto::doorman::release_result::Outcome;
use serde_json::Value;

use crate::fake_server::{Asked, FakeServer, Play};
use crate::{check_exit, check_failure, doorward, json, printed, run, stderr, stdout};

#[test]
fn get_asks_once_and_releases_at_once() {
    let server = FakeServer::start(Play::default());
    let said = printed(&server.address, &["get", "db/reads", "30", "--client", "a"]);
    assert_eq!(
        said,
        "20 of 30 that a wants of db/reads\n  \
           expires in     1m; refresh in 5s\n  \
           safe capacity  2 while no server answers\n  \
           released\n"
    );
    let asked = server.asked();
    let [Asked::Get(get), Asked::Release(release)] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!(get.client_id, "a");
    assert_eq!(get.resource[0].has, None);
    assert_eq!(
        (&*release.client_id, &*release.resource_id),
        ("a", &["db/reads".to_owned()][..])
    );
    assert!(release.sequence > get.sequence, "an old release is ignored");
}

#[test]
fn get_prints_a_lease_for_programs() {
    let server = FakeServer::start(Play::default());
    let arguments = ["get", "db/reads", "30", "--client", "a", "--output", "json"];
    let expected = serde_json::json!({
        "resource": "db/reads",
        "client": "a",
        "wants": 30.0,
        "capacity": 20.0,
        "expires_in_ms": 60_000,
        "refresh_in_ms": 5_000,
        "safe_capacity": 2.0,
        "limited_by": null,
        "learning_for_ms": null,
        "released": true,
    });
    assert_eq!(json(&run(&server.address, &arguments)), expected);
}

#[test]
fn a_kept_lease_is_not_released() {
    let server = FakeServer::start(Play::default());
    let said = printed(
        &server.address,
        &["get", "r", "5", "--priority", "-2", "--keep"],
    );
    assert!(said.ends_with("kept until it expires\n"));
    assert_eq!(server.gets()[0].resource[0].priority, -2);
    assert_eq!(server.releases(), []);
}

#[test]
fn two_gets_are_two_clients() {
    let server = FakeServer::start(Play::default());
    for _ in 0..2 {
        check_exit(&run(&server.address, &["get", "r", "5"]), 0);
    }
    let gets = server.gets();
    assert_ne!(gets[0].client_id, gets[1].client_id);
}

#[test]
fn watch_prints_an_object_a_line_and_releases_at_the_end() {
    let server = FakeServer::start(Play::default());
    let arguments = ["watch", "r", "30", "--for", "50ms", "--output", "json"];
    let said = printed(&server.address, &arguments);
    let first = &lines(&said)[0];
    assert_eq!(first["resource"], "r");
    assert_eq!(
        (&first["wants"], &first["capacity"]),
        (&30.0.into(), &20.0.into())
    );
    assert_eq!(first["source"], "lease");
    assert!(first["expires_in_ms"].as_u64().unwrap() <= 60_000);
    assert!(first["time_ms"].as_u64().unwrap() > 1_500_000_000_000);
    assert!(first["problem"].is_null());
    assert_eq!(server.releases().len(), 1);
}

#[test]
fn watch_says_that_the_server_is_gone_while_the_lease_lasts() {
    let server = FakeServer::with(|play| play.refresh_in_ms = 50);
    let mut child = std::process::Command::new(doorward().get_program())
        .args(["--server", &server.address, "--output", "json"])
        .args(["watch", "r", "30", "--for", "1h"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&output.next().unwrap().unwrap()).unwrap() };
    assert!(next()["problem"].is_null());
    drop(server);
    let troubled = next();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        troubled["problem"]
            .as_str()
            .unwrap()
            .contains("not connected"),
        "{troubled}"
    );
    assert_eq!(
        (&troubled["capacity"], &troubled["source"]),
        (&20.0.into(), &"lease".into())
    );
    assert_eq!(troubled["capacity_then"], 2.0);
    assert!(troubled["problem_since_ms"].as_u64() <= troubled["time_ms"].as_u64());
    assert!(troubled["problem_since_ms"].is_u64(), "{troubled}");
}

/// Runs a watch on a server until it printed so many lines.
fn watched(address: &str, more: &[&str], count: usize) -> Vec<String> {
    let mut child = std::process::Command::new(doorward().get_program())
        .args(["--server", address, "watch", "r", "30", "--for", "1h"])
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap()).lines();
    let lines = output.take(count).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    lines
}

#[test]
fn get_says_why_a_lease_is_no_larger_and_what_to_do_about_learning_mode() {
    let learning = Play {
        learning: 2,
        limited_by: Some(LimitedBy::Share),
        ..Play::default()
    };
    let server = FakeServer::start(learning);
    let said = printed(&server.address, &["get", "r", "30", "--client", "a"]);
    assert!(
        said.starts_with(
            "0 of 30 that a wants of r\n  why            learning mode, at most 41 s left\n"
        ),
        "{said}"
    );
    assert!(said.contains("`doorward learning end`"), "{said}");
    let arguments = ["get", "r", "30", "--output", "json"];
    let shown = json(&run(&server.address, &arguments));
    assert_eq!(
        (&shown["limited_by"], &shown["learning_for_ms"]),
        (&"learning".into(), &40_500.into())
    );
    let said = stdout(&run(&server.address, &["get", "r", "30"]));
    let why = "  why            its share; the capacity does not cover all wants\n";
    assert!(said.contains(why) && !said.contains("learning"), "{said}");
    let shown = json(&run(&server.address, &arguments));
    assert_eq!(
        (&shown["limited_by"], &shown["learning_for_ms"]),
        (&"share".into(), &Value::Null)
    );
}

#[test]
fn watch_shows_learning_mode_and_once_what_to_do_about_it() {
    let learning = || Play {
        refresh_in_ms: 50,
        learning: 1,
        ..Play::default()
    };
    let server = FakeServer::start(learning());
    let said = watched(&server.address, &[], 5);
    assert!(
        said[0].contains("  2 of 30  (lease of 0, expires in "),
        "{said:?}"
    );
    assert!(
        said[0].ends_with("; learning mode, at most 41 s left)"),
        "{said:?}"
    );
    assert!(
        said[1].starts_with("learning mode: a new master does not know which leases are out"),
        "{said:?}"
    );
    assert!(
        said[4].contains("  20 of 30  (lease, expires in "),
        "{said:?}"
    );
    assert!(!said[4].contains("learning"), "{said:?}");

    let server = FakeServer::start(learning());
    let said = watched(&server.address, &["--output", "json"], 2);
    let said = lines(&said.join("\n"));
    assert_eq!(
        (&said[0]["limited_by"], &said[1]["limited_by"]),
        (&"learning".into(), &Value::Null)
    );
    assert!(said[0]["learning_for_ms"].as_u64().unwrap() <= 40_500);
    assert_eq!(said[1]["learning_for_ms"], Value::Null);
}

#[test]
fn watch_shows_a_refusal_since_when_and_what_is_used_when_the_lease_ends() {
    let server = FakeServer::start(Play {
        refresh_in_ms: 50,
        granted: 1,
        refused: Some((Reason::UnknownResource, "no template matches it")),
        ..Play::default()
    });
    let said = watched(&server.address, &[], 2);
    let (_, refused) = said[1]
        .split_once("Z  20 of 30  (lease, expires in ")
        .unwrap();
    assert!(
        refused.contains(", then 2 by the safe capacity; since 20"),
        "{said:?}"
    );
    assert!(
        refused.ends_with("Z: r is unknown: no template matches it)"),
        "{said:?}"
    );
}

#[test]
fn watch_says_that_it_waits_for_the_first_answer() {
    let server = FakeServer::with(|play| play.not_ready = 1);
    let said = watched(&server.address, &["--output", "json"], 2);
    let said = lines(&said.join("\n"));
    assert_eq!(
        (
            &said[0]["capacity"],
            &said[0]["source"],
            &said[0]["expires_in_ms"]
        ),
        (&0.0.into(), &"mode".into(), &Value::Null)
    );
    let problem = said[0]["problem"].as_str().unwrap();
    assert!(problem.contains("it waits for its parent"), "{problem}");
    assert_eq!(
        (&said[1]["capacity"], &said[1]["problem"]),
        (&20.0.into(), &Value::Null)
    );

    let silent = FakeServer::with(|play| play.silent = true);
    let watch = ["watch", "r", "30", "--timeout", "300ms", "--for"];
    let output = run(&silent.address, &[&watch[..], &["300ms"]].concat());
    check_failure(&output, 3, "not connected");
    let output = run(&silent.address, &[&watch[..], &["1s"]].concat());
    check_exit(&output, 3);
    assert!(stderr(&output).contains("; trying again\n"), "{output:?}");
    let said = stdout(&output);
    assert!(
        said.contains(
            "0 of 30  (no lease: nothing, since no safe capacity is known; no answer yet)"
        ),
        "{said}"
    );
}

/// Starts a watch of a server that is not there, and returns it when it has tried.
fn waiting_watch(address: &str) -> std::process::Child {
    let mut child = std::process::Command::new(doorward().get_program())
        .args([
            "--server",
            address,
            "watch",
            "r",
            "30",
            "--timeout",
            "100ms",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    let said = said.next().unwrap().unwrap();
    assert!(
        said.contains("not connected") && said.ends_with("; trying again"),
        "{said}"
    );
    child
}

#[test]
fn watch_waits_for_a_server_that_starts_later() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let mut child = waiting_watch(&address.to_string());
    let _server = FakeServer::start_on(std::net::TcpListener::bind(address).unwrap(), |_| {
        Play::default()
    });
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let granted = output.find(|line| line.as_ref().is_ok_and(|line| line.contains("20 of 30")));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(granted.is_some());
}

#[cfg(unix)]
#[test]
fn watch_that_waits_for_a_server_ends_by_a_signal() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let mut child = waiting_watch("127.0.0.1:1");
        let sent = std::process::Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
    }
}

/// Runs a command until it printed a line, stops it by a signal, and checks that it leaves well.
#[cfg(unix)]
#[track_caller]
fn check_stopped(signal: &str, arguments: &[&str]) {
    let server = FakeServer::start(Play::default());
    let mut child = std::process::Command::new(doorward().get_program())
        .args(["--server", &server.address])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut printed).unwrap();
    assert!(printed.contains("20 of 30"), "{printed}");
    let pid = child.id().to_string();
    let sent = std::process::Command::new("kill")
        .args([signal, &pid])
        .status();
    assert!(sent.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments:?}");
    assert_eq!(server.releases().len(), 1, "{arguments:?}");
}

#[cfg(unix)]
#[test]
fn whatever_holds_a_lease_releases_it_when_it_is_stopped() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        check_stopped(signal, &["watch", "r", "30"]);
    }
}

#[test]
fn release_gives_back_what_a_client_holds() {
    let server = FakeServer::start(Play::default());
    let said = printed(&server.address, &["release", "a", "r", "s"]);
    assert_eq!(
        said,
        "r: what a held is released\ns: what a held is released\n"
    );
    let release = &server.releases()[0];
    assert_eq!(release.client_id, "a");
    assert_eq!(release.resource_id, ["r", "s"]);
    assert!(release.sequence.is_some());
    let output = run(&server.address, &["release", "a", "r", "--output", "json"]);
    check_exit(&output, 0);
    let expected = serde_json::json!({
        "client": "a", "released": ["r"], "unless_heard": [], "not_held": [], "out_of_order": [], "unknown": [],
    });
    assert_eq!(json(&output), expected);
    let releases = server.releases();
    let names_no_process = releases.iter().all(|it| it.incarnation.is_none());
    assert!(names_no_process, "it releases the lease of another process");
}

#[test]
fn release_says_what_became_of_each_resource_and_fails_if_one_was_not_released() {
    let server = FakeServer::with(|play| {
        play.outcomes = vec![Outcome::NotHeld, Outcome::OutOfOrder, Outcome::Unspecified];
    });
    let arguments = ["release", "a", "r", "s", "t", "u"];
    let output = run(&server.address, &arguments);
    check_exit(&output, 1);
    assert_eq!(
        stdout(&output),
        "r: a held nothing\n\
         s: NOT released, since a newer request of a was seen; try again\n\
         t: the server does not say what became of it: it is of an older version, or this is not a resource id\n\
         u: what a held is released\n"
    );
    let output = run(
        &server.address,
        &[&arguments[..], &["--output", "json"]].concat(),
    );
    check_exit(&output, 1);
    let expected = serde_json::json!({
        "client": "a", "released": ["u"], "unless_heard": [], "not_held": ["r"], "out_of_order": ["s"],
        "unknown": ["t"],
    });
    let printed: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(printed, expected);
}

#[test]
fn a_release_of_what_a_client_does_not_hold_is_no_failure() {
    let server = FakeServer::with(|play| play.outcomes = vec![Outcome::NotHeld]);
    let said = printed(&server.address, &["release", "a", "r"]);
    assert_eq!(said, "r: a held nothing\n");
}

#[test]
fn release_does_not_claim_what_an_old_server_does_not_say() {
    let server = FakeServer::with(|play| play.old = true);
    let said = printed(&server.address, &["release", "a", "r"]);
    assert_eq!(
        said,
        "r: the server does not say what became of it: it is of an older version, or this is not a resource id\n"
    );
}

#[test]
fn release_says_that_a_client_that_may_live_has_a_while_to_be_heard() {
    let server = FakeServer::with(|play| play.outcomes = vec![Outcome::UnlessHeard]);
    let said = printed(&server.address, &["release", "a", "r", "s"]);
    assert_eq!(
        said,
        "r: what a held is free in 7 s, unless a lives and asks before\n\
         s: what a held is released\n"
    );
    let output = run(&server.address, &["release", "a", "r", "--output", "json"]);
    let shown: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(
        shown["unless_heard"],
        serde_json::json!([{ "resource": "r", "free_in_ms": 6_250 }])
    );
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
