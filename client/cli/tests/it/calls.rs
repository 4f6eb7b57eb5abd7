//! How the command line finds the master, and what it makes of answers that are none.

use doorward_proto::doorman::refusal::Reason;

use crate::fake_server::{FakeServer, Master, Play};
use crate::{check_exit, check_failure, doorward, json, nowhere, run, stdout};

const GET: [&str; 5] = ["get", "db/reads", "30", "--output", "json"];

#[test]
fn a_redirect_is_followed_to_the_master() {
    let master = FakeServer::start(Play::default());
    let standby = FakeServer::with(|play| play.master = Master::At(master.address.clone()));
    assert_eq!(json(&run(&standby.address, &GET))["capacity"], 20.0);
    assert_eq!(master.gets().len(), 1);
    assert_eq!(master.releases().len(), 1, "the release follows too");
}

#[test]
fn without_a_master_a_script_sees_three() {
    let standby = FakeServer::with(|play| play.master = Master::Unknown);
    let output = run(&standby.address, &GET);
    check_failure(&output, 3, "is not the master and knows of none. Try again");
}

#[test]
fn redirects_in_a_circle_end() {
    let lost = FakeServer::start_with(|address| Play {
        master: Master::At(address.to_owned()),
        ..Play::default()
    });
    check_failure(&run(&lost.address, &GET), 3, "more than 5 redirects");
    assert_eq!(lost.gets().len(), 6);
}

#[test]
fn a_redirect_to_no_address_is_the_servers_fault() {
    let confused = FakeServer::with(|play| play.master = Master::At("over there".to_owned()));
    check_failure(&run(&confused.address, &GET), 3, "\"over there\"");
}

#[test]
fn the_next_address_is_asked_when_one_is_dead_or_knows_no_master() {
    let standby = FakeServer::with(|play| play.master = Master::Unknown);
    let master = FakeServer::start(Play::default());
    let servers = format!("{},{},{}", nowhere(), standby.address, master.address);
    assert_eq!(json(&run(&servers, &GET))["capacity"], 20.0);
}

#[test]
fn an_unreachable_server_is_three_and_says_where_it_was_looked_for() {
    let address = nowhere();
    for arguments in [
        &["get", "r", "1"][..],
        &["status"],
        &["release", "a", "r"],
        &["watch", "r", "1", "--timeout", "300ms", "--for", "300ms"],
    ] {
        check_failure(&run(&address, arguments), 3, &address);
    }
}

#[test]
fn a_server_that_does_not_answer_in_time_is_three() {
    let silent = FakeServer::with(|play| play.silent = true);
    for command in [&["get", "r", "1"][..], &["status"]] {
        let arguments = [command, &["--timeout", "200ms"]].concat();
        let output = run(&silent.address, &arguments);
        check_failure(&output, 3, "did not answer within 200ms");
    }
}

#[test]
fn a_refusal_is_one_and_says_why() {
    for (reason, message) in [
        (Reason::UnknownResource, "no template matches it"),
        (Reason::TooMany, "a thousand clients are enough"),
        (Reason::InvalidRequest, "that is no resource"),
    ] {
        let server = FakeServer::with(|play| play.refused = Some((reason, message)));
        let output = run(&server.address, &["get", "db/reads", "30"]);
        check_failure(&output, 1, message);
        let watched = run(&server.address, &["watch", "db/reads", "30"]);
        check_failure(&watched, 1, message);
    }
}

#[test]
fn a_call_that_the_server_denies_is_one_and_one_that_it_fails_is_three() {
    for (code, exit) in [
        (tonic::Code::InvalidArgument, 1),
        (tonic::Code::PermissionDenied, 1),
        (tonic::Code::ResourceExhausted, 1),
        (tonic::Code::Internal, 3),
        (tonic::Code::Unavailable, 3),
    ] {
        let server = FakeServer::with(|play| play.failing = Some(code));
        let output = run(&server.address, &["get", "r", "1"]);
        check_failure(&output, exit, "the play says so");
    }
}

#[test]
fn an_old_server_is_understood() {
    let server = FakeServer::with(|play| play.old = true);
    let lease = json(&run(&server.address, &GET));
    assert_eq!(lease["capacity"], 20.0);
    assert_eq!(lease["refresh_in_ms"], 5000);
    assert!(lease["expires_in_ms"].as_u64().unwrap() > 1_000_000);
    assert!(lease["safe_capacity"].is_null());
    let unknown = run(&server.address, &["get", "no/such", "1"]);
    check_failure(&unknown, 1, "no/such: the server has no template for it");
    check_failure(&run(&server.address, &["status"]), 1, "older server");
}

#[test]
fn wrong_usage_is_two() {
    for wrong in [
        &[][..],
        &["got"],
        &["get", "r"],
        &["get", "r", "-1"],
        &["get", "r", "lots"],
        &["release", "a"],
        &["--server", "nowhere", "status"],
        &["--server", "https://a:1", "status"],
        &["--server", "", "status"],
        &["--timeout", "soon", "status"],
        &["--color", "blue", "status"],
        &["completions", "basic"],
    ] {
        check_exit(&doorward().args(wrong).output().unwrap(), 2);
    }
}

#[test]
fn the_environment_says_where_to_look_and_how_to_print() {
    let server = FakeServer::start(Play::default());
    let output = doorward()
        .env("DOORWARD_SERVER", format!("http://{}", server.address))
        .env("DOORWARD_OUTPUT", "json")
        .env("DOORWARD_TIMEOUT", "5s")
        .args(["get", "db/reads", "30"])
        .output()
        .unwrap();
    assert_eq!(json(&output)["resource"], "db/reads");
}

#[test]
fn a_pipe_is_coloured_only_on_demand() {
    let server = FakeServer::start(Play::default());
    let output = run(&server.address, &["get", "r", "30"]);
    assert!(!stdout(&output).contains('\u{1b}'));
    let output = run(&server.address, &["get", "r", "30", "--color", "always"]);
    assert!(stdout(&output).starts_with("\u{1b}[33m20\u{1b}[0m of 30"));
}

#[test]
fn a_server_that_waits_for_its_parent_is_asked_again_until_time_is_over() {
    let server = FakeServer::with(|play| play.not_ready = 2);
    let output = run(&server.address, &["get", "r", "30"]);
    assert!(stdout(&output).starts_with("20 of 30"), "{output:?}");
    assert_eq!(server.gets().len(), 3);
    let server = FakeServer::with(|play| play.not_ready = usize::MAX);
    let output = run(&server.address, &["get", "r", "30", "--timeout", "300ms"]);
    check_failure(&output, 3, "r: it waits for its parent");
}

#[test]
fn a_server_that_accepts_and_never_answers_does_not_hold_up_the_next() {
    let hangs = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let hangs = (hangs.local_addr().unwrap().to_string(), hangs);
    let master = FakeServer::start(Play::default());
    let servers = format!("{},{}", hangs.0, master.address);
    let patient = ["--timeout", "50s"];
    assert_eq!(
        json(&run(&servers, &[&GET[..], &patient].concat()))["capacity"],
        20.0
    );
    assert_eq!(master.gets().len(), 1);
}

#[test]
fn every_address_that_was_tried_is_named() {
    let hangs = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let hangs = (hangs.local_addr().unwrap().to_string(), hangs);
    let dead = nowhere();
    let output = run(
        &format!("{},{dead}", hangs.0),
        &["get", "r", "1", "--timeout", "500ms"],
    );
    check_failure(
        &output,
        3,
        &format!("{} did not answer within 500ms", hangs.0),
    );
    check_failure(&output, 3, &dead);
}
