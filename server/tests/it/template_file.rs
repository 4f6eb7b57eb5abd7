//! The template file of a running process. The server checks it, and reads it again when it changes and on SIGHUP.

use std::fs;
use std::path::Path;

use doorward_proto::admin::v1::GetStatusRequest;
use doorward_proto::admin::v1::admin_client::AdminClient;
use tonic::transport::Endpoint;

use crate::process::{Process, run, text};

fn document(capacity: &str) -> String {
    format!(
        "resources:\n- identifier_glob: \"*\"\n  capacity: {capacity}\n  algorithm:\n    kind: \
         FAIR_SHARE\n    lease_length: 60\n    refresh_interval: 5\n"
    )
}

/// Replaces a file in one step, so that no process reads half of it.
fn replace(file: &Path, content: &str) {
    let new = file.with_extension("new");
    fs::write(&new, content).expect("written");
    fs::rename(&new, file).expect("renamed");
}

fn path(file: &Path) -> &str {
    file.to_str().expect("UTF-8")
}

#[test]
fn a_file_that_is_in_order_passes_the_check() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("templates.yaml");
    fs::write(&file, document("100")).expect("written");
    let output = run(&["--check", path(&file)]);
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stdout);
    assert!(said.contains("templates.yaml: 1 template"), "{said}");
}

#[test]
fn the_check_names_every_problem_with_its_place_and_exits_with_1() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("templates.yaml");
    fs::write(&file, document("-5").replace("FAIR_SHARE", "FAIRSHARE")).expect("written");
    let output = run(&["--check", path(&file)]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    for part in [
        "templates.yaml:3:",
        "capacity: is -5",
        "templates.yaml:5:",
        "algorithm.kind:",
    ] {
        assert!(said.contains(part), "{part:?} is missing in {said}");
    }
}

#[test]
fn a_server_does_not_start_with_a_file_that_is_missing_or_not_in_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("templates.yaml");
    let start = ["--listen", "127.0.0.1:0", "--http-listen", "none"];
    let start = [start.as_slice(), &["--templates", path(&file)]].concat();
    let missing = run(&start);
    assert_eq!(missing.status.code(), Some(2));
    let said = text(&missing.stderr);
    assert!(said.contains("templates: cannot read /"), "{said}");
    assert_eq!(said.matches("No such file").count(), 1, "said once: {said}");
    fs::write(&file, document("-5")).expect("written");
    let bad = run(&start);
    assert_eq!(bad.status.code(), Some(2));
    assert!(text(&bad.stderr).contains("capacity: is -5"));
}

// The client's own tasks run while the test waits for the process.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_bad_version_of_the_file_is_reported_and_the_one_in_force_stays() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("templates.yaml");
    fs::write(&file, document("100")).expect("written");
    let mut process = Process::start(&["--templates", path(&file)]);
    let endpoint = Endpoint::from_shared(format!("http://{}", process.grpc)).expect("an address");
    let mut admin = AdminClient::new(endpoint.connect().await.expect("it listens"));

    replace(&file, &document("-5"));
    let refused = process.wait_for_log("new templates refused");
    assert!(refused.to_string().contains("capacity: is -5"), "{refused}");
    let status = admin.get_status(GetStatusRequest::default()).await;
    let status = status.expect("served").into_inner();
    assert_eq!(status.templates_count, 1);
    assert!(status.templates_problem().contains("templates.yaml:3:"));

    replace(&file, &document("200"));
    process.wait_for_log("new templates are in force");
    let status = admin.get_status(GetStatusRequest::default()).await;
    assert_eq!(status.expect("served").get_ref().templates_problem, None);

    // The file has not changed, but the server reads it all the same.
    process.signal("HUP");
    process.wait_for_log("new templates are in force");
    process.signal("TERM");
    assert_eq!(process.end().1, Some(0));
}

#[test]
fn sighup_does_not_end_a_server_without_a_file() {
    let mut process = Process::start(&[]);
    process.signal("HUP");
    process.wait_for_log("SIGHUP");
    process.signal("TERM");
    assert_eq!(process.end().1, Some(0));
}
