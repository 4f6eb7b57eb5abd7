//! Readiness: `/readyz` of real servers, through faults of their parent and their master.

use doorward_tests::candidates::{Setup, TTL, until};
use doorward_tests::etcd::Etcd;
use doorward_tests::ports::lasting_address;
use doorward_tests::processes::Server;
use serde_json::Value;
use tokio::time::Instant;

const PAGES: [&str; 2] = ["--http-listen", "127.0.0.1:0"];

fn start(name: &str, address: &str, parent: Option<&str>) -> Server {
    let mut flags = vec!["--node", name, "--push-round=20ms"];
    flags.extend(PAGES);
    flags.extend(parent.iter().flat_map(|parent| ["--parent", parent]));
    Server::start_at(address, &flags)
}

fn is_ready(server: &mut Server) -> bool {
    server.get("/readyz").starts_with("HTTP/1.0 200")
}

fn is_in_cycle(server: &mut Server) -> bool {
    let metrics = server.get("/metrics");
    let mut lines = metrics.lines();
    let line = lines
        .find(|line| line.starts_with("doorward_is_in_cycle{node="))
        .unwrap();
    line.ends_with(" 1.0")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_is_killed_leaves_its_candidates_ready_and_a_long_outage_does_not() {
    let mut etcd = Etcd::start().await;
    let mut candidates = Setup::new(3).start(&etcd);
    let master = candidates.master().await;
    for candidate in &mut candidates.list {
        until("it is ready", async || is_ready(candidate.server())).await;
    }
    let pages = candidates.list[master].server().pages();
    for (number, candidate) in candidates.list.iter_mut().enumerate() {
        let link = (number != master).then(|| pages.to_string());
        assert_eq!(
            candidate.status()["master_pages_address"],
            Value::from(link)
        );
    }

    candidates.list[master].kill();
    loop {
        let mut elected = false;
        for candidate in candidates.list.iter_mut().filter(|it| it.runs()) {
            let ready = candidate.server().get("/readyz");
            assert!(ready.starts_with("HTTP/1.0 200"), "{ready}");
            elected |= candidate.status()["is_master"] == true;
        }
        if elected {
            break;
        }
    }

    // No server can be elected any more.
    etcd.kill_all();
    let killed = Instant::now();
    for candidate in candidates.list.iter_mut().filter(|it| it.runs()) {
        until("it is not ready", async || !is_ready(candidate.server())).await;
        assert!(killed.elapsed() >= 2 * TTL, "{:?}", killed.elapsed());
        let why = candidate.server().get("/readyz");
        assert!(
            why.contains("no master of this node is known; etcd"),
            "{why}"
        );
    }
}

#[tokio::test]
async fn every_server_of_a_cycle_knows_that_it_is_in_one_until_it_is_broken() {
    let names = ["a", "b", "c"];
    let addresses = names.map(|_| lasting_address());
    let parent_of = |number: usize| &addresses[(number + 1) % names.len()];
    let mut servers: Vec<Server> = (0..names.len())
        .map(|number| start(names[number], &addresses[number], Some(parent_of(number))))
        .collect();
    for server in &mut servers {
        until("it knows", async || is_in_cycle(server)).await;
    }
    let status = servers[0].status();
    let problem = status["parent"]["problem"].as_str().unwrap();
    assert!(problem.contains("b → c → a"), "{problem}");

    // One of them becomes the root.
    servers.remove(0).kill();
    servers.push(start(names[0], &addresses[0], None));
    for server in &mut servers[..2] {
        until("it is over", async || !is_in_cycle(server)).await;
        until("it is ready", async || is_ready(server)).await;
    }
}
