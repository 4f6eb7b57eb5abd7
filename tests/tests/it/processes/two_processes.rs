//! Two live clients with one id are two: each has its share, and the status reports them.

use std::thread;

use doorward::{Capacity, Mode, Source};
use serde_json::Value;

use doorward_tests::crowd::Crowd;
use doorward_tests::processes::{Server, doorward, stdout};
use doorward_tests::template_file::TemplateFile;

const CAPACITY: f64 = 100.0;

/// Leases are short, so that they end during the test.
const TEMPLATES: &str = "
resources:
- identifier_glob: shared
  capacity: 100
  algorithm:
    kind: FAIR_SHARE
    lease_length: 3s
    refresh_interval: 500ms
    learning_mode_duration: 500ms
";

struct Root {
    server: Server,
    _file: TemplateFile,
}

impl Root {
    fn start() -> Self {
        let file = TemplateFile::new(TEMPLATES);
        let server = Server::start(&[
            "--templates",
            &file.path,
            "--refresh-floor",
            "50ms",
            "--http-listen",
            "127.0.0.1:0",
        ]);
        Self {
            server,
            _file: file,
        }
    }

    fn conflicts(&mut self) -> Vec<Value> {
        self.server.status()["conflicts"]
            .as_array()
            .unwrap()
            .clone()
    }
}

/// Returns a member's capacity by a lease.
fn held(crowd: &Crowd, index: usize) -> f64 {
    let holding = crowd.members[index].resource.holding();
    match (holding.source, holding.capacity) {
        (Source::Lease, Capacity::Limited(capacity)) => capacity,
        _ => 0.0,
    }
}

/// Waits until a member has that much.
async fn until_held(crowd: &Crowd, what: &str, index: usize, expected: f64) {
    let check = || {
        let held = held(crowd, index);
        let enough = (held - expected).abs() < 1e-6;
        enough.then_some(()).ok_or_else(|| format!("{held}"))
    };
    crowd.until(what, check).await;
}

/// Waits until each of those members was answered more often than a lease has refreshes.
async fn until_leases_are_over(crowd: &Crowd, of: &[usize]) {
    crowd.mark();
    let check = || {
        let silent = of.iter().find(|index| crowd.answer_counts(**index).0 < 8);
        silent.map_or(Ok(()), |index| Err(format!("{index} is silent")))
    };
    crowd.until("leases from before are over", check).await;
}

#[tokio::test]
async fn two_clients_of_one_id_share_as_two_and_never_have_more_than_the_capacity() {
    let mut root = Root::start();
    let address = [root.server.address.clone()];
    let mut crowd = Crowd::new("shared", CAPACITY);
    crowd.join_as("same", &address, 60.0, Mode::Safe);
    until_held(&crowd, "the first has what it wants", 0, 60.0).await;
    crowd.join_as("same", &address, 60.0, Mode::Safe);
    crowd.join_as("other", &address, 200.0, Mode::Pessimistic);
    let share = CAPACITY / 3.0;
    for index in 0..3 {
        until_held(&crowd, "it has its share", index, share).await;
    }
    until_leases_are_over(&crowd, &[0, 1, 2]).await;
    let conflicts = root.conflicts();
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0]["holder"], "same");
    assert_eq!(conflicts[0]["kind"], "client");

    // A third process of the same name, at a shell.
    let [address] = address;
    let watch = thread::spawn(move || {
        doorward(&[
            "--server", &address, "--output", "json", "watch", "shared", "60", "--client", "same",
            "--for", "3s",
        ])
    });
    crowd
        .until("it was watched", || {
            let is_over = watch.is_finished();
            is_over.then_some(()).ok_or_else(|| "it runs".to_owned())
        })
        .await;
    let printed = stdout(&watch.join().unwrap());
    let changes: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let has_some = |change: &Value| change["capacity"].as_f64().is_some_and(|it| it > 0.0);
    assert!(
        changes.iter().any(has_some),
        "it is a holder, too: {printed}"
    );
    for index in 0..3 {
        until_held(&crowd, "it has its share again", index, share).await;
    }
}
