//! `doorward` against a real server: its output, and the exit codes for scripts.

use serde_json::Value;

use doorward_tests::processes::{Server, doorward, stderr, stdout};

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
    // The resource may be there until its mark is removed.
    let resources = json(&status)["resources"].as_array().unwrap().clone();
    assert!(
        resources.iter().all(|it| it["clients_count"] == 0),
        "{resources:?}"
    );
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
    // `get` names no process, and the release comes from the same address: it is the holder's own.
    assert_eq!(json(&released)["released"][0], "example/fair");
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
fn an_http_port_given_by_mistake_is_said_to_be_that() {
    let mut server = Server::start(&["--http-listen", "127.0.0.1:0"]);
    let pages = server.pages();
    for command in [
        &["status"][..],
        &["get", "example/fair", "1"],
        &["watch", "example/fair", "1", "--for", "1s"],
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

#[test]
fn learning_mode_changes_by_an_operators_word_after_a_question() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("templates.yaml");
    let algorithm = "{kind: FAIR_SHARE, lease_length: 60s, refresh_interval: 5s}";
    let templates =
        format!("resources:\n- identifier_glob: '*'\n  capacity: 100\n  algorithm: {algorithm}\n");
    std::fs::write(&file, templates).unwrap();
    let server = Server::start(&["--templates", file.to_str().unwrap()]);
    let call = |arguments: &[&str]| {
        let at = ["--server", server.address.as_str()];
        doorward(&[&at, arguments].concat())
    };
    let gets = || json(&call(&["get", "db", "30", "--output", "json"]))["capacity"].clone();
    assert_eq!(gets(), 0.0, "the server has just started");
    let unasked = call(&["learning", "end", "--all"]);
    check_exit(&unasked, 2);
    assert!(
        stderr(&unasked).contains("give --yes"),
        "{}",
        stderr(&unasked)
    );
    let unheld = call(&["learning", "end", "none", "--yes"]);
    check_exit(&unheld, 1);
    let problem = "nobody holds none";
    assert!(stderr(&unheld).contains(problem), "{}", stderr(&unheld));
    let ended = call(&["learning", "end", "--all", "--yes"]);
    check_exit(&ended, 0);
    assert_eq!(stdout(&ended), "learning mode is over: all resources\n");
    assert_eq!(gets(), 30.0);
    check_exit(&call(&["learning", "begin", "--all", "--yes"]), 0);
    assert_eq!(gets(), 0.0);
}
