//! Nodes in a real etcd: `nodes`, and `--server etcd://…` for what talks to servers.

use std::process::Output;
use std::time::Duration;

use doorward_tests::etcd::{Etcd, Setup};
use serde_json::json;
use tokio::time::Instant;

use crate::fake_server::{FakeServer, Master, Play};
use crate::{check_exit, check_failure, doorward, json, run, stderr, stdout};

fn nodes(etcd: &Etcd, arguments: &[&str]) -> Output {
    let mut command = doorward();
    command.args(["nodes", "--etcd-endpoints", etcd.address(0)]);
    command.args(arguments).output().unwrap()
}

/// Lines without their padding.
fn rows(output: &Output) -> Vec<String> {
    let text = stdout(output);
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(squeezed).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_listed_with_masters_and_servers() {
    let etcd = Etcd::start().await;
    let output = nodes(&etcd, &[]);
    check_exit(&output, 0);
    assert_eq!(
        stdout(&output),
        "no node is known to etcd under /doorward/nodes\n"
    );

    for address in ["10.0.0.1:6970", "10.0.0.2:6970"] {
        etcd.register("eu", address).await;
    }
    etcd.elect("eu", "10.0.0.2:6970").await;
    etcd.register("a/b", "10.0.1.1:6970").await;
    etcd.depose("a/b", "10.0.1.1:6970", 7).await;
    let output = nodes(&etcd, &[]);
    check_exit(&output, 0);
    let rows = rows(&output);
    let [header, none, one, master, other] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    assert_eq!(header, "node server role level version state");
    assert_eq!(none, "a/b no master since epoch 7");
    assert_eq!(one, "a/b 10.0.1.1:6970 root 0 0.1.0 candidate");
    assert!(
        master.starts_with("eu 10.0.0.2:6970 root 0 0.1.0 master, epoch "),
        "{master}"
    );
    assert_eq!(other, "eu 10.0.0.1:6970 root 0 0.1.0 candidate");

    let all = json(&nodes(&etcd, &["-o", "json"]));
    assert_eq!(all[0]["node"], "a/b");
    assert_eq!(
        (&all[0]["master"], &all[0]["last_epoch"]),
        (&json!(null), &json!(7))
    );
    let eu = json(&nodes(&etcd, &["eu", "--output", "json"]));
    assert_eq!(eu.as_array().map(Vec::len), Some(1));
    assert_eq!(eu[0]["master"]["address"], "10.0.0.2:6970");
    assert_eq!(eu[0]["servers"][0]["is_master"], false);
    assert_eq!(eu[0]["servers"][1]["level"], 0);
    check_failure(&nodes(&etcd, &["us"]), 1, "no node \"us\" is known");
    let other_prefix = nodes(&etcd, &["eu", "--election-prefix", "/other"]);
    check_failure(&other_prefix, 1, "under /other");

    // The address of a node says which etcd, too.
    let by_address = run(&etcd.node("eu"), &["nodes", "a/b"]);
    assert_eq!(stdout(&by_address).lines().count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_find_the_servers_of_a_node() {
    let mut etcd = Etcd::start().await;
    let master = FakeServer::start(Play::default());
    let follower = FakeServer::with(|play| play.master = Master::At(master.address.clone()));
    etcd.register("eu", &follower.address).await;
    etcd.register("eu", &master.address).await;
    let address = etcd.node("eu");
    let get = ["get", "r", "30"];
    assert!(stdout(&run(&address, &get)).starts_with("20 of 30"));
    etcd.elect("eu", &master.address).await;
    let (before, before_follower) = (master.asked().len(), follower.asked().len());
    assert!(stdout(&run(&address, &get)).starts_with("20 of 30"));
    assert_eq!(master.asked().len(), before + 2, "asked and released");
    assert_eq!(
        follower.asked().len(),
        before_follower,
        "the master comes first"
    );
    // Effects that outlast a call, and the flags for etcd.
    let held = doorward()
        .args([
            "watch",
            "r",
            "30",
            "--for",
            "10ms",
            "--server",
            "etcd:///eu",
        ])
        .args(["--etcd-endpoints", etcd.address(0)])
        .output()
        .unwrap();
    check_exit(&held, 0);
    let status = doorward()
        .args(["status", "--output", "json"])
        .env("DOORWARD_SERVER", &address)
        .output()
        .unwrap();
    assert_eq!(json(&status)["node"], "fake");

    check_failure(&run(&etcd.node("us"), &get), 3, "no server of etcd://");
    check_failure(&run("etcd:///eu", &get), 2, "where etcd is");
    etcd.kill(0);
    check_failure(&run(&address, &get), 3, "does not answer");
    check_failure(&nodes(&etcd, &[]), 3, "does not answer");
}

#[tokio::test]
async fn a_node_is_forgotten_once_nobody_is_there() {
    let etcd = Etcd::start().await;
    etcd.register("eu", "10.0.0.1:6970").await;
    etcd.depose("eu", "10.0.0.1:6970", 7).await;
    etcd.depose("eu2", "10.0.0.1:6970", 8).await;
    let forget = |node: &str| nodes(&etcd, &["--forget", node]);
    check_failure(&forget("eu"), 1, "has a server or a master");
    etcd.unregister("eu", "10.0.0.1:6970").await;
    etcd.elect("eu", "10.0.0.1:6970").await;
    check_failure(&forget("eu"), 1, "has a server or a master");
    etcd.depose("eu", "10.0.0.1:6970", 9).await;
    assert_eq!(stdout(&forget("eu")), "eu is forgotten\n");
    check_failure(&forget("eu"), 1, "no node \"eu\" is known");
    assert_eq!(
        etcd.keys("/doorward/nodes/").await,
        ["/doorward/nodes/eu2/term"]
    );

    // A master that did not resign may believe in its term for a while.
    let term = r#"{"epoch":3,"address":"a:1","server":"s","length_ms":1500,"resigned":false}"#;
    etcd.put("/doorward/nodes/eu/term", term).await;
    let began = Instant::now();
    let output = forget("eu");
    check_exit(&output, 0);
    assert!(stderr(&output).contains("waiting 1.5s"));
    assert!(began.elapsed() >= Duration::from_millis(1500));
    assert_eq!(etcd.keys("/doorward/nodes/eu/").await, [""; 0]);
    check_exit(&nodes(&etcd, &["eu2", "--forget", "eu2"]), 2);
}

#[tokio::test]
async fn who_etcd_refuses_hears_so() {
    let etcd = Setup::new(1).with_users().start().await;
    check_failure(&nodes(&etcd, &[]), 1, "refuses");
}

#[test]
fn nodes_needs_to_know_where_etcd_is() {
    let output = doorward().arg("nodes").output().unwrap();
    check_failure(&output, 2, "see --etcd-endpoints");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_steps_down_only_if_there_is_another_server() {
    let etcd = Etcd::start().await;
    let step_down = |node: &str| {
        let mut command = doorward();
        command.args(["step-down", node, "--timeout", "500ms"]);
        command.args(["--etcd-endpoints", etcd.address(0)]);
        command.output().unwrap()
    };
    check_failure(&step_down("eu"), 1, "\"eu\" has no master");
    etcd.register("eu", "10.0.0.1:6970").await;
    etcd.elect("eu", "10.0.0.1:6970").await;
    let alone = "\"eu\" has no server beside its master, 10.0.0.1:6970";
    check_failure(&step_down("eu"), 1, alone);
    // This one does not follow the request, as a server of the previous release.
    etcd.register("eu", "10.0.0.2:6970").await;
    let goes_on = "became the master in place of 10.0.0.1:6970 within 500ms";
    check_failure(&step_down("eu"), 1, goes_on);
    let left = etcd.keys("/doorward/nodes/eu/step-down").await;
    assert!(left.is_empty(), "{left:?}");
}
