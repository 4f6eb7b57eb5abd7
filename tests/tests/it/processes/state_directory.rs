//! Servers without etcd that are killed and come back: nothing is learned, and nothing exceeds the capacity.

use std::time::Duration;

use doorward::{Capacity, Client, Mode, Resource};
use doorward_tests::probe::{Answer, Probe};
use doorward_tests::processes::{PATIENCE, Server, doorward_server, stderr, stdout};
use doorward_tests::template_file::TemplateFile;
use tempfile::TempDir;
use tokio::time::{Instant, interval, timeout};

/// A lease is far longer than the test, and so would be learning mode.
const TEMPLATES: &str = "
resources:
- identifier_glob: shared
  capacity: 100
  algorithm: {kind: FAIR_SHARE, lease_length: 10m, refresh_interval: 1s}
";

fn open(client: &Client, wants: f64) -> Resource {
    let resource = client
        .resource("shared")
        .wants(wants)
        .mode(Mode::Pessimistic);
    resource.open().unwrap()
}

async fn client(name: &str, address: &str) -> Client {
    Client::builder()
        .id(name)
        .address(address)
        .connect()
        .await
        .unwrap()
}

/// Waits until a client has that much.
async fn until(resource: &Resource, capacity: f64) {
    let waited = timeout(PATIENCE, async {
        let mut looks = interval(Duration::from_millis(20));
        while resource.capacity() != Capacity::Limited(capacity) {
            looks.tick().await;
        }
    });
    assert!(
        waited.await.is_ok(),
        "{capacity} never came: {:?}",
        resource.holding()
    );
}

/// Directories of a server, made so that the first process does not learn.
fn directory(node: &str) -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap().to_owned();
    let made = doorward_server(&["state", "init", &path, "--node", node]);
    assert!(made.status.success(), "{}", stderr(&made));
    (dir, path)
}

#[tokio::test]
async fn a_killed_root_divides_at_once_when_it_is_back() {
    let (file, (_dir, state)) = (TemplateFile::new(TEMPLATES), directory("root"));
    let flags = ["--templates", &file.path, "--state-dir", &state];
    let root = Server::start(&flags);
    let address = root.address.clone();
    let (ann, bob) = (client("ann", &address).await, client("bob", &address).await);
    let of_ann = open(&ann, 60.0);
    until(&of_ann, 60.0).await;

    root.kill();
    let mut root = Server::start_at(&address, &flags);
    let of_bob = open(&bob, 100.0);
    // Long before a lease ends.
    until(&of_bob, 50.0).await;
    until(&of_ann, 50.0).await;

    let shown = stdout(&doorward_server(&["state", "show", &state]));
    assert_eq!(shown, "", "the server has the directory");
    let nowhere = ["--listen", "127.0.0.1:0", "--http-listen", "none"];
    let second = doorward_server(&[&nowhere[..], &["--state-dir", &state]].concat());
    assert_eq!(second.status.code(), Some(1));
    assert!(
        stderr(&second).contains("is in use by another process"),
        "{}",
        stderr(&second)
    );
    assert!(root.is_running());
    root.kill();
    let shown = stdout(&doorward_server(&["state", "show", &state]));
    assert!(
        shown.starts_with("node root, started 3 times, marks count\nshared\t100\t"),
        "{shown}"
    );
}

/// The templates that the next process reads say less.
#[tokio::test]
async fn a_killed_root_knows_how_long_leases_were() {
    const LONG: Duration = Duration::from_secs(6);
    let of = |lease: &str| {
        TEMPLATES
            .replace("10m", lease)
            .replace("refresh_interval: 1s", "refresh_interval: 500ms")
    };
    let (file, (_dir, state)) = (TemplateFile::new(&of("6s")), directory("root"));
    let flags = ["--templates", &file.path, "--state-dir", &state];
    let mut root = Server::start(&flags);
    let address = root.address.clone();
    let probe = Probe::to(&address);
    let over = Instant::now() + LONG;
    let answer = probe.ask("ann", "shared", 100.0, None).await.unwrap();
    assert_eq!(answer, Answer::Grant(Some(100.0)));
    file.write(&of("2s"));
    root.wait_for_log("new templates are in force");
    root.kill();

    let _root = Server::start_at(&address, &flags);
    let waited = timeout(LONG + PATIENCE, async {
        let mut looks = interval(Duration::from_millis(50));
        loop {
            looks.tick().await;
            let answer = probe.ask("bob", "shared", 100.0, None).await;
            if let Ok(Answer::Grant(Some(granted))) = answer
                && granted > 0.0
            {
                return;
            }
        }
    });
    assert!(waited.await.is_ok(), "bob never got anything");
    let early = over.saturating_duration_since(Instant::now());
    assert!(early.is_zero(), "{early:?} before the lease of ann ends");
}

#[tokio::test]
async fn a_killed_leaf_grows_at_once_when_it_is_back() {
    let (file, (_root, of_root), (_leaf, of_leaf)) = (
        TemplateFile::new(TEMPLATES),
        directory("root"),
        directory("leaf"),
    );
    let root = Server::start(&["--templates", &file.path, "--state-dir", &of_root]);
    let flags = [
        "--node",
        "leaf",
        "--parent",
        &root.address,
        "--state-dir",
        &of_leaf,
    ];
    let leaf = Server::start(&flags);
    let address = leaf.address.clone();
    let (ann, bob) = (client("ann", &address).await, client("bob", &address).await);
    let of_ann = open(&ann, 60.0);
    until(&of_ann, 60.0).await;

    leaf.kill();
    let _leaf = Server::start_at(&address, &flags);
    let of_bob = open(&bob, 100.0);
    until(&of_bob, 40.0).await;
    assert_eq!(of_ann.capacity(), Capacity::Limited(60.0));
}

#[test]
fn a_directory_that_cannot_be_used_is_refused() {
    let (_dir, state) = directory("root");
    for (arguments, code, says) in [
        (vec!["state", "init", &state], 1, "is not empty"),
        (
            vec!["state", "check", "/dev/null/state"],
            1,
            "cannot be used",
        ),
        (
            vec![
                "--state-dir",
                "/dev/null/state",
                "--listen",
                "127.0.0.1:0",
                "--http-listen",
                "none",
            ],
            1,
            "/dev/null/state cannot be used",
        ),
        (
            vec![
                "--state-dir",
                &state,
                "--etcd-endpoints",
                "http://127.0.0.1:1",
            ],
            2,
            "--state-dir is for servers without etcd",
        ),
    ] {
        let refused = doorward_server(&arguments);
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}");
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
    }
}
