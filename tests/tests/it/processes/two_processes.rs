//! Two live processes under one name, of a node and of a client: the use never exceeds the
//! capacity, and logs and status report it.

use std::fs;
use std::thread;
use std::time::Duration;

use doorward_client::limiter::rate::Burst;
use doorward_client::{AcquireError, Capacity, Client, Mode, ResourceError, Source};
use serde_json::Value;
use tempfile::TempDir;

use doorward_tests::crowd::Crowd;
use doorward_tests::processes::{PATIENCE, Server, doorward, stdout};

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
    _folder: TempDir,
}

impl Root {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("templates.yaml");
        fs::write(&path, TEMPLATES).unwrap();
        let server = Server::start(&[
            "--templates",
            path.to_str().unwrap(),
            "--refresh-floor",
            "50ms",
            "--http-listen",
            "127.0.0.1:0",
        ]);
        Self {
            server,
            _folder: folder,
        }
    }

    fn conflicts(&mut self) -> Vec<Value> {
        self.server.status()["conflicts"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// Starts a server of the node `eu` below it, without an election.
    fn child(&self) -> Server {
        let flags = ["--node", "eu", "--parent", &self.server.address];
        Server::start(&[&flags[..], &["--refresh-floor", "50ms"]].concat())
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
async fn two_servers_of_one_node_never_give_their_clients_more_than_the_capacity() {
    let mut root = Root::start();
    let mut first = root.child();
    let mut crowd = Crowd::new("shared", CAPACITY);
    crowd.join(&first.address, 200.0, Mode::Pessimistic);
    until_held(&crowd, "the client of the first has all", 0, CAPACITY).await;

    let mut second = root.child();
    crowd.join(&second.address, 200.0, Mode::Pessimistic);
    let seen = || {
        let conflicts = root.conflicts();
        let of_eu = |it: &Value| it["holder"] == "eu" && it["kind"] == "server";
        let seen = conflicts.iter().any(of_eu);
        seen.then_some(()).ok_or_else(|| "no conflict".to_owned())
    };
    crowd.until("the parent sees both", seen).await;
    until_leases_are_over(&crowd, &[0]).await;
    let logged = [&mut first, &mut second]
        .map(|server| server.logged("another process of this node was there first"));
    assert_eq!(logged[0].len(), 0, "{logged:#?}");
    assert_eq!(logged[1].len(), 1, "{logged:#?}");
    assert_eq!(logged[1][0]["level"], "ERROR");
    until_held(&crowd, "the first goes on", 0, CAPACITY).await;

    // The first has ended: the second is the node's only process, and serves after learning mode.
    first.kill();
    until_held(&crowd, "the client of the second has all", 1, CAPACITY).await;
}

#[tokio::test]
async fn two_clients_of_one_id_never_have_more_than_the_capacity_and_the_later_one_is_warned() {
    let mut root = Root::start();
    let address = [root.server.address.clone()];
    let mut crowd = Crowd::new("shared", CAPACITY);
    crowd.join_as("same", &address, 60.0, Mode::Safe);
    until_held(&crowd, "the first has what it wants", 0, 60.0).await;
    crowd.join_as("same", &address, 60.0, Mode::Safe);
    crowd.join_as("other", &address, 200.0, Mode::Pessimistic);
    let is_warned = || {
        let problem = crowd.members[1].resource.problem();
        let problem = problem.map(|it| it.to_string()).unwrap_or_default();
        let is_told = problem.contains("another running process");
        is_told.then_some(()).ok_or(problem)
    };
    crowd.until("the second is warned", is_warned).await;
    until_leases_are_over(&crowd, &[0, 2]).await;
    // It does not use the safe capacity of a client without a lease either.
    let later = crowd.members[1].resource.holding();
    assert_eq!(later.capacity, Capacity::Limited(0.0));
    until_held(&crowd, "the other has the rest", 2, 50.0).await;
    until_held(&crowd, "the first goes on", 0, 50.0).await;
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
    let warning = changes.iter().find(|change| {
        let problem = change["problem"].as_str().unwrap_or_default();
        problem.contains("another running process")
    });
    assert_eq!(warning.unwrap()["capacity"], 0.0, "{printed}");
    for change in &changes {
        assert_eq!(change["capacity"], 0.0, "nothing was free: {printed}");
    }
    until_held(&crowd, "the first goes on still", 0, 50.0).await;
}

/// Starts a program with the id `frontend`, which wants the whole capacity.
async fn frontend(root: &Root, restart_overlap: Duration) -> (Client, doorward_client::Resource) {
    let client = Client::builder("frontend").address(&root.server.address);
    let client = client.restart_overlap(restart_overlap);
    let client = client.connect().await.unwrap();
    let resource = client.resource("shared").wants(CAPACITY).open().unwrap();
    (client, resource)
}

/// Waits until a program has the whole capacity, so that nothing is left for another one.
async fn until_all_is_held(resource: &doorward_client::Resource) {
    let is_held = async {
        while resource.capacity() != Capacity::Limited(CAPACITY) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, is_held).await.unwrap();
}

/// Waits until a program learns that another one has its id.
async fn until_refused(resource: &doorward_client::Resource) {
    let is_refused = async {
        while !matches!(
            resource.problem(),
            Some(ResourceError::AnotherProcess { .. })
        ) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, is_refused).await.unwrap();
}

#[tokio::test]
async fn a_program_that_is_started_before_the_former_one_has_ended_waits_for_that() {
    let root = Root::start();
    let (former, resource) = frontend(&root, PATIENCE).await;
    until_all_is_held(&resource).await;
    let (_later, of_later) = frontend(&root, PATIENCE).await;
    let limiter = of_later.rate_limiter(Burst::default());
    let acquired = tokio::spawn(async move { limiter.acquire(1.0).await });
    until_refused(&of_later).await;
    assert!(!acquired.is_finished(), "it waits");
    former.close().await;
    let acquired = tokio::time::timeout(PATIENCE, acquired).await.unwrap();
    assert_eq!(acquired.unwrap(), Ok(()));
}

#[tokio::test]
async fn the_later_of_two_lasting_programs_with_one_id_fails_with_the_reason() {
    let root = Root::start();
    let (former, resource) = frontend(&root, PATIENCE).await;
    until_all_is_held(&resource).await;
    let (_later, of_later) = frontend(&root, Duration::from_secs(1)).await;
    until_refused(&of_later).await;
    let rate = of_later.rate_limiter(Burst::default());
    let gate = of_later.concurrency_limiter();
    let both = async { tokio::join!(rate.acquire(1.0), gate.acquire()) };
    let both = tokio::time::timeout(PATIENCE, both).await.unwrap();
    let told = AcquireError::AnotherProcess {
        client_id: "frontend".to_owned(),
    };
    assert_eq!((both.0, both.1.err()), (Err(told.clone()), Some(told)));
    let limiter = resource.rate_limiter(Burst::default());
    assert_eq!(limiter.acquire(1.0).await, Ok(()), "the first goes on");

    // After the first has ended, the later one is served without a restart.
    former.close().await;
    let served = async {
        while rate.acquire(1.0).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, served).await.unwrap();
}
