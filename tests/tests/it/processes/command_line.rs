//! `doorward` against a real server: its output, and the exit codes for scripts.

use std::fs;

use serde_json::Value;

use doorward_tests::processes::{Server, doorward, doorward_with_input, stderr, stdout};

#[track_caller]
fn check_exit(output: &std::process::Output, code: i32) {
    assert_eq!(
        output.status.code(),
        Some(code),
        "{}{}",
        stdout(output),
        stderr(output)
    );
}

fn json(output: &std::process::Output) -> Value {
    serde_json::from_str(&stdout(output)).unwrap()
}

#[test]
fn get_prints_what_it_would_get_and_leaves_nothing_behind() {
    let server = Server::start(&[]);
    let output = doorward(&["--server", &server.address, "get", "example/fair", "30"]);
    check_exit(&output, 0);
    assert!(
        stdout(&output).starts_with("30 of 30 that"),
        "{}",
        stdout(&output)
    );
    assert!(stdout(&output).contains("  released\n"));
    let status = doorward(&["--server", &server.address, "status", "--output", "json"]);
    assert_eq!(json(&status)["resources"], Value::Array(Vec::new()));
}

#[test]
fn a_kept_lease_is_there_for_others_to_see_until_it_is_released() {
    let server = Server::start(&[]);
    let at = ["--server", server.address.as_str(), "--output", "json"];
    let call = |arguments: &[&str]| doorward(&[&at, arguments].concat());
    let kept = call(&["get", "example/fair", "80", "--client", "a", "--keep"]);
    check_exit(&kept, 0);
    assert_eq!(json(&kept)["capacity"], 80.0);
    let other = call(&["get", "example/fair", "80", "--client", "b", "--keep"]);
    assert_eq!(
        json(&other)["capacity"],
        20.0,
        "its share is 50, but a holds 80"
    );
    let status = json(&call(&["status", "example/fair"]));
    let resource = &status["resources"][0];
    assert_eq!(
        (&resource["capacity"], &resource["granted"]),
        (&100.0.into(), &100.0.into())
    );
    assert_eq!(resource["leases"][1]["share"], 50.0);
    assert!(
        resource["leases"][1]["why"]
            .as_str()
            .unwrap()
            .contains("held by others")
    );
    let released = call(&["release", "a", "example/fair"]);
    check_exit(&released, 0);
    let unless = &json(&released)["unless_heard"][0];
    assert_eq!(unless["resource"], "example/fair");
    // A client that may live keeps its lease until its next refresh: others hold something
    // meanwhile.
    let wait = unless["free_in_ms"].as_u64().unwrap();
    let hold = format!("{wait}ms");
    let watch = [
        "watch",
        "example/fair",
        "1",
        "--client",
        "c",
        "--for",
        &hold,
    ];
    check_exit(&call(&watch), 0);
    let status = json(&call(&["status"]));
    assert_eq!(status["resources"][0]["leases_count"], 1);
}

/// Returns a status without the values that change with time: the number after each key that ends
/// in `_ms`.
fn without_times(json: &str) -> String {
    let mut parts = json.split("_ms\":");
    let mut kept = parts.next().unwrap().to_owned();
    for part in parts {
        kept += "_ms\":";
        kept += part.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    kept
}

/// Returns the constant part of the limits in a status.
fn limits(json: &str) -> Value {
    let mut status: Value = serde_json::from_str(json).unwrap();
    let mut limits = status["limits"].take();
    for limit in limits.as_array_mut().unwrap() {
        limit["used"] = Value::Null;
    }
    limits
}

#[test]
fn the_page_for_programs_and_the_command_line_print_the_same_byte_for_byte() {
    let mut server = Server::start(&["--http-listen", "127.0.0.1:0"]);
    let address = server.address.clone();
    for (client, resource) in [
        ("a", "example/fair"),
        ("b", "example/fair"),
        ("a", "example/static"),
    ] {
        let get = ["get", resource, "80", "--client", client, "--keep"];
        check_exit(&doorward(&[&["--server", &address], &get[..]].concat()), 0);
    }
    let at = ["--server", &address, "--output", "json", "status"];
    for (path, arguments) in [
        ("/status", &[][..]),
        ("/status?leases=10", &["--leases", "10"]),
        (
            "/status?id=example%2Ffair&leases=1",
            &["example/fair", "--leases", "1"],
        ),
        ("/status?limits=true&resources=false", &["--limits"]),
    ] {
        let page = server.get(path);
        let (_, page) = page.split_once("\r\n\r\n").unwrap();
        let output = doorward(&[&at, arguments].concat());
        check_exit(&output, 0);
        let printed = stdout(&output);
        if path.contains("limits") {
            // Their use changes with time, too.
            assert_eq!(limits(page), limits(&printed));
        } else {
            assert_eq!(without_times(page), without_times(&printed), "{path}");
        }
    }
}

#[test]
fn scripts_can_tell_no_from_nobody_there() {
    let server = Server::start(&[]);
    let unknown = doorward(&["--server", &server.address, "get", "no/such", "1"]);
    check_exit(&unknown, 1);
    assert!(
        stderr(&unknown).contains("no/such: no template matches it"),
        "{}",
        stderr(&unknown)
    );
    let watched = doorward(&["--server", &server.address, "watch", "no/such", "1"]);
    check_exit(&watched, 1);
    let without_server = doorward(&["--server", &server.address, "status", "example/fair"]);
    check_exit(&without_server, 1);
    let address = server.address.clone();
    server.kill();
    let gone = doorward(&["--server", &address, "--timeout", "2s", "status"]);
    check_exit(&gone, 3);
    assert!(stderr(&gone).contains("refused"), "{}", stderr(&gone));
    for wrong in [
        &["get", "r"][..],
        &["get", "r", "-1"],
        &["--server", "nowhere", "status"],
    ] {
        check_exit(&doorward(wrong), 2);
    }
}

#[test]
fn the_shell_plays_several_clients_from_a_script() {
    let server = Server::start(&[]);
    let script = "get a example/fair 80\nget b example/fair 80\n# a remark\nshow\nmaster\n";
    let output = doorward_with_input(&["--server", &server.address, "shell"], script);
    check_exit(&output, 0);
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("a  example/fair  80 of 80, expires in"),
        "{lines:?}"
    );
    assert!(
        lines[1].starts_with("b  example/fair  20 of 80, expires in"),
        "{lines:?}"
    );
    assert!(lines[4].starts_with(&server.address), "{lines:?}");
    let status = doorward(&["--server", &server.address, "--output", "json", "status"]);
    assert_eq!(
        json(&status)["resources"],
        Value::Array(Vec::new()),
        "all was released"
    );
    let script = "get a no/such 1\nshow\n";
    let failed = doorward_with_input(&["--server", &server.address, "shell"], script);
    check_exit(&failed, 1);
    assert!(
        stderr(&failed).contains("no/such is unknown"),
        "{}",
        stderr(&failed)
    );
}

#[test]
fn watch_tells_changes_a_line_each() {
    let server = Server::start(&[]);
    let arguments = [
        "--server",
        &server.address,
        "--output",
        "json",
        "watch",
        "example/fair",
        "40",
    ];
    let output = doorward(&[&arguments[..], &["--for", "300ms"]].concat());
    check_exit(&output, 0);
    let first: Value = serde_json::from_str(stdout(&output).lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["capacity"], &first["source"]),
        (&40.0.into(), &"lease".into())
    );
}

#[test]
fn template_files_are_checked_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    let good = "resources: [{identifier_glob: a, capacity: 5, algorithm: {kind: FAIR_SHARE, \
                lease_length: 60, refresh_interval: 5}}]";
    fs::write(&path, good).unwrap();
    let path = path.to_str().unwrap();
    let output = doorward(&["templates", "check", path]);
    check_exit(&output, 0);
    assert!(
        stdout(&output).contains("1 template, valid"),
        "{}",
        stdout(&output)
    );
    fs::write(
        path,
        good.replace("5,", "-5,")
            .replace("FAIR_SHARE", "FARE_SHARE"),
    )
    .unwrap();
    let output = doorward(&["templates", "check", path]);
    check_exit(&output, 1);
    let problems = stderr(&output);
    assert!(
        problems.contains("t.yaml:1:44: template 1 (\"a\"): capacity: is -5"),
        "{problems}"
    );
    assert!(problems.contains("did you mean FAIR_SHARE?"), "{problems}");
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let output = doorward(&["completions", shell]);
        check_exit(&output, 0);
        assert!(stdout(&output).contains("templates"), "{shell}");
    }
}

#[test]
fn an_http_port_given_by_mistake_is_said_to_be_that() {
    let mut server = Server::start(&["--http-listen", "127.0.0.1:0"]);
    let pages = server.pages();
    for command in [
        &["status"][..],
        &["get", "example/fair", "1"],
        &["watch", "example/fair", "1"],
    ] {
        let asked = [&["--server", &pages, "--timeout", "2"], command].concat();
        let output = doorward(&asked);
        check_exit(&output, 3);
        let expected = format!(
            "{pages} answers HTTP/1: if it is the port of a status page, give the gRPC port"
        );
        assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
    }
}

#[test]
fn a_plain_number_is_a_duration_in_seconds() {
    let server = Server::start(&["--refresh-floor", "0.5", "--shutdown-grace", "2"]);
    let get = ["watch", "example/fair", "1", "--for", "0.1", "-o", "json"];
    let output = doorward(&[&["--server", &server.address, "--timeout", "30"][..], &get].concat());
    check_exit(&output, 0);
    let wrong = doorward(&["--timeout", "soon", "status"]);
    check_exit(&wrong, 2);
    assert!(
        stderr(&wrong).contains("give seconds"),
        "{}",
        stderr(&wrong)
    );
}
