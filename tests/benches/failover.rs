//! Time of a failover: from the end of a master to the first grant of its successor, and until a newcomer has all that it
//! wants.
//!
//! `cargo bench -p doorward-tests --bench failover` takes a quarter of an hour: for a root, a region and a
//! leaf. The TTL of the election is `DOORWARD_TTL`, in whole seconds. Masters end at instants that are spread over the
//! time between two renewals. Twelve clients share another resource, whose capacity they use up: it fails if one of them
//! loses a part, or if they ever use more.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use doorward_tests::candidates::{Candidate, Candidates, Setup, WATCHED, until};
use doorward_tests::crowd::Crowd;
use doorward_tests::etcd::Etcd;
use doorward_tests::probe::{Answer, Watcher};
use doorward_tests::processes::{doorward, signal, stderr};

const ROUNDS: u32 = 20;

/// Ends masters, one after the other, and prints the times without one.
async fn measure(
    what: &str,
    candidates: &mut Candidates,
    (watcher, crowd): (&Watcher, &Crowd),
    renewal: Duration,
    end: impl Fn(&mut Candidate),
) {
    let (mut took, mut grew) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let master = candidates.master().await;
        sleep(renewal * round / ROUNDS).await;
        let ended = Instant::now();
        end(&mut candidates.list[master]);
        let grant = watcher.grant(ended, Some(master)).await;
        took.push(grant.received - ended);
        let successor = &candidates.list[grant.server];
        let newcomer = format!("newcomer {round} after {what}");
        until("the newcomer has what it wants", async || {
            let asked = successor.probe.ask(&newcomer, WATCHED, 5.0, None).await;
            asked.is_ok_and(|answer| answer == Answer::Grant(Some(5.0)))
        })
        .await;
        grew.push(ended.elapsed());
        // It wants nothing any more: all that is in use is reported, as by living clients.
        let left = successor.probe.ask(&newcomer, WATCHED, 0.0, None).await;
        assert_eq!(left.unwrap(), Answer::Grant(Some(0.0)));
        candidates.assert_kept(grant.server, crowd, watcher).await;
        candidates.list[master].reap();
        candidates.list[master].start();
        let successor = candidates.master().await;
        candidates.until_all_follow(successor).await;
    }
    watcher.assert_one_master(what);
    for (until, mut times) in [("the first grant", took), ("growth", grew)] {
        times.sort();
        println!(
            "{ROUNDS} {what}, until {until}: median {:.3?}, worst {:.3?}",
            times[times.len() / 2],
            times[times.len() - 1]
        );
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let ttl = std::env::var("DOORWARD_TTL").map_or(3, |ttl| ttl.parse().unwrap());
    let etcd = Etcd::start().await;
    println!("TTL {ttl} s, three candidates of each node, one member of etcd");
    let mut nodes = Vec::new();
    for (node, parent) in [
        ("root", None),
        ("region", Some("root")),
        ("leaf", Some("region")),
    ] {
        let setup = Setup::new(3).with_ttl(Duration::from_secs(ttl));
        let setup = match parent {
            Some(parent) => setup.below(node, parent),
            None => setup,
        };
        let mut candidates = setup.start(&etcd);
        let watcher = candidates.watch();
        let master = candidates.master().await;
        let probe = &candidates.list[master].probe;
        until("nothing is learned any more", async || {
            let asked = probe.ask("first", WATCHED, 5.0, None).await;
            asked.is_ok_and(|answer| answer == Answer::Grant(Some(5.0)))
        })
        .await;
        if parent.is_none() {
            candidates.until_marked().await;
        }
        let crowd = candidates.crowd().await;
        let renewal = Duration::from_secs(ttl) / 3;
        let kill = |master: &mut Candidate| signal(master.server().process(), "KILL");
        let (all, kills) = (&mut candidates, format!("kills at the {node}"));
        measure(&kills, all, (&watcher, &crowd), renewal, kill).await;
        let stop = |master: &mut Candidate| signal(master.server().process(), "TERM");
        let stops = format!("graceful stops at the {node}");
        let all = &mut candidates;
        measure(&stops, all, (&watcher, &crowd), renewal, stop).await;
        // The server stops afterwards, as for an upgrade.
        let endpoints = etcd.address(0);
        let step_down = |_: &mut Candidate| {
            let output = doorward(&["step-down", node, "--etcd-endpoints", endpoints]);
            assert!(output.status.success(), "{}", stderr(&output));
        };
        let steps = format!("step-downs at the {node}");
        let all = &mut candidates;
        measure(&steps, all, (&watcher, &crowd), renewal, step_down).await;
        nodes.push((candidates, watcher));
    }
}
