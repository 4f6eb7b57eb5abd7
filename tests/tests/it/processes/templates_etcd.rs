//! Templates in etcd, as the servers of a root follow them.

use std::fmt::Write;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use doorward_tests::candidates::{Candidates, Setup, TTL, WATCHED, until};
use doorward_tests::etcd::{Etcd, Setup as EtcdSetup};
use doorward_tests::probe::Answer;
use doorward_tests::processes::{doorward, stderr, stdout};

const KEY: &str = "/doorward/templates";
const GOOD: &str = "/doorward/templates/good";
const MASTER: &str = "/doorward/nodes/root/master";

/// Longest time until a change is in force.
const SOON: Duration = Duration::from_secs(1);

/// Returns templates that give every client that much of the watched resource, which shows which templates are in
/// force.
fn document(capacity: f64) -> String {
    format!("resources:\n{}", template(WATCHED, capacity))
}

fn template(glob: &str, capacity: f64) -> String {
    format!(
        "- identifier_glob: {glob}\n  capacity: {capacity}\n  algorithm: {{kind: STATIC, \
         lease_length: 10s, refresh_interval: 1s}}\n"
    )
}

/// Returns templates of at least that many bytes.
fn large_document(capacity: f64, bytes: usize) -> String {
    let mut document = document(capacity);
    for number in 0.. {
        if document.len() >= bytes {
            break;
        }
        let _ = write!(document, "{}", template(&format!("other-{number}"), 1.0));
    }
    document
}

fn candidates(etcd: &Etcd) -> Candidates {
    let templates = format!("etcd:{KEY}");
    Setup::new(2).with_templates(&templates).start(etcd)
}

/// Returns a client's capacity from the present master, if there is one.
async fn gets(candidates: &Candidates) -> Option<f64> {
    for candidate in candidates.list.iter().filter(|it| it.runs()) {
        let answer = candidate.probe.ask("asker", WATCHED, 1e9, None).await;
        if let Ok(Answer::Grant(granted)) = answer {
            return granted;
        }
    }
    None
}

/// Waits until a client gets that much. Returns the time it took.
async fn until_gets(candidates: &Candidates, capacity: f64) -> Duration {
    let began = Instant::now();
    let what = format!("a client gets {capacity}");
    until(&what, async || gets(candidates).await == Some(capacity)).await;
    println!("{what}: after {:.2?}", began.elapsed());
    began.elapsed()
}

/// Checks that every server refuses the templates in etcd, explains why, and grants as before.
async fn assert_refused(candidates: &mut Candidates, why: &str, capacity: Option<f64>) {
    for candidate in &mut candidates.list {
        until("it is refused, and status and logs say why", async || {
            let server = candidate.server();
            let mut said = server.logged("new templates refused");
            // A server that has just started has no earlier templates.
            said.extend(server.logged("no templates are in force"));
            let is_why = |said: &Value| said["message"].to_string().contains(why);
            let said = said.iter().any(is_why);
            let problem = &candidate.status()["templates_problem"];
            said && problem.to_string().contains(why)
        })
        .await;
    }
    assert_eq!(gets(candidates).await, capacity);
}

/// Waits until no server reports a problem with the templates in etcd.
async fn until_in_order(candidates: &mut Candidates) {
    for candidate in &mut candidates.list {
        until("nothing is refused", async || {
            candidate.status()["templates_problem"] == Value::Null
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn templates_are_followed_and_bad_ones_refused_and_the_last_good_ones_kept() {
    let etcd = Etcd::start().await;
    let mut candidates = candidates(&etcd);

    // Without templates no server can decide, so there is no master.
    assert_refused(&mut candidates, "doorward templates apply", None).await;
    tokio::time::sleep(TTL).await;
    assert_eq!(etcd.get(MASTER).await, None);
    for candidate in &mut candidates.list {
        let ready = candidate.server().get("/readyz");
        assert!(ready.starts_with("HTTP/1.0 503"), "{ready}");
        assert!(
            ready.contains(&format!("the key {KEY} does not exist")),
            "{ready}"
        );
    }

    for capacity in [1.0, 2.0] {
        etcd.put(KEY, &document(capacity)).await;
        let took = until_gets(&candidates, capacity).await;
        assert!(took < SOON, "{took:?}");
    }
    until_in_order(&mut candidates).await;

    etcd.put(KEY, "resources: [{capacity: much}]").await;
    assert_refused(&mut candidates, "capacity", Some(2.0)).await;

    // Servers that start now have the last valid templates, and know that they are not the newest.
    for candidate in &mut candidates.list {
        candidate.terminate();
    }
    for candidate in &mut candidates.list {
        candidate.start();
    }
    until_gets(&candidates, 2.0).await;
    for candidate in &mut candidates.list {
        candidate
            .server()
            .wait_for_log("the last valid templates are in force");
    }
    assert_refused(&mut candidates, "capacity", Some(2.0)).await;
    etcd.put(KEY, &document(3.0)).await;
    assert!(until_gets(&candidates, 3.0).await < SOON);

    etcd.delete(KEY).await;
    assert_refused(&mut candidates, "does not exist", Some(3.0)).await;
    etcd.put(KEY, &document(4.0)).await;
    assert!(until_gets(&candidates, 4.0).await < SOON);

    // A successor has the newest templates.
    for capacity in [5.0, 6.0] {
        etcd.put(KEY, &document(capacity)).await;
        let master = candidates.master().await;
        candidates.list[master].terminate();
        assert!(until_gets(&candidates, capacity).await < SOON);
        candidates.list[master].start();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_templates_are_followed_and_cost_no_mastership_and_larger_ones_are_refused() {
    let setup = EtcdSetup::new(1).with_flag("--max-request-bytes=10000000");
    let etcd = setup.start().await;
    let mut candidates = candidates(&etcd);
    etcd.put(KEY, &document(1.0)).await;
    until_gets(&candidates, 1.0).await;
    let master = candidates.master().await;
    let before = candidates.list[master].probe.discover().await.unwrap();
    // The largest size of a document.
    let large = large_document(7.0, 1_040_000);
    etcd.put(KEY, &large).await;
    until_gets(&candidates, 7.0).await;
    let is_kept = async || etcd.get(GOOD).await.as_ref() == Some(&large);
    until("it is kept", is_kept).await;
    until_in_order(&mut candidates).await;
    for (bytes, why) in [
        (1_400_000, "is larger than the 1048576 bytes"),
        (2_000_000, "is larger than the 1048576 bytes"),
        // Larger than any message.
        (5_000_000, "too large"),
    ] {
        etcd.put(KEY, &large_document(8.0, bytes)).await;
        assert_refused(&mut candidates, why, Some(7.0)).await;
    }
    let after = candidates.list[master].probe.discover().await.unwrap();
    assert_eq!(after, before, "the mastership is what it was all the time");
    assert!(is_kept().await);
    etcd.put(KEY, &document(9.0)).await;
    until_gets(&candidates, 9.0).await;
    until_in_order(&mut candidates).await;
}

/// Templates that etcd refuses never get there, and those in force stay; others are stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_with_its_own_limits_takes_all_templates_that_there_can_be() {
    let etcd = Etcd::start().await;
    let mut candidates = candidates(&etcd);
    let large = large_document(7.0, 1_040_000);
    etcd.put(KEY, &large).await;
    until_gets(&candidates, 7.0).await;
    until("it is kept", async || {
        etcd.get(GOOD).await.as_ref() == Some(&large)
    })
    .await;
    let mut client = etcd.connect(0).await.unwrap();
    let refused = client.put(KEY, large_document(8.0, 2_000_000), None).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("too large"), "{refused}");
    assert_eq!(gets(&candidates).await, Some(7.0));
    until_in_order(&mut candidates).await;
}

/// An interval of an hour instead of a second, and no templates at all: such likely mistakes need more than `--yes`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_is_hardly_meant_needs_force() {
    let etcd = Etcd::start().await;
    etcd.put(KEY, &document(1.0)).await;
    let candidates = candidates(&etcd);
    until_gets(&candidates, 1.0).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("templates.yaml");
    let apply = |text: &str, force: bool| {
        fs::write(&file, text).unwrap();
        let endpoint = etcd.endpoint(0);
        let mut arguments = vec!["templates", "apply", file.to_str().unwrap(), "--yes"];
        arguments.extend(["--etcd-endpoints", &endpoint]);
        arguments.extend(force.then_some("--force"));
        let output = doorward(&arguments);
        (output.status.code(), stdout(&output) + &stderr(&output))
    };
    let hour = document(1.0).replace("10s, refresh_interval: 1s", "2h, refresh_interval: 1h");
    for (text, why) in [
        (hour.as_str(), "refresh_interval"),
        ("resources: []\n", "template"),
        (&document(0.0), "capacity"),
    ] {
        let (code, said) = apply(text, false);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(why) && said.contains("--force"), "{said}");
        assert_eq!(etcd.get(KEY).await, Some(document(1.0)), "{said}");
    }
    assert_eq!(apply(&hour, true).0, Some(0));
    assert_eq!(etcd.get(KEY).await, Some(hour));
    // The way back is no mistake.
    let (code, said) = apply(&document(1.0), false);
    assert_eq!(code, Some(0), "{said}");
}
