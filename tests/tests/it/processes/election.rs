//! Candidates that die, stop, freeze and are cut off: two of them never decide at the same time, and their clients keep
//! their leases.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use doorward_tests::candidates::{
    Candidates, FAILOVER, GRANULARITY, Setup, TTL, WATCHED, assert_kept, until,
};
use doorward_tests::etcd::Etcd;
use doorward_tests::probe::{Answer, Observation, Record, Shows};
use doorward_tests::processes::{doorward, signal, stderr, stdout};

/// Checks that the first lease of a newcomer by a new master is all that it wants: the master knows the most that others
/// may use.
async fn assert_grows(candidates: &Candidates, master: usize) {
    let candidate = &candidates.list[master];
    let newcomer = format!("newcomer of {}", candidate.address);
    until("the newcomer has a lease", async || {
        let asked = candidate.probe.ask(&newcomer, WATCHED, 5.0, None).await;
        match asked.unwrap() {
            // A write of the mark takes long.
            Answer::Grant(None) => false,
            answer => {
                assert_eq!(answer, Answer::Grant(Some(5.0)));
                true
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_master_is_succeeded_within_a_ttl_and_a_second() {
    let etcd = Etcd::start().await;
    let mut candidates = Setup::new(3).start(&etcd);
    let watcher = candidates.watch();
    let crowd = candidates.crowd().await;
    candidates.until_marked().await;
    for round in 0..2 {
        let master = candidates.master().await;
        candidates.list[master].kill();
        let killed = Instant::now();
        let grant = watcher.grant(killed, Some(master)).await;
        let took = grant.received - killed;
        println!("round {round}: succeeded after {took:.2?}");
        assert!(took < FAILOVER + GRANULARITY, "{took:?}");
        assert_grows(&candidates, grant.server).await;
        candidates.list[master].start();
        candidates.assert_kept(grant.server, &crowd, &watcher).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_stops_is_succeeded_at_once() {
    let etcd = Etcd::start().await;
    let mut candidates = Setup::new(2).start(&etcd);
    let watcher = candidates.watch();
    let crowd = candidates.crowd().await;
    candidates.until_marked().await;
    for _ in 0..2 {
        let master = candidates.master().await;
        let process = candidates.list[master].server().process();
        signal(process, "TERM");
        let stopped = Instant::now();
        let grant = watcher.grant(stopped, Some(master)).await;
        let took = grant.received - stopped;
        println!("succeeded after {took:.2?}");
        assert!(took < Duration::from_secs(1), "{took:?}");
        assert_grows(&candidates, grant.server).await;
        candidates.list[master].terminate();
        candidates.list[master].start();
        candidates.assert_kept(grant.server, &crowd, &watcher).await;
    }
    // The last one stops, and another one starts: it need not wait for any other.
    let master = candidates.master().await;
    candidates.list[1 - master].terminate();
    candidates.list[master].terminate();
    let left = ["outstanding", "term"].map(|key| format!("/doorward/nodes/root/{key}"));
    assert_eq!(etcd.keys("/doorward/nodes/").await, left);
    let began = Instant::now();
    candidates.list[master].start();
    let grant = watcher.grant(began, None).await;
    assert!(grant.received - began < TTL, "{:?}", began.elapsed());
    assert_kept(&crowd, &watcher, "after all were stopped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_lets_another_server_become_the_master() {
    let etcd = Etcd::start().await;
    let mut candidates = Setup::new(2).start(&etcd);
    let watcher = candidates.watch();
    let crowd = candidates.crowd().await;
    candidates.until_marked().await;
    let endpoints = etcd.address(0).to_owned();
    let step_down = || doorward(&["step-down", "root", "--etcd-endpoints", &endpoints]);
    for _ in 0..2 {
        let (master, epoch) = candidates.mastership().await;
        candidates.until_all_follow(master).await;
        let asked = Instant::now();
        let output = step_down();
        assert!(output.status.success(), "{}", stderr(&output));
        let (before, after) = (&candidates.list[master], &candidates.list[1 - master]);
        let (address, was) = (&after.address, &before.address);
        let said = stdout(&output);
        let begins = format!("root: {address} is the master now, epoch ");
        assert!(said.starts_with(&begins) && said.ends_with(&format!("; it was {was}\n")));
        let grant = watcher.grant(asked, Some(master)).await;
        assert!(candidates.epoch_of(1 - master).await > epoch);
        assert_grows(&candidates, grant.server).await;
        candidates.assert_kept(grant.server, &crowd, &watcher).await;
    }
    let master = candidates.master().await;
    candidates.list[1 - master].terminate();
    let output = step_down();
    assert_eq!(output.status.code(), Some(1));
    let address = &candidates.list[master].address;
    let alone = format!("\"root\" has no server beside its master, {address}");
    assert!(stderr(&output).contains(&alone), "{}", stderr(&output));
    assert_eq!(candidates.master().await, master);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_was_frozen_decides_nothing_when_it_goes_on() {
    let etcd = Etcd::start().await;
    let mut candidates = Setup::new(2).start(&etcd);
    let watcher = candidates.watch();
    let crowd = candidates.crowd().await;
    let master = candidates.master().await;
    let frozen = candidates.list[master].probe.clone();
    let mut child = frozen.stream("child", WATCHED).await;
    assert!(child.next().await.unwrap().is_grant());

    candidates.list[master].server().freeze();
    let froze = Instant::now();
    // They wait in its sockets: calls, and messages of a child server.
    let mut calls = JoinSet::new();
    for number in 0..100 {
        let frozen = frozen.clone();
        calls.spawn(async move {
            let client = format!("queued-{number}");
            frozen.ask(&client, WATCHED, 1.0, None).await
        });
        child.send().await;
    }
    let grant = watcher.grant(froze, Some(master)).await;
    println!("succeeded after {:.2?}", grant.received - froze);
    assert!(grant.received - froze < FAILOVER + GRANULARITY);
    candidates.list[master].server().thaw();
    let thawed = Instant::now();
    while let Some(answer) = calls.join_next().await {
        let answer = answer.unwrap().unwrap();
        assert!(!answer.is_grant(), "{answer:?}");
    }
    let mut messages = 0;
    while let Some(answer) = child.next().await {
        assert!(!answer.is_grant(), "{answer:?}");
        messages += 1;
    }
    assert!(
        messages <= 1,
        "a stream ends after the message that this server is not the master"
    );
    while thawed.elapsed() < TTL {
        let answer = frozen.ask("after", WATCHED, 1.0, None).await.unwrap();
        assert!(!answer.is_grant(), "{answer:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    candidates.list[master]
        .server()
        .wait_for_log("mastership could not be confirmed in time");
    candidates.assert_kept(grant.server, &crowd, &watcher).await;
}

/// Proves that the measure notices two masters: rows of (server, epoch, what it shows, sent, received), and whether
/// they may come from one master after another.
#[test]
fn two_masters_are_noticed() {
    use Shows::{Claim, Grant, NotMaster};
    let now = Instant::now();
    let at = |ms| now + Duration::from_millis(ms);
    let first = (0, 1, Grant, 0, 5);
    let second = (1, 2, Grant, 6, 9);
    for (what, rows, is_right) in [
        ("in turn", vec![first, second], true),
        ("long in flight", vec![(0, 1, Grant, 0, 50), second], true),
        (
            "asked before the newer answer",
            vec![(0, 1, Grant, 8, 20), second],
            true,
        ),
        (
            "asked after the newer grant",
            vec![first, second, (0, 1, Grant, 10, 12)],
            false,
        ),
        (
            "recorded in another order",
            vec![(0, 1, Grant, 10, 12), second],
            false,
        ),
        (
            "a claim counts as a grant",
            vec![second, (0, 1, Claim, 10, 12)],
            false,
        ),
        (
            "a redirect is no mastership",
            vec![second, (0, 1, NotMaster, 10, 12)],
            true,
        ),
        (
            "elected again",
            vec![first, second, (0, 3, Grant, 10, 12)],
            true,
        ),
        ("two by one epoch", vec![first, (1, 1, Grant, 6, 9)], false),
    ] {
        let rows = rows.into_iter();
        let observations = rows.map(|(server, epoch, shows, sent, received)| Observation {
            server,
            epoch: Some(epoch),
            shows,
            sent: at(sent),
            received: at(received),
        });
        let record = Record {
            observations: observations.collect(),
        };
        assert_eq!(record.check().is_ok(), is_right, "{what}");
    }
}
