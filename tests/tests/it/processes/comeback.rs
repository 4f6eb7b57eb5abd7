//! The only server of a node is away for longer than leases last. When it is back, it neither waits for the master
//! before it nor learns.

use std::fs;

use doorward_tests::candidates::{CAPACITY, Candidates, SHARED, Setup, until};
use doorward_tests::etcd::Etcd;
use doorward_tests::probe::Answer;
use doorward_tests::processes::{doorward, stdout};

const TEMPLATES: &str = "
resources:
- identifier_glob: shared
  capacity: 100
  algorithm: {kind: FAIR_SHARE, lease_length: 3s, refresh_interval: 500ms}
";

const OUTSTANDING: &str = "/doorward/nodes/root/outstanding";

/// Lets a client ask until it gets an answer from a master, and returns how much it gets.
async fn first_grant(candidates: &Candidates, client: &str) -> f64 {
    let mut granted = None;
    until("there is a master", async || {
        let answer = candidates.list[0].probe.ask(client, SHARED, CAPACITY, None);
        if let Ok(Answer::Grant(Some(grant))) = answer.await {
            granted = Some(grant);
        }
        granted.is_some()
    })
    .await;
    granted.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_root_that_was_away_for_longer_than_leases_last_serves_newcomers_at_once() {
    let etcd = Etcd::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("templates.yaml");
    fs::write(&file, TEMPLATES).unwrap();
    let setup = Setup::new(1).with_templates(&file.display().to_string());
    let mut candidates = setup.start(&etcd);
    assert_eq!(first_grant(&candidates, "a").await, 0.0, "it learns first");
    until("it has learned", async || {
        first_grant(&candidates, "a").await > 0.0
    })
    .await;

    candidates.list[0].kill();
    candidates.list[0].start();
    let granted = first_grant(&candidates, "b").await;
    assert_eq!(granted, 0.0, "leases may be out");

    candidates.list[0].kill();
    until("all leases are over", async || {
        etcd.get(OUTSTANDING).await.is_none()
    })
    .await;
    candidates.list[0].start();
    assert_eq!(first_grant(&candidates, "c").await, CAPACITY);
    let waited = candidates.list[0].server().logged(
        "elected; the master before may still believe in its mastership, and is given time",
    );
    assert!(waited.is_empty(), "{waited:?}");
    let status = doorward(&["--server", &candidates.list[0].address, "status"]);
    let (status, elected) = (stdout(&status), "elected; mastership confirmed ");
    let line = status.lines().find(|line| line.starts_with(elected));
    let line = line.unwrap_or_else(|| panic!("{status}"));
    assert!(line.ends_with(" ago; etcd reachable"), "{line}");
}
